// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
import "C"

import (
	"errors"
	"strings"
)

// ErrClosed is returned by every method of a gate, and of its leases, after Close.
var ErrClosed = errors.New("admit: the gate is closed")

// Status is the library's code for what a call could not do. It is an error, for errors.Is:
//
//	if errors.Is(err, admit.StatusVersionConflict) { ... }
//
// Later versions of the library may add codes.
type Status int32

// The codes of libadmit 1.0; admit/status.h says what each of them means.
const (
	StatusInvalidArgument    Status = C.ADM_E_INVALID_ARGUMENT
	StatusInvalidCost        Status = C.ADM_E_INVALID_COST
	StatusInvalidDescriptors Status = C.ADM_E_INVALID_DESCRIPTORS
	StatusInvalidAttempt     Status = C.ADM_E_INVALID_ATTEMPT
	StatusCallerNewer        Status = C.ADM_E_CALLER_NEWER
	StatusReentrant          Status = C.ADM_E_REENTRANT
	StatusUnknownRule        Status = C.ADM_E_UNKNOWN_RULE
	StatusBusy               Status = C.ADM_E_BUSY
	StatusLimit              Status = C.ADM_E_LIMIT
	StatusNoMemory           Status = C.ADM_E_NOMEM
	StatusSystem             Status = C.ADM_E_OS
	StatusPolicyInvalid      Status = C.ADM_E_POLICY_INVALID
	StatusVersionConflict    Status = C.ADM_E_VERSION_CONFLICT
	StatusUnknownVersion     Status = C.ADM_E_UNKNOWN_VERSION
	StatusPolicyNoRoom       Status = C.ADM_E_POLICY_NO_ROOM
	StatusBackendFull        Status = C.ADM_E_BACKEND_FULL
	StatusBackendUnknown     Status = C.ADM_E_BACKEND_UNKNOWN
	StatusBackendUnavailable Status = C.ADM_E_BACKEND_UNAVAILABLE
	StatusBackendForked      Status = C.ADM_E_BACKEND_FORKED
	StatusBackendResult      Status = C.ADM_E_BACKEND_RESULT
	StatusBackendABI         Status = C.ADM_E_BACKEND_ABI
	StatusInternal           Status = C.ADM_E_INTERNAL
)

// Name is the stable identifier, for instance "ADM_E_INVALID_COST".
func (s Status) Name() string { return C.GoString(C.adm_status_name(C.adm_status(s))) }

// Error is one sentence for people; it may change in any release.
func (s Status) Error() string {
	return C.GoString(C.adm_status_text(C.adm_status(s))) + " (" + s.Name() + ")"
}

// Error says which call failed and, when it is known, what exactly was wrong. It unwraps to its
// Status.
type Error struct {
	Op     string // "Admit"
	Field  string // "Descriptors[2].Key"; empty when no single field is to blame
	Detail string // "is empty, 1 to 64 bytes are needed"
	Status Status
}

func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("admit: ")
	text.WriteString(e.Op)
	if e.Field != "" {
		text.WriteString(": ")
		text.WriteString(e.Field)
		text.WriteString(" ")
		text.WriteString(e.Detail)
		text.WriteString(" (" + e.Status.Name() + ")")
		return text.String()
	}
	text.WriteString(": ")
	if e.Detail != "" {
		text.WriteString(e.Detail + ": ")
	}
	text.WriteString(e.Status.Error())
	return text.String()
}

// Unwrap returns the Status.
func (e *Error) Unwrap() error { return e.Status }

// failure makes an error of a status of the library; nil of ADM_OK.
func failure(op string, status C.adm_status) error {
	if status == C.ADM_OK {
		return nil
	}
	return &Error{Op: op, Status: Status(status)}
}
