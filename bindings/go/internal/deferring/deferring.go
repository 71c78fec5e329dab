// SPDX-License-Identifier: Apache-2.0

//go:build cgo && admit_testing

package deferring

// #cgo pkg-config: admit-testing
// #include <admit/backends.h>
// #include <admit/testing.h>
// #include <stdatomic.h>
// #include <stdlib.h>
//
// /* Between a gate and a deferring backend: while it holds, nothing is polled and so nothing is
//  * answered. Cancelling still works. */
// struct hold {
//     struct adm_backend inner; /* of the backend that was opened with it */
//     _Atomic uint32_t holds;
//     _Atomic uint64_t arrived;
// };
//
// static void hold_start(void *self, struct adm_op *op)
// {
//     struct hold *hold = self;
//
//     hold->inner.ops->start(hold->inner.self, op);
//     atomic_fetch_add(&hold->arrived, 1);
// }
//
// static void hold_close(void *self)
// {
//     struct hold *hold = self;
//
//     hold->inner.ops->close(hold->inner.self);
// }
//
// static adm_status hold_poll(void *self, const struct adm_time *now)
// {
//     struct hold *hold = self;
//
//     return atomic_load(&hold->holds) != 0 ? ADM_OK : hold->inner.ops->poll(hold->inner.self, now);
// }
//
// static void hold_cancel(void *self, struct adm_op *op)
// {
//     struct hold *hold = self;
//
//     hold->inner.ops->cancel(hold->inner.self, op);
// }
//
// /* While it holds, whoever waits looks again after a moment, and does not spin. */
// static adm_status hold_watch(void *self, struct adm_watch *out)
// {
//     struct hold *hold = self;
//     adm_status status = hold->inner.ops->watch(hold->inner.self, out);
//
//     if (atomic_load(&hold->holds) != 0)
//         out->deadline_ns = UINT64_MAX;
//     return status;
// }
//
// static adm_status hold_describe(void *self, struct adm_backend_info *inout)
// {
//     struct hold *hold = self;
//
//     return hold->inner.ops->describe(hold->inner.self, inout);
// }
//
// static const struct adm_backend_ops hold_ops = {
//     .size = sizeof hold_ops,
//     .abi = ADM_BACKEND_ABI,
//     .name = "hold",
//     .start = hold_start,
//     .close = hold_close,
//     .poll = hold_poll,
//     .cancel = hold_cancel,
//     .watch = hold_watch,
//     .describe = hold_describe,
// };
//
// static void hold_wrap(struct hold *hold, struct adm_backend *backend)
// {
//     hold->inner = *backend;
//     *backend = (struct adm_backend){ &hold_ops, hold };
// }
//
// static void hold_set(struct hold *hold, uint32_t holds) { atomic_store(&hold->holds, holds); }
// static uint64_t hold_arrived(struct hold *hold) { return atomic_load(&hold->arrived); }
// static struct hold *hold_new(void) { return calloc(1, sizeof(struct hold)); }
//
// static adm_status open_deferring(const struct adm_plain_options *plain,
//                                  const struct adm_deferring_options *deferring,
//                                  struct adm_backend *out)
// {
//     struct adm_backend inner;
//     adm_status status = adm_plain_open(plain, &inner);
//
//     if (status != ADM_OK)
//         return status;
//     status = adm_deferring_open(deferring, inner, out);
//     if (status != ADM_OK)
//         inner.ops->close(inner.self);
//     return status;
// }
import "C"

import (
	"unsafe"

	"admit.example/admit"
)

// Options of a backend that answers late.
type Options struct {
	Sizes            admit.PlainSizes
	PollsMin         uint64 // an operation waits for this many polls ...
	PollsMax         uint64 // ... to this many
	NeverPermille    uint64 // so many of 1000 are not answered until cancelled or closed
	Seed             uint64
	KeepsCancelled   bool // what was cancelled is carried out all the same
	KeepsOrderOfTime bool // none is handed on before an earlier one
	Hold             *Hold
}

// Hold decides when one backend answers. Nil: always.
type Hold struct{ c *C.struct_hold }

// NewHold does not hold yet. Free it after the gate.
func NewHold() *Hold {
	hold := &Hold{C.hold_new()}
	if hold.c == nil {
		panic("deferring: no memory")
	}
	return hold
}

// Set says whether answers are kept waiting from now on.
func (h *Hold) Set(holds bool) {
	if holds {
		C.hold_set(h.c, 1)
	} else {
		C.hold_set(h.c, 0)
	}
}

// Arrived is the number of operations that the backend was given so far.
func (h *Hold) Arrived() uint64 { return uint64(C.hold_arrived(h.c)) }

// Free its memory, which the gate's backend lives in.
func (h *Hold) Free() { C.free(unsafe.Pointer(h.c)) }

// Open is what admit.WithBackend wants.
func Open(o Options) func() (admit.Backend, error) {
	return func() (admit.Backend, error) {
		plain := C.struct_adm_plain_options{
			size:           C.sizeof_struct_adm_plain_options,
			partitions_max: C.uint64_t(o.Sizes.Partitions),
			leases_max:     C.uint64_t(o.Sizes.Leases),
			attempts_max:   C.uint64_t(o.Sizes.Attempts),
			classes_max:    C.uint64_t(o.Sizes.Classes),
		}
		late := C.struct_adm_deferring_options{
			size:           C.sizeof_struct_adm_deferring_options,
			polls_min:      C.uint64_t(o.PollsMin),
			polls_max:      C.uint64_t(o.PollsMax),
			never_permille: C.uint64_t(o.NeverPermille),
			seed:           C.uint64_t(o.Seed),
		}
		if !o.KeepsOrderOfTime {
			late.flags |= C.ADM_DEFER_OUT_OF_ORDER
		}
		if o.KeepsCancelled {
			late.flags |= C.ADM_DEFER_KEEP_CANCELLED
		}
		var backend C.struct_adm_backend
		if status := C.open_deferring(&plain, &late, &backend); status != C.ADM_OK {
			return admit.Backend{}, admit.Status(status)
		}
		if o.Hold != nil {
			C.hold_wrap(o.Hold.c, &backend)
		}
		return admit.Backend{Ops: unsafe.Pointer(backend.ops), Self: backend.self}, nil
	}
}
