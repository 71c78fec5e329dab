// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"admit.example/admit"
)

const twoAtOnce = `{"version": "two", "rules": [
	{"id": "inflight", "type": "concurrency", "partition_by": ["tenant"], "limit": 2, "lease_ttl": "30s"},
	{"id": "burst", "type": "token_bucket", "partition_by": ["tenant"], "unit": "tokens", "capacity": 1000,
	 "refill": 10, "per": "1s", "settle": "exact"}]}`

func mustParse(t testing.TB, text string) *admit.Policy {
	t.Helper()
	policy, err := admit.ParsePolicy(text, admit.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func open(t testing.TB, text string, options ...admit.Option) (*admit.Gate, *admit.ManualClock) {
	t.Helper()
	clock := admit.NewManualClock(time.Hour, time.Hour)
	gate, err := admit.New(mustParse(t, text), append([]admit.Option{admit.WithClock(clock)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	return gate, clock
}

func ask(tokens int64) admit.Request {
	return admit.Request{Descriptors: admit.Descriptors("tenant", "acme"), Cost: 1,
		Amounts: []admit.Amount{{Unit: admit.UnitTokens, Value: tokens}}}
}

func mustAdmit(t testing.TB, gate *admit.Gate, request admit.Request) admit.Decision {
	t.Helper()
	d, err := gate.Admit(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t testing.TB, gate *admit.Gate, rule string) int64 {
	t.Helper()
	level, err := gate.Read(rule, admit.Descriptors("tenant", "acme")...)
	if err != nil {
		t.Fatal(err)
	}
	return level
}

func TestDecision(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	first := mustAdmit(t, gate, ask(600))
	if !first.Allowed || first.HTTPStatus != 200 || first.Reason != admit.ReasonAllowed || first.Lease == nil ||
		first.PolicyVersion != "two" || first.ID == (admit.ID{}) || len(first.ID.String()) != 32 || first.Rules != nil {
		t.Fatalf("%+v", first)
	}
	denied := mustAdmit(t, gate, ask(600))
	if denied.Allowed || denied.Lease != nil || denied.HTTPStatus != 429 || denied.Reason.String() != "rate_exceeded" ||
		len(denied.Rules) != 1 || denied.Rules[0] != "burst" || denied.RetryAfter != 20*time.Second ||
		denied.RetryAfterSeconds() != 20 {
		t.Fatalf("%+v", denied)
	}
	if outcome, err := first.Lease.Settle([]admit.Amount{{Unit: admit.UnitTokens, Value: 100}}, true); err != nil || outcome != admit.OutcomeSettled {
		t.Fatal(outcome, err)
	}
	if level := read(t, gate, "burst"); level != 900 {
		t.Errorf("level %d after settling 600 to 100", level)
	}
	for i, want := range []admit.Outcome{admit.OutcomeReleased, admit.OutcomeAlready, admit.OutcomeAlready} {
		if outcome, err := first.Lease.Release(admit.ResultOK); err != nil || outcome != want {
			t.Errorf("release %d: %v %v", i, outcome, err)
		}
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	for wait, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2} {
		d := admit.Decision{RetryAfter: wait}
		if got := d.RetryAfterSeconds(); got != want {
			t.Errorf("%v: %d", wait, got)
		}
	}
}

func TestNilLeaseIsHarmless(t *testing.T) {
	var lease *admit.Lease
	check := func(outcome admit.Outcome, err error) {
		if outcome != admit.OutcomeUnknown || err != nil {
			t.Error(outcome, err)
		}
	}
	check(lease.Release(admit.ResultOK))
	check(lease.Renew())
	check(lease.Divert())
	check(lease.Settle(nil, true))
	if lease.ID() != (admit.ID{}) {
		t.Error(lease.ID())
	}
}

// Each of these is refused, says which field is to blame, and changes nothing.
func TestMisuse(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	long := strings.Repeat("x", 257)
	with := func(change func(*admit.Request)) admit.Request {
		r := ask(1)
		change(&r)
		return r
	}
	amounts := func(list ...admit.Amount) admit.Request {
		return with(func(r *admit.Request) { r.Amounts = list })
	}
	pairs := func(list ...string) admit.Request {
		return with(func(r *admit.Request) { r.Descriptors = admit.Descriptors(list...) })
	}
	cost := func(n int64) admit.Request { return with(func(r *admit.Request) { r.Cost = n }) }
	var many []string
	for i := 0; i < 17; i++ {
		many = append(many, string(rune('a'+i)), "v")
	}
	cases := []struct {
		name    string
		request admit.Request
		status  admit.Status
		says    string
	}{
		{"no cost", cost(0), admit.StatusInvalidCost, "Cost is 0, 1 to 1000000000000"},
		{"negative cost", cost(-1), admit.StatusInvalidCost, "Cost is -1, it must not be negative"},
		{"least cost", cost(math.MinInt64), admit.StatusInvalidCost, "must not be negative"},
		{"huge cost", cost(admit.MaxAmount + 1), admit.StatusInvalidCost, "Cost is 1000000000001"},
		{"negative amount", amounts(admit.Amount{Unit: admit.UnitTokens, Value: -5}), admit.StatusInvalidCost, "Amounts[0].Value is -5"},
		{"huge amount", amounts(admit.Amount{Unit: admit.UnitTokens, Value: math.MaxInt64}), admit.StatusInvalidCost, "Amounts[0].Value"},
		{"unit twice", amounts(admit.Amount{Unit: admit.UnitTokens}, admit.Amount{Unit: admit.UnitTokens}), admit.StatusInvalidCost, "Amounts[1].Unit is that of Amounts[0]"},
		{"cost as amount", amounts(admit.Amount{Unit: admit.UnitCost}), admit.StatusInvalidCost, "Amounts[0].Unit is UnitCost"},
		{"requests as amount", amounts(admit.Amount{Unit: admit.UnitRequests}), admit.StatusInvalidCost, "Amounts[0].Unit is UnitRequests"},
		{"unknown unit", amounts(admit.Amount{Unit: 4000000000}), admit.StatusInvalidCost, "unit that this gate does not know"},
		{"final in a request", amounts(admit.Amount{Unit: admit.UnitTokens, Final: true}), admit.StatusInvalidCost, "Amounts[0].Final"},
		{"17 amounts", amounts(make([]admit.Amount, 17)...), admit.StatusInvalidCost, "Amounts has 17 entries"},
		{"empty value", pairs("tenant", ""), admit.StatusInvalidDescriptors, `Descriptors[0].Value (of key "tenant") is empty`},
		{"missing value", pairs("tenant", "a", "model"), admit.StatusInvalidDescriptors, `Descriptors[1].Value (of key "model") is empty`},
		{"empty key", pairs("", "a"), admit.StatusInvalidDescriptors, "Descriptors[0].Key is empty"},
		{"long key", pairs(long[:65], "a"), admit.StatusInvalidDescriptors, "Descriptors[0].Key has 65 bytes"},
		{"long value", pairs("tenant", long), admit.StatusInvalidDescriptors, "has 257 bytes, at most 256"},
		{"key twice", pairs("tenant", "a", "b", "c", "tenant", "d"), admit.StatusInvalidDescriptors, "Descriptors[2].Key is \"tenant\", as Descriptors[0].Key"},
		{"17 descriptors", pairs(many...), admit.StatusInvalidDescriptors, "Descriptors has 17 entries"},
		{"long attempt", with(func(r *admit.Request) { r.Attempt = long[:65] }), admit.StatusInvalidAttempt, "Attempt has 65 bytes"},
		{"negative timeout", with(func(r *admit.Request) { r.Timeout = -1 }), admit.StatusInvalidArgument, "Timeout must not be negative"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := gate.Admit(context.Background(), c.request)
			var named *admit.Error
			if !errors.Is(err, c.status) || !errors.As(err, &named) || named.Op != "Admit" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("want %v and %q, got %v", c.status, c.says, err)
			}
			if d.Allowed || d.Lease != nil {
				t.Errorf("%+v", d)
			}
		})
	}
	if held, level := read(t, gate, "inflight"), read(t, gate, "burst"); held != 0 || level != 1000 {
		t.Errorf("held %d, level %d", held, level)
	}
}

func TestBytesAreBytes(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	for _, tenant := range []string{"a\x00b", "a\x00c", "\xff\xfe", strings.Repeat("v", 256), "\x00"} {
		d := mustAdmit(t, gate, admit.Request{Descriptors: admit.Descriptors("tenant", tenant), Cost: 1,
			Amounts: []admit.Amount{{Unit: admit.UnitTokens, Value: 1}}})
		if !d.Allowed {
			t.Errorf("%q: %+v", tenant, d)
		}
		level, err := gate.Read("burst", admit.Descriptors("tenant", tenant)...)
		if err != nil || level != 999 {
			t.Errorf("%q has a partition of its own: %d %v", tenant, level, err)
		}
		d.Lease.Release(admit.ResultOK)
	}
}

func TestAttempt(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	r := ask(10)
	r.Attempt = "once"
	first := mustAdmit(t, gate, r)
	again := mustAdmit(t, gate, r)
	if !again.Repeated || again.Lease.ID() != first.Lease.ID() || read(t, gate, "burst") != 990 {
		t.Errorf("%+v", again)
	}
	r.Cost = 2
	if _, err := gate.Admit(context.Background(), r); !errors.Is(err, admit.StatusInvalidAttempt) || !strings.Contains(err.Error(), "Attempt is known with other") {
		t.Error(err)
	}
	first.Lease.Release(admit.ResultOK)
}

func TestSettleMisuse(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	d := mustAdmit(t, gate, ask(10))
	defer d.Lease.Release(admit.ResultOK)
	for says, totals := range map[string][]admit.Amount{
		"totals[0].Value is -1": {{Unit: admit.UnitTokens, Value: -1}},
		"totals[1].Unit is":     {{Unit: admit.UnitTokens}, {Unit: admit.UnitTokens}},
		"totals has 17":         make([]admit.Amount, 17),
	} {
		if _, err := d.Lease.Settle(totals, false); !errors.Is(err, admit.StatusInvalidCost) || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	if _, err := d.Lease.Release(99); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	if read(t, gate, "inflight") != 1 || read(t, gate, "burst") != 990 {
		t.Error("misuse changed something")
	}
}

// The line that admit validate prints, whatever is missing.
func TestFindingText(t *testing.T) {
	for want, f := range map[string]admit.Finding{
		"error[C]: m":                             {Code: "C", Message: "m"},
		"p.yaml: warning[C]: m":                   {Severity: admit.SeverityWarning, Code: "C", File: "p.yaml", Message: "m"},
		"p:3:4: error[C]: /r: m; did you mean n?": {Code: "C", File: "p", Line: 3, Column: 4, Pointer: "/r", Message: "m", Nearest: "n"},
		"p:3:4: note[C]: m":                       {Severity: admit.SeverityNote, Code: "C", File: "p", Line: 3, Column: 4, Pointer: "/r", Message: "m"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	_, err := admit.ParsePolicy("{\n \"version\": \"1\", \"rulez\": []}", admit.FormatJSON)
	var refused *admit.PolicyError
	if !errors.As(err, &refused) || !errors.Is(err, admit.StatusPolicyInvalid) {
		t.Fatal(err)
	}
	first := refused.Findings[0]
	if first.Line != 2 || first.Column < 1 || first.Code == "" || first.Severity != admit.SeverityError || first.Nearest != "rules" ||
		first.String() != "2:18: error["+first.Code+"]: /rulez: "+first.Message+"; did you mean rules?" ||
		!strings.Contains(err.Error(), "\n"+first.String()) {
		t.Errorf("%+v\n%v", first, err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "policy.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := admit.Load(path); !errors.As(err, &refused) || refused.Findings[0].File != path || !strings.Contains(err.Error(), path+":1:") {
		t.Error(err)
	}
	if _, err := admit.Load(filepath.Join(folder, "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := admit.ParsePolicy("", admit.FormatJSON); !errors.Is(err, admit.StatusPolicyInvalid) {
		t.Error(err)
	}
	if _, err := admit.ParsePolicy("{}", 7); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	if _, err := admit.New(nil); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	if _, err := admit.New(mustParse(t, twoAtOnce), admit.WithSignalsMax(-1)); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	if _, err := admit.New(mustParse(t, twoAtOnce), admit.WithNamespace(strings.Repeat("n", 65))); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := admit.New(mustParse(t, twoAtOnce), admit.WithBackend(func() (admit.Backend, error) { return admit.Backend{}, broken })); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := admit.New(mustParse(t, twoAtOnce), admit.WithBackend(func() (admit.Backend, error) { return admit.Backend{}, nil })); err == nil {
		t.Error("no backend, no error")
	}
}

func TestYAMLBySuffix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := "version: two\nrules:\n  - {id: inflight, type: concurrency, partition_by: [tenant], limit: 2, lease_ttl: 30s}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := admit.Load(path)
	if errors.Is(err, admit.StatusCallerNewer) {
		t.Skip("this libadmit was built without YAML")
	}
	if err != nil || policy.Version() != "two" || policy.RuleCount() != 1 {
		t.Error(policy, err)
	}
}

// A file may be anything: what is too long for a policy is not read to its end.
func TestLoadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<32); err != nil {
		t.Skip("no file with holes here: ", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var refused *admit.PolicyError
	if _, err := admit.Load(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "1048576") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if read := after.TotalAlloc - before.TotalAlloc; read > 16<<20 {
		t.Errorf("%d bytes for a policy of at most 1 MiB", read)
	}
}

func TestPutTable(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	put := func(text string, format admit.Format, mode admit.TableMode) error {
		t.Helper()
		err := gate.PutTable(text, format, mode)
		if errors.Is(err, admit.StatusCallerNewer) {
			t.Skip("this libadmit was built without YAML")
		}
		return err
	}
	limit := func(tenant string) uint64 {
		t.Helper()
		r := ask(1)
		r.Descriptors = admit.Descriptors("tenant", tenant)
		e, err := gate.Explain(r)
		if err != nil {
			t.Fatal(err)
		}
		return e.Rules[1].Limit
	}
	const json = `{"version": "t1", "rule": "burst", "by": "tenant", "entries": {"acme": {"capacity": 20}}}`
	const yaml = "version: t2\nrule: burst\nby: tenant\nentries:\n  other: {capacity: 30}\n"
	if err := put(json, admit.FormatJSON, admit.TableReplace); err != nil || limit("acme") != 20 || limit("other") != 1000 {
		t.Error(err, limit("acme"), limit("other"))
	}
	var refused *admit.PolicyError
	if err := put(yaml, admit.FormatJSON, admit.TablePatch); !errors.As(err, &refused) {
		t.Error("YAML as JSON:", err)
	}
	for says, err := range map[string]error{
		"format is not one": gate.PutTable(json, 7, admit.TableReplace),
		"mode is not one":   gate.PutTable(json, admit.FormatJSON, 256), // the library's own flag for YAML
	} {
		if !errors.Is(err, admit.StatusInvalidArgument) || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	if limit("acme") != 20 || limit("other") != 1000 {
		t.Error("a refused table changed something")
	}
	if err := put(yaml, admit.FormatYAML, admit.TablePatch); err != nil || limit("acme") != 20 || limit("other") != 30 {
		t.Error(err, limit("acme"), limit("other"))
	}
	if err := put(yaml+"entries: {}\n", admit.FormatYAML, admit.TableReplace); !errors.As(err, &refused) || refused.Findings[0].Line != 6 {
		t.Error(err)
	}
}

func TestPublishAndRollback(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	d := mustAdmit(t, gate, ask(10))
	defer d.Lease.Release(admit.ResultOK)
	next := strings.Replace(strings.Replace(twoAtOnce, `"two"`, `"one"`, 1), `"limit": 2`, `"limit": 1`, 1)
	if err := gate.Publish(mustParse(t, next)); err != nil {
		t.Fatal(err)
	}
	if d := mustAdmit(t, gate, ask(10)); d.Allowed || d.PolicyVersion != "one" || d.Rules[0] != "inflight" {
		t.Errorf("%+v", d)
	}
	if err := gate.Publish(mustParse(t, strings.Replace(next, `"limit": 1`, `"limit": 3`, 1))); !errors.Is(err, admit.StatusVersionConflict) {
		t.Error(err)
	}
	if err := gate.Rollback("never"); !errors.Is(err, admit.StatusUnknownVersion) {
		t.Error(err)
	}
	if err := gate.Rollback("two"); err != nil {
		t.Error(err)
	}
	if version, err := gate.Version(); version != "two" || err != nil {
		t.Error(version, err)
	}
	if err := gate.Publish(nil); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	var refused *admit.PolicyError
	if err := gate.PutTable("{", admit.FormatJSON, admit.TableReplace); !errors.As(err, &refused) {
		t.Error(err)
	}
}

func TestExplainChargesNothing(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	e, err := gate.Explain(ask(2000))
	if err != nil {
		t.Fatal(err)
	}
	if e.Decision.Allowed || e.Decision.Reason != admit.ReasonUnsatisfiable || len(e.Rules) != 2 || e.Rules[1].Rule != "burst" ||
		!e.Rules[1].Denies || !e.Rules[1].HasAmount || e.Rules[1].Amount != 2000 || e.Rules[1].Limit != 1000 ||
		e.Rules[1].Level != 1000 || e.Rules[1].Type != "token_bucket" || e.Rules[1].Unit != "tokens" || e.Rules[0].Denies {
		t.Errorf("%+v", e)
	}
	if _, err := gate.Explain(admit.Request{}); !errors.Is(err, admit.StatusInvalidCost) {
		t.Error(err)
	}
	if read(t, gate, "burst") != 1000 || read(t, gate, "inflight") != 0 {
		t.Error("an explanation changed something")
	}
}

func TestReadMisuse(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	if _, err := gate.Read("none"); !errors.Is(err, admit.StatusUnknownRule) {
		t.Error(err)
	}
	if _, err := gate.Read("burst"); !errors.Is(err, admit.StatusInvalidDescriptors) || !strings.Contains(err.Error(), "lack a key") {
		t.Error(err)
	}
	if _, err := gate.Read("burst", admit.Descriptors("tenant", strings.Repeat("x", 300))...); !errors.Is(err, admit.StatusInvalidDescriptors) {
		t.Error(err)
	}
}

func TestKeysAndUnits(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	other, _ := open(t, twoAtOnce)
	tenant, err := gate.Key("tenant")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Key("something"); err != nil { // so that ids differ
		t.Fatal(err)
	}
	for _, g := range []*admit.Gate{gate, other} {
		r := ask(1)
		r.Descriptors = []admit.Descriptor{tenant.Is("acme")}
		if d := mustAdmit(t, g, r); !d.Allowed || read(t, g, "burst") != 999 {
			t.Errorf("%+v", d)
		} else {
			d.Lease.Release(admit.ResultOK)
		}
	}
	// A changed key counts, whatever was prepared.
	changed := tenant.Is("acme")
	changed.Key = "tenants"
	r := ask(1)
	r.Descriptors = []admit.Descriptor{changed}
	if d := mustAdmit(t, gate, r); d.Allowed {
		t.Errorf("%+v", d)
	}
	r.Descriptors = []admit.Descriptor{(admit.Key{}).Is("acme")}
	if _, err := gate.Admit(context.Background(), r); !errors.Is(err, admit.StatusInvalidDescriptors) {
		t.Error(err)
	}
	if _, err := gate.Key(""); !errors.Is(err, admit.StatusInvalidDescriptors) {
		t.Error(err)
	}
	if unit, err := gate.Unit("images"); unit != admit.UnitImages || err != nil {
		t.Error(unit, err)
	}
	if _, err := gate.Unit("Not A Unit"); !errors.Is(err, admit.StatusInvalidArgument) || !strings.Contains(err.Error(), "Not A Unit") {
		t.Error(err)
	}
}

func TestMetricsDescribeSweepSignal(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	mustAdmit(t, gate, ask(1)).Lease.Release(admit.ResultOK)
	text, err := gate.Metrics()
	if err != nil || !bytes.HasSuffix(text, []byte("# EOF\n")) || !bytes.Contains(text, []byte("burst")) {
		t.Errorf("%v %s", err, text)
	}
	info, err := gate.Describe()
	if err != nil || info.Defers || info.PartitionsMax != 65536 || info.Partitions == 0 {
		t.Errorf("%+v %v", info, err)
	}
	for i := 0; ; i++ {
		done, err := gate.Sweep(1000)
		if err != nil || i > 10000 {
			t.Fatal(done, err)
		}
		if done {
			break
		}
	}
	if _, err := gate.Sweep(-1); !errors.Is(err, admit.StatusInvalidArgument) {
		t.Error(err)
	}
	if err := gate.Signal("pool", "r1", "healthy", 1); err != nil {
		t.Error(err)
	}
	if err := gate.Signal("pool", "r1", "queue", math.NaN()); err != nil {
		t.Error(err)
	}
	if err := gate.Signal("", "r1", "queue", 1); !errors.Is(err, admit.StatusInvalidArgument) || !strings.Contains(err.Error(), "scope has 0 bytes") {
		t.Error(err)
	}
}

func TestEvents(t *testing.T) {
	var events []admit.Event
	gate, _ := open(t, twoAtOnce, admit.WithEvents(func(e *admit.Event) { events = append(events, *e) }))
	d := mustAdmit(t, gate, ask(7))
	d.Lease.Settle([]admit.Amount{{Unit: admit.UnitTokens, Value: 5}}, true)
	d.Lease.Release(admit.ResultTimeout)
	if len(events) != 3 {
		t.Fatalf("%+v", events)
	}
	decision, usage, release := events[0], events[1], events[2]
	if decision.Kind != admit.EventDecision || decision.DecisionID != d.ID || !decision.Decision.Allowed || decision.Cost != 1 ||
		len(decision.Descriptors) != 1 || decision.Descriptors[0].Value != "acme" || len(decision.Amounts) != 1 ||
		decision.Amounts[0].Value != 7 || decision.Decision.PolicyVersion != "two" {
		t.Errorf("%+v", decision)
	}
	if usage.Kind != admit.EventUsage || usage.Outcome != admit.OutcomeSettled || !usage.Final || usage.Amounts[0].Value != 5 {
		t.Errorf("%+v", usage)
	}
	if release.Kind != admit.EventRelease || release.Result != admit.ResultTimeout || release.Outcome != admit.OutcomeReleased {
		t.Errorf("%+v", release)
	}
}

// A callback that calls the gate is refused, and nothing hangs.
func TestEventsMustNotEnter(t *testing.T) {
	var gate *admit.Gate
	var inner error
	gate, _ = open(t, twoAtOnce, admit.WithEvents(func(*admit.Event) {
		if inner == nil {
			_, inner = gate.Admit(context.Background(), ask(1))
		}
	}))
	mustAdmit(t, gate, ask(1)).Lease.Release(admit.ResultOK)
	if !errors.Is(inner, admit.StatusReentrant) {
		t.Error(inner)
	}
}

// Close would wait for the call that it is part of; of another gate it would free nothing.
func TestEventsMustNotClose(t *testing.T) {
	other, _ := open(t, twoAtOnce)
	var gate *admit.Gate
	var inner, others error
	gate, _ = open(t, twoAtOnce, admit.WithEvents(func(*admit.Event) {
		if inner == nil {
			inner, others = gate.Close(), other.Close()
		}
	}))
	mustAdmit(t, gate, ask(1)).Lease.Release(admit.ResultOK)
	if !errors.Is(inner, admit.StatusReentrant) || !errors.Is(others, admit.StatusReentrant) {
		t.Error(inner, others)
	}
	mustAdmit(t, other, ask(1)).Lease.Release(admit.ResultOK)
}

// A callback that does not return has left the library's locks taken: the program ends and says so.
func TestEventsMustReturn(t *testing.T) {
	for how, leave := range map[string]func(){
		"panic":          func() { panic("a mistake of the callback") },
		"runtime.Goexit": runtime.Goexit,
	} {
		if os.Getenv("ADMIT_TEST_LEAVES_BY") == how {
			gate, _ := open(t, twoAtOnce, admit.WithEvents(func(*admit.Event) { leave() }))
			gate.Admit(context.Background(), ask(1))
			t.Fatal("went on after ", how)
		}
	}
	if os.Getenv("ADMIT_TEST_LEAVES_BY") != "" {
		t.Fatal("unknown way to leave")
	}
	for how, says := range map[string]string{"panic": "a mistake of the callback", "runtime.Goexit": "event callback ended its goroutine"} {
		again := exec.Command(os.Args[0], "-test.run=^TestEventsMustReturn$", "-test.timeout=60s")
		again.Env = append(os.Environ(), "ADMIT_TEST_LEAVES_BY="+how)
		output, err := again.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "panic: ") || !strings.Contains(string(output), says) ||
			strings.Contains(string(output), "went on after") {
			t.Errorf("%s: %v\n%s", how, err, output)
		}
	}
}

// What nobody made says so, and does not crash in C.
func TestZeroValues(t *testing.T) {
	var gate admit.Gate
	if _, err := gate.Admit(context.Background(), ask(1)); !errors.Is(err, admit.ErrClosed) {
		t.Error(err)
	}
	if _, err := gate.Metrics(); !errors.Is(err, admit.ErrClosed) {
		t.Error(err)
	}
	for i := 0; i < 2; i++ {
		if err := gate.Close(); err != nil {
			t.Error(err)
		}
	}
	var lease admit.Lease
	if outcome, err := lease.Release(admit.ResultOK); outcome != admit.OutcomeUnknown || err != nil {
		t.Error(outcome, err)
	}
	if outcome, err := lease.Settle(nil, true); outcome != admit.OutcomeUnknown || err != nil {
		t.Error(outcome, err)
	}
	if outcome, err := lease.Divert(); outcome != admit.OutcomeUnknown || err != nil {
		t.Error(outcome, err)
	}
	var policy admit.Policy
	if _, err := admit.New(&policy); !errors.Is(err, admit.StatusInvalidArgument) || policy.Version() != "" || policy.RuleCount() != 0 {
		t.Error(err)
	}
	var clock admit.ManualClock
	for _, use := range []func(){
		func() { clock.Set(0, 0) },
		func() { admit.New(mustParse(t, twoAtOnce), admit.WithClock(&clock)) },
	} {
		func() {
			defer func() {
				if problem, _ := recover().(string); !strings.Contains(problem, "NewManualClock") {
					t.Error(problem)
				}
			}()
			use()
		}()
	}
}

func TestContext(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	ctx, cancel := context.WithCancel(context.Background())
	d, err := gate.Admit(ctx, ask(1))
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	d.Lease.Release(admit.ResultOK)
	cancel()
	if d, err := gate.Admit(ctx, ask(1)); !errors.Is(err, context.Canceled) || d.Lease != nil {
		t.Error(d, err)
	}
	var none context.Context
	if d, err := gate.Admit(none, ask(1)); !errors.Is(err, admit.StatusInvalidArgument) || !strings.Contains(err.Error(), "ctx is nil") || d.Lease != nil {
		t.Error(d, err)
	}
	if read(t, gate, "burst") != 999 || read(t, gate, "inflight") != 0 {
		t.Error("a cancelled context was charged")
	}
}

func TestClose(t *testing.T) {
	gate, _ := open(t, twoAtOnce)
	d := mustAdmit(t, gate, ask(1))
	for i := 0; i < 2; i++ {
		if err := gate.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, admitErr := gate.Admit(context.Background(), ask(1))
	_, explainErr := gate.Explain(ask(1))
	_, releaseErr := d.Lease.Release(admit.ResultOK)
	_, renewErr := d.Lease.Renew()
	_, settleErr := d.Lease.Settle(nil, true)
	_, divertErr := d.Lease.Divert()
	_, versionErr := gate.Version()
	_, readErr := gate.Read("burst")
	_, metricsErr := gate.Metrics()
	_, describeErr := gate.Describe()
	_, sweepErr := gate.Sweep(1)
	_, keyErr := gate.Key("k")
	_, unitErr := gate.Unit("images")
	for i, err := range []error{admitErr, explainErr, releaseErr, renewErr, settleErr, divertErr, versionErr, readErr, metricsErr,
		describeErr, sweepErr, keyErr, unitErr, gate.Publish(mustParse(t, twoAtOnce)), gate.Rollback("two"),
		gate.PutTable("{}", admit.FormatJSON, admit.TableReplace), gate.Signal("a", "b", "c", 1)} {
		if !errors.Is(err, admit.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Close while everybody is calling: each call is decided or told that the gate is closed.
func TestCloseAmongCalls(t *testing.T) {
	for round := 0; round < 50; round++ {
		gate, _ := open(t, twoAtOnce)
		var group sync.WaitGroup
		var decided atomic.Int64
		for i := 0; i < 8; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					d, err := gate.Admit(context.Background(), ask(1))
					if err != nil {
						if !errors.Is(err, admit.ErrClosed) {
							t.Error(err)
						}
						return
					}
					decided.Add(1)
					d.Lease.Release(admit.ResultOK)
				}
			}()
		}
		for decided.Load() < 8 {
			runtime.Gosched()
		}
		closers := make(chan error, 2)
		for i := 0; i < 2; i++ {
			go func() { closers <- gate.Close() }()
		}
		if first, second := <-closers, <-closers; first != nil || second != nil {
			t.Error(first, second)
		}
		group.Wait()
	}
}

// Many goroutines, one gate: never more than the limit at once, and at the end nothing is held and
// every token is accounted for.
func TestConservation(t *testing.T) {
	const goroutines, each, limit = 8, 2000, 5
	gate, _ := open(t, `{"version": "1", "rules": [
		{"id": "inflight", "type": "concurrency", "partition_by": ["tenant"], "limit": 5, "lease_ttl": "30s"},
		{"id": "burst", "type": "token_bucket", "partition_by": ["tenant"], "unit": "tokens", "capacity": 1000000,
		 "refill": 0, "per": "1s", "settle": "exact"}]}`)
	var inside, most, allowed, denied, settled atomic.Int64
	var group sync.WaitGroup
	for n := 0; n < goroutines; n++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			for i := 0; i < each; i++ {
				d, err := gate.Admit(context.Background(), ask(20))
				if err != nil {
					t.Error(err)
					return
				}
				if !d.Allowed {
					denied.Add(1)
					continue
				}
				allowed.Add(1)
				now := inside.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				if i%7 == 0 {
					runtime.Gosched()
				}
				used := int64((n + i) % 30)
				settled.Add(used)
				if outcome, err := d.Lease.Settle([]admit.Amount{{Unit: admit.UnitTokens, Value: used}}, true); err != nil || outcome != admit.OutcomeSettled {
					t.Error(outcome, err)
				}
				inside.Add(-1)
				if outcome, err := d.Lease.Release(admit.ResultOK); err != nil || outcome != admit.OutcomeReleased {
					t.Error(outcome, err)
				}
			}
		}(n)
	}
	group.Wait()
	if allowed.Load()+denied.Load() != goroutines*each || most.Load() > limit {
		t.Errorf("%d allowed, %d denied, at most %d at once", allowed.Load(), denied.Load(), most.Load())
	}
	if held := read(t, gate, "inflight"); held != 0 {
		t.Errorf("%d still held", held)
	}
	if level := read(t, gate, "burst"); level != 1000000-settled.Load() {
		t.Errorf("level %d, %d were used", level, settled.Load())
	}
}

// ---- leases that nobody releases ----

// collect runs the garbage collector until done says so, or for a bounded number of times.
func collect(done func() bool) bool {
	for i := 0; i < 2000; i++ {
		if done() {
			return true
		}
		runtime.GC()
		runtime.Gosched()
	}
	return done()
}

func TestLeakIsFoundAndReleased(t *testing.T) {
	leaks := make(chan admit.Leak, 4)
	gate, _ := open(t, twoAtOnce, admit.WithLeakHandler(func(l admit.Leak) { leaks <- l }))
	id := func() admit.ID {
		// A stack frame of its own, so that nothing refers to the lease afterwards.
		d := mustAdmit(t, gate, ask(1))
		return d.ID
	}()
	if !collect(func() bool { return len(leaks) > 0 }) {
		t.Fatal("the leak was not found")
	}
	leak := <-leaks
	if leak.Decision != id || leak.Outcome != admit.OutcomeReleased || leak.PolicyVersion != "two" {
		t.Errorf("%+v", leak)
	}
	if held := read(t, gate, "inflight"); held != 0 {
		t.Errorf("%d still held", held)
	}
}

// What was released, diverted, or repeated is nobody's leak; nor is anything left of a closed gate.
func TestNoFalseLeaks(t *testing.T) {
	var leaks atomic.Int64
	handler := admit.WithLeakHandler(func(admit.Leak) { leaks.Add(1) })
	gate, _ := open(t, twoAtOnce, handler)
	closed, _ := open(t, twoAtOnce, handler)
	holder := func() admit.Decision {
		for i := 0; i < 100; i++ {
			mustAdmit(t, gate, ask(1)).Lease.Release(admit.ResultOK)
			mustAdmit(t, gate, ask(1)).Lease.Divert()
		}
		r := ask(1)
		r.Attempt = "a"
		first := mustAdmit(t, gate, r)
		if again := mustAdmit(t, gate, r); !again.Repeated {
			t.Errorf("%+v", again)
		}
		mustAdmit(t, closed, ask(1))
		closed.Close()
		return first
	}()
	for i := 0; i < 20; i++ {
		runtime.GC()
		runtime.Gosched()
	}
	if n := leaks.Load(); n != 0 {
		t.Errorf("%d leaks", n)
	}
	if held := read(t, gate, "inflight"); held != 1 {
		t.Errorf("%d held by the one who repeats", held)
	}
	holder.Lease.Release(admit.ResultOK)
}
