#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header stands alone, in C99 and in C++11, and no struct of the ABI has hidden bytes. The headers of the
# C++ binding stand alone in C++17 and C++20.
#
#       headers.sh HEADER-FOLDER CC CXX CLANG CXX-HEADER-FOLDER        TAP on standard output
#
# CC, CXX and CLANG are commands; "" for one that is not there. HEADER-FOLDER holds admit/*.h, CXX-HEADER-FOLDER
# admit/*.hpp.
#
# Hidden bytes (rule: a struct that the caller allocates has none) are looked for by each compiler for its own target,
# and by clang for five. Where pointers have 32 bits and uint64_t is aligned to 8 (armv7), a lone pointer before a
# uint64_t leaves a gap in the middle of the structs that are listed in "gaps". That is harmless: the gap is at the same
# place for the caller and the library, is never read, and is never at the end, where a later member could move into it.
# testing.h is left out: it promises no ABI.
set -u
include=${1:?usage: headers.sh HEADER-FOLDER CC CXX CLANG CXX-HEADER-FOLDER}
cc=$2 cxx=$3 clang=$4 cxx_include=$5
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

gaps='adm_bytes adm_class_set adm_event adm_gate_options adm_op adm_request adm_take'
flags='-fsyntax-only -Wall -Wextra -Wpedantic -Wundef -Werror'

number=0
failed=0
result() { # result STATUS NAME: shows "log" when it failed
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        sed 's/^/# /' "$dir/log" | head -n 20
        failed=$((failed + 1))
    fi
}
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# A program of one header, twice, and of the layout of each of its structs, which compilers look at only if it is used.
program() { # program FOLDER HEADER OUT
    printf '#include <admit/%s>\n#include <admit/%s>\n' "$2" "$2" >"$3"
    sed -n 's/^struct \([a-z_0-9]*\) {.*/extern char layout_of_\1[sizeof(struct \1)];/p' "$1/admit/$2" >>"$3"
}

padding_flag() { # padding_flag HEADER
    [ "$1" = testing.h ] || echo -Wpadded
}

alone() { # alone FOLDER HEADER COMMAND…
    folder=$1 header=$2
    shift 2
    program "$folder" "$header" "$dir/alone.c"
    # shellcheck disable=SC2086
    "$@" $flags $(padding_flag "$header") -I"$folder" "$dir/alone.c" >"$dir/log" 2>&1
}

headers=$(cd "$include/admit" && echo *.h)

# ---- alone, by the compilers of this build ------------------------------------------------------------

for header in $headers; do
    if [ -n "$cc" ]; then
        # shellcheck disable=SC2086
        alone "$include" "$header" $cc -x c -std=c99 -Wstrict-prototypes -Wshadow
        result $? "$header alone, C99"
    else
        skip "$header alone, C99" "no C compiler"
    fi
    if [ -n "$cxx" ]; then
        # shellcheck disable=SC2086
        alone "$include" "$header" $cxx -x c++ -std=c++11 -Wshadow
        result $? "$header alone, C++11"
    else
        skip "$header alone, C++11" "no C++ compiler"
    fi
done

cxx_alone() { # cxx_alone FOLDER HEADER STANDARD
    printf '#include <admit/%s>\n#include <admit/%s>\n' "$2" "$2" >"$dir/alone.cpp"
    # shellcheck disable=SC2086
    $cxx -std=$3 $flags -Wshadow -Wconversion -Wold-style-cast -fno-rtti -I"$include" -I"$1" "$dir/alone.cpp" \
        >"$dir/log" 2>&1
}
for header in $(cd "$cxx_include/admit" && echo *.hpp); do
    for standard in c++17 c++20; do
        if [ -n "$cxx" ]; then
            cxx_alone "$cxx_include" "$header" $standard
            result $? "$header alone, $standard"
        else
            skip "$header alone, $standard" "no C++ compiler"
        fi
    done
done

# ---- without a C library, for five targets ------------------------------------------------------------

