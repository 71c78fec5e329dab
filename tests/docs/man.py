#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual pages: complete against headers, field tables and the command; their C compiles; they lint clean.

    man.py SOURCE-ROOT BUILD-ROOT         TAP on standard output
"""
import os
import re
import shutil
import sys

import blocks
import markdown

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:])
PAGES = {"admit.1": ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"],
         "admit-policy.5": ["NAME", "SYNOPSIS", "DESCRIPTION", "CAVEATS", "SEE ALSO", "HISTORY"],
         "libadmit.3": ["NAME", "SYNOPSIS", "DESCRIPTION", "OWNERSHIP AND THREADS", "RETURN VALUE", "EXAMPLE",
                        "CAVEATS", "SEE ALSO", "HISTORY"],
         "admit-backend.7": ["NAME", "SYNOPSIS", "DESCRIPTION", "OWNERSHIP AND THREADS", "RETURN VALUE", "EXAMPLE",
                             "CAVEATS", "SEE ALSO", "HISTORY"]}


def source(name):
    return markdown.read(ROOT, "docs/man/%s.scd" % name)


def sections(text):
    """heading -> text"""
    parts = re.split(r"^# (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_functions(report):
    exported = re.findall(r"^\s+(adm_\w+);", markdown.read(ROOT, "lib/admit.map"), re.MULTILINE)
    both = source("libadmit.3") + source("admit-backend.7")
    named = set(re.findall(r"\b(adm_\w+)\b", both.replace("\\_", "_")))
    missing = sorted(set(exported) - named)
    report.ok(exported and not missing, "libadmit(3) and admit-backend(7) name all %d functions" % len(exported),
              "\n".join(missing))
    called = set(re.findall(r"\*(adm_\w+)\*\(", both))
    report.ok(called and called <= set(exported), "they name no function that does not exist",
              "\n".join(sorted(called - set(exported))))


def check_fields(report):
    """The field tables of the reader are the truth about what may stand in a document."""
    tables = markdown.read(ROOT, "lib/policy/schema.c")
    found = re.findall(r"\b(?:FIELD|BOUNDED|HOLDING|CHOICE|NUMBER|COMPARISON)\(\s*\"(\w+)\"", tables)
    text = source("admit-policy.5").replace("\\_", "_")
    missing = sorted({name for name in found if not re.search(r"(?<!\w)_%s_(?!\w)" % name, text)})
    report.ok(len(found) > 40 and not missing, "admit-policy(5) has every field of the format (%d)" % len(found),
              "\n".join(missing))
    for member in ("rule_type_words", "builtin_unit_words", "window_words"):
        words = re.search(r"admi_%s\[\] = \{(.*?)\};" % member, tables, re.DOTALL).group(1)
        words = re.findall(r"\"(\w+)\"", words)
        absent = [word for word in words if not re.search(r"\b%s\b" % word, text)]
        report.ok(words and not absent, "admit-policy(5) has every word of %s" % member, "\n".join(absent))


def check_exit_codes(report):
    header = markdown.read(ROOT, "bindings/cli/cli.h")
    codes = sorted(set(re.findall(r"\bCLI_\w+ = (\d+)", header)))
    listed = re.findall(r"^\*(\d+)\*$", sections(source("admit.1"))["EXIT STATUS"], re.MULTILINE)
    report.ok(len(codes) >= 4 and set(codes) <= set(listed), "admit(1) has every exit code (%s)" % " ".join(codes),
              "listed: %s" % " ".join(listed))


def check_code(report):
    tree = blocks.Tree(ROOT, BUILD)
    tree.folder = BUILD
    for name in PAGES:
        for block in markdown.blocks(source(name)):
            what = "%s:%d" % (name, block.line)
            if "#include" in block.content:
                passed, detail = blocks.try_out(tree, markdown.Block(block.line, "c", block.content))
                report.ok(passed, what + ": the C block compiles", detail)
            elif block.content.lstrip().startswith("{") or block.content.startswith("version:"):
                language = "json" if block.content.lstrip().startswith("{") else "yaml"
                try:
                    passed, detail = blocks.try_out(tree, markdown.Block(block.line, language, block.content))
                    report.ok(passed, what + ": the document is valid", detail)
                except blocks.Skip as why:
                    report.skip(what + ": the document is valid", why)


def check_pages(report):
    for name, headings in PAGES.items():
        missing = [heading for heading in headings if heading not in sections(source(name))]
        report.ok(not missing, "%s has its sections" % name, "\n".join(missing))
    tree = blocks.Tree(ROOT, BUILD)
    tree.folder = BUILD
    for name in list(PAGES) + ["admit-diagnostics.7"]:
        what = "mandoc has nothing to say of " + name
        path = os.path.join(BUILD, "docs", "man", name)
        if not os.path.exists(path):
            report.skip(what, "the page is not built: no scdoc, or option man")
        elif shutil.which("mandoc") is None:
            report.skip(what, "mandoc is not here")
        else:
            code, output = tree.run(["mandoc", "-Tlint", "-W", "warning", path])
            report.ok(code == 0 and output == "", what, output)


def main():
    report = Report()
    check_functions(report)
    check_fields(report)
    check_exit_codes(report)
    check_code(report)
    check_pages(report)
    report.end()


main()
