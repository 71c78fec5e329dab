# SPDX-License-Identifier: Apache-2.0
"""Answers: the decision, and the lease that an allowed one may hold."""
from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._errors import AdmitError, InvalidArgument, fail, shown
from ._native import ffi, lib

if TYPE_CHECKING:
    from types import TracebackType

    from ._gate import Gate

Result = Literal["ok", "error", "timeout", "cancelled", "diverted"]
Outcome = Literal["unknown", "released", "already", "late", "queued", "renewed", "lost", "settled", "diverted"]


def _names(name_of: Any, count: int) -> tuple[str, ...]:
    return tuple(ffi.string(name_of(i)).decode() for i in range(count))


REASONS = _names(lib.adm_reason_name, lib.ADM_REASON_COUNT)
OUTCOMES = _names(lib.adm_outcome_name, lib.ADM_OUTCOME_COUNT)
RESULT_NAMES = _names(lib.adm_result_name, lib.ADM_RESULT_COUNT)
RESULTS = {name: i for i, name in enumerate(RESULT_NAMES)}


def result_number(result: str) -> int:
    try:
        return RESULTS[result]
    except (KeyError, TypeError):
        raise InvalidArgument("result: expected one of %s, found %s" % (", ".join(RESULTS), shown(result))) from None


def outcome_of(answer: int, doing: str) -> Outcome:
    if answer < 0:
        fail(answer, doing)
    return OUTCOMES[answer]  # type: ignore[return-value]


def _at(field: str) -> int:
    offset: int = ffi.offsetof("struct adm_decision", field)
    return offset


_release = lib.shim_release
HEADER = _at("names")
_U32 = struct.Struct("=I").unpack_from
_U64 = struct.Struct("=Q").unpack_from
_ID = struct.Struct("=QQ").unpack_from
_FLAGS, _VERDICT, _REASON, _HTTP = _at("flags"), _at("verdict"), _at("reason"), _at("http_status")
_RULES, _SHADOW, _UNKNOWN = _at("rule_count"), _at("shadow_count"), _at("unknown_count")
_RETRY, _LEASE, _IDENTITY = _at("retry_after_ms"), _at("lease"), _at("id")
_POLICY, _TABLE, _USED = _at("policy_version"), _at("table_version"), _at("names_used")
_ALLOW: int = lib.ADM_VERDICT_ALLOW
_VERDICT_LOW = _VERDICT + (0 if sys.byteorder == "little" else 3)  # one byte has room for what a verdict can be
_REPEATED: int = lib.ADM_DECISION_REPEATED
_TRUNCATED: int = lib.ADM_DECISION_TRUNCATED


class Lease:
    """What an allowed request holds. Give it back with release(), once; again is harmless. A lease that is dropped
    without a release ends by its time to live."""

    __slots__ = ("_gate", "_high", "_low", "_released", "__weakref__")

    def __init__(self, gate: Gate, high: int, low: int) -> None:
        self._gate = gate
        self._high = high
        self._low = low
        self._released = False

    @property
    def id(self) -> str:
        """32 hex digits."""
        return "%016x%016x" % (self._high, self._low)

    @property
    def released(self) -> bool:
        """release() was called on this object."""
        return self._released

    def release(self, result: Result = "ok") -> Outcome:
        """Give it back: held units return now. ``result`` says how the work ended; it goes to metrics only."""
        number = 0 if result == "ok" else result_number(result)
        self._released = True
        answer: int = _release(self._gate._handle, self._high, self._low, number)
        if answer >= 0:  # what nearly always happens, without calls of our own
            return OUTCOMES[answer]  # type: ignore[return-value]
        return outcome_of(self._gate._lease_answer(answer), "cannot release")

    def renew(self) -> Outcome:
        """Another time to live, from now: renewed, or lost."""
        return outcome_of(self._gate._lease_call(lib.shim_renew, self._high, self._low), "cannot renew")

    def divert(self) -> Outcome:
        """The work left the local pool: held units return, charges stay."""
        return outcome_of(self._gate._lease_call(lib.shim_divert, self._high, self._low), "cannot divert")

    def settle(self, totals: Mapping[str, int], *, final: bool | Iterable[str] = False) -> Outcome:
        """Report usage as totals so far, never as deltas. ``final``: True when this is the last report, or the units
        that no later report changes."""
        amounts, count, final_all = self._gate._totals(totals, final)
        return outcome_of(self._gate._lease_call(lib.shim_settle, self._high, self._low, amounts, count, final_all),
                          "cannot settle")

    def release_soon(self, result: Result = "ok") -> None:
        """release() on an event loop, without waiting for a backend that answers later: it is carried out, whatever
        happens to the caller."""
        if not self._gate._defers:
            self.release(result)
            return
        number = result_number(result)
        self._released = True
        self._gate._aio()._start_lease(lib.SHIM_RELEASE, self, number)

    async def release_async(self, result: Result = "ok") -> Outcome:
        """As release(), without blocking the event loop."""
        if not self._gate._defers:
            return self.release(result)
        number = result_number(result)
        self._released = True
        return await self._gate._aio().lease_operation(lib.SHIM_RELEASE, self, number)

    async def renew_async(self) -> Outcome:
        """As renew(), without blocking the event loop."""
        if not self._gate._defers:
            return self.renew()
        return await self._gate._aio().lease_operation(lib.SHIM_RENEW, self)

    async def divert_async(self) -> Outcome:
        """As divert(), without blocking the event loop."""
        if not self._gate._defers:
            return self.divert()
        return await self._gate._aio().lease_operation(lib.SHIM_DIVERT, self)

    async def settle_async(self, totals: Mapping[str, int], *, final: bool | Iterable[str] = False) -> Outcome:
        """As settle(), without blocking the event loop."""
        if not self._gate._defers:
            return self.settle(totals, final=final)
        return await self._gate._aio().lease_operation(lib.SHIM_SETTLE, self, 0, self._gate._totals(totals, final))

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._end(kind)

    def _end(self, kind: type[BaseException] | None) -> None:
        """At the end of a with block: released once, whatever happened inside."""
        if not self._released:
            self.release(result_of(kind))

    def __repr__(self) -> str:
        return "<admit.Lease %s%s>" % (self.id, ", released" if self._released else "")


