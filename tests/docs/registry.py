#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The registry of findings: what is checked in is what it generates, and a registry in disorder is refused.

    registry.py SOURCE-ROOT         TAP on standard output
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

ROOT = sys.argv[1]
GENERATOR = os.path.join(ROOT, "lib", "policy", "generate_diagnostics.py")
REGISTRY = os.path.join(ROOT, "docs", "diagnostics.json")

report = Report()
ok = report.ok


def generate(path, form):
    done = subprocess.run([sys.executable, GENERATOR, path, form], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def refused(folder, what, change, expected):
    """A registry after a change: exit status 1, and the message says what is wrong."""
    with open(REGISTRY, encoding="utf-8") as file:
        document = json.load(file)
    change(document["diagnostics"])
    path = os.path.join(folder, "registry.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    code, out, err = generate(path, "rows")
    ok(code == 1 and out == "" and expected in err, "refused: " + what, err or out)


def main():
    code, out, err = generate(REGISTRY, "table")
    with open(os.path.join(ROOT, "docs", "diagnostics.md"), encoding="utf-8") as file:
        ok(code == 0 and out == file.read(), "docs/diagnostics.md is what the registry generates",
           err or "python3 lib/policy/generate_diagnostics.py docs/diagnostics.json table >docs/diagnostics.md")
    code, out, err = generate(REGISTRY, "man")
    if shutil.which("scdoc"):
        done = subprocess.run(["scdoc"], input=out.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ok(code == 0 and done.returncode == 0 and b"ADM" in done.stdout, "scdoc takes admit-diagnostics(7)",
           err + done.stderr.decode())
    else:
        report.skip("scdoc takes admit-diagnostics(7)", "scdoc is not here")
    with tempfile.TemporaryDirectory() as folder:
        refused(folder, "a number twice", lambda e: e[1].update(id=e[0]["id"]), "is taken")
        refused(folder, "a word twice", lambda e: e[1].update(name=e[0]["name"]), "is taken")
        refused(folder, "numbers that do not rise", lambda e: e.insert(0, e.pop()), "stands behind")
        refused(folder, "no text", lambda e: e[3].pop("text"), "ADM-D-104: no text")
        refused(folder, "an empty advice", lambda e: e[3].update(what_now=" "), "ADM-D-104: no what_now")
        refused(folder, "a severity that does not exist", lambda e: e[0].update(severity="fatal"), "fatal")
        refused(folder, "a misspelt member", lambda e: e[0].update(what_nwo="x"), "what_nwo")
        refused(folder, "an id of another form", lambda e: e[0].update(id="ADM-D-1"), "three digits")
        refused(folder, "a repair without a fault", lambda e: e[0]["example"].pop("bad"), "an example has bad")
        refused(folder, "an empty example", lambda e: e[0]["example"].update(bad=""), "are texts")
        refused(folder, "an example of something else", lambda e: e[0]["example"].update(of="log"), "none of policy")
        refused(folder, "no entry at all", lambda e: e.clear(), "no entry")
        broken = os.path.join(folder, "broken.json")
        with open(broken, "w", encoding="utf-8") as file:
            file.write('{"diagnostics": [{"id": "ADM-D-101", "id": "ADM-D-101"}]}')
        code, _, err = generate(broken, "rows")
        ok(code == 1 and "twice" in err, "refused: a member twice", err)
    report.end()


main()
