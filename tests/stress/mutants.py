#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults planted in lock-free code, one at a time: a test must find each, and the code as it is must pass.

    mutants.py SOURCE_ROOT COMPILER...          TAP on standard output

A mutant that makes a test wait for ever is found as well: every wait in the algorithm has an end.
"""
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

ROOT, COMPILER = sys.argv[1], sys.argv[2:]
# Of lib/state: where faults are planted. The programs include them, the sources too.
FILES = ("transaction.h", "transaction_help.h", "memory_word.h", "memory_deadline.c", "memory_index.c", "memory_line.c")
PROGRAMS = {"stops": ["transaction_stops.c"], "histories": ["transaction.c", "linear.c"],
            "deadlines": ["memory_deadlines.c"], "lines": ["memory_lines.c"]}
# What lines stand on: keys and hashes.
LIBRARY = ["lib/state/table.c", "lib/base/hash.c", "lib/base/memory.c", "lib/base/names.c"]

# (what is wrong, file, text, what stands there instead, the program that finds it)
MUTANTS = [
    ("a conditional swap does not look at the status", "transaction_help.h",
     "active = admi_txn_load_ordered(&txn->contexts[context].status) == status;",
     "active = admi_txn_load_ordered(&txn->contexts[context].status) != 0;", "stops"),
    ("what a helper left is not decided before reuse", "transaction_help.h",
     """            if (ADMI_TXN_TAG(met) == ADMI_TXN_CONDITIONAL) {
                admi_txn_decide(txn, met);
                continue;
            }
            ADMI_TXN_AT(clean);""",
     "            ADMI_TXN_AT(clean);", "stops"),
    ("a reader trusts an attempt that is not decided", "transaction_help.h",
     "ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_COMMITTED ? to\n",
     "ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_ABORTED ? to\n", "stops"),
    ("a reader takes a free context for an aborted attempt", "transaction_help.h",
     """        if (ADMI_TXN_STATUS_ATTEMPT(status) == ADMI_TXN_ATTEMPT_OF(met) &&
            ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_FREE)
            return""",
     """        if (ADMI_TXN_STATUS_ATTEMPT(status) == ADMI_TXN_ATTEMPT_OF(met))
            return""", "stops"),
    ("a reader does not look whose entry it has read", "transaction_help.h",
     """        if (ADMI_TXN_STATUS_ATTEMPT(status) == ADMI_TXN_ATTEMPT_OF(met) &&
            ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_FREE)
            return""",
     """        if (ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_FREE)
            return""", "histories"),
    ("notes have the number of the attempt before", "transaction.h",
     "admi_txn_store(&self->status, ADMI_TXN_STATUS(attempt + 1, ADMI_TXN_ABORTED));",
     "admi_txn_store(&self->status, ADMI_TXN_STATUS(attempt, ADMI_TXN_ABORTED));", "stops"),
    ("a change of the guard aborts nobody", "transaction.h",
     "        if (ADMI_TXN_STATUS_STATE(seen) == ADMI_TXN_ACTIVE && (seen & ADMI_TXN_HARD) == 0)\n",
     "        if (0)\n", "stops"),
    ("a transaction does not look at the guard", "transaction.h",
     "    if (end != ADMI_TXN_AGAIN && !admi_txn_is_guarded(txn))\n", "    if (0)\n", "stops"),
    ("a refusal does not look at the guard", "transaction.h",
     "    if (end != ADMI_TXN_AGAIN && !admi_txn_is_guarded(txn))\n",
     "    if (end == ADMI_TXN_DONE && !admi_txn_is_guarded(txn))\n", "histories"),
    ("a hard refusal does not look at the guard", "transaction.h",
     "return admi_txn_is_guarded(txn) ? end : ADMI_TXN_STALE;", "return end;", "histories"),
    ("a hard attempt does not have the guard among its words", "transaction.h",
     "    admi_txn_store(&self->count, count + 1);",
     "    for (uint32_t i = 0; i < count; i++) {\n"
     "        admi_txn_store(&self->entries[i].word, admi_txn_load(&self->entries[i + 1].word));\n"
     "        admi_txn_store(&self->entries[i].from, admi_txn_load(&self->entries[i + 1].from));\n"
     "        admi_txn_store(&self->entries[i].to, admi_txn_load(&self->entries[i + 1].to));\n"
     "    }\n"
     "    admi_txn_store(&self->count, count);", "stops"),
    ("an aborted attempt commits", "transaction.h",
     "        end = ADMI_TXN_AGAIN; /* somebody aborted it */", "        end = ADMI_TXN_DONE;", "histories"),
    ("a refused attempt leaves its references", "transaction.h",
     "    admi_txn_take_out(txn, attempt, entered, end == ADMI_TXN_DONE);",
     "    admi_txn_take_out(txn, attempt, end == ADMI_TXN_DONE ? entered : 0, end == ADMI_TXN_DONE);", "histories"),
    ("new values are put back after a refusal", "transaction.h",
     "    admi_txn_take_out(txn, attempt, entered, end == ADMI_TXN_DONE);",
     "    admi_txn_take_out(txn, attempt, entered, 1);", "histories"),
    ("an attempt is not aborted by who meets it", "transaction_help.h",
     "        if (admi_txn_swap(&owner->status, &status, ADMI_TXN_STATUS_TO(status, ADMI_TXN_ABORTED))) {\n",
     "        if (0) {\n", "stops"),
    ("nobody looks whose word it is now", "transaction.h",
     "        if (end != ADMI_TXN_AGAIN && !admi_txn_still(txn, &steps[i]))\n", "        if (0)\n", "stops"),
    ("a refusal does not look whose word it is now", "transaction.h",
     "        if (end != ADMI_TXN_AGAIN && !admi_txn_still(txn, &steps[i]))\n",
     "        if (end == ADMI_TXN_DONE && !admi_txn_still(txn, &steps[i]))\n", "stops"),
    ("a hard attempt does not look whose word it is", "transaction.h",
     "        if (!admi_txn_still(txn, step)) /*", "        if (0) /*", "stops"),
    ("two attempts have one number", "transaction.h",
     "uint64_t attempt = admi_txn_attempt(txn) + 1;\n        int end;",
     "uint64_t attempt = admi_txn_attempt(txn);\n        int end;", "histories"),
    ("a raise does not mark its bound", "memory_deadline.c",
     "uint64_t marked = MEMORY_BOUND_TIME(met) | (txn->self + 1);", "uint64_t marked = met;", "deadlines"),
    ("the mark of a raise is everybody's", "memory_deadline.c",
     "uint64_t marked = MEMORY_BOUND_TIME(met) | (txn->self + 1);",
     "uint64_t marked = MEMORY_BOUND_TIME(met) | 1;", "deadlines"),
    ("a deadline leaves the mark of a raise", "memory_deadline.c",
     "        if (met == wanted)\n", "        if (MEMORY_BOUND_TIME(met) == wanted)\n", "deadlines"),
    ("only the first bound is looked at", "memory_deadline.c",
     "    for (uint64_t level = 0; level < deadlines->levels; level++) {\n        place /=",
     "    for (uint64_t level = 0; level < 1; level++) {\n        place /=", "deadlines"),
    ("a step does not look at the generation", "memory_word.h",
     "    return step->hold == 0 ||\n", "    return 1 || step->hold == 0 ||\n", "lines"),
    ("a line that is pinned is evicted", "memory_line.c",
     "if (MEMORY_HOLD_PINS(hold) > 0 || has_kept(", "if (has_kept(", "lines"),
    ("a line is evicted whatever it holds", "memory_line.c",
     "        if (tag != MEMORY_TAG_NONE && !idle->is_idle(idle->self, tag, value))\n            return false;\n",
     "", "lines"),
    ("an evicted line keeps its generation", "memory_line.c",
     "hold, MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold) + 1, 0));",
     "hold, MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold), 0));", "lines"),
    ("a line is made without changing versions", "memory_line.c",
     "(versions[b] + 1) & ADMI_TXN_VALUE_MAX", "versions[b]", "lines"),
    ("a word is taken away unseen", "memory_line.c",
     "        hold = MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold) + 1, MEMORY_HOLD_ORDINAL(hold));\n", "", "lines"),
    ("a pinned line's word is taken away", "memory_line.c",
     "    if (MEMORY_HOLD_PINS(at->hold) > 0)\n        return false;\n", "", "lines"),
    ("a word is claimed although a line came behind it", "memory_line.c",
     "    plan_set(&plan, txn, &line->hold, at->hold, hold);\n",
     "    if (before == MEMORY_TAG_NONE || at->hold != admi_memory_read(txn, &line->hold))\n"
     "        plan_set(&plan, txn, &line->hold, at->hold, hold);\n", "lines"),
    ("the next line of a partition does not pin the one before", "memory_line.c",
     "    if (at->lines > 0)\n        plan_units(", "    if (0)\n        plan_units(", "lines"),
    ("a line is found that is in no index", "memory_index.c",
     " || admi_memory_read(txn, entry) != value)", ")", "lines"),
    ("a value is not found while its line changes", "memory_line.c",
     """        found = tag_find(lines, txn, tag, out);
        if (!is_same(txn, out))
            continue; /* whose tags were that? Once more */
