# SPDX-License-Identifier: Apache-2.0
"""The middleware, called by hand: every message and every cancellation."""
import asyncio
import json

import pytest
from conftest import policy

import admit
from admit.asgi import AdmitMiddleware, Question

POOL = {"pool": "p"}


def scope(path="/", headers=()):
    return {"type": "http", "method": "POST", "path": path, "headers": list(headers)}


def messages(*parts, last=True):
    found = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if last:
        found[-1]["more_body"] = False
    return found


def call(app, given, question=None, sent=None):
    """One request; each message of the client takes a trip through the loop, so that a cancellation can come there."""
    queue = list(given)
    sent = [] if sent is None else sent

    async def receive():
        await asyncio.sleep(0)
        return queue.pop(0) if queue else {"type": "http.disconnect"}

    async def send(message):
        await asyncio.sleep(0)
        sent.append(message)

    return app(question or scope(), receive, send), sent


async def echo(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        assert message["type"] == "http.request"
        body, more = body + message["body"], message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for i in range(3):
        await send({"type": "http.response.body", "body": body if i == 0 else b"", "more_body": i < 2})


def wrapped(gate, app=echo, **options):
    options.setdefault("classify", lambda scope, body: POOL)
    return AdmitMiddleware(app, gate=gate, **options)


def held(gate):
    for _ in range(200):
        units = gate.read("busy", POOL)
        if units == 0:
            break
    return units


@pytest.mark.parametrize("parts", [[b""], [b"x" * 4096], [b"x" * 65536] * 16, [b"", b"a", b"", b"b", b""]])
def test_bodies_are_replayed(any_gate, parts):
    seen = []
    app = wrapped(any_gate, classify=lambda scope, body: seen.append(body) or POOL)
    coroutine, sent = call(app, messages(*parts))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 200 and sent[1]["body"] == b"".join(parts) and seen == [b"".join(parts)]
    assert held(any_gate) == 0


def test_a_body_beyond_the_limit(gate):
    app = wrapped(gate, body_limit=10)
    coroutine, sent = call(app, messages(b"12345", b"678901"))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 413 and json.loads(sent[1]["body"])["error"]["code"] == "body_too_large"
    coroutine, sent = call(app, messages(b"12345", b"67890"))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 200


def test_denials(gate):
    full = [gate.admit(POOL).lease for _ in range(2)]
    coroutine, sent = call(wrapped(gate), messages(b"x"))
    asyncio.run(coroutine)
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 429 and b"retry-after" not in headers
    assert json.loads(sent[1]["body"])["error"]["code"] == "concurrency_exceeded"
    assert int(headers[b"content-length"]) == len(sent[1]["body"]) and len(headers[b"x-admission-decision-id"]) == 32
    for lease in full:
        lease.release()
    app = wrapped(gate, classify=lambda scope, body: Question({"consumer": "c"}, 3))
    for status in (200, 429):
        coroutine, sent = call(app, messages(b"x"))
        asyncio.run(coroutine)
        assert sent[0]["status"] == status
    headers = dict(sent[0]["headers"])
    assert 1 <= int(headers[b"retry-after"]) <= 3 and 1 <= int(headers[b"retry-after-ms"]) <= 3000
    assert b"x-should-retry" not in headers
    app = wrapped(gate, classify=lambda scope, body: Question(POOL, 1001))
    coroutine, sent = call(app, messages(b"x"))
    asyncio.run(coroutine)
    assert sent[0]["status"] in (400, 429) and (b"x-should-retry", b"false") in sent[0]["headers"]


RULE = {"id": "r", "type": "token_bucket", "capacity": 10, "refill": 1, "per": "1s"}


@pytest.mark.parametrize("rule, cost, reason, false", [
    (RULE, 10, "rate_exceeded", False),                          # 1 s
    ({**RULE, "per": "1h"}, 10, "rate_exceeded", True),          # an hour: no client waits for that
    (RULE, 11, "unsatisfiable", True),                           # 429 as well, but no wait helps
    ({"id": "r", "type": "quota", "limit": 10, "window": "month"}, 10, "quota_exceeded", None),
    ({"id": "r", "type": "concurrency", "limit": 10, "lease_ttl": "1m"}, 10, "concurrency_exceeded", False),
    ({"id": "r", "type": "request_cap", "limit": 5}, 6, "cost_above_cap", True),
    ({**RULE, "match": {"pool": "other"}}, 1, "no_policy", True),
    ({**RULE, "partition_by": ["nobody"]}, 1, "missing_descriptor", True),
    ({**RULE, "unit": "images"}, 1, "missing_amount", True),
])
def test_whether_trying_again_soon_helps(rule, cost, reason, false):
    with admit.Gate(admit.Policy.loads(json.dumps({"version": "v", "rules": [rule]}))) as gate:
        first = gate.admit(POOL, cost)
        decision = gate.admit(POOL, 1) if first.allowed else first
        app = wrapped(gate, classify=lambda scope, body: Question(POOL, 1 if first.allowed else cost))
        coroutine, sent = call(app, messages(b"x"))
        asyncio.run(coroutine)
        assert decision.reason == reason and json.loads(sent[1]["body"])["error"]["code"] == reason
        if false is None:    # in the last two minutes of a window it is worth it
            false = decision.retry_after_ms > 120_000
        assert ((b"x-should-retry", b"false") in sent[0]["headers"]) == false


def test_a_client_that_leaves_while_its_body_is_read(gate):
    called = []
    app = wrapped(gate, app=lambda *a: called.append(a), classify=lambda *a: called.append(a))
    coroutine, sent = call(app, messages(b"half", last=False))
    asyncio.run(coroutine)
    assert not sent and not called and held(gate) == 0


def test_other_scopes_are_not_touched(gate):
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))
    for kind in ("websocket", "lifespan"):
        arguments = ({"type": kind}, object(), object())
        asyncio.run(wrapped(gate, app)(*arguments))
        assert all(a is b for a, b in zip(seen.pop(), arguments))


