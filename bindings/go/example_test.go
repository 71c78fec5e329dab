// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit_test

import (
	"context"
	"errors"
	"fmt"

	"admit.example/admit"
)

func Example() {
	policy, err := admit.ParsePolicy(`{"version": "1", "rules": [
		{"id": "inflight", "type": "concurrency", "partition_by": ["tenant"], "limit": 1, "lease_ttl": "30s"}]}`, admit.FormatJSON)
	if err != nil {
		panic(err)
	}
	gate, err := admit.New(policy)
	if err != nil {
		panic(err)
	}
	defer gate.Close()

	request := admit.Request{Descriptors: admit.Descriptors("tenant", "acme"), Cost: 1}
	first, err := gate.Admit(context.Background(), request)
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Allowed, first.Reason)

	second, err := gate.Admit(context.Background(), request)
	if err != nil {
		panic(err)
	}
	fmt.Println(second.Allowed, second.Reason, second.Rules, second.HTTPStatus)

	outcome, err := first.Lease.Release(admit.ResultOK)
	fmt.Println(outcome, err)
	// Output:
	// true allowed
	// false concurrency_exceeded [inflight] 429
	// released <nil>
}

func ExamplePolicyError() {
	_, err := admit.ParsePolicy(`{"version": "1", "rulez": []}`, admit.FormatJSON)
	var refused *admit.PolicyError
	if errors.As(err, &refused) {
		first := refused.Findings[0]
		fmt.Println(first.Line, first.Column, first.Name, first.Nearest)
	}
	// Output:
	// 1 18 unknown_key rules
}
