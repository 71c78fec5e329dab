# SPDX-License-Identifier: Apache-2.0
"""The gate: decisions, and what stands behind them."""
from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Union

from . import _pack
from ._decision import HEADER, OUTCOMES, REASONS, RESULT_NAMES, Decision, Denied, Lease, make_decision, result_of
from ._errors import Closed, InvalidArgument, InvalidDescriptors, fail, shown
from ._native import ffi, lib
from ._policy import Policy, PolicyError, document_bytes, is_yaml, take_findings, text_of

if TYPE_CHECKING:
    from types import TracebackType

    from ._aio import LoopQueue
    from ._policy import Format
    from .testing import Deferring, ManualClock

Text = Union[str, bytes]
_CLOSED = -lib.SHIM_CLOSED
_admit = lib.shim_admit
_ask = lib.shim_ask
_admit_prepared = lib.shim_admit_prepared
_new: Callable[[type[Decision]], Decision] = object.__new__
_HEAD = slice(0, HEADER)  # all of a decision that names no rules
_DECISION_BYTES: int = ffi.sizeof("struct adm_decision")


@dataclass(frozen=True)
class RuleReport:
    """What explain() says of one rule; see adm_rule_report in admit/admit.h."""

    rule: str
    type: str
    unit: str
    origin: str
    matched: bool
    off: bool
    shadow: bool
    denies: bool
    reason: str | None
    mismatch: bytes | None
    entry: bytes | None
    level: int | None
    limit: int
    amount: int | None
    replicas: int
    retry_after_ms: int | None


@dataclass(frozen=True)
class Explanation:
    """The answer that admit() would give, and every rule of the policy, in its order."""

    decision: Decision
    rules: tuple[RuleReport, ...]


@dataclass(frozen=True)
class Event:
    """One record for an audit log; join them by ``decision_id``."""

    kind: str
    mono_ns: int
    wall_ns: int
    decision_id: str
    lease_id: str | None
    decision: Decision | None
    descriptors: tuple[tuple[bytes, bytes], ...]
    amounts: tuple[tuple[int, int], ...]
    cost: int | None
    outcome: str | None
    result: str | None
    final: bool


@dataclass(frozen=True)
class BackendInfo:
    """What the backend says of itself."""

    defers: bool
    classes: int
    classes_max: int
    partitions: int
    partitions_max: int
    leases: int
    leases_max: int
    attempts: int
    attempts_max: int
    expired: int


_Callback = TypeVar("_Callback", bound="Callable[..., None]")


def _exported(function: _Callback) -> _Callback:
    """What C calls by this name."""
    made: _Callback = ffi.def_extern()(function)
    return made


class Request:
    """A question that is asked often, prepared by Gate.request(); any thread may use it."""

    __slots__ = ("_pointer", "_gate")

    _pointer: Any
    _gate: Gate

    def __init__(self) -> None:
        raise TypeError("use Gate.request()")


def _view(raw: bytes) -> dict[str, Any]:
    return {"data": ffi.from_buffer(raw), "length": len(raw)}


def _bytes(view: Any) -> bytes:
    return ffi.buffer(view.data, view.length)[:] if view.length else b""


def _hex(identity: Any) -> str | None:
    return "%016x%016x" % (identity.high, identity.low) if identity.high or identity.low else None


