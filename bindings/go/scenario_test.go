// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"admit.example/admit"
)

// Every scenario file of the library runs through this package, on each backend that the test has:
// scenario_deferring_test.go adds one.

type opener func(sizes admit.PlainSizes) admit.Option

var backends = map[string]opener{"plain": func(s admit.PlainSizes) admit.Option { return admit.WithPlainSizes(s) }}

const room = 16384 // of a scenario's backend: hundreds of gates are opened in one run

func scenarioFiles(t *testing.T) []string {
	folder := os.Getenv("ADMIT_SCENARIOS")
	if folder == "" {
		folder = filepath.Join("..", "..", "tests", "scenarios")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no scenario files in %s (outside the source tree, set ADMIT_SCENARIOS)", folder)
	}
	return files
}

type object map[string]json.RawMessage

func (o object) text(key string) string {
	var text string
	if json.Unmarshal(o[key], &text) != nil {
		return ""
	}
	return text
}

func TestScenarios(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Scenarios []object }
		if err := json.Unmarshal(text, &document); err != nil || len(document.Scenarios) == 0 {
			t.Fatalf("%s: no scenarios: %v", file, err)
		}
		for i, scenario := range document.Scenarios {
			scenario := scenario
			name := fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(file), ".json"), i+1)
			switch kind := scenario.text("kind"); kind {
			case "admission":
				for backend, open := range backends {
					open := open
					t.Run(name+"/"+backend, func(t *testing.T) { runAdmission(t, scenario, open) })
				}
			case "loader":
				t.Run(name, func(t *testing.T) { runLoader(t, scenario) })
			default:
				t.Run(name, func(t *testing.T) { t.Skipf("no runner for kind %q", kind) })
			}
		}
	}
}

// ---- kind loader ----

func runLoader(t *testing.T, scenario object) {
	var documents []object
	if err := json.Unmarshal(scenario["documents"], &documents); err != nil || len(documents) == 0 {
		t.Fatal("a loader scenario needs documents")
	}
	for _, document := range documents {
		document := document
		t.Run(document.text("name"), func(t *testing.T) {
			format := admit.FormatJSON
			if document.text("format") != "json" {
				format = admit.FormatYAML
			}
			text := document.text("text")
			if document["hex"] != nil {
				raw, err := hex.DecodeString(document.text("hex"))
				if err != nil {
					t.Fatal(err)
				}
				text = string(raw)
			}
			_, err := admit.ParsePolicy(text, format)
			if errors.Is(err, admit.StatusCallerNewer) && format == admit.FormatYAML {
				t.Skip("this libadmit was built without YAML")
			}
			var refused *admit.PolicyError
			switch expect := document.text("expect"); {
			case expect == "accept" && err != nil:
				t.Errorf("expected accept, got %v", err)
			case expect == "reject" && err == nil:
				t.Error("expected reject, got accept")
			case expect == "reject" && (!errors.As(err, &refused) || len(refused.Findings) == 0):
				t.Errorf("rejected without a finding: %v", err)
			case expect != "accept" && expect != "reject":
				t.Errorf("cannot expect %q", expect)
			}
		})
	}
}

// ---- kind admission ----

type runner struct {
	gate   *admit.Gate
	clock  *admit.ManualClock
	leases map[string]*admit.Lease
	all    []*admit.Lease // those without a name must live on, too
}

type answer map[string]interface{}

