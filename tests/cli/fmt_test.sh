#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit fmt: one layout, nothing lost, nothing written that is not whole.
# usage: fmt_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
root=$(cd "$2" && pwd)
. "$(dirname "$0")/tap.sh"

cat >policy.json <<'END'
{"rules":[{"capacity":1000,"per":"1s","id":"a","refill":1,"type":"token_bucket",
 "match":{"z":"1","a":["x","\u0079"]}},
 {"type":"pressure","id":"p","signal":"kv","gt":0.90,"max_age":"15s"}],"description":"\u00e9\/\t","version":"v1"}
END
cat >wanted.json <<'END'
{
  "version": "v1",
  "description": "é/\u0009",
  "rules": [
    {
      "id": "a",
      "type": "token_bucket",
      "match": {"z": "1", "a": ["x", "y"]},
      "capacity": 1000,
      "refill": 1,
      "per": "1s"
    },
    {"id": "p", "type": "pressure", "signal": "kv", "gt": 0.90, "max_age": "15s"}
  ]
}
END
run 0 'a policy' fmt policy.json
holds 'comes out in the canonical layout' cmp out wanted.json
run 0 'laid out again' fmt wanted.json
holds 'it is the same' cmp out wanted.json
run 1 'a check of one that differs' fmt --check wanted.json policy.json
holds 'names that one' [ "$(cat out)" = policy.json ]
run 0 'a check of one that does not' fmt --check wanted.json
holds 'names nothing' empty out

cp policy.json target.json
chmod 640 target.json
ln -s target.json link.json
run 0 'in place, through a link' fmt -w link.json
holds 'the file is changed' cmp target.json wanted.json
holds 'the link stays' [ -L link.json ]
holds 'the permissions stay' [ "$(stat -c %a target.json)" = 640 ]
holds 'nothing else is left' [ "$(ls | grep -c '^target')" -eq 1 ]
holds 'nothing on standard output' empty out

echo '{"version": "v1", "rules": [{"id": "a"}]}' >invalid.json
cp invalid.json before.json
run 3 'one that is not valid' fmt -w invalid.json policy.json
holds 'has findings' grep -q '^invalid.json:1:.*error\[ADM-D-' err
holds 'is left alone' cmp invalid.json before.json
holds 'the other one is laid out' cmp policy.json wanted.json
echo '{"version":' >broken.json
run 3 'one that is no JSON' fmt broken.json
holds 'prints nothing' empty out
printf 'version: v1 # why\n' >policy.yaml
run 2 'YAML' fmt -w policy.yaml
holds 'is left alone' [ "$(cat policy.yaml)" = 'version: v1 # why' ]
run 2 'no file' fmt
run 2 'a file that is not there' fmt nowhere.json
run 2 'write and check' fmt -w --check policy.json
run 2 'standard input in place' fmt -w -
"$admit" fmt - <wanted.json >out 2>err
holds 'standard input' cmp out wanted.json

# Whatever the project has: laid out it is as valid as before, and stays as it is then.
cat >same.py <<'END'
import json, sys
def pairs(list_of):
    assert len(dict(list_of)) == len(list_of)
    return dict(list_of)
def read(path):
    return json.load(open(path), object_pairs_hook=pairs, parse_float=str, parse_int=str)
assert read(sys.argv[1]) == read(sys.argv[2])
END
failed=
tried=0
for file in "$root"/examples/policies/*.json "$root"/tests/policies/accept/*.json; do
    [ -e "$file" ] || continue
    tried=$((tried + 1))
    name=${file##*/}
    "$admit" fmt "$file" >one.json 2>err || failed="$failed $name:refused"
    "$admit" fmt one.json >two.json 2>err || failed="$failed $name:refused-again"
    cmp -s one.json two.json || failed="$failed $name:changes-again"
    ! command -v python3 >/dev/null 2>&1 || python3 same.py "$file" one.json 2>/dev/null ||
        failed="$failed $name:differs"
done
holds 'there are policies to try' [ "$tried" -gt 10 ]
holds "every one of them is the same document:$failed" [ -z "$failed" ]

echo "1..$count"
