/* SPDX-License-Identifier: MIT
 * A model of guards on two nodes that both take writes: Galera, or Group Replication in
 * multi-primary mode. lease.pml is about one database. `make model` checks both with spin.
 *
 * The cluster puts commits into one order, and each node applies them in that order, sooner or
 * later. A commit is refused if it changes a row that was changed in the order after what its
 * transaction has seen. A row lock is local to its node. When a node applies a change, it ends the
 * open transactions that have the row locked there.
 *
 * Properties: P1 no guarded transaction commits after a later grant. P2 tokens increase in the
 * order of grants.
 *
 * Bounds. Three clients, two of them on node 1. CHANGES: so many changes of the token row.
 * Left out: all that lease.pml has, and more than two nodes. Each node's view is a prefix of the
 * order, and a third one adds no other kind of prefix. */

/* The constants; see lease.pml.
 *   bounds    CHANGES=6
 *   mutants   SHARE_LOCK_ON_TWO_NODES=0: a guard share-locks the token row, and changes nothing */

/* The order of commits that change the token row: the token and the owner after each. */
byte last;
byte token_at[CHANGES + 1];
byte owner_at[CHANGES + 1];
/* The lease of the newest grant has run out. */
bool expired;
/* How many of them each node has applied. */
byte applied[3];

/* A client's transaction: what it does, and how much of the order it has seen. It has the token row
 * locked on its node. */
mtype = { NONE, GRANTING, GUARDING };
mtype doing[4];
byte seen[4];
/* The token of the client's grant, until it is told that it is lost. 0: it has none. */
byte held[4];

#define NODE(c) (c == 2 -> 2 : 1)
/* An exclusive lock goes with no other. Share locks go together. */
#define BUSY(d, c, how) \
    (d != c && NODE(d) == NODE(c) && doing[d] != NONE && (how || doing[d] == GRANTING))
#define LOCKED(c, how) (BUSY(1, c, how) || BUSY(2, c, how) || BUSY(3, c, how))

inline end_transaction(c)
{
    doing[c] = NONE; seen[c] = 0
}

/* A commit that changes the token row takes its place in the order. */
inline put_in_order(who, value)
{
    last++;
    token_at[last] = value; owner_at[last] = who
}

/* A node applies a change of the token row. */
inline end_others(c, node)
{
    if :: NODE(c) == node && doing[c] != NONE -> end_transaction(c) :: else fi
}

proctype Client(byte me)
{
end:
    do
    /* sql/mysql/install/rowlock_grant.sql: locks the token row, if the lock is free on this node */
    :: d_step { doing[me] == NONE && !LOCKED(me, true) && last < CHANGES &&
                (expired || owner_at[applied[NODE(me)]] == 0) ->
        doing[me] = GRANTING; seen[me] = applied[NODE(me)] }
    /* Its commit */
    :: d_step { doing[me] == GRANTING && last < CHANGES ->
        if
        :: seen[me] == last ->
            assert(token_at[seen[me]] + 1 > token_at[last]); /* P2 */
            put_in_order(me, token_at[seen[me]] + 1);
            held[me] = token_at[last]; expired = false
        :: else
        fi;
        end_transaction(me) }
    /* sql/mysql/install/rowlock_guard.sql, in the caller's transaction */
    :: d_step { doing[me] == NONE && held[me] != 0 && !LOCKED(me, !SHARE_LOCK_ON_TWO_NODES) ->
        if
        :: token_at[applied[NODE(me)]] == held[me] ->
            doing[me] = GUARDING; seen[me] = applied[NODE(me)]
        :: token_at[applied[NODE(me)]] > held[me] -> held[me] = 0
        :: else
        fi }
    /* The caller's commit */
    :: d_step { doing[me] == GUARDING && (last < CHANGES || SHARE_LOCK_ON_TWO_NODES) ->
        if
        :: SHARE_LOCK_ON_TWO_NODES || seen[me] == last ->
            assert(held[me] == token_at[last]); /* P1 */
            if
            :: !SHARE_LOCK_ON_TWO_NODES -> put_in_order(owner_at[last], token_at[last])
            :: else
            fi
        :: else
        fi;
        end_transaction(me) }
    /* The caller rolls back. */
    :: d_step { doing[me] == GUARDING -> end_transaction(me) }
    od
}

proctype Cluster()
{
end:
    do
    /* The lease of the newest grant ends. */
    :: d_step { last > 0 && !expired -> expired = true }
    /* Node 1 applies the next change. */
    :: d_step { applied[1] < last ->
        applied[1]++; end_others(1, 1); end_others(3, 1) }
    /* Node 2 applies the next change. */
    :: d_step { applied[2] < last ->
        applied[2]++; end_others(2, 2) }
    od
}

init
{
    byte i;
    atomic {
        for (i : 1 .. 3) { doing[i] = NONE }
        i = 0;
        run Client(1); run Client(2); run Client(3); run Cluster()
    }
}
