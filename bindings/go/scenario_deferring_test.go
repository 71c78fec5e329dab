// SPDX-License-Identifier: Apache-2.0

//go:build cgo && admit_testing

package admit_test

import (
	"admit.example/admit"
	"admit.example/admit/internal/deferring"
)

func init() {
	backends["deferring"] = func(sizes admit.PlainSizes) admit.Option {
		return admit.WithBackend(deferring.Open(deferring.Options{Sizes: sizes, PollsMax: 3, Seed: 2}))
	}
}
