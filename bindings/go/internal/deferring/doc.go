// SPDX-License-Identifier: Apache-2.0

// Package deferring opens a plain backend that answers late, for tests. It needs the static library
// admit-testing and is empty without the build tag admit_testing.
package deferring
