// SPDX-License-Identifier: Apache-2.0

//go:build cgo && admit_testing

package admit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"admit.example/admit"
	"admit.example/admit/internal/deferring"
)

// A caller that leaves while the backend has not answered: whatever comes then, nothing stays taken.

type late struct {
	gate      *admit.Gate
	clock     *admit.ManualClock
	hold      *deferring.Hold
	decisions chan admit.Event
	releases  chan admit.Event
}

func openLate(t *testing.T, o deferring.Options) *late {
	l := &late{hold: deferring.NewHold(), decisions: make(chan admit.Event, 16), releases: make(chan admit.Event, 16)}
	t.Cleanup(l.hold.Free)
	o.Sizes = admit.PlainSizes{Partitions: 64, Leases: 64, Attempts: 64, Classes: 64}
	o.Hold = l.hold
	l.gate, l.clock = open(t, twoAtOnce, admit.WithBackend(deferring.Open(o)),
		admit.WithLeakHandler(func(leak admit.Leak) { t.Errorf("leak %+v", leak) }),
		admit.WithEvents(func(e *admit.Event) {
			switch e.Kind {
			case admit.EventDecision:
				l.decisions <- *e
			case admit.EventRelease:
				l.releases <- *e
			}
		}))
	return l
}

// leave asks, and cancels once the backend has the question but cannot answer it.
func (l *late) leave(t *testing.T, r admit.Request) {
	t.Helper()
	l.hold.Set(true)
	arrived := l.hold.Arrived()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type answer struct {
		d   admit.Decision
		err error
	}
	done := make(chan answer, 1)
	go func() {
		d, err := l.gate.Admit(ctx, r)
		done <- answer{d, err}
	}()
	for l.hold.Arrived() == arrived {
		runtime.Gosched()
	}
	select {
	case got := <-done:
		t.Fatalf("answered by nobody: %+v", got)
	default:
	}
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) || got.d.Allowed || got.d.Lease != nil || got.d.HTTPStatus != 0 {
		t.Fatalf("%+v", got)
	}
}

// settled waits until what was taken has come back, for a bounded number of looks; each look lets the
// backend work.
func (l *late) settled(t *testing.T, held, level int64) {
	t.Helper()
	l.hold.Set(false)
	var h, v int64
	for i := 0; i < 10000; i++ {
		if h, v = read(t, l.gate, "inflight"), read(t, l.gate, "burst"); h == held && v == level {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%d held, level %d; want %d and %d", h, v, held, level)
}

func TestLeaveThenGranted(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	l.leave(t, ask(10))
	l.hold.Set(false)
	if granted := <-l.decisions; !granted.Decision.Allowed {
		t.Errorf("%+v", granted.Decision)
	}
	l.settled(t, 0, 1000) // before the event of it, which would never come if nothing did
	if back := <-l.releases; back.Result != admit.ResultCancelled || back.Outcome != admit.OutcomeReleased {
		t.Errorf("%+v", back)
	}
}

func TestLeaveThenDenied(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	first, second := mustAdmit(t, l.gate, ask(10)), mustAdmit(t, l.gate, ask(10))
	<-l.decisions
	<-l.decisions
	l.leave(t, ask(10))
	l.hold.Set(false)
	if denied := <-l.decisions; denied.Decision.Allowed || denied.Decision.Reason != admit.ReasonConcurrencyExceeded {
		t.Errorf("%+v", denied.Decision)
	}
	l.settled(t, 2, 980)
	first.Lease.Release(admit.ResultOK)
	second.Lease.Release(admit.ResultOK)
	l.settled(t, 0, 980)
}

// The backend does not answer before its own time is up; then it may have forgotten the question, or
// carry it out all the same.
func TestLeaveThenTimeout(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("carried out: %v", keeps), func(t *testing.T) {
			l := openLate(t, deferring.Options{PollsMax: 2, KeepsCancelled: keeps})
			l.leave(t, ask(10))
			l.clock.Set(time.Hour+time.Second, time.Hour+time.Second)
			if d := (<-l.decisions).Decision; d.Allowed || d.Reason != admit.ReasonStateUnavailable {
				t.Errorf("%+v", d)
			}
			l.settled(t, 0, 1000)
		})
	}
}

// With an attempt id the grant waits for whoever repeats it.
func TestLeaveWithAttempt(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	r := ask(10)
	r.Attempt = "once"
	l.leave(t, r)
	l.hold.Set(false)
	if granted := <-l.decisions; !granted.Decision.Allowed {
		t.Errorf("%+v", granted.Decision)
	}
	l.settled(t, 1, 990)
	again := mustAdmit(t, l.gate, r)
	if !again.Repeated || again.Lease == nil {
		t.Fatalf("%+v", again)
	}
	again.Lease.Release(admit.ResultOK)
	l.settled(t, 0, 990)
}

