#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit lint: clean, suspicious and invalid policies, and what --strict makes of them.
# usage: lint_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"

printf '{"version":"v1","rules":[{"id":"r","type":"request_cap","limit":1}]}\n' >clean.json
printf '{"version":"v1","rules":[{"id":"r","type":"request_cap","limit":0}]}\n' >odd.json
printf '{"version":"v1","rules":[{"id":"r","type":"request_cap","limit":-1}]}\n' >invalid.json

run 0 'a clean policy' lint clean.json
holds 'one line says so' lines 1 out
run 0 'a clean policy, strict' lint --strict clean.json
run 0 'a clean policy, quiet' lint --quiet clean.json
holds 'nothing is said' empty out
run 0 'a suspicious policy' lint odd.json
holds 'the finding has its place' grep -q '^odd.json:1:.*warning\[ADM-D-311\]: /rules/0/limit: 0 leaves' err
run 5 'a suspicious policy, strict' lint --strict odd.json
run 5 'strict looks at all files' lint --strict odd.json clean.json
run 0 'validate does not ask' validate odd.json
holds 'and is not told' empty err
run 3 'an invalid policy' lint invalid.json
run 3 'invalid goes before suspicious' lint --strict odd.json invalid.json clean.json
run 3 'in any order' lint --strict invalid.json odd.json
run 2 'no file' lint
run 2 'a file that is not there' lint missing.json
run 2 'a format that is none' lint --format tap clean.json
run 0 'as JSON' lint --format json odd.json clean.json
cp out findings.json
json 'it is JSON' findings.json
holds 'with the finding' grep -q '"ADM-D-311"' findings.json

echo "1..$count"
