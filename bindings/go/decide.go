// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !go1.24

package admit

// #include "shim.h"
import "C"

func (g *Gate) decide(c *call) { C.admit_go_admit(c.number()) }

func (g *Gate) release(id ID, result Result) (Outcome, C.adm_status) {
	return unpack(C.admit_go_release(g.number(), C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
}

func nothing(c *call) { C.admit_go_nothing(c.number()) }
