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
 *              and other answers wait for the next run(). What it holds may be move-only.
 *  lifetime    the gate outlives the queue. Tickets that are open when the queue goes are cancelled.
 *  allocation  each call keeps a record until it is answered. A function of at most six pointers,
 *              which moves without throwing, is kept inside of it; a larger one beside it.
 */
#ifndef ADMIT_QUEUE_HPP
#define ADMIT_QUEUE_HPP

#include <admit/admit.hpp>

#include <map>
#include <new>
#include <type_traits>

namespace admit {

namespace detail {

template <class Function> struct MayBeEmpty : std::is_pointer<Function> {
};
template <class Signature> struct MayBeEmpty<std::function<Signature>> : std::true_type {
};

/* std::move_only_function of C++23, as far as a queue needs it; the same type in every standard, so
 * that parts of a program may differ in theirs. */
template <class... Args> class Callback {
public:
    Callback() noexcept = default;
    Callback(std::nullptr_t) noexcept {}
    template <class Given, class Function = std::decay_t<Given>,
              std::enable_if_t<!std::is_same_v<Function, Callback> &&
                                   std::is_constructible_v<Function, Given> &&
                                   std::is_invocable_v<Function &, Args...>,
                               int> = 0>
    Callback(Given &&given)
    {
        if constexpr (MayBeEmpty<std::remove_cv_t<std::remove_reference_t<Given>>>::value)
            if (!given)
                return;
        if constexpr (fits<Function>)
            ::new (place()) Function(std::forward<Given>(given));
        else
            ::new (place()) Boxed<Function>(std::make_unique<Function>(std::forward<Given>(given)));
        actions_ = &actions_of<Function>;
    }
    Callback(Callback &&other) noexcept { take(other); }
    Callback &operator=(Callback &&other) noexcept
    {
        Callback before(std::move(*this)); /* goes last: what it holds may look at us */

        take(this != &other ? other : before);
        return *this;
    }
    ~Callback() { drop(); }
    explicit operator bool() const noexcept { return actions_ != nullptr; }
    void operator()(Args... args) { actions_->call(place(), std::forward<Args>(args)...); }

private:
    static constexpr std::size_t room = 6 * sizeof(void *);
    template <class Function> using Boxed = std::unique_ptr<Function>;
    template <class Function>
    static constexpr bool fits = sizeof(Function) <= room &&
                                 alignof(Function) <= alignof(std::max_align_t) &&
                                 std::is_nothrow_move_constructible_v<Function>;
    struct Actions {
        void (*call)(void *place, Args &&...args);
        void (*move)(void *from, void *to) noexcept; /* nothing is left at from */
        void (*drop)(void *place) noexcept;
    };
    template <class Held> static Held &at(void *place) noexcept
    {
        return *std::launder(static_cast<Held *>(place));
    }
    template <class Function> static void call(void *place, Args &&...args)
    {
        if constexpr (fits<Function>)
            (void)std::invoke(at<Function>(place), std::forward<Args>(args)...);
        else
            (void)std::invoke(*at<Boxed<Function>>(place), std::forward<Args>(args)...);
    }
    template <class Held> static void move(void *from, void *to) noexcept
    {
        ::new (to) Held(std::move(at<Held>(from)));
        at<Held>(from).~Held();
    }
    template <class Held> static void drop(void *place) noexcept { at<Held>(place).~Held(); }
    template <class Function>
    using Held = std::conditional_t<fits<Function>, Function, Boxed<Function>>;
    template <class Function>
    static constexpr Actions actions_of = { call<Function>, move<Held<Function>>,
                                            drop<Held<Function>> };

    void *place() noexcept { return room_; }
    void take(Callback &other) noexcept
    {
        actions_ = std::exchange(other.actions_, nullptr);
        if (actions_ != nullptr)
            actions_->move(other.place(), place());
    }
    void drop() noexcept
    {
        if (const Actions *actions = std::exchange(actions_, nullptr))
            actions->drop(place());
    }
    const Actions *actions_ = nullptr;
    alignas(std::max_align_t) unsigned char room_[room];
};

} /* namespace detail */

class Queue {
public:
    /* A status that is not ADM_OK: there is no decision, and this one is a denial. */
    using OnDecision = detail::Callback<adm_status, Decision>;
    using OnOutcome = detail::Callback<adm_status, std::uint32_t>; /* ADM_OUTCOME_* */

    explicit Queue(Gate &gate) : gate_(gate.get()) { check(adm_queue_open(gate_, &queue_)); }
    Queue(Queue &&other) noexcept
        : asked_(std::move(other.asked_)), started_(std::move(other.started_)), gate_(other.gate_),
          queue_(std::exchange(other.queue_, nullptr))
    {
    }
    Queue &operator=(Queue &&other) noexcept
    {
        Queue before(std::move(other)); /* what was here goes last: its functions may look */

        std::swap(asked_, before.asked_);
        std::swap(started_, before.started_);
        std::swap(gate_, before.gate_);
        std::swap(queue_, before.queue_);
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
    template <class Raw, detail::IfRequest<Raw> = 0>
    std::uint64_t admit(const Raw &request, OnDecision done)
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
    /* From then on the lease has nothing to give back. A lease of another gate throws, here and in
     * the calls below: only its own knows it. */
    std::uint64_t release(Lease &lease, std::uint32_t result = ADM_RESULT_OK, OnOutcome done = {})
    {
        return start(lease, &lease, std::move(done), [&](auto *outcome, auto *ticket) {
            return adm_release_start(gate_, queue_, lease.id(), result, nullptr, outcome, ticket);
        });
    }
    std::uint64_t divert(Lease &lease, OnOutcome done = {})
    {
        return start(lease, &lease, std::move(done), [&](auto *outcome, auto *ticket) {
            return adm_divert_start(gate_, queue_, lease.id(), nullptr, outcome, ticket);
        });
    }
    std::uint64_t renew(const Lease &lease, OnOutcome done)
    {
        return start(lease, nullptr, std::move(done), [&](auto *outcome, auto *ticket) {
            return adm_renew_start(gate_, queue_, lease.id(), nullptr, outcome, ticket);
        });
    }
    /* Totals are read during the call only. */
    std::uint64_t settle(const Lease &lease, const std::vector<adm_amount> &totals, bool last,
                         OnOutcome done = {})
    {
        return start(lease, nullptr, std::move(done), [&](auto *outcome, auto *ticket) {
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
        /* Out of the maps first: what the function holds may look at the queue when it goes. */
        auto asked = asked_.extract(ticket);
        auto started = started_.extract(ticket);
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
    static void answer(OnOutcome &done, adm_status status, std::uint32_t outcome)
    {
        if (done)
            done(status, outcome);
    }
    /* ended: the lease, if it has nothing to give back afterwards. */
    template <class Start>
    std::uint64_t start(const Lease &lease, Lease *ended, OnOutcome done, Start &&call)
    {
        if (lease.gate_ != nullptr && lease.gate_ != gate_)
            throw Error(ADM_E_INVALID_ARGUMENT);
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
    Records<Asked> asked_;
    Records<OnOutcome> started_;
    adm_gate *gate_;
    adm_queue *queue_ = nullptr;
};

} /* namespace admit */

#endif
