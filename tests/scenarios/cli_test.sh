#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command as a user or a script meets it: exit codes, streams, formats, bad input.
# usage: cli_test.sh ADMIT SCENARIO_FOLDER      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
scenarios=$2
. "$(dirname "$0")/../cli/tap.sh"

# ---- help, version, words that are not there ---------------------------------------------------

run 2 'no command is a usage error'
holds 'its usage goes to standard error' grep -q '^usage: admit COMMAND' err
holds 'and nothing to standard output' empty out
run 0 'help' help
holds 'help goes to standard output' grep -q '^  replay ' out
run 0 '--help' --help
run 0 'version' version
cp out version.out
run 0 '--version' --version
holds 'both say the same' cmp -s out version.out
for command in validate test explain replay version help; do
    run 0 "help $command" help $command
    holds "help $command names it" grep -q "^usage: admit $command" out
    run 0 "$command --help" $command --help
done
run 2 'a mistyped command' valdiate policy.json
holds 'the nearest command is named' grep -q "did you mean 'validate'" err
holds 'a mistyped command prints no data' empty out
run 2 'a command like no other' frobnicate
run 2 'help of a mistyped command' help replya
run 2 'a mistyped option' test --formt tap x.json
holds 'the nearest option is named' grep -q 'did you mean --format' err
run 2 'an option of one letter that is not there' test --x
holds 'is like no other' sh -c '! grep -q "did you mean" err'
run 2 'letters that changed places' lnit x.json
holds 'are seen' grep -q "did you mean 'lint'" err
run 2 'the version of something' version x
run 2 'help of two commands' help lint test
run 2 'an unknown short option' test -Z x.json
run 2 'an option without its argument' test --format
run 2 'a flag with an argument' validate --quiet=1 x.json
run 2 'a mistyped choice' test --backend plian x.json
holds 'the nearest choice is named' grep -q 'did you mean plain' err
run 2 'validate without files' validate
run 2 'test without files' test
run 2 'explain without a policy' explain
run 2 'replay with one file' replay policy.json

# ---- validate ----------------------------------------------------------------------------------

cat >good.json <<'EOF'
{"version": "v1", "rules": [
  {"id": "rate", "type": "token_bucket", "partition_by": ["consumer"],
   "capacity": 3, "refill": 1, "per": "1s"},
  {"id": "busy", "type": "concurrency", "limit": 2, "lease_ttl": "10s"},
  {"id": "long", "type": "request_cap", "match": {"long": "*"}, "limit": 5}
]}
EOF
cat >five.json <<'EOF'
{
  "version": "v1",
  "rules": [
    {"id": "a", "type": "token_bucket", "capacity": 10, "refil": 1, "refill": 1, "per": "1s"},
    {"id": "b", "type": "token_bucket", "capacity": -1, "refill": 1, "per": "1s"},
    {"id": "c", "type": "concurency", "limit": 1, "lease_ttl": "10s"},
    {"id": "d", "type": "concurrency", "limit": 1, "lease_ttl": "10 s"},
    {"id": "e", "type": "request_cap", "limit": 1e3}
  ]
}
EOF
run 0 'a valid policy' validate good.json
holds 'one line about it' [ "$(cat out)" = 'good.json: valid, version v1, 3 rules' ]
run 0 'quiet of a valid policy' validate --quiet good.json
holds 'prints nothing' empty out
run 3 'a policy with five mistakes' validate five.json
holds 'prints no data' empty out
located='^five\.json:[0-9]*:[0-9]*: error\[ADM-D-[0-9]*\]: /'
holds 'and five located errors' [ "$(grep -c "$located" err)" -eq 5 ]
for place in '4:57' '5:53' '6:25' '7:65' '8:49'; do
    holds "one of them at $place" grep -q "^five.json:$place: error" err
