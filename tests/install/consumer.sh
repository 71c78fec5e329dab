#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install into an empty prefix, then build and run applications with nothing but pkg-config's answers.
#
#       consumer.sh SOURCE-FOLDER BUILD-FOLDER          TAP on standard output
#
# Environment: MESON, CC, CXX.
set -u
source=$1
build=$2
meson=${MESON:-meson}
cc=${CC:-cc}
cxx=${CXX:-c++}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

number=0
failed=0
ok() { # ok STATUS WHAT
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=$((failed + 1))
        [ -s "$dir/log" ] && sed 's/^/# /' "$dir/log"
    fi
    : >"$dir/log"
}
skip() { # skip WHAT REASON
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}
finish() {
    echo "1..$number"
    [ "$failed" -eq 0 ]
    exit $?
}

# The command may be several words (MESON="python3 meson.py").
DESTDIR="$dir/root" $meson install --no-rebuild -C "$build" >"$dir/log" 2>&1
ok $? "meson install into an empty folder"
pc=$(find "$dir/root" -name admit.pc)
[ -n "$pc" ]
ok $? "admit.pc is installed"
[ -n "$pc" ] || finish

# The folder stands in for the root: what the .pc file says of its prefix must say where it is now.
prefix=$(sed -n 's/^prefix=//p' "$pc")
sed -i "s|^prefix=.*|prefix=$dir/root$prefix|" "$(dirname "$pc")"/*.pc
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(dirname "$PKG_CONFIG_PATH")
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH

cflags=$(pkg-config --cflags admit 2>"$dir/log")
ok $? "pkg-config --cflags admit: $(echo "$cflags" | sed "s|$dir/root||g")"
libs=$(pkg-config --libs admit 2>"$dir/log")
ok $? "pkg-config --libs admit: $(echo "$libs" | sed "s|$dir/root||g")"
case $libs in *xxhash* | *yaml*) false ;; esac
ok $? "a shared link does not name the library's own libraries"
static_libs=$(pkg-config --static --libs admit 2>"$dir/log")
ok $? "pkg-config --static --libs admit"
case $static_libs in *xxhash*) ;; *) false ;; esac
ok $? "a static link names them"

c_warnings="-std=c99 -Wall -Wextra -Wpedantic -Werror"
cxx_warnings="-std=c++11 -x c++ -Wall -Wextra -Wpedantic -Werror"
binding_warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"

# shellcheck disable=SC2086
{
    $cc $c_warnings $cflags -o "$dir/shared" "$source/consumer.c" $libs >"$dir/log" 2>&1
    ok $? "C, shared: builds"
    "$dir/shared" >"$dir/log" 2>&1
    ok $? "C, shared: runs"
    readelf -d "$dir/shared" 2>"$dir/log" | grep -q 'NEEDED.*\[libadmit\.so\.[0-9]*\]'
    ok $? "C, shared: needs libadmit.so by its soname"

    # The same prefix without shared objects: -ladmit can only mean libadmit.a.
    mkdir "$dir/away" && mv "$libdir"/libadmit.so* "$dir/away/"
    $cc $c_warnings $cflags -o "$dir/static" "$source/consumer.c" $static_libs >"$dir/log" 2>&1
    ok $? "C, static: builds with --static"
    "$dir/static" >"$dir/log" 2>&1
    ok $? "C, static: runs without libadmit.so"
    readelf -d "$dir/static" 2>/dev/null | grep -q 'libadmit'
    [ $? -ne 0 ]
    ok $? "C, static: needs no libadmit.so"
    if $cc $c_warnings $cflags -o "$dir/half" "$source/consumer.c" $libs >"$dir/log" 2>&1; then
        false
    fi
    ok $? "C, static: without --static the link fails, so --static is what makes it work"
    : >"$dir/log"

    if command -v "${cxx%% *}" >/dev/null 2>&1; then
        $cxx $cxx_warnings $cflags -o "$dir/static-cxx" "$source/consumer.c" -x none $static_libs >"$dir/log" 2>&1
        ok $? "C++, static: builds"
        "$dir/static-cxx" >"$dir/log" 2>&1
        ok $? "C++, static: runs"
    else
        skip "C++, static" "there is no C++ compiler"
    fi
    mv "$dir/away"/libadmit.so* "$libdir/"
    if command -v "${cxx%% *}" >/dev/null 2>&1; then
        $cxx $cxx_warnings $cflags -o "$dir/shared-cxx" "$source/consumer.c" -x none $libs >"$dir/log" 2>&1
        ok $? "C++, shared: builds"
        "$dir/shared-cxx" >"$dir/log" 2>&1
        ok $? "C++, shared: runs"
    else
        skip "C++, shared" "there is no C++ compiler"
    fi
    for standard in c++17 c++20; do
        if echo 'int main() { return 0; }' | $cxx -std=$standard -x c++ -o "$dir/probe" - >/dev/null 2>&1; then
            $cxx -std=$standard $binding_warnings $cflags -o "$dir/binding" "$source/consumer.cpp" $libs >"$dir/log" 2>&1
            ok $? "C++ binding, $standard: builds with the installed headers"
            "$dir/binding" >"$dir/log" 2>&1
            ok $? "C++ binding, $standard: runs"
        else
            skip "C++ binding, $standard" "there is no C++ compiler that knows it"
        fi
    done

    $cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags admit-testing) -o "$dir/contract" \
        "$source/contract.c" $(pkg-config --libs admit-testing) -pthread >"$dir/log" 2>&1
    ok $? "an author's contract runner builds with pkg-config admit-testing"
    "$dir/contract" >"$dir/log" 2>&1
    ok $? "the contract suite runs outside the tree"
}

command=$(find "$dir/root" -path '*/bin/admit')
[ -n "$command" ] && "$command" --version >"$dir/log" 2>&1
ok $? "the command admit is installed and says its version"
finish
