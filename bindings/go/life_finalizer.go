// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !go1.24

package admit

import "runtime"

// The finalizers of a program share one goroutine, which must not wait.
func atEndOfLife(g *guard) { runtime.SetFinalizer(g, func(g *guard) { go leaked(g.what) }) }