done
holds 'the nearest field is named' grep -q 'help: did you mean "refill"?' err
holds 'the nearest type is named' grep -q 'help: did you mean "concurrency"?' err
run 3 'one bad file of two' validate good.json five.json
holds 'the good one is still reported' grep -q '^good.json: valid' out
run 2 'one file of two is not there' validate nowhere.json five.json
holds 'it is named' grep -q 'cannot read nowhere.json' err
holds 'the other one is still checked' grep -q '^five.json:' err
run 2 'a folder is no policy' validate .
run 3 'an empty file is no policy' validate /dev/null
run 3 'findings as JSON' validate --format json good.json five.json
cp out findings.json
holds 'nothing on standard error' empty err
json 'it is JSON' findings.json
holds 'with five errors' [ "$(grep -o '"severity":"error"' findings.json | wc -l)" -eq 5 ]
"$admit" validate - <good.json >out 2>err
holds 'a policy from standard input' grep -q '^<stdin>: valid' out
"$admit" validate - <five.json >out 2>err
holds 'exit 3 from standard input' [ $? -eq 3 ]
holds 'findings name standard input' grep -q '^<stdin>:4:57: error' err
holds 'no colours outside a terminal' plain
if [ -w /dev/full ]; then
    for arguments in 'validate good.json' 'help' 'validate --format json good.json' \
        'explain good.json -d consumer=c'; do
        "$admit" $arguments >/dev/full 2>err
        holds "output that cannot be written: $arguments" [ $? -eq 6 ]
        holds 'says so' grep -q 'cannot write the output' err
    done
else
    skip 'output that cannot be written' 'there is no /dev/full'
fi

# ---- test --------------------------------------------------------------------------------------

run 0 'a file of the project' test "$scenarios/08-release-idempotent.json"
holds 'ends with the count' grep -q '^[1-9][0-9]* passed, 0 failed$' out
cat >cases.json <<'EOF'
{"title": "t", "right": "r", "scenarios": [
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 6, "expect": {"allow": true}},
            {"t": 0, "op": "admit", "d": {}, "cost": 5, "expect": {"allow": true}}]},
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": "5"}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 5}]},
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 5, "expct": {"allow": false}}]},
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 5, "expect": {"alow": false}}]},
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]},
  "steps": [{"t": 0, "op": "admt", "d": {}, "cost": 5}]},
 {"kind": "admission", "policy":
  {"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 5,
             "expect": {"allow": true, "reason": "allowed"}}]},
 {"kind": "loader", "documents": [
   {"name": "one", "format": "json", "text": "{}", "expect": "reject"},
   {"name": "two", "format": "json", "text": "{}", "expect": "accept"},
   {"name": "three", "format": "yaml", "text": "{}", "expect": "reject"},
   {"name": "four", "format": "json", "hex": "7b7", "expect": "reject"}]},
 {"kind": "later", "steps": []}
]}
EOF
run 4 'failing scenarios' test cases.json
holds 'the count is the last line' last '3 passed, 7 failed' out
holds 'skipped ones are counted' grep -q '^1 skipped$' out
holds 'and have a reason' grep -q 'scenario 8: skipped: no runner for kind "later"' out
holds 'a failure says where' grep -q 'line 4, step 0 admit t=0: allow: expected true, got false' out
holds 'a policy that does not load is located' grep -q 'cases.json:7:[0-9]*: error\[ADM-D-' out
holds 'a mistyped field is a failure' grep -q 'no field "expct"' out
holds 'a mistyped expectation is a failure' grep -q 'alow: no answer has such a member' out
holds 'an unknown op is a failure' grep -q 'unknown op' out
run 4 'results as JSON' test --format json cases.json
cp out results.json
json 'it is JSON' results.json
run 4 'results as TAP' test --format tap cases.json
holds 'with a plan' grep -q '^1\.\.11$' out
holds 'and seven times not ok' [ "$(grep -c '^not ok ' out)" -eq 7 ]
for backend in plain deferring; do
    run 4 "on the backend $backend" test --backend $backend cases.json
    holds 'with the same count' last '3 passed, 7 failed' out
