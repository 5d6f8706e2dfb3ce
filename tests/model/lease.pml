/* SPDX-License-Identifier: MIT
 * A model of lease locks: three clients, one name, one database. `make model` checks it with spin.
 *
 * A transition is a d_step. It is one statement of rowlock as the database carries it out, or one
 * event. The comment above a transition names the file of sql/postgres that it models.
 *
 * Properties, each an assert
 *   P1  No guarded transaction commits after a later grant.
 *   P2  Each grant has a higher token than all grants before it.
 *   P3  A free lock is granted: after each waiter has looked once, one of them has it.
 *   P4  No grant outlives its end: what was released, taken over, broken or swept does not come
 *       back. No ticket outlives its lease: P3 counts only tickets of living waiters.
 *   P5  Two clients never both hold the lock by their own clocks.
 *
 * What may happen, if the constant is 1
 *   LOSSES     The connection is lost at any moment: the request, the answer, or neither arrives.
 *              What was sent may also be carried out later. The client sends it again, gives up,
 *              or withdraws it.
 *   DEATHS     A client dies, and starts again with the same owner and without its memory.
 *   CRASHES    The server crashes. Open transactions end. The newest release may be undone.
 *   OPERATORS  break, fold, raise.
 *   JUMPS      The database's clock jumps, forward or back. P5 is not promised then.
 *   QUEUE      Clients take tickets.
 * Pauses need no constant: a process may stop between any two transitions.
 *
 * Time. There is no clock. A lease may end at any moment. The local deadline is counted from before
 * the sending, so it is over when the lease ends: `over` is set then, and not earlier. So a client
 * counts on its lease for as long as it possibly can.
 *
 * Bounds. TOKENS: the highest token. CLIENTS: 2 or 3. One delayed statement at a time: the next
 * connection is lost after it was carried out or dropped. All else is unbounded: tries, renewals,
 * lost connections, deaths, crashes. By symmetry the first grant is that of client 1.
 *
 * Left out
 *   - shared and counted locks, several names, batches, acquire_usual (it decides less)
 *   - rowlock_tx_acquire() and rowlock_tx_release(): the lock row is never locked between two
 *     transitions. Others that lock it are atomic here: each holds all it needs when it writes.
 *   - wake-ups and the pauses between looks: tests/lock/wakeup.c
 *   - leases of different lengths, and a lease that a renewal shortens
 *   - isolation levels above READ COMMITTED: the database refuses there what would differ
 *   - a client that connects again and does not end the session that it has lost. It may lack the
 *     privilege, or be behind a transaction pooler. P5 fails then: a release gets no answer, the
 *     client renews, and the release still comes. P1 to P4 hold: OLD_SESSION_GOES_ON, P5=0.
 *   - a clock that moves on between the statements of one transaction of SQLite:
 *     tests/admin/sweep.c
 *   - failover that loses commits: rowlock raise-tokens */

/* The constants. tests/model/check.sh defines each, with this value unless tests/model/models has
 * another. A mutant is a wrong rule, with which a property must fail.
 *   bounds    CLIENTS=3 TOKENS=3
 *   may be    LOSSES=0 DEATHS=0 CRASHES=0 OPERATORS=0 JUMPS=0 QUEUE=0
 *   promised  P5=1
 *   mutants   PLAIN_GUARD=0 RELEASE_BY_OWNER=0 FOLD_WITHOUT_FLOOR=0 RENEWAL_INSERTS=0
 *             TAKEOVER_WITHOUT_TOKEN_ROW=0 DEADLINE_FROM_ANSWER=0 OLD_SESSION_GOES_ON=0
 *             TICKET_WITHOUT_LEASE=0 */

#define MAY_RELEASE(c, t) (row_owner == (c) && (RELEASE_BY_OWNER || row_token == (t)))
#define FOLDED_FLOOR (FOLD_WITHOUT_FLOOR -> floor : TOP)
#define COUNTS(c) (ticket[c] == VALID || (TICKET_WITHOUT_LEASE && ticket[c] == EXPIRED))

/* ---- the database. What is of each client is an array with room for three: 1 to 3. */

