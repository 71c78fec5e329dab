// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

import (
	"context"
	"os"
	"sort"
	"strconv"
	"testing"
	"time"
)

const benchPolicy = `{"version": "bench", "rules": [
	{"id": "rate", "type": "token_bucket", "partition_by": ["tenant"], "capacity": 1000000000000, "refill": 1000000000, "per": "1s"},
	{"id": "inflight", "type": "concurrency", "partition_by": ["tenant", "model"], "limit": 1000, "lease_ttl": "30s"}]}`

// Nothing is held, so that a decision is the whole story: one call of C.
const ratePolicy = `{"version": "bench", "rules": [
	{"id": "rate", "type": "token_bucket", "partition_by": ["tenant"], "capacity": 1000000000000, "refill": 1000000000, "per": "1s"}]}`

func benchGate(t testing.TB, text string) *Gate {
	policy, err := ParsePolicy(text, FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	return gate
}

func benchRequest() Request {
	return Request{Descriptors: Descriptors("tenant", "acme", "model", "large-1", "endpoint", "chat"), Cost: 1,
		Amounts: []Amount{{Unit: UnitInputTokens, Value: 800}, {Unit: UnitOutputTokens, Value: 200}}}
}

func pair(t testing.TB, gate *Gate, ctx context.Context, r Request) {
	d, err := gate.Admit(ctx, r)
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if outcome, err := d.Lease.Release(ResultOK); err != nil || outcome != OutcomeReleased {
		t.Fatal(outcome, err)
	}
}

func decision(t testing.TB, gate *Gate, ctx context.Context, r Request) {
	if d, err := gate.Admit(ctx, r); err != nil || !d.Allowed || d.Lease != nil {
		t.Fatal(d, err)
	}
}

func BenchmarkDecision(b *testing.B) {
	gate, r, ctx := benchGate(b, ratePolicy), benchRequest(), context.Background()
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		decision(b, gate, ctx, r)
	}
}

func BenchmarkPair(b *testing.B) {
	gate, r, ctx := benchGate(b, benchPolicy), benchRequest(), context.Background()
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		pair(b, gate, ctx, r)
	}
}

// TestBenchmarkAgainstC measures loops in C, the bare way to C and back, and the same from Go, in
// turns, in one process. Only with ADMIT_BENCH_ROUNDS=N: it judges nothing, tests/bench/run.sh
// prints it.
func TestBenchmarkAgainstC(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("ADMIT_BENCH_ROUNDS"))
	if rounds <= 0 {
		t.Skip("a measurement, not a test: set ADMIT_BENCH_ROUNDS")
	}
	const count = 200 // short, so that some windows are undisturbed
	gate, rate, r := benchGate(t, benchPolicy), benchGate(t, ratePolicy), benchRequest()
	known := prepared(t, rate, r)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timed := func(run func()) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			for i := 0; i < count; i++ {
				run()
			}
			return time.Since(start)
		}
	}
	inC := func(gate *Gate, pairs bool) func() time.Duration {
		return func() time.Duration {
			took, err := benchLoop(gate, r, count, pairs)
			if err != nil {
				t.Fatal(err)
			}
			return took
		}
	}
	ways := []struct {
		name string
		base int // the way in C that does the same
		run  func() time.Duration
	}{
		{"to C and back", -1, func() time.Duration {
			start := time.Now()
			benchNothing(count)
			return time.Since(start)
		}},
		{"decision in C", -1, inC(rate, false)},
		{"decision in Go", 1, timed(func() { decision(t, rate, context.Background(), r) })},
		{"  prepared keys", 1, timed(func() { decision(t, rate, context.Background(), known) })},
		{"  context with Done", 1, timed(func() { decision(t, rate, ctx, r) })},
		{"pair in C", -1, inC(gate, true)},
		{"pair in Go", 5, timed(func() { pair(t, gate, context.Background(), r) })},
	}
	ns := make([][]float64, len(ways))
	for round := 0; round <= rounds; round++ {
		for i := range ways {
			took := ways[i].run()
			if round > 0 { // the first warms up
				ns[i] = append(ns[i], float64(took.Nanoseconds())/count)
			}
		}
	}
	t.Logf("%-22s %18s %32s", "ns", "median (over C)", "undisturbed: best tenth (over C)")
	for i, way := range ways {
		if way.base < 0 {
			t.Logf("%-22s %8.0f %9s %22.0f", way.name, median(ns[i]), "", tenth(ns[i]))
			continue
		}
		over := make([]float64, rounds)
		for k := range over {
			over[k] = ns[i][k] - ns[way.base][k]
		}
		t.Logf("%-22s %8.0f %+9.0f %22.0f %+9.0f", way.name, median(ns[i]), median(over), tenth(ns[i]),
			tenth(ns[i])-tenth(ns[way.base]))
	}
}

func prepared(t testing.TB, gate *Gate, r Request) Request {
	known := r
	known.Descriptors = nil
	for _, d := range r.Descriptors {
		key, err := gate.Key(d.Key)
		if err != nil {
			t.Fatal(err)
		}
		known.Descriptors = append(known.Descriptors, key.Is(d.Value))
	}
	return known
}

func median(list []float64) float64 {
	sorted := append([]float64(nil), list...)
	sort.Float64s(sorted)
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// tenth is the value that one in ten is below: on a busy machine, what the others do to us is in the rest.
func tenth(list []float64) float64 {
	sorted := append([]float64(nil), list...)
	sort.Float64s(sorted)
	return sorted[len(sorted)/10]
}
