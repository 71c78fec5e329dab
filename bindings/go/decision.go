// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"bytes"
	"fmt"
	"time"
	"unsafe"
)

// Reason says why a request was allowed or denied. Treat one that you do not know as a denial with
// HTTP status 503.
type Reason uint32

const (
	ReasonAllowed             Reason = C.ADM_REASON_ALLOWED
	ReasonEmergencyAllowed    Reason = C.ADM_REASON_EMERGENCY_ALLOWED
	ReasonRateExceeded        Reason = C.ADM_REASON_RATE_EXCEEDED
	ReasonConcurrencyExceeded Reason = C.ADM_REASON_CONCURRENCY_EXCEEDED
	ReasonPressure            Reason = C.ADM_REASON_PRESSURE
	ReasonQuotaExceeded       Reason = C.ADM_REASON_QUOTA_EXCEEDED
	ReasonUnsatisfiable       Reason = C.ADM_REASON_UNSATISFIABLE
	ReasonCostAboveCap        Reason = C.ADM_REASON_COST_ABOVE_CAP
	ReasonNoPolicy            Reason = C.ADM_REASON_NO_POLICY
	ReasonMissingDescriptor   Reason = C.ADM_REASON_MISSING_DESCRIPTOR
	ReasonMissingAmount       Reason = C.ADM_REASON_MISSING_AMOUNT
	ReasonPolicyTooWide       Reason = C.ADM_REASON_POLICY_TOO_WIDE
	ReasonKeySpaceFull        Reason = C.ADM_REASON_KEY_SPACE_FULL
	ReasonStateUnavailable    Reason = C.ADM_REASON_STATE_UNAVAILABLE
)

// String is the stable word: "rate_exceeded".
func (r Reason) String() string { return C.GoString(C.adm_reason_name(C.uint32_t(r))) }

// Outcome is what an operation on a lease found. A late or second release is normal life.
type Outcome uint32

const (
	OutcomeUnknown  Outcome = C.ADM_OUTCOME_UNKNOWN  // no such lease, or its record is gone
	OutcomeReleased Outcome = C.ADM_OUTCOME_RELEASED // held units returned now
	OutcomeAlready  Outcome = C.ADM_OUTCOME_ALREADY  // it had been released before
	OutcomeLate     Outcome = C.ADM_OUTCOME_LATE     // it had expired; usage was still charged
	OutcomeQueued   Outcome = C.ADM_OUTCOME_QUEUED   // the backend is away; will be sent
	OutcomeRenewed  Outcome = C.ADM_OUTCOME_RENEWED
	OutcomeLost     Outcome = C.ADM_OUTCOME_LOST // Renew: not live any more
	OutcomeSettled  Outcome = C.ADM_OUTCOME_SETTLED
	OutcomeDiverted Outcome = C.ADM_OUTCOME_DIVERTED
)

// String is the stable word: "released".
func (o Outcome) String() string { return C.GoString(C.adm_outcome_name(C.uint32_t(o))) }

// Result says how the work ended. It is telemetry: the lease returns everything whatever it says.
type Result uint32

const (
	ResultOK        Result = C.ADM_RESULT_OK
	ResultError     Result = C.ADM_RESULT_ERROR
	ResultTimeout   Result = C.ADM_RESULT_TIMEOUT
	ResultCancelled Result = C.ADM_RESULT_CANCELLED
	ResultDiverted  Result = C.ADM_RESULT_DIVERTED
)

// String is the stable word: "ok".
func (r Result) String() string { return C.GoString(C.adm_result_name(C.uint32_t(r))) }

// ID of a decision or a lease: unguessable, never reused. The zero value is none.
type ID struct{ High, Low uint64 }

// String is 32 lower-case hex digits.
func (id ID) String() string { return fmt.Sprintf("%016x%016x", id.High, id.Low) }

// Decision is the answer to a request.
type Decision struct {
	Allowed   bool
	Repeated  bool // the answer to an Attempt that had been allowed before
	Truncated bool // more rules denied than are named
	Reason    Reason
	// 200 when allowed; else 400, 429 or 503.
	HTTPStatus int
	// Least wait after which the same request alone would pass; 0: not known, or never.
	RetryAfter time.Duration
	// Rules that deny, and shadow rules that would have denied, in the order of the policy.
	Rules, Shadow []string
	// Shadow rules without a verdict: their state is full.
	ShadowUnknown int
	PolicyVersion string
	TableVersion  string // empty: no limit table is in force
	ID            ID     // of this decision, for logs and answers
	// To be released when the work ends. nil when nothing is held or to be settled; the methods of
	// a nil lease do nothing.
	Lease *Lease
}

// RetryAfterSeconds is the value of the HTTP header Retry-After; 0: send none.
func (d *Decision) RetryAfterSeconds() int64 {
	if d.RetryAfter <= 0 {
		return 0
	}
	return int64((d.RetryAfter + time.Second - 1) / time.Second)
}

func idOf(id C.struct_adm_id) ID { return ID{uint64(id.high), uint64(id.low)} }

const maxWait = C.uint64_t(1<<63-1) / 1000000

func duration(ms C.uint64_t) time.Duration {
	if ms > maxWait {
		ms = maxWait
	}
	return time.Duration(ms) * time.Millisecond
}

// versionOf keeps the last version as a string, so that not every decision makes a new one.
func (g *Gate) versionOf(text *[72]byte) string {
	if last := g.lastVersion.Load(); last != nil {
		if n := len(*last); n < len(text) && text[n] == 0 && *last == string(text[:n]) {
			return *last
		}
	}
	end := bytes.IndexByte(text[:], 0)
	if end < 0 {
		end = len(text)
	}
	version := string(text[:end])
	g.lastVersion.Store(&version)
	return version
}

// names reads count strings that end in NUL, or fewer if the text ends before; and what is left.
func names(text []byte, count uint32) ([]string, []byte) {
	if count == 0 {
		return nil, text
	}
	var list []string
	for ; count > 0; count-- {
		end := bytes.IndexByte(text, 0)
		if end < 0 {
			break
		}
		list = append(list, string(text[:end]))
		text = text[end+1:]
	}
	return list, text
}

// decode everything but the lease.
func (g *Gate) decode(from *C.struct_adm_decision, d *Decision) {
	d.Allowed = from.verdict == C.ADM_VERDICT_ALLOW
	d.Repeated = from.flags&C.ADM_DECISION_REPEATED != 0
	d.Truncated = from.flags&C.ADM_DECISION_TRUNCATED != 0
	d.Reason = Reason(from.reason)
	d.HTTPStatus = int(from.http_status)
	d.RetryAfter = duration(from.retry_after_ms)
	d.ShadowUnknown = int(from.unknown_count)
	d.PolicyVersion = g.versionOf((*[72]byte)(unsafe.Pointer(&from.policy_version)))
	if from.table_version[0] != 0 {
		d.TableVersion = C.GoString(&from.table_version[0])
	}
	d.ID = idOf(from.id)
	if from.rule_count > 0 || from.shadow_count > 0 {
		text := (*[len(from.names)]byte)(unsafe.Pointer(&from.names))[:from.names_used]
		d.Rules, text = names(text, uint32(from.rule_count))
		d.Shadow, _ = names(text, uint32(from.shadow_count))
	}
}
