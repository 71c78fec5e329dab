#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema against the reader: both must say the same of a document, or the difference is explained here.

    policy_schema_test.py ADMIT SOURCE_ROOT         TAP on standard output
"""
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

ADMIT, ROOT = sys.argv[1:]

try:
    import jsonschema
except ImportError:
    print("1..0 # SKIP the Python module jsonschema is not installed")
    sys.exit(0)

# What the reader refuses and a schema cannot say, by the word of the finding: how many documents of the collection there
# are at most, and why. A document more needs a look: perhaps the schema could say it.
BEYOND = {
    "rate": (3, "refill and per are bounded together"),
    "operator": (1, "which comparison an override may have depends on its rule"),
    "unit": (2, "which units are declared is said elsewhere in the document"),
    "unknown_rule": (1, "an example names a rule of the same document"),
    "duplicate_rule_id": (2, "ids are unique over all rules"),
    "duplicate_key": (5, "a parsed document has lost them"),
    "exponent": (3, "a parsed number has lost how it was written"),
    "whole_number": (2, "a parsed number has lost how it was written"),
    "decimal": (1, "a parsed number has lost how many digits it had"),
    "range": (2, "a parsed number has lost the sign of -0"),
    "fraction": (1, "digits behind the precision of a parsed number"),
    "nul": (2, "a character that the reader refuses in any string"),
    "surrogate": (2, "half a character, which some parsers take"),
}
# Mutations are written by a program, so only relations between places of the document are left.
RELATIONS = ("rate", "operator", "unit", "unknown_rule", "duplicate_rule_id")

report = Report()
ok = report.ok


def validator(document):
    done = subprocess.run([ADMIT, "schema", document], stdout=subprocess.PIPE, check=True)
    schema = json.loads(done.stdout.decode("ascii"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def read_verdicts(folder, texts):
    """What the reader says of each text: the words of its errors, none when it is taken."""
    verdicts = []
    for start in range(0, len(texts), 200):
        paths = []
        for i, text in enumerate(texts[start:start + 200]):
            paths.append(os.path.join(folder, "%d.json" % i))
            with open(paths[-1], "wb") as file:
                file.write(text)
        done = subprocess.run([ADMIT, "validate", "--format", "json"] + paths, stdout=subprocess.PIPE)
        for file in json.loads(done.stdout.decode("utf-8"))["files"]:
            errors = [finding["name"] for finding in file["findings"] if finding["severity"] == "error"]
            if file["valid"] == bool(errors):
                raise RuntimeError("valid and errors do not agree")
            verdicts.append(errors)
    return verdicts


def no_constant(text):
    raise ValueError(text)


def schema_takes(schema, text):
    try:
        return schema.is_valid(json.loads(text.decode("utf-8"), parse_constant=no_constant))
    except (ValueError, RecursionError):
        return False


def load(path):
    with open(path, "rb") as file:
        return file.read()


def in_folder(*parts):
    folder = os.path.join(ROOT, *parts)
    return {name: load(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".json")}


def collect():
    texts = {"accept/" + name: text for name, text in in_folder("tests", "policies", "accept").items()}
    texts.update({"reject/" + name: text for name, text in in_folder("tests", "policies", "reject").items()})
    texts.update({"examples/" + name: text for name, text in in_folder("examples", "policies").items()
                  if name != "limits.json"})
    scenarios = json.loads(load(os.path.join(ROOT, "tests", "scenarios", "05-strict-loader.json")).decode("utf-8"))
    for part in scenarios["scenarios"]:
        for document in part.get("documents", []):
            if document.get("format") == "json":
                text = document["text"].encode("utf-8", "surrogatepass") if "text" in document \
                    else bytes.fromhex(document["hex"])
                texts["scenario 05/" + document["name"]] = text
    return texts


def compare(folder, schema, texts, beyond_words):
    """Names of texts by how the two verdicts differ."""
    names = list(texts)
    stricter, beyond, unexplained, agreed = [], {}, [], 0
    for name, errors in zip(names, read_verdicts(folder, [texts[name] for name in names])):
        takes = schema_takes(schema, texts[name])
        if takes == (not errors):
            agreed += 1
        elif not takes:
            stricter.append("%s: the reader takes it, the schema says: %s" % (
                name, "; ".join(error.message[:150] for error in schema.iter_errors(json.loads(texts[name].decode())))))
        elif all(error in beyond_words for error in errors):
            beyond.setdefault(errors[0], []).append(name)
        else:
            unexplained.append("%s: only the reader refuses it, with %s" % (name, ", ".join(errors)))
    return stricter, beyond, unexplained, agreed


# ---- mutations of valid documents ----

WRONG = [None, True, False, 0, 1, -1, 2.5, 10 ** 12, 10 ** 12 + 1, "", "x", "*", "1s", "367d", "366d", "0s", "05s",
         "8785h", "token_bucket", "a b", "x" * 65, "x" * 257, [], {}, [[]], ["a", "a"], {"a": "b"}, {"not": {}},
         {"not": {"not": "a"}}, {"a": []}, ["service"], "off", 0.5, 1.5, {"a": "b", "not": {"c": "*"}}]


def places(value, path=()):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, path + (key,))


def mutate(chance, document):
    document = copy.deepcopy(document)
    path = chance.choice([path for path in places(document) if path])
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    kind = chance.randrange(5)
    if kind == 0:
        del parent[path[-1]]
    elif kind == 1 and isinstance(parent, dict):
        parent["unknown" if chance.randrange(2) else "Limit"] = 1
    elif kind == 2 and isinstance(parent, dict):
        names = ("capacity", "refill", "per", "limit", "lease_ttl", "park", "gt", "lte", "off", "charge", "settle",
                 "signal", "window", "scope_by", "per_replica", "max_partitions", "fraction", "max_age", "not")
        parent[chance.choice(names)] = chance.choice(WRONG)
    elif kind == 3 and isinstance(parent, dict) and isinstance(path[-1], str):
        parent[path[-1] + "x"] = parent.pop(path[-1])
    else:
        parent[path[-1]] = copy.deepcopy(chance.choice(WRONG))
    return document


RULES = [
    {"id": "bucket", "type": "token_bucket", "description": "d", "match": {"service": ["a", "b*"], "not": {"tier": "*"}},
     "partition_by": ["service"], "unit": "requests", "mode": "shadow", "charge": "completion", "settle": "exact",
     "per_replica": True, "scope_by": "model", "max_partitions": 5, "capacity": 10, "refill": 1, "per": "1s",
     "overrides": [{"when": {"tier": "gold"}, "capacity": 3}, {"when": {"tier": "internal"}, "off": True}]},
    {"id": "slots", "type": "concurrency", "limit": 4, "lease_ttl": "90s", "park": "1s", "fraction": 0.5},
    {"id": "cap", "type": "request_cap", "unit": "gpu_ms", "limit": 10},
    {"id": "pressure", "type": "pressure", "signal": "queue", "gt": 0.5, "max_age": "1m",
     "overrides": [{"when": {"tier": "gold"}, "gt": 1.5}]},
    {"id": "quota", "type": "quota", "unit": "tokens", "limit": 7, "window": "day", "settle": "exact"},
]
WHOLE = {
    "version": "v1", "description": "d", "unmatched": "deny", "max_clock_skew": "5s", "shard_by": "pool",
    "hard_timeout": "60s", "metric_labels": ["service"], "units": ["gpu_ms"], "rules": RULES,
    "on_state_failure": [{"id": "e", "match": {"service": "a"}, "capacity": 1, "refill": 1, "per": "1s"}],
    "examples": [{"description": "d", "d": {"service": "a"}, "cost": 2, "amounts": {"gpu_ms": 3},
                  "expect": {"allow": True, "reason": "allowed", "rules": [], "shadow": ["bucket"],
                             "retry_after_ms": None}}],
}


def mutations(seed, number):
    chance = random.Random(seed)
    texts = {}
    for i in range(number):
        document = WHOLE
        for _ in range(chance.randrange(1, 3)):
            document = mutate(chance, document)
        text = json.dumps(document, sort_keys=True)
        texts["mutation %d: %s" % (i, text)] = text.encode("ascii")
    return texts


def explain(beyond):
    for word, names in sorted(beyond.items()):
        print("# beyond the schema: %d with %s: %s" % (len(names), word, BEYOND[word][1]))


def run(folder):
    policy, table = validator("policy"), validator("table")
    ok(True, "both schemas are draft-07 schemas")

    texts = collect()
    stricter, beyond, unexplained, agreed = compare(folder, policy, texts, BEYOND)
    print("# %d documents, %d verdicts agree" % (len(texts), agreed))
    explain(beyond)
    ok(len(texts) > 200, "there are documents to compare", str(len(texts)))
    more = ["%s: %s" % (word, ", ".join(names)) for word, names in beyond.items() if len(names) > BEYOND[word][0]]
    ok(not more, "no more documents are beyond the schema than are counted", "\n".join(more))
    unused = [word for word in BEYOND if word not in beyond]
    ok(not unused, "every explanation is needed", ", ".join(unused))
    ok(not stricter, "the schema takes every document that the reader takes", "\n".join(stricter))
    ok(not unexplained, "what only the reader refuses is beyond a schema", "\n".join(unexplained))

    texts = mutations(20261201, 1200)
    stricter, beyond, unexplained, agreed = compare(folder, policy, texts, RELATIONS)
    print("# %d mutations, %d verdicts agree" % (len(texts), agreed))
    explain(beyond)
    ok(not stricter, "mutations: the schema takes what the reader takes", "\n".join(stricter))
    ok(not unexplained, "mutations: what only the reader refuses is beyond a schema", "\n".join(unexplained))

    patterns = set(re.findall(r'"pattern": ?"([^"]*ms[^"]*)"', json.dumps(policy.schema)))
    ok(len(patterns) == 1 and len(list(patterns)[0]) < 700, "durations have one pattern, and a short one", str(patterns))
    wrong = []
    for unit, most in (("ms", 31622400000), ("s", 31622400), ("m", 527040), ("h", 8784), ("d", 366)):
        numbers = {most + i for i in range(-1100, 1101)} | {10 ** i + j for i in range(13) for j in (-1, 0, 1)}
        numbers |= {most // 10 ** i * 10 ** i + j for i in range(11) for j in (-1, 0, 1)}
        numbers |= {most + 10 ** i for i in range(12)} | {most - 10 ** i for i in range(12)}
        for number in sorted(n for n in numbers if n >= 0):
            for pattern in patterns:
                if bool(re.fullmatch(pattern, "%d%s" % (number, unit))) != (1 <= number <= most):
                    wrong.append("%d%s" % (number, unit))
                if re.fullmatch(pattern, "0%d%s" % (number, unit)):
                    wrong.append("0%d%s" % (number, unit))
    ok(patterns and not wrong, "their pattern takes what is in the bounds", " ".join(wrong))

    entry = {"version": "t1", "rule": "r", "by": "consumer", "entries": {"a": {"capacity": 5}, "b": "off"}}
    ok(table.is_valid(json.loads(load(os.path.join(ROOT, "examples", "policies", "limits.json")).decode())),
       "the example of a limit table fits")
    ok(table.is_valid(entry), "a limit table fits")
    for name, change in (("no version", {"version": None}), ("an unknown member", {"rules": []}),
                         ("an entry that is on", {"entries": {"a": "on"}}), ("a null entry", {"entries": {"a": None}}),
                         ("an unknown number", {"entries": {"a": {"burst": 1}}}), ("an empty value", {"entries": {"": "off"}}),
                         ("two comparisons", {"entries": {"a": {"gt": 1, "lt": 2}}}), ("a wrong id", {"rule": "-r"})):
        ok(not table.is_valid(dict(entry, **change)), "a limit table with %s does not fit" % name)
    ok(not policy.is_valid(entry), "a limit table is no policy")


with tempfile.TemporaryDirectory() as scratch:
    run(scratch)
report.end()
