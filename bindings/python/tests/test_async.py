# SPDX-License-Identifier: Apache-2.0
import asyncio
import gc
import os
import warnings
import weakref

import pytest
from conftest import policy

import admit
from admit.testing import Deferring


def nothing_left(gate):
    for _ in range(20000):
        if gate.read("busy", {"pool": "p"}) == 0:
            return True
    return False


def test_admit_and_hold(any_gate):
    async def work():
        decision = await any_gate.admit_async({"pool": "p"})
        assert decision.allowed
        async with any_gate.hold({"pool": "p"}):
            with pytest.raises(admit.Denied):
                async with any_gate.hold({"pool": "p"}):
                    pytest.fail("entered")
        prepared = any_gate.request({"pool": "q"}, 2)
        other = await any_gate.admit_async(prepared)
        assert other.allowed and not (await any_gate.admit_async(prepared)).allowed
        assert await other.lease.settle_async({"output_tokens": 1}) == "settled"
        assert await other.lease.renew_async() == "renewed"
        assert await other.lease.divert_async() == "diverted"
        assert await decision.lease.release_async() == "released"
        assert await decision.lease.release_async() == "already"
        with pytest.raises(admit.InvalidCost):
            await any_gate.admit_async({"pool": "p"}, 0)
    asyncio.run(work())
    assert nothing_left(any_gate)


def test_plain_takes_no_trip_through_the_loop(gate):
    coroutine = gate.admit_async({"pool": "p"})
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    assert stopped.value.value.allowed


def test_thousands_of_cancellations_leave_nothing():
    with admit.Gate(policy(), deferring=Deferring(polls_min=0, polls_max=5, seed=3), backend_timeout=30) as gate:
        async def one(trips):
            task = asyncio.ensure_future(hold())
            for _ in range(trips):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except (asyncio.CancelledError, admit.Denied):
                pass

        async def hold():
            async with gate.hold({"pool": "p"}):
                await asyncio.sleep(0)

        async def work():
            for start in range(0, 2001, 3):
                await asyncio.gather(*(one((start + i) % 9) for i in range(3)))
            for _ in range(200):
                await asyncio.sleep(0)
        asyncio.run(work())
        assert nothing_left(gate)
        assert gate.describe().expired == 0


def test_cancelled_at_every_await(any_gate):
    """Cancelled after n steps of the loop, for every n that a hold has."""
    async def hold(done):
        async with any_gate.hold({"pool": "p"}):
            await asyncio.sleep(0)
        done.append(1)

    async def work():
        for n in range(1000):
            done = []
            task = asyncio.ensure_future(hold(done))
            for _ in range(n):
                await asyncio.sleep(0)
            if task.done():
                return n
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not done
        return None
    assert asyncio.run(work()) is not None
    assert nothing_left(any_gate)


def test_close_answers_who_waits():
    gate = admit.Gate(policy(), deferring=Deferring(polls_min=50, polls_max=50), backend_timeout=30)

    async def work():
        task = asyncio.ensure_future(gate.admit_async({"pool": "p"}))
        await asyncio.sleep(0)
        gate.close()
        with pytest.raises(admit.Closed):
            await task
        with pytest.raises(admit.Closed):
            await gate.admit_async({"pool": "p"})
    asyncio.run(work())


EXACT = [
    {"id": "busy", "type": "concurrency", "match": {"pool": "*"}, "partition_by": ["pool"], "limit": 3, "lease_ttl": "10s"},
] + [
    {"id": unit, "type": "token_bucket", "partition_by": ["pool"], "unit": unit, "capacity": 9, "refill": 0, "per": "1s",
     "settle": "exact"} for unit in ("cost", "requests", "tokens", "images")
]
# More of them than one report has room for.
MANY = dict({"u%02d" % i: 1 for i in range(14)}, tokens=4, images=5)
LATE = Deferring(polls_min=1, polls_max=3, seed=5)


def levels(gate):
    return [gate.read(rule["id"], {"pool": "p"}) for rule in EXACT]


def drained(queue):
    while queue._pending:
        queue._drain()