@pytest.mark.parametrize("started", [False, True])
def test_an_application_that_raises(any_gate, started):
    async def app(scope, receive, send):
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise KeyError("mine")
    coroutine, _ = call(wrapped(any_gate, app), messages(b""))
    with pytest.raises(KeyError, match="mine"):
        asyncio.run(coroutine)
    assert held(any_gate) == 0


def test_a_response_that_never_starts(any_gate):
    async def app(scope, receive, send):
        return
    coroutine, sent = call(wrapped(any_gate, app), messages(b""))
    asyncio.run(coroutine)
    assert not sent and held(any_gate) == 0


def test_cancelled_at_every_await(any_gate):
    """After n steps of the loop, for every n that a request has."""
    async def usage_app(scope, receive, send):
        await echo(scope, receive, send)

    async def work():
        app = wrapped(any_gate, usage_app, usage=lambda scope, message: {"output_tokens": 1})
        for n in range(1000):
            coroutine, _ = call(app, messages(b"a", b"b", b"c"))
            task = asyncio.ensure_future(coroutine)
            for _ in range(n):
                await asyncio.sleep(0)
            if task.done():
                await task
                return n
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return 0
    assert asyncio.run(work()) >= 8
    assert held(any_gate) == 0


def test_headers_are_not_trusted_unless_named(gate):
    seen = []
    real, given = gate.admit, []

    class Watched:
        async def admit_async(self, descriptors, *rest, **options):
            given.append(dict(descriptors))
            return real(descriptors)
    headers = [(b"X-Consumer", b"alice"), (b"x-pool", b"p")]
    for trusted, expected in ((None, {}), ({"X-consumer": "consumer"}, {"consumer": b"alice"})):
        app = AdmitMiddleware(echo, gate=Watched(), trusted_headers=trusted)
        coroutine, sent = call(app, messages(b"x"), scope("/v1", headers))
        asyncio.run(coroutine)
        assert given.pop() == dict({"method": "POST", "path": "/v1"}, **expected) and not seen
    coroutine, sent = call(app, messages(b"x"), scope("/v1", headers + [(b"x-consumer", b"bob")]))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 400


@pytest.mark.parametrize("path", ["", "/" * 5000, "/" + "\u00e9" * 200, "/\ud800", "/\U0001f600" * 100, "/a\0b"],
                         ids=range(6))
def test_any_path_is_a_question(path):
    rule = {"id": "busy", "type": "concurrency", "partition_by": ["path"], "limit": 1, "lease_ttl": "9s"}
    with admit.Gate(policy(rules=[rule])) as gate:
        coroutine, sent = call(AdmitMiddleware(echo, gate=gate), messages(b""), scope(path))
        asyncio.run(coroutine)
        assert sent[0]["status"] == 200


def test_classify_may_be_async_and_may_exempt(gate):
    async def classify(scope, body):
        await asyncio.sleep(0)
        return None if body == b"free" else POOL
    leases = [gate.admit(POOL).lease for _ in range(2)]
    for body, status in ((b"free", 200), (b"paid", 429)):
        coroutine, sent = call(wrapped(gate, classify=classify), messages(body))
        asyncio.run(coroutine)
        assert sent[0]["status"] == status
    assert leases[0].release() == "released"


def test_a_question_that_is_wrong_is_not_admitted(gate):
    for wrong in ({"k": ""}, Question(POOL, 0), {"k": "v" * 257}):
        coroutine, sent = call(wrapped(gate, classify=lambda scope, body, wrong=wrong: wrong), messages(b""))
        asyncio.run(coroutine)
        assert sent[0]["status"] == 400 and json.loads(sent[1]["body"])["error"]["code"] == "invalid_request"


def test_a_long_response_keeps_its_lease():
    renewed = []

    async def app(scope, receive, send):
        lease_renew = admit.Lease.renew
        admit.Lease.renew = lambda self: renewed.append(1) or lease_renew(self)
        try:
            while len(renewed) < 3:
                await asyncio.sleep(0)
        finally:
            admit.Lease.renew = lease_renew
    with admit.Gate(policy()) as gate:
        coroutine, _ = call(wrapped(gate, app, renew_seconds=0.001), messages(b""))
        asyncio.run(asyncio.wait_for(coroutine, 60))
        assert held(gate) == 0


def test_configuration(monkeypatch, tmp_path):
    monkeypatch.delenv("ADMIT_POLICY", raising=False)
    with pytest.raises(admit.InvalidArgument, match="ADMIT_POLICY"):
        AdmitMiddleware(echo)
    path = tmp_path / "p.json"
    path.write_text('{"version": "v1", "rules": [{"id": "cap", "type": "request_cap", "limit": 1}]}')
    monkeypatch.setenv("ADMIT_POLICY", str(path))
    coroutine, sent = call(AdmitMiddleware(echo), messages(b"x"))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 200
    with admit.Gate(policy()) as gate:
        for options in ({"policy": path}, {"body_limit": -1}, {"body_limit": True}, {"renew_seconds": 0},
                        {"renew_seconds": "5"}, {"renew_seconds": float("nan")}, {"renew_seconds": True}, {"body_limit": "1"}):
            with pytest.raises(admit.InvalidArgument):
                AdmitMiddleware(echo, gate=gate, **options)
    coroutine, sent = call(wrapped(gate), messages(b"x"))
    asyncio.run(coroutine)
    assert sent[0]["status"] == 503
