/* SPDX-License-Identifier: MIT
 * A model of a lock over three independent databases: it is held while two of them have its row.
 * lease.pml is about one database. `make model` checks both with spin.
 *
 * A transition is a d_step: one statement at one member, or one event. The comment above it names
 * the file of sql/postgres that it models. The rules
 *   grant    Each member that is free makes a row, and adds 1 to its counter. The token of the
 *            grant is the highest that one of a majority gave. Members below it are lifted, by the
 *            row of this request only. It is returned when a majority has the row at that token.
 *   late     A member that grants after the decision is lifted too, if the lease still lasts then.
 *   renew    It finds rows by owner and token. The client counts on the members that it found.
 *   top-up   A member that lacks the row of a holder is claimed, and lifted to the holder's token.
 *            It is claimed only if no live row is there, not even one of the same owner. It is
 *            lifted only if the lease of the holder still lasts when the claim is answered.
 *   undo     What a request or a top-up may have left is removed, unless it was renewed: a holder
 *            counts on it then. Equal counters give equal tokens, so a renewal finds such rows.
 *
 * Properties, each an assert
 *   Q1  No two grants have the same token.
 *   Q2  A grant that begins after another was returned has a higher token.
 *   Q3  Two clients never both hold the lock by their own clocks.
 *   Q4  A client does not hold the lock after a later grant was returned.
 *
 * What may happen, if the constant is 1
 *   LOSSES   The answer of a claim or of a lift is lost, or comes late. A claim that is sent again
 *            finds the row of its own request.
 *   LATE     A claim, a lift or a renewal is carried out after the decision, or after the release
 *            began.
 *   RENEWS_FIRST  A grant that an earlier attempt has made is renewed before it is returned.
 *   DEATHS   A client dies, and starts again with the same owner and without its memory.
 *   TOPS_UP  Client 1 has a keeper, which tops up by connections of its own. One top-up at a time.
 * A member that is away needs no constant: it does nothing. A pause, and a request that fails, may
 * come between any two transitions.
 *
 * Time. A lease may end at any moment. The client's lease on that member is over then, and not
 * earlier. With CLOCKS=0 nothing depends on leases: Q1 and Q2 need no clock.
 *
 * Bounds. TOKENS: the highest counter. CLIENTS: 2 or 3. By symmetry client 1 has the first grant,
 * and the members are numbered in the order of their first claims.
 *
 * Left out
 *   - five members, and members that an operator changes: break, raise, fold
 *   - sweep: a row whose lease has ended keeps no one out, not even its owner
 *   - a member that forgets, but for its mutant: src/quorum keeps it from voting
 *   - what lease.pml has of one database; statements that are carried out long after their session,
 *     but for a mutant: a retract has the token that it is about, so it finds no later row
 *   - several keepers, the queue, clocks that run at different rates
 *
 * With TRACE=1 it takes the way of one run of the simulation, whose events come in their order:
 * trace.sh. Events are what a member does, a grant that is told, and a death. All else may come in
 * between. */

/* The constants; see lease.pml.
 *   bounds    CLIENTS=2 TOKENS=3
 *   may be    LOSSES=0 LATE=0 DEATHS=0 TOPS_UP=0 RENEWS_FIRST=0 CLOCKS=1 TRACE=0
 *   start     AHEAD=0: so much higher is the first member's counter
 *   mutants   HIGHEST_WITHOUT_LIFT=0 MEMBER_FORGETS=0 TOP_UP_OVER_OWN_ROW=0 TOP_UP_WITHOUT_CHECK=0
 *             UNDOES_WHAT_WAS_RENEWED=0 RETRACTS_LATER_ROWS=0 ADOPTS_OLDER_ROWS=0
 *             WRITES_HIGHEST_PLUS_ONE=0: each member tells its counter, and takes any token
 *             TOP_UP_BY_COMPARISON=0: the counter is one higher than when it was read */

/* A keeper may take the lease to last if the client has released the lock meanwhile. */
#define STILL_LASTS(c) (!(phase[c] == HOLDING && token[c] == top_token[c]) || LASTS(c))
#define MAY_JOIN(c, m) (TOP_UP_WITHOUT_CHECK || \
    (TOP_UP_BY_COMPARISON -> counter[m] == top_seen[c] + 1 : STILL_LASTS(c)))