def result_of(kind: type[BaseException] | None) -> Result:
    """How work ended that was left by an exception of this class."""
    import asyncio
    import concurrent.futures

    if kind is None:
        return "ok"
    if issubclass(kind, (asyncio.CancelledError, concurrent.futures.CancelledError, GeneratorExit, KeyboardInterrupt)):
        return "cancelled"
    if issubclass(kind, (TimeoutError, asyncio.TimeoutError)):
        return "timeout"
    return "error"


class Decision:
    """The answer to one request. A value: it never changes, and nothing in it points into the gate."""

    __slots__ = ("_raw", "_gate", "_lease")

    _raw: bytes
    _gate: Gate | None
    _lease: Lease | None | bool  # True until somebody asks for it: making it is much of the cost of a decision

    def __init__(self) -> None:
        raise TypeError("a Decision comes from Gate.admit()")

    @property
    def allowed(self) -> bool:
        return self._raw[_VERDICT_LOW] == _ALLOW

    def __bool__(self) -> bool:
        raise TypeError("a Decision is neither true nor false: use decision.allowed")

    @property
    def reason(self) -> str:
        """"allowed", or why not: "rate_exceeded" and others. Treat one that you do not know as a denial."""
        number: int = _U32(self._raw, _REASON)[0]
        return REASONS[number] if number < len(REASONS) else "?"

    @property
    def http_status(self) -> int:
        """200 when allowed; else 400, 429 or 503."""
        status: int = _U32(self._raw, _HTTP)[0]
        return status

    @property
    def retry_after_ms(self) -> int | None:
        """The least wait after which the same request alone would pass; None: no such time is known."""
        return _U64(self._raw, _RETRY)[0] or None

    @property
    def retry_after(self) -> int | None:
        """The value of the HTTP header Retry-After, in whole seconds; None: send none."""
        ms = self.retry_after_ms
        return None if ms is None else max(1, -(-ms // 1000))

    def _all_names(self) -> list[bytes]:
        used = _U32(self._raw, _USED)[0]
        return self._raw[HEADER:HEADER + used].split(b"\0")[:-1]

    @property
    def rules(self) -> tuple[str, ...]:
        """All denying rules, in the order of the policy."""
        return tuple(name.decode() for name in self._all_names()[:_U32(self._raw, _RULES)[0]])

    @property
    def shadow(self) -> tuple[str, ...]:
        """Shadow rules that would have denied."""
        first = _U32(self._raw, _RULES)[0]
        return tuple(name.decode() for name in self._all_names()[first:first + _U32(self._raw, _SHADOW)[0]])

    @property
    def shadow_unknown(self) -> int:
        """Shadow rules without a verdict, because their state is full."""
        count: int = _U32(self._raw, _UNKNOWN)[0]
        return count

    @property
    def lease(self) -> Lease | None:
        """What is held or may be settled; None: nothing is."""
        lease = self._lease
        if isinstance(lease, bool):
            high, low = _ID(self._raw, _LEASE)
            lease = Lease(self._gate, high, low) if self._gate is not None and (high or low) else None
            self._lease = lease
        return lease

    @property
    def id(self) -> str:
        """Of this decision, for logs and answers: 32 hex digits."""
        return "%016x%016x" % _ID(self._raw, _IDENTITY)

    @property
    def policy_version(self) -> str:
        version: bytes = self._raw[_POLICY:_TABLE].split(b"\0", 1)[0]
        return version.decode()

    @property
    def table_version(self) -> str | None:
        """Of the limit tables in force; None: there is none."""
        version: bytes = self._raw[_TABLE:_USED].split(b"\0", 1)[0]
        return version.decode() or None

    @property
    def repeated(self) -> bool:
        """The answer to an attempt id that was allowed before."""
        return bool(_U32(self._raw, _FLAGS)[0] & _REPEATED)

    @property
    def truncated(self) -> bool:
        """More rules denied than are named."""
        return bool(_U32(self._raw, _FLAGS)[0] & _TRUNCATED)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self._raw == other._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        text = "<admit.Decision %s" % self.reason
        if self.rules:
            text += " by " + ", ".join(self.rules)
        if self.retry_after_ms is not None:
            text += ", retry after %d ms" % self.retry_after_ms
        return text + ">"


def make_decision(gate: Gate | None, view: Any) -> Decision:
    """A copy of what the C struct says now; ``view`` is the buffer over it. Without a gate: without a lease."""
    decision: Decision = object.__new__(Decision)
    decision._raw = view[:HEADER + _U32(view, _USED)[0]]
    decision._gate = gate
    decision._lease = True
    return decision


class Denied(AdmitError):
    """Raised by Gate.hold() when the request may not start; ``decision`` says why."""

    def __init__(self, decision: Decision) -> None:
        text = decision.reason
        if decision.rules:
            text += " by " + ", ".join(decision.rules)
        super().__init__(text)
        self.decision = decision