/* rowlock_tokens: the token of the name, 0: no counter. rowlock_meta: the floor. */
byte counter, floor;
/* The session that has the token row locked, or is making it. 0: none. `making` share-locks the
 * floor. */
byte locker;
bool making;
/* The clients whose guarded transactions share-lock the token row: a bit each. */
byte guards;
/* rowlock_locks: the row. Owner 0: there is none. live: its lease has not run out. */
byte row_owner, row_token, row_request;
bool row_live;
/* The row of the newest release, while a crash may bring it back. */
byte undone_owner, undone_token, undone_request;

/* rowlock_waiters. place: the order. A client remembers its place after its ticket was REMOVED. */
mtype = { NONE, VALID, EXPIRED, REMOVED };
mtype ticket[4];
byte place[4];
/* The waiters that have looked at the free lock since anything changed: a bit each. */
byte looked;

/* The highest token granted, and whether that grant has ended. For the properties only. */
byte newest;
bool ended;

/* ---- the clients and their sessions */

/* ASKING: a try is under way. GRANTED, RENEWED: the answer is. OVERTAKEN: so is that of a renewal
 * whose lease has ended meanwhile. DOUBT: the answer to a release was lost. */
mtype = { IDLE, ASKING, GRANTED, HOLDING, RENEWED, OVERTAKEN, DOUBT, DEAD };
mtype state[4];
byte token[4];
/* The answer to the request was lost. */
bool open[4];
/* The lease is over by the client's clock. */
bool over[4];
/* The token that was guarded by the client's open transaction. 0: it has none. */
byte guarding[4];

/* Session c belongs to client c. LATE is one that a client has lost. It goes on without it. */
#define LATE 4
mtype = { OFF, SENT, LOOKED, MAKING, LOCKED, RENEWING, RELEASING };
mtype stage[LATE + 1];
byte client[LATE + 1];
/* The lowest number that no other request of this client has. */
byte request[LATE + 1];
/* There was a lock row when the session looked. */
bool stood[LATE + 1];
byte seen_floor[LATE + 1];
byte late_token;
/* The client knows the session that it has lost. */
bool late_known;

/* ---- the operators */

/* The token that an operator is about to break, and the counter that a fold has seen idle. */
byte aim, idle;

#define BIT(c) (1 << (c))
#define TOP (counter > floor -> counter : floor)
#define ROOM (TOP < TOKENS)
#define ROW_IS(c, t) (row_owner == (c) && row_token == (t))
#define UNLOCKED (locker == 0 && guards == 0)
#define HAS_LOCK(c) (state[c] == HOLDING || state[c] == DOUBT)
#define BELIEVES(c) ((state[c] == HOLDING || state[c] == RENEWED) && !over[c])
#define BEFORE(d, c) (d != c && COUNTS(d) && (place[c] == 0 || place[d] < place[c]))
#define BEHIND(c) (BEFORE(1, c) || BEFORE(2, c) || BEFORE(3, c))
#define LIVING_WAITER(c) (place[c] > 0 && state[c] != DEAD -> BIT(c) : 0)
#define WAITERS (LIVING_WAITER(1) | LIVING_WAITER(2) | LIVING_WAITER(3))
#define DEAD_TICKET(c) (state[c] == DEAD && ticket[c] == VALID)
#define DEAD_TICKETS (DEAD_TICKET(1) || DEAD_TICKET(2) || DEAD_TICKET(3))

/* ---- pieces of transitions */

inline check_p4()
{
    assert(row_owner == 0 || (row_token == newest && !ended)) /* P4 */
}

inline check_p5(c)
{
    assert(!P5 || c == 1 || !BELIEVES(1)); /* P5 */
    assert(!P5 || c == 2 || !BELIEVES(2)); /* P5 */
    assert(!P5 || c == 3 || !BELIEVES(3)) /* P5 */
}

/* P3: a waiter found the lock free, and others before it. */
inline check_p3(c)
{
    if
    :: place[c] > 0 && UNLOCKED && !DEAD_TICKETS ->
        looked = looked | BIT(c);
        assert(looked != WAITERS) /* P3 */
    :: else
    fi
}

