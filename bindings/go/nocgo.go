// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package admit

// This file is built only without cgo, and does not compile: the name in it is the message.
var _ = package_admit_needs_cgo__set_CGO_ENABLED_1_and_install_a_C_compiler_and_libadmit
