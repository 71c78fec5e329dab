#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed sample trace: it is what its generator writes, and it has the statistics that it claims.

    trace.py <examples/traces>      TAP on standard output
"""
import csv
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

FOLDER = sys.argv[1]
SAMPLE = os.path.join(FOLDER, "sample-azure-style.csv")
BURST = range(1600, 1660)

# Measured on the public trace: (name, value, relative tolerance). The tolerances allow for 2 400 rows
# instead of 19 366, and not for a different shape: they fail for exponential gaps or normal lengths.
GAP_FACTS = [("mean", 0.1808, 0.05), ("cv", 1.094, 0.06), (0.10, 0.016, 0.08), (0.25, 0.048, 0.05), (0.50, 0.118, 0.05),
             (0.75, 0.247, 0.05), (0.90, 0.421, 0.05), (0.99, 0.891, 0.08)]
INPUT_FACTS = [("mean", 1154.7, 0.04), (0.01, 29, 0.25), (0.10, 207, 0.05), (0.25, 396, 0.05), (0.50, 1020, 0.05),
               (0.75, 1189, 0.05), (0.90, 2735, 0.06), (0.99, 4142, 0.03), (0.999, 6212, 0.10)]
OUTPUT_FACTS = [("mean", 211.0, 0.04), (0.01, 16, 0.25), (0.10, 54, 0.05), (0.25, 85, 0.05), (0.50, 129, 0.05),
                (0.75, 395, 0.03), (0.90, 424, 0.03), (0.99, 601, 0.03), (0.999, 954, 0.05)]

report = Report()
ok = report.ok


def ticks(stamp):
    """Units of 100 ns since midnight."""
    clock, fraction = stamp.split(" ")[1].split(".")
    hours, minutes, seconds = clock.split(":")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10000000 + int(fraction)


def check(label, values, facts):
    ordered = sorted(values)
    mean = sum(ordered) / len(ordered)
    for fact, expected, tolerance in facts:
        if fact == "mean":
            seen = mean
        elif fact == "cv":
            seen = (sum((v - mean) ** 2 for v in ordered) / len(ordered)) ** 0.5 / mean
        else:
            seen = ordered[int(fact * (len(ordered) - 1))]
        ok(abs(seen - expected) <= tolerance * expected,
           "%s %s: %.4g, public trace %.4g, within %d %%" % (label, fact, seen, expected, round(100 * tolerance)))


def main():
    with open(SAMPLE, "rb") as file:
        committed = file.read()
    written = subprocess.run([sys.executable, os.path.join(FOLDER, "generate.py")], stdout=subprocess.PIPE, check=True).stdout
    ok(written == committed, "generate.py writes the committed bytes")
    other = subprocess.run([sys.executable, os.path.join(FOLDER, "generate.py"), "--seed", "1"], stdout=subprocess.PIPE,
                           check=True).stdout
    ok(other != committed, "another seed gives another trace")
    lines = committed.decode("ascii").splitlines()
    ok(lines[0] == "TIMESTAMP,ContextTokens,GeneratedTokens", "the columns of the public trace")
    rows = list(csv.DictReader(lines))
    ok(2000 <= len(rows) <= 3000, "%d rows" % len(rows))
    at = [ticks(row["TIMESTAMP"]) for row in rows]
    ok(all(a <= b for a, b in zip(at, at[1:])), "arrivals are in order")
    gaps = [(b - a) / 1e7 for a, b in zip(at, at[1:])]
    inside = [gaps[i - 1] for i in BURST if i > BURST.start]
    ok(max(inside) < 0.005, "the burst: %d requests in %.0f ms" % (len(BURST), 1000 * sum(inside)))
    check("gap", [g for i, g in enumerate(gaps, 1) if not BURST.start < i < BURST.stop], GAP_FACTS)
    check("input", [int(row["ContextTokens"]) for row in rows], INPUT_FACTS)
    check("output", [int(row["GeneratedTokens"]) for row in rows], OUTPUT_FACTS)
    ok(max(int(row["ContextTokens"]) for row in rows) <= 14050, "no input is longer than the longest of the public trace")
    ok(1 <= min(int(row["GeneratedTokens"]) for row in rows) <= max(int(row["GeneratedTokens"]) for row in rows) <= 1000,
       "output lengths from 1 to 1000")
    report.end()


main()
