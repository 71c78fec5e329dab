#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README and docs: every block is compiled or run, every path and link exists, every page starts with what to copy.

    documents.py SOURCE-ROOT BUILD-ROOT [PAGE...]         TAP on standard output

How a block is tried out depends on its language, see blocks.py and docs/CONTRIBUTING.md.
"""
import glob
import os
import re
import sys
import tempfile

import blocks
import markdown

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

# Pages that tell of the project and not of its use.
NO_COPY = re.compile(r"^docs/(adr/|NEWS\.md|SECURITY\.md|CONTRIBUTING\.md)|^README\.md$|^bindings/")
FIRST_LINES = 14

# One fault for each language: what the tests would not find would be no test.
FAULTS = [
    ("c", "int f(void);\nint f(void)\n{\n    return adm_no_such_function();\n}\n", "does not compile"),
    ("c body", "    status = adm_admit(gate, &request);\n", "misses an argument"),
    ("c rest", "int x;\n", "has a mark that nobody knows"),
    ("cpp", "int f() { return adm_no_such_function(); }\n", "does not compile"),
    ("json", "{\"version\": \"1\", \"rules\": []}\n", "is refused by the reader"),
    ("json", "{\"version\": \"1\"}\n", "is no document"),
    ("json rule", "{\"id\": \"a\", \"type\": \"request_cap\", \"limit\": 1e3}\n", "is refused by the reader"),
    ("json rejected", "{\"version\": \"1\", \"rules\": [{\"id\": \"a\", \"type\": \"request_cap\", \"limit\": 1}]}\n",
     "is not refused"),
    ("json", "{\"version\": \"1\", \"rule\": \"a\", \"by\": \"b\", \"entries\": {\"c\": {\"limti\": 1}}}\n",
     "is a table with a misspelt number"),
    ("json fragment", "{\"a\": }\n", "is no JSON"),
    ("sh", "admit validate no-such-file.json\n", "fails"),
    ("sh", "sh tests/run.sh.old\n", "names no script"),
    ("sh shown", "if true; then\n", "does not parse"),
    ("console", "$ echo one\ntwo\n", "has another output"),
    ("console", "one\n$ echo one\n", "has output before the first command"),
    ("console", "$ echo one\none\nmore\n", "has more output than there is"),
    ("console", "$ false\n$ echo $?\n0\n", "has another exit status"),
    ("text", "$ echo one\n", "holds a command"),
    ("", "anything\n", "has no language"),
    ("bash", "true\n", "has a language that nobody tries out"),
]


def check_faults(report, root, build):
    with tempfile.TemporaryDirectory() as folder:
        tree = blocks.Tree(root, build)
        tree.enter(folder)
        for info, content, fault in FAULTS:
            what = "a block \"%s\" that %s is found" % (info, fault)
            try:
                passed, _ = blocks.try_out(tree, markdown.Block(1, info, content))
                report.ok(not passed, what, content)
            except blocks.Skip as why:
                report.skip(what, why)
        passed, detail = blocks.try_out(tree, markdown.Block(1, "console", "$ printf 'a\\nb\\nc\\n'\n...\nc\n$ false\n$ echo $?\n1\n"))
        report.ok(passed, "a transcript may leave out lines", detail)
    report.ok(first_block("# Title\n\n%s```sh\ntrue\n```\n" % ("prose\n" * FIRST_LINES)) > FIRST_LINES,
              "a page that starts with prose is found")


def first_block(text):
    """The line of the first block or table; beyond every page when there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```") or line.startswith("|"):
            return number
    return sys.maxsize


def check_page(report, root, build, name):
    text = markdown.read(root, name)
    if not NO_COPY.search(name):
        line = first_block(text)
        report.ok(line <= FIRST_LINES, "%s: starts with what to copy" % name,
                  "no block and no table in the first %d lines" % FIRST_LINES)
    fences = len(re.findall(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE))
    found = markdown.blocks(text)
    report.ok(fences == 2 * len(found), "%s: every fence is at the start of a line and closed" % name,
              "%d fences, %d blocks" % (fences, len(found)))
    with tempfile.TemporaryDirectory() as folder:
        tree = blocks.Tree(root, build)
        tree.enter(folder)
        for block in found:
            what = "%s:%d: block \"%s\"" % (name, block.line, " ".join(block.words))
            try:
                passed, detail = blocks.try_out(tree, block)
                report.ok(passed, what, detail)
            except blocks.Skip as why:
                report.skip(what, why)


def check_paths(report, root, name):
    """Links, and words in backquotes that look like a path of this tree."""
    text = markdown.read(root, name)
    here = os.path.dirname(name)
    links = [os.path.normpath(os.path.join(here, target))
             for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)]
    tops = "include|lib|examples|tests|bindings|docs|pkgconfig"
    named = re.findall(r"`((?:%s)/[A-Za-z0-9_./-]*)`" % tops, markdown.without_blocks(text))
    commands = re.findall(r"\bsh ((?:%s)/[A-Za-z0-9_./-]+)" % tops, text)
    # "lib/base/abi" may stand for abi.c and abi.h.
    missing = sorted({path for path in links + named + commands
                      if not os.path.exists(os.path.join(root, path)) and not glob.glob(os.path.join(root, path + ".*"))})
    report.ok(not missing, "%s: every file that it names exists (%d)" % (name, len(links + named + commands)),
              "\n".join(missing))


def check_readme(report, root):
    readme = markdown.read(root, "README.md")
    first = next((block.content for block in markdown.blocks(readme) if block.words == ["c"]), "")
    minimal = markdown.read(root, "examples/minimal.c")
    report.ok(first == minimal[minimal.index("#include"):], "README.md's first C block is examples/minimal.c")
    for command in ("sh examples/quickstart.sh", "sh tests/run.sh"):
        report.ok(re.search("^%s$" % re.escape(command), readme, re.MULTILINE) is not None,
                  "README.md shows the command: " + command)


def main():
    root, build = sys.argv[1:3]
    report = Report()
    wanted = sys.argv[3:]
    if not wanted:
        check_readme(report, root)
        check_faults(report, root, build)
    for name in wanted or markdown.pages(root):
        check_page(report, root, build, name)
        check_paths(report, root, name)
    report.end()


main()
