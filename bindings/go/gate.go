// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"time"
	"unsafe"
)

// Gate decides. It may be used by any number of goroutines.
type Gate struct {
	c *C.struct_adm_gate
	// Calls that are inside the library, and the sign as long as others may enter. Zero: a gate that
	// nobody made, or that is closed.
	inside      atomic.Int64
	left        chan struct{} // somebody left after closing was set
	closed      chan struct{} // the gate has been freed
	lastVersion atomic.Pointer[string]
	defers      bool // the backend may answer later
	onLeak      func(Leak)
	clock       *ManualClock // in use as long as c
	events      cgo.Handle
}

const opened = math.MinInt64

// New makes a gate with its first policy. Close it when it is not needed any more.
func New(policy *Policy, options ...Option) (*Gate, error) {
	if policy == nil || policy.c == nil {
		return nil, &Error{Op: "New", Field: "policy", Detail: "is nil", Status: StatusInvalidArgument}
	}
	var s settings
	for _, option := range options {
		option(&s)
	}
	if s.problem != nil {
		return nil, s.problem
	}
	g := &Gate{left: make(chan struct{}, 1), closed: make(chan struct{}), onLeak: s.onLeak, clock: s.clock}
	if s.clock != nil {
		s.c.clock = s.clock.made()
	}
	if s.backend != nil {
		backend, err := s.backend()
		if err != nil {
			return nil, fmt.Errorf("admit: New: %w", err)
		}
		s.c.backend.ops = (*C.struct_adm_backend_ops)(backend.Ops)
		s.c.backend.self = backend.Self
		if backend.Ops == nil {
			return nil, &Error{Op: "New", Field: "WithBackend", Detail: "gave no backend", Status: StatusInvalidArgument}
		}
	}
	if s.onEvent != nil {
		g.events = cgo.NewHandle(s.onEvent)
		s.c.events = C.uint64_t(g.events)
	}
	s.c.policy = policy.c
	data, length := view([]byte(s.nameSpace))
	status := C.admit_go_new(&s.c, data, length, &g.c)
	runtime.KeepAlive(policy)
	runtime.KeepAlive(s.clock)
	if status != C.ADM_OK {
		g.forgetEvents()
		return nil, failure("New", status)
	}
	var info C.struct_adm_backend_info
	info.size = C.sizeof_struct_adm_backend_info
	g.defers = C.adm_gate_describe(g.c, &info) != C.ADM_OK || info.capabilities&C.ADM_CAN_DEFER != 0
	g.inside.Store(opened)
	return g, nil
}

func (g *Gate) forgetEvents() {
	if g.events != 0 {
		g.events.Delete()
	}
}

// Close waits for the calls that are running and frees the gate. Calls that come later, and the
// methods of its leases, return ErrClosed. Again is harmless. An event callback must not close any
// gate: StatusReentrant.
func (g *Gate) Close() error {
	if g.closed == nil {
		return nil // made by nobody
	}
	if _, err := g.Version(); errors.Is(err, StatusReentrant) {
		// It would wait for the call that it is part of.
		return failure("Close", C.ADM_E_REENTRANT)
	}
	for {
		now := g.inside.Load()
		if now >= 0 {
			<-g.closed
			return nil
		}
		if g.inside.CompareAndSwap(now, now-opened) {
			break
		}
	}
	// Calls that come too late count for a moment, too; they touch nothing.
	for g.inside.Load() != 0 {
		<-g.left
	}
	C.adm_gate_free(g.c)
	runtime.KeepAlive(g.clock)
	g.forgetEvents()
	close(g.closed)
	return nil
}

func (g *Gate) number() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(g.c))) }

func (g *Gate) enter() bool {
	if g.inside.Add(1) < 0 {
		return true
	}
	g.leave()
	return false
}

func (g *Gate) leave() {
	if g.inside.Add(-1) == 0 {
		select {
		case g.left <- struct{}{}:
		default: // Close has been told already
		}
	}
}

