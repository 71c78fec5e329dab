#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A manual page from its source.

    page.py SCDOC SOURCE         the page on standard output

scdoc puts paragraph requests where there is no paragraph, which formatters skip and linters complain of: they
are left out.
"""
import subprocess
import sys

BREAKS = (".SH", ".SS", ".P", ".RS", ".RE")


def tidy(lines):
    kept = []
    apart = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ".SH"
        before = kept[-1] if kept else ".SH"
        if line == ".P" and (following.startswith(BREAKS) or before.startswith((".SH", ".SS", ".TH"))):
            # Items of a list keep their distance.
            apart = following == ".RE"
            continue
        if apart and kept[-1] == ".RE" and not line.startswith("."):
            kept.append(".P")
        apart = apart and line == ".RE"
        kept.append(line)
    return kept


def main():
    scdoc, source = sys.argv[1:]
    with open(source, "rb") as file:
        done = subprocess.run([scdoc], stdin=file, stdout=subprocess.PIPE)
    if done.returncode != 0:
        return 1
    sys.stdout.buffer.write("".join(line + "\n" for line in tidy(done.stdout.decode().splitlines())).encode())
    return 0


sys.exit(main())
