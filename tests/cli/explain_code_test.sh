#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit explain-code: every way to name a code, all codes, and names that are none.
# usage: explain_code_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
root=$2
. "$(dirname "$0")/tap.sh"

run 0 'a code' explain-code ADM-D-214
cp out by_code
holds 'its first line says what it is' [ "$(head -n 1 out)" = 'ADM-D-214 exponent (error, since 1.0)' ]
holds 'what to do is said' grep -q '^Write out all digits' out
holds 'a fault is shown' grep -q '"capacity": 1e3' out
holds 'and its repair' grep -q '"capacity": 1000' out
holds 'no colours outside a terminal' plain
for name in adm-d-214 214 exponent EXPONENT; do
    run 0 "named as $name" explain-code "$name"
    holds "$name is the same" cmp -s out by_code
done
run 0 'an example of a limit table' explain-code entry
holds 'says that it is one' grep -q '^For instance, in a limit table:$' out
run 0 'two codes' explain-code 214 entry
holds 'both are explained' [ "$(grep -c '^ADM-D-' out)" -eq 2 ]
run 0 'no code: all of them' explain-code
holds 'as many as the registry has' [ "$(wc -l <out)" -eq "$(grep -c '"id": "ADM-D-' "$root/docs/diagnostics.json")" ]
holds 'each with its word' grep -q '^ADM-D-214  error    exponent$' out
run 0 'as JSON' explain-code --format json 214 entry
cp out codes.json
json 'it is JSON' codes.json
holds 'with the word' grep -q '"name":"exponent"' codes.json
holds 'with the kind of the example' grep -q '"example_of":"table"' codes.json
run 0 'all as JSON' explain-code --format json
cp out codes.json
json 'it is JSON' codes.json
run 2 'a mistyped word' explain-code exponnet
holds 'the nearest is named' grep -q 'did you mean ADM-D-214 (exponent)?' err
holds 'nothing is printed' empty out
run 2 'a number that no code has' explain-code 999
run 2 'a code with letters behind' explain-code ADM-D-214x
run 2 'half a code' explain-code ADM-D-
run 2 'an empty code' explain-code ''
run 2 'one of two is unknown' explain-code 214 frobnicate
holds 'then nothing is printed' empty out
run 2 'a format that is none' explain-code --format tap 214

echo "1..$count"