// Admit asks for permission to start one unit of work. The error is for misuse, a closed gate or a
// context that is done; a denial is a Decision, and so is a backend that cannot answer. When ctx
// ends before the backend has answered, a grant that still comes is given back (with an Attempt it
// is kept for whoever repeats it).
func (g *Gate) Admit(ctx context.Context, request Request) (d Decision, err error) {
	if ctx == nil {
		return d, &Error{Op: "Admit", Field: "ctx", Detail: "is nil, context.Background() never ends", Status: StatusInvalidArgument}
	}
	if request.Timeout < 0 {
		return d, &Error{Op: "Admit", Field: "Timeout", Detail: "must not be negative", Status: StatusInvalidArgument}
	}
	if ctx.Done() == nil {
		err = g.admit(&request, &d)
		return d, err
	}
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if !g.defers {
		err = g.admit(&request, &d)
		return d, err
	}
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		if left <= 0 {
			return d, context.DeadlineExceeded
		}
		if request.Timeout == 0 || left < request.Timeout {
			request.Timeout = left
		}
	}
	return g.admitWithin(ctx, &request)
}

func (g *Gate) admit(request *Request, d *Decision) (err error) {
	if !g.enter() {
		return ErrClosed
	}
	c := calls.Get().(*call)
	if !c.fill(g, request) {
		err = diagnose("Admit", request, C.ADM_E_INVALID_ARGUMENT)
	} else if g.decide(c); c.c.status != C.ADM_OK {
		err = diagnose("Admit", request, c.c.status)
	} else {
		g.answer(c, d)
	}
	calls.Put(c)
	g.leave()
	return err
}

func (g *Gate) answer(c *call, d *Decision) {
	g.decode(&c.c.decision, d)
	if lease := idOf(c.c.decision.lease); lease != (ID{}) {
		d.Lease = newLease(g, lease, d)
	}
}

const (
	waiting = iota
	answered
	abandoned
)

// admitWithin waits on a goroutine of its own, which a thread of C holds for as long as the
// backend takes, so that the caller can leave when ctx ends.
func (g *Gate) admitWithin(ctx context.Context, request *Request) (d Decision, err error) {
	if !g.enter() {
		return d, ErrClosed
	}
	c := calls.Get().(*call)
	if !c.fill(g, request) {
		calls.Put(c)
		g.leave()
		return d, diagnose("Admit", request, C.ADM_E_INVALID_ARGUMENT)
	}
	var state atomic.Int32
	done := make(chan C.adm_status, 1)
	keep := request.Attempt != ""
	go func() {
		g.decide(c)
		status := c.c.status
		if state.CompareAndSwap(waiting, answered) {
			done <- status
			return
		}
		if status == C.ADM_OK && !keep {
			g.giveBack(c)
		}
		calls.Put(c)
		g.leave()
	}()
	select {
	case status := <-done:
		err = g.finish(c, status, request, &d)
	case <-ctx.Done():
		if state.CompareAndSwap(waiting, abandoned) {
			return d, ctx.Err()
		}
		err = g.finish(c, <-done, request, &d)
	}
	return d, err
}

func (g *Gate) finish(c *call, status C.adm_status, request *Request, d *Decision) (err error) {
	if status != C.ADM_OK {
		err = diagnose("Admit", request, status)
	} else {
		g.answer(c, d)
	}
	calls.Put(c)
	g.leave()
	return err
}

// giveBack a grant that nobody waits for any more: as if the work had never been.
func (g *Gate) giveBack(c *call) {
	id := c.c.decision.lease
	if id.high == 0 && id.low == 0 {
		return
	}
	used := C.uint32_t(0)
	given := c.c.amounts
	for i := C.uint64_t(0); i < c.c.request.amount_count && used < MaxAmounts-5; i++ {
		if given[i].unit >= C.ADM_UNIT_FIRST_DECLARED {
			c.c.amounts[used] = C.struct_adm_amount{unit: given[i].unit}
			used++
		}
	}
	for _, unit := range []C.uint32_t{C.ADM_UNIT_COST, C.ADM_UNIT_INPUT_TOKENS, C.ADM_UNIT_OUTPUT_TOKENS,
		C.ADM_UNIT_TOKENS, C.ADM_UNIT_IMAGES} {
		c.c.amounts[used] = C.struct_adm_amount{unit: unit}
		used++
	}
	c.c.request.amount_count = C.uint64_t(used)
	var outcome C.uint32_t
	C.admit_go_settle(g.c, id.high, id.low, c.c, 1, &outcome)
	g.release(idOf(id), ResultCancelled)
}

