#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every test, in every build that matters; ends with the line "N passed, M failed".
#
#       sh tests/run.sh
#
# Installs what is missing (see examples/install_packages.sh), then builds and tests in build/check:
#
#       release     optimised, warnings are errors: all suites, then once more under a decimal-comma locale
#       asan        AddressSanitizer and UndefinedBehaviorSanitizer: all suites that run our code
#       tsan        ThreadSanitizer: the suites "stress" and "threads"
#       quickstart  examples/quickstart.sh as a newcomer runs it
#
# A build that fails counts as one failure and is shown; the others still run.
#
# Environment
#       TESTS_BUILDS="release asan tsan quickstart"  only some of them (any of these words)
#       TESTS_JOBS=N            processes at a time [number of processors]
#       TESTS_PATIENCE=N        time limits of single tests are N times as long [4]; raise it for soaks
#       CC, CXX                 the compilers
#   read by the tests themselves, for longer soaks and other material:
#       ADMIT_SIMULATE_OPERATIONS=N   operations of the comparison of a gate with the exact model, for instance 100000000
#       TESTS_GO=all            the Go binding with every Go of this machine, not only the first; or a list of commands
#       ADMIT_TEST_OFFLINE=1    install no parser from the network (the test that wants it skips)
#       ADMIT_JSON_TEST_SUITE=FOLDER, ADMIT_REFMODEL=FILE   public JSON texts, a reference model; without them tests skip
set -u

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
base=$root/build/check
logs=$base/logs
results=$base/results
jobs=${TESTS_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}
builds=${TESTS_BUILDS:-release asan tsan quickstart}
patience=${TESTS_PATIENCE:-4}
if ! mkdir -p "$logs" || [ ! -w "$base" ] || [ ! -w "$logs" ]; then
    echo "run.sh: $base cannot be written; take a copy of this tree that is your own" >&2
    echo "0 passed, 1 failed"
    exit 1