done
echo '{"scenarios": [' >broken.json
run 2 'a scenario file that is no JSON' test broken.json
holds 'is located' grep -q '^broken.json:2:1: error: ' err
echo '{"scenario": []}' >none.json
run 2 'a scenario file without scenarios' test none.json
echo '{"scenarios": []}' >none.json
run 2 'an empty list of scenarios' test none.json
holds 'is located' grep -q '^none.json:1:15: error: no scenario$' err
echo '{"scenarios": [{"kind": "later"}, {"kind": "sooner"}]}' >later.json
run 4 'nothing but unknown kinds' test later.json
holds 'says that nothing was run' grep -q 'nothing was run: all scenarios were skipped' err
holds 'and counts' grep -q '^2 skipped$' out
run 0 'something beside unknown kinds' test later.json "$scenarios/08-release-idempotent.json"
run 4 'nothing run, as TAP' test --format tap later.json
run 2 'a scenario file that is not there' test nowhere.json

# ---- replay ------------------------------------------------------------------------------------

cat >trace.csv <<'EOF'
t_ms,consumer,cost,hold_ms,long
0,a,1,100,
0,b,1,50,
60,a,1,100,
60,a,1,100,
99.999,b,1,100,
100,a,1,100,
5000,"a",1,100,yes
5000,a,6,100,yes
EOF
run 0 'replay' replay good.json trace.csv --quiet
cp out first.out
holds 'nothing on standard error' empty err
# 0: both; 60: one more (b has left at 50), then busy; 99.999: still busy; 100: a's first has left;
# 5000: the cap
holds 'admits what fits' grep -q '^allowed  *5 ' out
holds 'denies what does not' grep -q '^concurrency_exceeded  *2 ' out
holds 'and what never fits' grep -q '^cost_above_cap  *1 ' out
holds 'counts leases' grep -q '^leases: 5 granted, at most 2 at a time; 5 released, 0 after' out
holds 'counts per rule' grep -q '^busy  *concurrency  *cost  *5  *3  *5  *8  *2$' out
run 0 'replay again' replay good.json trace.csv --quiet
holds 'gives the same' cmp -s out first.out
run 0 'replay on the deferring backend' replay good.json trace.csv --quiet --backend deferring
holds 'gives the same decisions' cmp -s out first.out
run 0 'replay as JSON' replay good.json trace.csv --format json --show-kinds --timing
cp out replay.json
json 'it is JSON' replay.json
holds 'of format 1' grep -q '^{"format":1,' replay.json
holds 'and talk stays on standard error' grep -q 'decisions in' err
run 0 'each kind with its answer' replay good.json trace.csv --quiet --show-kinds
holds 'a status line' grep -q '^HTTP/1.1 400 Bad Request$' out
holds 'an id' grep -q '^X-Admission-Decision-Id: [0-9a-f]\{32\}$' out
body='^{"error":{"code":"cost_above_cap","message":".*","source":"admission"}}$'
holds 'a body' grep -q "$body" out
cp out kinds.out
run 0 'each kind, the same seed' replay good.json trace.csv --quiet --show-kinds
holds 'the same output, decision ids too' cmp out kinds.out
run 0 'another seed' replay good.json trace.csv --quiet --show-kinds --seed 2
holds 'gives other ids' sh -c '! cmp -s out kinds.out'
holds 'no colours outside a terminal' plain