@pytest.mark.parametrize("answered_first", [False, True])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_grant_that_races_a_cancel_is_undone(answered_first, prepared):
    """The work never began: charges return too, in the order settle, release."""
    events = []
    with admit.Gate(policy(rules=EXACT), deferring=LATE, backend_timeout=30, on_event=events.append) as gate:
        async def work():
            queue = gate._aio()
            for _ in range(4):
                question = gate.request({"pool": "p"}, 3, amounts=MANY) if prepared else {"pool": "p"}
                options = {} if prepared else {"cost": 3, "amounts": MANY}
                task = asyncio.ensure_future(gate.admit_async(question, **options))
                await asyncio.sleep(0)
                if answered_first:
                    drained(queue)
                task.cancel()
                drained(queue)
                with pytest.raises(asyncio.CancelledError):
                    await task
                drained(queue)
                assert levels(gate) == [0, 9, 9, 9, 9]
        asyncio.run(work())
    assert [e.kind for e in events] == ["decision", "usage", "usage", "release"] * 4
    assert [e.result for e in events if e.kind == "release"] == ["cancelled"] * 4


@pytest.mark.parametrize("answered_first", [False, True])
def test_a_grant_to_an_attempt_is_kept_for_its_repeat(answered_first):
    with admit.Gate(policy(rules=EXACT), deferring=LATE, backend_timeout=30) as gate:
        async def work():
            queue = gate._aio()
            question = {"pool": "p"}, 3
            options = {"amounts": {"tokens": 1, "images": 1}, "attempt": "a"}
            task = asyncio.ensure_future(gate.admit_async(*question, **options))
            await asyncio.sleep(0)
            if answered_first:
                drained(queue)
            task.cancel()
            drained(queue)
            with pytest.raises(asyncio.CancelledError):
                await task
            drained(queue)
            again = await gate.admit_async(*question, **options)
            assert again.repeated and levels(gate)[0] == 3
        asyncio.run(work())


def test_a_coroutine_that_is_closed_gives_up_its_ticket():
    with admit.Gate(policy(), deferring=Deferring(polls_min=2, polls_max=2), backend_timeout=30) as gate:
        async def work():
            for _ in range(5):
                coroutine = gate.admit_async({"pool": "p"})
                coroutine.send(None)
                coroutine.close()
            queue = gate._aio()
            # Completed, and not taken yet.
            coroutine = gate.admit_async({"pool": "p"})
            coroutine.send(None)
            gate.read("busy", {"pool": "p"})
            coroutine.close()
            drained(queue)
        asyncio.run(work())
        assert nothing_left(gate)


def test_a_cancelled_ticket_never_writes_its_decision():
    with admit.Gate(policy(), deferring=Deferring(polls_min=3, polls_max=3), backend_timeout=30) as gate:
        async def work():
            task = asyncio.ensure_future(gate.admit_async({"pool": "p"}))
            await asyncio.sleep(0)
            queue = gate._aio()
            (waiting,) = queue._pending.values()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not queue._pending and waiting.slot not in gate._slots
            waiting.slot[1][:] = b"\xa5" * len(waiting.slot[1])
            for _ in range(50):
                queue._drain()
                gate.read("busy", {"pool": "p"})
            assert waiting.slot[1][:] == b"\xa5" * len(waiting.slot[1])
        asyncio.run(work())
        assert nothing_left(gate)


def descriptors_open():
    return len(os.listdir("/proc/self/fd"))


async def use(gate):
    async with gate.hold({"pool": "p"}):
        pass


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc/self/fd to count descriptors in")
def test_loops_that_ended_leave_no_queues():
    with admit.Gate(policy(), deferring=LATE, backend_timeout=30) as gate:
        before = descriptors_open()
        for _ in range(20):
            asyncio.run(use(gate))
        assert len(gate._queues) == 1 and descriptors_open() <= before + 2
    assert descriptors_open() <= before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc/self/fd to count descriptors in")
def test_a_gate_that_is_dropped_warns_and_is_closed():
    before = descriptors_open()
    gate = admit.Gate(policy(), deferring=LATE, backend_timeout=30)
    asyncio.run(use(gate))
    gone = weakref.ref(gate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del gate
        gc.collect()
    assert gone() is None and descriptors_open() <= before
    assert [w.category for w in caught if "dropped without close" in str(w.message)] == [ResourceWarning]
