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

# A rename would put a file where something else was: only files that may be written to are replaced.
cp policy.json sink.json
mkfifo pipe.json
cat policy.json >pipe.json &
run 6 'a pipe in place' fmt -w pipe.json
holds 'is refused' grep -q 'cannot write pipe.json: it is not a regular file' err
holds 'it is a pipe still' [ -p pipe.json ]
chmod 444 sink.json
if [ -w sink.json ]; then
    skip 'a file that must not be written to' 'the superuser may write to every file'
    chown 1:2 sink.json
    chmod 4750 sink.json
    run 0 'the file of another user' fmt -w sink.json
    holds 'is changed' cmp sink.json wanted.json
    holds 'owner, group and mode stay' [ "$(stat -c %u:%g:%a sink.json)" = 1:2:4750 ]
else
    run 6 'a file that must not be written to' fmt -w sink.json
    holds 'is left alone' cmp sink.json policy.json
    skip 'the file of another user' 'only the superuser can make one'
fi
rm -f sink.json pipe.json

echo '{"version": "v1", "rules": [{"id": "a"}]}' >invalid.json
cp invalid.json before.json
run 3 'one that is not valid' fmt -w invalid.json policy.json
holds 'has findings' grep -q '^invalid.json:1:.*error\[ADM-D-' err
holds 'is left alone' cmp invalid.json before.json
holds 'the other one is laid out' cmp policy.json wanted.json
echo '{"version":' >broken.json
run 3 'one that is no JSON' fmt broken.json
holds 'prints nothing' empty out
run 2 'no file' fmt
run 2 'a file that is not there' fmt nowhere.json
run 2 'write and check' fmt -w --check policy.json
run 2 'standard input in place' fmt -w -
"$admit" fmt - <wanted.json >out 2>err
holds 'standard input' cmp out wanted.json

# ---- YAML ---------------------------------------------------------------------------------------

"$admit" fmt --to yaml wanted.json >out 2>err
code=$?
has_yaml=true
[ $code -ne 6 ] || has_yaml=false
if $has_yaml; then
    cat >strange.json <<'END'
{
  "version": "2026-12-01",
  "description": "é # \u0009 'x' \"y\" \\ 😀 \u000a\ud7ff",
  "rules": [
    {"id": "no", "type": "request_cap", "match": {"on": ["y", "a*", "1e3", "0x1f", "null", "~x", "-", "x: y"]}, "limit": 5},
    {"id": "p", "type": "pressure", "signal": "kv", "gt": 0.90, "max_age": "15s"}
  ]
}
END
    cat >strange.yaml <<'END'
version: "2026-12-01"
description: "é # \t 'x' \"y\" \\ \U0001F600 \n\uD7FF"
rules:
- id: "no"
  type: request_cap
  match:
    "on": ["y", "a*", "1e3", "0x1f", "null", "~x", "-", "x: y"]
  limit: 5
- id: p
  type: pressure
  signal: kv
  gt: 0.90
  max_age: 15s