class _Listener:
    """What C holds of a gate with on_event: not the gate, so that there is no cycle."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[Event], object]) -> None:
        self.call = call


_KINDS = {lib.ADM_EVENT_DECISION: "decision", lib.ADM_EVENT_USAGE: "usage", lib.ADM_EVENT_RELEASE: "release"}


@_exported
def admit_python_on_event(handle: Any, event: Any) -> None:
    # What it raises cannot cross C: cffi gives it to sys.unraisablehook.
    deciding, releasing = event.kind == lib.ADM_EVENT_DECISION, event.kind == lib.ADM_EVENT_RELEASE
    ffi.from_handle(handle).call(Event(
        kind=_KINDS.get(event.kind, "?"), mono_ns=event.now.mono_ns, wall_ns=event.now.wall_ns,
        decision_id=_hex(event.decision_id) or "", lease_id=_hex(event.lease),
        decision=make_decision(None, ffi.buffer(event.decision)) if event.decision != ffi.NULL else None,
        descriptors=tuple((_bytes(event.descriptors[i].key), _bytes(event.descriptors[i].value))
                          for i in range(event.descriptor_count)),
        amounts=tuple((event.amounts[i].unit, event.amounts[i].value) for i in range(event.amount_count)),
        cost=event.cost if deciding else None, outcome=None if deciding else OUTCOMES[event.outcome],
        result=RESULT_NAMES[event.result] if releasing else None, final=bool(event.final_all)))


@_exported
def admit_python_on_report(handle: Any, report: Any) -> None:
    r = report
    ffi.from_handle(handle).append(RuleReport(
        rule=text_of(r.rule), type=text_of(r.type), unit=text_of(r.unit), origin=text_of(r.origin),
        matched=bool(r.matched), off=bool(r.off), shadow=bool(r.shadow), denies=bool(r.denies),
        reason=REASONS[r.reason] if r.denies else None, mismatch=None if r.matched else _bytes(r.mismatch) or None,
        entry=_bytes(r.entry) or None, level=r.level if r.stateful else None, limit=r.limit,
        amount=r.amount if r.has_amount else None, replicas=r.replicas, retry_after_ms=r.retry_after_ms or None))


class Gate:
    """Decides on the policy in force. Any number of threads may use one; the GIL is given up during each call. In a
    forked child it denies everything with "state_unavailable"."""

    __slots__ = ("_handle", "_slots", "_units", "_keep", "_clock", "_defers", "_queues", "__weakref__")

    def __init__(self, policy: Policy, *, name_space: Text = "", partitions_max: int = 0, leases_max: int = 0,
                 attempts_max: int = 0, classes_max: int = 0, signals_max: int = 0, pending_max: int = 0,
                 backend_timeout: float | None = None, clock: ManualClock | None = None,
                 on_event: Callable[[Event], object] | None = None, deferring: Deferring | None = None,
                 seed: int = 0) -> None:
        """``on_event`` is called on the deciding thread, must be quick and must not call the gate. ``clock``,
        ``deferring`` and ``seed`` are for tests, see admit.testing. 0 of a size: the default of the library."""
        if not isinstance(policy, Policy):
            raise InvalidArgument("policy: expected a Policy, found %s" % type(policy).__name__)
        if on_event is not None and not callable(on_event):
            raise InvalidArgument("on_event: expected something to call, found %s" % type(on_event).__name__)
        space = _pack.to_bytes(name_space, "name_space")
        options = ffi.new("struct shim_gate_options *")
        options.policy = policy._pointer
        view = ffi.from_buffer(space)
        options.name_space = view
        options.name_space_bytes = len(space)
        for name, number in (("partitions_max", partitions_max), ("leases_max", leases_max),
                             ("attempts_max", attempts_max), ("classes_max", classes_max),
                             ("signals_max", signals_max), ("pending_max", pending_max), ("seed", seed)):
            setattr(options, name, _pack.whole(number, name, 0, 2 ** 64 - 1, InvalidArgument))
        options.backend_timeout_ns = _nanoseconds(backend_timeout, "backend_timeout")
        listener = None
        if on_event is not None:
            listener = ffi.new_handle(_Listener(on_event))
            options.events = 1
            options.self = listener
        if clock is not None:
            options.clock = clock._fake
        if deferring is not None:
            options.deferring = 1
            options.polls_min, options.polls_max = deferring.polls_min, deferring.polls_max
            options.never_permille = deferring.never_permille
            options.seed = options.seed or deferring.seed
        out = ffi.new("struct shim_gate **")
        status = lib.shim_gate_new(options, lib.admit_python_on_event, out)
        if status:
            fail(status, "cannot make the gate")
        self._handle = ffi.gc(out[0], lib.shim_gate_free)
        self._clock = clock
        # C holds the clock and the listener until the gate is freed: a finalizer runs before what it needs is gone.
        self._keep = (listener, clock)
        self._slots: list[tuple[Any, Any]] = []
        self._units: dict[str, int] = {}
        self._queues: dict[int, LoopQueue] = {}
        self._defers = self.describe().defers

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> Gate:
        """A gate with the policy of a file; options as of the constructor."""
        return cls(Policy.from_file(path), **options)

    # ---- life ----

    def close(self) -> None:
        """Free the state. Calls that are running on other threads end first; again is harmless."""
        for queue in list(self._queues.values()):
            queue.close()
        lib.shim_gate_close(self._handle)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # Without open queues the state is freed with the handle. A gate and its queues know each other: here nothing of
        # them is cleared yet.
        if getattr(self, "_queues", None):
            warn("a gate that event loops used was dropped without close()", ResourceWarning, source=self)
            self.close()

    @property
    def closed(self) -> bool:
        if lib.shim_enter(self._handle) == ffi.NULL:
            return True
        lib.shim_leave(self._handle)
        return False

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<admit.Gate closed>" if self.closed else "<admit.Gate of policy %s>" % self.version

    def __reduce__(self) -> Any:
        raise TypeError("a gate belongs to its process and cannot be pickled")

    # ---- the request path ----

    def _slot(self) -> tuple[Any, Any]:
        try:
            return self._slots.pop()
        except IndexError:
            pointer = ffi.new("struct adm_decision *")
            pointer.size = _DECISION_BYTES
            return pointer, ffi.buffer(pointer)

    def admit(self, descriptors: Mapping[Text, Text] | Mapping[str, str] | Request, cost: int = 1, *,
              amounts: Mapping[str, int] | None = None, attempt: Text | None = None,
              timeout: float | None = None) -> Decision:
        """Ask for permission to start one unit of work. A denial is an answer, not an exception."""
        # Written out where a call of our own would cost as much as what it does.
        try:
            slot = self._slots.pop()
        except IndexError:
            slot = self._slot()
        if type(descriptors) is Request:
            if descriptors._gate is not self or cost != 1 or amounts is not None:
                self._only(descriptors, cost, amounts)
            if attempt is None and timeout is None:
                answer = _ask(descriptors._pointer, slot[0])
            else:
                tried = _pack.attempt(attempt)
                answer = _admit_prepared(descriptors._pointer, tried, len(tried), _nanoseconds(timeout, "timeout"),
                                         slot[0])
        else:
            packed = _pack.descriptors(descriptors)  # type: ignore[arg-type]
            if type(cost) is not int or not 1 <= cost <= 1000000000000:
                _pack.whole(cost, "cost", 1)
            counts, count = (ffi.NULL, 0) if amounts is None else self._amounts(amounts, "amount")
            tried = b"" if attempt is None else _pack.attempt(attempt)
            answer = _admit(self._handle, packed, len(packed), counts, count, cost, tried, len(tried),
                            0 if timeout is None else _nanoseconds(timeout, "timeout"), slot[0])
        if answer <= 0:
            self._slots.append(slot)
            self._fail(answer, "cannot decide")
        decision = _new(Decision)
        decision._raw = slot[1][_HEAD] if answer == HEADER else slot[1][:answer]
        decision._gate = self
        decision._lease = True
        self._slots.append(slot)
        return decision

    async def admit_async(self, descriptors: Mapping[Text, Text] | Mapping[str, str] | Request, cost: int = 1, *,
                          amounts: Mapping[str, int] | None = None, attempt: Text | None = None,
                          timeout: float | None = None) -> Decision:
        """As admit(), without blocking the event loop. A backend that completes at once answers without a trip through
        the loop. Cancelled: what is granted all the same is given back."""
        if not self._defers:
            return self.admit(descriptors, cost, amounts=amounts, attempt=attempt, timeout=timeout)
        tried = _pack.attempt(attempt)
        wait = _nanoseconds(timeout, "timeout")
        if type(descriptors) is Request:
            self._only(descriptors, cost, amounts)
            return await self._aio().admit_prepared(descriptors._pointer, tried, wait)
        packed = _pack.descriptors(descriptors)  # type: ignore[arg-type]
        _pack.whole(cost, "cost", 1)
        counts, count = (ffi.NULL, 0) if amounts is None else self._amounts(amounts, "amount")
        return await self._aio().admit(packed, counts, count, cost, tried, wait)

    def hold(self, descriptors: Mapping[Text, Text] | Mapping[str, str] | Request, cost: int = 1, *,
             amounts: Mapping[str, int] | None = None, attempt: Text | None = None,
             timeout: float | None = None) -> Hold:
        """``with gate.hold(...) as lease`` or ``async with``: raises Denied, and releases at the end in any case."""
        return Hold(self, descriptors, cost, amounts, attempt, timeout)

    def request(self, descriptors: Mapping[Text, Text] | Mapping[str, str], cost: int = 1, *,
                amounts: Mapping[str, int] | None = None) -> Request:
        """Prepare a question that is asked often: descriptors are read and their keys interned once."""
        packed = _pack.descriptors(descriptors)  # type: ignore[arg-type]
        _pack.whole(cost, "cost", 1)
        counts, count = (ffi.NULL, 0) if amounts is None else self._amounts(amounts, "amount")
        if len({_pack.to_bytes(key, "descriptor key") for key in descriptors}) < len(descriptors):
            raise InvalidDescriptors("descriptors: a key is given twice, as str and as bytes",
                                     lib.ADM_E_INVALID_DESCRIPTORS)
        pointer = ffi.new("struct shim_request *")
        status = lib.shim_prepare(self._handle, packed, len(packed), counts, count, cost, pointer)
        if status:
            self._fail(status, "cannot prepare the request")
        request = object.__new__(Request)
        request._pointer = pointer
        request._gate = self
        return request

    def _only(self, request: Request, cost: int, amounts: Mapping[str, int] | None) -> None:
        if request._gate is not self:
            raise InvalidArgument("descriptors: the request was prepared by another gate")
        if cost != 1 or amounts is not None:
            raise InvalidArgument("cost, amounts: a prepared request has its own; give them to Gate.request()")

    def _unit(self, name: str, what: str) -> int:
        unit = self._units.get(name)
        if unit is None:
            out = ffi.new("uint32_t *")
            raw = _pack.to_bytes(name, "name of a unit")
            self._call(lib.adm_gate_unit, "%s %s" % (what, shown(name)), _view(raw), out)
            unit = self._units[name] = out[0]
        return unit

    def _amounts(self, given: Mapping[str, int], what: str) -> tuple[Any, int]:
        pairs = _pack.check_amounts(given, what)
        out = ffi.new("struct adm_amount[]", len(pairs))
        for i, (name, value) in enumerate(pairs):
            out[i].unit = self._unit(name, what)
            out[i].value = value
        return out, len(pairs)

    def _totals(self, totals: Mapping[str, int], final: bool | Iterable[str]) -> tuple[Any, int, int]:
        amounts, count = self._amounts(totals, "total")
        if isinstance(final, bool):
            return amounts, count, int(final)
        if isinstance(final, (str, bytes)):
            raise InvalidArgument("final: expected a bool or a list of units, found %s" % shown(final))
        places = {name: i for i, name in enumerate(totals)}
        for name in final:
            if name not in places:
                raise InvalidArgument("final: %s is not among the totals" % shown(name))
            amounts[places[name]].flags = lib.ADM_AMOUNT_FINAL
        return amounts, count, 0

    # ---- calls into C ----

    def _fail(self, status: int, doing: str) -> NoReturn:
        if status == _CLOSED:
            raise Closed("%s: the gate is closed" % doing)
        fail(status, doing)

    def _lease_call(self, call: Any, high: int, low: int, *rest: Any) -> int:
        return self._lease_answer(call(self._handle, high, low, *rest))

    def _lease_answer(self, answer: int) -> int:
        if answer == _CLOSED:
            raise Closed("the gate of this lease is closed")
        return answer

    def _call(self, call: Any, doing: str, *rest: Any) -> None:
        """Anything else: entered, so that nobody frees the gate meanwhile."""
        gate = lib.shim_enter(self._handle)
        if gate == ffi.NULL:
            raise Closed("%s: the gate is closed" % doing)
        try:
            status = call(gate, *rest)
        finally:
            lib.shim_leave(self._handle)
        if status:
            fail(status, doing)

    def _aio(self) -> LoopQueue:
        from ._aio import LoopQueue

        loop = asyncio.get_running_loop()
        queue = self._queues.get(id(loop))
        if queue is None or queue.loop is not loop:
            # Those of loops that are gone; one may have been at the same address.
            for old in list(self._queues.values()):
                if old.loop.is_closed():
                    old.close()
            queue = self._queues[id(loop)] = LoopQueue(self, loop)
        return queue

    # ---- policies, tables, signals ----

    @property
    def version(self) -> str:
        """Of the policy in force."""
        out = ffi.new("char[]", lib.ADM_MAX_VERSION + 1)
        self._call(lib.adm_gate_version, "cannot read the version", out, lib.ADM_MAX_VERSION + 1)
        return text_of(out)

    def publish(self, policy: Policy) -> None:
        """Put a policy in force, atomically: nothing refills, no lease is lost. The last 8 are kept."""
        if not isinstance(policy, Policy):
            raise InvalidArgument("policy: expected a Policy, found %s" % type(policy).__name__)
        self._call(lib.adm_gate_publish, "cannot publish the policy", policy._pointer)

    def rollback(self, version: Text) -> None:
        """Put a kept policy in force again."""
        raw = _pack.to_bytes(version, "version")
        self._call(lib.adm_gate_rollback, "version %s" % shown(version), _view(raw))

    def put_table(self, text: Text, *, patch: bool = False, format: Format = "json") -> None:
        """Put a limit table in force for its rule. ``patch``: entries given are set, null ones removed, others stay."""
        raw = document_bytes(text)
        mode = lib.ADM_TABLE_PATCH if patch else lib.ADM_TABLE_REPLACE
        if is_yaml(format):
            mode |= lib.ADM_TABLE_YAML
        diags = ffi.new("struct adm_diags **")
        gate = lib.shim_enter(self._handle)
        if gate == ffi.NULL:
            raise Closed("cannot put the table: the gate is closed")
        try:
            status = lib.adm_gate_put_table(gate, _view(raw), mode, diags)
        finally:
            lib.shim_leave(self._handle)
        findings = take_findings(diags[0])
        if status == lib.ADM_E_POLICY_INVALID:
            raise PolicyError(findings)
        if status:
            fail(status, "cannot put the table")

    def signal(self, scope: Text, replica: Text, name: Text, value: float) -> None:
        """A measurement of one replica; NaN: missing from now on."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidArgument("value: expected a number, found %s" % type(value).__name__)
        try:
            number = float(value)
        except OverflowError:
            raise InvalidArgument("value: too large") from None
        raws = [_pack.to_bytes(text, what) for text, what in ((scope, "scope"), (replica, "replica"), (name, "name"))]
        self._call(lib.adm_gate_signal, "cannot take the signal", *map(_view, raws), number)

    # ---- looking ----

    def explain(self, descriptors: Mapping[Text, Text] | Mapping[str, str], cost: int = 1, *,
                amounts: Mapping[str, int] | None = None) -> Explanation:
        """What admit() would answer, and why, rule by rule. Charges nothing."""
        request = self.request(descriptors, cost, amounts=amounts)
        reports: list[RuleReport] = []
        handle = ffi.new_handle(reports)
        slot = self._slot()
        question = ffi.addressof(request._pointer, "request")
        self._call(lib.adm_explain, "cannot explain", question, lib.admit_python_on_report, handle, slot[0])
        decision = make_decision(self, slot[1])
        self._slots.append(slot)
        return Explanation(decision, tuple(reports))

    def read(self, rule: Text, descriptors: Mapping[Text, Text] | Mapping[str, str]) -> int:
        """The level of a bucket, or the units held or used, of a rule in the partition that descriptors name."""
        request = self.request(descriptors)
        raw = _pack.to_bytes(rule, "rule")
        out = ffi.new("int64_t *")
        question = request._pointer.request
        self._call(lib.adm_gate_read, "rule %s" % shown(rule), _view(raw), question.descriptors, question.descriptor_count,
                   out)
        level: int = out[0]
        return level

    def metrics(self) -> str:
        """All counters as OpenMetrics text."""
        length = ffi.new("uint64_t *")
        room = 16384
        while True:
            buffer = ffi.new("char[]", room)
            try:
                self._call(lib.adm_gate_metrics, "cannot read the metrics", buffer, room, length)
            except InvalidArgument as error:
                if error.status != lib.ADM_E_BUFFER_TOO_SMALL:
                    raise
                room = length[0] + 4096  # it may grow between two calls
                continue
            text: str = ffi.buffer(buffer, length[0])[:].decode()
            return text

    def describe(self) -> BackendInfo:
        info = ffi.new("struct adm_backend_info *")
        info.size = ffi.sizeof("struct adm_backend_info")
        self._call(lib.adm_gate_describe, "cannot describe the backend", info)
        return BackendInfo(bool(info.capabilities & lib.ADM_CAN_DEFER), info.classes, info.classes_max, info.partitions,
                           info.partitions_max, info.leases, info.leases_max, info.attempts, info.attempts_max,
                           info.expired)

    def sweep(self, budget: int = 1000) -> bool:
        """Clean up on a quiet gate; True when a whole round is finished."""
        done = ffi.new("uint32_t *")
        self._call(lib.adm_gate_sweep, "cannot sweep", _pack.whole(budget, "budget", 1, error=InvalidArgument), done)
        return bool(done[0])