cat >trace.jsonl <<'EOF'
{"t_ms": 0, "d": {"consumer": "a"}, "cost": 1, "hold_ms": 100}
{"t_ms": 0, "d": {}, "hold_ms": 50, "amounts": {"images": 7}, "final": {"output_tokens": 3}}
{"t_ms": 60, "d": {"consumer": "a"}, "hold_ms": 100}
EOF
run 0 'a trace of JSON lines' replay good.json trace.jsonl --quiet -d consumer=b
holds 'is read' grep -q '^allowed  *3 ' out
"$admit" replay good.json - --quiet <trace.csv >out 2>err
holds 'a trace from standard input' grep -q '^allowed  *5 ' out
cat >azure.csv <<'EOF'
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:46.9951690,396,109
2023-11-16 18:15:47.0000000,879,55
EOF
run 0 'an Azure trace' replay good.json azure.csv --quiet --tenants 3
holds 'its tokens are amounts' grep -q '^input_tokens  *770  *879$' out
run 0 'with descriptors of the command line' replay good.json azure.csv --quiet -d consumer=x
holds 'that every row gets' grep -q '^allowed  *2 ' out
run 0 'without a consumer' replay good.json azure.csv --quiet
holds 'rows are denied' grep -q '^missing_descriptor  *3 ' out
run 0 'columns by other names' replay good.json azure.csv --quiet --input csv -d consumer=x \
    --map TIMESTAMP=timestamp --map ContextTokens=- --map GeneratedTokens=-
holds 'are read' grep -q '^allowed  *3 ' out
run 2 'a map of a column that is not there' replay good.json trace.csv --map nothing=cost
run 2 'a header without a time' replay good.json azure.csv --input csv

bad() { # NAME LINE ROW... : the last row is malformed
    name=$1
    line=$2
    shift 2
    printf '%s\n' "$@" >bad.csv
    run 2 "$name" replay good.json bad.csv --quiet
    holds "$name: located" grep -q "^bad.csv:$line: " err
    holds "$name: no data" empty out
}
bad 'a time that is none' 3 't_ms,consumer' '0,a' 'soon,a'
bad 'a negative time' 2 't_ms,consumer' '-1,a'
bad 'a row without a time' 2 't_ms,consumer' ',a'
bad 'a cost of 0' 2 't_ms,consumer,cost' '0,a,0'
bad 'a cost above 10^12' 2 't_ms,consumer,cost' '0,a,1000000000001'
bad 'a cost of 1e3' 2 't_ms,consumer,cost' '0,a,1e3'
bad 'a cost of 2^64' 2 't_ms,consumer,cost' '0,a,18446744073709551616'
bad 'too few fields' 2 't_ms,consumer,cost' '0,a'
bad 'too many fields' 2 't_ms,consumer' '0,a,b'
bad 'an open quote' 2 't_ms,consumer' '0,"a'
bad 'text behind a quote' 2 't_ms,consumer' '0,"a"b'
bad 'a column twice' 1 't_ms,consumer,consumer' '0,a,b'
bad 'a trace without a header' 1 '0,a,1' '5,b,1'
holds 'says so' grep -q 'there is no header' err
bad 'requests is no column' 1 't_ms,requests' '0,1'
bad 'two times' 1 't_ms,timestamp' '0,2023-11-16 18:15:46'
bad '30 February' 2 'timestamp,consumer' '2024-02-30 00:00:00,a'
bad '29 February of 2023' 2 'timestamp,consumer' '2023-02-29 00:00:00,a'
bad 'an empty trace' 2 ''
bad 'a member that is none' 1 '{"t_ms": 0, "dd": {}}'
bad 'a member twice' 1 '{"t_ms": 0, "t_ms": 0}'
bad 'a unit that is none' 1 '{"t_ms": 0, "d": {"consumer": "a"}, "amounts": {"token": 1}}'
bad 'broken JSON' 2 '{"t_ms": 0, "d": {"consumer": "a"}}' '{"t_ms": 0,'
printf 't_ms,consumer\n0,a\nsoon,a\n5,b\n' >bad.csv
run 0 'bad rows can be skipped' replay good.json bad.csv --quiet --skip-bad
holds 'and are counted' grep -q '^1 bad rows skipped$' out
holds 'the others count' grep -q '^allowed  *2 ' out
run 2 'a trace that is not there' replay good.json nowhere.csv
run 3 'an invalid policy' replay five.json trace.csv
run 2 'a policy that is not there' replay nowhere.json trace.csv
run 2 'both from standard input' replay - -

echo "1..$count"