for target in x86_64-linux-gnu aarch64-linux-gnu riscv64-linux-gnu i686-linux-gnu armv7-linux-gnueabihf; do
    if [ -z "$clang" ]; then
        skip "no hidden bytes, $target" "no clang"
        continue
    fi
    : >"$dir/output"
    status=0
    for header in $headers; do
        program "$include" "$header" "$dir/alone.c"
        # Neither a C library nor the compiler's search in the system: stddef.h and stdint.h are all a header may need.
        "$clang" --target="$target" -ffreestanding -nostdlibinc -fsyntax-only -std=c99 -Wall -Wextra -Wpedantic \
            $(padding_flag "$header") -I"$include" "$dir/alone.c" >>"$dir/output" 2>&1 || status=1
    done
    expected=
    [ "$target" = armv7-linux-gnueabihf ] && expected=$gaps
    # Exactly the listed structs, none more and none fewer; any other warning counts as well. A note or a summary is no
    # warning; padding at the end of a struct ("padding size of") is never expected.
    sed -n "s/.*warning: padding struct 'struct \([a-z_0-9]*\)'.*/\1/p" "$dir/output" | sort -u >"$dir/found"
    grep -E 'warning:|error:' "$dir/output" | grep -v "warning: padding struct '" >"$dir/log"
    [ -s "$dir/log" ] && status=1
    # shellcheck disable=SC2086
    printf '%s\n' $expected | sed '/^$/d' | comm -3 "$dir/found" - >"$dir/differ"
    if [ -s "$dir/differ" ]; then
        status=1
        sed 's/^\t/gap gone: /; s/^\([a-z]\)/gap: \1/' "$dir/differ" >>"$dir/log"
    fi
    result $status "no hidden bytes, $target"
done

# ---- a header that breaks a rule is caught ------------------------------------------------------------

mkdir -p "$dir/bad/admit"
cp "$include"/admit/*.h "$dir/bad/admit/"
caught() { # caught NAME C++?, header text on standard input
    cat >"$dir/bad/admit/bad.h"
    echo "nothing was found" >"$dir/note"
    # shellcheck disable=SC2086
    if [ -z "$cc" ]; then
        skip "caught: $1" "no compiler"
    elif alone "$dir/bad" bad.h $2; then
        cp "$dir/note" "$dir/log"
        result 1 "caught: $1"
    else
        result 0 "caught: $1"
    fi
}
# Each is right but for what its name says.
caught "a gap" "$cc -x c -std=c99" <<'END'
#ifndef BAD_H
#define BAD_H
#include <stdint.h>
struct adm_bad {
    uint32_t size;
    uint64_t value;
};
#endif
END
caught "hidden bytes at the end" "$cc -x c -std=c99" <<'END'
#ifndef BAD_H
#define BAD_H
#include <stdint.h>
struct adm_bad {
    uint64_t value;
    uint32_t flags;
};
#endif
END
caught "a type of another header that is not included" "$cc -x c -std=c99" <<'END'
#ifndef BAD_H
#define BAD_H
void adm_bad(uint32_t value);
#endif
END
caught "no guard" "$cc -x c -std=c99" <<'END'
struct adm_bad {
    int value;
};
END
[ -n "$cxx" ] && caught "a C++ keyword" "$cxx -x c++ -std=c++11" <<'END'
#ifndef BAD_H
#define BAD_H
struct adm_bad {
    int class;
};
#endif
END

if [ -n "$cxx" ]; then
    printf '#ifndef BAD_HPP\n#define BAD_HPP\ninline std::string bad() { return {}; }\n#endif\n' >"$dir/bad/admit/bad.hpp"
    echo "nothing was found" >"$dir/note"
    if cxx_alone "$dir/bad" bad.hpp c++17; then
        cp "$dir/note" "$dir/log"
        result 1 "caught: a C++ header that includes too little"
    else
        result 0 "caught: a C++ header that includes too little"
    fi
fi

echo "1..$number"
[ "$failed" -eq 0 ]
