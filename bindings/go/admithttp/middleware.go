// SPDX-License-Identifier: Apache-2.0

//go:build cgo

/*
Package admithttp asks a gate before each HTTP request is handled.

	classify := func(r *http.Request) (admit.Request, error) {
		return admit.Request{
			Descriptors: admit.Descriptors("tenant", tenantOf(r)),
			Cost:        1,
		}, nil
	}
	http.ListenAndServe(addr, admithttp.Middleware(gate, classify)(handler))

The lease is held until the handler returns or panics. A handler whose client went away sees its
context end, as always; the lease is given back when it returns, because until then it works.
*/
package admithttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"admit.example/admit"
)

// Classify says what a request is: descriptors from what authentication and routing know, never
// from what a client may write at will. With WithBody it may read the body. An error of type
// *Refusal is answered as it says; any other is answered with status 500, and its text goes to
// WithErrorLog, not to the client.
type Classify func(*http.Request) (admit.Request, error)

// Refusal is an answer of Classify's own: who may not ask at all.
type Refusal struct {
	Status  int    // 401, 403, 400: from 400 to 599
	Code    string // a stable word for programs
	Message string // for people
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Response is what the handler did.
type Response struct {
	Status   int   // 0: the connection was taken over, or nothing was sent
	Bytes    int64 // of the body
	Panicked bool
}

// Option of Middleware.
type Option func(*settings)

type settings struct {
	bodyMax    int64
	renewEvery time.Duration
	usage      func(*http.Request, Response) []admit.Amount
	deny       func(http.ResponseWriter, *http.Request, *admit.Decision)
	logError   func(*http.Request, error)
	early      bool
}

// WithBody lets Classify read the body, of at most max bytes; the handler gets it again from its
// beginning. A longer one is answered with status 413. The body is in memory for the time of the
// request.
func WithBody(max int64) Option { return func(s *settings) { s.bodyMax = max } }

// WithRenewal renews the lease again and again while the handler works. every: less than half of
// the shortest lease_ttl of the policy.
func WithRenewal(every time.Duration) Option { return func(s *settings) { s.renewEvery = every } }

// WithUsage is asked once, at the end, for what was used; the lease is settled with it for good.
// nil: settle nothing. A handler may report totals earlier with LeaseOf(r).Settle.
func WithUsage(usage func(*http.Request, Response) []admit.Amount) Option {
	return func(s *settings) { s.usage = usage }
}

// WithDenial replaces the answer to a denied request; see WriteDenial.
func WithDenial(deny func(http.ResponseWriter, *http.Request, *admit.Decision)) Option {
	return func(s *settings) { s.deny = deny }
}

// WithErrorLog is told of mistakes: an error of Classify, a request that is misuse, a lease that was
// lost or could not be given back. Any goroutine may call it, also while the handler works.
func WithErrorLog(log func(*http.Request, error)) Option {
	return func(s *settings) { s.logError = log }
}

// WithReleaseOnDisconnect gives the lease back as soon as the request's context ends, though the
// handler may still run: for handlers whose work ends elsewhere at that moment.
func WithReleaseOnDisconnect() Option { return func(s *settings) { s.early = true } }

type contextKey struct{}

// DecisionOf the request that a handler works on; nil outside of the middleware. Its lease may be
// settled, renewed or diverted; it is released by the middleware.
func DecisionOf(r *http.Request) *admit.Decision {
	d, _ := r.Context().Value(contextKey{}).(*admit.Decision)
	return d
}

// LeaseOf the request; nil, which is harmless, when nothing is held.
func LeaseOf(r *http.Request) *admit.Lease {
	if d := DecisionOf(r); d != nil {
		return d.Lease
	}
	return nil
}

// ErrLeaseLost is told to WithErrorLog when a lease could not be renewed any more: the work goes on
// without it.
var ErrLeaseLost = errors.New("admithttp: the lease was lost while the handler worked")

// Middleware asks gate before each request. gate and classify must not be nil.
func Middleware(gate *admit.Gate, classify Classify, options ...Option) func(http.Handler) http.Handler {
	if gate == nil || classify == nil {
		panic("admithttp: Middleware needs a gate and a classify function")
	}
	var s settings
	for _, option := range options {
		option(&s)
	}
	if s.deny == nil {
		s.deny = func(w http.ResponseWriter, _ *http.Request, d *admit.Decision) { WriteDenial(w, d) }
	}
	if s.logError == nil {
		s.logError = func(*http.Request, error) {}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(gate, classify, next, w, r) })
	}
}

