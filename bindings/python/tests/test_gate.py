# SPDX-License-Identifier: Apache-2.0
import array
import gc
import json
import math
import os
import pickle
import threading
import weakref

import pytest
from conftest import RULES, policy

import admit
from admit.testing import ManualClock


def test_allowed_and_denied(gate):
    first = gate.admit({"pool": "p"})
    second = gate.admit({"pool": b"p"}, 1)
    third = gate.admit({"pool": "p"})
    assert first.allowed and first.reason == "allowed" and first.http_status == 200 and first.rules == ()
    assert first.lease is not None and len(first.lease.id) == 32 and len(first.id) == 32
    assert not third.allowed and third.reason == "concurrency_exceeded" and third.http_status == 429
    assert third.rules == ("busy",) and third.lease is None and third.policy_version == "v1"
    assert third.table_version is None and not third.repeated
    assert first.lease.release() == "released" and first.lease.release() == "already"
    assert second.lease.release("error") == "released"
    assert gate.read("busy", {"pool": "p"}) == 0


def test_rate_denial_says_when():
    clock = ManualClock()
    with admit.Gate(policy(), clock=clock) as gate:
        assert [gate.admit({"consumer": "c"}).allowed for _ in range(4)] == [True, True, True, False]
        denied = gate.admit({"consumer": "c"}, 2)
        assert denied.retry_after_ms == 2000 and denied.retry_after == 2
        assert "rate_exceeded by rate, retry after 2000 ms" in repr(denied)
        clock.advance(2)
        assert gate.admit({"consumer": "c"}, 2).allowed


