#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python costs over C: each question beside the same loop in C, in turns in one run; and an ASGI application with and
without the middleware. What is counted is processor time of the thread.

    PYTHONPATH=BUILD/bindings/python python3 tests/bench/bench_python.py [ROUNDS]

A decision alone is timed in two ways. "no lease": the rule is a token bucket, so there is nothing to give back and every
decision is dropped at once. "lease kept": the decisions of a window are kept, and released when the clock has stopped; the loop
in C keeps the leases.
"""
import asyncio
import platform
import statistics
import sys
import time

import admit
from admit._native import lib
from admit.asgi import AdmitMiddleware

POLICY = """{"version": "v1", "rules": [
  {"id": "rate", "type": "token_bucket", "match": {"tenant": "*"}, "partition_by": ["tenant"],
   "capacity": 1000000000000, "refill": 1000000000, "per": "1s"},
  {"id": "busy", "type": "concurrency", "match": {"pool": "*"}, "partition_by": ["pool"], "limit": 1000, "lease_ttl": "60s"}]}"""
FACTS = {"tenant": "alice", "pool": "gpu"}
TENANT = {"tenant": "alice"}  # no concurrency rule matches: no lease
LOOPS = 1000
KEPT = 200
CALLS = 300


def timed(loop):
    start = time.thread_time_ns()
    loop()
    return time.thread_time_ns() - start


def decisions(gate, question):
    """Nothing to give back."""
    def loop():
        for _ in range(LOOPS):
            gate.admit(question)
    return lambda: timed(loop)


def kept(gate, question):
    found = [None] * KEPT
    places = range(KEPT)

    def loop():
        for i in places:
            found[i] = gate.admit(question)

    def measure():
        ns = timed(loop)
        for decision in found:
            decision.lease.release()
        return ns
    return measure


def pairs(gate, question):
    def loop():
        for _ in range(LOOPS):
            gate.admit(question).lease.release()
    return lambda: timed(loop)


async def application(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def calls(app):
    body = {"type": "http.request", "body": b"x" * 4096, "more_body": False}
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}

    async def receive():
        return body

    async def send(message):
        pass

    async def loop():
        for _ in range(CALLS):
            await app(scope, receive, send)
    return lambda: timed(lambda: asyncio.run(loop()))


def c_decisions(request, count):
    return lambda: lib.shim_measure_decisions(request._pointer, count) or sys.exit("the loop in C failed")


def c_pairs(request):
    return lambda: lib.shim_measure_pairs(request._pointer, LOOPS) or sys.exit("the loop in C failed")


def tables(gate):
    """Of each table the title, what one of its rows is a window of, and its rows; the first is what the others stand beside."""
    request, tenant = gate.request(FACTS), gate.request(TENANT)
    middleware = AdmitMiddleware(application, gate=gate, classify=lambda scope, body: request)
    return [
        ("a decision, no lease", LOOPS, [("C", c_decisions(tenant, LOOPS)),
                                         ("Python, prepared request", decisions(gate, tenant)),
                                         ("Python, dict", decisions(gate, TENANT))]),
        ("a decision, lease kept", KEPT, [("C", c_decisions(request, KEPT)),
                                          ("Python, prepared request", kept(gate, request)),
                                          ("Python, dict", kept(gate, FACTS))]),
        ("a pair of admit and release", LOOPS, [("C", c_pairs(request)),
                                                ("Python, prepared request", pairs(gate, request)),
                                                ("Python, dict", pairs(gate, FACTS))]),
        ("an ASGI request", CALLS, [("bare application", calls(application)), ("with the middleware", calls(middleware))]),
    ]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with admit.Gate(admit.Policy.loads(POLICY)) as gate:
        found = tables(gate)
        rows = [(title, name, measure, count, []) for title, count, named in found for name, measure in named]
        for number in range(rounds + 3):
            for _, _, measure, count, taken in rows:
                ns = measure() / count
                if number >= 3:
                    taken.append(ns)
    print("python    %s %s, %d rounds, interleaved" % (platform.python_implementation(), platform.python_version(), rounds))
    print("%-30s %8s %8s %8s %8s   %s" % ("", "ns", "q1", "q3", "least", "over the first of its table, in the same round"))
    for title, _, named in found:
        print(title)
        base = None
        for _, name, _, _, taken in (row for row in rows if row[0] == title):
            low, middle, high = statistics.quantiles(taken, n=4)
            over = "" if base is None else "%+8.0f ns" % statistics.median(a - b for a, b in zip(taken, base))
            print("  %-28s %8.0f %8.0f %8.0f %8.0f   %s" % (name, middle, low, high, min(taken), over))
            base = taken if base is None else base


main()
