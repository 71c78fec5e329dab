// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// RuleReport is what Explain says of one rule.
type RuleReport struct {
	Rule, Type, Unit string
	Origin           string // whose numbers: "rule", "override 2", "table entry"
	Matched          bool
	Off              bool // matched, and an override or table entry switches it off
	Shadow           bool
	Denies           bool
	Reason           Reason // when it denies
	Mismatch         string // not matched: the key of the first entry that does not hold
	Entry            string // table entry: its key
	Stateful         bool   // Level is meaningful
	HasAmount        bool   // Amount is meaningful
	Level            int64  // bucket: whole tokens; else units held or used
	Limit            uint64 // in force for this request
	Amount           uint64 // asked for
	Replicas         uint64
	RetryAfter       time.Duration
}

// Explanation is what Admit would answer, and why.
type Explanation struct {
	Decision Decision // without a lease
	Rules    []RuleReport
}

// Explain charges nothing and holds nothing.
func (g *Gate) Explain(request Request) (Explanation, error) {
	if !g.enter() {
		return Explanation{}, ErrClosed
	}
	defer g.leave()
	c := calls.Get().(*call)
	defer calls.Put(c)
	if !c.fill(g, &request) {
		return Explanation{}, diagnose("Explain", &request, C.ADM_E_INVALID_ARGUMENT)
	}
	var reports C.struct_admit_go_reports
	defer C.admit_go_reports_free(&reports)
	if status := C.admit_go_explain(c.c, &reports); status != C.ADM_OK {
		return Explanation{}, diagnose("Explain", &request, status)
	}
	e := Explanation{Rules: make([]RuleReport, 0, int(reports.count))}
	g.decode(&c.c.decision, &e.Decision)
	list := unsafe.Slice(reports.list, int(reports.count))
	text := unsafe.Slice((*byte)(unsafe.Pointer(reports.text)), int(reports.length))
	for i := range list {
		from := &list[i]
		to := RuleReport{
			Matched: from.matched != 0, Off: from.off != 0, Shadow: from.shadow != 0,
			Denies: from.denies != 0, Reason: Reason(from.reason),
			Stateful: from.stateful != 0, HasAmount: from.has_amount != 0,
			Level: int64(from.level), Limit: uint64(from.limit), Amount: uint64(from.amount),
			Replicas: uint64(from.replicas), RetryAfter: duration(from.retry_after_ms),
		}
		for n, out := range []*string{&to.Rule, &to.Type, &to.Unit, &to.Origin, &to.Mismatch, &to.Entry} {
			*out = string(text[:from.lengths[n]])
			text = text[from.lengths[n]:]
		}
		e.Rules = append(e.Rules, to)
	}
	return e, nil
}
