// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admithttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"admit.example/admit"
	"admit.example/admit/admithttp"
)

const oneAtOnce = `{"version": "1", "rules": [
	{"id": "inflight", "type": "concurrency", "partition_by": ["tenant"], "limit": 1, "lease_ttl": "30s"},
	{"id": "burst", "type": "token_bucket", "partition_by": ["tenant"], "unit": "tokens", "capacity": 1000,
	 "refill": 10, "per": "1s", "settle": "exact"}]}`

func open(t *testing.T) *admit.Gate {
	t.Helper()
	policy, err := admit.ParsePolicy(oneAtOnce, admit.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := admit.New(policy, admit.WithClock(admit.NewManualClock(time.Hour, time.Hour)),
		admit.WithLeakHandler(func(leak admit.Leak) { t.Errorf("leak: %+v", leak) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	return gate
}

func classify(r *http.Request) (admit.Request, error) {
	return admit.Request{Descriptors: admit.Descriptors("tenant", "acme"), Cost: 1,
		Amounts: []admit.Amount{{Unit: admit.UnitTokens, Value: 100}}}, nil
}

func read(t *testing.T, gate *admit.Gate, rule string) int64 {
	t.Helper()
	level, err := gate.Read(rule, admit.Descriptors("tenant", "acme")...)
	if err != nil {
		t.Fatal(err)
	}
	return level
}

// released waits until nothing is held: the lease goes back after the client has its answer.
func released(t *testing.T, gate *admit.Gate) {
	t.Helper()
	for i := 0; read(t, gate, "inflight") != 0; i++ {
		if i > 1000000 {
			t.Fatal("the lease is still held")
		}
		runtime.Gosched()
	}
}

// serve over a real socket.
func serve(t *testing.T, gate *admit.Gate, handler http.HandlerFunc, options ...admithttp.Option) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(admithttp.Middleware(gate, classify, options...)(handler))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, server *httptest.Server) (*http.Response, string) {
	t.Helper()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func hold(t *testing.T, gate *admit.Gate) *admit.Lease {
	t.Helper()
	request, _ := classify(nil)
	d, err := gate.Admit(context.Background(), request)
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	return d.Lease
}

func TestAdmitted(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		if read(t, gate, "inflight") != 1 || admithttp.LeaseOf(r) == nil || !admithttp.DecisionOf(r).Allowed {
			t.Error("the lease is not held while the handler works")
		}
		io.WriteString(w, "hello")
	})
	for i := 0; i < 3; i++ {
		response, body := get(t, server)
		if response.StatusCode != 200 || body != "hello" {
			t.Errorf("%d %q", response.StatusCode, body)
		}
		released(t, gate)
	}
}

func TestDenied(t *testing.T) {
	gate := open(t)
	lease := hold(t, gate)
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	response, body := get(t, server)
	var answer struct {
		Error struct {
			Message, Type, Code string
			Rules               []string
			DecisionID          string `json:"decision_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err, body)
	}
	if response.StatusCode != 429 || response.Header.Get("Content-Type") != "application/json" ||
		answer.Error.Type != "rate_limit_error" || answer.Error.Code != "concurrency_exceeded" || answer.Error.Message == "" ||
		len(answer.Error.Rules) != 1 || len(answer.Error.DecisionID) != 32 ||
		response.Header.Get("x-should-retry") != "true" || response.Header.Get("Retry-After") != "" {
		t.Errorf("%v %v", response, body)
	}
	lease.Release(admit.ResultOK)
	if read(t, gate, "burst") != 900 {
		t.Error("a denied request was charged")
	}
}

func TestDenialHeaders(t *testing.T) {
	for _, c := range []struct {
		d                       admit.Decision
		status                  int
		retry, ms, should, kind string
	}{
		{admit.Decision{HTTPStatus: 429, Reason: admit.ReasonRateExceeded, RetryAfter: 1200 * time.Millisecond}, 429, "2", "1200", "true", "rate_limit_error"},
		{admit.Decision{HTTPStatus: 429, Reason: admit.ReasonRateExceeded}, 429, "", "", "false", "rate_limit_error"},
		{admit.Decision{HTTPStatus: 429, Reason: admit.ReasonQuotaExceeded, RetryAfter: time.Hour}, 429, "3600", "3600000", "false", "rate_limit_error"},
		{admit.Decision{HTTPStatus: 429, Reason: admit.ReasonQuotaExceeded, RetryAfter: 2 * time.Minute}, 429, "120", "120000", "true", "rate_limit_error"},
		{admit.Decision{HTTPStatus: 429, Reason: admit.ReasonUnsatisfiable}, 429, "", "", "false", "rate_limit_error"},
		{admit.Decision{HTTPStatus: 400, Reason: admit.ReasonCostAboveCap}, 400, "", "", "false", "invalid_request_error"},
		{admit.Decision{HTTPStatus: 503, Reason: admit.ReasonStateUnavailable}, 503, "", "", "true", "overloaded_error"},
		{admit.Decision{HTTPStatus: 200, Reason: 4711}, 503, "", "", "false", "overloaded_error"},
	} {
		w := httptest.NewRecorder()
		admithttp.WriteDenial(w, &c.d)
		h := w.Header()
		if w.Code != c.status || h.Get("Retry-After") != c.retry || h.Get("retry-after-ms") != c.ms ||
			h.Get("x-should-retry") != c.should || !strings.Contains(w.Body.String(), c.kind) {
			t.Errorf("%+v: %d %v %s", c.d, w.Code, h, w.Body)
		}
	}
}

func TestOwnDenial(t *testing.T) {
	gate := open(t)
	defer hold(t, gate).Release(admit.ResultOK)
	server := serve(t, gate, nil, admithttp.WithDenial(func(w http.ResponseWriter, _ *http.Request, d *admit.Decision) {
		http.Error(w, d.Reason.String(), 529)
	}))
	if response, body := get(t, server); response.StatusCode != 529 || body != "concurrency_exceeded\n" {
		t.Error(response, body)
	}
}

func TestPanicReleases(t *testing.T) {
	gate := open(t)
	seen := make(chan admithttp.Response, 1)
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) { panic("a mistake of the handler") },
		admithttp.WithUsage(func(_ *http.Request, r admithttp.Response) []admit.Amount { seen <- r; return nil }))
	if _, err := server.Client().Get(server.URL); err == nil {
		t.Error("the panic did not reach the server")
	}
	if r := <-seen; !r.Panicked || r.Status != 0 {
		t.Errorf("%+v", r)
	}
	released(t, gate)
}

// The hook's own panic does not keep the lease.
func TestPanicOfUsageReleases(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) {},
		admithttp.WithUsage(func(*http.Request, admithttp.Response) []admit.Amount { panic("hook") }))
	if response, err := server.Client().Get(server.URL); err == nil {
		response.Body.Close()
	}
	released(t, gate)
}

func TestFlushAndDisconnect(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []admithttp.Option
	}{
		{"bare", nil},
		{"with usage", []admithttp.Option{admithttp.WithUsage(func(*http.Request, admithttp.Response) []admit.Amount { return nil })}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := open(t)
			server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "data: first\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done() // the stream goes on until the client leaves
			}, c.options...)
			response, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			// It arrives although the handler has not returned.
			if line, err := bufio.NewReader(response.Body).ReadString('\n'); line != "data: first\n" {
				t.Fatal(line, err)
			}
			if read(t, gate, "inflight") != 1 {
				t.Error("not held in mid-stream")
			}
			response.Body.Close()
			released(t, gate)
		})
	}
}

// A handler that does not look at its context holds the lease, unless told otherwise.
func TestReleaseOnDisconnect(t *testing.T) {
	gate := open(t)
	finish := make(chan struct{})
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-finish
	}, admithttp.WithReleaseOnDisconnect())
	defer close(finish)
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, gate, "inflight") != 1 {
		t.Error("not held")
	}
	response.Body.Close()
	released(t, gate)
}

func TestHijack(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		conn, both, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		both.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nmine")
		both.Flush()
	}, admithttp.WithUsage(func(_ *http.Request, r admithttp.Response) []admit.Amount {
		if r.Status != 0 {
			t.Errorf("%+v", r)
		}
		return nil
	}))
	if _, body := get(t, server); body != "mine" {
		t.Error(body)
	}
	released(t, gate)
}

// What the writer below cannot do, the wrapped one does not claim.
func TestNoMoreThanTheWriterBelow(t *testing.T) {
	gate := open(t)
	type bare struct{ http.ResponseWriter }
	usage := admithttp.WithUsage(func(*http.Request, admithttp.Response) []admit.Amount { return nil })
	handler := admithttp.Middleware(gate, classify, usage)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, flushes := w.(http.Flusher); flushes {
			t.Error("claims to flush")
		}
		if _, hijacks := w.(http.Hijacker); hijacks {
			t.Error("claims to hijack")
		}
		if _, unwraps := w.(interface{ Unwrap() http.ResponseWriter }); !unwraps {
			t.Error("cannot be unwrapped")
		}
	}))
	handler.ServeHTTP(bare{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
}

func TestUsageSettles(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "1234567")
	}, admithttp.WithUsage(func(_ *http.Request, r admithttp.Response) []admit.Amount {
		if r.Status != http.StatusCreated {
			t.Errorf("%+v", r)
		}
		return []admit.Amount{{Unit: admit.UnitTokens, Value: r.Bytes}}
	}))
	get(t, server)
	released(t, gate)
	if level := read(t, gate, "burst"); level != 993 {
		t.Errorf("level %d after 7 of 1000", level)
	}
}

func TestBodyIsReplayed(t *testing.T) {
	const most = 1 << 20
	for _, size := range []int{0, 1, 4096, most} {
		gate := open(t)
		sent := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		readsBody := func(r *http.Request) (admit.Request, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil || !bytes.Equal(body, sent) {
				t.Errorf("classify saw %d bytes of %d: %v", len(body), size, err)
			}
			return classify(r)
		}
		server := httptest.NewServer(admithttp.Middleware(gate, readsBody, admithttp.WithBody(most))(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })))
		defer server.Close()
		for _, chunked := range []bool{false, true} {
			var body io.Reader = bytes.NewReader(sent)
			if chunked {
				body = struct{ io.Reader }{body} // hides the length
			}
			response, err := server.Client().Post(server.URL, "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, chunked %v: %d came back: %v", size, chunked, len(got), err)
			}
			released(t, gate)
		}
	}
}

func TestBodyTooLarge(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }, admithttp.WithBody(10))
	for _, chunked := range []bool{false, true} {
		var body io.Reader = strings.NewReader("12345678901")
		if chunked {
			body = struct{ io.Reader }{body}
		}
		response, err := server.Client().Post(server.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 413 || !strings.Contains(string(text), "body_too_large") {
			t.Error(response.Status, string(text))
		}
	}
	if read(t, gate, "burst") != 1000 {
		t.Error("it was charged")
	}
}

// A client that leaves in the middle of its body is not admitted.
func TestDisconnectWhileReadingBody(t *testing.T) {
	gate := open(t)
	ended := make(chan struct{})
	inner := admithttp.Middleware(gate, classify, admithttp.WithBody(1000))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
	conn.Close()
	<-ended
	if read(t, gate, "burst") != 1000 || read(t, gate, "inflight") != 0 {
		t.Error("it was charged")
	}
}

func TestClassifyErrors(t *testing.T) {
	gate := open(t)
	var mutex sync.Mutex
	var logged []error
	logger := admithttp.WithErrorLog(func(_ *http.Request, err error) {
		mutex.Lock()
		defer mutex.Unlock()
		logged = append(logged, err)
	})
	secret := errors.New("the database password is wrong")
	for _, c := range []struct {
		result admit.Request
		err    error
		status int
		says   string
	}{
		{admit.Request{}, &admithttp.Refusal{Status: 401, Code: "unknown_key", Message: "who are you?"}, 401, "who are you?"},
		{admit.Request{}, secret, 500, "could not be judged"},
		{admit.Request{Cost: -1}, nil, 500, "could not be judged"},
	} {
		server := httptest.NewServer(admithttp.Middleware(gate, func(*http.Request) (admit.Request, error) { return c.result, c.err }, logger)(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })))
		response, body := get(t, server)
		server.Close()
		if response.StatusCode != c.status || !strings.Contains(body, c.says) || strings.Contains(body, "password") {
			t.Error(response.Status, body)
		}
	}
	if len(logged) != 2 || !errors.Is(logged[0], secret) || !errors.Is(logged[1], admit.StatusInvalidCost) {
		t.Error(logged)
	}
}

func TestClosedGate(t *testing.T) {
	gate := open(t)
	gate.Close()
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	if response, _ := get(t, server); response.StatusCode != 503 {
		t.Error(response.Status)
	}
}

// The handler works for longer than the lease lives: renewal keeps it. The clock is moved by hand; the
// ticker only has to tick at all.
func TestRenewal(t *testing.T) {
	policy, err := admit.ParsePolicy(oneAtOnce, admit.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	clock := admit.NewManualClock(0, 0)
	renewed := make(chan struct{}, 1)
	gate, err := admit.New(policy, admit.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		// In steps of 20 of its 30 seconds; each must outlive the one before.
		for now := 20 * time.Second; now <= 100*time.Second; now += 20 * time.Second {
			clock.Set(now, now)
			// After two more renewals at least one began after the clock was moved.
			before := renewals(t, gate)
			for i := 0; renewals(t, gate) < before+2; i++ {
				if i > 10000000 {
					t.Error("no renewal")
					return
				}
				runtime.Gosched()
			}
		}
		if read(t, gate, "inflight") != 1 {
			t.Error("the lease was lost")
		}
		close(renewed)
	}, admithttp.WithRenewal(time.Millisecond))
	get(t, server)
	<-renewed
	released(t, gate)
}

// A lease that has expired is reported, once.
func TestLostLease(t *testing.T) {
	policy, err := admit.ParsePolicy(oneAtOnce, admit.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	clock := admit.NewManualClock(0, 0)
	gate, err := admit.New(policy, admit.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	lost := make(chan error, 10)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		clock.Set(time.Hour, time.Hour)
		if err := <-lost; !errors.Is(err, admithttp.ErrLeaseLost) {
			t.Error(err)
		}
	}, admithttp.WithRenewal(time.Millisecond), admithttp.WithErrorLog(func(_ *http.Request, err error) { lost <- err }))
	get(t, server)
	if len(lost) != 0 {
		t.Error("reported more than once")
	}
}

// A lease that the handler gave back itself is not lost.
func TestReturnedLeaseIsNotLost(t *testing.T) {
	gate := open(t)
	told := make(chan error, 10)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		lease := admithttp.LeaseOf(r)
		if lease.Returned() {
			t.Error("returned by nobody")
		}
		if outcome, err := lease.Release(admit.ResultOK); err != nil || outcome != admit.OutcomeReleased {
			t.Error(outcome, err)
		}
		for i := 0; outcomes(t, gate, "lost") == 0; i++ {
			if i > 10000000 {
				t.Error("no renewal was tried")
				return
			}
			runtime.Gosched()
		}
		if !lease.Returned() {
			t.Error("not returned")
		}
	}, admithttp.WithRenewal(time.Millisecond), admithttp.WithErrorLog(func(_ *http.Request, err error) { told <- err }))
	get(t, server)
	if len(told) != 0 {
		t.Error(<-told)
	}
}

// renewals that succeeded so far, as the gate counts them.
func renewals(t *testing.T, gate *admit.Gate) int { return outcomes(t, gate, "renewed") }

// outcomes of one kind so far.
func outcomes(t *testing.T, gate *admit.Gate, outcome string) int {
	t.Helper()
	text, err := gate.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, `"`+outcome+`"`) {
			n, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			if err != nil {
				t.Fatal(line)
			}
			return n
		}
	}
	return 0
}

// A time limit of the server's own ends the context while the client still waits: it gets an answer,
// and not the empty 200 that a handler without words is given.
func TestContextEndsBeforeAdmission(t *testing.T) {
	gate := open(t)
	inner := admithttp.Middleware(gate, classify, admithttp.WithErrorLog(func(_ *http.Request, err error) { t.Error(err) }))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithDeadline(r.Context(), time.Unix(1, 0))
		defer cancel()
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer server.Close()
	if response, body := get(t, server); response.StatusCode != 503 || !strings.Contains(body, "cancelled") {
		t.Error(response.Status, body)
	}
	if read(t, gate, "burst") != 1000 || read(t, gate, "inflight") != 0 {
		t.Error("it was charged")
	}
}

func TestBrokenBody(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }, admithttp.WithBody(4))
	for body, status := range map[string]string{
		"4\r\nfour\r\nno length\r\n": "400 ", // broken exactly where the limit is
		"2\r\ntwo\r\n":               "400 ",
		"5\r\nfives\r\n0\r\n\r\n":    "413 ",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 "+status) {
			t.Errorf("%q: %q %v", body, line, err)
		}
		conn.Close()
	}
}

// In HTTP/2 one request too large does not cost the others their connection.
func TestBodyTooLargeInHTTP2(t *testing.T) {
	gate := open(t)
	server := httptest.NewUnstartedServer(admithttp.Middleware(gate, classify, admithttp.WithBody(4))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	connections := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			connections++
		}
	}})
	for i, text := range []string{"long body", "body", "long body", "body"} {
		request, err := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(i, err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.ProtoMajor != 2 || err != nil || (i%2 == 0) != (response.StatusCode == 413) || i%2 == 1 && string(body) != text {
			t.Errorf("%d: %v %s %v", i, response, body, err)
		}
		released(t, gate)
	}
	if connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

// A status that HTTP cannot carry would be a panic of net/http.
func TestRefusalOutOfRange(t *testing.T) {
	gate := open(t)
	for _, status := range []int{-1, 0, 200, 600, 1000} {
		refuses := func(*http.Request) (admit.Request, error) {
			return admit.Request{}, &admithttp.Refusal{Status: status, Code: "mine"}
		}
		w := httptest.NewRecorder()
		admithttp.Middleware(gate, refuses)(nil).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 500 || strings.Contains(w.Body.String(), "mine") {
			t.Error(status, w.Code, w.Body)
		}
	}
}

// nil is no hook.
func TestHooksThatAreNil(t *testing.T) {
	gate := open(t)
	server := serve(t, gate, nil, admithttp.WithDenial(nil), admithttp.WithErrorLog(nil), admithttp.WithUsage(nil))
	lease := hold(t, gate)
	if response, _ := get(t, server); response.StatusCode != 429 {
		t.Error(response.Status)
	}
	lease.Release(admit.ResultOK)
	gate.Close()
	if response, _ := get(t, server); response.StatusCode != 503 {
		t.Error(response.Status)
	}
}

type writerBelow struct {
	*httptest.ResponseRecorder
	readFrom int64
}

var errGone = errors.New("the client is gone")

func (w *writerBelow) FlushError() error { return errGone }
func (w *writerBelow) ReadFrom(from io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseRecorder, from)
	w.readFrom += n
	return n, err
}

// What the writer below can do better than with Write reaches it, and is counted.
func TestFastPathsOfTheWriterBelow(t *testing.T) {
	gate := open(t)
	var seen admithttp.Response
	usage := admithttp.WithUsage(func(_ *http.Request, r admithttp.Response) []admit.Amount { seen = r; return nil })
	handler := admithttp.Middleware(gate, classify, usage)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(w, io.LimitReader(zeros{}, 1000)); n != 1000 || err != nil {
			t.Error(n, err)
		}
		if flusher, ok := w.(interface{ FlushError() error }); ok {
			if err := flusher.FlushError(); err != errGone {
				t.Error(err)
			}
		}
	}))
	below := &writerBelow{ResponseRecorder: httptest.NewRecorder()}
	handler.ServeHTTP(below, httptest.NewRequest("GET", "/", nil))
	if below.readFrom != 1000 || seen.Bytes != 1000 || seen.Status != 200 || below.Body.Len() != 1000 {
		t.Errorf("%d of 1000, %+v", below.readFrom, seen)
	}
	// Without ReadFrom below it is written.
	plain := httptest.NewRecorder()
	seen = admithttp.Response{}
	admithttp.Middleware(gate, classify, usage)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		io.Copy(w, io.LimitReader(zeros{}, 1000))
	})).ServeHTTP(struct{ http.ResponseWriter }{plain}, httptest.NewRequest("GET", "/", nil))
	if seen.Bytes != 1000 || seen.Status != http.StatusAccepted || plain.Body.Len() != 1000 {
		t.Errorf("%+v", seen)
	}
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = 0
	}
	return len(into), nil
}

// Answers of 1xx come before the one that counts; HEAD has no body, trailers come after it.
func TestInformationalHeadAndTrailers(t *testing.T) {
	gate := open(t)
	statuses := make(chan admithttp.Response, 1)
	server := serve(t, gate, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-End")
		w.Header().Set("Link", "</a>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "body")
		w.Header().Set("X-End", "reached")
	}, admithttp.WithUsage(func(_ *http.Request, r admithttp.Response) []admit.Amount { statuses <- r; return nil }))
	response, body := get(t, server)
	if response.StatusCode != http.StatusAccepted || body != "body" || response.Trailer.Get("X-End") != "reached" {
		t.Error(response, body)
	}
	if r := <-statuses; r.Status != http.StatusAccepted || r.Bytes != 4 {
		t.Errorf("%+v", r)
	}
	released(t, gate)
	response, err := server.Client().Head(server.URL)
	if err != nil || response.StatusCode != http.StatusAccepted {
		t.Fatal(response, err)
	}
	response.Body.Close()
	if r := <-statuses; r.Status != http.StatusAccepted {
		t.Errorf("%+v", r)
	}
	released(t, gate)
	defer hold(t, gate).Release(admit.ResultOK)
	if response, err = server.Client().Head(server.URL); err != nil || response.StatusCode != 429 || response.ContentLength <= 0 {
		t.Error(response, err)
	}
	response.Body.Close()
}
