# SPDX-License-Identifier: Apache-2.0
import asyncio

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
