#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the machine lacks is told apart from what the input is worth: exit code 6, everywhere.
# usage: environment_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"

starts() { ( ulimit -v "$1" && exec "$admit" version ) >/dev/null 2>&1; }

# The least memory in which the command begins, in steps of 512 KiB, up to 64 MiB.
least=
size=2048
while [ $size -le 65536 ]; do
    if starts $size; then
        least=$size
        break
    fi
    size=$((size + 512))
done

awk 'BEGIN {
    print "{\"version\": \"v1\", \"rules\": ["
    for (i = 0; i < 900; i++)
        printf "%s{\"id\": \"r%d\", \"type\": \"token_bucket\", \"match\": {\"service\": \"s%d*\"}, \"capacity\": 9, \"refill\": 1, \"per\": \"1s\"}\n", (i > 0 ? "," : ""), i, i
    print "]}"
}' >large.json
{
    printf '{"title": "t", "right": "r", "scenarios": [{"kind": "admission", "policy": '
    cat large.json
    printf ', "steps": [{"t": 0, "op": "admit", "d": {}, "expect": {"allow": true}}]}]}\n'
} >scenario.json
printf 't_ms,service\n0,s1\n' >trace.csv

# With more and more memory: exit code 6 until it succeeds, and never another one.
squeezed() { # NAME ARGUMENT...
    squeezed_name=$1
    shift
    if [ -z "$least" ]; then
        skip "$squeezed_name" 'the command does not begin in 64 MiB (sanitizers), or there is no ulimit -v'
        return
    fi
    lacking=0
    other=
    size=$least
    while [ $size -le $((least + 2000000)) ]; do
        (ulimit -v $size && exec "$admit" "$@") >out 2>err </dev/null
        code=$?
        [ $code -ne 0 ] || break
        [ $code -eq 6 ] || other=" $code at $size KiB"
        [ -s err ] || other=" silent at $size KiB"
        [ -z "$other" ] || break
        lacking=$((lacking + 1))
        size=$((size + 64 + size / 16))
    done
    holds "$squeezed_name: there is too little memory at first" [ $lacking -gt 0 ]
    holds "$squeezed_name: that exits with 6 and says so:$other" [ -z "$other" ]
    holds "$squeezed_name: in the end there is enough" [ $code -eq 0 ]
}
squeezed validate validate large.json
squeezed lint lint large.json
squeezed fmt fmt large.json
squeezed explain explain large.json -d service=s1
squeezed replay replay large.json trace.csv --quiet

echo "1..$count"
