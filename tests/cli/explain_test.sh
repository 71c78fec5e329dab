#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit explain: the tree, both sides of what does not fit, whose numbers, and wrong questions.
# usage: explain_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"
LC_ALL=C
export LC_ALL

cat >policy.json <<'EOF'
{"version": "v1", "units": ["gpu_ms"], "rules": [
  {"id": "rate", "type": "token_bucket", "partition_by": ["consumer"],
   "capacity": 3, "refill": 1, "per": "1s",
   "overrides": [{"when": {"tier": "internal"}, "off": true},
                 {"when": {"consumer": ["big", "huge"], "not": {"tier": "trial"}}, "capacity": 7,
                  "refill": 1}]},
  {"id": "busy", "type": "concurrency", "limit": 2, "lease_ttl": "10s"},
  {"id": "long", "type": "request_cap", "match": {"long": "*"}, "limit": 5},
  {"id": "chat", "type": "request_cap", "unit": "input_tokens", "limit": 9,
   "match": {"service": ["chat", "messages"], "not": {"tier": "internal"}}},
  {"id": "tried", "type": "token_bucket", "mode": "shadow", "capacity": 1, "refill": 1, "per": "1s"},
  {"id": "shed", "type": "pressure", "match": {"service": "pre*"}, "signal": "kv", "gt": 0.90,
   "max_age": "15s"}
]}
EOF
shows() { # NAME LINE : standard output has exactly this line
    holds "$1" grep -qxF -e "$2" out
}
refuses() { # NAME WORDS ARGUMENT... : usage error that says it, and no data
    refuses_name=$1
    words=$2
    shift 2
    run 2 "$refuses_name" explain policy.json "$@"
    holds "$refuses_name: says why" grep -qF -e "$words" err
    holds "$refuses_name: no data" empty out
}

# ---- the tree ----------------------------------------------------------------------------------

run 0 'explain' explain policy.json -d consumer=c7 -d service=chat-x
shows 'the question' 'policy v1, request: consumer=c7, service=chat-x, cost 1'
shows 'a rule that passes' '+- rate (token_bucket of cost): passes'
shows 'and its numbers' '|    level 3, capacity 3, asks for 1; numbers of rule'
shows 'what is held' '|    held 0, limit 2, asks for 1; numbers of rule'
shows 'an absent descriptor' \
    '+- long (request_cap of cost): no match: long is absent, wants any value'
shows 'both sides of a list' \
    '+- chat (request_cap of input_tokens): no match: service is chat-x, wants chat|messages'
shows 'both sides of a prefix' '+- shed (pressure of cost): no match: service is chat-x, wants pre*'
shows 'a shadow rule' '+- tried (token_bucket of cost, shadow): passes'
shows 'the decision' 'allow: allowed'
shows 'the HTTP status' 'HTTP 200 OK'
shows 'the version' 'policy v1'
holds 'plain ASCII in the C locale' sh -c '! LC_ALL=C grep -q "[^ -~]" out'
holds 'no colours outside a terminal' plain
run 0 'a denial' explain policy.json -d consumer=c7 --cost 4
shows 'says which reason' '+- rate (token_bucket of cost): denies, unsatisfiable'
shows 'a shadow rule that would' '+- tried (token_bucket of cost, shadow): would deny, unsatisfiable'
shows 'by which rules' 'deny: unsatisfiable, by rate, busy'
shows 'the HTTP answer' 'HTTP 429 Too Many Requests'
shows 'shadow rules apart' 'shadow rules that would deny: tried'
run 0 'an override' explain policy.json -d consumer=big
shows 'and when it holds' '|    level 7, capacity 7, asks for 1; numbers of override 2 (when consumer is big|huge, not (tier is trial))'
run 0 'a rule that is off' explain policy.json -d consumer=c -d tier=internal -d service=chat
shows 'says so' '+- rate (token_bucket of cost): switched off for this request'
shows 'and by what' '|    by override 1 (when tier is internal)'
shows 'what a match must not be' \
    '+- chat (request_cap of input_tokens): no match: tier is internal, must not be internal'
