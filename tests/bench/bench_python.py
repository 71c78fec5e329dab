#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python costs over C: the same admit and release in a loop of C, with a prepared request, and with a dict; and an ASGI
application with and without the middleware. Windows are interleaved in one run; what is counted is processor time.

    PYTHONPATH=BUILD/bindings/python python3 tests/bench/bench_python.py [ROUNDS]
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
PAIRS = 2000
CALLS = 300


def timed(loop):
    start = time.thread_time_ns()
    loop()
    return time.thread_time_ns() - start


def pairs(gate, question):
    def loop():
        for _ in range(PAIRS):
            gate.admit(question).lease.release()
    return loop


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
    return lambda: asyncio.run(loop())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with admit.Gate(admit.Policy.loads(POLICY)) as gate:
        request = gate.request(FACTS)
        middleware = AdmitMiddleware(application, gate=gate, classify=lambda scope, body: request)
        windows = {
            "C, admit and release": (lambda: lib.shim_measure(gate._handle, request._pointer, PAIRS), PAIRS),
            "Python, prepared request": (None, PAIRS), "Python, dict": (None, PAIRS),
            "ASGI, bare application": (None, CALLS), "ASGI, with the middleware": (None, CALLS),
        }
        loops = {"Python, prepared request": pairs(gate, request), "Python, dict": pairs(gate, FACTS),
                 "ASGI, bare application": calls(application), "ASGI, with the middleware": calls(middleware)}
        taken = {name: [] for name in windows}
        for number in range(rounds + 3):
            for name, (measure, count) in windows.items():
                ns = (measure() if measure else timed(loops[name])) / count
                if number >= 3:
                    taken[name].append(ns)
    print("python    %s %s, %d rounds, interleaved" % (platform.python_implementation(), platform.python_version(), rounds))
    for name, values in taken.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print("%-28s %8.0f ns  (quartiles %.0f to %.0f)" % (name, middle, low, high))
    c = statistics.median(taken["C, admit and release"])
    for name in ("Python, prepared request", "Python, dict"):
        print("%-28s %+8.0f ns over C, a pair" % (name, statistics.median(taken[name]) - c))
    print("%-28s %+8.0f ns a request" % ("the middleware", statistics.median(taken["ASGI, with the middleware"])
                                         - statistics.median(taken["ASGI, bare application"])))


main()
