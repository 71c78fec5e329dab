# SPDX-License-Identifier: Apache-2.0
"""Admission in front of an ASGI application: a pure ASGI class, for any framework and server.

    app.add_middleware(AdmitMiddleware, policy="policy.json", classify=classify)

Put it outermost, or it sees what other middleware makes of a client that went away. With nothing but ``app`` it reads the
policy that the environment variable ADMIT_POLICY names, so servers that take the name of a class can use it.
"""
from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, Optional, Union

from ._decision import Decision, Lease, result_of
from ._errors import AdmitError, Closed, InvalidArgument, shown
from ._gate import Gate, Request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_LIMIT = 1 << 20


class Question(NamedTuple):
    """What classify() returns: the arguments of Gate.admit()."""

    descriptors: Union[Mapping[str, str], Request]
    cost: int = 1
    amounts: Optional[Mapping[str, int]] = None
    attempt: Optional[str] = None


Classify = Callable[[Scope, bytes], Union[Question, Mapping[str, str], None, Awaitable[Any]]]
Usage = Callable[[Scope, Message], Optional[Mapping[str, int]]]

_MESSAGES = {
    "rate_exceeded": "The rate limit is used up for the moment.",
    "concurrency_exceeded": "Too many requests are being served at the same time.",
    "pressure": "The service is under pressure.",
    "quota_exceeded": "The quota of this period is used up.",
    "unsatisfiable": "The request is larger than its limit can ever allow.",
    "cost_above_cap": "The request is larger than what one request may ask for.",
    "no_policy": "No admission rule covers this request.",
    "missing_descriptor": "A fact that an admission rule needs is missing.",
    "missing_amount": "An amount that an admission rule needs is missing.",
    "policy_too_wide": "Too many admission rules cover this request.",
    "key_space_full": "There is no room to account for this request.",
    "state_unavailable": "The admission state cannot be reached.",
}
# Denials that may clear without anybody's help, and within this time, are worth another try of the client.
_MAY_CLEAR = frozenset(("rate_exceeded", "quota_exceeded", "concurrency_exceeded", "pressure", "key_space_full", "state_unavailable"))
_RETRY_MS_MAX = 120_000


class _Gone(Exception):
    """The client left while its body was read."""


class _TooLarge(Exception):
    pass