inline forget_undone()
{
    undone_owner = 0; undone_token = 0; undone_request = 0
}

inline remove_row()
{
    row_owner = 0; row_token = 0; row_request = 0; row_live = false;
    ended = true; looked = 0
}

inline end_lease()
{
    row_live = false; looked = 0;
    over[row_owner] = true;
    if :: state[row_owner] == RENEWED -> state[row_owner] = OVERTAKEN :: else fi
}

inline make_grant(s, c, t)
{
    assert(t > newest); /* P2 */
    newest = t; ended = false; looked = 0;
    row_owner = c; row_token = t; row_request = request[s]; row_live = true;
    forget_undone()
}

inline leave_queue(c)
{
    looked = 0;
    if
    :: place[c] > 0 ->
        if :: place[1] > place[c] -> place[1]-- :: else fi;
        if :: place[2] > place[c] -> place[2]-- :: else fi;
        if :: place[3] > place[c] -> place[3]-- :: else fi;
        place[c] = 0; ticket[c] = NONE
    :: else
    fi
}

inline go_idle(c)
{
    state[c] = IDLE; token[c] = 0; over[c] = false; open[c] = false; request[c] = 0
}

inline unlock(s)
{
    if :: locker == s -> locker = 0; making = false; looked = 0 :: else fi
}

inline end_late()
{
    unlock(LATE);
    stage[LATE] = OFF; client[LATE] = 0; request[LATE] = 0; stood[LATE] = false;
    seen_floor[LATE] = 0; late_token = 0; late_known = false
}

inline begin_late(c, what, known)
{
    stage[LATE] = what; client[LATE] = c; late_token = token[c]; late_known = known
}

/* src/core/ask.c: a client that connects again first ends the session that it has lost. */
inline reconnect(c)
{
    if :: !OLD_SESSION_GOES_ON && client[LATE] == c && late_known -> end_late() :: else fi
}

inline choose_request(c)
{
    if
    :: request[c] == 0 ->
        request[c] = 1;
        do
        :: (row_owner == c && row_request == request[c]) ||
           (client[LATE] == c && request[LATE] == request[c]) ||
           (undone_owner == c && undone_request == request[c]) -> request[c]++
        :: else -> break
        od
    :: else
    fi
}

/* The transaction of a try ends. The answer of a LATE one reaches no client. */
inline end_try(s, how)
{
    unlock(s);
    if
    :: s == LATE -> end_late()
    :: else ->
        stage[s] = OFF; stood[s] = false; seen_floor[s] = 0; state[s] = how;
        if
        :: how == GRANTED ->
            token[s] = row_token;
            if :: QUEUE -> leave_queue(s) :: else fi
        :: else ->
            over[s] = false;
            if :: !open[s] && place[s] == 0 -> request[s] = 0 :: else fi
        fi
    fi
}

/* lock/acquire.sql, install/rowlock_look.sql: one read. A live row of our own request is our grant,
 * whose answer was lost. */
inline look(s, c)
{
    if
    :: row_owner == c && row_live && row_request == request[s] -> end_try(s, GRANTED)
    :: row_owner != 0 && row_owner != c && row_live -> end_try(s, IDLE)
    :: QUEUE && !(row_owner == c && row_live) && BEHIND(c) -> check_p3(c); end_try(s, IDLE)
    :: else -> stood[s] = (row_owner != 0); stage[s] = LOOKED
    fi
}

/* lock/renew.sql */
inline renew_row(c, t)
{
    if
    :: ROW_IS(c, t) -> row_live = true; looked = 0
    :: RENEWAL_INSERTS && row_owner == 0 && t > 0 ->
        row_owner = c; row_token = t; row_live = true;
        check_p4()
    :: else
    fi
}

/* lock/release.sql. PostgreSQL commits it without waiting for the disk. */
inline release_row(c, t)
{
    if
    :: MAY_RELEASE(c, t) ->
        if
        :: CRASHES ->
            undone_owner = row_owner; undone_token = row_token; undone_request = row_request
        :: else
        fi;
        remove_row()
    :: else
    fi
}

