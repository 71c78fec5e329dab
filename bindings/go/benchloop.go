// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

// benchLoop is the measure of bench_test.go, because test files may not use cgo: pairs of admit and
// release in a C loop; how many failed.
func benchLoop(g *Gate, r Request, pairs int) int {
	c := new(call)
	if !c.fill(g, &r) {
		return pairs
	}
	return int(C.admit_go_pairs(g.c, &c.c, C.uint64_t(pairs)))
}
