// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !go1.24

package admit

// #include "shim.h"
import "C"

func (g *Gate) decide(c *call) C.adm_status { return C.admit_go_admit(g.c, &c.c) }

func (g *Gate) release(id ID, result Result) (Outcome, C.adm_status) {
	return unpack(C.admit_go_release(g.c, C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
}
