/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: answers at once and later, cancelled, thrown out of, and in memory that runs out. */
#include "tap.hpp"

#include <admit/testing.h>

#include <type_traits>

static_assert(!std::is_copy_constructible_v<admit::Queue> &&
              std::is_nothrow_move_constructible_v<admit::Queue> &&
              std::is_nothrow_move_assignable_v<admit::Queue>);

/* A gate whose backend answers after exactly this many polls, on a clock of its own. */
struct Late {
    adm_fake_clock time{};
    admit::Gate gate;

    explicit Late(std::uint64_t polls)
        : gate(admit::Policy::parse(one_at_a_time), options(time, polls))
    {
    }
    static admit::GateOptions options(adm_fake_clock &time, std::uint64_t polls)
    {
        adm_deferring_options late{};
        admit::GateOptions options;
        adm_backend plain{};

        time.tick_ns = 1000; /* a call that waits gets to its deadline */
        late.size = sizeof late;
        late.polls_min = late.polls_max = polls;
        late.seed = 1;
        admit::check(adm_plain_open(nullptr, &plain));
        admit::check(adm_deferring_open(&late, plain, &options.backend));
        options.clock = adm_fake_clock_as_clock(&time);
        return options;
    }
};

/* What came of an admit. */
struct Answer {
    unsigned calls = 0;
    adm_status status = ADM_E_INTERNAL;
    bool allowed = false;
    std::uint32_t reason = ADM_REASON_COUNT, outcome = ADM_OUTCOME_COUNT;
    admit::Lease lease;

    admit::Queue::OnDecision decided()
    {
        return [this](adm_status said, admit::Decision decision) {
            calls++;
            status = said;
            allowed = decision.allowed();
            reason = decision.reason();
            lease = decision.lease();
        };
    }
    admit::Queue::OnDecision ended_by_decision()
    {
        return [this](adm_status, const admit::Decision &) { calls++; };
    }
    admit::Queue::OnOutcome ended()
    {
        return [this](adm_status said, std::uint32_t what) {
            calls++;
            status = said;
            outcome = what;
        };
    }
};

/* Until nothing is open; a queue that never gets there fails the test. */
static bool finish(admit::Queue &queue)
{
    for (int i = 0; i < 10000 && queue.size() > 0; i++)
        (void)queue.run();
    return queue.size() == 0;
}

static void at_once()
{
    admit::Gate gate(admit::Policy::parse(one_at_a_time));
    admit::Queue queue(gate);
    Answer first, second, end;

    ok(queue.admit(admit::Request(), first.decided()) == 0 && first.calls == 1 && first.allowed,
       "a backend that answers at once: inside of the call");
    ok(queue.admit(admit::Request(), second.decided()) == 0 && !second.allowed &&
           second.reason == ADM_REASON_CONCURRENCY_EXCEEDED && !second.lease,
       "a denial is a decision");
    ok(queue.renew(first.lease, end.ended()) == 0 && end.outcome == ADM_OUTCOME_RENEWED &&
           queue.settle(first.lease, { admit::amount(ADM_UNIT_IMAGES, 1) }, true, end.ended()) ==
               0 &&
           end.outcome == ADM_OUTCOME_SETTLED,
       "renewed and settled");
    ok(queue.release(first.lease, ADM_RESULT_OK, end.ended()) == 0 &&
           end.outcome == ADM_OUTCOME_RELEASED && !first.lease && end.calls == 3,
       "released");
    ok(queue.size() == 0 && queue.run() == 0 && queue.fd() >= 0 &&
           queue.deadline_ns() == UINT64_MAX && queue.wait_ms() == -1,
       "nothing is open");
    ok(queue.admit(admit::Request(), {}) == 0 && gate.admit(admit::Request()).allowed(),
       "an answer that nobody wants gives its lease back");
    ok(status_of([&] { (void)queue.admit(admit::Request().cost(0), first.decided()); }) ==
               ADM_E_INVALID_COST &&
           first.calls == 1 && queue.size() == 0,
       "misuse throws, and answers nothing");
    ok(!queue.cancel(1) && !queue.cancel(0), "no such ticket");
}