#define MAY_ADOPT(m) (owed[m] == REQUEST || (ADOPTS_OLDER_ROWS && owed[m] != NOTHING))
#define SEEN(m) (TOP_UP_BY_COMPARISON -> counter[m] : 0)
#define MAY_TOP_UP(c, m) (FREE(m) || (TOP_UP_OVER_OWN_ROW && owner[m] == c))
#define MAY_UNDO(m) (UNDOES_WHAT_WAS_RENEWED || !renewed[m])
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* The index of what client c knows of member m. */
#define AT(c, m) (3 * (c) + (m) - 4)

/* ---- the events of a run: the next one must be this */

#if TRACE
c_decl { \#include "trace.h"
};
short at;
#define NEXT(what, token) c_expr { is_next (now.at, what, PLink->me, PLink->m, token) }
#define TOLD(what, token) c_expr { is_next (now.at, what, PClient->me, 0, token) }
#define PASS at++
#else
#define NEXT(what, token) true
#define TOLD(what, token) true
#define PASS skip
#endif
#define IS_CLAIM NEXT(CLAIMS, now.counter[PLink->m] + 1)
#define IS_TOP_UP NEXT(TOPS_UP_WITH, now.counter[PLink->m] + 1)
#define IS_LIFT NEXT(LIFTS_TO, now.token[PLink->me])
#define IS_LATE_LIFT NEXT(LIFTS_TO, now.late_lift[3 * PLink->me + PLink->m - 4])
#define IS_TOP_UP_LIFT NEXT(LIFTS_TO, now.top_token[PLink->me])
#define IS_RENEWAL NEXT(RENEWS, now.row_token[PLink->m])
#define IS_REMOVAL NEXT(REMOVES, 0)
#define IS_GRANT TOLD(GRANTS, now.token[PClient->me])
#define IS_DEATH TOLD(KILLS, 0)
/* What changes nothing at the member is no event. */
#define IF(effect, event) (!(effect) || event)

/* ---- the members: 1 to 3 */

/* rowlock_tokens and rowlock_locks of each. Owner 0: there is no row. live: its lease has not run
 * out. topped: a top-up has made the row. renewed: it was renewed once. */
byte counter[4];
byte owner[4];
byte row_token[4];
bool live[4];
bool topped[4];
bool renewed[4];
/* The owner still has to remove this row: of an attempt of its request that failed, of an earlier
 * request, or of a grant. */
mtype = { NOTHING, REQUEST, OLDER, GRANT };
mtype owed[4];
bool forgot;

/* ---- the clients */

mtype = { ASKING, LIFTING, HOLDING };
mtype phase[4];
/* The token of the grant, or what it will be. */
byte token[4];
/* The token that the member gave to this request. 0: none that is known. */
byte got[9];
/* A lift to this token may come after the request has failed or the release began. 0: none. */
byte late_lift[9];
/* By the client's clock its lease on the member lasts. */
bool lasts[9];

/* A top-up of the client: by its keeper, which has connections of its own. */
mtype = { OFF, READ, TOOK, UNDO };
mtype top_up[4];
byte top_member[4];
/* The counter that it has read. For a mutant only. */
byte top_seen[4];
/* The token of the grant. */
byte top_token[4];

/* For the properties: the newest token that was returned. Without clocks: all of them, a bit each,
 * and the newest when a request began. */
byte newest, given;
byte begun[4];

#define HAS(c, t, m) (owner[m] == (c) && row_token[m] == (t))
#define FREE(m) (owner[m] == 0 || !live[m])
#define LASTS(c) (lasts[AT(c, 1)] + lasts[AT(c, 2)] + lasts[AT(c, 3)] >= 2)
#define HOLDS(c) (phase[c] == HOLDING && LASTS(c))
#define GRANTED(c) ((got[AT(c, 1)] > 0) + (got[AT(c, 2)] > 0) + (got[AT(c, 3)] > 0) >= 2)
#define HIGHEST(c) MAX(got[AT(c, 1)], MAX(got[AT(c, 2)], got[AT(c, 3)]))
#define IS_LEVEL(c, m) \
    (got[AT(c, m)] > 0 && (got[AT(c, m)] == token[c] || HIGHEST_WITHOUT_LIFT) && \
     (HAS(c, token[c], m) || !WRITES_HIGHEST_PLUS_ONE) && (lasts[AT(c, m)] || !CLOCKS))
#define LEVEL(c) (IS_LEVEL(c, 1) + IS_LEVEL(c, 2) + IS_LEVEL(c, 3) >= 2)
#define MAY_CLAIM(c, m) \
    (got[AT(c, m)] == 0 && !(owner[m] == c && owed[m] != NOTHING && live[m]) && \
     counter[m] < TOKENS && \
     (m == 1 || counter[m - 1] > 0 || WRITES_HIGHEST_PLUS_ONE || TRACE))
