/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops in C++: the calls of <admit/admit.hpp> without waiting. One queue per loop, from one
 * thread at a time. Add fd() to the loop; when it is readable, or wait_ms() has passed, call run().
 *
 * Caveats
 *  answers     a function that is given is called exactly once, unless its ticket is cancelled or
 *              the queue goes: inside of the call that gives it when the backend answers at once,
 *              else inside of run(). It may call the gate and the queue, but not destroy the queue.
 *              It may throw: the exception leaves through the call it runs in, its ticket is done,
 *              and other answers wait for the next run().
 *  lifetime    the gate outlives the queue. Tickets that are open when the queue goes are cancelled.
 *  allocation  each call that is not answered at once keeps a record until it is.
 */
#ifndef ADMIT_QUEUE_HPP
#define ADMIT_QUEUE_HPP

#include <admit/admit.hpp>

#include <map>

namespace admit {

class Queue {
public:
    /* A status that is not ADM_OK: there is no decision, and this one is a denial. */
    using OnDecision = std::function<void(adm_status, Decision)>;
    using OnOutcome = std::function<void(adm_status, std::uint32_t)>; /* ADM_OUTCOME_* */

    explicit Queue(Gate &gate) : gate_(gate.get()) { check(adm_queue_open(gate_, &queue_)); }
    Queue(Queue &&other) noexcept
        : asked_(std::move(other.asked_)), started_(std::move(other.started_)), gate_(other.gate_),
          queue_(std::exchange(other.queue_, nullptr))
    {
    }
    Queue &operator=(Queue &&other) noexcept
    {
        if (this != &other) {
            adm_queue_close(std::exchange(queue_, std::exchange(other.queue_, nullptr)));
            gate_ = other.gate_;
            asked_ = std::move(other.asked_);
            started_ = std::move(other.started_);
        }
        return *this;
    }
    /* Before the records go: open tickets write into them. */
    ~Queue() { adm_queue_close(queue_); }

    /* Readable when run() has something to do. Never read or close it. */
    int fd() const noexcept { return adm_queue_fd(queue_); }
    /* The latest monotonic time to call run() all the same; UINT64_MAX: no need. */
    std::uint64_t deadline_ns() const noexcept { return adm_queue_deadline(queue_); }
    /* The same for poll(2) and epoll_wait(2), for a gate on the system's clock; -1: no need. */
    int wait_ms() const noexcept
    {
        using namespace std::chrono;
        constexpr std::uint64_t longest = 60000; /* looking once in a minute costs nothing */
        std::uint64_t deadline = deadline_ns();
        auto now = static_cast<std::uint64_t>(
            duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());

        if (deadline == UINT64_MAX)
            return -1;
        if (deadline <= now)
            return 0;
        std::uint64_t ms = (deadline - now - 1) / ADM_MILLISECOND + 1; /* never too early */
        return static_cast<int>(ms < longest ? ms : longest);
    }

    /* All answer the ticket; 0: answered already. When they throw an Error, nothing was started. */
    std::uint64_t admit(const adm_request &request, OnDecision done)
    {
        auto node = blank(asked_);
        Asked &asked = node.mapped();
        std::uint64_t ticket = 0;

        asked.done = std::move(done);
        check(adm_admit_start(gate_, queue_, &request, &asked.decision.raw_, nullptr, &ticket));
        if (ticket != 0)
            keep(asked_, std::move(node), ticket);
        else
            answer(asked, ADM_OK);
        return ticket;
    }
    std::uint64_t admit(const Request &request, OnDecision done)
    {
        return admit(request.raw(), std::move(done));
    }
    /* From then on the lease has nothing to give back. */
    std::uint64_t release(Lease &lease, std::uint32_t result = ADM_RESULT_OK, OnOutcome done = {})
    {
        return end(lease, std::move(done), [&](std::uint32_t *outcome, std::uint64_t *ticket) {
            return adm_release_start(gate_, queue_, lease.id(), result, nullptr, outcome, ticket);
        });
    }
    std::uint64_t divert(Lease &lease, OnOutcome done = {})
    {
        return end(lease, std::move(done), [&](std::uint32_t *outcome, std::uint64_t *ticket) {
            return adm_divert_start(gate_, queue_, lease.id(), nullptr, outcome, ticket);
        });
    }
    std::uint64_t renew(const Lease &lease, OnOutcome done)
    {
        return start(std::move(done), [&](std::uint32_t *outcome, std::uint64_t *ticket) {
            return adm_renew_start(gate_, queue_, lease.id(), nullptr, outcome, ticket);
        });
    }
    /* Totals are read during the call only. */
    std::uint64_t settle(const Lease &lease, const std::vector<adm_amount> &totals, bool last,
                         OnOutcome done = {})
    {
        return start(std::move(done), [&](std::uint32_t *outcome, std::uint64_t *ticket) {
            return adm_settle_start(gate_, queue_, lease.id(), totals.data(), totals.size(), last,
                                    nullptr, outcome, ticket);
        });
    }

