/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of lib/state/transaction.h and lib/state/transaction_help.h for the model checker
 * spin: every order of the steps of two or three threads. run.sh beside this file has the cases
 * that are explored, and the faults that are planted and have to be found.
 *
 * A taker takes words that are held together: each from 0 to 1, which is the limit. A giver takes
 * them and gives them back. A changer changes the guard to the next even value. A reader reads a
 * word once. What must be so:
 *
 *      When an attempt commits, the words are logically what it was made for, and so is the guard.
 *      A word that holds a value holds the logical one, whenever an attempt looks at it.
 *      Who is told that it has the words has them. Who gives back is not refused. Who is refused
 *      was so under the guard that it knows. Who is told that it changed the guard did.
 *      What a reader reads was the logical value at a moment while it read.
 *      No reference to an attempt is left when its owner goes on.
 *      Nobody stands still. In the end the words and the guard hold values: the right ones.
 *
 * Sections are named after the C functions that they are. Each atomic access of the C code is one
 * step: a load, a store, or a compare and swap (in d_step, with what the assertions need). Nothing
 * is joined. What is between them is local to the thread: nobody can notice it, and spin's partial
 * order reduction knows that. An owner's load of what only the owner writes is no step of its own.
 *
 * A function that is called from several places is a section that is jumped to, with the way back
 * in a variable. As an inline it would be copied to each use, and the C compiler would need minutes
 * for what spin writes.
 *
 * Not in it:
 *      Memory orders. Memory is sequentially consistent here: an order that is too weak is not
 *          found, nor is missing what only weak orders need (the second looks at the guard in
 *          admi_txn_finish_change and at the word in admi_txn_decide). The comments of
 *          transaction.h and docs/adr/0024 argue for the orders; the thread sanitizer and the
 *          stress tests try them.
 *      More than three threads, and three in longer stories than run.sh has.
 *      Words that change hands: admi_txn_still, ADMI_TXN_LOST, words that must stay. Attempts of
 *          different length, and their count. Claims that fail (here they begin again). Numbers
 *          that wrap around. Waiting before an abort, which only looks more often.
 *      Whether somebody always gets on: who goes round for ever is not found.
 *      That the C code does the same. It is for the reader to see, section by section; who changes
 *          the one changes the other.
 *
 *      TAKERS     threads that take and keep             GIVERS    threads that take and give back
 *      CHANGERS   threads that change the guard          READERS   threads that read a word once
 *      HELD       words held together, 1 or 2            TAKEN     1: they are held before; then
 *                                                                a giver only gives them back
 *      FAST       fast attempts before a hard one, <= 3  TAKE_FAST as FAST, of takers
 *      SHARED     1: all look for a context from the first one on, and so use each other's
 *      OTHERS     others take the word or give it back so many times, each time in one step: what
 *                 fast attempts do, in fewer states. Only with HELD=1 and without givers
 *      FAULT_*    a fault that is planted
 */
#ifndef TAKERS
#define TAKERS 0
#endif
#ifndef GIVERS
#define GIVERS 0
#endif
#ifndef READERS
#define READERS 0
#endif
#ifndef TAKEN
#define TAKEN 0
#endif
#ifndef CHANGERS
#define CHANGERS 0
#endif
#ifndef TAKE_FAST
#define TAKE_FAST FAST
#endif
#ifndef OTHERS
#define OTHERS 0
#endif
#ifndef SHARED
#define SHARED 0
#endif

/* Takers are the first processes, then givers, changers, readers. */
#define TAKER   0
#define GIVER   1
#define CHANGER 2
#define READER  3
#define ROLE                                                                                       \
    ((_pid >= TAKERS) + (_pid >= TAKERS + GIVERS) + (_pid >= TAKERS + GIVERS + CHANGERS))

#define FAST_HERE (ROLE == TAKER -> TAKE_FAST : FAST)

#define CONTEXTS    (TAKERS + GIVERS + CHANGERS)
#define THREADS     (CONTEXTS + READERS)
#define GUARD       0
#define GUARD_BEGIN 2 /* no value that a word can have */
#define WORDS       (1 + HELD) /* the guard, and those that are held */

#if THREADS > 3 || HELD > 2 || FAST > 3 || TAKE_FAST > 3
#error more than its variables can hold
#endif
#if OTHERS && (HELD > 1 || GIVERS)
#error others would take from givers, or tear words apart
#endif

/* ---- words ---- */

/* value: 4 times it; reference: attempt | context 2 | entry 2 | 1; conditional: swap | context 2 |
 * 0 | 2. */