#define MAY_LIFT(c, m) \
    (!HIGHEST_WITHOUT_LIFT && (phase[c] == LIFTING || phase[c] == HOLDING) && got[AT(c, m)] > 0 && \
     (got[AT(c, m)] != token[c] || !(HAS(c, token[c], m) || !WRITES_HIGHEST_PLUS_ONE)))

/* A lift has an effect. */
#define LIFTS_LATE(c, m) (owner[m] == (c) && !topped[m] && owed[m] != NOTHING)
#define LIFTS(c, top, from, m) (owner[m] == c && topped[m] == top && row_token[m] == from)

inline put_row(c, t, top, m)
{
    owner[m] = c; row_token[m] = t; topped[m] = top; live[m] = true; renewed[m] = false;
    owed[m] = NOTHING
}

inline remove_row(m)
{
    owner[m] = 0; row_token[m] = 0; topped[m] = false; live[m] = false; renewed[m] = false;
    owed[m] = NOTHING
}

inline check_holder(c)
{
    assert(!CLOCKS || c == 1 || !HOLDS(1)); /* Q3 */
    assert(!CLOCKS || c == 2 || !HOLDS(2)); /* Q3 */
    assert(!CLOCKS || c == 3 || !HOLDS(3)); /* Q3 */
    assert(!CLOCKS || token[c] >= newest) /* Q4 */
}

inline claim(c, m)
{
    begun[c] = (CLOCKS || HIGHEST(c) > 0 -> begun[c] : newest);
    if
    :: WRITES_HIGHEST_PLUS_ONE -> got[AT(c, m)] = counter[m] + 1; lasts[AT(c, m)] = true
    :: !WRITES_HIGHEST_PLUS_ONE && (FREE(m) || owner[m] == c) ->
        counter[m]++;
        put_row(c, counter[m], false, m);
        got[AT(c, m)] = counter[m]; lasts[AT(c, m)] = true
    :: else
    fi
}

/* The row of this client's request, or of its top-up, gets the token `to` if it has `from`. */
inline lift_row(c, top, from, to, m)
{
    if
    :: LIFTS(c, top, from, m) ->
        row_token[m] = to; counter[m] = MAX(counter[m], to); PASS
    :: WRITES_HIGHEST_PLUS_ONE && FREE(m) ->
        put_row(c, to, top, m); counter[m] = to
    :: else
    fi
}

inline forget_member(c, m)
{
    got[AT(c, m)] = 0; lasts[AT(c, m)] = false
}

inline owe(c, m, what)
{
    if
    :: owner[m] == c && row_token[m] == token[c] -> owed[m] = what
    :: owner[m] == c && row_token[m] != token[c] && !topped[m] &&
       (got[AT(c, m)] > 0 || owed[m] == REQUEST) -> owed[m] = (what == GRANT -> OLDER : REQUEST)
    :: else
    fi;
    if
    :: LATE && owner[m] == c && owed[m] != NOTHING && got[AT(c, m)] > 0 && token[c] > 0 &&
       row_token[m] != token[c] -> late_lift[AT(c, m)] = token[c]
    :: else
    fi;
    forget_member(c, m)
}

/* The client counts on the members of its majority. On others only after a renewal. */
inline count_on(c, m)
{
    lasts[AT(c, m)] = IS_LEVEL(c, m)
}

inline ask_anew(c)
{
    phase[c] = ASKING; token[c] = 0; begun[c] = 0;
    forget_member(c, 1); forget_member(c, 2); forget_member(c, 3)
}

inline disown(c, m)
{
    late_lift[AT(c, m)] = 0;
    if :: owner[m] == c -> owed[m] = NOTHING :: else fi
}

inline end_top_up(c)
{
    top_up[c] = OFF; top_member[c] = 0; top_seen[c] = 0; top_token[c] = 0
}

/* ---- a client */