// Close waits for the question that nobody waits for any more.
func TestLeaveThenClose(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	l.leave(t, ask(10))
	closed := make(chan error, 1)
	go func() { closed <- l.gate.Close() }()
	for {
		if _, err := l.gate.Version(); errors.Is(err, admit.ErrClosed) {
			break
		}
		runtime.Gosched()
	}
	select {
	case <-closed:
		t.Error("closed under a running call")
	default:
	}
	l.hold.Set(false)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	select {
	case back := <-l.releases:
		if back.Result != admit.ResultCancelled || back.Outcome != admit.OutcomeReleased {
			t.Errorf("%+v", back)
		}
	default:
		t.Error("closed before the grant was given back")
	}
}

func TestDoneBeforeAsking(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	arrived := l.hold.Arrived()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	past, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{cancelled, context.Canceled}, {past, context.DeadlineExceeded}} {
		if d, err := l.gate.Admit(c.ctx, ask(10)); !errors.Is(err, c.want) || d.Lease != nil {
			t.Error(d, err)
		}
	}
	if l.hold.Arrived() != arrived {
		t.Error("the backend was asked")
	}
}

// Misuse is told at once, with a context and a backend that answers late as without.
func TestMisuseOfLateBackend(t *testing.T) {
	l := openLate(t, deferring.Options{PollsMax: 2})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wrong := ask(10)
	wrong.Cost = -1
	if _, err := l.gate.Admit(ctx, wrong); !errors.Is(err, admit.StatusInvalidCost) {
		t.Error(err)
	}
	wrong = ask(10)
	wrong.Timeout = -1
	soon, cancelSoon := context.WithTimeout(context.Background(), time.Hour)
	defer cancelSoon()
	for _, ctx := range []context.Context{ctx, soon} {
		if _, err := l.gate.Admit(ctx, wrong); !errors.Is(err, admit.StatusInvalidArgument) {
			t.Error(err)
		}
	}
	wrong = ask(10)
	wrong.Descriptors = make([]admit.Descriptor, 17)
	if _, err := l.gate.Admit(ctx, wrong); !errors.Is(err, admit.StatusInvalidDescriptors) {
		t.Error(err)
	}
	l.settled(t, 0, 1000)
}

// Callers that leave at any point: before, while and after the backend answers. How many do is the
// scheduler's choice; the tests above leave for certain.
func TestLeaveAtAnyPoint(t *testing.T) {
	const goroutines, each, capacity = 8, 100, 1000000
	before := runtime.NumGoroutine()
	for seed := uint64(1); seed <= 4; seed++ {
		o := deferring.Options{PollsMax: 300, Seed: seed, KeepsCancelled: seed%2 == 0}
		gate, _ := open(t, `{"version": "1", "rules": [
			{"id": "inflight", "type": "concurrency", "partition_by": ["tenant"], "limit": 5, "lease_ttl": "30s"},
			{"id": "burst", "type": "token_bucket", "partition_by": ["tenant"], "unit": "tokens", "capacity": 1000000,
			 "refill": 0, "per": "1s", "settle": "exact"}]}`, admit.WithBackend(deferring.Open(o)),
			admit.WithLeakHandler(func(leak admit.Leak) { t.Errorf("leak %+v", leak) }))
		var used, left, answered atomic.Int64
		var group sync.WaitGroup
		for n := 0; n < goroutines; n++ {
			group.Add(1)
			go func(random uint64) {
				defer group.Done()
				for i := 0; i < each; i++ {
					random = random*6364136223846793005 + 1442695040888963407
					ctx, cancel := context.WithCancel(context.Background())
					patience := random >> 60 // 0 to 15 turns
					go func() {
						for ; patience > 0; patience-- {
							runtime.Gosched()
						}
						cancel()
					}()
					d, err := gate.Admit(ctx, ask(20))
					switch {
					case errors.Is(err, context.Canceled):
						left.Add(1)
					case err != nil:
						t.Error(err)
					case d.Allowed:
						answered.Add(1)
						used.Add(5)
						if _, err := d.Lease.Settle([]admit.Amount{{Unit: admit.UnitTokens, Value: 5}}, true); err != nil {
							t.Error(err)
						}
						if _, err := d.Lease.Release(admit.ResultOK); err != nil {
							t.Error(err)
						}
					}
				}
			}(seed*100 + uint64(n))
		}
		group.Wait()
		held, level := int64(-1), int64(-1)
		for i := 0; i < 10000 && (held != 0 || level != capacity-used.Load()); i++ {
			held, level = read(t, gate, "inflight"), read(t, gate, "burst")
			runtime.Gosched()
		}
		if held != 0 || level != capacity-used.Load() {
			t.Errorf("seed %d: %d held, level %d, %d were used", seed, held, level, used.Load())
		}
		t.Logf("seed %d: %d left, %d worked", seed, left.Load(), answered.Load())
		gate.Close()
	}
	if !collect(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}
