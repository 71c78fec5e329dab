#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C source of the extension module admit._native, from the public headers.

    build_native.py INCLUDE-FOLDER SHIM.H OUT.c

cffi checks every struct and every prototype against the real header when the extension is compiled, so a header that
changes cannot leave the binding behind unnoticed.
"""
import os
import re
import sys

import cffi

HEADERS = ("status.h", "types.h", "policy.h", "backend.h", "backends.h", "admit.h", "metrics.h", "testing.h")

# Not for applications: the suite for authors of backends.
UNUSED = ("adm_contract_",)


def declarations(text):
    """What cffi can read of a header: declarations, and constants as names."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = []
    for line in text.splitlines():
        constant = re.match(r"#define ((?:ADM|SHIM)_\w+)\s+(?:\d|UINT64_C)", line)
        if constant:
            lines.append("#define %s ..." % constant.group(1))
        elif not line.startswith("#"):
            lines.append(line)
    text = "\n".join(lines)
    return re.sub(r"\b(ADM_API|ADM_MUST_USE)\b", "", text)


def statements(text):
    """Split at the semicolons and constants of the outermost level."""
    depth = 0
    start = 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth == 0 and (c == ";" or (c == "\n" and text[start:i].strip().startswith("#"))):
            yield text[start:i + 1].strip()
            start = i + 1


def wanted(statement):
    return statement and not any(name in statement for name in UNUSED)


def main():
    include, shim, out = sys.argv[1:]
    ffi = cffi.FFI()
    source = []
    for name in HEADERS:
        with open(os.path.join(include, "admit", name), encoding="utf-8") as file:
            ffi.cdef("\n".join(filter(wanted, statements(declarations(file.read())))))
        source.append("#include <admit/%s>" % name)
    with open(shim, encoding="utf-8") as file:
        ffi.cdef("\n".join(filter(wanted, statements(declarations(file.read())))))
    ffi.cdef("""
        extern "Python" void admit_python_on_event(void *, const struct adm_event *);
        extern "Python" void admit_python_on_report(void *, const struct adm_rule_report *);
    """)
    source.append('#include "shim.h"')
    ffi.set_source("admit._native", "\n".join(source))
    ffi.emit_c_code(out)


main()
