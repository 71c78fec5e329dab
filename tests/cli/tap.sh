# SPDX-License-Identifier: Apache-2.0
# What the tests of the command share; sourced, with $admit set to an absolute path. Works in a
# folder of its own; "run" leaves the streams in the files out and err.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset NO_COLOR
count=0

result() { # RESULT NAME [DETAIL]
    count=$((count + 1))
    echo "$1 $count - $2"
    [ "$1" = ok ] || {
        echo "#   $3"
        echo "#   standard output:"
        head -n 20 out 2>/dev/null | sed 's/^/#     /'
        echo "#   standard error:"
        head -n 20 err 2>/dev/null | sed 's/^/#     /'
    }
}

skip() { # NAME REASON
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

run() { # CODE NAME ARGUMENT... : runs the command, leaves out and err
    want=$1
    name=$2
    shift 2
    "$admit" "$@" >out 2>err </dev/null
    code=$?
    if [ "$code" -eq "$want" ]; then
        result ok "$name"
    else
        result 'not ok' "$name" "exit code $code instead of $want"
    fi
}

holds() { # NAME COMMAND... : the command succeeds
    name=$1
    shift
    if "$@" >/dev/null 2>&1; then
        result ok "$name"
    else
        result 'not ok' "$name" "does not hold: $*"
    fi
}

empty() { [ ! -s "$1" ]; }
lines() { [ "$(wc -l <"$2")" -eq "$1" ]; }
last() { [ "$(tail -n 1 "$2")" = "$1" ]; }
plain() { ! LC_ALL=C grep -q "$(printf '\033')" out err; }

json() { # NAME FILE
    if command -v python3 >/dev/null 2>&1; then
        holds "$1" python3 -m json.tool "$2"
    else
        skip "$1" 'python3 is not here'
    fi
}
