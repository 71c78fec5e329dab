# SPDX-License-Identifier: Apache-2.0
"""A gate on an event loop, for backends that answer later: one queue per loop."""
from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

from ._decision import Outcome, make_decision, outcome_of
from ._errors import Closed, fail
from ._native import ffi, lib

if TYPE_CHECKING:
    from ._decision import Decision, Lease
    from ._gate import Gate

_POLL_SECONDS = 0.02  # the longest time between two looks while something is on its way


class LoopQueue:
    def __init__(self, gate: Gate, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._gate = gate
        self._thread = threading.get_ident()
        self._handle = gate._handle
        self._pending: dict[int, tuple[asyncio.Future[Any] | None, Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
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
        queue, self._queue = self._queue, None
        if queue is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
        lib.adm_queue_close(queue)
        lib.shim_leave(self._handle)
        self._gate._queues.pop(id(self.loop), None)
        pending, self._pending = self._pending, {}
        if not self.loop.is_closed():
            for future, _ in pending.values():
                if future is not None and not future.done():
                    future.set_exception(Closed("the gate was closed"))

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
            future, slot = self._pending.pop(done.ticket, (None, None))
            self._finish(future, slot, done.status, done.outcome)
            if self._queue is None:
                return
        self._watch()

    def _watch(self) -> None:
        """Look again when the library wants to be asked, as long as something is on its way."""
        if not self._pending or self._timer is not None or self._queue is None:
            return
        delay = _POLL_SECONDS
        if self._gate._clock is None:
            wanted = lib.adm_queue_deadline(self._queue)
            delay = min(delay, max(0.0, (wanted - time.monotonic_ns()) / 1e9))
        else:
            delay = 0.0  # time stands still: there is nothing to wait for but the backend
        self._timer = self.loop.call_later(delay, self._drain)

    def _finish(self, future: asyncio.Future[Any] | None, slot: Any, status: int, outcome: int) -> None:
        decision = None
        if slot is not None:
            if not status:
                decision = make_decision(self._gate, slot[1])
            self._gate._slots.append(slot)
        if future is None or future.done():
            if decision is not None:
                self.give_back(decision)
            return
        if status:
            try:
                fail(status, "cannot decide" if slot is not None else "cannot change the lease")
            except Exception as error:
                future.set_exception(error)
        else:
            future.set_result(decision if slot is not None else outcome_of(outcome, ""))

    def give_back(self, decision: Decision) -> None:
        """Nobody waits for this answer any more: what it holds was never used."""
        lease = decision.lease
        if lease is not None and not decision.repeated:
            self._start_lease(lib.SHIM_DIVERT, lease, 0, (ffi.NULL, 0, 0))
            self._start_lease(lib.SHIM_RELEASE, lease, lib.ADM_RESULT_CANCELLED, (ffi.NULL, 0, 0))

    # ---- questions ----

    async def admit(self, packed: bytes, amounts: Any, count: int, cost: int, attempt: bytes, wait: int) -> Decision:
        slot, ticket = self._gate._slot(), ffi.new("uint64_t *")
        status = lib.shim_admit_start(self._c_gate, self._open(), packed, len(packed), amounts, count, cost, attempt,
                                      len(attempt), wait, slot[0], ticket)
        return await self._decided(slot, status, ticket[0], bool(attempt))

    async def admit_prepared(self, request: Any, attempt: bytes, wait: int) -> Decision:
        slot, ticket = self._gate._slot(), ffi.new("uint64_t *")
        status = lib.shim_admit_prepared_start(self._c_gate, self._open(), request, attempt, len(attempt), wait, slot[0],
                                               ticket)
        return await self._decided(slot, status, ticket[0], bool(attempt))

    async def _decided(self, slot: Any, status: int, ticket: int, kept: bool) -> Decision:
        if status:
            self._gate._slots.append(slot)
            fail(status, "cannot decide")
        if not ticket:
            decision = make_decision(self._gate, slot[1])
            self._gate._slots.append(slot)
            return decision
        future: asyncio.Future[Decision] = self.loop.create_future()
        self._pending[ticket] = future, slot
        self._watch()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                # It was answered before the cancellation arrived.
                if not kept and self._queue is not None:
                    self.give_back(future.result())
            elif self._queue is not None and lib.adm_ticket_cancel(self._queue, ticket):
                self._pending.pop(ticket, None)
            raise

    def _start_lease(self, operation: int, lease: Lease, result: int, totals: tuple[Any, int, int]) -> tuple[int, int]:
        """(ticket, 0), or (0, outcome); a ticket is already watched."""
        outcome, ticket = ffi.new("uint32_t *"), ffi.new("uint64_t *")
        status = lib.shim_start(self._c_gate, self._open(), operation, lease._high, lease._low, result, totals[0],
                                totals[1], totals[2], outcome, ticket)
        if status:
            fail(status, "cannot change the lease")
        if ticket[0]:
            self._pending[ticket[0]] = None, None
            self._watch()
        return ticket[0], outcome[0]

    async def lease_operation(self, operation: int, lease: Lease, result: int = 0,
                              totals: tuple[Any, int, int] = (ffi.NULL, 0, 0)) -> Outcome:
        ticket, outcome = self._start_lease(operation, lease, result, totals)
        if not ticket:
            return outcome_of(outcome, "")
        future: asyncio.Future[Outcome] = self.loop.create_future()
        self._pending[ticket] = future, None
        # Cancelled here, it is carried out all the same.
        return await future
