#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a program and compare all that it prints, and that it succeeds:  output.sh EXPECTED PROGRAM [argument ...]
set -u
expected=$1
shift
seen=$(mktemp) || exit 99
trap 'rm -f "$seen"' EXIT
"$@" >"$seen" 2>&1
code=$?
diff -u "$expected" "$seen" || { echo "not ok: the output differs"; exit 1; }
[ "$code" -eq 0 ] || { echo "not ok: exit status $code"; exit 1; }