run 0 'a missing descriptor' explain policy.json
shows 'is named' '|    capacity 3; numbers of rule; absent: partition key consumer'
sed -e '/"id": "busy"/d' -e '/"id": "rate"/s/"type"/"match": {"service": "x"}, "type"/' \
    -e '/"id": "tried"/s/"mode"/"partition_by": ["user"], "mode"/' policy.json >narrow.json
run 0 'only a shadow rule matches' explain narrow.json --expect no_policy
shows 'it cannot be checked' '+- tried (token_bucket of cost, shadow): not checked'
shows 'for want of a key' '|    capacity 1; numbers of rule; absent: partition key user'
shows 'and no rule is to blame' 'deny: no_policy, no enforced rule matches'
run 0 'a missing amount' explain policy.json -d consumer=c -d service=chat
shows 'its unit is named' '|    limit 9; numbers of rule; the request brings no amount of input_tokens'
run 0 'a signal' explain policy.json -d consumer=c -d service=pretty
shows 'its threshold as written' '     signal kv gt 0.90, no replica has sent one; numbers of rule'
run 0 'control characters' explain policy.json -d "consumer=a$(printf '\033')[31m"
shows 'are escaped' 'policy v1, request: consumer="a\u001b[31m", cost 1'

if locale -a 2>/dev/null | grep -qi '^C.utf-\{0,1\}8$'; then
    LC_ALL=C.UTF-8 "$admit" explain policy.json -d consumer=c >out 2>err
    shows 'lines in a UTF-8 locale' '├─ rate (token_bucket of cost): passes'
    shows 'the last one ends' '└─ shed (pressure of cost): no match: service is absent, wants pre*'
    LC_ALL=C.UTF-8 "$admit" explain policy.json -d consumer=c --ascii >out 2>err
    holds '--ascii wins over the locale' sh -c '! LC_ALL=C grep -q "[^ -~]" out'
else
    skip 'lines in a UTF-8 locale' 'there is no C.UTF-8'
fi

run 0 'only what matches' explain policy.json -d consumer=c --only matched
holds 'shows no other' sh -c '! grep -q "no match" out'
shows 'and says so' '(3 of 6 rules not shown)'
run 0 'only what denies' explain policy.json -d consumer=c --cost 4 --only denying
holds 'shows these' [ "$(grep -c '^+- .* den[iy]' out)" -eq 3 ]
holds 'and no other' [ "$(grep -c '^+- ' out)" -eq 3 ]

# ---- JSON --------------------------------------------------------------------------------------

run 0 'as JSON' explain policy.json -d consumer=big -d service=x --cost 9 --format json
json 'it is JSON' out
holds 'of format 1' grep -q '^{"format":1,' out
holds 'with both sides' grep -qF '"mismatch":"service","wants":["chat","messages"],"has":"x"' out
holds 'with an absent side' grep -qF '"mismatch":"long","wants":"*","has":null' out
holds 'with the condition of an override' grep -qF '"when":{"consumer":["big","huge"]' out
run 0 'nothing shown as JSON' explain policy.json -d consumer=c --only denying --format json
json 'is JSON too' out

# ---- expectations, tables ----------------------------------------------------------------------

run 0 'an expectation that holds' explain policy.json -d consumer=c7 --expect allow
run 1 'an expectation that does not' explain policy.json -d consumer=c7 --expect deny
run 0 'a reason is an expectation' explain policy.json --expect missing_descriptor
refuses 'a word that is no expectation' 'did you mean allow' --expect alow
refuses 'an expectation like no other' "not 'bogus-bogus'" --expect bogus-bogus
echo '{"version": "v1", "rules": [{"id": "a"}]}' >invalid.json
run 3 'an invalid policy' explain invalid.json
run 2 'a policy that is not there' explain nowhere.json
holds 'says why' grep -q 'cannot read nowhere.json: ' err
head='{"version": "t1", "rule": "rate", "by": "consumer", "entries":'
echo "$head {\"c7\": {\"capacity\": 9}}}" >table.json
run 0 'a limit table' explain policy.json -d consumer=c7 --tables table.json --expect allow
shows 'gives the numbers' '|    level 9, capacity 9, asks for 1; numbers of table entry c7'
shows 'and is named' 'policy v1, limit table t1'
echo "$head {\"c7\": {\"limit\": 9}}}" >table.json
run 3 'a limit table that is refused' explain policy.json -d consumer=c7 --tables table.json

