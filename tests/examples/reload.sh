#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Drive examples/policy_file: SIGHUP with a good file, bad ones and no file.  reload.sh PROGRAM
#
# Every step waits for the answer to the step before, so nothing depends on time. TAP on standard output.
set -u
program=$1
dir=$(mktemp -d) || exit 99
pid=
cleanup() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

number=0
failed=0
ok() { # ok CONDITION-STATUS WHAT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=$((failed + 1))
    fi
}

policy() { # policy VERSION CAPACITY
    cat <<TEXT
{"version": "$1", "rules": [
  {"id": "per-tenant", "type": "token_bucket", "partition_by": ["tenant"],
   "capacity": $2, "refill": 1, "per": "366d"}
]}
TEXT
}

line=
next() { # next PATTERN WHAT: the next line that the program prints must fit
    line=
    IFS= read -r line <&4
    # shellcheck disable=SC2254
    case $line in
    $1) ok 0 "$2" ;;
    *) ok 1 "$2"; echo "# found: $line" ;;
    esac
}
ask() { printf '%s\n' "$1" >&3; }

# A program that has no policy at all must not start.
policy one '"many"' >"$dir/bad.json"
"$program" "$dir/bad.json" </dev/null >"$dir/out" 2>&1
[ $? -eq 1 ]
ok $? "it does not start without a valid policy"
grep -q 'bad\.json:3:[0-9]*: error\[ADM-D-[0-9]*\]: /rules/0/capacity: ' "$dir/out"
ok $? "it names the file, the line and the member"

policy one 5 >"$dir/policy.json"
mkfifo "$dir/in" "$dir/out.fifo"
"$program" "$dir/policy.json" <"$dir/in" >"$dir/out.fifo" 2>&1 &
pid=$!
exec 3>"$dir/in" 4<"$dir/out.fifo"

next 'ready: version one' "it starts with the policy of the file"
ask 'tenant=acme cost=5'
next 'allow allowed by version one' "the whole bucket is spent"
ask 'tenant=acme'
next 'deny rate_exceeded by version one, rule per-tenant, retry in *' "and nothing is left"

policy two 3 >"$dir/policy.json"
kill -HUP "$pid"
next 'reloaded: version two' "SIGHUP with a good file puts it in force"
ask 'tenant=acme'
next 'deny rate_exceeded by version two, *' "a reload refills nothing (law L9)"
ask 'tenant=other cost=4'
next 'deny unsatisfiable by version two, rule per-tenant' "the new capacity is in force"
ask 'tenant=other cost=3'
next 'allow allowed by version two' "for a tenant never seen, too"

printf '{"version": "three", "rules": [{"id": "x", "type": "token_bucket", "capacty": 1}]}\n' >"$dir/policy.json"
kill -HUP "$pid"
next "*/policy.json: *" "SIGHUP with a bad file says so"
seen=
while IFS= read -r line <&4; do
    case $line in
    kept:* | reloaded:*) break ;;
    *capacty*capacity* | *capacity*capacty*) seen=yes ;;
    esac
done
[ "$line" = "kept: version two" ]
ok $? "the policy in force stays"
[ -n "$seen" ]
ok $? "the misspelt member is named, with the nearest legal word"
ask 'tenant=third cost=3'
next 'allow allowed by version two' "and decides"

policy two 6 >"$dir/policy.json"
kill -HUP "$pid"
next "*/policy.json: *" "the same version with other content is refused"
next 'kept: version two' "and the policy in force stays"

rm "$dir/policy.json"
kill -HUP "$pid"
next "*/policy.json: *" "SIGHUP without a file says so"
next 'kept: version two' "and the policy in force stays, too"

: >"$dir/policy.json"
kill -HUP "$pid"
while IFS= read -r line <&4; do
    case $line in kept:* | reloaded:*) break ;; esac
done
[ "$line" = "kept: version two" ]
ok $? "an empty file changes nothing"

policy four 9 >"$dir/policy.json"
kill -HUP "$pid"
next 'reloaded: version four' "a good file is taken after all the bad ones"
ask 'tenant=fourth cost=4'
next 'deny rate_exceeded by version four, *' "a raised capacity adds no tokens (law L9)"
ask 'nonsense'
next 'expected key=value words' "a line that is no request is answered"
ask 'tenant=acme cost=0'
next 'no decision: *' "a cost out of range is no decision"
ask 'consumer=acme'
next 'deny missing_descriptor by version four, rule per-tenant' "a missing descriptor fails closed"

exec 3>&-
wait "$pid"
ok $? "it ends with its input"
pid=
echo "1..$number"
[ "$failed" -eq 0 ]