END
    sed 's/"gt": 0.90/"gt":\n0.90/' strange.json >moved.json
    run 0 'to YAML' fmt --to yaml moved.json
    sed 's/\\uD7FF/\xed\x9f\xbf/' strange.yaml >wanted.yaml
    holds 'quotes what a reader could take for something else' cmp out wanted.yaml
    cp out strange.yaml
    run 0 'YAML laid out' fmt strange.yaml
    holds 'it is the same' cmp out strange.yaml
    holds 'nothing is said' empty err
    run 0 'YAML to JSON' fmt --to json strange.yaml
    "$admit" fmt strange.json >json.out 2>err
    holds 'it is what it was' cmp out json.out
    run 0 'a check of YAML that does not differ' fmt --check strange.yaml

    printf 'rules: [{limit: 5, id: a, "type": request_cap}]\nversion: "v1" # why\n' >talk.yaml
    cp talk.yaml before.yaml
    run 0 'YAML with a comment' fmt talk.yaml
    holds 'a warning says what is not in the output' \
        grep -q '^talk.yaml:2:15: warning: comments are not in the output' err
    run 2 'in place' fmt -w talk.yaml
    holds 'is refused, with the place' grep -q '^talk.yaml:2:15: error: this comment would be lost' err
    holds 'the file is left alone' cmp talk.yaml before.yaml
    run 2 'a check' fmt --check talk.yaml
    holds 'is refused, too' grep -q '^talk.yaml:2:15: error' err
    run 1 'a check without comments' fmt --check --drop-comments talk.yaml
    run 0 'in place without comments' fmt -w --drop-comments talk.yaml
    printf 'version: v1\nrules:\n- id: a\n  type: request_cap\n  limit: 5\n' >wanted.yaml
    holds 'is laid out' cmp talk.yaml wanted.yaml
    printf 'version: v1\nrules:\n- {id: a, type: request_cap, limit: 010}\n' >invalid.yaml
    cp invalid.yaml before.yaml
    run 3 'YAML that is not valid' fmt -w invalid.yaml
    holds 'has findings in the YAML text' grep -q '^invalid.yaml:3:37: error\[ADM-D-' err
    holds 'is left alone' cmp invalid.yaml before.yaml
    printf 'version: v1\nrules: [\n' >broken.yaml
    run 3 'what is no YAML' fmt broken.yaml
    holds 'prints nothing' empty out
    run 2 'a JSON file to YAML in place' fmt -w --to yaml strange.json
    run 2 'a YAML file to JSON in place' fmt -w --to json strange.yaml
    run 2 'a check against the other form' fmt --check --to json strange.yaml
    run 2 'a form that is not there' fmt --to yml strange.json
    holds 'the nearest one is named' grep -q 'did you mean yaml' err
    printf 'entries:\n  "bob": "off"\n  acme: {refill: 250, capacity: 500}\nrule: rate\nversion: l-7\nby: tenant\n' >table.yaml
    run 0 'a limit table' fmt table.yaml
    printf 'version: l-7\nrule: rate\nby: tenant\nentries:\n  bob: "off"\n  acme:\n    capacity: 500\n    refill: 250\n' >wanted.yaml
    holds 'entries keep their order' cmp out wanted.yaml
    if command -v python3 >/dev/null 2>&1; then
        mkdir comments
        python3 "$root/tests/cli/fmt_comments.py" "$admit" comments >out 2>err
        result=$?
        cp out comments.out
        holds "comments wherever they can stand: $(head -n 1 comments.out)" [ $result -eq 0 ]
    else
        skip 'comments wherever they can stand' 'python3 is not here'
    fi
else
    result ok 'YAML without libyaml exits with 6'
    holds 'and says so' grep -q 'built without libyaml' err
    skip 'YAML' 'built without libyaml'
fi

# ---- all documents of the project ---------------------------------------------------------------

# Laid out a document is as valid as before, with the same findings, and stays as it is then.
cat >same.py <<'END'
import json, sys
def pairs(list_of):
    assert len(dict(list_of)) == len(list_of)
    return dict(list_of)
def read(path):
    return json.load(open(path, encoding="utf-8"), object_pairs_hook=pairs, parse_float=str, parse_int=str)
assert read(sys.argv[1]) == read(sys.argv[2])
END
verdict() { # what the reader says, without places and their order
    "$admit" validate --format json "$1" 2>/dev/null |
        sed -e 's/"file":"[^"]*"//' -e 's/"line":[0-9]*,"column":[0-9]*,"length":[0-9]*//g' \
            -e 's/in line [0-9]*//g' | tr '{' '\n' | tr -d '[],}' | sort
}
failed=
tried=0
for file in "$root"/examples/policies/*.json "$root"/tests/policies/accept/*.json; do
    [ -e "$file" ] || continue
    tried=$((tried + 1))
    name=${file##*/}
    verdict "$file" >before.txt
    "$admit" fmt "$file" >one.json 2>err || failed="$failed $name:refused"
    "$admit" fmt one.json >two.json 2>err || failed="$failed $name:refused-again"
    cmp -s one.json two.json || failed="$failed $name:changes-again"
    ! command -v python3 >/dev/null 2>&1 || python3 same.py "$file" one.json 2>/dev/null ||
        failed="$failed $name:differs"
    verdict one.json | cmp -s - before.txt || failed="$failed $name:other-findings"
    $has_yaml || continue
    "$admit" fmt --to yaml "$file" >one.yaml 2>err || failed="$failed $name:no-yaml"
    "$admit" fmt one.yaml >two.yaml 2>err || failed="$failed $name:yaml-refused"
    cmp -s one.yaml two.yaml || failed="$failed $name:yaml-changes"
    [ ! -s err ] || failed="$failed $name:yaml-talk"
    "$admit" fmt --to json one.yaml >three.json 2>err || failed="$failed $name:json-refused"
    cmp -s one.json three.json || failed="$failed $name:yaml-differs"
    verdict one.yaml | cmp -s - before.txt || failed="$failed $name:other-yaml-findings"
done
holds 'there are policies to try' [ "$tried" -gt 10 ]
holds "every one of them is the same document:$failed" [ -z "$failed" ]

echo "1..$count"
