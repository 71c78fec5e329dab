// SPDX-License-Identifier: Apache-2.0

//go:build cgo && go1.24

package admit

// #include "shim.h"
// static inline adm_status admit_go_admit_quiet(struct adm_gate *gate, struct admit_go_call *call)
// {
//     return admit_go_admit(gate, call);
// }
// static inline uint64_t admit_go_release_quiet(struct adm_gate *gate, uint64_t high, uint64_t low,
//                                               uint32_t result)
// {
//     return admit_go_release(gate, high, low, result);
// }
// #cgo noescape admit_go_admit_quiet
// #cgo nocallback admit_go_admit_quiet
// #cgo nocallback admit_go_release_quiet
import "C"

// Only a gate with an event callback enters Go from C.
func (g *Gate) decide(c *call) C.adm_status {
	if g.events == 0 {
		return C.admit_go_admit_quiet(g.c, &c.c)
	}
	return C.admit_go_admit(g.c, &c.c)
}

func (g *Gate) release(id ID, result Result) (Outcome, C.adm_status) {
	if g.events == 0 {
		return unpack(C.admit_go_release_quiet(g.c, C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
	}
	return unpack(C.admit_go_release(g.c, C.uint64_t(id.High), C.uint64_t(id.Low), C.uint32_t(result)))
}
