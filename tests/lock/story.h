/* SPDX-License-Identifier: MIT
 *
 * A story of one handle, told as a table: each row is a call or a look, what the scripted database
 * answers to it, and what must come of it. See backend_script.h for the answers. */
#pragma once

#include "backend_script.h"

/* Who the rows are about. */
extern struct story {
    rowlock_db *db;
    rowlock_lock *lock;
    rowlock_keeper *keeper; /* NULL: none */
    rowlock_db *tx; /* has adopted a connection of the caller's; NULL: none */
} story;

/* What the database answers: to the next call, or to every call from now on. */
struct story_answer {
    enum { NO_ANSWER, ONCE, ALWAYS } how;
    enum script_op op;
    struct script_answer answer;
};
/* clang-format off */
#define ANSWERS(...) {__VA_ARGS__}
#define SAYS(op, ...) {ONCE, OP_##op, {__VA_ARGS__}}
#define ALWAYS_SAYS(op, ...) {ALWAYS, OP_##op, {__VA_ARGS__}}
/* clang-format on */
#define STORY_FAILURE(as) .class = RLK_##as, .text = "the server's own words"
#define FAILED(op, as) SAYS(op, STORY_FAILURE(as))
#define LOST(op) FAILED(op, UNCERTAIN)
#define GONE(op) SAYS(op, .missing = true)
#define ALWAYS_FAILED(op, as) ALWAYS_SAYS(op, STORY_FAILURE(as))
#define ALWAYS_GONE(op) ALWAYS_SAYS(op, .missing = true)
#define ALWAYS_DONE(op) ALWAYS_SAYS(op, .class = RLK_DONE)

/* In this order: a new story begins, the database learns its answers, the clock goes on, the call is
 * made. A row names only what it needs. */
enum { STORY_ANSWERS = 5 };
struct story_row {
    const char *what; /* a sentence */
    int64_t (*call)(int64_t with);
    int64_t want;
    struct story_answer answers[STORY_ANSWERS];
    const char *calls; /* asked by then in this row, as script_calls() has it; NULL: anything */
    int64_t with, after_ms;
    void (*begin)(void); /* the rows from here on are another story, which begins so */
};
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define TELL(rows) story_tell(rows, sizeof(rows) / sizeof(rows)[0])
void story_tell(const struct story_row *rows, size_t count);

/* Beginnings, which end the story before: a handle; one that holds the lock; one on an adopted connection; one that is attached to
 * token 41. The clock is that of script_jump(). If it is ticking it is the real one, and if it is frozen it stands still. */
void opened(void);
void opened_with(const rowlock_db_options *options);
void holding(void);
void adopted(void);
void ticking(void);
void frozen(void);
void frozen_holding(void);
void attached(void);
void enter_transaction(void); /* tx is inside one from now on */
void story_end(void);

enum { STORY_TTL_MS = 10000 };

/* A call or look of a test's own, of the row's argument "with". */
#define CALL(name, result)             \
    static int64_t name(int64_t with); \
    STORY_CALL(name, result)
#define STORY_CALL(name, result)  \
    int64_t name(int64_t with)    \
    {                             \
        return (int64_t)(result); \
    }                             \
    int64_t name(int64_t with)

/* Calls, and their results. ttl_ms 0: without options, or as before. */
int64_t acquires(int64_t ttl_ms);
int64_t renews(int64_t ttl_ms);
int64_t verifies(int64_t unused);
int64_t releases(int64_t unused);
int64_t closes(int64_t unused); /* and opens another handle of that name, which asks nothing */
int64_t closes_db(int64_t unused);
int64_t closes_keeper(int64_t unused);
int64_t forgets(int64_t unused);
int64_t guards(int64_t unused);
int64_t releases_in_tx(int64_t unused);

/* Looks. */
int64_t its_token(int64_t unused);
int64_t its_state(int64_t unused);
int64_t remaining_ms(int64_t unused);
int64_t error_kept(int64_t unused);
int64_t holder_known(int64_t unused); /* a result */
int64_t slot_asked(int64_t unused); /* of the last call that spoke of a grant */
int64_t
new_requests(int64_t unused); /* how often the request number changed between two acquires */

/* Makes every call on handles of which nothing can be asked. Returns the first that is not EMISUSE and
 * tells of something, or NULL. Leaves aside calls whose names here begin with but; NULL: none. */
const char *accepted(rowlock_db *db, rowlock_lock *lock, const char *but);