# ---- requests from a file ----------------------------------------------------------------------

cat >request.json <<'EOF'
{"t": 0, "op": "admit", "as": "a", "d": {"consumer": "c", "service": "chat"}, "cost": 2,
 "amounts": {"input_tokens": 10, "gpu_ms": 5}, "expect": {"allow": false}}
EOF
run 0 'a request from a file' explain policy.json --request request.json --expect cost_above_cap
shows 'is the question' 'policy v1, request: consumer=c, service=chat, cost 2, input_tokens 10, gpu_ms 5'
run 0 'the command line adds' explain policy.json --request request.json -d tier=internal --cost 1
shows 'and wins' 'policy v1, request: tier=internal, consumer=c, service=chat, cost 1, input_tokens 10, gpu_ms 5'
refuses 'a descriptor of both' "descriptor 'consumer' is given twice" --request request.json \
    -d consumer=d
bad() { # NAME WORDS REQUEST
    printf '%s\n' "$3" >bad.json
    refuses "$1" "$2" --request bad.json
}
bad 'a request that is no JSON' 'bad.json:' '{"d": '
bad 'a request that is no object' 'bad.json:1:1: error: a request is an object' '[]'
bad 'an unknown member' 'error: a request has no member "frobnication"' '{"frobnication": {}}'
bad 'a near member' 'did you mean "cost"?' '{"csot": 1}'
bad 'a member twice' 'this member is there twice' '{"cost": 1, "cost": 2}'
bad 'a descriptor of a number' 'bad.json:1:13: error: a descriptor must be a string' \
    '{"d": {"a": 1}}'
bad 'an empty descriptor' "descriptor 'a' has an empty value" '{"d": {"a": ""}}'
bad 'a cost of 0' '"cost" must be a whole number from 1' '{"cost": 0}'
bad 'a cost with a fraction' '"cost" must be a whole number' '{"cost": 1.0}'
bad 'an amount with an exponent' 'an amount must be a whole number' '{"amounts": {"tokens": 1e3}}'
bad 'another operation' 'only an "op" of "admit" is a request' '{"op": "release"}'
refuses 'a request that is not there' 'cannot read nowhere.json' --request nowhere.json

# ---- culprits ----------------------------------------------------------------------------------

long=$(printf '%300s' '' | tr ' ' x)
refuses 'a descriptor without a value' "takes KEY=VALUE, not 'consumer'" -d consumer
refuses 'an empty value' "descriptor 'consumer' has an empty value" -d consumer=
refuses 'a value that is too long' "descriptor 'consumer': a value has at most 256" -d "consumer=$long"
refuses 'a key that is too long' 'a key has 1 to 64 bytes, this one has 300' -d "$long=1"
refuses 'a descriptor twice' "descriptor 'a' is given twice" -d a=1 -d a=1
refuses 'seventeen descriptors' "descriptor 'k17' is one too many" -d k1=1 -d k2=1 -d k3=1 -d k4=1 \
    -d k5=1 -d k6=1 -d k7=1 -d k8=1 -d k9=1 -d k10=1 -d k11=1 -d k12=1 -d k13=1 -d k14=1 -d k15=1 \
    -d k16=1 -d k17=1
refuses 'a cost that is none' "not '1.5'" --cost 1.5
refuses 'a cost of nothing' 'from 1 to 10^12' --cost 0
refuses 'an amount that is none' "not 'input_tokens=-1'" --amount input_tokens=-1
refuses 'an amount twice' "amount of 'tokens' is given twice" --amount tokens=1 --amount tokens=2
refuses 'a unit near a built-in one' 'did you mean input_tokens?' --amount input_token=1
refuses 'a unit near a declared one' 'did you mean gpu_ms?' --amount gpu_s=1
refuses 'a unit like no other' "knows no unit 'frobnications'" --amount frobnications=1
refuses 'an amount of cost' 'given with --cost' --amount cost=1
refuses 'an amount of requests' 'always 1' --amount requests=1
run 0 'a declared unit' explain policy.json -d consumer=c --amount gpu_ms=5

echo "1..$count"
