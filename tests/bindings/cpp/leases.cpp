/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: given back once, whatever happens. */
#include "tap.hpp"

#include <type_traits>

static_assert(!std::is_copy_constructible_v<admit::Lease> &&
              std::is_nothrow_move_constructible_v<admit::Lease> &&
              std::is_nothrow_move_assignable_v<admit::Lease> &&
              std::is_nothrow_destructible_v<admit::Lease>);

static void moves(admit::Gate &gate, Seen &seen)
{
    {
        admit::Decision decision = gate.admit(admit::Request());
        admit::Decision denied = gate.admit(admit::Request());
        admit::Lease none = denied.lease();

        ok(decision.allowed() && !denied && !none, "a denial holds nothing");
        ok(none.release() == ADM_OUTCOME_UNKNOWN, "nothing to release");
        seen = Seen();
        admit::Lease lease = decision.lease();
        ok(lease && !decision.lease(), "the lease moves out of the decision, once");
        admit::Lease other = std::move(lease);
        ok(other && !lease && lease.id().high == 0 && lease.id().low == 0, "moved from: empty");
        ok(lease.release() == ADM_OUTCOME_UNKNOWN && lease.renew() == ADM_OUTCOME_LOST &&
               lease.divert() == ADM_OUTCOME_UNKNOWN && lease.settle({}) == ADM_OUTCOME_UNKNOWN,
           "an empty lease answers");
        admit::Lease &same = other;
        other = std::move(same);
        ok(other && seen.releases == 0, "moves release nothing");
    }
    ok(seen.releases == 1 && seen.result == ADM_RESULT_OK, "the destructor releases, once");
    {
        admit::Lease lease = gate.admit(admit::Request()).lease();
        ok(bool(lease), "there is room again");
        lease = admit::Lease();
        ok(seen.releases == 2 && !lease, "an assignment releases what was there");
        lease = gate.admit(admit::Request()).lease();
        ok(bool(lease), "and takes what comes");
    }
    ok(seen.releases == 3, "released at the end");
    {
        admit::Decision decision = gate.admit(admit::Request());
    }
    ok(seen.releases == 4, "a lease that stays in its decision goes with it");
}

static void calls(admit::Gate &gate, Seen &seen)
{
    admit::Lease lease = gate.admit(admit::Request()).lease();
    adm_id id = lease.id();

    seen = Seen();
    ok(lease.renew() == ADM_OUTCOME_RENEWED, "renewed");
    ok(lease.settle({ admit::amount(ADM_UNIT_OUTPUT_TOKENS, 5) }) == ADM_OUTCOME_SETTLED &&
           lease.settle(std::vector<adm_amount>{ admit::amount(ADM_UNIT_OUTPUT_TOKENS, 7, true) },
                        true) == ADM_OUTCOME_SETTLED &&
           seen.usages == 2,
       "settled");
    adm_amount twice = admit::amount(ADM_UNIT_IMAGES, 1);
    ok(status_of([&] {
           (void)lease.settle({ twice, twice });
       }) == ADM_E_INVALID_COST &&
           lease,
       "a unit twice throws; held as before");
    ok(status_of([&] { (void)lease.release(ADM_RESULT_COUNT); }) == ADM_E_INVALID_ARGUMENT && lease,
       "no such result throws; held as before");
    ok(lease.release(ADM_RESULT_TIMEOUT) == ADM_OUTCOME_RELEASED && !lease &&
           seen.result == ADM_RESULT_TIMEOUT,
       "released, with a result");
    ok(lease.release() == ADM_OUTCOME_ALREADY && lease.renew() == ADM_OUTCOME_LOST,
       "a second release is harmless");
    unsigned before = seen.releases;
    lease = gate.admit(admit::Request()).lease();
    ok(seen.releases == before, "a released lease is not released again");
    ok(lease.divert() == ADM_OUTCOME_DIVERTED && !lease && gate.admit(admit::Request()).allowed(),
       "diverted: nothing is held");
    admit::Lease wrong(gate.get(), id);
    ok(wrong.release() == ADM_OUTCOME_ALREADY || !wrong, "an id that has ended");
    lease = gate.admit(admit::Request()).lease();
    before = seen.releases;
    {
        adm_id detached = lease.detach();
        ok(!lease && detached.high == lease.id().high, "detached");
        lease = admit::Lease();
        ok(seen.releases == before && !gate.admit(admit::Request()), "and still held");
        admit::Lease adopted(gate.get(), detached);
        ok(bool(adopted), "adopted by its id");
    }
    ok(seen.releases == before + 1 && gate.admit(admit::Request()).allowed(), "and given back");
}

/* ---- unwinding ------------------------------------------------------------------------------- */

/* Does work in its destructor, perhaps because of an exception. */
class Cleaner {
public:
    explicit Cleaner(admit::Gate &gate) : gate_(gate) {}
    Cleaner(const Cleaner &) = delete;
    Cleaner &operator=(const Cleaner &) = delete;
    ~Cleaner() { admit::Lease lease = gate_.admit(admit::Request()).lease(); }

private:
    admit::Gate &gate_;
};

template <class What> static void thrown(What &&what)
{
    try {
        what();
    } catch (int) {
        return;
    }
    ok(false, "something was thrown");
}

static void unwinding(admit::Gate &gate, Seen &seen)
{
    seen = Seen();
    thrown([&] {
        admit::Lease lease = gate.admit(admit::Request()).lease();
        throw 1;
    });
    ok(seen.releases == 1 && seen.result == ADM_RESULT_ERROR, "unwinding is an error");
    thrown([&] {
        admit::Decision decision = gate.admit(admit::Request());
        throw 1;
    });
    ok(seen.releases == 2 && seen.result == ADM_RESULT_ERROR, "also inside of the decision");
    thrown([&] {
        admit::Lease lease = gate.admit(admit::Request()).lease();
        (void)lease.release(ADM_RESULT_CANCELLED);
        throw 1;
    });
    ok(seen.releases == 3 && seen.result == ADM_RESULT_CANCELLED, "not after a release");
    thrown([&] {
        Cleaner cleaner(gate);
        throw 1;
    });
    ok(seen.releases == 4 && seen.result == ADM_RESULT_OK,
       "work that begins during unwinding is not failed by it");
    try {
        throw 1;
    } catch (int) {
        admit::Lease lease = gate.admit(admit::Request()).lease();
    }
    ok(seen.releases == 5 && seen.result == ADM_RESULT_OK, "nor work inside of a handler");
    ok(gate.admit(admit::Request()).allowed(), "nothing is held in the end");
}

void lease_tests()
{
    Seen seen;
    admit::Gate gate(admit::Policy::parse(one_at_a_time), watched(seen));

    moves(gate, seen);
    calls(gate, seen);
    unwinding(gate, seen);
}
