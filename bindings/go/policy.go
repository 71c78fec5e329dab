// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package admit

// #include "shim.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"
)

// Format is how a policy is written.
type Format uint32

const (
	FormatJSON Format = 0
	FormatYAML Format = 1 // for libraries built with YAML; others return StatusCallerNewer
)

func (f Format) unknown(op string) error {
	return &Error{Op: op, Field: "format", Detail: "is not one that exists", Status: StatusInvalidArgument}
}

// Severity of a finding.
type Severity uint32

const (
	SeverityError   Severity = C.ADM_SEVERITY_ERROR
	SeverityWarning Severity = C.ADM_SEVERITY_WARNING
	SeverityNote    Severity = C.ADM_SEVERITY_NOTE
)

func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	case SeverityNote:
		return "note"
	}
	return fmt.Sprintf("severity %d", uint32(s))
}

// Finding is one thing that the reader of policies has to say, and where.
type Finding struct {
	Severity Severity
	Code     string // stable: "ADM-D-214"
	Name     string // stable word of the kind: "range"
	File     string // as given, or empty
	Line     int    // from 1; 0: no place in the text
	Column   int    // in bytes, from 1
	Pointer  string // JSON pointer: "/rules/3/refill"
	Message  string
	Nearest  string // the nearest legal word, or empty
}

// String is the line that the command admit prints:
// "policy.json:3:5: error[ADM-D-214]: /rules/0/limit: expected ...".
func (f Finding) String() string {
	var text strings.Builder
	if f.File != "" {
		text.WriteString(f.File + ":")
	}
	if f.Line > 0 {
		fmt.Fprintf(&text, "%d:%d:", f.Line, f.Column)
	}
	if text.Len() > 0 {
		text.WriteString(" ")
	}
	fmt.Fprintf(&text, "%v[%s]: ", f.Severity, f.Code)
	if f.Pointer != "" && f.Severity != SeverityNote {
		text.WriteString(f.Pointer + ": ")
	}
	text.WriteString(f.Message)
	if f.Nearest != "" {
		text.WriteString("; did you mean " + f.Nearest + "?")
	}
	return text.String()
}

// PolicyError is why a policy or a limit table was refused: at least one of the findings is an
// error. It unwraps to StatusPolicyInvalid.
type PolicyError struct {
	Findings []Finding
}

// Error lists all findings, one a line.
func (e *PolicyError) Error() string {
	lines := make([]string, 0, len(e.Findings)+1)
	lines = append(lines, "admit: invalid policy")
	for _, finding := range e.Findings {
		lines = append(lines, finding.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns StatusPolicyInvalid.
func (e *PolicyError) Unwrap() error { return StatusPolicyInvalid }

// findings empties and frees diags.
func findings(diags *C.struct_adm_diags) []Finding {
	if diags == nil {
		return nil
	}
	defer C.adm_diags_free(diags)
	var list []Finding
	for i := C.uint64_t(0); i < C.adm_diags_count(diags); i++ {
		var diag C.struct_adm_diag
		diag.size = C.sizeof_struct_adm_diag
		if C.adm_diags_get(diags, i, &diag) != C.ADM_OK {
			break
		}
		list = append(list, Finding{
			Severity: Severity(diag.severity),
			Code:     C.GoString(diag.code),
			Name:     C.GoString(diag.name),
			File:     C.GoString(diag.file),
			Line:     int(diag.line),
			Column:   int(diag.column),
			Pointer:  C.GoString(diag.pointer),
			Message:  C.GoString(diag.message),
			Nearest:  C.GoString(diag.nearest),
		})
	}
	return list
}

// policyFailure frees diags.
func policyFailure(op string, status C.adm_status, diags *C.struct_adm_diags) error {
	list := findings(diags)
	if status == C.ADM_E_POLICY_INVALID && len(list) > 0 {
		return &PolicyError{Findings: list}
	}
	return failure(op, status)
}

// Policy is an immutable set of rules. Gates and goroutines may share it.
type Policy struct {
	c        *C.struct_adm_policy
	warnings []Finding
}

// Load reads a policy file: YAML when its name ends in .yaml or .yml, else JSON. The error is a
// *PolicyError when the text was read and is not a policy.
func Load(path string) (*Policy, error) {
	text, err := readFile(path, 1<<20+1)
	if err != nil {
		return nil, fmt.Errorf("admit: Load: %w", err)
	}
	format := FormatJSON
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		format = FormatYAML
	}
	return parse("Load", path, text, format)
}

// readFile of at most limit bytes: a device or a wrong file must not fill the memory. The library
// refuses what is cut off, because that is too long for it.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

// ParsePolicy reads a policy of at most 1 MiB.
func ParsePolicy(text string, format Format) (*Policy, error) {
	return parse("ParsePolicy", "", []byte(text), format)
}

func parse(op, file string, text []byte, format Format) (*Policy, error) {
	if format > FormatYAML {
		return nil, format.unknown(op)
	}
	var c *C.struct_adm_policy
	var diags *C.struct_adm_diags
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	data, length := view(text)
	status := C.admit_go_policy_load(data, length, name, C.uint32_t(format), &c, &diags)
	if status != C.ADM_OK {
		return nil, policyFailure(op, status, diags)
	}
	policy := &Policy{c: c, warnings: findings(diags)}
	runtime.SetFinalizer(policy, func(p *Policy) { C.adm_policy_unref(p.c) })
	return policy, nil
}

// view of bytes for the time of a call; what has no bytes has no address.
func view(text []byte) (*C.uint8_t, C.uint64_t) {
	if len(text) == 0 {
		return nil, 0
	}
	return (*C.uint8_t)(unsafe.Pointer(&text[0])), C.uint64_t(len(text))
}

// Version of the policy, as its document says.
func (p *Policy) Version() string {
	defer runtime.KeepAlive(p)
	return C.GoString(C.adm_policy_version(p.c))
}

// RuleCount is the number of rules.
func (p *Policy) RuleCount() int {
	defer runtime.KeepAlive(p)
	return int(C.adm_policy_rule_count(p.c))
}

// Warnings are the findings of a policy that was accepted: warnings and notes.
func (p *Policy) Warnings() []Finding { return append([]Finding(nil), p.warnings...) }
