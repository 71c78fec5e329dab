#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The quickstart as a newcomer runs it: what it prints, from where, and what it says when it cannot.
#
#       quickstart.sh SOURCE-ROOT           TAP on standard output
set -u
root=$1
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

number=0
failed=0
ok() { # ok STATUS WHAT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=$((failed + 1))
        sed 's/^/# /' "$dir/err"
    fi
}

sh "$root/examples/quickstart.sh" >"$dir/out" 2>"$dir/err"
ok $? "it runs"
for reason in allowed rate_exceeded concurrency_exceeded quota_exceeded unsatisfiable cost_above_cap no_policy \
    missing_descriptor missing_amount key_space_full; do
    grep -q "^--- first $reason: " "$dir/out"
    ok $? "it shows the first $reason"
    grep -Eq "^$reason +[1-9][0-9]* +[0-9.]+%" "$dir/out"
    ok $? "it counts $reason"
done
grep -q '429 Too Many Requests' "$dir/out"
ok $? "it shows an HTTP answer 429"
grep -q '503 Service Unavailable' "$dir/out"
ok $? "it shows an HTTP answer 503"

# What README.md shows, between its two marks, is what comes out; "..." stands for lines left out.
sed -n '/<!-- quickstart -->/,/<!-- end -->/p' "$root/README.md" | grep -vE '^(<!--|```|\.\.\.$|$)' >"$dir/shown"
[ "$(wc -l <"$dir/shown")" -ge 10 ] && ! grep -vxFf "$dir/out" "$dir/shown" >"$dir/err"
ok $? "README.md shows lines that it really prints"

(cd "$dir" && sh "$root/examples/quickstart.sh") >"$dir/again" 2>"$dir/err"
ok $? "it runs from another folder"
# A lease is unguessable, and the decision's id follows from it.
for run in out again; do
    grep -v '^X-Admission-Decision-Id: ' "$dir/$run" >"$dir/$run.same"
done
diff "$dir/out.same" "$dir/again.same" >"$dir/differs"
ok $? "it prints the same again"
[ ! -s "$dir/err" ]
ok $? "and nothing else"

head -n 50 "$root/examples/traces/sample-azure-style.csv" >"$dir/short.csv"
(cd "$dir" && sh "$root/examples/quickstart.sh" --trace short.csv) >"$dir/short" 2>"$dir/err"
ok $? "it takes another trace"
grep -q ': 49 requests in ' "$dir/short"
ok $? "and replays that one"

sh "$root/examples/quickstart.sh" --trace "$dir/missing.csv" >"$dir/none" 2>"$dir/err"
[ $? -eq 1 ] && grep -q 'cannot read .*missing\.csv' "$dir/err" && [ ! -s "$dir/none" ]
ok $? "it says that a trace cannot be read"
sh "$root/examples/quickstart.sh" --trace >"$dir/none" 2>"$dir/err"
[ $? -eq 1 ] && grep -q 'needs a file' "$dir/err"
ok $? "it says that --trace needs a file"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2026-01-05 10:00:00.0,12,many\n' >"$dir/bad.csv"
sh "$root/examples/quickstart.sh" --trace "$dir/bad.csv" >"$dir/none" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'bad\.csv:2: ' "$dir/err"
ok $? "it names the line of a trace that is wrong"

# A path with a blank, and a tree that cannot be written: a file in the way stops root as well.
tree="$dir/my tree"
mkdir "$tree" "$dir/tmp"
for part in "$root"/*; do
    [ "${part##*/}" = build ] || cp -R "$part" "$tree/"
done
: >"$tree/build"
TMPDIR=$dir/tmp sh "$tree/examples/quickstart.sh" >"$dir/elsewhere" 2>"$dir/err"
ok $? "it runs in a tree that cannot be written"
grep -q 'cannot be written' "$dir/err" && grep -v '^X-Admission-Decision-Id: ' "$dir/elsewhere" | diff "$dir/out.same" - >"$dir/differs"
ok $? "and says so, and prints the same"
[ -z "$(ls -A "$dir/tmp")" ] && [ -f "$tree/build" ]
ok $? "and leaves nothing behind"

# A build folder knows its place by heart.
rm "$tree/build"
mkdir -p "$tree/build/quickstart"
echo /before/it/was/moved >"$tree/build/quickstart/source-root"
echo 'include /before/it/was/moved/rules.ninja' >"$tree/build/quickstart/build.ninja"
sh "$tree/examples/quickstart.sh" >"$dir/moved" 2>"$dir/err"
ok $? "it runs in a tree that was moved"

echo "1..$number"
[ "$failed" -eq 0 ]
