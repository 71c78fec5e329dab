# SPDX-License-Identifier: Apache-2.0
"""A gate on an event loop, for backends that answer later: one queue per loop."""
from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ._decision import Outcome, make_decision, outcome_of
from ._errors import AdmitError, Closed, fail
from ._native import ffi, lib

if TYPE_CHECKING:
    from ._decision import Decision, Lease
    from ._gate import Gate

_POLL_SECONDS = 0.02  # the longest time between two looks while something is on its way

# What a request was about: who keeps the amounts, where they are, how many.
Asked = tuple[Any, Any, int]
# Every built-in unit: a rule may count one that the request did not name.
_UNITS = (lib.ADM_UNIT_COST, lib.ADM_UNIT_REQUESTS, lib.ADM_UNIT_INPUT_TOKENS, lib.ADM_UNIT_OUTPUT_TOKENS,
          lib.ADM_UNIT_TOKENS, lib.ADM_UNIT_IMAGES)
_MAX_AMOUNTS: int = lib.ADM_MAX_AMOUNTS


class _Waiting(NamedTuple):
    """Who waits for a ticket, and what is to be done when it completes."""

    future: asyncio.Future[Any] | None
    slot: Any = None  # of an admit: where its decision will be
    asked: Optional[Asked] = None  # of an admit that is given back when nobody waits any more
    then: Optional[Callable[[], None]] = None


