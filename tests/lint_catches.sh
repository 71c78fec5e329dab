#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lint finds what it is there to find: a small tree, one fault at a time.  lint_catches.sh LINT
set -u
lint=$1
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
number=0
failed=0

tree() { # a tree without a fault
    rm -rf "$dir/tree"
    mkdir -p "$dir/tree/lib/base" "$dir/tree/lib/state" "$dir/tree/include/admit" "$dir/tree/examples"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\nvoid *admi_copy(void) { return memcpy() + memset(); }\n' \
        >"$dir/tree/lib/base/memory.h"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* printf( is only a word here */\nint a;\n' \
        >"$dir/tree/lib/state/a.c"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <stdint.h>\n' >"$dir/tree/include/admit/a.h"
}
expect() { # expect HOW-MANY WHAT: the number of rules that the tree breaks
    number=$((number + 1))
    sh "$lint" "$dir/tree" >"$dir/out" 2>&1
    n=$(grep -c '^not ok' "$dir/out")
    if [ "$n" -eq "$1" ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2: $n rules broken instead of $1"
        sed 's/^/# /' "$dir/out"
        failed=$((failed + 1))
    fi
    tree
}
add() { printf "$2\n" >>"$dir/tree/$1"; }

tree
expect 0 "a tree without a fault"
add lib/state/a.c 'void f(void) { memcpy(); }'
expect 1 "memcpy outside lib/base/memory.h"
add lib/base/memory.h 'void f(void) { memcpy(); }'
expect 1 "one memcpy more than allowed"
printf '/* SPDX-License-Identifier: Apache-2.0 */\n' >"$dir/tree/lib/base/memory.h"
expect 1 "an allowance that nobody uses"
for use in 'printf("x");' 'x = time (0);' 'abort();' 'exit(1);' 'x = rand();' 'x = item->valueint;' \
    'cJSON_GetObjectItem(a, "b");' 'x = getenv("A");' 'x = errno;'; do
    add lib/state/a.c "void f(void) { $use }"
    expect 1 "in the library: $use"
done
add lib/state/a.c 'const char *t = "printf(\\"";  /* exit( */ // abort('
expect 0 "words in strings and comments are no code"
add lib/state/a.c 'int snprintf_like(int); int my_exit(int); int runtime(void);'
expect 0 "words inside other words are other words"
add lib/state/a.c '#include "gate/gate.h"'
expect 1 "an arrow up from state to gate"
add lib/base/memory.h '#include "../policy/ruleset.h"'
expect 1 "an arrow up from base, written with dots"
add lib/state/a.c '#include "base/memory.h"'
expect 0 "an arrow down"
add lib/state/a.c '#include <cjson/cJSON.h>'
add lib/base/memory.h '#include "cJSON.h"'
expect 1 "two files that include cJSON.h"
add include/admit/a.h '#include <stdio.h>'
expect 1 "a public header with stdio.h"
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "gate/gate.h"\n' >"$dir/tree/examples/e.c"
expect 1 "an example with a private header"
add lib/state/a.c "/* $(printf '%0100d' 0) */"
expect 1 "a line of more than 100 columns"
i=0
while [ $i -lt 600 ]; do
    echo "int x$i;" >>"$dir/tree/lib/state/a.c"
    i=$((i + 1))
done
expect 1 "a file of more than 600 lines"
printf 'int a;\n' >"$dir/tree/lib/state/a.c"
expect 1 "a file without a licence"
add lib/state/a.c 'int b; '
expect 1 "a trailing blank"
add lib/state/a.c '\tint b;'
expect 1 "a tab"
printf 'int b;' >>"$dir/tree/lib/state/a.c"
expect 1 "no newline at the end"
if echo a | grep -qP a 2>/dev/null; then
    add lib/state/a.c 'int b; /* \342\200\256 */'
    expect 1 "a character that turns the direction of text"
    add lib/state/a.c 'int b; /* … – ≤ */'
    expect 0 "visible characters beyond ASCII"
fi
add examples/e.sh '# SPDX-License-Identifier: Apache-2.0\nif true; then'
expect 1 "a script that does not parse"
add examples/notes.md 'see /wo''rk/x'
expect 1 "a place outside the tree"
echo "1..$number"
[ "$failed" -eq 0 ]