/* ---- a session: install/rowlock_grant.sql, behind the look */

proctype Session(byte s)
{
end:
    do
    /* lock/acquire.sql: the look of a request that was delayed */
    :: d_step { stage[s] == SENT -> look(s, client[s]) }
    /* install/rowlock_grant.sql: FOR NO KEY UPDATE SKIP LOCKED of the token row */
    :: d_step { stage[s] == LOOKED && !(TAKEOVER_WITHOUT_TOKEN_ROW && stood[s]) ->
        if
        :: counter > 0 && UNLOCKED -> locker = s; stage[s] = LOCKED; looked = 0
        :: counter > 0 && !UNLOCKED -> end_try(s, IDLE)
        :: else -> seen_floor[s] = floor; stage[s] = MAKING
        fi }
    /* install/rowlock_new_counter.sql: the advisory lock, then the new row at the floor */
    :: d_step { stage[s] == MAKING ->
        if
        :: counter == 0 && locker == 0 && floor == seen_floor[s] ->
            locker = s; making = true; stage[s] = LOCKED; looked = 0
        :: else -> end_try(s, IDLE)
        fi }
    /* install/rowlock_grant.sql: the lock row, the counter, and the commit */
    :: d_step { stage[s] == LOCKED && ROOM && (newest > 0 || client[s] == 1) ->
        if
        :: (stood[s] && row_owner != 0 && (!row_live || row_owner == client[s])) ||
           (!stood[s] && row_owner == 0) ->
            counter = (making -> floor : counter) + 1;
            make_grant(s, client[s], counter);
            if :: QUEUE && ticket[client[s]] != NONE -> ticket[client[s]] = REMOVED :: else fi;
            end_try(s, GRANTED)
        :: else -> end_try(s, IDLE)
        fi }
    /* a mutant */
    :: d_step { stage[s] == LOOKED && TAKEOVER_WITHOUT_TOKEN_ROW && stood[s] ->
        if
        :: row_owner != 0 && !row_live ->
            make_grant(s, client[s], row_token + 1);
            end_try(s, GRANTED)
        :: else -> end_try(s, IDLE)
        fi }
    od
}

/* ---- a client */