""", """        found = tag_find(lines, txn, tag, out);
        if (!is_same(txn, out))
            found = false;
""", "lines"),
]

# Found by the thread sanitizer alone: on most machines every swap is a barrier.
RELAXED = ["-fsanitize=thread", "-DADMI_TXN_SWAP_ORDER=memory_order_relaxed"]

report = Report()


def build(folder, program, name, flags=()):
    binary = os.path.join(folder, name)
    include = [os.path.join(folder, "include"), os.path.join(ROOT, "include"), os.path.join(ROOT, "lib")]
    sources = [os.path.join(ROOT, "tests", "stress", source) for source in PROGRAMS[program]]
    if program == "lines":
        sources += [os.path.join(ROOT, source) for source in LIBRARY]
    done = subprocess.run(COMPILER + ["-std=gnu11", "-O1", "-w"] + list(flags) + ["-I" + path for path in include] + sources
                          + ["-o", binary, "-pthread", "-lxxhash"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return binary if done.returncode == 0 else None, done.stdout.decode("utf-8", "replace")


def run(binary, seed, seconds):
    """The tests that failed; None: it did not come to an end."""
    try:
        done = subprocess.run([binary], env=dict(os.environ, ADMIT_STRESS_SEED=str(seed), ADMIT_STRESS_SCALE="1"), timeout=seconds,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None
    failed = [line for line in done.stdout.decode().splitlines() if line.startswith("not ok")]
    return failed or (["it ended with %d" % done.returncode] if done.returncode != 0 else [])


def plant(folder, place, text, instead):
    """False: the text is not there exactly once."""
    os.makedirs(os.path.join(folder, "include", "state"), exist_ok=True)
    for name in FILES:
        with open(os.path.join(ROOT, "lib", "state", name), encoding="utf-8") as file:
            source = file.read()
        if name == place:
            if source.count(text) != 1:
                return False
            source = source.replace(text, instead)
        with open(os.path.join(folder, "include", "state", name), "w", encoding="utf-8") as file:
            file.write(source)
    return True


def found(folder, program, flags=()):
    """By chance, so several times; every time when the schedule is made for it."""
    binary, output = build(folder, program, program, flags)
    if binary is None:
        return False, output
    for seed in range(1, 7):
        failed = run(binary, seed, 10)
        if failed is None:
            return True, "it does not end"
        if failed:
            return True, failed[0]
    return False, "all tests passed, six times"


with tempfile.TemporaryDirectory() as scratch:
    for what, place, text, instead, program in MUTANTS:
        mutant = os.path.join(scratch, "%d" % report.count)
        if not plant(mutant, place, text, instead):
            report.ok(False, what, "its place is not in %s exactly once" % place)
            continue
        caught, how = found(mutant, program)
        report.ok(caught, "found: " + what, how)
        if caught:
            print("# by: " + how)
    sound = os.path.join(scratch, "sound")
    plant(sound, None, None, None)
    for program in sorted(PROGRAMS):
        binary, output = build(sound, program, program)
        failed = [output] if binary is None else run(binary, 1, 300)
        report.ok(failed == [], "no fault, and %s finds none" % program, str(failed))
    what = "found: swaps order nothing"
    binary, output = build(sound, "stops", "sanitized", RELAXED[:1])
    if binary is None or run(binary, 1, 300) != []:
        report.skip(what, "the thread sanitizer does not work here")
    else:
        caught, how = found(sound, "stops", RELAXED)
        report.ok(caught, what, how)
report.end()
