#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# admit completion, in the shells themselves.
# usage: completion_test.sh ADMIT SOURCE_ROOT      prints TAP
set -u
case $1 in
/*) admit=$1 ;;
*) admit=$PWD/$1 ;;
esac
. "$(dirname "$0")/tap.sh"
PATH=$(dirname "$admit"):$PATH
run 2 'no shell' completion
run 2 'a shell that is none' completion tcsh
run 2 'a mistyped shell' completion bahs
holds 'the nearest one is named' grep -q 'did you mean bash' err
for shell in bash zsh fish; do
    run 0 "for $shell" completion $shell
    cp out completion.$shell
done
mkdir folder
touch policy.json policy.yaml notes.txt trace.csv 'two words.json'

offers() { # NAME WORD... : all of them are lines of out
    offers_name=$1
    shift
    offers_missing=
    for word in "$@"; do
        grep -qxF -e "$word" out || offers_missing="$offers_missing $word"
    done
    if [ -z "$offers_missing" ]; then
        result ok "$offers_name"
    else
        result 'not ok' "$offers_name" "not offered:$offers_missing"
    fi
}
lacks() { # NAME WORD : it is no line of out
    if grep -qxF -e "$2" out; then
        result 'not ok' "$1" "offered: $2"
    else
        result ok "$1"
    fi
}

cat >ask.bash <<'END'
source ./completion.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_admit
for word in "${COMPREPLY[@]}"; do printf '%s\n' "$word"; done
END
cat >ask.fish <<'END'
source ./completion.fish
complete -C "$argv[1]" | string replace -r '\t.*' ''
END
# zsh completes only in a terminal: one is made with zpty, and the matches are caught on their way
# in.
cat >ask.zsh <<'END'
zmodload zsh/zpty || exit 9
zpty z zsh -f -i
zpty -w z "PS1= ; unsetopt beep; fpath=($PWD/functions \$fpath); autoload -U compinit; compinit -u -d $PWD/dump"
zpty -w z "compadd () { local -a got; builtin compadd -O got \"\$@\"; print -lr -- \$got >>$PWD/matches; builtin compadd \"\$@\" }"
zpty -w z "ask () { zle complete-word; print done >$PWD/finished; exit }; zle -C complete-word complete-word _main_complete; zle -N ask; bindkey '^X' ask; print ready >$PWD/ready"
repeat 500; do [[ -e ready ]] && break; zpty -r -t z line; zselect -t 2 2>/dev/null || sleep 0.02; done
[[ -e ready ]] || exit 9
zpty -w -n z "$1"$'\C-x'
repeat 500; do [[ -e finished ]] && break; zpty -r -t z line; zselect -t 2 2>/dev/null || sleep 0.02; done
zpty -d z
[[ -e finished ]] || exit 9
END
mkdir functions
cp completion.zsh functions/_admit

ask() { # SHELL LINE : what is offered at the end of the line
    case $1 in
    bash)
        set -f
        # A line that ends in a blank asks for a new word.
        case $2 in
        *' ') bash --norc ask.bash $2 '' >out 2>err ;;
        *) bash --norc ask.bash $2 >out 2>err ;;
        esac
        set +f
        ;;
    fish)
        fish --no-config ask.fish "$2" >out 2>err
        # --flag=value is offered as a whole
        sed -i 's/^--[a-z-]*=//' out
        ;;
    zsh)
        rm -f matches finished ready
        timeout 30 zsh -f ask.zsh "$2" >log 2>err || echo '# zsh did not answer' >>err
        sort -u matches >out 2>/dev/null
        ;;
    esac
}

for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null 2>&1; then
        skip "completion in $shell" "$shell is not here"
        continue
    fi
    ask $shell 'admit '
    offers "$shell: commands" validate test explain replay completion version help
    ask $shell 'admit exp'
    lacks "$shell: only commands that begin so" validate
    offers "$shell: and these" explain explain-code
    ask $shell 'admit explain --'
    offers "$shell: flags" --request --only --ascii --format --cost
    lacks "$shell: none of another command" --tenants
    ask $shell 'admit explain --only '
    offers "$shell: choices" all matched denying
    lacks "$shell: no files among them" policy.json
    ask $shell 'admit replay --backend '
    offers "$shell: choices of another flag" plain deferring
    ask $shell 'admit explain --expect '
    offers "$shell: reasons" allow deny rate_exceeded key_space_full
    ask $shell 'admit validate '
    offers "$shell: policies" policy.json policy.yaml
    ask $shell 'admit replay policy.json '
    offers "$shell: traces" trace.csv
    ask $shell 'admit explain-code '
    offers "$shell: codes" ADM-D-202 ADM-D-214 duplicate_key
    ask $shell 'admit completion '
    offers "$shell: shells" bash zsh fish
    ask $shell 'admit help '
    offers "$shell: commands to help with" validate replay
done
if command -v bash >/dev/null 2>&1; then
    ask bash 'admit explain --only = ma'
    offers 'bash: a choice behind =' matched
    lacks 'bash: and no other' all
    ask bash 'admit validate '
    offers 'bash: files with blanks, folders' 'two words.json' folder
    lacks 'bash: no other files' notes.txt
fi

echo "1..$count"