#define IS_VALUE(w)        ((w) % 4 == 0)
#define IS_REFERENCE(w)    ((w) % 4 == 1)
#define IS_CONDITIONAL(w)  ((w) % 4 == 2)
#define VALUE(w)           ((w) / 4)
#define WORD(value)        ((value)*4)
#define NUMBER(w)          ((w) / 64)
#define CONTEXT(w)         (((w) / 16) % 4)
#define ENTRY(w)           (((w) / 4) % 4)
#define REFERENCE(a, c, e) ((a)*64 + (c)*16 + (e)*4 + 1)
#define CONDITIONAL(n, c)  ((n)*64 + (c)*16 + 2)

/* status: attempt | hard 1 | state 2 */
#define FREE         0
#define ACTIVE       1
#define COMMITTED    2
#define ABORTED      3
#define HARD         4
#define STATUS(a, s) ((a)*8 + (s))
#define ATTEMPT(s)   ((s) / 8)
#define STATE(s)     ((s) % 4)
#define IS_HARD(s)   (((s) / 4) % 2)
#define TO(s, state) ((s)-STATE(s) + (state))

/* How an attempt ends. */
#define DONE    0
#define REFUSED 1
#define STALE   2
#define AGAIN   3

/* ---- shared memory ---- */

/* WORD() of GUARD_BEGIN and of TAKEN: only plain numbers may stand here. */
#if TAKEN
#define TAKEN_WORD 4
#else
#define TAKEN_WORD 0
#endif
#if HELD == 2
short word[WORDS] = { 8, TAKEN_WORD, TAKEN_WORD };
#else
short word[WORDS] = { 8, TAKEN_WORD };
#endif
short status[CONTEXTS];
byte e_word[CONTEXTS * WORDS], e_from[CONTEXTS * WORDS], e_to[CONTEXTS * WORDS];
short s_number[CONTEXTS], s_status[CONTEXTS], s_to[CONTEXTS];
byte s_word[CONTEXTS], s_context[CONTEXTS], s_from[CONTEXTS];

#define E(context, entry) ((context)*WORDS + (entry))

/* ---- what the assertions know, and no thread ---- */

byte turns = TAKEN;       /* commits: each takes the words or gives them back */
byte guard = GUARD_BEGIN; /* what attempts that commit are made for: the last even value */
byte having = TAKEN;      /* threads that were told that they have the words */
byte changes;             /* threads that were told that they changed the guard */
byte ended;

/* The logical value of every word that is held. */
#define HELD_NOW (turns % 2)

/* An attempt commits. */
#define COMMITS(made_for, to)                                                                      \
    assert((made_for) == guard);                                                                   \
    assert(HELD_NOW == 1 - (to));                                                                  \
    turns++

/* An attempt has read a word. */
#define LOOKS(w)                                                                                   \
    assert(!IS_VALUE(w) || VALUE(w) == HELD_NOW);                                                  \
    under = guard

#define IS_OWN(w, context) (IS_REFERENCE(w) && CONTEXT(w) == (context))

inline owns_nothing(context)
{
    assert(!IS_OWN(word[0], context));
    assert(!IS_OWN(word[1], context));
#if HELD == 2
    assert(!IS_OWN(word[2], context))
#endif
}

/* The last one looks at what is left. */
inline end_of_one()
{
    d_step {
        ended++;
        if
        :: ended == THREADS + (OTHERS > 0) ->
            assert(HELD_NOW == having);
            assert(word[1] == WORD(HELD_NOW));
#if HELD == 2
            assert(word[2] == WORD(HELD_NOW));
#endif
            assert(guard == GUARD_BEGIN + 2 * changes && (changes > 0 || CHANGERS == 0));
            assert(word[GUARD] == WORD(guard))
        :: else -> skip
        fi
    }
}

/* A compare and swap. */
#define SWAP(place, expected, desired)                                                             \
    if                                                                                             \
    :: place == (expected) -> place = (desired)                                                    \
    :: else -> skip                                                                                \
    fi

