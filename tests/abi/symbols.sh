#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The symbols of both libraries are those of the public headers.
#
#       symbols.sh HEADER-FOLDER SHARED-LIBRARY STATIC-LIBRARY SONAME CC        TAP on standard output
#
#  1  libadmit.so exports exactly the functions that the headers declare with ADM_API, and no data
#  2  a program that takes the address of each of them compiles, links and runs with the library
#  3  every global symbol of libadmit.a is adm_ or admi_, so that it can be linked into anything
#  4  no function of the testing library is in either
#  5  the name in the library is the ABI's, thread-local storage is not bound to the start of the program (a host may
#     load the library at any time), and the library stays loaded (a thread that ends runs its code)
set -u
include=${1:?usage: symbols.sh HEADER-FOLDER SHARED-LIBRARY STATIC-LIBRARY SONAME CC}
shared=$2 static=$3 soname=$4 cc=$5
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
LC_ALL=C
export LC_ALL

number=0
failed=0
verdict() { # fails when "found" is not empty, and shows it
    number=$((number + 1))
    if [ -s "$dir/found" ]; then
        echo "not ok $number - $1"
        sed 's/^/# /' "$dir/found" | head -n 40
        failed=$((failed + 1))
    else
        echo "ok $number - $1"
    fi
    : >"$dir/found"
}

# One declaration per line, without comments and without preprocessor lines.
declarations() {
    sed 's/^#.*//; s/\/\*[^*]*\*\///g' "$@" | tr '\n' ' ' | sed 's/\/\*\([^*]\|\*[^/]\)*\*\///g' | tr ';{}' '\n\n\n'
}
functions() { sed -n 's/^[^(]*[ *]\(adm_[a-z0-9_]*\)(.*/\1/p' | sort -u; }

declarations "$include"/admit/*.h >"$dir/declarations"
grep '^ *ADM_API ' "$dir/declarations" | functions >"$dir/declared"
grep -v 'ADM_API ' "$dir/declarations" | grep -v 'typedef' | functions >"$dir/testing"

# Instrumentation brings symbols of its own.
instrumented='^(__odr_asan|__asan|__tsan|__ubsan|__sanitizer|__gcov|__llvm|_?_?mangle|asan\.|tsan\.)'

nm -D --defined-only "$shared" | awk '$2 != "A" {sub(/@.*/, "", $3); print $2, $3}' |
    grep -vE " ($instrumented)" | grep -vE "${instrumented#^}" >"$dir/exported"
awk '$1 == "T" {print $2}' "$dir/exported" | sort -u >"$dir/functions"

# A parser that finds nothing would agree with anything.
[ "$(wc -l <"$dir/declared")" -ge 40 ] || echo "only $(wc -l <"$dir/declared") functions found in the headers" >"$dir/found"
[ "$(grep -c ADM_API "$dir/declarations")" -eq "$(wc -l <"$dir/declared")" ] ||
    echo "$(grep -c ADM_API "$dir/declarations") uses of ADM_API, $(wc -l <"$dir/declared") functions" >>"$dir/found"
verdict "the headers can be read"

comm -23 "$dir/declared" "$dir/functions" | sed 's/^/declared, not exported: /' >"$dir/found"
comm -13 "$dir/declared" "$dir/functions" | sed 's/^/exported, not declared: /' >>"$dir/found"
verdict "the shared library exports the functions of the headers"

grep -v '^T ' "$dir/exported" >"$dir/found"
verdict "the shared library exports no data"

{
    for header in "$include"/admit/*.h; do
        [ "${header##*/}" = testing.h ] || echo "#include <admit/${header##*/}>"
    done
    echo '#include <stdio.h>'
    echo 'typedef void (*function)(void);'
    echo 'static const function functions[] = {'
    sed 's/.*/    (function)&,/' "$dir/declared"
    echo '};'
    cat <<'END'
int main(void)
{
    const unsigned long count = sizeof functions / sizeof functions[0];
    unsigned long missing = 0;
    for (unsigned long i = 0; i < count; i++)
        missing += functions[i] == 0;
    printf("%lu of %lu are missing\n", missing, count);
    return missing != 0;
}
END
} >"$dir/addresses.c"
# shellcheck disable=SC2086
if $cc -std=c11 -Wall -Wextra -Werror -I"$include" "$dir/addresses.c" -o "$dir/addresses" "$shared" \
    -Wl,-rpath,"$(dirname "$shared")" >"$dir/log" 2>&1 && "$dir/addresses" >>"$dir/log" 2>&1; then
    :
else
    cat "$dir/log" >"$dir/found"
fi
verdict "a program can take the address of every function"

nm -g --defined-only "$static" 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u >"$dir/globals"
grep -vE '^admi?_' "$dir/globals" | grep -vE "$instrumented" >"$dir/found"
[ "$(wc -l <"$dir/globals")" -gt "$(wc -l <"$dir/declared")" ] || echo "no symbols read from $static" >>"$dir/found"
verdict "every global symbol of the static library is adm_ or admi_"

comm -23 "$dir/declared" "$dir/globals" >"$dir/found"
grep '^adm_' "$dir/globals" | comm -13 "$dir/declared" - | sed 's/^/not in a header: /' >>"$dir/found"
verdict "the static library has the functions of the headers, and no other adm_"

cat "$dir/functions" "$dir/globals" | sort -u | comm -12 - "$dir/testing" >"$dir/found"
[ -s "$dir/testing" ] || echo "no function of testing.h found" >>"$dir/found"
verdict "the testing library's functions are in neither"

readelf -dW "$shared" >"$dir/dynamic"
grep -q "Library soname: \[$soname\]" "$dir/dynamic" || grep SONAME "$dir/dynamic" >"$dir/found"
grep STATIC_TLS "$dir/dynamic" >>"$dir/found"
grep -q 'Flags:.*NODELETE' "$dir/dynamic" || echo "not NODELETE" >>"$dir/found"
grep TEXTREL "$dir/dynamic" >>"$dir/found"
verdict "soname $soname, no static thread-local storage, no text relocations, never unloaded"

echo "1..$number"
[ "$failed" -eq 0 ]
