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

func benchGate(t testing.TB) *Gate {
	policy, err := ParsePolicy(benchPolicy, FormatJSON)
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

func BenchmarkPair(b *testing.B) {
	gate, r, ctx := benchGate(b), benchRequest(), context.Background()
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		pair(b, gate, ctx, r)
	}
}

// TestBenchmarkAgainstC measures a loop in C and the same pairs from Go in turns, in one process.
// Only with ADMIT_BENCH_ROUNDS=N: it judges nothing, tests/bench/run.sh prints it.
func TestBenchmarkAgainstC(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("ADMIT_BENCH_ROUNDS"))
	if rounds <= 0 {
		t.Skip("a measurement, not a test: set ADMIT_BENCH_ROUNDS")
	}
	const pairs = 500 // short, so that some windows are undisturbed
	gate, r := benchGate(t), benchRequest()
	known := r
	known.Descriptors = nil
	for _, d := range r.Descriptors {
		key, err := gate.Key(d.Key)
		if err != nil {
			t.Fatal(err)
		}
		known.Descriptors = append(known.Descriptors, key.Is(d.Value))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ways := []struct {
		name string
		run  func()
	}{
		{"C loop", func() { pairsInC(t, gate, r, pairs) }},
		{"Go", func() { each(pairs, func() { pair(t, gate, context.Background(), r) }) }},
		{"Go, prepared keys", func() { each(pairs, func() { pair(t, gate, context.Background(), known) }) }},
		{"Go, context with Done", func() { each(pairs, func() { pair(t, gate, ctx, r) }) }},
	}
	ns := make([][]float64, len(ways))
	for round := 0; round <= rounds; round++ {
		for i := range ways {
			start := time.Now()
			ways[i].run()
			if round > 0 { // the first warms up
				ns[i] = append(ns[i], float64(time.Since(start).Nanoseconds())/pairs)
			}
		}
	}
	for i, way := range ways {
		over := make([]float64, rounds)
		for k := range over {
			over[k] = ns[i][k] - ns[0][k]
		}
		t.Logf("%-24s %7.0f ns a pair, %+6.0f ns over C; undisturbed (best tenth) %7.0f, %+6.0f",
			way.name, median(ns[i]), median(over), tenth(ns[i]), tenth(ns[i])-tenth(ns[0]))
	}
}

func each(n int, run func()) {
	for i := 0; i < n; i++ {
		run()
	}
}

func median(list []float64) float64 {
	sorted := append([]float64(nil), list...)
	sort.Float64s(sorted)
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

func pairsInC(t testing.TB, gate *Gate, r Request, pairs int) {
	if failed := benchLoop(gate, r, pairs); failed != 0 {
		t.Fatal(failed, "pairs failed")
	}
}

// tenth is the value that one in ten is below: on a busy machine, what the others do to us is in the rest.
func tenth(list []float64) float64 {
	sorted := append([]float64(nil), list...)
	sort.Float64s(sorted)
	return sorted[len(sorted)/10]
}
