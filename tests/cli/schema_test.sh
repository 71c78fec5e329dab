#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit schema: both documents, and arguments that are none.
# usage: schema_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"

run 0 'no argument: the policy' schema
cp out policy.json
json 'it is JSON' policy.json
holds 'it says which draft' grep -q 'json-schema.org/draft-07/schema#' policy.json
holds 'fields have help' grep -q '"lease_ttl":{"description":"How long a lease lasts' policy.json
holds 'nothing on standard error' empty err
run 0 'the policy by its name' schema policy
holds 'is the same' cmp -s out policy.json
run 0 'the limit table' schema table
cp out table.json
json 'it is JSON' table.json
holds 'has entries' grep -q '"entries":{' table.json
run 2 'a mistyped document' schema polcy
holds 'the nearest is named' grep -q 'did you mean policy?' err
holds 'and no option that is not there' sh -c '! grep -q -e --document err'
holds 'nothing is printed' empty out
run 2 'two documents' schema policy table
holds 'nothing is printed' empty out
run 2 'an empty name' schema ''
run 2 'an unknown option' schema --frobnicate
run 0 'help' schema --help

echo "1..$count"
