// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"log"
	"sync"
	"sync/atomic"
)

// Lease is held from an allowed Admit until Release. All methods may be called on a nil or zero lease,
// which holds nothing and answers OutcomeUnknown.
type Lease struct {
	gate *Gate
	id   ID
	// What is told when the lease is garbage collected; nil when it has been released.
	guard    atomic.Pointer[guard]
	returned atomic.Bool
}

// Leak is a lease that was garbage collected without Release or Divert.
type Leak struct {
	Lease, Decision ID
	PolicyVersion   string
	Outcome         Outcome // what the release by the collector found
}

// guard is reachable from the lease alone while that is held. To attach something to the end of an
// object's life costs more than a decision: guards are used again, and only new ones pay.
type guard struct{ what *watched }

type watched struct {
	gate     *Gate // nil: nothing is held
	lease    ID
	decision ID
	version  string
}

var guards = sync.Pool{New: func() interface{} {
	g := &guard{what: new(watched)}
	atEndOfLife(g)
	return g
}}

func newLease(g *Gate, id ID, d *Decision) *Lease {
	lease := &Lease{gate: g, id: id}
	// A repeated attempt names a lease that somebody else may hold: not ours to end.
	if !d.Repeated {
		guard := guards.Get().(*guard)
		*guard.what = watched{g, id, d.ID, d.PolicyVersion}
		lease.guard.Store(guard)
	}
	return lease
}

// unguard: the lease has been given back by its holder.
func (l *Lease) unguard() {
	if guard := l.guard.Swap(nil); guard != nil {
		guard.what.gate = nil // the rest says nothing then
		guards.Put(guard)
	}
}

// lost runs when a guard is garbage collected, mostly with nothing held. All of a program's cleanups
// may share one goroutine, which must not wait for a backend or for a handler.
func lost(what *watched) {
	if what.gate != nil {
		go leaked(what)
	}
}

func leaked(what *watched) {
	g := what.gate
	if !g.enter() {
		return
	}
	outcome, _ := g.release(what.lease, ResultError)
	g.leave()
	leak := Leak{what.lease, what.decision, what.version, outcome}
	if g.onLeak != nil {
		g.onLeak(leak)
		return
	}
	log.Printf("admit: lease %v (decision %v, policy %q) was lost without Release; the garbage collector released it: %v",
		leak.Lease, leak.Decision, leak.PolicyVersion, leak.Outcome)
}

func unpack(both C.uint64_t) (Outcome, C.adm_status) {
	return Outcome(uint32(both)), C.adm_status(int32(both >> 32))
}

func (l *Lease) none() bool { return l == nil || l.gate == nil }

// ID of the lease; zero of nil.
func (l *Lease) ID() ID {
	if l == nil {
		return ID{}
	}
	return l.id
}

// Returned says whether Release or Divert was called on this lease, whatever they answered. One that
// ended by its time to live was not returned.
func (l *Lease) Returned() bool { return l != nil && l.returned.Load() }

// on runs one operation on the lease.
func (l *Lease) on(op string, run func(g *C.struct_adm_gate, high, low C.uint64_t, out *C.uint32_t) C.adm_status) (Outcome, error) {
	if l.none() {
		return OutcomeUnknown, nil
	}
	if !l.gate.enter() {
		return OutcomeUnknown, ErrClosed
	}
	var outcome C.uint32_t
	status := run(l.gate.c, C.uint64_t(l.id.High), C.uint64_t(l.id.Low), &outcome)
	l.gate.leave()
	return Outcome(outcome), failure(op, status)
}

// Release gives the lease back: held units return now. Again is harmless and answers
// OutcomeAlready.
func (l *Lease) Release(result Result) (Outcome, error) {
	if l.none() {
		return OutcomeUnknown, nil
	}
	if result >= C.ADM_RESULT_COUNT {
		return OutcomeUnknown, &Error{Op: "Release", Field: "result", Detail: "is not one that exists", Status: StatusInvalidArgument}
	}
	l.returned.Store(true)
	if !l.gate.enter() {
		l.unguard()
		return OutcomeUnknown, ErrClosed
	}
	outcome, status := l.gate.release(l.id, result)
	l.gate.leave()
	if status == C.ADM_OK {
		l.unguard()
		return outcome, nil
	}
	return outcome, failure("Release", status)
}

// Renew keeps the lease alive for another time to live, counted from now: OutcomeRenewed or
// OutcomeLost.
func (l *Lease) Renew() (Outcome, error) {
	return l.on("Renew", func(g *C.struct_adm_gate, high, low C.uint64_t, out *C.uint32_t) C.adm_status {
		return C.admit_go_renew(g, high, low, out)
	})
}

// Settle reports usage as totals so far, never as deltas: the same report twice changes nothing.
// final: this is the last report; units that it leaves out keep what they have.
func (l *Lease) Settle(totals []Amount, final bool) (Outcome, error) {
	if l.none() {
		return OutcomeUnknown, nil
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	if !c.fillAmounts(totals) {
		return OutcomeUnknown, diagnoseAmounts("Settle", "totals", totals, true)
	}
	all := C.uint32_t(0)
	if final {
		all = 1
	}
	outcome, err := l.on("Settle", func(g *C.struct_adm_gate, high, low C.uint64_t, out *C.uint32_t) C.adm_status {
		return C.admit_go_settle(g, high, low, c.c, all, out)
	})
	if e, ok := err.(*Error); ok && e.Status == StatusInvalidCost {
		if named := diagnoseAmounts("Settle", "totals", totals, true); named != nil {
			err = named
		}
	}
	return outcome, err
}

// Divert says that the work left the local pool: held units return now, charges stay, output still
// to come is not charged.
func (l *Lease) Divert() (Outcome, error) {
	if l.none() {
		return OutcomeUnknown, nil
	}
	l.returned.Store(true)
	outcome, err := l.on("Divert", func(g *C.struct_adm_gate, high, low C.uint64_t, out *C.uint32_t) C.adm_status {
		return C.admit_go_divert(g, high, low, out)
	})
	if err == nil {
		l.unguard()
	}
	return outcome, err
}
