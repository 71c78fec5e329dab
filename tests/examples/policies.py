#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every example policy is valid, does what its own examples say, and a mistake in it is found.

    policies.py <admit> <examples/policies>         TAP on standard output
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from tap import Report

ADMIT, FOLDER = sys.argv[1:]
POLICIES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".json") and name != "limits.json")

report = Report()
ok = report.ok


def admit(*arguments):
    done = subprocess.run([ADMIT] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def write(folder, name, document):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


def scenario(name, policy, steps):
    return {"title": name, "kind": "admission", "policy": policy, "steps": steps}


def run_scenarios(folder, name, scenarios):
    path = write(folder, name + ".json", {"title": name, "right": name, "scenarios": scenarios})
    return admit("test", path)


def steps_of_examples(policy):
    """One scenario for each example, so that none spends what another one needs."""
    for i, example in enumerate(policy["examples"]):
        step = dict(example, t=0, op="admit")
        yield scenario("%s, example %d" % (policy["version"], i), policy, [step])


def check_policy(folder, name):
    path = os.path.join(FOLDER, name)
    with open(path, encoding="utf-8") as file:
        policy = json.load(file)
    code, text = admit("validate", path)
    ok(code == 0, "%s is valid" % name, text)
    ok(policy.get("description", "").endswith("."), "%s says what it is for" % name)
    ok(len(policy.get("examples", [])) >= 3, "%s has at least three examples" % name)
    ok(any(not e["expect"]["allow"] for e in policy["examples"]), "%s has examples of denials" % name)
    code, text = run_scenarios(folder, name + ".examples", list(steps_of_examples(policy)))
    ok(code == 0, "%s does what its examples say" % name, text)

    wrong = json.loads(json.dumps(policy))
    wrong["examples"][0]["expect"]["allow"] = not wrong["examples"][0]["expect"]["allow"]
    code, text = run_scenarios(folder, name + ".wrong", list(steps_of_examples(wrong)))
    ok(code == 4, "%s with a wrong expectation fails" % name, "exit code %d\n%s" % (code, text))

    for number in range(len(policy["rules"])):
        wrong = json.loads(json.dumps(policy))
        wrong["rules"][number]["tpye"] = wrong["rules"][number].pop("type")
        code, text = admit("validate", write(folder, "misspelt.json", wrong))
        ok(code == 3 and "/rules/%d" % number in text and "type" in text,
           "%s with rule %d misspelt is refused, and the place is named" % (name, number), text)


def check_table(folder):
    """limits.json goes with per_tenant.json: who is in the table has other numbers."""
    with open(os.path.join(FOLDER, "per_tenant.json"), encoding="utf-8") as file:
        policy = json.load(file)
    with open(os.path.join(FOLDER, "limits.json"), encoding="utf-8") as file:
        table = json.load(file)

    def admits(tenant, expect):
        return {"t": 0, "op": "admit", "d": {"tenant": tenant}, "cost": 1, "amounts": {"tokens": 1}, "as": "lease",
                "expect": expect}

    def spend(tenant, times):
        """times admissions at once, each released, so that only the rate can be in the way."""
        for _ in range(times):
            yield admits(tenant, {"allow": True})
            yield {"t": 0, "op": "release", "of": "lease"}

    put = {"t": 0, "op": "table", "table": table}
    exceeded = {"allow": False, "reason": "rate_exceeded"}
    steps = {
        "tenant without an entry": list(spend("nobody", 20)) + [admits("nobody", exceeded)],
        "tenant with an entry": list(spend("acme", 200)) + [admits("acme", exceeded)],
        "tenant that is off": list(spend("load-test", 300)),
        "tenant with nothing": [admits("suspended-trial", {"allow": False, "reason": "unsatisfiable"})],
    }
    for name, rest in steps.items():
        code, text = run_scenarios(folder, "table." + name.replace(" ", "-"), [scenario(name, policy, [put] + rest)])
        ok(code == 0, "limits.json: " + name, text)
    code, text = run_scenarios(folder, "table.none", [scenario("no table", policy, steps["tenant with an entry"])])
    ok(code == 4, "without limits.json the same tenant has the rule's numbers", text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in POLICIES:
            check_policy(folder, name)
        check_table(folder)
    report.end()


main()