proctype Client(byte me)
{
end:
    do
    /* lock/acquire.sql: a try, or its second attempt after a lost answer */
    :: d_step { state[me] == IDLE && ROOM ->
        reconnect(me);
        choose_request(me);
        state[me] = ASKING; over[me] = false;
        look(me, me) }
    /* The connection is lost before the look. */
    :: d_step { LOSSES && state[me] == IDLE && ROOM && stage[LATE] == OFF ->
        choose_request(me);
        begin_late(me, SENT, true);
        request[LATE] = request[me]; open[me] = true }
    /* The connection is lost after the look. */
    :: d_step { LOSSES && state[me] == ASKING && stage[LATE] == OFF ->
        begin_late(me, stage[me], true);
        request[LATE] = request[me]; stood[LATE] = stood[me]; seen_floor[LATE] = seen_floor[me];
        if :: locker == me -> locker = LATE :: else fi;
        stage[me] = OFF; stood[me] = false; seen_floor[me] = 0;
        state[me] = IDLE; over[me] = false; open[me] = true }
    /* The connection is lost after the commit. */
    :: d_step { LOSSES && state[me] == GRANTED ->
        state[me] = IDLE; token[me] = 0; over[me] = false; open[me] = true }
    /* lock/withdraw.sql: the client gives up an acquire without an answer */
    :: d_step { state[me] == IDLE && open[me] && place[me] == 0 ->
        reconnect(me);
        if :: row_owner == me && row_request == request[me] -> remove_row() :: else fi;
        go_idle(me) }

    /* The answer of a grant arrives in time. */
    :: d_step { state[me] == GRANTED && !open[me] && !(over[me] && !DEADLINE_FROM_ANSWER) ->
        state[me] = HOLDING; request[me] = 0; over[me] = false;
        check_p5(me) }
    /* lock/renew.sql: it arrives after the lease, or was only read. So it is renewed first. */
    :: d_step { state[me] == GRANTED && (open[me] || (over[me] && !DEADLINE_FROM_ANSWER)) ->
        renew_row(me, token[me]);
        if
        :: ROW_IS(me, token[me]) ->
            state[me] = RENEWED; over[me] = true; open[me] = false; request[me] = 0
        :: else -> go_idle(me)
        fi }

    /* lock/renew.sql: by the holder or its keeper */
    :: d_step { HAS_LOCK(me) ->
        reconnect(me);
        renew_row(me, token[me]);
        if :: ROW_IS(me, token[me]) -> state[me] = RENEWED :: else -> go_idle(me) fi }
    /* The answer of a renewal arrives. */
    :: d_step { state[me] == RENEWED || (state[me] == OVERTAKEN && DEADLINE_FROM_ANSWER) ->
        state[me] = HOLDING; over[me] = false;
        check_p5(me) }
    /* It arrives after the lease that it is about. */
    :: d_step { state[me] == OVERTAKEN && !DEADLINE_FROM_ANSWER -> state[me] = HOLDING }
    /* The connection is lost in a renewal. */
    :: d_step { LOSSES && state[me] == HOLDING && stage[LATE] == OFF ->
        begin_late(me, RENEWING, true) }

    /* lock/release.sql, and after a lost answer admin/last.sql */
    :: d_step { HAS_LOCK(me) ->
        reconnect(me);
        release_row(me, token[me]);
        go_idle(me) }
    /* The connection is lost in a release. */
    :: d_step { LOSSES && HAS_LOCK(me) && stage[LATE] == OFF ->
        begin_late(me, RELEASING, true);
        state[me] = DOUBT; over[me] = true }

    /* lock/guard.sql, install/rowlock_guard.sql: it waits for a grant in flight */
    :: d_step { HAS_LOCK(me) && guarding[me] == 0 && locker == 0 ->
        if
        :: counter == token[me] ->
            guarding[me] = token[me];
            guards = (PLAIN_GUARD -> guards : guards | BIT(me))
        :: else -> go_idle(me)
        fi }
    /* The guarded transaction commits. */
    :: d_step { guarding[me] != 0 ->
        assert(guarding[me] == newest); /* P1 */
        guarding[me] = 0; guards = guards & ~BIT(me);
        forget_undone() }
    /* It is rolled back. */
    :: d_step { guarding[me] != 0 -> guarding[me] = 0; guards = guards & ~BIT(me) }

    /* queue/enqueue.sql, install/rowlock_enqueue.sql: takes a ticket, or extends its lease */
    :: d_step { QUEUE && state[me] == IDLE && ticket[me] != VALID ->
        reconnect(me);
        if :: ticket[me] != EXPIRED -> leave_queue(me) :: else fi;
        if
        :: place[me] == 0 ->
            place[me] = 1 + (place[1] > 0) + (place[2] > 0) + (place[3] > 0);
            choose_request(me)
        :: else
        fi;
        ticket[me] = VALID; looked = 0 }
    /* queue/leave.sql, install/rowlock_leave.sql: the wait is over without a grant */
    :: d_step { QUEUE && state[me] == IDLE && place[me] > 0 ->
        leave_queue(me);
        if :: !open[me] -> go_idle(me) :: else fi }
    /* The lease of the ticket ends. */
    :: d_step { QUEUE && ticket[me] == VALID -> ticket[me] = EXPIRED; looked = 0 }
    /* admin/sweep_waiters.sql, and install/rowlock_leave.sql of another waiter */
    :: d_step { QUEUE && ticket[me] == EXPIRED ->
        if
        :: state[me] == DEAD -> leave_queue(me); state[me] = IDLE
        :: else -> ticket[me] = REMOVED; looked = 0
        fi }

    /* The client dies, and another process goes on as the same owner. */
    :: d_step { DEATHS && (HAS_LOCK(me) || (state[me] == IDLE && open[me])) && place[me] == 0 ->
        go_idle(me); guarding[me] = 0; guards = guards & ~BIT(me);
        if :: client[LATE] == me -> late_known = false :: else fi }
    /* A waiter dies. Its ticket stays. */
    :: d_step { DEATHS && QUEUE && state[me] == IDLE && place[me] > 0 ->
        go_idle(me); state[me] = DEAD; looked = 0;
        if :: client[LATE] == me -> late_known = false :: else fi }
    od
}

