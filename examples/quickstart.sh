#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to decisions: install what is missing, build, replay a trace through a policy.
#
#       sh examples/quickstart.sh [--trace FILE] [option of "admit replay" ...]
#
# Prints totals, then the first decision of each kind with its HTTP answer. Quiet until then, unless something fails.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
trace=examples/traces/sample-azure-style.csv

given=
case ${1:-} in
--trace)
    [ $# -ge 2 ] || { echo "quickstart: --trace needs a file" >&2; exit 1; }
    given=$2
    shift 2
    ;;
--trace=*)
    given=${1#--trace=}
    shift
    ;;
-h | --help)
    sed -n '3,7s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
case $given in
'') ;;
/*) trace=$given ;;
*) trace=$PWD/$given ;;
esac
cd "$root"
[ -r "$trace" ] || { echo "quickstart: cannot read $trace" >&2; exit 1; }

# In the tree, where the next run finds it; somewhere else when the tree is another user's, or read-only.
build=build/quickstart
log=build/quickstart.log
temporary=
if ! mkdir -p "$build" 2>/dev/null || [ ! -w build ] || [ ! -w "$build" ] || { [ -e "$log" ] && [ ! -w "$log" ]; }; then
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    trap 'exit 1' HUP INT TERM
    build=$temporary/quickstart
    log=$temporary/quickstart.log
fi

. examples/install_packages.sh
install_missing "$log" compiler meson ninja pkg-config libxxhash libyaml || exit 1

# "quiet COMMAND": no output, unless it fails.
quiet() {
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "quickstart: this failed: $*" >&2
        exit 1
    }
}

# A folder that another meson, an interrupted run or a tree that was moved left behind cannot be used: start again.
if [ ! -f "$build/build.ninja" ] || [ "$(cat "$build/source-root" 2>/dev/null)" != "$root" ]; then
    rm -rf "$build"
    where=build/quickstart
    [ -z "$temporary" ] || where="a temporary folder, because this tree cannot be written"
    echo "Building (release) in $where ..." >&2
    quiet meson setup "$build" --buildtype=release -Dtests=false
    echo "$root" >"$build/source-root"
fi
quiet ninja -C "$build"

# The trace has no tenants: 24 are made up, few with most of the traffic. Every answer is announced as 300 tokens; what
# it really had is settled at its end, 200 ms + 20 ms for each token later.
"$build/bindings/cli/admit" replay --quiet --show-kinds --tenants 24 --descriptor service=chat \
    --descriptor capacity_pool=shared --declare 300 "$@" examples/policies/gateway.json "$trace"