def test_decision_is_a_value(gate):
    decision = gate.admit({"pool": "p"})
    for name in ("allowed", "reason", "lease", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(decision, name, 1)
    with pytest.raises(TypeError):
        bool(decision)
    with pytest.raises(TypeError):
        admit.Decision()
    assert decision == decision and hash(decision) == hash(decision) and decision != gate.admit({"pool": "q"})
    assert decision.lease is decision.lease


@pytest.mark.parametrize("cost", [0, -1, 10 ** 12 + 1, 2 ** 64, -2 ** 70, 10 ** 400, 1.0, math.nan, True, "1", None])
def test_bad_cost(gate, cost):
    with pytest.raises(admit.InvalidCost, match="cost") as caught:
        gate.admit({"pool": "p"}, cost)
    assert caught.value.name == "ADM_E_INVALID_COST" and isinstance(caught.value, ValueError)
    with pytest.raises(admit.InvalidCost, match="cost"):
        gate.request({"pool": "p"}, cost)
    assert gate.read("busy", {"pool": "p"}) == 0


@pytest.mark.parametrize("descriptors", [
    {"": "v"}, {"k": ""}, {"k" * 65: "v"}, {"k": "v" * 257}, {"k": "\ud800"}, {"\udfff": "v"}, {1: "v"}, {"k": 1},
    {"k": None}, {"k": ["v"]}, {"k": bytearray(b"v")}, {"k%d" % i: "v" for i in range(17)}, [("k", "v")], "k=v", None, 7,
    {"é" * 33: "v"}, {"a": "v", b"a": "w"},
])
def test_bad_descriptors(gate, descriptors):
    with pytest.raises(admit.InvalidDescriptors):
        gate.admit(descriptors)
    with pytest.raises(admit.InvalidDescriptors):
        gate.request(descriptors)


class Liar(bytes):
    def __len__(self):
        return 1


@pytest.mark.parametrize("value", [bytearray(b"v"), memoryview(b"v"), array.array("I", [1]), array.array("b", [1]), 1.5,
                                   range(1)])
def test_a_value_of_another_type_is_refused_also_when_its_key_is_known(gate, value):
    """Its length need not be that of its bytes, and what follows would be read as more descriptors."""
    assert gate.admit({"k": "v"}).allowed
    for packed in ({"k": value}, {b"k": value}, {value: "v"} if isinstance(value, (float, range)) else {"k": value}):
        with pytest.raises(admit.InvalidDescriptors):
            gate.admit(packed)


def test_subclasses_say_what_their_bytes_say(gate):
    class Shout(str):
        def encode(self, *rest):
            return b"other"
    assert [gate.admit({"pool": name}).allowed for name in (Liar(b"abc"), "abc", Shout("abc"))] == [True, True, False]
    assert gate.admit({"pool": "q"}, amounts={Shout("tokens"): 1}, attempt=Liar(b"abc")).allowed
    assert gate.admit({"pool": "q"}, amounts={"tokens": 1}, attempt="abc").repeated


def test_messages_are_short(gate):
    endless = 10 ** 5000  # has no decimal form
    for call in (lambda: gate.admit({"k" * 10 ** 6: "v"}), lambda: gate.admit({"\ud800" * 10 ** 6: "v"}),
                 lambda: gate.admit({}, timeout=endless), lambda: gate.admit({}, endless),
                 lambda: gate.admit({}, amounts={"u" * 10 ** 6: 1}), lambda: gate.admit({}, amounts={"tokens": -endless}),
                 lambda: gate.read("r" * 10 ** 6, {}), lambda: gate.rollback("v" * 10 ** 6),
                 lambda: gate.signal("m", "r", "kv", endless), lambda: admit.Policy.loads("{}", format=endless),
                 lambda: admit.Lease(gate, 0, 0).release(endless),
                 lambda: admit.Lease(gate, 0, 0).settle({}, final=[endless])):
        with pytest.raises(admit.AdmitError) as caught:
            call()
        assert len(str(caught.value)) < 300


def test_the_longest_descriptors_and_any_byte(gate):
    everything = {"k%02d" % i + "x" * 61: bytes(range(256)) for i in range(16)}
    assert gate.admit(everything).allowed
    assert gate.admit(gate.request(everything)).allowed
    # NUL is a byte: these are two partitions.
    assert [gate.admit({"pool": name}).allowed for name in ("a\0b", "a\0b", "a\0c", "a\0b")] == [True, True, True, False]


@pytest.mark.parametrize("amounts", [
    {"tokens": -1}, {"tokens": 1.0}, {"tokens": True}, {"tokens": 10 ** 12 + 1}, {"tokens": 2 ** 64}, {"": 1}, {"A": 1},
    {1: 1}, [("tokens", 1)], [], 0, "", False, {"cost": 1}, {"u%d" % i: 1 for i in range(17)}, {"t\0": 1}, {"\ud800": 1},
])
def test_bad_amounts(gate, amounts):
    with pytest.raises(admit.InvalidArgument):
        gate.admit({"pool": "p"}, amounts=amounts)
    assert gate.read("busy", {"pool": "p"}) == 0


@pytest.mark.parametrize("attempt", ["", "a" * 65, 1, b"", "\ud800", ["a"]])
def test_bad_attempt(gate, attempt):
    with pytest.raises(admit.InvalidAttempt, match="attempt"):
        gate.admit({"pool": "p"}, attempt=attempt)


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, "1", True, 86401])
def test_bad_timeout(gate, timeout):
    with pytest.raises(admit.InvalidArgument, match="timeout"):
        gate.admit({"pool": "p"}, timeout=timeout)


def test_attempts_repeat(gate):
    first = gate.admit({"pool": "p"}, attempt="a\0b")
    again = gate.admit(gate.request({"pool": "p"}), attempt=b"a\0b")
    assert again.repeated and again.lease.id == first.lease.id
    with pytest.raises(admit.InvalidAttempt):
        gate.admit({"pool": "p"}, 2, attempt="a\0b")


def test_prepared_request(gate):
    request = gate.request({"pool": "p"}, 2)
    assert gate.admit(request).allowed and not gate.admit(request).allowed
    for options in ({"cost": 2}, {"amounts": {}}):
        with pytest.raises(admit.InvalidArgument, match="prepared"):
            gate.admit(request, **options)
    with admit.Gate(policy()) as other:
        with pytest.raises(admit.InvalidArgument, match="another gate"):
            other.admit(request)
    with pytest.raises(TypeError):
        admit.Request()


def test_hold(gate):
    with gate.hold({"pool": "p"}) as lease:
        assert gate.read("busy", {"pool": "p"}) == 1
    assert lease.released and gate.read("busy", {"pool": "p"}) == 0
    with pytest.raises(KeyError), gate.hold({"pool": "p"}):
        raise KeyError
    with gate.hold({"pool": "p"}) as lease:
        lease.release()
    assert gate.read("busy", {"pool": "p"}) == 0
    with gate.hold({"pool": "p"}, 2):
        with pytest.raises(admit.Denied) as caught:
            with gate.hold({"pool": "p"}):
                pytest.fail("entered")
        assert caught.value.decision.rules == ("busy",)
    with gate.hold({"other": "x"}) as lease:
        assert lease.id == "0" * 32 and lease.settle({}) == "unknown"
    hold = gate.hold({"pool": "p"})
    with hold:
        pass
    with pytest.raises(admit.InvalidArgument, match="one use"):
        with hold:
            pass


