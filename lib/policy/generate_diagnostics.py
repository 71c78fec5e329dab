#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the registry of findings, docs/diagnostics.json, to everything that lists them.

    generate_diagnostics.py REGISTRY rows    the rows of lib/policy/catalog.h
    generate_diagnostics.py REGISTRY texts   the texts of "admit explain-code", as C
    generate_diagnostics.py REGISTRY man     admit-diagnostics(7), as scdoc
    generate_diagnostics.py REGISTRY table   docs/diagnostics.md

The result goes to standard output. A registry that is not in order ends with exit status 1 and says where: numbers
and words are unique, every entry says what it means and what to do, numbers rise.
"""
import json
import re
import sys

SEVERITIES = ("error", "warning")
EXAMPLES_OF = ("policy", "table", "patch")
FORMATS = ("json", "yaml")
FIELDS = ("id", "name", "severity", "since", "text", "what_now")
GROUPS = (
    (100, "The text", "What no reader of JSON or YAML should accept; most of these end the reading."),
    (200, "Shape and values", "Every one of these is collected, up to 20 at once."),
    (300, "Warnings", "Legal, but look again. A policy with warnings is taken."),
)


class Disorder(Exception):
    pass


def no_repeats(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Disorder("a member is there twice: %s" % ", ".join(name for name, _ in pairs))
    return found


def check_entry(entry, before):
    name = entry.get("id", "entry %d" % (len(before) + 1))
    unknown = set(entry) - set(FIELDS) - {"example"}
    if unknown:
        raise Disorder("%s: unknown member %s" % (name, ", ".join(sorted(unknown))))
    for field in FIELDS:
        if not isinstance(entry.get(field), str) or not entry[field].strip():
            raise Disorder("%s: no %s" % (name, field))
    if not re.match(r"^ADM-D-[1-9][0-9]{2}$", entry["id"]):
        raise Disorder("%s: an id is ADM-D- and three digits" % name)
    if not re.match(r"^[a-z][a-z0-9_]*$", entry["name"]):
        raise Disorder("%s: the name %r is no word" % (name, entry["name"]))
    if entry["severity"] not in SEVERITIES:
        raise Disorder("%s: severity %r is none of %s" % (name, entry["severity"], ", ".join(SEVERITIES)))
    for field, least in (("text", 12), ("what_now", 4)):
        if len(entry[field]) < least or "\n" in entry[field] or not entry[field].isascii():
            raise Disorder("%s: %s is one line of ASCII of at least %d characters" % (name, field, least))
    example = entry.get("example", {})
    if set(example) - {"bad", "good", "format", "of"} or ("example" in entry and "bad" not in example):
        raise Disorder("%s: an example has bad, and perhaps good, format and of" % name)
    for field, words in (("of", EXAMPLES_OF), ("format", FORMATS)):
        if example.get(field, words[0]) not in words:
            raise Disorder("%s: %s is none of %s" % (name, field, ", ".join(words)))
    if any(not isinstance(example.get(field, "x"), str) or not example.get(field, "x") for field in ("bad", "good")):
        raise Disorder("%s: bad and good are texts" % name)
    for other in before:
        for field in ("id", "name"):
            if entry[field] == other[field]:
                raise Disorder("%s: the %s %s is taken" % (name, field, entry[field]))
    if before and before[-1]["id"] > entry["id"]:
        raise Disorder("%s stands behind %s" % (name, before[-1]["id"]))


def read_registry(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file, object_pairs_hook=no_repeats)
    entries = []
    for entry in document["diagnostics"]:
        check_entry(entry, entries)
        entries.append(entry)
    if not entries:
        raise Disorder("there is no entry")
    return entries


def c_string(text):
    """A C string literal of any text."""
    out = []
    for byte in text.encode("utf-8"):
        if byte in (0x22, 0x5C):
            out.append("\\" + chr(byte))
        elif byte == 0x0A:
            out.append("\\n")
        elif 0x20 <= byte < 0x7F and byte != 0x3F:
            out.append(chr(byte))
        else:
            out.append("\\%03o" % byte)
    return '"%s"' % "".join(out)


def rows(entries):
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Generated from docs/diagnostics.json by lib/policy/generate_diagnostics.py: change the registry. */")
    print("#ifndef ADMI_DIAGNOSTIC_ROWS_H\n#define ADMI_DIAGNOSTIC_ROWS_H\n")
    print("/* X(enumerator, number of the code, word, severity) */")
    print("#define ADMI_DIAG_KINDS(X) \\")
    for entry in entries:
        last = entry is entries[-1]
        print('    X(%s, %s, "%s", %s)%s' % (entry["name"].upper(), entry["id"][6:], entry["name"],
                                             entry["severity"].upper(), "" if last else " \\"))
    print("\n#endif")


def texts(entries):
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Generated from docs/diagnostics.json by lib/policy/generate_diagnostics.py: change the registry. */")
    print('#include "diagnostic_texts.h"\n')
    print("const struct diagnostic_text diagnostic_texts[] = {")
    for entry in entries:
        example = entry.get("example", {})
        print("    {")
        for field in FIELDS:
            print("        .%s = %s," % (field, c_string(entry[field])))
        for field in ("bad", "good"):
            if field in example:
                print("        .%s = %s," % (field, c_string(example[field])))
        print("        .of = %s," % c_string(example.get("of", EXAMPLES_OF[0])))
        print("        .format = %s," % c_string(example.get("format", FORMATS[0])))
        print("    },")
    print("    { .id = NULL },\n};")


def grouped(entries):
    for first, title, about in GROUPS:
        of_group = [entry for entry in entries if first <= int(entry["id"][6:]) < first + 100]
        if of_group:
            yield title, about, of_group


def scdoc(text):
    """Literal text for scdoc: its own marks escaped."""
    return re.sub(r"([\\*_#~`])", r"\\\1", text)


def man(entries):
    print("admit-diagnostics(7)\n\n# NAME\n\nadmit-diagnostics - what the findings about a policy mean\n")
    print("# DESCRIPTION\n")
    print("The reader of policies and limit tables gives each kind of finding a stable code and a stable word.")
    print("*admit explain-code* _CODE_ prints the same texts. Numbers and words are never reused.\n")
    for title, about, of_group in grouped(entries):
        print("# %s\n\n%s\n" % (title.upper(), scdoc(about)))
        for entry in of_group:
            print("*%s* %s" % (entry["id"], scdoc(entry["name"])))
            print("\t%s" % scdoc(entry["text"]))
            print("\t%s\n" % scdoc(entry["what_now"]))
    print("# SEE ALSO\n\n*admit*(1), *admit-policy*(5)")


def markdown(text):
    return re.sub(r"([|*_\\<])", r"\\\1", text)


def table(entries):
    print("# Findings\n")
    print("`admit explain-code CODE` prints what this page says of one code:\n")
    print("```sh\nadmit explain-code ADM-D-214\n```\n")
    print("Codes and words are stable: they are never renamed, and never reused for something else. This page is generated from")
    print("`docs/diagnostics.json`, the registry that the reader itself is built from.")
    for title, about, of_group in grouped(entries):
        print("\n## %s\n\n%s\n" % (title, about))
        print("| code | word | what it means | what to do |\n|---|---|---|---|")
        for entry in of_group:
            print("| %s | `%s` | %s | %s |" % (entry["id"], entry["name"], markdown(entry["text"]),
                                               markdown(entry["what_now"])))


FORMS = {"rows": rows, "texts": texts, "man": man, "table": table}


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in FORMS:
        sys.exit(__doc__)
    try:
        FORMS[sys.argv[2]](read_registry(sys.argv[1]))
    except (Disorder, KeyError, ValueError) as error:
        sys.exit("%s: %s" % (sys.argv[1], error))


main()
