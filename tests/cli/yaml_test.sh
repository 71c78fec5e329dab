#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Policies in YAML: explain, replay and limit tables read them as they read JSON.
# usage: yaml_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"
LC_ALL=C
export LC_ALL

cat >policy.yaml <<'END'
version: v1
rules:
  # what one consumer may have
  - id: rate
    type: token_bucket
    partition_by: [consumer]
    capacity: 3
    refill: 1
    per: 1s
    overrides:
      - when: {consumer: [big, huge], not: {tier: trial}}
        capacity: 7
        refill: 1
  - {id: long, type: request_cap, match: {long: "*"}, limit: 5}
  - id: chat
    type: request_cap
    limit: 9
    match:
      service:
        - chat
        - messages
      not: {tier: internal}
  - id: shed
    type: pressure
    match: {service: "pre*"}
    signal: kv
    gt: 0.90
    max_age: 15s
END
cat >policy.json <<'END'
{"version": "v1", "rules": [
 {"id": "rate", "type": "token_bucket", "partition_by": ["consumer"], "capacity": 3, "refill": 1,
  "per": "1s", "overrides": [{"when": {"consumer": ["big", "huge"], "not": {"tier": "trial"}},
                              "capacity": 7, "refill": 1}]},
 {"id": "long", "type": "request_cap", "match": {"long": "*"}, "limit": 5},
 {"id": "chat", "type": "request_cap", "limit": 9,
  "match": {"service": ["chat", "messages"], "not": {"tier": "internal"}}},
 {"id": "shed", "type": "pressure", "match": {"service": "pre*"}, "signal": "kv", "gt": 0.90,
  "max_age": "15s"}]}
END
"$admit" validate --format json policy.yaml >out 2>err
if grep -q yaml_not_built out; then
    skip 'policies in YAML' 'built without libyaml'
    echo "1..$count"
    exit 0
fi
shows() { # NAME LINE : standard output has exactly this line
    holds "$1" grep -qxF -e "$2" out
}
run 0 'a policy in YAML' explain policy.yaml -d consumer=c7 -d service=chat-x
shows 'both sides of a list' \
    '+- chat (request_cap of cost): no match: service is chat-x, wants chat|messages'
shows 'an absent descriptor' \
    '+- long (request_cap of cost): no match: long is absent, wants any value'
shows 'both sides of a prefix' '+- shed (pressure of cost): no match: service is chat-x, wants pre*'
run 0 'an override' explain policy.yaml -d consumer=huge
shows 'and when it holds' '|    level 7, capacity 7, asks for 1; numbers of override 1 (when consumer is big|huge, not (tier is trial))'
run 0 'what a match must not be' explain policy.yaml -d consumer=c -d service=chat -d tier=internal
shows 'has both sides' \
    '+- chat (request_cap of cost): no match: tier is internal, must not be internal'
for request in '' '-d service=chat' '-d consumer=c -d service=pretty' '-d consumer=big --cost 8' \
    '-d long=x --cost 6 -d consumer=c'; do
    # shellcheck disable=SC2086
    "$admit" explain policy.yaml $request --format json >yaml.out 2>yaml.err
    yaml_code=$?
    # shellcheck disable=SC2086
    "$admit" explain policy.json $request --format json >json.out 2>json.err
    holds "the same answer as in JSON: ${request:-nothing}" [ $? -eq $yaml_code ]
    holds "the same report as in JSON: ${request:-nothing}" cmp yaml.out json.out
done
printf 'version: t1\nrule: rate\nby: consumer\nentries:\n  c7: {capacity: 20, refill: 1}\n  c8: "off"\n' >table.yaml
run 0 'a limit table in YAML' explain policy.yaml -d consumer=c7 --cost 8 --tables table.yaml
holds 'whose numbers' grep -q 'capacity 20' out
printf 'version: t1\nrule: rate\nby: consumer\nentries:\n  c8: off\n' >table.yaml
run 3 'a table that YAML 1.1 reads otherwise' explain policy.yaml -d consumer=c --tables table.yaml
holds 'is located' grep -q '^table.yaml:5:7: error' err
printf 't_ms,consumer\n0,a\n1,a\n2,a\n3,a\n' >trace.csv
run 0 'replay' replay policy.yaml trace.csv --quiet
sed 's/yaml/json/' out >yaml.out
run 0 'replay of the same in JSON' replay policy.json trace.csv --quiet
holds 'the same report' cmp out yaml.out
printf 'version: v1\nrules:\n  - {id: no, type: request_cap, limit: 010}\n' >wrong.yaml
run 3 'a policy that YAML 1.1 reads otherwise' explain wrong.yaml
holds 'is located' grep -q '^wrong.yaml:3:10: error' err

echo "1..$count"
