// SPDX-License-Identifier: Apache-2.0

//go:build cgo && go1.24

package admit

// #include "shim.h"
// static inline void admit_go_admit_quiet(uintptr_t call)
// {
//     admit_go_admit(call);
// }
// static inline uint64_t admit_go_release_quiet(uintptr_t gate, uint64_t high, uint64_t low,
//                                               uint32_t result)
// {
//     return admit_go_release(gate, high, low, result);
// }
// #cgo nocallback admit_go_admit_quiet
// #cgo nocallback admit_go_release_quiet
// #cgo nocallback admit_go_nothing
import "C"

// Only a gate with an event callback enters Go from C.
func (g *Gate) decide(c *call) {
	if g.events == 0 {
		C.admit_go_admit_quiet(c.number())
		return
	}
	C.admit_go_admit(c.number())
}

func (g *Gate) release(id ID, result Result) (Outcome, C.adm_status) {
	if g.events == 0 {
		return unpack(C.admit_go_release_quiet(g.number(), C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
	}
	return unpack(C.admit_go_release(g.number(), C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
}

func nothing(c *call) { C.admit_go_nothing(c.number()) }
