/* SPDX-License-Identifier: MIT
 * What a keeper does next: which leases it renews when, and which state it tells. A machine: it
 * waits for nothing, reads no clock, and sends nothing. The keeper's mutex guards all of it. */
#ifndef RLK_KEEPING_H
#define RLK_KEEPING_H

#include "lock/lock.h"

/* Leases in one statement. Its text may have 10 MB then. */
enum { RLK_BATCH_MAX = 10000 };

/* A lock's entry in a keeper. It stays from grant to grant, until the handle is closed or gets
 * another keeper. */
struct rlk_entry {
    rowlock_keeper *keeper;
    struct rlk_entry *next;
    /* The pointer in the list that points here. */
    struct rlk_entry **at;
    /* NULL: the lock has quit. */
    rowlock_lock *lock;
    char name[RLK_TEXT_MAX + 1], owner[RLK_TEXT_MAX + 1];
    rowlock_acquire_options options;

    /* There is a lease to renew. */
    bool active;
    int64_t token;
    int64_t due_us;
    /* The end by max_hold_ms. */
    int64_t hold_until_us;
    /* The last renewal failed. */
    bool failed;
    /* A renewal is in flight, and its answer counts. */
    bool in_flight;
    /* A renewal is in flight. Its answer may be one that does not count any more. */
    bool under_way;
    /* When that renewal, or the last one, was sent, and for how long. */
    int64_t sent_us, sent_ttl_us;
    /* Grows when a renewal is sent, and when it ends. */
    uint64_t serial;
    /* The state that the callback was last called with. */
    rowlock_state reported;
};

struct rlk_keeping {
    struct rlk_entry *entries;
    /* out, of rlk_keeping_next() */
    /* RLK_TELL: the state of this one has changed. Until the next call it stays in the list. */
    struct rlk_entry *told;
    /* RLK_RENEW: these, until the first lease of all is LOST: that must be told in time. */
    struct rlk_entry *batch[RLK_BATCH_MAX];
    struct rlk_lease leases[RLK_BATCH_MAX];
    size_t count;
    int64_t not_after_us;
    /* RLK_RENEW: no lease of the keeper is shorter. */
    int64_t shortest_us;
    /* RLK_REST: until then. */
    int64_t until_us;
};

enum rlk_duty {
    /* Call the callback of `told`, and come back. */
    RLK_TELL,
    /* Send the batch, and give each of it its end. */
    RLK_RENEW,
    /* Sleep. */
    RLK_REST
};
/* chance: where random pauses come from. */
enum rlk_duty rlk_keeping_next(struct rlk_keeping *k, int64_t now_us, struct rlk_waiting *chance);

/* What became of a lease of the batch. */
enum rlk_fate { RLK_RENEWED, RLK_FAILED, RLK_GONE_FOR_GOOD };
/* Renewed: server_us is the database's clock. sent_us and was_uncertain are those of the ask. */
struct rlk_renewed {
    int64_t server_us, sent_us;
    bool was_uncertain;
};
/* False: the answer does not count, since the entry was stopped meanwhile, or its holder has
 * renewed. */
bool rlk_keeping_end(struct rlk_keeping *k, size_t i, enum rlk_fate fate,
                     const struct rlk_renewed *renewed, int64_t now_us, struct rlk_waiting *chance);

/* Begins to renew a lease, after a grant or after a renewal by its holder. Returns when the keeper
 * must be awake. */
int64_t rlk_keeping_begin(struct rlk_entry *entry, int64_t now_us, struct rlk_waiting *chance);

#endif