/* Its open transactions end. Its answers do not arrive. */
inline lose_server(c)
{
    guarding[c] = 0; stage[c] = OFF; stood[c] = false; seen_floor[c] = 0;
    if
    :: state[c] == ASKING || state[c] == GRANTED ->
        state[c] = IDLE; token[c] = 0; over[c] = false; open[c] = true
    :: state[c] == RENEWED || state[c] == OVERTAKEN -> state[c] = HOLDING
    :: else
    fi
}

inline crash()
{
    end_late();
    lose_server(1); lose_server(2); lose_server(3);
    locker = 0; making = false; guards = 0; idle = 0; looked = 0
}

/* ---- the rest: what happens by itself, and operators */

proctype Database()
{
end:
    do
    /* The lease of the grant ends. */
    :: d_step { row_live -> end_lease() }
    /* The clock jumps forward. */
    :: d_step { JUMPS && row_live -> row_live = false; looked = 0 }
    /* The clock jumps back. */
    :: d_step { JUMPS && row_owner != 0 && !row_live -> row_live = true; looked = 0 }
    /* admin/sweep.sql, admin/sweep_quiet.sql */
    :: d_step { row_owner != 0 && !row_live -> remove_row(); forget_undone() }

    /* lock/renew.sql: a delayed one */
    :: d_step { stage[LATE] == RENEWING -> renew_row(client[LATE], late_token); end_late() }
    /* lock/release.sql: a delayed one */
    :: d_step { stage[LATE] == RELEASING -> release_row(client[LATE], late_token); end_late() }
    /* A delayed statement never arrives, or its transaction is rolled back. */
    :: d_step { stage[LATE] != OFF -> end_late() }

    /* admin/list.sql: an operator sees the grant */
    :: d_step { OPERATORS && aim == 0 && row_owner != 0 -> aim = row_token }
    /* admin/break.sql, install/rowlock_break.sql: waits for the token row */
    :: d_step { OPERATORS && aim != 0 && UNLOCKED && ROOM ->
        if
        :: row_owner != 0 && row_token == aim ->
            end_lease(); remove_row(); counter++;
            forget_undone()
        :: else
        fi;
        aim = 0 }
    /* admin/fold.sql: its snapshot */
    :: d_step { OPERATORS && idle == 0 && row_owner == 0 && counter > 0 -> idle = counter }
    /* admin/fold.sql: waits for the floor, then locks the counter if it is as in the snapshot */
    :: d_step { OPERATORS && idle != 0 && !making ->
        if
        :: counter == idle && UNLOCKED -> floor = FOLDED_FLOOR; counter = 0; forget_undone()
        :: else
        fi;
        idle = 0 }
    /* admin/raise.sql, install/rowlock_raise.sql: waits for the floor and the token row */
    :: d_step { OPERATORS && !making && UNLOCKED && ROOM ->
        floor = TOP + 1;
        counter = (counter > 0 -> floor : 0);
        forget_undone() }

    /* The server crashes. */
    :: d_step { CRASHES -> crash() }
    /* The newest release has not reached its disk. */
    :: d_step { CRASHES && undone_owner != 0 ->
        crash();
        row_owner = undone_owner; row_token = undone_token; row_request = undone_request;
        row_live = true; ended = false;
        forget_undone() }
    od
}

init
{
    byte i;
    atomic {
        for (i : 1 .. CLIENTS) {
            state[i] = IDLE; ticket[i] = NONE; stage[i] = OFF; client[i] = i
        }
        stage[LATE] = OFF; i = 0;
        run Client(1); run Session(1);
        run Client(2); run Session(2);
#if CLIENTS > 2
        run Client(3); run Session(3);
#endif
        run Session(LATE); run Database()
    }
}
