// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// Option of New.
type Option func(*settings)

type settings struct {
	c         C.struct_admit_go_options
	nameSpace string
	backend   func() (Backend, error)
	clock     *ManualClock
	onEvent   func(*Event)
	onLeak    func(Leak)
	problem   *Error
}

func (s *settings) number(option string, value int64, to *C.uint64_t) {
	if value < 0 && s.problem == nil {
		s.problem = &Error{Op: "New", Field: option, Detail: "must not be negative", Status: StatusInvalidArgument}
	}
	*to = C.uint64_t(value)
}

// PlainSizes are the bounds of the plain backend, fixed when it is opened. 0: the default.
type PlainSizes struct {
	Partitions int64 // 65536
	Leases     int64 // 65536
	Attempts   int64 // 16384
	Classes    int64 // 131072
}

// WithPlainSizes sets the bounds of the plain backend, which is what a gate has unless WithBackend
// says otherwise.
func WithPlainSizes(sizes PlainSizes) Option {
	return func(s *settings) {
		s.number("PlainSizes.Partitions", sizes.Partitions, &s.c.partitions_max)
		s.number("PlainSizes.Leases", sizes.Leases, &s.c.leases_max)
		s.number("PlainSizes.Attempts", sizes.Attempts, &s.c.attempts_max)
		s.number("PlainSizes.Classes", sizes.Classes, &s.c.classes_max)
	}
}

// Backend is a struct adm_backend of C, opened by another package.
type Backend struct {
	Ops  unsafe.Pointer // const struct adm_backend_ops *
	Self unsafe.Pointer
}

// WithBackend keeps the state in another backend. open is called by New, which owns and closes what
// it returns in every case.
func WithBackend(open func() (Backend, error)) Option {
	return func(s *settings) { s.backend = open }
}

// WithNamespace is part of every state identity: gates that share a backend differ in it. At most
// 64 bytes.
func WithNamespace(name string) Option { return func(s *settings) { s.nameSpace = name } }

// WithBackendTimeout is the longest wait for a backend that answers later. 0: 20 ms.
func WithBackendTimeout(wait time.Duration) Option {
	return func(s *settings) { s.number("WithBackendTimeout", int64(wait), &s.c.backend_timeout_ns) }
}

// WithSignalsMax bounds the signal values that are kept. 0: 65536.
func WithSignalsMax(count int64) Option {
	return func(s *settings) { s.number("WithSignalsMax", count, &s.c.signals_max) }
}

// WithPendingMax bounds the operations that wait for a backend that answers later. 0: 4096.
func WithPendingMax(count int64) Option {
	return func(s *settings) { s.number("WithPendingMax", count, &s.c.pending_max) }
}

// WithClock replaces the system's clocks, for tests. nil: the system's.
func WithClock(clock *ManualClock) Option { return func(s *settings) { s.clock = clock } }

// WithEvents calls record for every decision, report of usage and release, on the goroutine that
// decides. It must be quick and must not call the gate; a panic in it ends the program. Without
// this option no call enters Go.
func WithEvents(record func(*Event)) Option { return func(s *settings) { s.onEvent = record } }

// WithLeakHandler is told of leases that were garbage collected without Release; they have been
// released by then. On a goroutine of its own. Without this option a line is logged.
func WithLeakHandler(handle func(Leak)) Option { return func(s *settings) { s.onLeak = handle } }

// ManualClock moves only when it is told to. For tests; any goroutine may move it.
type ManualClock struct{ c *C.struct_admit_go_clock }

// NewManualClock starts at this moment: mono only serves differences, wall is UTC since 1970 and
// serves calendar windows.
func NewManualClock(mono, wall time.Duration) *ManualClock {
	clock := &ManualClock{c: C.admit_go_clock_new(C.uint64_t(mono), C.uint64_t(wall))}
	if clock.c == nil {
		panic("admit: no memory for a clock")
	}
	runtime.SetFinalizer(clock, func(m *ManualClock) { C.admit_go_clock_free(m.c) })
	return clock
}

// made by NewManualClock; the system's clocks instead would be a silent surprise.
func (m *ManualClock) made() *C.struct_admit_go_clock {
	if m.c == nil {
		panic("admit: a ManualClock comes from NewManualClock")
	}
	return m.c
}

// Set both clocks, also backwards.
func (m *ManualClock) Set(mono, wall time.Duration) {
	C.admit_go_clock_set(m.made(), C.uint64_t(mono), C.uint64_t(wall))
	runtime.KeepAlive(m)
}