static void later()
{
    Late late(3);
    admit::Queue queue(late.gate);
    Answer answer, end;

    std::uint64_t ticket = queue.admit(admit::Request(), answer.decided());
    ok(ticket != 0 && answer.calls == 0 && queue.size() == 1, "later: a ticket, no answer yet");
    ok(queue.deadline_ns() != UINT64_MAX && queue.wait_ms() >= 0, "there is a time to look again");
    admit::Queue moved = std::move(queue);
    ok(finish(moved) && answer.calls == 1 && answer.allowed && answer.lease,
       "the answer comes, also after the queue moved");
    (void)moved.renew(answer.lease, end.ended());
    ok(finish(moved) && end.outcome == ADM_OUTCOME_RENEWED, "renewed, later");
    (void)moved.settle(answer.lease, { admit::amount(ADM_UNIT_IMAGES, 1) }, false, end.ended());
    ok(finish(moved) && end.outcome == ADM_OUTCOME_SETTLED, "settled, later");
    (void)moved.divert(answer.lease, end.ended());
    ok(finish(moved) && end.outcome == ADM_OUTCOME_DIVERTED && !answer.lease, "diverted, later");
    (void)moved.admit(admit::Request(), answer.decided());
    ok(finish(moved) && answer.allowed, "a diverted lease holds nothing");
    ok(moved.release(answer.lease, ADM_RESULT_OK, end.ended()) != 0 && !answer.lease,
       "a started release owns the lease");
    ok(finish(moved) && end.outcome == ADM_OUTCOME_RELEASED && end.calls == 4, "released, later");
    admit::Queue other(late.gate);
    other = std::move(moved);
    (void)other.admit(admit::Request(), answer.decided());
    ok(finish(other) && answer.calls == 3, "an assigned queue works");
}

static void cancelled()
{
    Late late(3);
    admit::Queue queue(late.gate);
    Answer gone, next;
    auto alive = std::make_shared<int>(0);

    std::uint64_t ticket =
        queue.admit(admit::Request(), [&, alive](adm_status, admit::Decision) { gone.calls++; });
    ok(alive.use_count() == 2 && queue.cancel(ticket) && alive.use_count() == 1 &&
           queue.size() == 0,
       "a cancelled ticket lets its function go");
    ok(!queue.cancel(ticket), "once");
    for (int i = 0; i < 20; i++)
        (void)queue.run();
    (void)queue.admit(admit::Request(), next.decided());
    ok(finish(queue) && gone.calls == 0 && next.allowed, "not called, and nothing stays held");
    {
        admit::Queue short_lived(late.gate);
        (void)short_lived.admit(admit::Request(),
                                [&, alive](adm_status, admit::Decision) { gone.calls++; });
    }
    ok(alive.use_count() == 1 && gone.calls == 0, "a queue that goes cancels what is open");
}

static void too_late()
{
    Late late(1000); /* polls, of which there will be fewer */
    admit::Queue queue(late.gate);
    Answer answer;

    (void)queue.admit(admit::Request().deadline(std::chrono::milliseconds(1)), answer.decided());
    adm_fake_clock_advance(&late.time, 2 * ADM_MILLISECOND);
    ok(finish(queue) && answer.status == ADM_OK && !answer.allowed &&
           answer.reason == ADM_REASON_STATE_UNAVAILABLE && !answer.lease,
       "no answer in time is a denial");
}

