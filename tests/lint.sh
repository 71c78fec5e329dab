#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# House rules that a command can check.  lint.sh SOURCE-ROOT         TAP on standard output
#
# Comments and string literals are not code: they are taken out before a word is looked for. What may nevertheless use
# a forbidden word is listed in "allowed" below, with how often; fewer uses than allowed fail too, so that the list
# stays true.
set -u
cd "${1:?usage: lint.sh SOURCE-ROOT}" || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
LC_ALL=C.UTF-8
export LC_ALL

number=0
failed=0
# "verdict WHAT": fails when the file "found" is not empty, and shows it.
verdict() {
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
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

find . \( -path ./.git -o -path './build*' -o -path ./.cache -o -name __pycache__ \) -prune -o -type f -print |
    sed 's|^\./||' | sort >"$dir/all"
of() { grep -E "$1" "$dir/all"; }                           # names that fit
code() { of '\.(c|h|cpp|hpp|h\.in)$'; }
library() { of '^(lib|include)/.*\.(c|h)$' | grep -v '^lib/state/contract/'; }
# The testing library prints reports; it is no part of libadmit.
everything_written() { of '\.(c|h|cpp|hpp|py|sh|go|md|scd|map|in|yaml|pml)$|(^|/)meson(\.build|_options\.txt)$|^\.ci/run$'; }

# C without comments and without what stands in quotes; lines keep their numbers. Each file goes to "code/" + its name.
code >"$dir/c-files"
sed 's|/[^/]*$||' "$dir/c-files" | sort -u | while IFS= read -r folder; do mkdir -p "$dir/code/$folder"; done
xargs awk -v to="$dir/code/" '
FNR == 1 { if (file != "") close(file); file = to FILENAME; comment = 0; printf "" >file }
{
    line = $0; out = ""
    while (length(line) > 0) {
        if (comment) {
            at = index(line, "*/")
            if (at == 0) break
            line = substr(line, at + 2); comment = 0
            continue
        }
        at = match(line, /\/\*|\/\/|"|\047/)
        if (at == 0) { out = out line; break }
        out = out substr(line, 1, at - 1)
        token = substr(line, at, 2)
        if (token == "/*") { comment = 1; line = substr(line, at + 2); continue }
        if (token == "//") break
        quote = substr(line, at, 1)
        line = substr(line, at + 1)
        # An include keeps its name.
        if (quote == "\"" && out ~ /^[ \t]*#[ \t]*include[ \t]*$/) { out = out "\"" line; break }
        while (length(line) > 0 && substr(line, 1, 1) != quote)
            line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
        line = substr(line, 2)
        out = out quote quote
    }
    print out >file
}' <"$dir/c-files"

# ---- the project speaks of itself alone ---------------------------------------------------------------

xargs grep -nIE '/w[o]rk/|\.\./sh[a]red' <"$dir/all" >"$dir/found" 2>/dev/null
verdict "nothing names a place outside the tree"

# ---- what code may use --------------------------------------------------------------------------------

for header in cJSON.h xxhash.h yaml.h hiredis.h; do
    library | xargs grep -lE "^[ ]*#[ ]*include[ ]*[<\"]([A-Za-z_]+/)?$header[>\"]" >"$dir/users"
    [ "$(wc -l <"$dir/users")" -le 1 ] || cp "$dir/users" "$dir/found"
    verdict "at most one file of the library includes $header"
done

# FILE WORD COUNT: who may use a forbidden word, and how often.
allowed() {
    cat <<'LIST'
lib/base/memory.h memcpy 1
lib/base/memory.h memset 1
LIST
}
words='memcpy memset memmove bcopy strcpy strcat sprintf vsprintf printf fprintf vprintf vfprintf puts fputs putchar'
words="$words perror exit _exit _Exit quick_exit abort raise signal time gettimeofday rand srand rand_r random drand48"
words="$words strtod strtof atof atoi strtok localtime gmtime ctime setlocale setenv getenv usleep sleep nanosleep system"
words="$words cJSON_GetObjectItem cJSON_InitHooks"
allowed | sort >"$dir/allowed"
alternatives=$(echo "$words" | sed 's/  */|/g')
in_library() { # in_library REGEX: FILE:LINE:MATCH for each match in the library's code
    (cd "$dir/code" && xargs grep -noHE "$1" <"$dir/library" 2>/dev/null)
}
library >"$dir/library"
{
    in_library "(^|[^A-Za-z0-9_])($alternatives)[ ]*\("
    in_library '(->|\.)(valueint|valuedouble)([^A-Za-z0-9_]|$)'
} | awk -F : '{word = $3; gsub(/[^A-Za-z0-9_]/, "", word); n[$1 " " word]++} END {for (k in n) print k, n[k]}' |
    sort >"$dir/used"
comm -3 "$dir/used" "$dir/allowed" | sed 's/^\t/allowed, but not so used: /' >"$dir/found"
verdict "the library copies in one place, prints nothing, ends nothing, reads no clock and no environment"

in_library '(^|[^A-Za-z0-9_])errno([^A-Za-z0-9_]|$)' | grep -v '^lib/base/' >"$dir/found"
verdict "errno is read in lib/base only"

# ---- arrows go down only ------------------------------------------------------------------------------

includes() { # includes FOLDER FORBIDDEN-MODULES
    of "^lib/$1/.*\.(c|h)$" | xargs grep -nHE "^[ ]*#[ ]*include[ ]*\"(\.\./)*($2)/"
}
{
    includes base 'policy|state|observe|gate|llm'
    includes policy 'state|observe|gate|llm'
    includes state 'policy|observe|gate|llm'
    includes observe 'policy|state|gate|llm'
    includes gate 'llm'
} >"$dir/found"
verdict "no #include in lib goes up"
of '^(bindings|examples)/.*\.(c|h|cpp)$' |
    xargs grep -nHE '^[ ]*#[ ]*include[ ]*"(\.\./)*(lib/)?(base|policy|state|observe|gate|llm)/' >"$dir/found"
verdict "bindings and examples include public headers only"
of '^include/.*\.h$' | xargs grep -nHE '^[ ]*#[ ]*include' |
    grep -vE '<(stddef\.h|stdint\.h|admit/[a-z_/]+\.h)>' >"$dir/found"
verdict "public headers include stddef.h, stdint.h and each other"

# ---- how it is written --------------------------------------------------------------------------------

of '^(lib|include|bindings|examples)/.*\.(c|h|cpp)$' | xargs grep -nHE '^.{101,}' |
    sed -E 's|^([^:]*:[0-9]+:.{50}).*|\1 ...|' >"$dir/found"
verdict "no line of C is longer than 100 columns"

of '^(lib|bindings)/.*\.(c|h)$' | xargs wc -l | awk '$1 > 600 && $2 != "total" {print $2 ": " $1 " lines"}' >"$dir/found"
verdict "no file of the library or the command is longer than 600 lines"

of '\.(c|h|cpp|py|sh|go|pml)$|(^|/)meson\.build$|^\.ci/run$' |
    xargs awk 'FNR <= 2 && /SPDX-License-Identifier: Apache-2\.0/ {said[FILENAME] = 1} FNR == 1 {seen[FILENAME] = 1}
               END {for (f in seen) if (!said[f]) print f}' >"$dir/found"
verdict "every source file says its licence in its first lines"

everything_written | xargs grep -nE '[[:blank:]]+$' | head -n 40 >"$dir/found"
verdict "no trailing blanks"
code | xargs grep -n "$(printf '\t')" >"$dir/found"
verdict "no tabs in C"
everything_written | while IFS= read -r file; do
    [ -z "$(tail -c 1 "$file")" ] || echo "$file"
done >"$dir/found"
verdict "every file ends in a newline"

# Soft hyphen, zero-width and direction marks, line separators, byte order marks, other spaces.
if echo a | grep -qP a 2>/dev/null; then
    everything_written | xargs grep -nP \
        '[\x{00AD}\x{034F}\x{061C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180E}\x{2000}-\x{200F}\x{2028}-\x{202F}\x{205F}-\x{206F}\x{3000}\x{FEFF}\x{FFA0}]' \
        >"$dir/found" 2>&1
    verdict "no invisible characters"
else
    skip "no invisible characters" "grep has no -P here"
fi

of '\.sh$|^\.ci/run$' | while IFS= read -r file; do
    sh -n "$file" 2>&1 | sed "s|^|$file: |"
done >"$dir/found"
verdict "every shell script parses"
if command -v shellcheck >/dev/null 2>&1; then
    of '\.sh$|^\.ci/run$' | xargs shellcheck -S warning -s sh -e SC1090,SC1091,SC2086 >"$dir/found" 2>&1
    verdict "shellcheck has nothing to say"
else
    skip "shellcheck has nothing to say" "shellcheck is not installed"
fi

echo "1..$number"
[ "$failed" -eq 0 ]
