// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

// Without cgo there is nothing here but the error that the package admit stops with, which says what is missing. Without
// this file the go command would only say that every file is excluded.
package admithttp

import _ "admit.example/admit"
