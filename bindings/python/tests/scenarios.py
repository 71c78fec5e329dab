#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenario files through the Python API, on the plain backend, on a deferring one, and there on an event loop too.

    scenarios.py FILE ...      prints TAP
"""
import asyncio
import json
import os
import re
import sys

import admit
from admit.testing import Deferring, ManualClock

MARK = "\0number:"  # a number with a point or an exponent keeps its text: documents are given on as they are written
FIELDS = {
    "admit": "d cost amounts attempt as", "release": "of result", "renew": "of", "settle": "of totals final",
    "divert": "of", "reload": "policy", "rollback": "version", "table": "table mode",
    "signal": "scope replica name value", "level": "rule d", "used": "rule d", "drain": "d cost until tries",
}
COMMON = {"t", "op", "repeat", "every_ms", "expect", "note"}


class Broken(Exception):
    """The scenario is not well formed."""


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Broken("a member is given twice: %s" % [key for key, _ in pairs])
    return members


def text_of(document):
    return re.sub(r'"\\u0000number:([^"]*)"', r"\1", json.dumps(document))


def measurement(value):
    if isinstance(value, str):
        try:
            return float(value[len(MARK):] if value.startswith(MARK) else value)
        except ValueError:
            return float("nan")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else float("nan")


class Run:
    def __init__(self, scenario, backend):
        sizes = scenario.get("backend", {})
        room = {name + "_max": sizes.get(name, 16384) for name in ("partitions", "leases", "attempts")}
        if "classes" in sizes:
            room["classes_max"] = sizes["classes"]
        self.clock = ManualClock()
        self.on_loop = backend == "event loop"
        self.gate = admit.Gate(admit.Policy.loads(text_of(scenario["policy"])), clock=self.clock, seed=1,
                               deferring=None if backend == "plain" else Deferring(), **room)
        for table in scenario.get("tables", []):
            self.gate.put_table(text_of(table))
        self.leases = {}

    async def step(self, step):
        """What the step answers, by the names that expectations use."""
        op = step["op"]
        answer = {}
        try:
            answer = await getattr(self, "op_" + op)(step)
        except admit.PolicyError as error:
            answer["error"] = next(f.name for f in error.findings if f.severity == "error")
        except admit.AdmitError as error:
            answer["error"] = error.name.replace("ADM_E_", "").lower()
        if op in ("reload", "rollback"):
            answer["version"] = self.gate.version
        return answer

    async def op_admit(self, step):
        question = step["d"], step["cost"]
        options = {"amounts": step.get("amounts"), "attempt": step.get("attempt")}
        decision = await self.gate.admit_async(*question, **options) if self.on_loop \
            else self.gate.admit(*question, **options)
        if "as" in step:
            self.leases[step["as"]] = decision.lease
        return {"allow": decision.allowed, "reason": decision.reason, "retry_after_ms": decision.retry_after_ms,
                "rules": list(decision.rules), "shadow": list(decision.shadow), "lease": decision.lease is not None,
                "table_version": decision.table_version, "unknown": decision.shadow_unknown,
                "http": decision.http_status, "version": decision.policy_version}

    def lease(self, step):
        # The name of a request that held nothing is a lease that nobody knows.
        return self.leases.get(step["of"]) or admit.Lease(self.gate, 0, 0)

    async def op_release(self, step):
        lease, result = self.lease(step), step.get("result", "ok")
        return {"outcome": await lease.release_async(result) if self.on_loop else lease.release(result)}

    async def op_renew(self, step):
        return {"outcome": await self.lease(step).renew_async() if self.on_loop else self.lease(step).renew()}

    async def op_divert(self, step):
        return {"outcome": await self.lease(step).divert_async() if self.on_loop else self.lease(step).divert()}

    async def op_settle(self, step):
        totals, final = step["totals"], step.get("final") or False
        if isinstance(final, list):
            final = [unit for unit in final if unit in totals]
        lease = self.lease(step)
        return {"outcome": await lease.settle_async(totals, final=final) if self.on_loop
                else lease.settle(totals, final=final)}

    async def op_reload(self, step):
        self.gate.publish(admit.Policy.loads(text_of(step["policy"])))
        return {}

    async def op_rollback(self, step):
        self.gate.rollback(step["version"])
        return {}

    async def op_table(self, step):
        if step.get("mode", "replace") not in ("replace", "patch"):
            raise Broken("mode is replace or patch")
        self.gate.put_table(text_of(step["table"]), patch=step.get("mode") == "patch")
        return {}

    async def op_signal(self, step):
        self.gate.signal(step["scope"], step["replica"], step["name"], measurement(step["value"]))
        return {}

    async def op_level(self, step):
        return {"floor": self.gate.read(step["rule"], step["d"])}

    async def op_used(self, step):
        return {"units": self.gate.read(step["rule"], step["d"])}

    async def op_drain(self, step):
        allowed = 0
        request = self.gate.request(step["d"], step["cost"])
        for ms in range(step["t"], step["until"] + 1, step["every_ms"]):
            self.clock.set_ns(ms * 1000000)
            for _ in range(step["tries"]):
                allowed += self.gate.admit(request).allowed
        return {"allowed": allowed}


KNOWN = {"allow", "reason", "retry_after_ms", "rules", "shadow", "lease", "table_version", "unknown", "http", "version",
         "error", "outcome", "floor", "units", "allowed"}


def agrees(key, want, got):
    if key == "outcome" and isinstance(want, list):
        return got in want
    if key == "reason" and want == "limited":
        return got in ("rate_exceeded", "concurrency_exceeded", "quota_exceeded")
    return type(want) is type(got) and want == got


async def play(scenario, backend):
    """What went wrong, as lines."""
    wrong = []
    if not scenario.get("steps"):
        raise Broken("a scenario needs a list of steps")
    with (run := Run(scenario, backend)).gate:
        for number, step in enumerate(scenario["steps"]):
            extra = set(step) - COMMON - set(FIELDS[step["op"]].split())
            if extra:
                raise Broken("step %d: this op has no field %s" % (number, sorted(extra)))
            repeat = 1 if step["op"] == "drain" else step.get("repeat", 1)
            for i in range(repeat):
                ms = step.get("t", 0) + i * step.get("every_ms", 0)
                run.clock.set_ns(ms * 1000000)
                answer = await run.step(step)
                for key, want in step.get("expect", {}).items():
                    if key not in KNOWN:
                        raise Broken("no answer has such a member: " + key)
                    if not agrees(key, want, answer.get(key)):
                        wrong.append("step %d %s t=%d: %s: expected %r, got %r (%r)"
                                     % (number, step["op"], ms, key, want, answer.get(key), answer))
    return wrong


def load(document):
    """A document of a loader scenario: what went wrong."""
    raw = document["text"] if "text" in document else bytes.fromhex(document["hex"])
    if document["expect"] not in ("accept", "reject"):
        raise Broken("expect is accept or reject")
    try:
        admit.Policy.loads(raw, format=document["format"])
        got = "accept"
    except admit.PolicyError as error:
        got = "reject" if error.findings else "a rejection without a finding"
    return [] if got == document["expect"] else ["expected %s, got %s" % (document["expect"], got)]


def main():
    number = failed = 0

    def report(name, wrong, skip=None):
        nonlocal number, failed
        number += 1
        failed += bool(wrong)
        print("%s %d - %s%s" % ("not ok" if wrong else "ok", number, name, " # SKIP " + skip if skip else ""))
        for line in wrong[:12]:
            print("# " + line)

    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            scenarios = json.load(file, parse_float=lambda text: MARK + text, object_pairs_hook=unique)["scenarios"]
        for index, scenario in enumerate(scenarios):
            name = "%s scenario %d" % (os.path.basename(path), index + 1)
            if scenario["kind"] == "loader":
                for document in scenario["documents"]:
                    report("%s: %s" % (name, document["name"].replace("#", "number ")), load(document))
            elif scenario["kind"] == "admission":
                for backend in ("plain", "deferring", "event loop"):
                    try:
                        wrong = asyncio.run(play(scenario, backend))
                    except (Broken, KeyError) as error:
                        wrong = ["not well formed: %r" % error]
                    report("%s on %s" % (name, backend), wrong)
            else:
                report(name, [], "no runner for kind %s yet" % scenario["kind"])
    print("1..%d" % number)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
