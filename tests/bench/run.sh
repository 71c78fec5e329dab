#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measure the plain backend and the bindings on this machine, and say what was measured.
#
#       sh tests/bench/run.sh [ROUNDS]
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
build=build/bench
log=build/bench.log
mkdir -p build
. examples/install_packages.sh
install_missing "$log" compiler meson ninja pkg-config libcjson libxxhash libyaml check || exit 1
quiet() {
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "bench: this failed: $*" >&2
        exit 1
    }
}
if [ ! -f "$build/build.ninja" ]; then
    rm -rf "$build"
    quiet meson setup "$build" --buildtype=release -Dpython=auto
fi
quiet ninja -C "$build" tests/bench/bench_plain

first() { sed -n "s/^$1[[:space:]]*: *//p" /proc/cpuinfo 2>/dev/null | head -n 1; }
echo "machine   $(first 'model name'), $(getconf _NPROCESSORS_ONLN) processors, $(uname -srm)"
case " $(first flags) " in *" hypervisor "*) echo "          a virtual machine: the host may take time away unseen" ;; esac
echo "compiler  $(${CC:-cc} --version | head -n 1), meson --buildtype=release"
echo "source    version $(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -n 1), $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')"
"$build/tests/bench/bench_plain" "$@"

# The Go binding beside a loop in C, in turns in one process.
if command -v go >/dev/null 2>&1; then
    echo
    echo "go        $(go env GOVERSION)"
    quiet ninja -C "$build" lib/libadmit.so.0 lib/libadmit-testing.a
    (cd bindings/go && PKG_CONFIG_PATH="$root/$build/meson-uninstalled" LD_LIBRARY_PATH="$root/$build/lib" \
        GOFLAGS='-mod=mod -buildvcs=false' GOPROXY=off GOTOOLCHAIN=local ADMIT_BENCH_ROUNDS=400 \
        go test -count=1 -v -run '^TestBenchmarkAgainstC$' .) 2>&1 |
        sed -n 's/^ *bench_test\.go:[0-9]*: /          /p; /^FAIL/p; /\.go:[0-9]*:[0-9]*: /p'
else
    echo "go        not here: the Go binding was not measured"
fi

# The Python package beside a loop in C, and ASGI with the middleware beside ASGI without it.
echo
package=$(ninja -C "$build" -t targets all | sed -n 's|^\(bindings/python/admit/[^/:]*\): .*|\1|p')
[ -z "$package" ] || quiet ninja -C "$build" $package
measured=
for interpreter in python3 /usr/bin/python3; do
    if PYTHONPATH=$build/bindings/python "$interpreter" -c 'import admit' >/dev/null 2>&1; then
        PYTHONPATH=$build/bindings/python "$interpreter" tests/bench/bench_python.py
        measured=yes
        break
    fi
done
[ -n "$measured" ] || echo "python    no Python here has what the package needs: it was not measured"
cat <<'TEXT'

Read it so: ns is the median of the clean windows. The other columns are the median and the quartiles of the ratio within
a round. A pair is one admit and one release; the mutex column locks twice, too.

Not claimed: nothing about several threads (the plain backend serialises them on one mutex), about cold caches (one tenant,
one pool, everything is warm), about tail latency, about tables that are full, or about any other machine.
TEXT
