// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"time"
	"unsafe"
)

// EventKind is what an event records.
type EventKind uint32

const (
	EventDecision EventKind = C.ADM_EVENT_DECISION
	EventUsage    EventKind = C.ADM_EVENT_USAGE
	EventRelease  EventKind = C.ADM_EVENT_RELEASE // and divert
)

// Event is one structured record for an audit log. Join by DecisionID.
type Event struct {
	Kind        EventKind
	Wall        time.Time // effective time
	DecisionID  ID
	Lease       ID
	Decision    *Decision // EventDecision; without its Lease
	Descriptors []Descriptor
	Amounts     []Amount // EventDecision: as given; EventUsage: totals
	Cost        int64
	Outcome     Outcome // EventUsage, EventRelease
	Result      Result  // EventRelease
	Final       bool    // EventUsage: the last report
}

//export admitGoEvent
func admitGoEvent(handle C.uint64_t, from *C.struct_adm_event) {
	// Neither a panic nor a Goexit may unwind the library's frames, which hold its locks.
	returned := false
	defer func() {
		if returned {
			return
		}
		problem := recover()
		if problem == nil {
			problem = "admit: an event callback ended its goroutine (runtime.Goexit, or FailNow of a test)"
		}
		go panic(problem)
		select {}
	}()
	record := cgo.Handle(handle).Value().(func(*Event))
	event := Event{
		Kind:       EventKind(from.kind),
		Wall:       time.Unix(0, int64(from.now.wall_ns)).UTC(),
		DecisionID: idOf(from.decision_id),
		Lease:      idOf(from.lease),
		Cost:       int64(from.cost),
		Outcome:    Outcome(from.outcome),
		Result:     Result(from.result),
		Final:      from.final_all != 0,
	}
	if from.decision != nil {
		event.Decision = new(Decision)
		new(Gate).decode(from.decision, event.Decision)
	}
	for _, d := range unsafe.Slice(from.descriptors, int(from.descriptor_count)) {
		event.Descriptors = append(event.Descriptors, Descriptor{Key: text(d.key), Value: text(d.value)})
	}
	for _, a := range unsafe.Slice(from.amounts, int(from.amount_count)) {
		event.Amounts = append(event.Amounts, Amount{
			Unit: Unit(a.unit), Value: int64(a.value), Final: a.flags&C.ADM_AMOUNT_FINAL != 0})
	}
	record(&event)
	returned = true
}

func text(from C.struct_adm_bytes) string {
	return C.GoStringN((*C.char)(from.data), C.int(from.length))
}
