// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Bounds of a request. What is outside is refused before any state is touched.
const (
	MaxDescriptors  = C.ADM_MAX_DESCRIPTORS
	MaxKeyBytes     = C.ADM_MAX_KEY_BYTES
	MaxValueBytes   = C.ADM_MAX_VALUE_BYTES
	MaxAttemptBytes = C.ADM_MAX_ATTEMPT_BYTES
	MaxAmounts      = C.ADM_MAX_AMOUNTS
	MaxAmount       = 1000000000000 // of a cost or an amount: 10^12
)

// Descriptor is a trusted fact about a request, set by authentication or routing, never by the
// caller's own fields. Bytes are compared as they are: no trimming, no folding of case, and NUL is
// a byte like any other.
type Descriptor struct {
	Key   string // 1 to 64 bytes
	Value string // 1 to 256 bytes
	known *knownKey
}

// Descriptors makes descriptors of keys and values that take turns. A key without a value gets an
// empty one, which Admit refuses with an error that names it.
func Descriptors(keysAndValues ...string) []Descriptor {
	list := make([]Descriptor, 0, (len(keysAndValues)+1)/2)
	for i := 0; i < len(keysAndValues); i += 2 {
		d := Descriptor{Key: keysAndValues[i]}
		if i+1 < len(keysAndValues) {
			d.Value = keysAndValues[i+1]
		}
		list = append(list, d)
	}
	return list
}

type knownKey struct {
	gate *Gate
	id   uint32
	text string
}

// Key is a descriptor key that a gate has seen before: it need not be looked up again.
type Key struct{ known *knownKey }

// Is makes a descriptor. With another gate than the key's own it works too, at the price of a
// look-up.
func (k Key) Is(value string) Descriptor {
	if k.known == nil {
		return Descriptor{Value: value}
	}
	return Descriptor{Key: k.known.text, Value: value, known: k.known}
}

// Unit is what an amount counts. Gate.Unit gives those that a policy declares; they are good for
// that gate only.
type Unit uint32

const (
	UnitCost         Unit = C.ADM_UNIT_COST     // in Settle; a request has its own field
	UnitRequests     Unit = C.ADM_UNIT_REQUESTS // always 1, never given
	UnitInputTokens  Unit = C.ADM_UNIT_INPUT_TOKENS
	UnitOutputTokens Unit = C.ADM_UNIT_OUTPUT_TOKENS
	UnitTokens       Unit = C.ADM_UNIT_TOKENS // absent: input plus output tokens, if either is given
	UnitImages       Unit = C.ADM_UNIT_IMAGES
)

// Amount of one unit: 0 to 10^12. It is signed so that a difference that went below zero is an
// error, and not a huge number.
type Amount struct {
	Unit  Unit
	Value int64
	Final bool // in Settle: no later report changes this unit
}

// Request is a question: may this work start?
type Request struct {
	Descriptors []Descriptor
	Cost        int64    // 1 to 10^12
	Amounts     []Amount // beside the cost; each unit at most once
	// The same id with the same contents gets the first allow again. Empty: none.
	Attempt string
	// Longest wait for a backend that answers later. 0, or more than it: the gate's
	// WithBackendTimeout. An earlier deadline of the context wins.
	Timeout time.Duration
}

// call is memory of C for one request and its answer, freed with this object.
type call struct{ c *C.struct_admit_go_call }

var calls = sync.Pool{New: func() interface{} { return newCall() }}

func newCall() *call {
	c := &call{C.admit_go_call_new()}
	if c.c == nil {
		panic("admit: no memory for a request") // as for any other object of Go
	}
	runtime.SetFinalizer(c, func(c *call) { C.admit_go_call_free(c.c) })
	return c
}

func (c *call) number() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(c.c))) }

// fill writes what is known to fit; false: something is too long, or too much of it.
func (c *call) fill(g *Gate, r *Request) bool {
	if len(r.Attempt) > MaxAttemptBytes || !c.fillDescriptors(g, r.Descriptors) || !c.fillAmounts(r.Amounts) {
		return false
	}
	to := &c.c.request
	to.attempt.length = C.uint64_t(len(r.Attempt))
	if len(r.Attempt) > 0 {
		copy((*[MaxAttemptBytes]byte)(unsafe.Pointer(&c.c.attempt))[:], r.Attempt)
	}
	// A negative number becomes a very large one, which the library refuses.
	to.cost = C.uint64_t(r.Cost)
	to.deadline_ns = 0
	if r.Timeout > 0 {
		to.deadline_ns = C.uint64_t(r.Timeout)
	}
	return true
}

func (c *call) fillDescriptors(g *Gate, list []Descriptor) bool {
	if len(list) > MaxDescriptors {
		return false
	}
	c.c.gate = g.c
	for i := range list {
		d := &list[i]
		if len(d.Key) > MaxKeyBytes || len(d.Value) > MaxValueBytes {
			return false
		}
		out, text := &c.c.descriptors[i], &c.c.texts[i]
		if d.known != nil && d.known.gate == g && d.known.text == d.Key {
			out.key_id = C.uint32_t(d.known.id)
			out.key.length = 0
		} else {
			out.key_id = 0
			out.key.length = C.uint64_t(len(d.Key))
			copy((*[MaxKeyBytes]byte)(unsafe.Pointer(&text.key))[:], d.Key)
		}
		out.value.length = C.uint64_t(len(d.Value))
		copy((*[MaxValueBytes]byte)(unsafe.Pointer(&text.value))[:], d.Value)
	}
	c.c.request.descriptor_count = C.uint64_t(len(list))
	return true
}

