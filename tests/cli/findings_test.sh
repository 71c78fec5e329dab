#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How findings are shown: typical mistakes as golden files, and lines that are hard to show.
# usage: findings_test.sh ADMIT SOURCE_ROOT      prints TAP
# A golden file is the standard error of "admit validate NAME.json" in tests/policies/reject.
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
root=$2
golden=$root/tests/cli/golden
. "$(dirname "$0")/tap.sh"

# ---- typical mistakes --------------------------------------------------------------------------

for expected in "$golden"/*.txt; do
    name=$(basename "$expected" .txt)
    cp "$root/tests/policies/reject/$name.json" .
    run 3 "$name" validate "$name.json"
    if cmp -s err "$expected"; then
        result ok "$name is shown as in its golden file"
    else
        diff "$expected" err >out
        result 'not ok' "$name is shown as in its golden file" "$expected differs"
    fi
done
holds 'there are ten golden files' [ "$(ls "$golden"/*.txt | wc -l)" -ge 10 ]

# ---- lines that are hard to show ---------------------------------------------------------------

# policy FILE TEXT : a policy of one rule, with TEXT in front of a limit that is no number
policy() {
    printf '{"version": "v1", "rules": [\n{"id": "r", "type": "request_cap",%b "limit": "x"}]}\n' "$2" >"$1"
}
mark() { # COLUMN : the mark stands in this column, and its first character is below the value
    awk -v column="$1" '/\^/ { exit index($0, "^") == column ? 0 : 1 }' err
}

policy plain.json ''
run 3 'a plain line' validate plain.json
holds 'has its mark below the value' mark 53
policy tab.json '\t\t\t'
run 3 'a line with tabs' validate tab.json
holds 'has its mark three columns on: a tab is shown as a blank' mark 56
holds 'and no tab is shown' [ "$(tr -cd '\t' <err | wc -c)" -eq 0 ]
# A member of 17 columns and its value: bytes, characters and columns all differ.
policy wide.json ' "description": "\0346\0227\0245\0346\0234\0254",'
run 3 'a line with wide characters' validate wide.json
holds 'has its mark behind four columns of two characters' mark $((53 + 23))
policy combining.json ' "description": "e\0314\0201",'
run 3 'a line with a combining character' validate combining.json
holds 'has its mark behind one column of two characters' mark $((53 + 20))
# Two columns each for a rocket, a watch and a tick, none for marks of Arabic and of Thai.
policy emoji.json ' "description": "\0360\0237\0232\0200\0342\0214\0232\0342\0234\0205",'
run 3 'a line with pictures' validate emoji.json
holds 'has its mark behind six columns of three characters' mark $((53 + 25))
policy marks.json ' "description": "\0330\0247\0331\0216\0340\0270\0201\0340\0270\0264",'
run 3 'a line with marks of other scripts' validate marks.json
holds 'has its mark behind two columns of four characters' mark $((53 + 21))
policy narrow.json ' "description": "\0303\0251",'
run 3 'a line with an accent' validate narrow.json
holds 'has its mark behind one column of one character' mark $((53 + 20))
long=$(awk 'BEGIN { for (i = 0; i < 4000; i++) printf "z" }')
policy long.json " \"description\": \"$long\","
run 3 'a line of 4000 characters' validate long.json
holds 'is cut to less than 120' awk 'length > 119 { bad = 1 } END { exit bad }' err
holds 'around the value' grep -q '"limit": "x"' err
printf '{"version": "v1", "rules": [\r\n{"id": "r", "type": "request_cap", "limit": "x"}]}\r\n' >crlf.json
run 3 'lines that end in CR and LF' validate crlf.json
holds 'keep their mark' mark 53
holds 'and show no CR' [ "$(tr -cd '\r' <err | wc -c)" -eq 0 ]
printf '{"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 1}]' >cut.json
run 3 'a text that ends too early' validate cut.json
holds 'has its mark behind the end' grep -q '1:76: error\[ADM-D-101\]' err

# ---- nothing of a document acts on a terminal --------------------------------------------------

hostile='\\\\u001b[31m\0302\0233 2J\0342\0200\0256\0342\0201\0246\0177'
printf '%b' "{\"version\": \"v1\", \"$hostile\": 1, \"rules\": [{\"id\": \"r$hostile\", \"type\": \"request_cap\", \"limit\": 1}]}" >hostile.json
run 3 'a policy that would colour the terminal' validate hostile.json
harmless() {
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$1" &&
        ! LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$1" &&
        ! LC_ALL=C grep -q "$(printf '\342\200[\252-\256]')" "$1" &&
        ! LC_ALL=C grep -q "$(printf '\342\201[\246-\251]')" "$1"
}
holds 'is shown without control and direction characters' harmless err
holds 'though it has some' [ "$(LC_ALL=C grep -c "$(printf '\302\233')" hostile.json)" -eq 1 ]
printf '{"version": "v1", "\033[31m": 1}' >raw.json
run 3 'a raw escape' validate raw.json
holds 'is shown without it' harmless err
cp plain.json "$(printf 'x\033[31m.json')"
run 3 'a file name with an escape' validate "$(printf 'x\033[31m.json')"
holds 'is shown without it' harmless err

# ---- the last line -----------------------------------------------------------------------------

run 3 'one error' validate plain.json
holds 'is counted' last '1 error; admit explain-code ADM-D-201 says more' err
run 3 'the errors of two files' validate plain.json tab.json
holds 'are counted together' last '2 errors; admit explain-code ADM-D-201 says more' err
holds 'in one line' [ "$(grep -c 'says more$' err)" -eq 1 ]
cp "$root/tests/policies/reject/duplicate-allowance-id.json" both.json
run 3 'an error behind a warning' validate both.json
holds 'is the one to ask about, and notes do not count' \
    last '1 error, 1 warning; admit explain-code ADM-D-236 says more' err
cp "$root/tests/policies/accept/unreachable-override.json" warning.json
run 0 'a warning' validate warning.json
holds 'is counted' last '1 warning; admit explain-code ADM-D-304 says more' err
run 3 'explain with a policy that is not valid' explain plain.json
holds 'counts too' last '1 error; admit explain-code ADM-D-201 says more' err
printf '{"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 1}]}' >fine.json
run 0 'a policy without findings' validate fine.json
holds 'has no such line' empty err

# ---- the nearest word ---------------------------------------------------------------------------

nearest() { # WORD NEAREST : a member of a rule, and what it is taken for; - : for nothing
    printf '{"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 1, "%s": 1}]}' "$1" >word.json
    run 3 "\"$1\" as a member" validate word.json
    if [ "$2" = - ]; then
        holds 'is like no other' sh -c '! grep -q "did you mean" err'
    else
        holds "is taken for $2" grep -q "help: did you mean \"$2\"?" err
    fi
}
nearest x -
nearest zz -
nearest ty -
nearest on -
nearest perr -
nearest mtach match
nearest Match match
nearest MODE mode
nearest unti unit

# ---- as JSON -----------------------------------------------------------------------------------

cp "$root/tests/policies/reject/duplicate-rule-id.json" twice.json
run 3 'a finding with a note as JSON' validate --format json twice.json
cp out notes.json
json 'it is JSON' notes.json
holds 'nothing on standard error' empty err
holds 'the finding has a length' grep -q '"severity":"error".*"line":5,"column":12,"length":3' notes.json
holds 'and the note behind it' grep -q '"severity":"note","code":"ADM-D-236".*"line":4,"column":12,"length":3' notes.json

"$admit" validate --format json nowhere.json fine.json >out 2>err
holds 'a file that cannot be read exits with 2' [ $? -eq 2 ]
cp out unread.json
json 'that is JSON' unread.json
holds 'and it is in the list' grep -q '"file":"nowhere.json","valid":false,"error":' unread.json
holds 'as well as the other one' grep -q '"file":"fine.json","valid":true' unread.json
"$admit" validate - - <fine.json >out 2>err
holds 'standard input twice exits with 2' [ $? -eq 2 ]
holds 'says so' grep -q 'standard input can only be read once' err
holds 'and is not taken for an empty document' sh -c '! grep -q ADM-D-102 err'

# ---- a document inside of a scenario file ------------------------------------------------------

cat >scenario.json <<'END'
{"scenarios": [
 {"kind": "admission", "policy": {"version": "v1", "rules": [
  {"id": "r", "type": "request_cap", "limit": "5"}]},
  "steps": [{"t": 0, "op": "admit", "d": {}, "cost": 1}]}]}
END
run 4 'a policy inside of a scenario' test scenario.json
holds 'is located in the file' grep -q 'scenario.json:3:47: error\[ADM-D-201\]' out
holds 'and its line is shown' grep -q '3 |   {"id": "r", "type": "request_cap", "limit": "5"}\]},$' out

echo "1..$count"
