/* SPDX-License-Identifier: MIT
 *
 * The list of steps. A step is data:
 *
 *   name        its file below sql/<dialect>/ has this name
 *   parameters  the words that the file may have in braces
 *   rows        1 exactly one, ? at most one, * any number, - none
 *   columns     a letter each, see rlk_cells_fit(); a short answer may end at the bar
 *   is          the flags below
 *
 * sql/README.md says what each step must do.
 *
 *   - The driver gives the value of a parameter with an exclamation mark.
 *   - Each step may also have {schema}, {prefix}, and {clock}: the text of sql/<dialect>/clock.sql.
 *   - A step for many locks has a semicolon. With RLK_ARRAYS each parameter before the semicolon is
 *     an array. With RLK_JSON {pack} has all of them, and {count} their number. Otherwise the step
 *     is sent for one lock at a time.
 *   - A step NAME_many is for the steps NAME of many handles, which know nothing of each other. Its
 *     answer is the row of NAME for each of them, after a number from 1. A negative number means:
 *     another transaction is in the way, and nothing was changed for this one. */
#ifndef RLK_STEPS_H
#define RLK_STEPS_H

#include <rowlock/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a step may be. */
enum {
    /* It only reads, so a lost answer is not uncertain. */
    RLK_READS = 1,
    /* It reads many rows, or takes long arrays, so its plan depends on their number. */
    RLK_WIDE = 2,
    /* A dialect may answer with the number of rows changed instead of a row. */
    RLK_COUNTS = 4,
    /* Core completes its text for a table of the caller, or for a routine. */
    RLK_TEMPLATE = 8,
    /* Its best plan depends on the size of our tables, so a plan must not be kept for long. */
    RLK_GROWS = 16,
    /* Waits if another transaction has the row locked. Its step for many handles does not. */
    RLK_BLOCKS = 32,
    /* It may be sent before our tables are there. A template may too. */
    RLK_BARE = 64,
    /* It grants locks. A member of a quorum does not do that alone. */
    RLK_GRANTS = 128,
    /* Upkeep of the queue: in a pool's line, others may overtake it. */
    RLK_GIVES_WAY = 256
};

#define RLK_CLIENT "host pid program note"
#define RLK_HOLDER "name slot owner token"
/* In a pack. JSON_TABLE reads each row from its beginning for each column, so texts come last. */
#define RLK_LEASE "slot token ttl name owner"
#define RLK_BATCH "after slot limit older until until_slot"
/* A row of rowlock_locks. Most steps add the clock when it was read. */
#define RLK_ROW "tintimmmititt"
/* The answer to a try, see struct rlk_grant. */
#define RLK_ANSWER "IBBbM|TINTIMMMITITT"