proctype Client(byte me)
{
end:
    do
    /* A majority has granted it. */
    :: d_step { phase[me] == ASKING && GRANTED(me) -> phase[me] = LIFTING; token[me] = HIGHEST(me) }
    /* A majority has the row at the token of the grant: it is returned. */
    :: d_step { phase[me] == LIFTING && LEVEL(me) && (newest > 0 || me == 1 || TRACE) ->
        assert(token[me] != newest && (given & (1 << token[me])) == 0); /* Q1 */
        assert(token[me] > (CLOCKS -> newest : begun[me])); /* Q2 */
        phase[me] = HOLDING;
        count_on(me, 1); count_on(me, 2); count_on(me, 3);
        check_holder(me);
        given = (CLOCKS -> 0 : given | (1 << token[me]));
        newest = MAX(newest, token[me]);
        begun[me] = 0 }
#if TRACE
    /* The caller is told of it. A grant that an earlier attempt has made was renewed before. */
    :: d_step { phase[me] == HOLDING && IS_GRANT -> PASS }
#endif
    /* lock/retract.sql: the request fails, or takes too long. What was granted is owed. */
    :: d_step { phase[me] == LIFTING || (phase[me] == ASKING && HIGHEST(me) > 0) ->
        owe(me, 1, REQUEST); owe(me, 2, REQUEST); owe(me, 3, REQUEST);
        ask_anew(me) }
    /* lock/release.sql: what has the token is owed by each member. */
    :: d_step { phase[me] == HOLDING ->
        owe(me, 1, GRANT); owe(me, 2, GRANT); owe(me, 3, GRANT);
        ask_anew(me) }
    /* The client dies, and starts again with the same owner and without its memory. */
    :: d_step { DEATHS && (phase[me] != ASKING || HIGHEST(me) > 0 || TRACE) && IS_DEATH ->
        disown(me, 1); disown(me, 2); disown(me, 3);
        ask_anew(me); PASS;
        if :: TRACE -> end_top_up(me) :: else fi }
    od
}

/* ---- what a client does with a member */