// Key prepares a descriptor key, at most 1024 of them in a gate.
func (g *Gate) Key(key string) (Key, error) {
	if !g.enter() {
		return Key{}, ErrClosed
	}
	defer g.leave()
	if err := diagnoseLength("Key", "key", key, MaxKeyBytes); err != nil {
		return Key{}, err
	}
	var id C.uint32_t
	data, length := view([]byte(key))
	if err := failure("Key", C.admit_go_key(g.c, data, length, &id)); err != nil {
		return Key{}, err
	}
	return Key{&knownKey{gate: g, id: uint32(id), text: key}}, nil
}

// Unit finds a unit by name: the built-in ones, and others, which become known by it (at most 64).
func (g *Gate) Unit(name string) (Unit, error) {
	if !g.enter() {
		return 0, ErrClosed
	}
	defer g.leave()
	var id C.uint32_t
	data, length := view([]byte(name))
	if err := failure("Unit", C.admit_go_unit(g.c, data, length, &id)); err != nil {
		err.(*Error).Detail = fmt.Sprintf("%.80q", name)
		return 0, err
	}
	return Unit(id), nil
}

// Signal is a measurement of one replica, for pressure rules and limits that scale. NaN or an
// infinite value means: missing from now on.
func (g *Gate) Signal(scope, replica, name string, value float64) error {
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	for _, part := range []struct{ field, text string }{{"scope", scope}, {"replica", replica}, {"name", name}} {
		if err := diagnoseLength("Signal", part.field, part.text, MaxValueBytes); err != nil {
			return err
		}
	}
	scopeData, scopeLength := view([]byte(scope))
	replicaData, replicaLength := view([]byte(replica))
	nameData, nameLength := view([]byte(name))
	return failure("Signal", C.admit_go_signal(g.c, scopeData, scopeLength, replicaData, replicaLength,
		nameData, nameLength, C.double(value)))
}

// Publish puts a policy in force, atomically. State carries over: nothing refills, no lease is
// lost. The last 8 are kept for Rollback.
func (g *Gate) Publish(policy *Policy) error {
	if policy == nil || policy.c == nil {
		return &Error{Op: "Publish", Field: "policy", Detail: "is nil", Status: StatusInvalidArgument}
	}
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	defer runtime.KeepAlive(policy)
	return failure("Publish", C.adm_gate_publish(g.c, policy.c))
}

// Rollback puts a kept policy in force again.
func (g *Gate) Rollback(version string) error {
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	data, length := view([]byte(version))
	return failure("Rollback", C.admit_go_rollback(g.c, data, length))
}

// TableMode is how PutTable treats entries that the table in force has.
type TableMode uint32

const (
	TableReplace TableMode = C.ADM_TABLE_REPLACE
	TablePatch   TableMode = C.ADM_TABLE_PATCH // entries given are set, null ones removed, others stay
)

// PutTable puts a limit table of at most 16 MiB in force for its rule, without a Publish. The error
// is a *PolicyError when the text is not a table.
func (g *Gate) PutTable(text string, format Format, mode TableMode) error {
	if mode > TablePatch {
		return &Error{Op: "PutTable", Field: "mode", Detail: "is not one that exists", Status: StatusInvalidArgument}
	}
	flags := C.uint32_t(mode)
	switch format {
	case FormatJSON:
	case FormatYAML:
		flags |= C.ADM_TABLE_YAML
	default:
		return format.unknown("PutTable")
	}
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	var diags *C.struct_adm_diags
	data, length := view([]byte(text))
	status := C.admit_go_put_table(g.c, data, length, flags, &diags)
	if status == C.ADM_OK {
		C.adm_diags_free(diags)
		return nil
	}
	return policyFailure("PutTable", status, diags)
}

// Version of the policy in force.
func (g *Gate) Version() (string, error) {
	if !g.enter() {
		return "", ErrClosed
	}
	defer g.leave()
	var text [C.ADM_MAX_VERSION + 1]C.char
	if err := failure("Version", C.adm_gate_version(g.c, &text[0], C.uint64_t(len(text)))); err != nil {
		return "", err
	}
	return C.GoString(&text[0]), nil
}