def _nanoseconds(seconds: float | None, what: str) -> int:
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 86400:
        raise InvalidArgument("%s: expected seconds above 0, at most 86400, found %s" % (what, shown(seconds)))
    return max(1, round(seconds * 1e9))


class Hold:
    """What Gate.hold() gives: a context manager, for one use, of both kinds."""

    __slots__ = ("_gate", "_question", "_lease", "_used", "decision")

    def __init__(self, gate: Gate, *question: Any) -> None:
        self._gate = gate
        self._question = question
        self._lease: Lease | None = None
        self._used = False
        self.decision: Decision | None = None

    def _take(self) -> dict[str, Any]:
        if self._used:
            raise InvalidArgument("a hold is for one use; call Gate.hold() again")
        self._used = True
        _, _, amounts, attempt, timeout = self._question
        return {"amounts": amounts, "attempt": attempt, "timeout": timeout}

    def _enter(self, decision: Decision) -> Lease:
        self.decision = decision
        if not decision.allowed:
            raise Denied(decision)
        # Nothing to hold is a lease too, whose operations answer "unknown".
        self._lease = decision.lease or Lease(self._gate, 0, 0)
        return self._lease

    def _leave(self, kind: type[BaseException] | None, call: Callable[[Lease, str], object]) -> None:
        lease, self._lease = self._lease, None
        if lease is None or lease.released:
            return
        try:
            call(lease, result_of(kind))
        except Closed:
            pass  # with the gate its leases ended

    def __enter__(self) -> Lease:
        return self._enter(self._gate.admit(*self._question[:2], **self._take()))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._leave(kind, lambda lease, result: lease.release(result))  # type: ignore[arg-type]

    async def __aenter__(self) -> Lease:
        return self._enter(await self._gate.admit_async(*self._question[:2], **self._take()))

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        # Nothing to await: a cancellation could come in between.
        self._leave(kind, lambda lease, result: lease.release_soon(result))  # type: ignore[arg-type]
