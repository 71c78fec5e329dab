// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admithttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"admit.example/admit"
)

type envelope struct {
	Error problem `json:"error"`
}

type problem struct {
	Message      string   `json:"message"`
	Type         string   `json:"type"`
	Code         string   `json:"code"`
	Rules        []string `json:"rules,omitempty"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
	DecisionID   string   `json:"decision_id,omitempty"`
}

var messages = map[admit.Reason]string{
	admit.ReasonRateExceeded:        "rate limit exceeded",
	admit.ReasonConcurrencyExceeded: "too many requests at once",
	admit.ReasonPressure:            "the service is under high load",
	admit.ReasonQuotaExceeded:       "quota exceeded",
	admit.ReasonUnsatisfiable:       "the request is larger than the limit allows",
	admit.ReasonCostAboveCap:        "the request is too large",
	admit.ReasonStateUnavailable:    "the service cannot decide at the moment",
}

// WriteDenial answers a denied request: a JSON object "error", Retry-After in whole seconds and
// retry-after-ms when the wait is known, and x-should-retry: false where waiting does not help or
// takes longer than two minutes, which no client waits.
func WriteDenial(w http.ResponseWriter, d *admit.Decision) {
	header := w.Header()
	if seconds := d.RetryAfterSeconds(); seconds > 0 {
		header.Set("Retry-After", strconv.FormatInt(seconds, 10))
		header.Set("Retry-After-Ms", strconv.FormatInt(d.RetryAfter.Milliseconds(), 10))
	}
	status := d.HTTPStatus
	if status < 400 {
		status = http.StatusServiceUnavailable
	}
	p := problem{
		Message:      messages[d.Reason],
		Code:         d.Reason.String(),
		Rules:        d.Rules,
		RetryAfterMS: d.RetryAfter.Milliseconds(),
		DecisionID:   d.ID.String(),
	}
	if p.Message == "" {
		p.Message = "the request is not admitted"
	}
	should := "true"
	switch {
	case status == http.StatusTooManyRequests:
		p.Type = "rate_limit_error"
	case status >= 500:
		p.Type = "overloaded_error"
	default:
		p.Type = "invalid_request_error"
	}
	if !mayPass(d) || d.RetryAfter > longestWait {
		should = "false"
	}
	write(w, status, should, p)
}

const longestWait = 2 * time.Minute

// mayPass: can the same request pass later, without anybody changing something?
func mayPass(d *admit.Decision) bool {
	switch d.Reason {
	case admit.ReasonRateExceeded, admit.ReasonQuotaExceeded:
		return d.RetryAfter > 0
	case admit.ReasonConcurrencyExceeded, admit.ReasonPressure, admit.ReasonKeySpaceFull, admit.ReasonStateUnavailable:
		return true
	}
	return false
}

func writeError(w http.ResponseWriter, status int, kind, code, message, should string) {
	write(w, status, should, problem{Message: message, Type: kind, Code: code})
}

func write(w http.ResponseWriter, status int, should string, p problem) {
	body, err := json.Marshal(envelope{p})
	if err != nil {
		panic(err) // strings and numbers can always be written
	}
	header := w.Header()
	if should != "" {
		header.Set("X-Should-Retry", should)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
