#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count what the tests of one "meson test" run say of themselves, from meson's own record.

    count.py <build>/meson-logs/testlog.json STAGE

Prints lines of tab-separated words: "count STAGE PASSED FAILED SKIPPED", "failed TEST: WHAT", "skipped STAGE TEST REASON WHAT".
A test that prints TAP counts as its lines; any other as one. A TAP test that fails without a line that says so (a
crash, a time-out, a plan that does not fit) counts as one more failure.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not ok|ok)\b\s*(\d*)\s*(?:-\s*)?(.*)$")
DIRECTIVE = re.compile(r"\s*#\s*(SKIP|TODO)\S*\s*(.*)$", re.IGNORECASE)
GOOD = ("OK", "EXPECTEDFAIL")


def tap_lines(text):
    """(passed, skipped reason or None, description) for each test line."""
    for line in text.splitlines():
        found = TAP_LINE.match(line)
        if not found:
            continue
        description = found.group(3)
        directive = DIRECTIVE.search(description)
        if directive:
            description = description[:directive.start()]
        reason = directive.group(2) if directive and directive.group(1).upper() == "SKIP" else None
        expected = directive is not None and directive.group(1).upper() == "TODO"
        yield found.group(1) == "ok" or expected, reason, description.strip().rstrip("# ")


def main():
    path, stage = sys.argv[1:]
    passed = failed = skipped = tests = 0
    with open(path, encoding="utf-8") as file:
        for record in (json.loads(line) for line in file if line.strip()):
            tests += 1
            name, result, text = record["name"], record["result"], record.get("stdout", "")
            lines = list(tap_lines(text)) if re.search(r"^1\.\.\d+", text, re.MULTILINE) else []
            bad = 0
            for good, reason, description in lines:
                if reason is not None:
                    skipped += 1
                    print("skipped\t%s\t%s\t%s\t%s" % (stage, name, reason or "no reason given", description))
                elif good:
                    passed += 1
                else:
                    bad += 1
                    print("failed\t%s: %s" % (name, description))
            failed += bad
            if result == "SKIP" and not lines:
                skipped += 1
                said = (text + record.get("stderr", "")).strip().splitlines()
                reason = re.sub(r"^1\.\.0\s*#\s*SKIP\S*\s*", "", said[-1]) if said else ""
                print("skipped\t%s\t%s\t%s\t" % (stage, name, reason or "no reason given"))
            elif result not in GOOD and result != "SKIP" and bad == 0:
                failed += 1
                print("failed\t%s: %s, exit status %s" % (name, result, record.get("returncode")))
            elif result in GOOD and not lines:
                passed += 1
    if tests == 0:
        sys.exit("no test was run")
    print("count\t%s\t%d\t%d\t%d" % (stage, passed, failed, skipped))


main()
