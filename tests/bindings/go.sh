#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of the Go binding against the library of a build tree.  go.sh SOURCE-ROOT BUILD-ROOT
#
# With the `go` of the path. TESTS_GO=all: also with the distribution's own (/usr/bin/go) where that is another one,
# because what is new in one must not be needed in the other. TESTS_GO="COMMAND ..." runs these instead. No network.
# TAP on standard output: one line for each test that has no tests inside it.
set -u
source=$(CDPATH= cd -- "$1" && pwd) || exit 99
build=$(CDPATH= cd -- "$2" && pwd) || exit 99
work=$build/go-tests
mkdir -p "$work"
log=$work/output

number=0
failed=0
ok() { # ok STATUS WHAT: a failure shows the log
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        tail -n 40 "$log" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

PKG_CONFIG_PATH=$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
GOCACHE=$work/cache
GOPATH=$work/path
GOENV=off
GOFLAGS='-mod=mod -buildvcs=false'
GOPROXY=off
GOTOOLCHAIN=local
CGO_ENABLED=1
# What a wrapper or another test had in mind for programs of its own.
unset GOOS GOARCH GOEXPERIMENT LD_PRELOAD CGO_CFLAGS CGO_LDFLAGS
export PKG_CONFIG_PATH LD_LIBRARY_PATH GOCACHE GOPATH GOENV GOFLAGS GOPROXY GOTOOLCHAIN CGO_ENABLED

commands=$(command -v go) || commands=
[ -n "$commands" ] || [ ! -x /usr/bin/go ] || commands=/usr/bin/go
case ${TESTS_GO:-} in
'') ;;
all)
    if [ -x /usr/bin/go ] && [ "$(readlink -f /usr/bin/go)" != "$(readlink -f "$commands")" ]; then
        commands="$commands /usr/bin/go"
    fi
    ;;
*) commands=$TESTS_GO ;;
esac
if [ -z "$commands" ]; then
    echo "1..0 # SKIP go is not installed"
    exit 0
fi

# `go test -v` as TAP. $1: where the numbers go on; $2: the toolchain. Says at the end how many tests there were.
tap() {
    awk -v number="$1" -v toolchain="$2" -v told="$work/numbers" '
    { lines[NR] = $0 }
    /^ *--- (PASS|FAIL|SKIP): / {
        verdict = $2; sub(/:$/, "", verdict)
        count++
        name[count] = $3; result[count] = verdict; at[count] = NR
        above = $3
        while (sub(/\/[^\/]*$/, "", above)) has_inside[above] = 1
        if (verdict == "FAIL") failures++
        next
    }
    # What a test says comes after the line that names it; of a skipped one the last words are the reason.
    /^=== (RUN|CONT|NAME)/ { current = $3 }
    /^ +[a-z_]+\.go:[0-9]+: / { said[current] = $0 }
    END {
        for (i = 1; i <= count; i++) {
            if (name[i] in has_inside && result[i] != "FAIL") continue
            number++
            what = toolchain " " name[i]
            gsub(/#/, "\\#", what)
            if (result[i] == "FAIL") print "not ok " number " - " what
            else if (result[i] == "SKIP") {
                why = said[name[i]]; sub(/^ *[a-z_]+\.go:[0-9]+: /, "", why)
                print "ok " number " - " what " # SKIP " (why == "" ? "no reason given" : why)
            } else print "ok " number " - " what
        }
        print number, count + 0, failures + 0 >told
        if (failures) for (i = 1; i <= NR; i++) if (lines[i] !~ /^ *(=== |--- PASS)/) print "# " lines[i]
    }' "$log"
}

for go in $commands; do
    toolchain=$("$go" env GOVERSION) || toolchain=$go
    echo "# $go is $toolchain"
    cd "$source/bindings/go" || exit 99

    "$go" vet -tags admit_testing ./... >"$log" 2>&1
    ok $? "$toolchain vet has nothing to say"

    # Without cgo there is one error, and it says what to do.
    for package in . ./admithttp; do
        if CGO_ENABLED=0 "$go" build "$package" >"$log" 2>&1; then
            ok 1 "$toolchain without cgo the build of $package fails"
        else
            [ "$(grep -c 'nocgo.go' "$log")" -eq 1 ] && [ "$(grep -c '\.go:' "$log")" -eq 1 ] &&
                grep -q 'package_admit_needs_cgo__set_CGO_ENABLED_1' "$log"
            ok $? "$toolchain without cgo the build of $package fails and says what to do"
        fi
    done

    # Where the race detector cannot run, the tests still do.
    race=-race
    if ! "$go" build -race -o "$work/race-probe" runtime/race >"$log" 2>&1; then
        echo "# no race detector here: $(tail -n 1 "$log")"
        race=
    fi
    "$go" test $race -count=1 -v -tags admit_testing ./... >"$log" 2>&1
    code=$?
    tap "$number" "$toolchain" || exit 99
    read -r number count failures <"$work/numbers"
    failed=$((failed + failures))
    # A build that fails, a race or a crash outside of any test.
    if [ "$code" -ne 0 ] && [ "$failures" -eq 0 ] || [ "$count" -eq 0 ]; then
        ok 1 "$toolchain test${race:+ $race} of all packages"
    else
        ok 0 "$toolchain test${race:+ $race} of all packages ran $count tests"
    fi
done

if command -v gofmt >/dev/null 2>&1; then
    cd "$source/bindings/go" && gofmt -l . >"$log" 2>&1
    [ ! -s "$log" ]
    ok $? "gofmt has nothing to change"
else
    number=$((number + 1))
    echo "ok $number - gofmt has nothing to change # SKIP gofmt is not installed"
fi

echo "1..$number"
[ "$failed" -eq 0 ]
