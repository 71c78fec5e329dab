#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every order of the steps of two or three threads in lib/state/transaction.h, by the model checker spin, and
# the faults that it has to find: transaction.pml beside this file says what the model is and what it leaves out.
#
#       sh tests/model-check/run.sh [COMPILER...]           TAP on standard output [cc]
#
# One case after the other: some two minutes of one processor, less than 1.5 GiB each. Skips without spin, without
# a compiler and without that much memory.
set -u
model=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/transaction.pml
[ $# -gt 0 ] || set -- cc
compiler=$*
if ! command -v spin >/dev/null 2>&1; then
    echo "1..0 # SKIP spin is not installed (Debian package spin)"
    exit 0
fi
if ! command -v "$1" >/dev/null 2>&1; then
    echo "1..0 # SKIP there is no compiler $1 for what spin writes"
    exit 0
fi
available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo 2>/dev/null)
if [ "${available:-2000000}" -lt 1600000 ]; then
    echo "1..0 # SKIP less than 1.6 GB of memory is free"
    exit 0
fi
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 99
number=0
failed=0

verdict() { # verdict STATUS WHAT: shows what was said when it is not as it must be
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        grep -v '^Depth=' output | head -n 60 | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

# explore DEPTH DEFINITION...: what is said goes to the file "output".
explore() {
    depth=$1
    shift
    rm -f pan pan.* ./*.trail
    # -o3: no statements are merged, or those that are never reached would not all be listed. Without -w the C
    # compiler complains about spin's way to write C.
    spin "-P$compiler -E -x c" -o3 -a "$@" "$model" >output 2>&1 &&
        $compiler $optimise -w -DSAFETY -DMEMLIM=1450 -o pan pan.c >>output 2>&1 &&
        ./pan "-m$depth" >>output 2>&1
}

# Did it see all there is? The number of states that are stored in full, and no word of a limit.
is_complete() {
    grep -q '^Full statespace search' output && ! grep -q '^Bit statespace' output &&
        grep -q 'assertion violations[^+-]*+' output && grep -q 'invalid end states[^+-]*+' output &&
        ! grep -qE 'Search not completed|max search depth too small|out of memory|MEMLIM|aborting|hash-compact' output &&
        [ "$(states)" -gt 0 ]
}
states() { sed -n 's/^ *\([0-9][0-9]*\) states, stored$/\1/p' output | grep . || echo 0; }

# Nothing is wrong in any order.
sound() {
    what=$1
    shift
    optimise=-O1
    explore 100000 "$@" && is_complete && grep -q 'errors: 0$' output
    result=$?
    verdict "$result" "$what: $(states) states, every one of them sound"
    [ "$result" -eq 0 ] || return
    # The statements that it never came to, by line.
    sed -n '/^unreached in proctype thread/,/^unreached in init/s/^.*transaction\.pml:\([0-9]*\), state.*/\1/p' output |
        sort -u >unreached
    [ -e reached_by_none ] || seq 1 "$(wc -l <"$model")" | sort >reached_by_none
    comm -12 reached_by_none unreached >both && mv both reached_by_none
}

# The fault breaks something in some order.
found() {
    what=$1
    shift
    optimise=-O0
    explore 100000 "$@"
    grep -qE '^pan:1: (assertion violated|invalid end state)' output && grep -qE 'errors: [1-9][0-9]*$' output
    verdict $? "found: $what"
}

sound "two hard attempts for two words" -DTAKERS=2 -DHELD=2 -DFAST=0
sound "two that are fast once and then hard" -DTAKERS=2 -DHELD=2 -DFAST=1
sound "hard attempts, and the word comes back" -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
sound "fast once and then hard, and the word comes back" -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=1
sound "a hard one beside fast ones" -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=2 -DTAKE_FAST=0
sound "two words are given back and taken by hard attempts" -DTAKEN=1 -DTAKERS=1 -DGIVERS=1 -DHELD=2 -DFAST=0
sound "two words are given back and taken" -DTAKEN=1 -DTAKERS=1 -DGIVERS=1 -DHELD=2 -DFAST=2
sound "contexts that are used by one thread after the other" -DTAKERS=2 -DHELD=1 -DFAST=1 -DSHARED=1
sound "a hard attempt while the guard changes" -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=0
sound "fast attempts while the guard changes" -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=2
sound "a refusal while the guard changes" -DTAKEN=1 -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=1
sound "an attempt while two change the guard" -DTAKERS=1 -DCHANGERS=2 -DHELD=1 -DFAST=2
sound "a hard attempt while the guard changes and the word goes and comes back" \
    -DTAKERS=1 -DCHANGERS=1 -DOTHERS=2 -DHELD=1 -DFAST=0
sound "two hard attempts while others take the word" -DTAKERS=2 -DOTHERS=1 -DHELD=1 -DFAST=0
sound "a reader while hard attempts give and take" -DTAKEN=1 -DREADERS=1 -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
sound "a reader while attempts give and take" -DTAKEN=1 -DREADERS=1 -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=1
sound "a reader while words and the guard change" -DREADERS=1 -DGIVERS=1 -DCHANGERS=1 -DHELD=1 -DFAST=1

# What is in the model and never happens in it would be said of nothing.
cp reached_by_none output 2>/dev/null
[ -e reached_by_none ] && [ ! -s reached_by_none ]
verdict $? "every statement of the model is reached in one of these"

found "a conditional swap that does not look at the status" -DFAULT_NO_STATUS -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
found "an attempt that does not look at the guard" -DFAULT_NO_GUARD -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=2
found "a refusal that does not look at the guard" -DFAULT_REFUSED_ANYHOW -DTAKEN=1 -DTAKERS=1 -DCHANGERS=1 -DHELD=1 -DFAST=1
found "a hard refusal that does not look at the guard" -DFAULT_HARD_REFUSED_ANYHOW \
    -DTAKEN=1 -DTAKERS=1 -DCHANGERS=1 -DHELD=1 -DFAST=0
found "a change of the guard that aborts nobody" -DFAULT_NO_ABORT -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=2
found "references that stay after a commit" -DFAULT_NO_TAKE_OUT -DTAKERS=2 -DHELD=2 -DFAST=1
found "new values that are put back after an abort" -DFAULT_NEW_VALUES -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=2
found "an attempt that was aborted and believes it committed" -DFAULT_ABORTED_COMMITS -DTAKERS=1 -DCHANGERS=1 -DHELD=2 -DFAST=1
found "two attempts of one number" -DFAULT_ONE_NUMBER -DTAKERS=2 -DHELD=2 -DFAST=2
found "notes with the number of the attempt before" -DFAULT_OLD_NOTES \
    -DTAKEN=1 -DREADERS=1 -DGIVERS=1 -DCHANGERS=1 -DHELD=1 -DFAST=1
found "a helper that does not abort what cannot succeed" -DFAULT_BLIND_HELPER -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
found "references of a hard attempt that stay" -DFAULT_NO_CLEAN -DTAKERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
found "what a helper was putting in is left when a context is used again" -DFAULT_LEFT \
    -DTAKERS=1 -DCHANGERS=1 -DOTHERS=2 -DHELD=1 -DFAST=0
found "a reader that trusts an attempt that is not decided" -DFAULT_READS_UNDECIDED -DREADERS=1 -DGIVERS=1 -DHELD=1 -DFAST=1
found "a reader that takes a free context for an aborted attempt" -DFAULT_READS_FREE -DREADERS=1 -DGIVERS=1 -DHELD=1 -DFAST=1
found "a reader that does not look whose entry it has read" -DFAULT_READS_OTHER -DREADERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0
found "a reader that does not look whose swap it has read" -DFAULT_READS_OTHER_SWAP -DREADERS=1 -DGIVERS=1 -DHELD=1 -DFAST=0

# An exploration that was cut short is none.
optimise=-O0
explore 50 -DTAKERS=1 -DCHANGERS=1 -DHELD=1 -DFAST=1
! is_complete && [ "$(states)" -gt 0 ]
verdict $? "an exploration that was cut short is not taken for one that was not"

echo "1..$number"
[ "$failed" -eq 0 ]