def test_results_reach_the_events():
    results = []
    gate = admit.Gate(policy(), on_event=lambda e: results.append(e.result) if e.kind == "release" else None)
    import asyncio
    for error in (None, ValueError, asyncio.CancelledError, TimeoutError, GeneratorExit):
        try:
            with gate.hold({"pool": "p"}):
                if error:
                    raise error
        except BaseException as caught:
            assert type(caught) is error
    assert results == ["ok", "error", "cancelled", "timeout", "cancelled"]
    with pytest.raises(admit.InvalidArgument, match="result"):
        gate.admit({"pool": "p"}).lease.release("done")
    gate.close()


def test_settle(gate):
    lease = gate.admit({"pool": "p"}).lease
    assert lease.settle({"output_tokens": 5}, final=["output_tokens"]) == "settled"
    for totals, final in (({"tokens": -1}, False), ({"tokens": 1}, ["images"]), ({"tokens": 1}, "tokens"), ([], False)):
        with pytest.raises(admit.InvalidArgument):
            lease.settle(totals, final=final)
    assert lease.settle({}, final=True) == "settled"
    assert lease.renew() == "renewed" and lease.divert() == "diverted"


def test_explain(gate):
    explanation = gate.explain({"pool": "p"})
    assert [r.rule for r in explanation.rules] == ["busy", "rate", "cap"]
    assert explanation.decision.allowed and explanation.decision.lease is None
    busy, rate, cap = explanation.rules
    assert busy.matched and busy.limit == 2 and busy.level == 0 and busy.reason is None
    assert not rate.matched and rate.mismatch == b"consumer"
    assert gate.read("busy", {"pool": "p"}) == 0


def test_policies(gate):
    with pytest.raises(admit.PolicyError) as caught:
        admit.Policy.loads('{"version": "v2",\n "rules": [{"id": "a", "type": "request_cap", "limt": 1}]}', file="p.json")
    finding = caught.value.findings[0]
    assert finding.line == 2 and finding.nearest == "limit" and str(caught.value).startswith("p.json:2:")
    with pytest.raises(AttributeError):
        finding.line = 3
    with pytest.raises(admit.PolicyError):
        admit.Policy.loads('{"version": "\ud800"}')
    for bad in (None, 7, bytearray(b"{}")):
        with pytest.raises(admit.InvalidArgument, match="text"):
            admit.Policy.loads(bad)
    with pytest.raises(admit.InvalidArgument, match="format"):
        admit.Policy.loads("{}", format="toml")
    with pytest.raises(admit.InvalidArgument, match="policy"):
        admit.Gate({"version": "v1"})
    gate.publish(policy("v2"))
    assert gate.version == "v2"
    gate.rollback("v1")
    assert gate.version == "v1"
    with pytest.raises(admit.UnknownVersion):
        gate.rollback("v3")
    with pytest.raises(admit.VersionConflict):
        gate.publish(policy("v1", RULES[:1]))
    with pytest.raises(admit.UnknownRule):
        gate.read("nothing", {})
    with pytest.raises(admit.InvalidDescriptors):
        gate.read("busy", {})
    with pytest.raises(admit.PolicyError):
        gate.put_table("{")
    assert gate.version == "v1"


def test_files(tmp_path):
    text = {"version": "v1", "rules": RULES}
    (tmp_path / "p.json").write_text(json.dumps(text))
    with admit.Gate.from_file(tmp_path / "p.json", partitions_max=10) as gate:
        assert gate.describe().partitions_max >= 10
    (tmp_path / "p.yaml").write_text("version: v1\nrules:\n- {id: a, type: request_cap, limit: 5}\n")
    with admit.Gate.from_file(str(tmp_path / "p.yaml")) as gate:
        assert gate.version == "v1"
    with pytest.raises(FileNotFoundError):
        admit.Gate.from_file(tmp_path / "none.json")
    with pytest.raises(admit.InvalidArgument, match="partitions_max"):
        admit.Gate(policy(), partitions_max=-1)
    with pytest.raises(admit.InvalidArgument):
        admit.Gate(policy(), partitions_max=2 ** 60)