static void functions()
{
    Late late(2);
    admit::Queue queue(late.gate);
    Answer answer, second;
    bool thrown = false;

    (void)queue.admit(admit::Request(), [](adm_status, admit::Decision) { throw 1; });
    for (int i = 0; i < 100 && !thrown; i++) {
        try {
            (void)queue.run();
        } catch (int) {
            thrown = true;
        }
    }
    ok(thrown && queue.size() == 0, "an exception leaves through run(), its ticket is done");
    (void)queue.admit(admit::Request(), [&](adm_status, admit::Decision decision) {
        answer.lease = decision.lease();
        (void)queue.release(answer.lease, ADM_RESULT_OK, [&](adm_status, std::uint32_t) {
            (void)queue.admit(admit::Request(), second.decided());
        });
    });
    ok(finish(queue) && second.allowed, "a function may start the next call");
}

/* ---- what the functions hold ----------------------------------------------------------------- */

static_assert(!std::is_copy_constructible_v<admit::Queue::OnDecision> &&
              std::is_nothrow_move_constructible_v<admit::Queue::OnDecision> &&
              std::is_nothrow_move_assignable_v<admit::Queue::OnDecision>);
static_assert(!std::is_constructible_v<admit::Queue::OnDecision, int> &&
              !std::is_constructible_v<admit::Queue::OnDecision, void (*)(adm_status)> &&
              !std::is_constructible_v<admit::Queue::OnOutcome, admit::Queue::OnDecision>);

/* Counts how many of it there are, and fills so many bytes more. */
template <std::size_t bytes> class Counted {
public:
    explicit Counted(int &alive) noexcept : alive_(&alive) { ++*alive_; }
    Counted(Counted &&other) noexcept : alive_(other.alive_), filler_(other.filler_) { ++*alive_; }
    Counted &operator=(Counted &&) = delete;
    ~Counted() { --*alive_; }
    void operator()(adm_status, std::uint32_t) { filler_[0]++; }

private:
    int *alive_;
    std::array<unsigned char, bytes> filler_{};
};

static unsigned plain_calls;
static void plain_function(adm_status, std::uint32_t)
{
    plain_calls++;
}

template <std::size_t bytes> static bool goes_once()
{
    int alive = 0;
    bool right = true;
    {
        admit::Queue::OnOutcome done = Counted<bytes>(alive);
        right = right && alive == 1 && done;
        admit::Queue::OnOutcome moved = std::move(done);
        right = right && alive == 1 && moved && !done;
        moved(ADM_OK, 0);
        admit::Queue::OnOutcome &same = moved;
        moved = std::move(same);
        right = right && alive == 1 && moved;
        done = std::move(moved);
        right = right && alive == 1 && done && !moved;
        done = Counted<bytes>(alive);
        right = right && alive == 1;
        done = nullptr;
        right = right && alive == 0 && !done;
        done = Counted<bytes>(alive);
    }
    return right && alive == 0;
}

static void held()
{
    Late late(2);
    admit::Queue queue(late.gate);
    Answer answer, end;
    int got = 0, more = 0;

    (void)queue.admit(admit::Request(), [&got, answer = &answer, own = std::make_unique<int>(7)](
                                            adm_status, admit::Decision decision) mutable {
        got = *own;
        own.reset();
        answer->lease = decision.lease();
    });
    ok(finish(queue) && got == 7 && answer.lease, "a function may hold what only moves");
    std::array<std::uint64_t, 32> large{};
    large[31] = 9;
    (void)queue.release(answer.lease, ADM_RESULT_OK,
                        [&got, large, own = std::make_unique<int>(1)](adm_status, std::uint32_t) {
                            got = *own + int(large[31]);
                        });
    ok(finish(queue) && got == 10, "also when it is large");
    ok(goes_once<1>() && goes_once<500>(), "what it holds goes once, wherever it moves");
    std::function<void(adm_status, std::uint32_t)> copied = [&more](adm_status, std::uint32_t) {
        more++;
    };
    (void)queue.admit(admit::Request(), answer.decided());
    (void)finish(queue);
    (void)queue.renew(answer.lease, copied);
    (void)queue.renew(answer.lease, copied);
    (void)queue.renew(answer.lease, plain_function);
    ok(finish(queue) && more == 2 && plain_calls == 1, "functions of every kind");
    (void)queue.renew(answer.lease, nullptr);
    (void)queue.renew(answer.lease, decltype(copied)());
    (void)queue.renew(answer.lease, static_cast<void (*)(adm_status, std::uint32_t)>(nullptr));
    ok(queue.size() == 3 && finish(queue), "an empty one is nobody");
}

