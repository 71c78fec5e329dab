#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write sample-azure-style.csv: seven minutes of made-up traffic with the statistics of a public trace.

The columns, and the quantiles below, are those of the conversation trace that Microsoft published as
AzureLLMInferenceTrace_conv.csv (Azure/AzurePublicDataset, 2023: 19 366 requests in 3 502 s). No row of that
trace is repeated here: gaps between arrivals, input lengths and output lengths are drawn independently by
inverse-CDF interpolation, one draw in each of n equal slices of probability, in a shuffled order. One burst of
near-simultaneous requests is added, because the public trace, being one customer mix over an hour, has none.

    python3 generate.py > sample-azure-style.csv

The same seed gives the same bytes on every platform and Python >= 3.6: only random.random() is used, which
Python promises not to change, and only additions, multiplications and comparisons of doubles.
"""
import argparse
import datetime
import random
import sys

ROWS = 2400
SEED = 20231116
BURST_AT = 1600  # first row of the burst, counted from 0
BURST_ROWS = 60
BURST_GAP = 0.004  # seconds
START = datetime.datetime(2026, 1, 5, 10, 0, 0)

# (probability, value): points of the distribution functions of the public trace.
GAPS = [
    (0.0, 0.000002), (0.01, 0.000538), (0.05, 0.00632), (0.10, 0.016129), (0.25, 0.048272), (0.40, 0.087253),
    (0.50, 0.118424), (0.60, 0.15867), (0.75, 0.246733), (0.80, 0.28881), (0.90, 0.420531), (0.95, 0.565034),
    (0.98, 0.74922), (0.99, 0.888997), (0.995, 1.030757), (0.999, 1.376529), (1.0, 4.314579),
]
INPUT = [
    (0.0, 2), (0.01, 29), (0.05, 181), (0.10, 207), (0.25, 396), (0.40, 703), (0.50, 1020), (0.60, 1071),
    (0.75, 1189), (0.80, 1315), (0.90, 2734), (0.95, 4083), (0.98, 4098), (0.99, 4142), (0.995, 4831),
    (0.999, 6122), (1.0, 14050),
]
OUTPUT = [
    (0.0, 7), (0.01, 16), (0.05, 41), (0.10, 54), (0.25, 85), (0.40, 103), (0.50, 129), (0.60, 177),
    (0.75, 395), (0.80, 400), (0.90, 424), (0.95, 451), (0.98, 540), (0.99, 601), (0.995, 643), (0.999, 954),
    (1.0, 1000),
]


def inverse(points, probability):
    """The value at this probability, linear between two points."""
    for (p0, v0), (p1, v1) in zip(points, points[1:]):
        if probability <= p1:
            return v0 + (v1 - v0) * ((probability - p0) / (p1 - p0))
    return points[-1][1]


def draws(rng, points, count):
    """count values, one from each of count equal slices of probability, in a random order."""
    values = [inverse(points, (i + rng.random()) / count) for i in range(count)]
    for i in range(count - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        values[i], values[j] = values[j], values[i]
    return values


def rows(count, seed):
    """(ticks of 100 ns since the start, input tokens, output tokens), in order of arrival."""
    rng = random.Random(seed)
    gaps = draws(rng, GAPS, count)
    inputs = draws(rng, INPUT, count)
    outputs = draws(rng, OUTPUT, count)
    ticks = 0
    for i in range(count):
        if i > 0:
            in_burst = BURST_AT < i < BURST_AT + BURST_ROWS
            ticks += int((BURST_GAP if in_burst else gaps[i]) * 10000000 + 0.5)
        yield ticks, int(inputs[i] + 0.5), int(outputs[i] + 0.5)


def main():
    parser = argparse.ArgumentParser(description="Write a synthetic trace to standard output.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if options.rows < 1:
        parser.error("--rows must be at least 1")
    out = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for ticks, tokens_in, tokens_out in rows(options.rows, options.seed):
        moment = START + datetime.timedelta(seconds=ticks // 10000000)
        out.append("%s.%07d,%d,%d" % (moment.strftime("%Y-%m-%d %H:%M:%S"), ticks % 10000000, tokens_in, tokens_out))
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