def test_signals_metrics_sweep(gate):
    gate.signal("m", "r1", "healthy", 1)
    gate.signal("m", "r1", "kv", math.nan)
    for value in ("1", None, True, 10 ** 400):
        with pytest.raises(admit.InvalidArgument, match="value"):
            gate.signal("m", "r1", "kv", value)
    with pytest.raises(admit.InvalidArgument):
        gate.signal("", "r1", "kv", 1)
    assert gate.metrics().endswith("# EOF\n")
    assert gate.sweep(10 ** 6) in (True, False)


def test_after_close():
    gate = admit.Gate(policy())
    lease, request = gate.admit({"pool": "p"}).lease, gate.request({"pool": "p"})
    gate.close()
    gate.close()
    for call in (lambda: gate.admit({"pool": "p"}), lambda: gate.admit(request), lambda: gate.request({}), gate.metrics,
                 gate.describe, lambda: gate.explain({}), lambda: gate.version, lambda: gate.read("busy", {}),
                 lease.release, lease.renew, lambda: lease.settle({}), lambda: gate.publish(policy()), gate.sweep,
                 lambda: gate.put_table("{}"), lambda: gate.signal("a", "b", "c", 1)):
        with pytest.raises(admit.Closed):
            call()
    assert gate.closed and repr(gate) == "<admit.Gate closed>"
    with admit.Gate(policy()) as other, other.hold({"pool": "p"}):
        other.close()


def test_events_and_their_errors(monkeypatch):
    import sys
    seen, lost = [], []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)

    def listen(event):
        seen.append(event)
        gate.admit({"pool": "p"})  # not allowed here

    with admit.Gate(policy(), on_event=listen) as gate:
        gate.admit({"pool": "p\0"}, 2, amounts={"tokens": 3}).lease.release("timeout")
    assert [e.kind for e in seen] == ["decision", "release"]
    assert seen[0].descriptors == ((b"pool", b"p\0"),) and seen[0].cost == 2 and seen[0].decision.allowed
    assert seen[1].result == "timeout" and seen[1].outcome == "released"
    assert [type(error.exc_value) for error in lost] == [admit.InvalidArgument] * 2


def test_threads_and_a_close_in_the_middle():
    gate = admit.Gate(policy(rules=[dict(RULES[0], limit=1000000)]))
    request = gate.request({"pool": "p"})
    wrong, done = [], []

    def work(number):
        try:
            while True:
                decision = gate.admit(request if number % 2 else {"pool": "p"})
                if not decision.allowed or decision.lease.release() != "released":
                    wrong.append(decision)
                    return
                done.append(1)
        except admit.Closed:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    while len(done) < 2000 and not wrong:
        threading.Event().wait(0.001)
    if not wrong:
        assert gate.read("busy", {"pool": "p"}) <= 8
    gate.close()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_fork(gate):
    lease = gate.admit({"pool": "p"}).lease
    child = os.fork()
    if child == 0:
        code = 1
        try:
            decision = gate.admit({"pool": "p"})
            assert not decision.allowed and decision.reason == "state_unavailable" and decision.http_status == 503
            try:
                lease.release()
            except admit.BackendError as error:
                assert error.name == "ADM_E_BACKEND_FORKED"
            gate.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert lease.release() == "released"


def test_nothing_keeps_a_gate():
    gate = admit.Gate(policy(), on_event=lambda event: None)
    gate.admit({"pool": "p"}).lease.release()
    gone = weakref.ref(gate)
    del gate
    gc.collect()
    assert gone() is None
    with pytest.raises(TypeError):
        with admit.Gate(policy()) as made:
            pickle.dumps(made)


def test_a_cycle_through_the_callback_is_collected():
    class Owner:
        def __init__(self):
            self.gate = admit.Gate(policy(), on_event=lambda event: self.gate)

    owner = Owner()
    owner.gate.admit({"pool": "p"})
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    # C holds the callback until the gate is closed; that it is alive is all that must hold.
    if gone() is not None:
        gone().gate.close()