proctype Link(byte me; byte m)
{
end:
    do
    /* lock/acquire.sql: a claim */
    :: d_step { phase[me] == ASKING && MAY_CLAIM(me, m) && IS_CLAIM -> claim(me, m); PASS }
    /* lock/acquire.sql: a claim without an answer */
    :: d_step { LOSSES && (phase[me] == ASKING || (LATE && FREE(m))) && MAY_CLAIM(me, m) &&
                IS_CLAIM ->
        claim(me, m);
        owe(me, m, REQUEST); PASS }
    /* lock/acquire.sql: the answer comes after all, or the claim is sent again and finds the row of
     * its request. The lease counts if that is before the decision. */
    :: d_step { LOSSES && owner[m] == me && MAY_ADOPT(m) && !topped[m] && got[AT(me, m)] == 0 &&
                (phase[me] == ASKING || (LATE && LASTS(me))) ->
        got[AT(me, m)] = row_token[m];
        lasts[AT(me, m)] = (phase[me] == ASKING && live[m]);
        owed[m] = NOTHING }
    /* lock/acquire.sql: a claim that comes after the decision. If the lease has ended, it goes. */
    :: d_step { LATE && (phase[me] == LIFTING || phase[me] == HOLDING) && MAY_CLAIM(me, m) &&
                FREE(m) && IS_CLAIM ->
        claim(me, m);
        lasts[AT(me, m)] = false;
        if :: phase[me] == HOLDING && !LASTS(me) -> owe(me, m, REQUEST) :: else fi; PASS }
    /* lock/lift.sql */
    :: d_step { MAY_LIFT(me, m) && IF(LIFTS(me, false, got[AT(me, m)], m), IS_LIFT) ->
        lift_row(me, false, got[AT(me, m)], token[me], m);
        if
        :: HAS(me, token[me], m) && !topped[m] -> got[AT(me, m)] = token[me]
        :: else -> forget_member(me, m)
        fi }
    /* lock/lift.sql: without an answer */
    :: d_step { LOSSES && MAY_LIFT(me, m) && IF(LIFTS(me, false, got[AT(me, m)], m), IS_LIFT) ->
        lift_row(me, false, got[AT(me, m)], token[me], m);
        forget_member(me, m) }
    /* lock/lift.sql: after the request has failed, or the release began */
    :: d_step { late_lift[AT(me, m)] > 0 && IF(LIFTS_LATE(me, m), IS_LATE_LIFT) ->
        if
        :: LIFTS_LATE(me, m) ->
            row_token[m] = late_lift[AT(me, m)]; counter[m] = MAX(counter[m], row_token[m]);
            owed[m] = (owed[m] == OLDER -> GRANT : owed[m]); PASS
        :: else
        fi;
        late_lift[AT(me, m)] = 0 }
    /* lock/retract.sql, lock/release.sql: what is owed */
    :: d_step { owner[m] == me && owed[m] != NOTHING &&
                IF(owed[m] == GRANT || MAY_UNDO(m), IS_REMOVAL) ->
        if
        :: owed[m] == GRANT || MAY_UNDO(m) -> remove_row(m); PASS
        :: else -> owed[m] = NOTHING
        fi }
    /* lock/retract.sql: it was sent for an earlier row of the request, and comes late */
    :: d_step { RETRACTS_LATER_ROWS && owner[m] == me && !topped[m] && MAY_UNDO(m) -> remove_row(m) }
    /* lock/renew.sql, also before a grant is returned whose lease may have ended */
    :: d_step { (phase[me] == HOLDING || (RENEWS_FIRST && phase[me] == LIFTING)) &&
                (HAS(me, token[me], m) -> (!live[m] || !lasts[AT(me, m)] || TRACE) && IS_RENEWAL :
                lasts[AT(me, m)]) ->
        if
        :: HAS(me, token[me], m) ->
            live[m] = true; renewed[m] = true; lasts[AT(me, m)] = true;
            if :: HOLDS(me) -> check_holder(me) :: else fi; PASS
        :: else -> lasts[AT(me, m)] = false
        fi }
    /* lock/renew.sql: it comes after the release began */
    :: d_step { LATE && owner[m] == me && owed[m] == GRANT && (!live[m] || !renewed[m] || TRACE) &&
                IS_RENEWAL ->
        live[m] = true; renewed[m] = true; PASS }

    /* lock/renew.sql: a top-up begins, while the lease lasts */
    :: d_step { TOPS_UP && (me == 1 || TRACE) && HOLDS(me) && top_up[me] == OFF &&
                !HAS(me, token[me], m) && counter[m] < TOKENS ->
        top_up[me] = READ; top_member[me] = m; top_seen[me] = SEEN(m); top_token[me] = token[me] }
    /* lock/acquire.sql: it claims the member */
    :: d_step { top_up[me] == READ && top_member[me] == m && counter[m] < TOKENS &&
                IF(MAY_TOP_UP(me, m), IS_TOP_UP) ->
        if
        :: MAY_TOP_UP(me, m) ->
            counter[m]++;
            put_row(me, counter[m], true, m);
            top_up[me] = (MAY_JOIN(me, m) -> TOOK : UNDO);
            top_seen[me] = 0; PASS
        :: else -> end_top_up(me)
        fi }
    /* lock/lift.sql: to the token of the grant */
    :: d_step { top_up[me] == TOOK && top_member[me] == m &&
                IF(LIFTS(me, true, row_token[m], m), IS_TOP_UP_LIFT) ->
        lift_row(me, true, row_token[m], top_token[me], m);
        end_top_up(me) }
    /* lock/lift.sql: without an answer */
    :: d_step { LOSSES && top_up[me] == TOOK && top_member[me] == m &&
                IF(LIFTS(me, true, row_token[m], m), IS_TOP_UP_LIFT) ->
        lift_row(me, true, row_token[m], top_token[me], m);
        top_up[me] = UNDO }
    /* lock/retract.sql: the row that it has made */
    :: d_step { top_up[me] == UNDO && top_member[me] == m &&
                IF(owner[m] == me && topped[m] && MAY_UNDO(m), IS_REMOVAL) ->
        if :: owner[m] == me && topped[m] && MAY_UNDO(m) -> remove_row(m); PASS :: else fi;
        end_top_up(me) }
    /* It stops. */
    :: d_step { (top_up[me] == READ || top_up[me] == TOOK) && top_member[me] == m ->
        end_top_up(me) }
    od
}

/* ---- a member, by itself */

proctype Member(byte m)
{
end:
    do
    /* The lease of the row ends. */
    :: d_step { live[m] -> live[m] = false; lasts[AT(owner[m], m)] = false }
    /* The mutant: it is restored, and votes. */
    :: d_step { MEMBER_FORGETS && !forgot && counter[m] > 0 ->
        forgot = true; counter[m] = 0;
        remove_row(m) }
    od
}

init
{
    byte i;
    atomic {
#if TRACE
        c_code { read_events(); };
#endif
        for (i : 1 .. CLIENTS) { phase[i] = ASKING; top_up[i] = OFF }
        for (i : 1 .. 3) { owed[i] = NOTHING }
        i = 0;
        counter[1] = AHEAD;
        run Client(1); run Link(1, 1); run Link(1, 2); run Link(1, 3);
        run Client(2); run Link(2, 1); run Link(2, 2); run Link(2, 3);
#if CLIENTS > 2
        run Client(3); run Link(3, 1); run Link(3, 2); run Link(3, 3);
#endif
        run Member(1); run Member(2); run Member(3)
    }
}