/* admi_txn_decide */
inline decide(value)
{
    d_word = s_word[CONTEXT(value)];
    d_context = s_context[CONTEXT(value)];
    d_status = s_status[CONTEXT(value)];
    d_from = s_from[CONTEXT(value)];
    d_to = s_to[CONTEXT(value)];
    d_goes_on = (s_number[CONTEXT(value)] == NUMBER(value));
    if
    :: d_goes_on ->
        d_goes_on = (word[d_word] == (value));
        if
        :: d_goes_on ->
#ifdef FAULT_NO_STATUS
            d_status = d_to;
#else
            d_status = (status[d_context] == d_status -> d_to : d_from);
#endif
            d_step { SWAP(word[d_word], value, d_status) }
        :: else -> skip
        fi
    :: else -> skip
    fi;
    d_step {
        d_word = 0;
        d_context = 0;
        d_status = 0;
        d_from = 0;
        d_to = 0;
        d_goes_on = false
    }
}

/* admi_txn_clear */
inline clear(at, value, its_status)
{
    if
    :: STATE(its_status) == COMMITTED -> c_left = e_to[E(CONTEXT(value), ENTRY(value))]
    :: else -> c_left = e_from[E(CONTEXT(value), ENTRY(value))]
    fi;
    d_step {
        SWAP(word[at], value, c_left);
        c_left = 0
    }
}

/* admi_txn_finish_change */
inline finish_change(odd)
{
    d_goes_on = (word[GUARD] == WORD(odd));
    if
    :: d_goes_on ->
        i = 0;
#ifndef FAULT_NO_ABORT
        do
        :: i < CONTEXTS ->
            seen = status[i];
            if
            :: STATE(seen) == ACTIVE && !IS_HARD(seen) ->
                d_step { SWAP(status[i], seen, TO(seen, ABORTED)) }
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
#endif
        i = 0;
        d_step {
            if
            :: word[GUARD] == WORD(odd) ->
                word[GUARD] = WORD(odd + 1);
                guard = odd + 1
            :: else -> skip
            fi;
            seen = 0;
            d_goes_on = false
        }
    :: else -> skip
    fi
}

/* Where a section was jumped to from. */
#define FROM_ENTER   0
#define FROM_NOTE    1
#define FROM_HARD    2
#define FROM_CHANGE  3

#define FROM_RUN     0
#define FROM_FAST    1
#define FROM_NOTED   2