/* Looks at the queue when it goes. */
class Looks {
public:
    Looks(admit::Queue &queue, std::uint64_t other) noexcept : queue_(&queue), other_(other) {}
    Looks(Looks &&other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), other_(other.other_)
    {
    }
    Looks &operator=(Looks &&) = delete;
    ~Looks()
    {
        if (queue_ != nullptr)
            (void)queue_->cancel(other_);
    }
    void operator()(adm_status, const admit::Decision &) {}

private:
    admit::Queue *queue_;
    std::uint64_t other_;
};

static void going()
{
    Late late(1000);
    admit::Queue queue(late.gate);
    Answer none;

    std::uint64_t first = queue.admit(admit::Request(), none.decided());
    std::uint64_t second = queue.admit(admit::Request(), Looks(queue, first));
    ok(queue.size() == 2 && queue.cancel(second) && queue.size() == 0,
       "what a cancelled function held may cancel another");
    first = queue.admit(admit::Request(), none.decided());
    (void)queue.admit(admit::Request(), Looks(queue, first));
    queue = admit::Queue(late.gate);
    ok(queue.size() == 0 && queue.fd() >= 0 && none.calls == 0,
       "and so in a queue that is replaced");
}

/* Of two gates that know nothing of each other's leases. */
static void other_gate()
{
    admit::Gate gate(admit::Policy::parse(one_at_a_time));
    admit::Gate other(admit::Policy::parse(one_at_a_time));
    admit::Queue queue(gate);
    admit::Lease lease = other.admit({}).lease();
    Answer end;
    const adm_status bad = ADM_E_INVALID_ARGUMENT;

    ok(status_of([&] { (void)queue.release(lease, ADM_RESULT_OK, end.ended()); }) == bad &&
           status_of([&] { (void)queue.divert(lease, end.ended()); }) == bad &&
           status_of([&] { (void)queue.renew(lease, end.ended()); }) == bad &&
           status_of([&] { (void)queue.settle(lease, {}, true, end.ended()); }) == bad &&
           end.calls == 0 && lease && queue.size() == 0,
       "a lease of another gate is refused, and still held");
    admit::Lease empty;
    ok(queue.release(empty, ADM_RESULT_OK, end.ended()) == 0 && end.outcome == ADM_OUTCOME_UNKNOWN,
       "an empty lease is unknown");
    admit::Queue moved = std::move(queue);
    ok(status_of([&] { (void)queue.admit({}, end.ended_by_decision()); }) == bad &&
           queue.run() == 0 && !queue.cancel(1) && queue.fd() < 0 && queue.wait_ms() == -1,
       "a queue that was moved from");
}

static void no_memory()
{
    Late late(2);
    admit::Queue queue(late.gate);
    Answer answer;

    unsigned failures = survive([&] { (void)queue.admit(admit::Request(), answer.decided()); });
    ok(failures > 0 && queue.size() == 1 && finish(queue) && answer.calls == 1 && answer.allowed,
       "a call without memory has started nothing");
    failures = survive([&] { (void)queue.release(answer.lease, ADM_RESULT_OK, answer.ended()); });
    ok(failures > 0 && finish(queue) && answer.outcome == ADM_OUTCOME_RELEASED,
       "nor has a release; the lease is held as before");
}

void queue_tests()
{
    at_once();
    later();
    cancelled();
    too_late();
    functions();
    held();
    going();
    other_gate();
    no_memory();
}
