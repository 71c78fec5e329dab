// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admithttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"admit.example/admit"
	"admit.example/admit/admithttp"
)

func Example() {
	policy, err := admit.ParsePolicy(`{"version": "1", "rules": [
		{"id": "rate", "type": "token_bucket", "partition_by": ["tenant"], "capacity": 1, "refill": 1, "per": "1h"}]}`, admit.FormatJSON)
	if err != nil {
		panic(err)
	}
	gate, err := admit.New(policy)
	if err != nil {
		panic(err)
	}
	defer gate.Close()

	classify := func(r *http.Request) (admit.Request, error) {
		// In a real server: who the authentication found, never a header that clients write.
		return admit.Request{Descriptors: admit.Descriptors("tenant", "acme"), Cost: 1}, nil
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	server := httptest.NewServer(admithttp.Middleware(gate, classify)(handler))
	defer server.Close()

	for i := 0; i < 2; i++ {
		response, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(response.StatusCode, response.Header.Get("Retry-After") != "")
	}
	// Output:
	// 200 false
	// 429 true
}