func runAdmission(t *testing.T, scenario object, open opener) {
	var sizes struct{ Partitions, Leases, Attempts, Classes int64 }
	sizes.Partitions, sizes.Leases, sizes.Attempts = room, room, room
	if scenario["backend"] != nil {
		if err := json.Unmarshal(scenario["backend"], &sizes); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := admit.ParsePolicy(string(scenario["policy"]), admit.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{clock: admit.NewManualClock(0, 0), leases: map[string]*admit.Lease{}}
	r.gate, err = admit.New(policy, open(admit.PlainSizes(sizes)), admit.WithClock(r.clock),
		admit.WithLeakHandler(func(leak admit.Leak) { t.Errorf("leak %+v", leak) }))
	if err != nil {
		t.Fatal(err)
	}
	defer r.gate.Close()
	var tables []json.RawMessage
	if scenario["tables"] != nil {
		if err := json.Unmarshal(scenario["tables"], &tables); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range tables {
		if err := r.gate.PutTable(string(table), admit.FormatJSON, admit.TableReplace); err != nil {
			t.Fatal(err)
		}
	}
	var steps []object
	if err := json.Unmarshal(scenario["steps"], &steps); err != nil || len(steps) == 0 {
		t.Fatalf("a scenario needs steps: %v", err)
	}
	for i, step := range steps {
		r.step(t, i, step)
	}
	// What the steps hold is theirs until here; then it is nobody's leak.
	for _, lease := range r.all {
		lease.Release(admit.ResultCancelled)
	}
}

func number(t *testing.T, step object, key string, otherwise uint64) uint64 {
	if step[key] == nil {
		return otherwise
	}
	value, err := strconv.ParseUint(string(step[key]), 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	return value
}

func (r *runner) at(ms uint64) {
	ns := time.Duration(ms * uint64(time.Millisecond))
	r.clock.Set(ns, ns)
}

func (r *runner) step(t *testing.T, index int, step object) {
	start, repeat := number(t, step, "t", 0), number(t, step, "repeat", 1)
	every := uint64(0)
	if step["every_ms"] != nil {
		every = number(t, step, "every_ms", 0)
	}
	var expect object
	if step["expect"] != nil {
		if err := json.Unmarshal(step["expect"], &expect); err != nil {
			t.Fatal(err)
		}
	}
	for i := uint64(0); i < repeat; i++ {
		now := start + i*every
		r.at(now)
		got := r.run(t, step, now)
		for key, want := range expect {
			if !agrees(t, key, want, got[key]) {
				t.Errorf("step %d %s t=%d: %s: expected %s, got %v (all of it: %v)",
					index, step.text("op"), now, key, want, got[key], got)
			}
		}
	}
}

var members = map[string]bool{"allow": true, "reason": true, "retry_after_ms": true, "rules": true, "shadow": true,
	"table_version": true, "unknown": true, "http": true, "lease": true, "error": true, "outcome": true,
	"version": true, "floor": true, "units": true, "allowed": true}

func generic(t *testing.T, text []byte) interface{} {
	var value interface{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func agrees(t *testing.T, key string, want json.RawMessage, got interface{}) bool {
	if !members[key] {
		t.Fatalf("%s: no answer has such a member", key)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	wanted, have := generic(t, want), generic(t, text)
	if list, any := wanted.([]interface{}); any && key == "outcome" {
		for _, one := range list {
			if one == have {
				return true
			}
		}
		return false
	}
	if key == "reason" && wanted == "limited" {
		return have == "rate_exceeded" || have == "concurrency_exceeded" || have == "quota_exceeded"
	}
	return reflect.DeepEqual(wanted, have)
}

// word of an error as scenarios have it.
func word(err error) interface{} {
	var refused *admit.PolicyError
	var status admit.Status
	if err == nil {
		return nil
	}
	if errors.As(err, &refused) {
		for _, finding := range refused.Findings {
			if finding.Severity == admit.SeverityError {
				return finding.Name
			}
		}
	}
	if errors.As(err, &status) {
		return strings.ToLower(strings.TrimPrefix(status.Name(), "ADM_E_"))
	}
	return "?" + err.Error()
}

type pair struct {
	key   string
	value json.RawMessage
}

// pairs of an object in the order of the text, and those that come twice.
func pairs(t *testing.T, text json.RawMessage) []pair {
	if text == nil || string(text) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("not an object: %s", text)
	}
	var list []pair
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		p := pair{key: key.(string)}
		if err := decoder.Decode(&p.value); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func descriptors(t *testing.T, step object) []admit.Descriptor {
	var list []admit.Descriptor
	for _, p := range pairs(t, step["d"]) {
		list = append(list, admit.Descriptor{Key: p.key, Value: object{"v": p.value}.text("v")})
	}
	return list
}

// whole reads a number that a Go program could have; what it could not have is what a library would
// refuse.
func whole(text json.RawMessage) (int64, error) {
	value, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, admit.StatusInvalidCost
	}
	return value, nil
}

func (r *runner) amounts(t *testing.T, text json.RawMessage) ([]admit.Amount, error) {
	var list []admit.Amount
	for _, p := range pairs(t, text) {
		unit, err := r.gate.Unit(p.key)
		if err != nil {
			return nil, err
		}
		value, err := whole(p.value)
		if err != nil {
			return nil, err
		}
		list = append(list, admit.Amount{Unit: unit, Value: value})
	}
	return list, nil
}

func (r *runner) request(t *testing.T, step object) (admit.Request, error) {
	var request admit.Request
	var err error
	if request.Cost, err = whole(step["cost"]); err != nil {
		return request, err
	}
	request.Descriptors = descriptors(t, step)
	request.Amounts, err = r.amounts(t, step["amounts"])
	request.Attempt = step.text("attempt")
	// Request.Attempt cannot say "given, and empty": for Go programs empty means none.
	if err == nil && string(step["attempt"]) == `""` {
		t.Log("an attempt id that is given and empty cannot be said in Go; taken as refused")
		err = admit.StatusInvalidAttempt
	}
	return request, err
}

func decided(d admit.Decision) answer {
	list := func(names []string) []string { return append([]string{}, names...) }
	got := answer{"allow": d.Allowed, "reason": d.Reason.String(), "rules": list(d.Rules), "shadow": list(d.Shadow),
		"unknown": d.ShadowUnknown, "http": d.HTTPStatus, "lease": d.Lease != nil, "version": d.PolicyVersion}
	if d.RetryAfter > 0 {
		got["retry_after_ms"] = d.RetryAfter.Milliseconds()
	}
	if d.TableVersion != "" {
		got["table_version"] = d.TableVersion
	}
	return got
}

func (r *runner) keep(d admit.Decision) {
	if d.Lease != nil {
		r.all = append(r.all, d.Lease)
	}
}

func (r *runner) run(t *testing.T, step object, now uint64) answer {
	switch op := step.text("op"); op {
	case "admit":
		request, err := r.request(t, step)
		var d admit.Decision
		if err == nil {
			d, err = r.gate.Admit(context.Background(), request)
		}
		if step["as"] != nil {
			r.leases[step.text("as")] = d.Lease
		}
		r.keep(d)
		if err != nil {
			return answer{"error": word(err)}
		}
		return decided(d)
	case "drain":
		return r.drain(t, step, now)
	case "release", "renew", "settle", "divert":
		outcome, err := r.onLease(t, op, step)
		if err != nil {
			return answer{"error": word(err)}
		}
		return answer{"outcome": outcome.String()}
	case "reload", "rollback":
		var err error
		if op == "rollback" {
			err = r.gate.Rollback(step.text("version"))
		} else {
			var policy *admit.Policy
			if policy, err = admit.ParsePolicy(string(step["policy"]), admit.FormatJSON); err == nil {
				err = r.gate.Publish(policy)
			}
		}
		version, problem := r.gate.Version()
		if problem != nil {
			t.Fatal(problem)
		}
		return answer{"error": word(err), "version": version}
	case "table":
		mode := admit.TableReplace
		if step.text("mode") == "patch" {
			mode = admit.TablePatch
		}
		return answer{"error": word(r.gate.PutTable(string(step["table"]), admit.FormatJSON, mode))}
	case "signal":
		return answer{"error": word(r.gate.Signal(step.text("scope"), step.text("replica"), step.text("name"),
			measurement(step["value"])))}
	case "level", "used":
		level, err := r.gate.Read(step.text("rule"), descriptors(t, step)...)
		if err != nil {
			return answer{"error": word(err)}
		}
		return answer{map[string]string{"level": "floor", "used": "units"}[op]: level}
	default:
		t.Fatalf("unknown op %q", op)
		return nil
	}
}

// measurement: numbers, also in strings; everything else is a missing one.
func measurement(text json.RawMessage) float64 {
	value, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

func (r *runner) drain(t *testing.T, step object, now uint64) answer {
	request, err := r.request(t, step)
	until, every, tries := number(t, step, "until", 0), number(t, step, "every_ms", 0), number(t, step, "tries", 0)
	if every == 0 || tries == 0 {
		t.Fatal("a drain needs every_ms and tries above 0")
	}
	allowed := 0
	for at := now; err == nil && at <= until; at += every {
		r.at(at)
		for i := uint64(0); i < tries && err == nil; i++ {
			var d admit.Decision
			d, err = r.gate.Admit(context.Background(), request)
			r.keep(d)
			if d.Allowed {
				allowed++
			}
		}
	}
	return answer{"allowed": allowed, "error": word(err)}
}

func (r *runner) onLease(t *testing.T, op string, step object) (admit.Outcome, error) {
	lease := r.leases[step.text("of")]
	switch op {
	case "release":
		results := map[string]admit.Result{"": admit.ResultOK}
		for result := admit.ResultOK; result <= admit.ResultDiverted; result++ {
			results[result.String()] = result
		}
		result, known := results[step.text("result")]
		if !known {
			t.Fatalf("no result %s", step["result"])
		}
		return lease.Release(result)
	case "renew":
		return lease.Renew()
	case "divert":
		return lease.Divert()
	}
	totals, err := r.amounts(t, step["totals"])
	if err != nil {
		return 0, err
	}
	last := string(step["final"]) == "true"
	var final []string
	if !last && step["final"] != nil && string(step["final"]) != "false" && string(step["final"]) != "null" {
		if err := json.Unmarshal(step["final"], &final); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range pairs(t, step["totals"]) {
		for _, unit := range final {
			totals[i].Final = totals[i].Final || unit == p.key
		}
	}
	return lease.Settle(totals, last)
}
