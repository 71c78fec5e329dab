#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit(1) and the binary name the same commands and flags.
# usage: manual_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
root=$(cd "$2" && pwd)
. "$(dirname "$0")/tap.sh"
page=$root/docs/man/admit.1.scd

run 0 'help' help
sed -n '/^Commands:$/,/^$/s/^  \([a-z-]*\) .*/\1/p' out | sort >commands
holds 'there are commands' [ "$(wc -l <commands)" -ge 7 ]
sed -n '/^# SYNOPSIS$/,/^# DESCRIPTION$/s/^\*admit \([a-z-]*\)\*.*/\1/p' "$page" | sort -u >synopsis
holds 'the synopsis has the same commands' cmp commands synopsis
sed -n '/^# DESCRIPTION$/,/^# OPTIONS$/s/^\(\*[a-z*, -]*\*\)$/\1/p' "$page" | tr ',' '\n' |
    tr -d '* ' | sort -u >described
holds "the description has the same commands: $(comm -3 commands described | tr -d '\t' | tr '\n' ' ')" \
    cmp commands described

while IFS= read -r command; do
    "$admit" help "$command"
done <commands | sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' | sort -u >flags
holds 'there are flags' [ "$(wc -l <flags)" -ge 20 ]
grep -o '\*--[a-z-]*\*' "$page" | tr -d '*' | sort -u >named
holds "no flag is missing from the page: $(comm -23 flags named | tr '\n' ' ')" \
    [ -z "$(comm -23 flags named)" ]
# --version is of admit itself.
echo --version >apart
holds "the page names no flag that is not there: $(comm -13 flags named | comm -23 - apart | tr '\n' ' ')" \
    [ -z "$(comm -13 flags named | comm -23 - apart)" ]
run 0 'help' help
for code in 0 1 2 3 4 5 6; do
    holds "the page has exit code $code" grep -q "^\*$code\*$" "$page"
    holds "and help" grep -q "[ ,]$code [a-z]" out
done

echo "1..$count"