class LoopQueue:
    def __init__(self, gate: Gate, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._gate = gate
        self._thread = threading.get_ident()
        self._handle = gate._handle
        self._pending: dict[int, _Waiting] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closing = threading.Lock()
        self._completion = ffi.new("struct adm_completion *")
        self._completion.size = ffi.sizeof("struct adm_completion")
        self._c_gate = lib.shim_enter(self._handle)  # until close()
        if self._c_gate == ffi.NULL:
            raise Closed("the gate is closed")
        out = ffi.new("struct adm_queue **")
        status = lib.adm_queue_open(self._c_gate, out)
        if status:
            lib.shim_leave(self._handle)
            fail(status, "cannot open a queue for this event loop")
        self._queue: Any = out[0]
        self._fd: int = lib.adm_queue_fd(self._queue)
        loop.add_reader(self._fd, self._drain)

    # ---- life ----

    def close(self) -> None:
        """Tickets that are open are cancelled. From another thread: as soon as the loop gets to it."""
        if threading.get_ident() != self._thread and self.loop.is_running():
            try:
                self.loop.call_soon_threadsafe(self._close)
                return
            except RuntimeError:
                pass  # it was closed meanwhile
        self._close()

    def _close(self) -> None:
        # Once, whichever thread comes first.
        if not self._closing.acquire(blocking=False):
            return
        # What is given back in two steps takes the second one now.
        for waiting in list(self._pending.values()):
            if waiting.then is not None:
                waiting.then()
        queue, self._queue = self._queue, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
        lib.adm_queue_close(queue)
        lib.shim_leave(self._handle)
        if self._gate._queues.get(id(self.loop)) is self:
            del self._gate._queues[id(self.loop)]
        pending, self._pending = self._pending, {}
        if not self.loop.is_closed():
            for waiting in pending.values():
                if waiting.future is not None and not waiting.future.done():
                    waiting.future.set_exception(Closed("the gate was closed"))

    def _open(self) -> Any:
        if self._queue is None:
            raise Closed("the gate is closed")
        return self._queue

    # ---- what comes back ----

    def _drain(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue is None:
            return
        done = self._completion
        while lib.adm_queue_next(self._queue, done):
            waiting = self._pending.pop(done.ticket, None)
            if waiting is not None:
                self._finish(waiting, done.status, done.outcome)
            if self._queue is None:
                return
        self._watch()

    def _watch(self) -> None:
        """Look again when the library wants to be asked, as long as something is on its way."""
        if not self._pending or self._timer is not None or self._queue is None or self.loop.is_closed():
            return
        delay = _POLL_SECONDS
        if self._gate._clock is None:
            wanted = lib.adm_queue_deadline(self._queue)
            delay = min(delay, max(0.0, (wanted - time.monotonic_ns()) / 1e9))
        else:
            delay = 0.0  # time stands still: there is nothing to wait for but the backend
        self._timer = self.loop.call_later(delay, self._drain)

    def _finish(self, waiting: _Waiting, status: int, outcome: int) -> None:
        future, slot, asked, then = waiting
        decision = None
        if slot is not None:
            if not status:
                decision = make_decision(self._gate, slot[1])
            self._gate._slots.append(slot)
        if then is not None:
            then()
        if future is None or future.done():
            if decision is not None and asked is not None:
                self._give_back(decision, asked)
            return
        if status:
            try:
                fail(status, "cannot decide" if slot is not None else "cannot change the lease")
            except Exception as error:
                future.set_exception(error)
        else:
            future.set_result(decision if slot is not None else outcome_of(outcome, ""))

    def _give_back(self, decision: Decision, asked: Asked) -> None:
        """Nobody waits for this answer any more: as if it had never been. The work did not start, so that everything is
        settled to zero and then released, one after the other, as the library does with a ticket that was cancelled.
        divert() would be wrong: it is for work that did start, elsewhere, and its charges stay."""
        lease = decision.lease
        if lease is None or decision.repeated:
            return
        units = list(_UNITS) + [asked[1][i].unit for i in range(asked[2]) if asked[1][i].unit not in _UNITS]
        self._undo(lease, units)

    def _undo(self, lease: Lease, units: list[int]) -> None:
        now, later = units[:_MAX_AMOUNTS], units[_MAX_AMOUNTS:]
        try:
            if not units:
                self._start_lease(lib.SHIM_RELEASE, lease, lib.ADM_RESULT_CANCELLED)
                return
            totals = ffi.new("struct adm_amount[]", [(unit, lib.ADM_AMOUNT_FINAL, 0) for unit in now])
            ticket, _ = self._start_lease(lib.SHIM_SETTLE, lease, 0, (totals, len(now), int(not later)),
                                          lambda: self._undo(lease, later))
        except AdmitError:
            return  # it ends by its time to live
        if not ticket:
            self._undo(lease, later)

    def _abandon(self, ticket: int, future: asyncio.Future[Decision], asked: Asked | None) -> None:
        """The one who asked went away."""
        if self._queue is None:
            return
        if not future.done() or future.cancelled():
            # Cancelled, its decision is never written. Else it has completed: _finish() meets a future that is done.
            if lib.adm_ticket_cancel(self._queue, ticket):
                self._pending.pop(ticket, None)
            elif not future.done():
                future.cancel()
        elif future.exception() is None and asked is not None:
            # It was answered before.
            self._give_back(future.result(), asked)

    # ---- questions ----

    async def admit(self, packed: bytes, amounts: Any, count: int, cost: int, attempt: bytes, wait: int) -> Decision:
        slot, ticket = self._gate._slot(), ffi.new("uint64_t *")
        status = lib.shim_admit_start(self._c_gate, self._open(), packed, len(packed), amounts, count, cost, attempt,
                                      len(attempt), wait, slot[0], ticket)
        return await self._decided(slot, status, ticket[0], None if attempt else (amounts, amounts, count))

    async def admit_prepared(self, request: Any, attempt: bytes, wait: int) -> Decision:
        slot, ticket = self._gate._slot(), ffi.new("uint64_t *")
        status = lib.shim_admit_prepared_start(self._c_gate, self._open(), request, attempt, len(attempt), wait, slot[0],
                                               ticket)
        asked = request, request.amounts, request.request.amount_count
        return await self._decided(slot, status, ticket[0], None if attempt else asked)

    async def _decided(self, slot: Any, status: int, ticket: int, asked: Asked | None) -> Decision:
        """``asked`` None: what is granted to an attempt is kept, for whoever repeats it."""
        if status:
            self._gate._slots.append(slot)
            fail(status, "cannot decide")
        if not ticket:
            decision = make_decision(self._gate, slot[1])
            self._gate._slots.append(slot)
            return decision
        future: asyncio.Future[Decision] = self.loop.create_future()
        self._pending[ticket] = _Waiting(future, slot, asked)
        self._watch()
        try:
            return await future
        except (asyncio.CancelledError, GeneratorExit):
            # A coroutine that is closed or collected comes here from anywhere; the queue is for the thread of its loop.
            if threading.get_ident() != self._thread and self.loop.is_running():
                self.loop.call_soon_threadsafe(self._abandon, ticket, future, asked)
            else:
                self._abandon(ticket, future, asked)
            raise

    def _start_lease(self, operation: int, lease: Lease, result: int = 0,
                     totals: tuple[Any, int, int] = (ffi.NULL, 0, 0),
                     then: Callable[[], None] | None = None) -> tuple[int, int]:
        """(ticket, 0), or (0, outcome); a ticket is already watched."""
        outcome, ticket = ffi.new("uint32_t *"), ffi.new("uint64_t *")
        status = lib.shim_start(self._c_gate, self._open(), operation, lease._high, lease._low, result, totals[0],
                                totals[1], totals[2], outcome, ticket)
        if status:
            fail(status, "cannot change the lease")
        if ticket[0]:
            self._pending[ticket[0]] = _Waiting(None, then=then)
            self._watch()
        return ticket[0], outcome[0]

    async def lease_operation(self, operation: int, lease: Lease, result: int = 0,
                              totals: tuple[Any, int, int] = (ffi.NULL, 0, 0)) -> Outcome:
        ticket, outcome = self._start_lease(operation, lease, result, totals)
        if not ticket:
            return outcome_of(outcome, "")
        future: asyncio.Future[Outcome] = self.loop.create_future()
        self._pending[ticket] = _Waiting(future)
        # Cancelled here, it is carried out all the same.
        return await future