/* Small, since there are millions of states. */
active[THREADS] proctype thread()
{
    unsigned me : 2, want : 1 = 1, tries : 2, end : 2, in : 2, back : 2, guard_back : 2;
    byte guarded, under, value;
    short attempt, met;
    /* admi_txn_meet, admi_txn_help and below */
    bool helping;
    unsigned at : 2, first : 2, i : 2, h_word : 2;
    byte h_from, c_left;
    short at_status, first_status, h_met, seen;
    /* admi_txn_decide */
    unsigned d_word : 2, d_context : 2;
    byte d_from;
    short d_status, d_to;
    bool d_goes_on;

    if
    :: ROLE == READER ->
        h_word = 1;
        goto read
    :: ROLE == GIVER && TAKEN == 1 -> want = 0
    :: else -> skip
    fi;

claim: /* admi_txn_claim */
#if SHARED
    me = 0;
#else
    me = _pid;
#endif
    do
    :: true ->
        met = status[me];
        if
        :: STATE(met) == FREE ->
            d_step {
                if
                :: status[me] == met -> status[me] = STATUS(ATTEMPT(met) + 1, ACTIVE)
                :: else -> met = ACTIVE
                fi
            }
        :: else -> skip
        fi;
        if
        :: STATE(met) == FREE -> break
        :: else -> me = (me + 1) % CONTEXTS
        fi
    od;
    met = 0;

begin:
    guard_back = FROM_RUN;
    goto read_guard;
begun:
    guarded = value;
    if
    :: ROLE == CHANGER -> goto change
    :: else -> skip
    fi;

running: /* admi_txn_run */
    attempt = ATTEMPT(status[me]);
    if
    :: tries >= FAST_HERE -> goto hard
    :: else -> skip
    fi;
    met = status[me];
    if
    :: STATE(met) != ACTIVE ->
#ifndef FAULT_ONE_NUMBER
        attempt++;
#endif
        d_step {
            status[me] = STATUS(attempt, ACTIVE);
            owns_nothing(me)
        }
    :: else -> skip
    fi;

    /* admi_txn_fast, admi_txn_enter_all */
    in = 0;
    end = DONE;
    do
    :: in == HELD -> break
    :: else ->
enter: /* admi_txn_enter */
        d_step {
            met = word[1 + in];
            LOOKS(met)
        };
        if
        :: !IS_VALUE(met) ->
            back = FROM_ENTER;
            h_word = 1 + in;
            h_met = met;
            goto meet
        :: IS_VALUE(met) && VALUE(met) == want ->
            end = REFUSED;
            break
        :: else ->
            e_word[E(me, in)] = 1 + in;
            e_from[E(me, in)] = met;
            e_to[E(me, in)] = WORD(want);
            d_step {
                if
                :: word[1 + in] == met ->
                    word[1 + in] = REFERENCE(attempt, me, in);
                    in++
                :: else -> skip
                fi
            }
        fi;
        goto entered;
entering: /* back from admi_txn_settle */
        met = status[me];
        if
        :: met != STATUS(attempt, ACTIVE) ->
            end = AGAIN;
            goto commit
        :: else -> skip
        fi;
entered:
        skip
    od;
    /* admi_txn_is_guarded */
#ifdef FAULT_NO_GUARD
    goto commit;
#endif
#ifdef FAULT_REFUSED_ANYHOW
    if
    :: end == REFUSED -> goto commit
    :: else -> skip
    fi;
#endif
    met = word[GUARD];
    if
    :: met != WORD(guarded) ->
        guard_back = FROM_FAST;
        goto read_guard
    :: else -> skip
    fi;
    goto commit;
guard_read:
    if
    :: value != guarded -> end = STALE
    :: else -> skip
    fi;
commit:
    met = 0;
    d_step {
        if
        :: status[me] == STATUS(attempt, ACTIVE) ->
            if
            :: end == DONE ->
                status[me] = STATUS(attempt, COMMITTED);
                COMMITS(guarded, want)
            :: else -> status[me] = STATUS(attempt, ABORTED)
            fi
#ifndef FAULT_ABORTED_COMMITS
        :: status[me] != STATUS(attempt, ACTIVE) && end == DONE -> end = AGAIN
#endif
        :: else -> skip
        fi
    };
    /* admi_txn_take_out */
#ifdef FAULT_NO_TAKE_OUT
    in = (end == DONE -> 0 : in);
#endif
#ifdef FAULT_NEW_VALUES
#define OWN_VALUE e_to[E(me, in)]
#else
#define OWN_VALUE (end == DONE -> e_to[E(me, in)] : e_from[E(me, in)])
#endif
    do
    :: in > 0 ->
        in--;
        d_step { SWAP(word[1 + in], REFERENCE(attempt, me, in), OWN_VALUE) }
    :: else -> break
    od;
    goto ran;

hard: /* admi_txn_hard */
    end = DONE;
#ifdef FAULT_OLD_NOTES
    attempt--;
#endif
    d_step {
        status[me] = STATUS(attempt + 1, ABORTED);
        owns_nothing(me)
    };
    e_word[E(me, 0)] = GUARD; /* admi_txn_note_guard */
    e_from[E(me, 0)] = WORD(guarded);
    e_to[E(me, 0)] = WORD(guarded);
    in = 1;
    do
    :: in == WORDS -> break
    :: else ->
note: /* admi_txn_note */
        met = 0;
        d_step {
            met = word[in];
            LOOKS(met)
        };
        if
        :: !IS_VALUE(met) ->
            back = FROM_NOTE;
            h_word = in;
            h_met = met;
            goto meet
        :: IS_VALUE(met) && VALUE(met) == want ->
            end = REFUSED;
            break
        :: else ->
            e_word[E(me, in)] = in;
            e_from[E(me, in)] = met;
            e_to[E(me, in)] = WORD(want);
            in++
        fi
    od;
#ifdef FAULT_HARD_REFUSED_ANYHOW
    if
    :: end == REFUSED -> goto noted
    :: else -> skip
    fi;
#endif
    met = word[GUARD]; /* admi_txn_is_guarded */
    if
    :: met != WORD(guarded) ->
        guard_back = FROM_NOTED;
        goto read_guard
    :: else -> skip
    fi;
    goto noted;
noted_guard_read:
    if
    :: value != guarded -> end = STALE
    :: else -> skip
    fi;
noted:
    in = 0;
    met = 0;
    if
    :: end != DONE -> goto ran
    :: else -> skip
    fi;
    status[me] = STATUS(attempt + 2, HARD + ACTIVE);
    back = FROM_HARD;
    at = me;
    at_status = STATUS(attempt + 2, HARD + ACTIVE);
    goto help;
helped:
    end = (STATE(status[me]) == COMMITTED -> DONE : AGAIN);

ran: /* the end of admi_txn_run, and its callers */
    attempt = 0;
    if
    :: end == AGAIN ->
        tries = (tries < FAST_HERE -> tries + 1 : tries);
        goto running
    :: else -> tries = 0
    fi;
    if
    :: end == STALE -> goto begin
    :: else -> skip
    fi;
    d_step {
        if
        :: end == DONE -> having = having + 2 * want - 1
        :: else -> assert(want == 1 && under == guarded)
        fi;
        under = 0;
        guarded = 0
    };

unclaim: /* admi_txn_unclaim */
    attempt = ATTEMPT(status[me]);
    d_step {
        status[me] = STATUS(attempt, FREE);
        owns_nothing(me);
        attempt = 0
    };
    if
    :: ROLE == GIVER && want == 1 && end == DONE ->
        want = 0;
        goto claim
    :: else -> goto over
    fi;

change: /* admi_txn_change, from what was read */
    met = word[GUARD];
    if
    :: !IS_VALUE(met) ->
        back = FROM_CHANGE;
        h_word = GUARD;
        h_met = met;
        goto meet
    :: IS_VALUE(met) && met != WORD(guarded) ->
        if
        :: met == WORD(guarded + 1) -> finish_change(guarded + 1)
        :: else -> skip
        fi
    :: else ->
        d_step {
            if
            :: word[GUARD] == met -> word[GUARD] = WORD(guarded + 1)
            :: else -> met = WORD(guarded + 1)
            fi
        };
        if
        :: met != WORD(guarded) -> goto change
        :: else -> skip
        fi;
        finish_change(guarded + 1);
        changes++
    fi;
    met = 0;
    guarded = 0;
    goto unclaim;

read_guard: /* admi_txn_read_guard */
    h_word = GUARD;
read: /* admi_txn_read */
    met = 0;
    d_step {
        met = word[h_word];
        if /* the word has this value at this moment, if it is read once more it is a later one */
        :: ROLE == READER -> under = turns
        :: else -> skip
        fi
    };
    if
    :: IS_CONDITIONAL(met) ->
        value = s_from[CONTEXT(met)];
#ifdef FAULT_READS_OTHER_SWAP
        d_goes_on = true
#else
        d_goes_on = (s_number[CONTEXT(met)] == NUMBER(met))
#endif
    :: IS_REFERENCE(met) ->
        c_left = e_from[E(CONTEXT(met), ENTRY(met))];
        value = e_to[E(CONTEXT(met), ENTRY(met))];
        d_step {
            seen = status[CONTEXT(met)];
#ifdef FAULT_READS_UNDECIDED
            value = (STATE(seen) != ABORTED -> value : c_left);
#else
            value = (STATE(seen) == COMMITTED -> value : c_left);
#endif
#if defined(FAULT_READS_FREE)
            d_goes_on = (ATTEMPT(seen) == NUMBER(met));
#elif defined(FAULT_READS_OTHER)
            d_goes_on = (STATE(seen) != FREE);
#else
            d_goes_on = (ATTEMPT(seen) == NUMBER(met) && STATE(seen) != FREE);
#endif
            c_left = 0;
            seen = 0
        }
    :: else ->
        value = met;
        d_goes_on = true
    fi;
    met = 0;
    if
    :: d_goes_on -> d_goes_on = false
    :: h_word == GUARD && !d_goes_on -> goto read_guard
    :: else -> goto read
    fi;
    value = VALUE(value);
    if
    :: h_word != GUARD -> /* the reader's word had this value at a moment since it was met */
        assert(value <= 1 && (turns != under || value == HELD_NOW));
        under = 0;
        goto over
    :: else -> skip
    fi;
    if
    :: value % 2 == 1 ->
        finish_change(value);
        value = 0;
        goto read_guard
    :: else -> skip
    fi;
    assert(value >= GUARD_BEGIN && value <= guard);
    if
    :: guard_back == FROM_RUN -> goto begun
    :: guard_back == FROM_FAST -> goto guard_read
    :: guard_back == FROM_NOTED -> goto noted_guard_read
    fi;

meet: /* admi_txn_meet; not helping: admi_txn_settle */
    if
    :: IS_CONDITIONAL(h_met) -> decide(h_met)
    :: else ->
        seen = status[CONTEXT(h_met)];
        if
        :: ATTEMPT(seen) == NUMBER(h_met) && STATE(seen) == ACTIVE ->
            if
            :: IS_HARD(seen) -> goto blocked
            :: else -> skip
            fi;
            d_step {
                if
                :: status[CONTEXT(h_met)] == seen ->
                    status[CONTEXT(h_met)] = TO(seen, ABORTED);
                    seen = TO(seen, ABORTED)
                :: else -> seen = status[CONTEXT(h_met)]
                fi
            }
        :: else -> skip
        fi;
        if
        :: ATTEMPT(seen) == NUMBER(h_met) && STATE(seen) != FREE -> clear(h_word, h_met, seen)
        :: else -> skip
        fi
    fi;
    seen = 0;
    h_met = 0;
    if
    :: helping -> goto install_word
    :: else -> goto settled
    fi;
blocked:
    at = CONTEXT(h_met);
    at_status = seen;
    seen = 0;
    h_met = 0;
    if
    :: helping -> goto install
    :: else -> skip
    fi;

help: /* admi_txn_help */
    helping = true;
    first = at;
    first_status = at_status;
install: /* admi_txn_install */
    i = 0;
install_entry:
    h_word = e_word[E(at, i)];
    h_from = e_from[E(at, i)];
install_word:
    seen = status[at];
    if
    :: seen != at_status -> goto clean
    :: else -> skip
    fi;
    h_met = word[h_word];
    if
    :: h_met == REFERENCE(ATTEMPT(at_status), at, i) ->
        i++;
        if
        :: i < WORDS -> goto install_entry
        :: else -> goto installed
        fi
    :: h_met != REFERENCE(ATTEMPT(at_status), at, i) && !IS_VALUE(h_met) -> goto meet
    :: IS_VALUE(h_met) && h_met != h_from ->
#ifdef FAULT_BLIND_HELPER
        i++;
        if
        :: i < WORDS -> goto install_entry
        :: else -> goto installed
        fi
#else
        d_step { SWAP(status[at], at_status, TO(at_status, ABORTED)) };
        goto clean
#endif
    :: else -> skip
    fi;
    /* The number first: whoever reads on finds another one. */
    s_number[me] = s_number[me] + 1;
    s_word[me] = h_word;
    s_context[me] = at;
    s_status[me] = at_status;
    s_from[me] = h_from;
    s_to[me] = REFERENCE(ATTEMPT(at_status), at, i);
    d_step {
        if
        :: word[h_word] == h_from ->
            h_met = CONDITIONAL(s_number[me], me);
            word[h_word] = h_met
        :: else -> h_met = 0
        fi
    };
    if
    :: h_met != 0 -> decide(h_met)
    :: else -> skip
    fi;
    goto install_word;
installed:
    h_met = 0;
    d_step {
        if
        :: status[at] == at_status ->
            status[at] = TO(at_status, COMMITTED);
            COMMITS(VALUE(e_from[E(at, 0)]), VALUE(e_to[E(at, 1)]))
        :: else -> skip
        fi
    };
clean: /* admi_txn_clean */
    i = 0;
    h_from = 0;
    do
    :: i == WORDS -> break
    :: else ->
        h_word = e_word[E(at, i)];
clean_word:
        seen = status[at];
        if
        :: ATTEMPT(seen) != ATTEMPT(at_status) || STATE(seen) == FREE -> break
        :: else -> skip
        fi;
        h_met = word[h_word];
        if
#ifndef FAULT_NO_CLEAN
        :: h_met == REFERENCE(ATTEMPT(at_status), at, i) -> clear(h_word, h_met, seen)
#endif
#ifndef FAULT_LEFT
        :: IS_CONDITIONAL(h_met) ->
            decide(h_met);
            goto clean_word
#endif
        :: else -> skip
        fi;
        i++
    od;
    i = 0;
    h_word = 0;
    h_met = 0;
    seen = 0;
    if
    :: at != first || at_status != first_status ->
        at = first;
        at_status = first_status;
        goto install
    :: else -> skip
    fi;
    helping = false;
    at = 0;
    at_status = 0;
    first = 0;
    first_status = 0;
settled:
    h_word = 0;
    met = 0;
    if
    :: back == FROM_ENTER -> goto entering
    :: back == FROM_NOTE -> back = 0; goto note
    :: back == FROM_HARD -> back = 0; goto helped
    :: back == FROM_CHANGE -> back = 0; goto change
    fi;

over:
    met = 0;
    end_of_one()
}

#if OTHERS
active proctype others()
{
    byte n;

    do
    :: n < OTHERS ->
        d_step {
            IS_VALUE(word[1]) ->
            word[1] = WORD(1 - VALUE(word[1]));
            having = having + 2 * VALUE(word[1]) - 1;
            COMMITS(guard, VALUE(word[1]))
        };
        n++
    :: else -> break
    od;
    n = 0;
    end_of_one()
}
#endif