class AdmitMiddleware:
    """Asks a gate before each HTTP request, answers denials, and gives the lease back whatever happens afterwards.

    gate, policy     a Gate, or the path of a policy from which one is made; neither: the path in ADMIT_POLICY
    classify         called with (scope, body), plain or async: a Question, a mapping of descriptors, or None: not limited.
                     Without it, descriptors are "method", "path" and the headers below
    trusted_headers  {"x-consumer": "consumer"}: headers that *your own proxy* sets, and the descriptors that they
                     become. A client can send any header: none are trusted unless named
    body_limit       bytes that are kept for classify; a longer body is answered with 413. 0: the body is not read
    usage            called with (scope, message) for each message of the response; totals so far, which are settled
    renew_seconds    so often the lease of a long response is renewed; None: never. Less than the lease_ttl of the policy
    """

    def __init__(self, app: App, *, gate: Gate | None = None, policy: str | os.PathLike[str] | None = None,
                 classify: Classify | None = None, trusted_headers: Mapping[str, str] | None = None,
                 body_limit: int | None = None, usage: Usage | None = None,
                 renew_seconds: float | None = 5.0) -> None:
        if gate is not None and policy is not None:
            raise InvalidArgument("gate, policy: give one of them")
        if gate is None:
            path = policy if policy is not None else os.environ.get("ADMIT_POLICY")
            if not path:
                raise InvalidArgument("gate, policy: give one of them, or set ADMIT_POLICY to the path of a policy")
            gate = Gate.from_file(path)
        if body_limit is None:
            body_limit = BODY_LIMIT if classify is not None else 0
        if isinstance(body_limit, bool) or not isinstance(body_limit, int) or body_limit < 0:
            raise InvalidArgument("body_limit: expected a whole number of bytes, found %s" % shown(body_limit))
        if renew_seconds is not None and (isinstance(renew_seconds, bool) or not isinstance(renew_seconds, (int, float))
                                          or not 0 < renew_seconds <= 86400):
            raise InvalidArgument("renew_seconds: expected seconds above 0, at most 86400, or None, found %s"
                                  % shown(renew_seconds))
        self.app = app
        self.gate = gate
        self._classify = classify
        self._headers = {name.lower().encode("latin-1"): key for name, key in (trusted_headers or {}).items()}
        self._body_limit = body_limit
        self._usage = usage
        self._renew_seconds = renew_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""
        if self._body_limit:
            try:
                body, receive = await self._read(receive)
            except _Gone:
                return
            except _TooLarge:
                await _answer(send, 413, [], "body_too_large", "The body is larger than %d bytes." % self._body_limit)
                return
        try:
            question = await self._question(scope, body)
            if question is None:
                await self.app(scope, receive, send)
                return
            decision = await self.gate.admit_async(question.descriptors, question.cost, amounts=question.amounts,
                                                   attempt=question.attempt)
        except InvalidArgument:
            await _answer(send, 400, [], "invalid_request", "The request cannot be admitted as it is.")
            return
        except Closed:
            await _answer(send, 503, [], "state_unavailable", _MESSAGES["state_unavailable"])
            return
        if not decision.allowed:
            await _deny(send, decision)
            return
        # From here on no await may come before the try: a cancellation would lose the lease.
        lease = decision.lease
        if lease is None:
            await self.app(scope, receive, send)
            return
        timer = _Renewal(lease, self._renew_seconds)
        kind: type[BaseException] | None = None
        try:
            await self.app(scope, receive, self._watched(scope, send, lease))
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            timer.stop()
            if not lease.released:
                try:
                    lease.release_soon(result_of(kind))
                except AdmitError:
                    pass  # the gate is gone, or cannot be reached: the lease ends by its time to live

    async def _read(self, receive: Receive) -> tuple[bytes, Receive]:
        """The whole body, and a receive that gives it once more."""
        parts = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            size += len(part)
            if size > self._body_limit:
                raise _TooLarge
            if part:
                parts.append(part)
            if not message.get("more_body", False):
                break
        body = b"".join(parts)
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return body, again

    async def _question(self, scope: Scope, body: bytes) -> Question | None:
        if self._classify is None:
            path = scope["path"][:256] or "/"
            if not path.isascii():  # a letter may have several bytes
                path = path.encode("utf-8", "surrogatepass")[:256]
            found = {"method": scope["method"], "path": path}
            for name, value in scope.get("headers", ()):
                key = self._headers.get(name.lower())
                if key is not None and value:
                    if key in found:
                        raise InvalidArgument("the header of descriptor %r is given twice" % key)
                    found[key] = value
            return Question(found)
        answer: Any = self._classify(scope, body)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is None or isinstance(answer, Question):
            return answer
        return Question(answer)

    def _watched(self, scope: Scope, send: Send, lease: Lease) -> Send:
        usage = self._usage
        if usage is None:
            return send
        count = usage

        async def watching(message: Message) -> None:
            totals = count(scope, message)
            if totals:
                try:
                    await lease.settle_async(totals)
                except AdmitError:
                    pass  # usage that cannot be charged must not break a response
            await send(message)

        return watching


class _Renewal:
    """Renews a lease from a timer of the loop: at most one renewal is under way, and none after stop()."""

    def __init__(self, lease: Lease, seconds: float | None) -> None:
        self._lease = lease
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        if seconds is not None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(seconds, self._due)

    def _due(self) -> None:
        self._task = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            if await self._lease.renew_async() != "renewed":
                return
        except AdmitError:
            pass  # not known: try again
        assert self._seconds is not None
        self._timer = self._loop.call_later(self._seconds, self._due)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()


async def _deny(send: Send, decision: Decision) -> None:
    headers = [(b"x-admission-decision-id", decision.id.encode())]
    if decision.retry_after is not None:
        headers.append((b"retry-after", b"%d" % decision.retry_after))
        headers.append((b"retry-after-ms", b"%d" % (decision.retry_after_ms or 0)))
    if decision.reason not in _MAY_CLEAR or (decision.retry_after_ms or 0) > _RETRY_MS_MAX:
        headers.append((b"x-should-retry", b"false"))
    await _answer(send, decision.http_status, headers, decision.reason,
                  _MESSAGES.get(decision.reason, "The request is not admitted."))


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message, "source": "admission"}},
                      separators=(",", ":")).encode()
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))] + headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
