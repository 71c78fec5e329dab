// SPDX-License-Identifier: Apache-2.0

//go:build cgo && go1.24

package admit

import "runtime"

func atEndOfLife(g *guard) { runtime.AddCleanup(g, lost, g.what) }