// fillAmounts of a request, or the totals of a report of usage.
func (c *call) fillAmounts(list []Amount) bool {
	if len(list) > MaxAmounts {
		return false
	}
	for i := range list {
		out := &c.c.amounts[i]
		out.unit = C.uint32_t(list[i].Unit)
		out.value = C.uint64_t(list[i].Value)
		out.flags = 0
		if list[i].Final {
			out.flags = C.ADM_AMOUNT_FINAL
		}
	}
	c.c.request.amount_count = C.uint64_t(len(list))
	return true
}

// ---- naming what is wrong, after something was refused ----

func diagnoseAmounts(op, name string, amounts []Amount, settle bool) error {
	blame := func(field, detail string) error {
		return &Error{Op: op, Field: field, Detail: detail, Status: StatusInvalidCost}
	}
	if len(amounts) > MaxAmounts {
		return blame(name, fmt.Sprintf("has %d entries, at most %d are allowed", len(amounts), MaxAmounts))
	}
	seen := map[Unit]int{}
	for i, amount := range amounts {
		field := fmt.Sprintf("%s[%d]", name, i)
		first, twice := seen[amount.Unit]
		switch {
		case amount.Value < 0:
			return blame(field+".Value", fmt.Sprintf("is %d, it must not be negative", amount.Value))
		case amount.Value > MaxAmount:
			return blame(field+".Value", fmt.Sprintf("is %d, at most %d is allowed", amount.Value, int64(MaxAmount)))
		case twice:
			return blame(field+".Unit", fmt.Sprintf("is that of %s[%d] again", name, first))
		case amount.Unit == UnitRequests:
			return blame(field+".Unit", "is UnitRequests, which is always 1 and never given")
		case amount.Unit == UnitCost && !settle:
			return blame(field+".Unit", "is UnitCost, which has a field of its own")
		case amount.Final && !settle:
			return blame(field+".Final", "is for Settle only")
		}
		seen[amount.Unit] = i
	}
	return nil
}

func diagnoseDescriptors(op string, list []Descriptor) error {
	blame := func(field, detail string) error {
		return &Error{Op: op, Field: field, Detail: detail, Status: StatusInvalidDescriptors}
	}
	length := func(field, text string, longest int) error {
		if len(text) == 0 {
			return blame(field, fmt.Sprintf("is empty, 1 to %d bytes are needed", longest))
		}
		if len(text) > longest {
			return blame(field, fmt.Sprintf("has %d bytes, at most %d are allowed", len(text), longest))
		}
		return nil
	}
	if len(list) > MaxDescriptors {
		return blame("Descriptors", fmt.Sprintf("has %d entries, at most %d are allowed", len(list), MaxDescriptors))
	}
	for i, d := range list {
		if err := length(fmt.Sprintf("Descriptors[%d].Key", i), d.Key, MaxKeyBytes); err != nil {
			return err
		}
		if err := length(fmt.Sprintf("Descriptors[%d].Value (of key %q)", i, d.Key), d.Value, MaxValueBytes); err != nil {
			return err
		}
	}
	seen := map[string]int{}
	for i, d := range list {
		if first, twice := seen[d.Key]; twice {
			return blame(fmt.Sprintf("Descriptors[%d].Key", i), fmt.Sprintf("is %q, as Descriptors[%d].Key is already", d.Key, first))
		}
		seen[d.Key] = i
	}
	return nil
}

// diagnose goes through a refused request in the library's own order: the first mistake is the one
// that the library saw.
func diagnose(op string, r *Request, status C.adm_status) error {
	switch {
	case r.Cost < 0:
		return &Error{Op: op, Field: "Cost", Detail: fmt.Sprintf("is %d, it must not be negative", r.Cost), Status: StatusInvalidCost}
	case r.Cost < 1 || r.Cost > MaxAmount:
		return &Error{Op: op, Field: "Cost", Detail: fmt.Sprintf("is %d, 1 to %d is allowed", r.Cost, int64(MaxAmount)), Status: StatusInvalidCost}
	}
	if err := diagnoseAmounts(op, "Amounts", r.Amounts, false); err != nil {
		return err
	}
	if status == C.ADM_E_INVALID_COST {
		return &Error{Op: op, Field: "Amounts", Detail: "has a unit that this gate does not know", Status: StatusInvalidCost}
	}
	if err := diagnoseDescriptors(op, r.Descriptors); err != nil {
		return err
	}
	if len(r.Attempt) > MaxAttemptBytes {
		return &Error{Op: op, Field: "Attempt", Detail: fmt.Sprintf("has %d bytes, at most %d are allowed", len(r.Attempt), MaxAttemptBytes), Status: StatusInvalidAttempt}
	}
	if status == C.ADM_E_INVALID_ATTEMPT {
		return &Error{Op: op, Field: "Attempt", Detail: "is known with other descriptors, cost or amounts", Status: StatusInvalidAttempt}
	}
	return failure(op, status)
}
