#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the bucket arithmetic with exact fractions: usage: state_odometer_check.py DUMP [LIVES [SEED]].

The model has no grid: a class drips refill/per tokens per nanosecond, a bucket holds what it holds. It follows the
decisions that were taken, and demands at every step that the bucket is never a whole grid unit ahead of the exact one
(what dripped counts from the floored reading at which it was last full), and lags it by at most one unit for the
reading and one for each change of numbers so far (each on the grid of its time). Nothing accumulates per operation.
"""
import math
import subprocess
import sys
from fractions import Fraction

FRESH = -2**63


class Model:
    def __init__(self, now, capacity, refill, per):
        self.time, self.capacity, self.rate = now, Fraction(capacity), Fraction(refill, per)
        self.levels = {i: self.capacity for i in range(4)}  # the last one is never touched: no bucket is fuller
        self.slack = Fraction(0)
        self.coarsest = Fraction(0)  # grid unit so far

    def advance(self, now):
        for i in self.levels:
            self.levels[i] = min(self.capacity, self.levels[i] + self.rate * (now - self.time))
        self.time = now

    def change(self, capacity, refill, per):
        self.capacity, self.rate = Fraction(capacity), Fraction(refill, per)
        for i in self.levels:
            self.levels[i] = min(self.capacity, self.levels[i])


class Grid:
    """The odometer as it was written down."""

    def __init__(self, fields):
        self.t0, self.v0, self.a, self.b, self.shift, self.floor, self.empty = map(int, fields)

    def reading(self, now):
        return self.v0 + (now - self.t0) * self.a // self.b

    def level(self, now, capacity):
        reading = self.reading(now)
        units = reading - max(self.empty, self.floor, reading - (int(capacity) << self.shift))
        return Fraction(units, 2**self.shift)


def compare_saturated(model, grid, now, which, where):
    """A debt beyond what a word can hold: documented. True: the model has it now as well."""
    if grid.empty != 2**62 - 2**59 - 1:
        return False
    have = grid.level(now, model.capacity)
    unit = Fraction(1, 2**grid.shift)
    assert model.levels[which] <= have + model.slack + model.coarsest + unit and have < 0, f'{where}: saturated at {float(have)}'
    model.levels[which] = have
    return True


def compare(model, grid, now, which, where):
    unit = Fraction(1, 2**grid.shift)
    have, exact = grid.level(now, model.capacity), model.levels[which]
    model.coarsest = max(model.coarsest, unit)
    if compare_saturated(model, grid, now, which, where):
        return
    assert have < exact + model.coarsest, f'{where}: holds {float((have - exact) / unit)} units more than exact'
    assert exact - have <= model.slack + unit, f'{where}: short by {float((exact - have) / unit)} units'


def check(lines):
    model, steps, grid, refused, taken = None, 0, None, 0, 0
    for number, line in enumerate(lines, 1):
        word, *fields = line.split()
        now, where = int(fields[0]), f'line {number}: {line}'
        if word == 'new':
            model, grid = Model(*map(int, fields[:4])), Grid(fields[4:])
            continue
        steps += 1
        model.advance(now)
        if word == 'change':
            before = grid
            model.change(*map(int, fields[1:4]))
            grid = Grid(fields[4:11])
            for which, empty in enumerate(fields[11:]):
                grid.empty = int(empty)
                compare_saturated(model, grid, now, which, where)
            # The old reading is rounded for good; and levels once more when they move to a coarser grid.
            model.slack += Fraction(1, 2**before.shift)
            if grid.shift < before.shift:
                model.slack += Fraction(1, 2**grid.shift)
            continue
        which, amount, ok, level, passes_at = map(int, fields[1:6])
        grid = Grid(fields[6:])
        unit = Fraction(1, 2**grid.shift)
        exact = model.levels[which]
        if word == 'take' and ok and amount == 0:
            pass
        elif word == 'take' and ok:
            taken += 1
            assert amount < exact + max(unit, model.coarsest), f'{where}: took {amount} of {float(exact)}'
            model.levels[which] = exact - amount
        elif word == 'take':
            refused += 1
            assert amount > exact - model.slack - unit or amount > model.capacity, f'{where}: refused {amount} of {float(exact)}'
        elif word == 'charge':
            model.levels[which] = exact - amount
        elif word == 'refund':
            model.levels[which] = min(model.levels[3], exact + amount)
        elif word == 'forget' and ok:
            assert model.levels[3] - exact <= model.slack + unit, f'{where}: forgot a bucket that is not as new'
        compare(model, grid, now, which, where)
        assert level == math.floor(grid.level(now, model.capacity)), f'{where}: level {level}'
        if word == 'take' and not ok:
            # The least time: the exact bucket must have it by then, and must not have had it much before.
            if amount > model.capacity or model.rate == 0:
                assert passes_at == 2**64 - 1, f'{where}: passes at {passes_at}'
            elif passes_at != 2**64 - 1:
                need = (amount - exact) / model.rate
                late = (model.slack + unit) / model.rate
                early = max(unit, model.coarsest) / model.rate
                assert now + need - early <= passes_at <= now + math.ceil(need + late) + 1, f'{where}: passes at {passes_at}'
            else:
                assert now + (amount - exact) / model.rate > 2**61, f'{where}: never'
        elif word == 'take':
            assert passes_at == now, f'{where}: took before the time told'
    return steps, taken, refused


def main():
    lines = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout.splitlines()
    steps, taken, refused = check(lines)
    assert steps > 1000 and taken > steps // 20 and refused > steps // 20, 'nothing much happened'
    print(f'{steps} steps agree with exact fractions: {taken} taken, {refused} refused')


main()
