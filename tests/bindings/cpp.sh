#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The C++ headers by each compiler and standard there is, without RTTI, warnings as errors.
#
#       cpp.sh SOURCE-ROOT BUILD-ROOT     TAP on standard output
set -u
source=$1 build=$2
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
flags='-fno-rtti -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual -Wold-style-cast -Werror'

number=0
failed=0
for cxx in g++ clang++; do
    for standard in c++17 c++20 c++2b; do
        number=$((number + 1))
        printf 'int main() { return 0; }\n' >"$dir/probe.cpp"
        if ! $cxx -std=$standard -o "$dir/probe" "$dir/probe.cpp" >"$dir/log" 2>&1; then
            echo "ok $number - $cxx $standard # SKIP there is no $cxx that knows $standard"
            continue
        fi
        objects=$source/tests/bindings/cpp
        # shellcheck disable=SC2086
        if $cxx -std=$standard $flags -I"$source/include" -I"$source/bindings/cpp" -o "$dir/test" \
            "$objects/main.cpp" "$objects/other.cpp" "$objects/policies.cpp" "$objects/gates.cpp" \
            "$objects/leases.cpp" "$objects/queues.cpp" \
            -L"$build/lib" -ladmit-testing -l:libadmit.so -Wl,-rpath,"$build/lib" -pthread >"$dir/log" 2>&1 &&
            "$dir/test" >>"$dir/log" 2>&1; then
            echo "ok $number - $cxx $standard: $(grep -c '^ok' "$dir/log") checks"
        else
            echo "not ok $number - $cxx $standard"
            grep -v '^ok' "$dir/log" | sed 's/^/# /' | tail -n 60
            failed=$((failed + 1))
        fi
    done
done
# What they cannot do without is said, rather than shown by what the compiler then stumbles over.
refused() { # refused NAME FLAGS
    number=$((number + 1))
    printf '#include <admit/queue.hpp>\nint main() { return 0; }\n' >"$dir/probe.cpp"
    # shellcheck disable=SC2086
    if ! command -v g++ >/dev/null; then
        echo "ok $number - refused: $1 # SKIP there is no g++"
    elif ! g++ $2 -fsyntax-only -I"$source/include" -I"$source/bindings/cpp" "$dir/probe.cpp" >"$dir/log" 2>&1 &&
        grep -q 'need C++17 and exceptions' "$dir/log"; then
        echo "ok $number - refused: $1"
    else
        echo "not ok $number - refused: $1"
        failed=$((failed + 1))
    fi
}
refused 'an older standard' -std=c++14
refused 'no exceptions' '-std=c++17 -fno-exceptions'
echo "1..$number"
[ "$failed" -eq 0 ]
