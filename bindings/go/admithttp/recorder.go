// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admithttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// recorder counts what the handler sends. Handlers may write from several goroutines one after
// another, so the counts are atomic.
type recorder struct {
	http.ResponseWriter
	status atomic.Int64
	bytes  atomic.Int64
}

func (r *recorder) response(panicked bool) Response {
	return Response{Status: int(r.status.Load()), Bytes: r.bytes.Load(), Panicked: panicked}
}

// Unwrap is for http.ResponseController (Go 1.20): deadlines, full duplex, and all that is to come.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	// 1xx answers come before the one that counts; 101 is the last.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.status.CompareAndSwap(0, int64(status))
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.status.CompareAndSwap(0, http.StatusOK)
	n, err := r.ResponseWriter.Write(data)
	r.bytes.Add(int64(n))
	return n, err
}

// ReadFrom lets io.Copy hand a file to the writer below, which may have the kernel send it.
func (r *recorder) ReadFrom(from io.Reader) (int64, error) {
	below, can := r.ResponseWriter.(io.ReaderFrom)
	if !can {
		return io.Copy(struct{ io.Writer }{r}, from)
	}
	n, err := below.ReadFrom(from)
	if n > 0 {
		r.status.CompareAndSwap(0, http.StatusOK)
	}
	r.bytes.Add(n)
	return n, err
}

func (r *recorder) flush() error {
	r.status.CompareAndSwap(0, http.StatusOK)
	if below, says := r.ResponseWriter.(interface{ FlushError() error }); says {
		return below.FlushError()
	}
	r.ResponseWriter.(http.Flusher).Flush()
	return nil
}

func (r *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return r.ResponseWriter.(http.Hijacker).Hijack()
}

// Handlers ask with type assertions what a writer can do: the recorder can what the writer below
// can, no more and no less.
type (
	flusher  struct{ *recorder }
	hijacker struct{ *recorder }
	both     struct{ *recorder }
)

func (f flusher) Flush()                                        { f.flush() }
func (f flusher) FlushError() error                             { return f.flush() }
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.hijack() }
func (b both) Flush()                                           { b.flush() }
func (b both) FlushError() error                                { return b.flush() }
func (b both) Hijack() (net.Conn, *bufio.ReadWriter, error)     { return b.hijack() }

func record(w http.ResponseWriter) (http.ResponseWriter, *recorder) {
	r := &recorder{ResponseWriter: w}
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	switch {
	case flushes && hijacks:
		return both{r}, r
	case flushes:
		return flusher{r}, r
	case hijacks:
		return hijacker{r}, r
	}
	return r, r
}
