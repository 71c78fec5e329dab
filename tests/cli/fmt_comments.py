# SPDX-License-Identifier: Apache-2.0
"""Comments of YAML are found wherever they stand, and nothing else is taken for one.

The oracle is the document itself: a mark behind '#' that is not in the JSON form of the document
was a comment. usage: fmt_comments.py ADMIT FOLDER
"""
import os
import re
import subprocess
import sys

RULE = "version: v1\nrules:\n- id: a\n  type: request_cap\n  limit: 5\n"
BASES = [
    RULE,
    "%YAML 1.2\n---\n" + RULE + "...\n",
    "---\n" + RULE,
    RULE + "description: plain text\n  over two lines\n\n  and a third\n",
    RULE + "description: \"quoted text\n  over two lines\n\n  and \\\n  a third\"\n",
    RULE + "description: 'quoted text\n  over two lines'\n",
    RULE + "description: |\n  literal\n\n    text\n  \n  end\n",
    "description: |2-\n    literal\n   text\n\n\n" + RULE,
    "description: >+\n\n  folded\n  text\n\n" + RULE,
    "description: >-\n\n\n" + RULE,
    "{version: v1,\n rules: [\n  {id: a, type: request_cap,\n   limit: 5},\n ],\n}\n",
    '{"version": "v1",\n "rules": [{"id":"a",\n"type":"request_cap","limit":5}]}\n',
    "? version\n: v1\n? rules\n:\n  -\n    id: a\n    type: request_cap\n    limit: 5\n",
    "version: v1\r\nrules:\r\n- id: a\r\n  type: request_cap\r\n  limit: 5\r\n",
    "description: \"\u00e9\u20ac\U0001f600\"\n" + RULE,
    "version: v1\nrules: []\ndescription: ''\n",
    "version: v1\nrule: r\nby: d\nentries:\n  a: {limit: 1}\n  b: \"off\"\n",
    RULE.rstrip("\n"),
]


def variants():
    """(text with a mark behind '#', offset of the '#')"""
    for base in BASES:
        lines = base.splitlines(keepends=True)
        for i in range(len(lines) + 1):
            before, after = "".join(lines[:i]), "".join(lines[i:])
            for indent in (0, 1, 2, 3, 4, 6):
                glue = "" if before == "" or before[-1] == "\n" else "\n"
                text = before + glue + " " * indent
                yield text + "#MARK\n" + after, len(text)
            if i == len(lines):
                continue
            end = "\r\n" if lines[i].endswith("\r\n") else "\n" if lines[i].endswith("\n") else ""
            line = lines[i][:len(lines[i]) - len(end)]
            for glue in (" ", "  ", "\t", ""):
                yield before + line + glue + "#MARK" + end + after, len(before + line + glue)
            for at in [m.start() for m in re.finditer(r"[ ,:\[\]{}\"'|>-]", line)]:
                for glue in (" ", ""):
                    text = before + line[:at] + glue
                    yield text + "#MARK" + end + line[at:] + end + after, len(text)


def main():
    admit, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    names, places = [], {}
    for number, (text, offset) in enumerate(variants()):
        name = "c%d.yaml" % number
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write(text.replace("#MARK", "#mark%dm" % number))
        line_start = text.rfind("\n", 0, offset) + 1
        places[name] = (text.count("\n", 0, offset) + 1,
                        len(text[line_start:offset].encode()) + 1)
        names.append(name)
    run = lambda *arguments: subprocess.run([admit, "fmt", *arguments, *names], cwd=folder,
                                            capture_output=True, encoding="utf-8", check=False)
    shown = run("--to", "json", "--drop-comments")
    checked = run("--check")
    refused = set(re.findall(r"^(c\d+\.yaml):.*error\[ADM-D-", shown.stderr, re.M))
    content = set("c%s.yaml" % n for n in re.findall(r"#mark(\d+)m", shown.stdout))
    found = {}
    for name, line, column in re.findall(r"^(c\d+\.yaml):(\d+):(\d+): error: this comment",
                                         checked.stderr, re.M):
        found[name] = (int(line), int(column))
    wrong = []
    comments = 0
    for name in names:
        if name in refused:
            continue
        is_comment = name not in content
        comments += is_comment
        if is_comment and found.get(name) != places[name]:
            wrong.append("%s: comment at %s, found %s" % (name, places[name], found.get(name)))
        if not is_comment and name in found:
            wrong.append("%s: no comment, found one at %s" % (name, found[name]))
    print("%d texts, %d with a comment, %d with a mark as content, %d refused, %d wrong"
          % (len(names), comments, len(content), len(refused), len(wrong)))
    for line in wrong[:10]:
        print(line)
    return 1 if wrong or comments < 500 or len(content) < 50 else 0


sys.exit(main())
