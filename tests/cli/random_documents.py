# SPDX-License-Identifier: Apache-2.0
"""Random policies: both forms get one verdict, and admit fmt changes nothing but the layout.

usage: random_documents.py ADMIT [SEED [COUNT]]      prints TAP
"""
import json
import os
import random
import subprocess
import sys
import tempfile

WORDS = ["a", "consumer", "no", "on", "y", "null", "~", "1e3", "0x1f", "010", "2026-12-01", ".inf", "\u00e9", "\u65e5",
         "\U0001f600", "a: b", "a #b", "- x", "\t", "\\", "\"", "'", "*", "&a", "a*", "!t", "%x", "@", "`", "[x", "{y",
         "x,y", " lead", "trail ", "=", "<<", "?", "|", ">", "a\nb", "\x01", "\x7f", "\x85", "\u2028", "\ufeff",
         "x" * 70, "off", "true", "...", "---", "1:30", "_1", "0b1", "12_3", "+1", "\u00a0", "e\u0301", "\ue000", "\U0010ffff"]


def word():
    return chance.choice(WORDS)


def number():
    odd = [0, 10**12, 10**12 + 1, -1, 1.5, "5", True, None]
    return chance.choice(odd) if chance.random() < 0.1 else chance.randint(1, 1000)


def duration():
    return chance.choice(["0s", "1", "1 s", "1S", "367d"] if chance.random() < 0.1 else ["1ms", "1s", "5m", "366d"])


def match(inner=False):
    one = {word(): chance.choice([word(), [word(), word()], "*", word() + "*"]) for _ in range(chance.randint(0, 3))}
    if not inner and chance.random() < 0.2:
        one["not"] = match(True)
    return one


def rule(index):
    kind = chance.choice(["token_bucket", "concurrency", "request_cap", "quota", "pressure"])
    one = {"id": word() if chance.random() < 0.1 else "r%d" % index, "type": kind}
    one.update({
        "token_bucket": lambda: {"capacity": number(), "refill": number(), "per": duration()},
        "concurrency": lambda: {"limit": number(), "lease_ttl": duration()},
        "request_cap": lambda: {"limit": number()},
        "quota": lambda: {"limit": number(), "window": chance.choice(["day", "month"])},
        "pressure": lambda: {"signal": "kv", "gt": 0.5, "max_age": duration()},
    }[kind]())
    if chance.random() < 0.4:
        one["match"] = match()
    if chance.random() < 0.3:
        one["partition_by"] = sorted({word(), word()})
    if chance.random() < 0.2:
        one["description"] = word() + word()
    if chance.random() < 0.1:
        one[word()] = word()
    if kind != "pressure" and chance.random() < 0.3:
        one["overrides"] = [{"when": match() or {"a": "b"}, "off": True}]
    members = list(one.items())
    chance.shuffle(members)
    return dict(members)


def policy():
    one = {"version": chance.choice(["v1", "1", "2026-12-01", "no", word()]),
           "rules": [rule(i) for i in range(chance.randint(1, 4))]}
    if chance.random() < 0.3:
        one["description"] = word() + " " + word()
    if chance.random() < 0.2:
        one["examples"] = [{"d": {word(): word()}, "cost": 1, "expect": {"allow": True}}]
    return one


def text_of(document):
    """JSON that is YAML as well: what YAML takes as no character, or as the end of a line, is escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=1)
    for c in "\x7f\x85\u2028\u2029\ufeff":
        text = text.replace(c, "\\u%04x" % ord(c))
    return text


def write(name, text):
    with open(name, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def admit(*arguments):
    return subprocess.run([command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def verdict(name, places=False):
    """Exit code and findings; the words of a finding may show a value as it is written."""
    done = admit("validate", "--format", "json", name)
    found = [[f[k] for k in ("severity", "code", "pointer") + (("line", "column") if places else ())]
             for f in json.loads(done.stdout)["files"][0]["findings"] if f["severity"] != "note"]
    return done.returncode, found if places else sorted(found)


def faults(document):
    write("p.json", text_of(document))
    write("same.yaml", text_of(document))
    if verdict("p.json", True) != verdict("same.yaml", True):
        yield "another verdict as YAML"
    code, found = verdict("p.json")
    laid_out = admit("fmt", "p.json")
    if laid_out.returncode != code:
        yield "fmt has another verdict"
    if code != 0:
        return
    write("q.json", laid_out.stdout)
    if json.loads(laid_out.stdout) != document:
        yield "fmt changes the document"
    if admit("fmt", "q.json").stdout != laid_out.stdout:
        yield "fmt changes its own output"
    write("p.yaml", admit("fmt", "--to", "yaml", "p.json").stdout)
    if verdict("p.yaml") != (code, found):
        yield "another verdict in the YAML of fmt"
    with open("p.yaml", "rb") as file:
        if admit("fmt", "p.yaml").stdout != file.read():
            yield "fmt changes its own YAML"
    if admit("fmt", "--to", "json", "p.yaml").stdout != laid_out.stdout:
        yield "another document by way of YAML"
    if admit("explain", "-f", "json", "p.json", "-d", "a=b").stdout != \
            admit("explain", "-f", "json", "p.yaml", "-d", "a=b").stdout:
        yield "another answer"


command = os.path.abspath(sys.argv[1])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
chance = random.Random(seed)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    write("p.json", '{"version": "v1", "rules": [{"id": "r", "type": "request_cap", "limit": 1}]}')
    print("1..3")
    if admit("fmt", "--to", "yaml", "p.json").returncode == 6:
        for name in range(1, 4):
            print("ok %d # SKIP built without libyaml" % name)
        sys.exit(0)
    valid, bad = 0, []
    for _ in range(count):
        document = policy()
        bad += [(fault, document) for fault in faults(document)]
        valid += verdict("p.json")[0] == 0
    for fault, document in bad[:5]:
        print("# %s: %s" % (fault, json.dumps(document)))
    print("%s 1 - %d random policies have one meaning (seed %d)" % ("not ok" if bad else "ok", count, seed))
    print("%s 2 - some of them are valid: %d" % ("ok" if valid * 8 > count else "not ok", valid))
    print("%s 3 - and some are not: %d" % ("ok" if (count - valid) * 8 > count else "not ok", count - valid))
    os.chdir("/")
sys.exit(1 if bad else 0)
