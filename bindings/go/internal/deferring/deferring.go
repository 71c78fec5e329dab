// SPDX-License-Identifier: Apache-2.0

//go:build cgo && admit_testing

package deferring

// #cgo pkg-config: admit-testing
// #include <admit/backends.h>
// #include <admit/testing.h>
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
}

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
		return admit.Backend{Ops: unsafe.Pointer(backend.ops), Self: backend.self}, nil
	}
}
