// SPDX-License-Identifier: Apache-2.0

//go:build cgo

/*
Package admit asks libadmit whether a piece of work may start.

A Gate checks every rule of a policy that matches a request, all or nothing, and hands out one lease;
Release gives it back when the work ends.

	policy, err := admit.Load("policy.json")
	gate, err := admit.New(policy)
	defer gate.Close()

	decision, err := gate.Admit(ctx, admit.Request{
		Descriptors: admit.Descriptors("tenant", tenant, "model", model),
		Cost:        1,
	})
	if err != nil {
		return err // misuse, a closed gate or a cancelled ctx: there is no decision
	}
	defer decision.Lease.Release(admit.ResultOK) // harmless when nothing is held
	if !decision.Allowed {
		return fmt.Errorf("try again in %v: %v", decision.RetryAfter, decision.Reason)
	}

A denial is not an error. A Gate, its leases and a Policy may be used by any number of goroutines.

The package needs cgo and libadmit, which it finds through pkg-config. In a forked child a gate
denies everything, as the library says; Go programs do not fork without exec.
*/
package admit

// #cgo pkg-config: admit
// #include "shim.h"
import "C"