#define RLK_STEPS(STEP)                                                                            \
    STEP(SCHEMA, "schema", "", '-', "", RLK_BARE) /* create everything; several statements */      \
    STEP(DROP, "drop", "", '-', "", RLK_BARE) /* remove everything */                              \
    STEP(FACTS, "facts", "", '1', "tmbtbtbtbtbbbt|tbbbbb", RLK_READS) /* for rowlock_check() */    \
    STEP(GRANTS, "grants", "", '-', "", RLK_TEMPLATE) /* for people: install.c */                  \
    STEP(OBJECTS, "objects", "text", '*', "ttB|i", RLK_READS | RLK_WIDE | RLK_BARE)                \
    STEP(ROUTINES, "routines", "", '*', "t", RLK_READS | RLK_BARE) /* where OBJECTS misses some */ \
    STEP(UPGRADE, "upgrade", "", '-', "", RLK_BARE) /* blocks: admin/upgrade.c */                  \
    STEP(MAY_REMAKE, "may_remake", "", '-', "", RLK_BARE) /* where ROUTINES misses some */         \
    STEP(REMAKE, "remake", "", '-', "", RLK_TEMPLATE) /* a routine made again */                   \
    STEP(BLOCKERS, "blockers", "", '?', "t", RLK_READS | RLK_BARE) /* who has our tables locked */ \
    STEP(META, "meta", "", '?', "iiitiii", RLK_READS | RLK_BARE) /* the row of rowlock_meta */     \
    STEP(INSTALLED, "installed", "", '?', "i", RLK_READS | RLK_BARE) /* its version alone */       \
    STEP(NEW_IDENTITY, "new_identity", "", '-', "", 0) /* after a restore beside the original */   \
    /* locks */                                                                                    \
    STEP(STILL_HELD, "still_held", "name slot token", '?', "mmmm", RLK_READS)                      \
    STEP(STILL_HELD_MANY, "still_held_many", "name slot token ; pack count", '*', "i|mmmm",        \
         RLK_READS | RLK_WIDE)                                                                     \
    STEP(LOOK, "look", RLK_REQUEST, '?', RLK_ANSWER, RLK_READS) /* what keeps us out? */           \
    STEP(ACQUIRE_MET, "acquire_met", RLK_REQUEST, '1', "mMMMm", RLK_GRANTS) /* or still held? */   \
    STEP(ACQUIRE_USUAL, "acquire_usual", RLK_REQUEST, '1', RLK_ANSWER, RLK_GRANTS)                 \
    STEP(ACQUIRE, "acquire", RLK_REQUEST, '?', RLK_ANSWER, RLK_GRANTS)                             \
    STEP(ACQUIRE_USUAL_MANY, "acquire_usual_many", RLK_REQUEST " ; pack count", '*',               \
         "i" RLK_ANSWER, RLK_GROWS | RLK_GRANTS)                                                   \
    STEP(ACQUIRE_MANY, "acquire_many", RLK_REQUEST " ; pack count", '*', "i" RLK_ANSWER,           \
         RLK_GRANTS)                                                                               \
    STEP(ACQUIRE_ALL, "acquire_all",                                                               \
         "name owner request ticket ; permits ttl " RLK_CLIENT " unfair pack count", '*', "iIM",   \
         RLK_GRANTS)                                                                               \
    STEP(RENEW, "renew", RLK_HOLDER " ttl", '?', "mmm", RLK_BLOCKS)                                \
    STEP(RENEW_MANY, "renew_many", RLK_HOLDER " ttl ; pack count", '*', "i|mmm", RLK_GROWS)        \
    STEP(RENEW_USUAL, "renew_usual", RLK_HOLDER " ttl", '-', "", 0) /* a driver's, for RENEW */    \
    STEP(RENEW_ALL, "renew_all", RLK_LEASE " ; pack count", '*', "im", RLK_WIDE)                   \
    STEP(RENEW_ALL_USUAL, "renew_all_usual", RLK_LEASE " ; pack count", '-', "",                   \
         RLK_WIDE) /* the same for RENEW_ALL */                                                    \
    STEP(RELEASE, "release", RLK_HOLDER " joins", '?', "b", RLK_COUNTS | RLK_BLOCKS)               \
    STEP(RELEASE_MANY, "release_many", RLK_HOLDER " ; pack count", '*', "i|b", RLK_GROWS)          \
    STEP(WITHDRAW, "withdraw", "name owner request", '?', "b",                                     \
         RLK_COUNTS) /* a grant by its request */                                                  \
    STEP(LIFT, "lift", "name owner request token target holder", '?', "b", RLK_COUNTS)             \
    STEP(RETRACT, "retract", "name owner request token", '?', "b", RLK_COUNTS)                     \
    STEP(NOTE, "note", RLK_HOLDER " note", '-', "", 0) /* for people who read the table */         \
    STEP(VERIFY, "verify", RLK_HOLDER, '?', "mm", RLK_READS)                                       \
    STEP(GUARD, "guard", RLK_HOLDER " !changes", '?', "Ib", RLK_READS)                             \
    STEP(FENCE, "fence", "resource token", '?', "b", RLK_COUNTS)                                   \
    /* the queue */                                                                                \
    STEP(ENQUEUE, "enqueue", RLK_REQUEST " lease !wakeup", '1', "in.", 0) /* or renew its lease */ \
    STEP(ENQUEUE_MANY, "enqueue_many", RLK_REQUEST " lease wakeup ; pack count", '*', "i|in.",     \
         RLK_GIVES_WAY)                                                                            \
    STEP(LISTEN, "listen", "!wakeup", '1', "t", 0) /* for requests of other sessions too */        \
    STEP(LEAVE, "leave", "name request", '?', "b", RLK_COUNTS) /* give the ticket back */          \
    STEP(AWAIT, "await", "", '-', "", 0) /* wait for a wakeup, where that is a statement */        \
    STEP(WAKE, "wake", RLK_HOLDER " !wakeup", '?', ".", 0) /* a wake-up, or who needs it */        \
    STEP(CYCLE, "cycle", "name owner ticket", '?', "T", RLK_READS) /* a wait for itself? */        \
    STEP(WAITERS, "waiters", "name after ticket request limit", '*', "tiintmmtittm",               \
         RLK_READS | RLK_WIDE)                                                                     \
    /* operators */                                                                                \
    STEP(LIST, "list", "name after slot limit", '*', RLK_ROW "m", RLK_READS | RLK_WIDE)            \
    STEP(LAST, "last", "name", '?', "im", RLK_READS) /* highest token granted for a name */        \
    STEP(MEASURE, "measure", "", '1', "mmmmmmmMmMmmmmmimi", RLK_READS | RLK_WIDE)                  \
    STEP(MEASURE_NAMES, "measure_names", "glob after limit", '*', "timMMmmMm",                     \
         RLK_READS | RLK_WIDE)                                                                     \
    STEP(EXPIRED, "expired", "after slot limit older", '*', RLK_ROW "m", RLK_READS | RLK_WIDE)     \
    STEP(SWEEP, "sweep", RLK_BATCH, '*', RLK_ROW "m", 0) /* removes a batch and reports it */      \
    STEP(SWEEP_QUIET, "sweep_quiet", RLK_BATCH, '?', "mti", RLK_COUNTS) /* only how many */        \
    STEP(SWEEP_END, "sweep_end", "after slot limit", '?', "ti", RLK_READS) /* of a batch */        \
    STEP(SWEEP_KEYS, "sweep_keys", "slot token name ; older pack count", '-', "", RLK_WIDE)        \
    STEP(SWEEP_WAITERS, "sweep_waiters", "limit", '-', "", RLK_WIDE)                               \
    STEP(FOLD, "fold", "idle limit dry", '?', "m", RLK_WIDE | RLK_COUNTS) /* into the floor */     \
    STEP(SWEPT, "swept", "", '-', "", 0) /* a sweep has ended */                                   \
    STEP(BREAK, "break", "name token", '?', RLK_ROW "m", 0)                                        \
    STEP(EVENTS, "events", "", '?', "tT", RLK_READS) /* that sweep, where a server has events */   \
    STEP(MEMBERS, "members", "", '*', "nntbtmmmm", RLK_READS) /* of a quorum */                    \
    STEP(MEMBER, "member", "member members quorum self mark", '-', "", 0)                          \
    STEP(MOVE, "move", "member mark from to", '-', "", 0) /* a mark, on */                         \
    STEP(HIGHEST, "highest", "", '1', "mmmm", RLK_READS | RLK_WIDE) /* token, lease */             \
    STEP(RAISE, "raise", "by", '1', "i", RLK_WIDE) /* floor and counters, after a failover */      \
    /* keys claimed once, and walks */                                                             \
    STEP(ONCE_CLAIM, "once_claim", "key fingerprint claim ttl token", '-', "", 0)                  \
    STEP(ONCE_LOOK, "once_look", "key", '?', "itbT", RLK_READS)                                    \
    STEP(ONCE_COMPLETE, "once_complete", "result key claim", '-', "", 0)                           \
    STEP(ONCE_PROVE, "once_prove", "key claim", '-', "", 0) /* where a snapshot can hide it */     \
    STEP(ONCE_ABANDON, "once_abandon", "key claim", '-', "", 0)                                    \
    STEP(ONCE_FAIL, "once_fail", "result ttl key claim", '-', "", 0)                               \
    STEP(ONCE_SWEEP, "once_sweep", "older limit", '-', "", RLK_WIDE)                               \
    STEP(ONCE_LIST, "once_list", "first after limit", '*', "ttibMmmT", RLK_READS | RLK_WIDE)       \
    STEP(ONCE_FORGET, "once_forget", "key token", '-', "", 0)                                      \
    STEP(WALK_LOAD, "walk_load", "name", '?', "mttmmmmm", RLK_READS)                               \
    STEP(WALK_SAVE, "walk_save", "name step position pending rows written left conflicts failed",  \
         '-', "", 0)                                                                               \
    STEP(WALK_END, "walk_end", "name", '-', "", 0)                                                 \
    /* of the caller's own tables */                                                               \
    STEP(TABLE, "table", "", '*', "", RLK_TEMPLATE) /* what its columns are */                     \
    STEP(ROW_UPDATE, "row_update", "", '*', "", RLK_TEMPLATE) /* one row */                        \
    STEP(ROW_INSERT, "row_insert", "", '*', "", RLK_TEMPLATE)                                      \
    STEP(ROW_REMOVE, "row_remove", "", '*', "", RLK_TEMPLATE)                                      \
    STEP(ROW_READ, "row_read", "", '*', "", RLK_TEMPLATE)                                          \
    STEP(ROW_LOCK, "row_lock", "", '*', "", RLK_TEMPLATE) /* where reading does not lock */        \
    STEP(ROWS_UPDATE, "rows_update", "", '*', "", RLK_TEMPLATE) /* many rows, where one */         \
    STEP(ROWS_INSERT, "rows_insert", "", '*', "", RLK_TEMPLATE) /* statement takes them */         \
    STEP(ROWS_REMOVE, "rows_remove", "", '*', "", RLK_TEMPLATE)                                    \
    STEP(ROWS_READ, "rows_read", "", '*', "", RLK_TEMPLATE)                                        \
    STEP(ROWS_FIND, "rows_find", "", '*', "", RLK_TEMPLATE) /* which versions they have */         \
    STEP(ROWS_MARKED, "rows_marked", "", '*', "", RLK_TEMPLATE) /* what was done to them */        \
    STEP(ROWS_PAGE, "rows_page", "", '*', "", RLK_TEMPLATE) /* a walk */                           \
    STEP(ROWS_COUNT, "rows_count", "", '*', "", RLK_TEMPLATE)

#define RLK_REQUEST "name permits owner request ttl " RLK_CLIENT " ticket unfair joins"

#define RLK_STEP_ID(id, name, parameters, rows, columns, is) RLK_STEP_##id,
enum rlk_step { RLK_STEP_NONE, RLK_STEPS(RLK_STEP_ID) RLK_STEP_COUNT };
#undef RLK_STEP_ID

struct rlk_step_info {
    const char *name, *parameters, *columns;
    char rows;
    int is;
};
extern const struct rlk_step_info rlk_steps[RLK_STEP_COUNT];

static inline bool rlk_needs_tables(enum rlk_step step)
{
    return step && !(rlk_steps[step].is & (RLK_BARE | RLK_TEMPLATE));
}

/* The driver gives one of its values. */
bool rlk_has_own(enum rlk_step step);
/* How many values the step takes. */
size_t rlk_count_values(enum rlk_step step);
/* The step that does this one for many handles at once. RLK_STEP_NONE: there is none. */
enum rlk_step rlk_many_of(enum rlk_step step);

#endif
