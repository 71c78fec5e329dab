#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit replay: what is wrong with its flags is named.
# usage: replay_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"

echo '{"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 5}]}' >policy.json
printf 't_ms,service\n0,chat\n' >trace.csv
refuses() { # NAME WORDS ARGUMENT... : usage error that says it, and no data
    refuses_name=$1
    words=$2
    shift 2
    run 2 "$refuses_name" replay policy.json trace.csv --quiet "$@"
    holds "$refuses_name: says why" grep -qF -e "$words" err
    holds "$refuses_name: no data" empty out
}
long=$(printf '%0257d' 0)

run 0 'descriptors' replay policy.json trace.csv --quiet -d consumer=a -d service=other
refuses 'an empty value' "descriptor 'user' has an empty value" -d consumer=a -d user=
refuses 'an empty key' "--descriptor takes KEY=VALUE, not '=x'" -d =x
refuses 'a long key' 'a key has 1 to 64 bytes, this one has 257' -d "$long=x"
refuses 'a long value' "descriptor 'user': a value has at most 256 bytes, this one has 257" \
    -d "user=$long"
refuses 'a key that is there twice' "descriptor 'user' is given twice" -d user=a -d user=b
refuses 'no equals sign' "--descriptor takes KEY=VALUE, not 'user'" -d user
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
    set -- "$@" -d "key$i=v"
done
refuses 'one too many' "descriptor 'key17' is one too many" "$@"
run 2 'more than a request may have, with those of the row' replay policy.json trace.csv --quiet \
    -d a=1 -d b=1 -d c=1 -d d=1 -d e=1 -d f=1 -d g=1 -d h=1 -d i=1 -d j=1 -d k=1 -d l=1 -d m=1 \
    -d n=1 -d o=1 -d p=1
holds 'the row is named' grep -q '^trace.csv:2: .*more than 16 descriptors' err

# What the clients read: whether trying again soon can help. One row after another: admitted, a short wait, no wait.
cat >rate.json <<'END'
{"version": "v1", "rules": [
  {"id": "slow", "type": "token_bucket", "match": {"service": "slow"}, "capacity": 10, "refill": 1, "per": "1h"},
  {"id": "fast", "type": "token_bucket", "match": {"service": "fast"}, "capacity": 10, "refill": 1, "per": "1s"}]}
END
shows() { # NAME ROWS REASON COUNT: how often the first answer of the reason says x-should-retry: false
    printf 't_ms,service,cost\n%b' "$2" >rows.csv
    run 0 "$1" replay rate.json rows.csv --quiet --show-kinds
    holds "$1: the answer" test "$(sed -n "/^--- first $3:/,/^{/p" out | grep -c '^x-should-retry: false$')" = "$4"
    holds "$1: it is there" grep -q "^--- first $3:" out
}
shows 'a short wait' '0,fast,10\n0,fast,1\n' rate_exceeded 0
shows 'a wait of an hour' '0,slow,10\n0,slow,1\n' rate_exceeded 1
shows 'what never fits' '0,fast,11\n' unsatisfiable 1
shows 'no policy' '0,other,1\n' no_policy 1
shows 'an admitted one' '0,fast,1\n' allowed 0

echo "1..$count"