fi
rm -f "$results" "$base"/*.tsv
: >"$results"

# "record STAGE PASSED FAILED SKIPPED"
record() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$results"; }

wanted() { # is $1 among the builds asked for?
    case " $builds " in *" $1 "*) return 0 ;; esac
    return 1
}

# The last line, whatever happened before.
finish() {
    passed=$(awk -F '\t' '{n += $2} END {print n + 0}' "$results")
    failed=$(awk -F '\t' '{n += $3} END {print n + 0}' "$results")
    # A run that tested nothing has not passed.
    [ "$passed" -gt 0 ] || [ "$failed" -gt 0 ] || failed=1
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit $?
}

failed_stage() { # failed_stage STAGE WHAT LOG: show the end of a log, count one failure
    echo "==== $1: $2 failed; the end of $3:"
    tail -n 60 "$3"
    record "$1" 0 1 0
}

# ---- the builds -------------------------------------------------------------------------------------

build() { # build NAME MESON-OPTION ...
    name=$1
    shift
    dir=$base/$name
    log=$logs/$name.build.log
    # A folder that was moved with its tree still names the old place.
    if [ ! -f "$dir/build.ninja" ] || [ "$(cat "$dir/source-root" 2>/dev/null)" != "$root" ]; then
        rm -rf "$dir"
        if ! meson setup "$dir" "$root" "$@" >"$log" 2>&1; then
            failed_stage "$name" "meson setup" "$log"
            return 1
        fi
        echo "$root" >"$dir/source-root"
    fi
    if ! ninja -C "$dir" -j "$jobs" >"$log" 2>&1; then
        failed_stage "$name" "the build" "$log"
        return 1
    fi
}

# Run a stage's tests and count what each of them says of itself: tests/count.py reads meson's own record.
run_tests() { # run_tests STAGE BUILD MESON-TEST-OPTION ...
    stage=$1
    dir=$base/$2
    shift 2
    log=$logs/$stage.test.log
    rm -f "$dir/meson-logs/$stage"*.json
    meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes "$jobs" --timeout-multiplier "$patience" \
        --logbase "$stage" "$@" >"$log" 2>&1
    code=$?
    # With a wrapper meson adds its name to that of the record.
    record=$dir/meson-logs/$stage.json
    [ -f "$record" ] || record=$dir/meson-logs/$stage-env.json
    if ! python3 "$root/tests/count.py" "$record" "$stage" >"$base/$stage.tsv" 2>>"$log"; then
        failed_stage "$stage" "meson test" "$log"
        return 1
    fi
    sed -n 's/^count\t//p' "$base/$stage.tsv" >>"$results"
    if grep -q '^failed' "$base/$stage.tsv"; then
        echo "==== $stage: what failed:"
        sed -n '/^Summary of Failures/q;p' "$log" | grep -vE '^ *[0-9]+/[0-9]+ .* (OK|SKIP) ' | tail -n 150
        sed -n 's/^failed\t/     /p' "$base/$stage.tsv"
    elif [ "$code" -ne 0 ]; then
        # meson is not content though every test was: an error of meson itself.
        failed_stage "$stage" "meson test (exit status $code)" "$log"
    fi
}

release() {
    build release --buildtype=release --werror -Dpython=auto || return 0
    run_tests release release
    comma_locale
}

# A decimal comma must change nothing. The locale lives in our build folder; the system's locales stay as they are.
comma_locale() {
    locales=$base/locale
    name=de_DE.UTF-8
    if [ ! -d "$locales/$name" ]; then
        mkdir -p "$locales"
        if ! command -v localedef >/dev/null 2>&1 || ! localedef -i de_DE -f UTF-8 "$locales/$name" >"$logs/locale.log" 2>&1; then
            printf 'skipped\tlocale\tall tests under a decimal comma\tlocaledef cannot make %s here\t\n' "$name" >"$base/locale.tsv"
            record locale 0 0 1
            return 0
        fi
    fi
    run_tests locale release --no-suite install --no-suite docs --no-suite lint --no-suite bench --no-suite mutants \
        --no-suite model-check --no-suite bindings \
        --wrapper "env LOCPATH=$locales ADMIT_TEST_LOCALE=$name LC_ALL=$name LD_PRELOAD=$base/release/tests/locale/force-locale.so"
}

asan() {
    # Without --werror: what sanitizers do to the code makes compilers guess wrongly about it.
    # Leaks are found at exit; undefined behaviour ends the program, so that it cannot be overlooked.
    ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export ASAN_OPTIONS UBSAN_OPTIONS
    build asan --buildtype=debugoptimized -Db_sanitize=address,undefined || return 0
    run_tests asan asan --no-suite install --no-suite docs --no-suite lint --no-suite mutants --no-suite model-check --no-suite bindings
}

tsan() {
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    CK_FORK=no
    export TSAN_OPTIONS CK_FORK
    build tsan --buildtype=debugoptimized -Db_sanitize=thread || return 0
    run_tests tsan tsan --suite stress --suite threads --no-suite model-check
}

quickstart() {
    log=$logs/quickstart.log
    sh "$root/tests/examples/quickstart.sh" "$root" >"$log" 2>&1
    code=$?
    passed=$(grep -c '^ok ' "$log")
    failed=$(grep -c '^not ok ' "$log")
    if [ "$failed" -gt 0 ] || [ "$code" -ne 0 ]; then
        grep -A 30 '^not ok' "$log" || tail -n 60 "$log"
        [ "$failed" -gt 0 ] || failed=1
    fi
    record quickstart "$passed" "$failed" 0
}

# ---- all of it --------------------------------------------------------------------------------------

. "$root/examples/install_packages.sh"
if ! install_missing "$logs/packages.log" compiler meson ninja pkg-config libcjson libxxhash libyaml check python3; then
    record packages 0 1 0
    finish
fi
# These only widen what is tested; without them some tests skip, and say so. One by one: a package that a
# distribution does not have must not keep the others away.
for optional in compiler-c++ comma-locale python-binding python-asgi python-wheel go scdoc mandoc gnuplot jsonschema nlohmann-json spin; do
    install_missing "$logs/$optional.log" "$optional" 2>>"$logs/optional.log" || true
done

for stage in release asan tsan quickstart; do
    wanted "$stage" || continue
    started=$(date +%s)
    echo "==== $stage"
    (
        "$stage"
    )
    echo "     $(($(date +%s) - started)) s"
done

echo
printf '%-12s %8s %8s %8s\n' build passed failed skipped
awk -F '\t' '{printf "%-12s %8d %8d %8d\n", $1, $2, $3, $4}' "$results"
if grep -hq '^skipped' "$base"/*.tsv 2>/dev/null; then
    echo
    echo "Skipped, and why:"
    # One line for each test and reason; what was skipped in full is in the .tsv files of build/check.
    grep -h '^skipped' "$base"/*.tsv | sort | awk -F '\t' '
        { key = $3 ": " $4; n[key]++; if (!((key, $2) in seen)) { seen[key, $2] = 1; in_[key] = in_[key] " " $2 } }
        END { for (key in n) printf "  %4d  %s (%s)\n", n[key], key, substr(in_[key], 2) }' | sort -k 2
fi
echo
finish
