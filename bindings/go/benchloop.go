// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"errors"
	"runtime"
	"time"
)

// The measures of bench_test.go are here, because test files may not use cgo.

// benchLoop decides in a C loop, and with pairs releases too; what the loop took.
func benchLoop(g *Gate, r Request, count int, pairs bool) (time.Duration, error) {
	c := newCall()
	if !c.fill(g, &r) {
		return 0, errors.New("too large a request")
	}
	release := C.uint32_t(0)
	if pairs {
		release = 1
	}
	var ns C.uint64_t
	if failed := C.admit_go_loop(c.c, C.uint64_t(count), release, &ns); failed != 0 {
		return 0, errors.New("some were denied or failed")
	}
	runtime.KeepAlive(c)
	return time.Duration(ns), nil
}

// benchNothing crosses to C and back.
func benchNothing(count int) {
	c := calls.Get().(*call)
	for i := 0; i < count; i++ {
		nothing(c)
	}
	calls.Put(c)
}
