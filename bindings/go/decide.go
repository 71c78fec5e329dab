// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

// Numbers cross, and no pointers: so "#cgo noescape" and "nocallback" (Go 1.24) have nothing to save
// here, and the second would cost two more calls each time.

func (g *Gate) decide(c *call) { C.admit_go_admit(c.number()) }

func (g *Gate) release(id ID, result Result) (Outcome, C.adm_status) {
	return unpack(C.admit_go_release(g.number(), C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
}

func nothing(c *call) { C.admit_go_nothing(c.number()) }
