#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep layout.c complete: every public struct and each of its members has a line there.

usage: layout.py check HEADER-FOLDER LAYOUT.c     TAP: what is missing
       layout.py print HEADER-FOLDER CC           the lines for the headers as they are, to paste new ones from

The numbers themselves are checked by the compiler. Lines are only added: a line that does not compile any more is a
change that breaks every program in the field.
"""
import os
import re
import subprocess
import sys
import tempfile

HEADERS = ["types.h", "backend.h", "admit.h", "policy.h", "backends.h", "ledger.h", "metrics.h"]  # testing.h promises no ABI


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def members_of(body):
    """Names that a struct's body declares; members of an unnamed union's kind come as union.member."""
    names = []
    while True:
        union = re.search(r"union\s*\{([^}]*)\}\s*(\w+)\s*;", body)
        if union is None:
            break
        names.append(union.group(2))
        names += [union.group(2) + "." + name for name in members_of(union.group(1))]
        body = body[:union.start()] + body[union.end():]
    for declaration in body.split(";"):
        function = re.search(r"\(\*\s*(\w+)\)", declaration)
        if function is not None:
            names.append(function.group(1))
            continue
        for part in declaration.split(","):
            name = re.search(r"(\w+)\s*(\[[^\]]*\])?\s*$", part)
            if name is not None:
                names.append(name.group(1))
    return names


def structs_of(folder):
    for header in HEADERS:
        with open(os.path.join(folder, "admit", header), encoding="utf-8") as file:
            text = without_comments(file.read())
        for struct in re.finditer(r"^struct (adm_\w+) \{(.*?)^\};", text, flags=re.S | re.M):
            yield struct.group(1), members_of(struct.group(2))


def print_lines(folder, compiler):
    source = ["#include <stddef.h>", "#include <stdio.h>"]
    source += ["#include <admit/%s>" % header for header in HEADERS]
    source.append("int main(void) {")
    for struct, members in structs_of(folder):
        source.append('printf("\\nSIZE(%s, %%zu);\\n", sizeof(struct %s));' % (struct, struct))
        for member in members:
            source.append('printf("AT(%s, %s, %%zu);\\n", offsetof(struct %s, %s));' % (struct, member, struct, member))
    source.append("return 0; }")
    with tempfile.TemporaryDirectory() as where:
        name = os.path.join(where, "layout.c")
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(source) + "\n")
        subprocess.run(compiler.split() + ["-I" + folder, name, "-o", name + ".out"], check=True)
        sys.stdout.write(subprocess.run([name + ".out"], check=True, stdout=subprocess.PIPE).stdout.decode())


def check(folder, layout):
    with open(layout, encoding="utf-8") as file:
        lines = set(re.findall(r"^(SIZE\(\w+|AT\(\w+, [\w.]+),", without_comments(file.read()), flags=re.M))
    structs = list(structs_of(folder))
    missing = []
    for struct, members in structs:
        wanted = ["SIZE(" + struct] + ["AT(%s, %s" % (struct, member) for member in members]
        missing += [line for line in wanted if line not in lines]
    read = len(structs) >= 25 and all(members for _, members in structs)
    print("1..2")
    print("%sok 1 - the headers can be read # %d structs" % ("" if read else "not ", len(structs)))
    print("%sok 2 - every public struct and member has its line" % ("not " if missing else ""))
    for line in missing:
        print("# missing: %s, …);" % line)
    return read and not missing


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "print":
        print_lines(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        sys.exit(0 if check(sys.argv[2], sys.argv[3]) else 1)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