    /* Gives the answers that have come; how many. Never blocks. */
    std::size_t run()
    {
        adm_completion completion{};
        std::size_t count = 0;

        completion.size = sizeof completion;
        for (; adm_queue_next(queue_, &completion) != 0; completion.size = sizeof completion) {
            count++;
            /* Out of the map first: the function may start others, or throw. */
            if (auto asked = asked_.extract(completion.ticket))
                answer(asked.mapped(), completion.status);
            else if (auto started = started_.extract(completion.ticket))
                answer(started.mapped(), completion.status, completion.outcome);
        }
        return count;
    }
    /* true: its function will not be called; an admit that is granted all the same is given back,
     * the others are carried out. false: no such ticket, or run() is about to answer it. */
    bool cancel(std::uint64_t ticket)
    {
        if (adm_ticket_cancel(queue_, ticket) == 0)
            return false;
        (void)asked_.erase(ticket);
        (void)started_.erase(ticket);
        return true;
    }
    /* Tickets without an answer. */
    std::size_t size() const noexcept { return asked_.size() + started_.size(); }

private:
    struct Asked {
        Decision decision; /* written by the library until the ticket is done: must not move */
        OnDecision done;
    };
    template <class Record> using Records = std::map<std::uint64_t, Record>;

    /* A record before its ticket is known. Nodes keep their address in and out of the map, and
     * putting one in allocates nothing: after a start nothing can fail. */
    template <class Record> static typename Records<Record>::node_type blank(Records<Record> &map)
    {
        return map.extract(map.try_emplace(0).first);
    }
    template <class Record>
    static void keep(Records<Record> &map, typename Records<Record>::node_type node,
                     std::uint64_t ticket)
    {
        node.key() = ticket;
        (void)map.insert(std::move(node));
    }
    void answer(Asked &asked, adm_status status)
    {
        if (status == ADM_OK)
            asked.decision.attach(gate_);
        if (asked.done)
            asked.done(status, std::move(asked.decision));
    }
    static void answer(const OnOutcome &done, adm_status status, std::uint32_t outcome)
    {
        if (done)
            done(status, outcome);
    }
    template <class Start> std::uint64_t start(OnOutcome done, Start &&call, Lease *ended = nullptr)
    {
        auto node = blank(started_);
        std::uint32_t outcome = ADM_OUTCOME_UNKNOWN;
        std::uint64_t ticket = 0;

        node.mapped() = std::move(done);
        check(call(&outcome, &ticket));
        if (ended != nullptr)
            ended->held_ = false;
        if (ticket != 0)
            keep(started_, std::move(node), ticket);
        else
            answer(node.mapped(), ADM_OK, outcome);
        return ticket;
    }
    template <class Start> std::uint64_t end(Lease &lease, OnOutcome done, Start &&call)
    {
        return start(std::move(done), std::forward<Start>(call), &lease);
    }
    Records<Asked> asked_;
    Records<OnOutcome> started_;
    adm_gate *gate_;
    adm_queue *queue_ = nullptr;
};

} /* namespace admit */

#endif