func (s *settings) serve(gate *admit.Gate, classify Classify, next http.Handler, w http.ResponseWriter, r *http.Request) {
	var body []byte
	if s.bodyMax > 0 && r.Body != nil && r.Body != http.NoBody {
		var ok bool
		if body, ok = s.readBody(w, r); !ok {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	question, err := classify(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	decision, err := gate.Admit(r.Context(), question)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if !decision.Allowed {
		s.deny(w, r, &decision)
		return
	}
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.work(next, w, r.WithContext(context.WithValue(r.Context(), contextKey{}, &decision)), &decision)
}

func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.ContentLength <= s.bodyMax {
		// MaxBytesReader also closes the connection, so that the rest need not be read.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.bodyMax))
		if err == nil {
			return body, true
		}
		var tooLong *http.MaxBytesError
		if !errors.As(err, &tooLong) {
			// The client went away, or sent what is no body.
			writeError(w, http.StatusBadRequest, "invalid_request_error", "body_unreadable", "the body could not be read", "false")
			return nil, false
		}
	}
	if r.ProtoMajor == 1 {
		// Not in HTTP/2, where it would end the connection of other requests.
		w.Header().Set("Connection", "close")
	}
	writeError(w, http.StatusRequestEntityTooLarge, "invalid_request_error", "body_too_large", "the body is too large", "false")
	return nil, false
}

func (s *settings) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Status >= 400 && refusal.Status <= 599 {
		writeError(w, refusal.Status, "invalid_request_error", refusal.Code, refusal.Message, "false")
		return
	}
	if r.Context().Err() != nil {
		// Nobody may be there to read it; but the end may also be a time limit of this server, and then
		// silence would be an empty answer of status 200.
		writeError(w, http.StatusServiceUnavailable, "server_error", "cancelled", "the request ended before it was admitted", "")
		return
	}
	s.logError(r, err)
	if errors.Is(err, admit.ErrClosed) {
		writeError(w, http.StatusServiceUnavailable, "server_error", "closing", "the service is going away", "")
		return
	}
	writeError(w, http.StatusInternalServerError, "server_error", "internal", "the request could not be judged", "")
}

// work runs the handler and gives the lease back however that ends.
func (s *settings) work(next http.Handler, w http.ResponseWriter, r *http.Request, d *admit.Decision) {
	var watch *recorder
	if s.usage != nil {
		w, watch = record(w)
	}
	stop := s.accompany(r, d.Lease)
	panicked := true
	defer func() {
		stop()
		s.end(r, d.Lease, watch, panicked)
	}()
	next.ServeHTTP(w, r)
	panicked = false
}

func (s *settings) end(r *http.Request, lease *admit.Lease, watch *recorder, panicked bool) {
	result := admit.ResultOK
	switch {
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		result = admit.ResultTimeout
	case r.Context().Err() != nil:
		result = admit.ResultCancelled
	case panicked:
		result = admit.ResultError
	}
	// Whatever the hook does, the lease goes back.
	defer func() {
		if _, err := lease.Release(result); err != nil {
			s.logError(r, err)
		}
	}()
	if s.usage == nil {
		return
	}
	if totals := s.usage(r, watch.response(panicked)); totals != nil {
		if _, err := lease.Settle(totals, true); err != nil {
			s.logError(r, err)
		}
	}
}

// accompany the handler with what has to happen in the meantime; stop waits for its end.
func (s *settings) accompany(r *http.Request, lease *admit.Lease) (stop func()) {
	if lease == nil || (s.renewEvery <= 0 && !s.early) {
		return func() {}
	}
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Add(1)
	go func() {
		defer group.Done()
		var tick <-chan time.Time
		if s.renewEvery > 0 {
			ticker := time.NewTicker(s.renewEvery)
			defer ticker.Stop()
			tick = ticker.C
		}
		var gone <-chan struct{}
		if s.early {
			gone = r.Context().Done()
		}
		for {
			select {
			case <-done:
				return
			case <-gone:
				if _, err := lease.Release(admit.ResultCancelled); err != nil {
					s.logError(r, err)
				}
				return
			case <-tick:
				outcome, err := lease.Renew()
				if err == nil && outcome != admit.OutcomeRenewed {
					if lease.Returned() {
						return // by the handler, which may
					}
					err = ErrLeaseLost
				}
				if err != nil {
					s.logError(r, err)
				}
				if outcome == admit.OutcomeLost || errors.Is(err, admit.ErrClosed) {
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		group.Wait()
	}
}