// Read gives the level of a bucket (whole tokens, negative in debt), or the units held or used, of
// one rule in the partition that the descriptors name.
func (g *Gate) Read(rule string, descriptors ...Descriptor) (int64, error) {
	if !g.enter() {
		return 0, ErrClosed
	}
	defer g.leave()
	c := calls.Get().(*call)
	defer calls.Put(c)
	if !c.fillDescriptors(g, descriptors) {
		return 0, diagnoseDescriptors("Read", descriptors)
	}
	var level C.int64_t
	data, length := view([]byte(rule))
	status := C.admit_go_read(data, length, c.c, &level)
	if status == C.ADM_E_INVALID_DESCRIPTORS {
		if err := diagnoseDescriptors("Read", descriptors); err != nil {
			return 0, err
		}
		return 0, &Error{Op: "Read", Field: "descriptors", Detail: fmt.Sprintf("lack a key that rule %.64q is partitioned by", rule), Status: StatusInvalidDescriptors}
	}
	return int64(level), failure("Read", status)
}

// Metrics are all counters as OpenMetrics text.
func (g *Gate) Metrics() ([]byte, error) {
	if !g.enter() {
		return nil, ErrClosed
	}
	defer g.leave()
	// The text may grow between two calls.
	text := make([]byte, 16384)
	for {
		var length C.uint64_t
		status := C.adm_gate_metrics(g.c, (*C.char)(unsafe.Pointer(&text[0])), C.uint64_t(len(text)), &length)
		if status != C.ADM_E_BUFFER_TOO_SMALL {
			if err := failure("Metrics", status); err != nil {
				return nil, err
			}
			return text[:length], nil
		}
		text = make([]byte, uint64(length)+4096)
	}
}

// BackendInfo is what a backend says of itself. A bound of 1<<64 - 1 means: unbounded.
type BackendInfo struct {
	Defers                    bool // may answer later
	Classes, ClassesMax       uint64
	Partitions, PartitionsMax uint64
	Leases, LeasesMax         uint64 // records, live or kept for late reports
	Attempts, AttemptsMax     uint64
	Expired                   uint64 // leases that ended by expiry, so far
}

// Describe asks the backend.
func (g *Gate) Describe() (BackendInfo, error) {
	if !g.enter() {
		return BackendInfo{}, ErrClosed
	}
	defer g.leave()
	var info C.struct_adm_backend_info
	info.size = C.sizeof_struct_adm_backend_info
	if err := failure("Describe", C.adm_gate_describe(g.c, &info)); err != nil {
		return BackendInfo{}, err
	}
	return BackendInfo{
		Defers:  info.capabilities&C.ADM_CAN_DEFER != 0,
		Classes: uint64(info.classes), ClassesMax: uint64(info.classes_max),
		Partitions: uint64(info.partitions), PartitionsMax: uint64(info.partitions_max),
		Leases: uint64(info.leases), LeasesMax: uint64(info.leases_max),
		Attempts: uint64(info.attempts), AttemptsMax: uint64(info.attempts_max),
		Expired: uint64(info.expired),
	}, nil
}

// Sweep cleans up on a quiet gate, in bounded steps: budget is the number of records to look at.
// True: a whole round is finished. Traffic does the same by itself.
func (g *Gate) Sweep(budget int) (bool, error) {
	if budget < 0 {
		return false, &Error{Op: "Sweep", Field: "budget", Detail: "must not be negative", Status: StatusInvalidArgument}
	}
	if !g.enter() {
		return false, ErrClosed
	}
	defer g.leave()
	var done C.uint32_t
	if err := failure("Sweep", C.adm_gate_sweep(g.c, C.uint64_t(budget), &done)); err != nil {
		return false, err
	}
	return done != 0, nil
}

func diagnoseLength(op, field, text string, longest int) error {
	if len(text) >= 1 && len(text) <= longest {
		return nil
	}
	status := StatusInvalidArgument
	if op == "Key" {
		status = StatusInvalidDescriptors
	}
	return &Error{Op: op, Field: field, Detail: fmt.Sprintf("has %d bytes, 1 to %d are allowed", len(text), longest), Status: status}
}
