/* SPDX-License-Identifier: MIT
 *
 * A scripted database and clock; see backend_script.h. Nothing here decides what is right.
 */
#include "backend_script.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUE_MAX = 64, CALLS_MAX = 4096 };

#define DB_NOW_US INT64_C(1700000000000000) /* the database's clock when ours shows nought */

struct script script;

/* Guards script and state. Not held while the hook runs. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    struct script_answer always[OP_COUNT], queue[OP_COUNT][QUEUE_MAX];
    int queued[OP_COUNT], taken[OP_COUNT], count[OP_COUNT];
    char calls[CALLS_MAX], asked[CALLS_MAX];
    int64_t token;
} state;

static const char *const op_names[OP_COUNT] = {
    "open",  "adopt", "close",     "install",  "meta",  "facts", "acquire",
    "probe", "renew", "release",   "verify",   "list",  "last",  "sweep",
    "fold",  "break", "renew_all", "withdraw", "guard", "fence", "raise",
};

static void enter(void)
{
    pthread_mutex_lock(&mutex);
}

static void leave(void)
{
    pthread_mutex_unlock(&mutex);
}

/* ---- the clock */

static int64_t real_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t script_clock(void)
{
    enter();
    int64_t now_us = script.ahead_us + (script.frozen ? 0 : real_us());
    leave();
    return now_us;
}

static int64_t db_now(void)
{
    return DB_NOW_US + script_clock();
}

void script_freeze(void)
{
    enter();
    script.ahead_us = script_clock();
    script.frozen = true;
    leave();
}

void script_pass_ms(int64_t ms)
{
    enter();
    script.ahead_us += ms * 1000;
    leave();
}

/* ---- answers */

/* A child has one thread, and a mutex that nobody holds. */
static void renew_mutex(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void script_reset(void)
{
    static bool at_fork;
    if (!at_fork)
        at_fork = pthread_atfork(enter, leave, renew_mutex) == 0;
    memset(&script, 0, sizeof script);
    memset(&state, 0, sizeof state);
    rlk_clock = script_clock;
}

void script_next(enum script_op op, struct script_answer answer)
{
    enter();
    if (state.queued[op] == QUEUE_MAX)
        abort();
    state.queue[op][state.queued[op]++] = answer;
    leave();
}

void script_always(enum script_op op, struct script_answer answer)
{
    enter();
    state.always[op] = answer;
    leave();
}

void script_hook(void (*hook)(enum script_op op))
{
    enter();
    script.hook = hook;
    leave();
}

const char *script_calls(void)
{
    enter();
    memcpy(state.asked, state.calls, sizeof state.asked);
    state.calls[0] = '\0';
    leave();
    return state.asked;
}

int script_count(enum script_op op)
{
    enter();
    int count = state.count[op];
    leave();
    return count;
}

int script_leases(int nth)
{
    enter();
    int count = nth < script.lease_call_count ? script.lease_counts[nth] : -1;
    leave();
    return count;
}

static void note_call(enum script_op op)
{
    size_t used = strlen(state.calls);
    state.count[op]++;
    snprintf(state.calls + used, sizeof state.calls - used, "%s%s", used ? " " : "", op_names[op]);
}

static struct script_answer take(enum script_op op, struct rlk_call *call)
{
    enter();
    call->inside = call->where != RLK_OUTSIDE && script.inside;
    if (call->where == RLK_INSIDE && !call->inside) {
        leave();
        return FAILS(RLK_NO_TX);
    }
    struct script_answer answer =
        state.taken[op] < state.queued[op] ? state.queue[op][state.taken[op]++] : state.always[op];
    note_call(op);
    void (*hook)(enum script_op) = script.hook;
    leave();
    if (hook)
        hook(op);
    enter();
    script.ahead_us += answer.takes_us;
    script.deadline_us = call->deadline_us;
    script.where = call->where;
    leave();
    call->tx_over = answer.tx_over;
    if (answer.class != RLK_DONE && answer.text)
        rlk_diag_set(call, answer.native, answer.sqlstate, answer.text);
    return answer;
}

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static void note_held(const struct rlk_held *held)
{
    enter();
    script.held = *held;
    leave();
}

static int64_t token_so_far(void)
{
    enter();
    int64_t token = state.token;
    leave();
    return token;
}

static void fill_row(struct rlk_row *row, const struct script_answer *answer, const char *name,
                     const char *owner, int64_t ttl_us)
{
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->owner, sizeof row->owner, "%s", owner);
    snprintf(row->host, sizeof row->host, "elsewhere");
    snprintf(row->program, sizeof row->program, "rival");
    snprintf(row->note, sizeof row->note, "a note");
    row->token = or_else(answer->token, token_so_far());
    row->now_us = db_now();
    row->ttl_us = ttl_us;
    row->expires_us = row->now_us + or_else(answer->left_us, ttl_us);
    row->acquired_us = row->expires_us - ttl_us;
    row->pid = 4711;
}

/* ---- the backend's operations */

static enum rlk_class script_backend_open(void *conn, struct rlk_call *call,
                                          const struct rlk_target *target,
                                          const struct rlk_texts *texts, struct rlk_hello *hello)
{
    (void)conn;
    (void)target;
    (void)texts;
    hello->several = script.several;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(OP_OPEN, call).class;
}

static enum rlk_class script_backend_adopt(void *conn, struct rlk_call *call, void *vendor,
                                           const struct rlk_texts *texts, struct rlk_hello *hello)
{
    (void)conn;
    (void)vendor;
    (void)texts;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(OP_ADOPT, call).class;
}

static void script_backend_close(void *conn, bool in_child)
{
    (void)conn;
    enter();
    state.count[OP_CLOSE]++;
    script.closed_in_child = in_child;
    leave();
}

static enum rlk_class script_install(void *conn, struct rlk_call *call)
{
    (void)conn;
    return take(OP_INSTALL, call).class;
}

static enum rlk_class script_meta(void *conn, struct rlk_call *call, struct rlk_meta *out)
{
    (void)conn;
    struct script_answer answer = take(OP_META, call);
    out->found = !answer.missing;
    out->version = answer.version ? answer.version : RLK_SCHEMA_VERSION;
    snprintf(out->identity, sizeof out->identity, "%s",
             answer.identity ? answer.identity : "first");
    return answer.class;
}

static enum rlk_class script_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    (void)conn;
    struct script_answer answer = take(OP_FACTS, call);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(out->server, sizeof out->server, "Script 1");
    snprintf(out->isolation, sizeof out->isolation, "read committed");
    out->crash_safe = out->bytewise = out->durable = out->may_lock = true;
    out->read_only = answer.missing;
    out->replication_known = answer.rows < 2;
    out->replicates_late = answer.rows == 1;
    if (answer.rows < 2)
        snprintf(out->replication, sizeof out->replication, "%d late", answer.rows);
    out->now_us = (int64_t)now.tv_sec * 1000000 + answer.left_us;
    return answer.class;
}

static enum rlk_class script_acquire(void *conn, struct rlk_call *call,
                                     const struct rlk_claim *claim, struct rlk_grant *out)
{
    (void)conn;
    struct script_answer answer = take(OP_ACQUIRE, call);
    enter();
    int count = (int)(sizeof script.attempts / sizeof script.attempts[0]);
    script.claim = *claim;
    if (script.attempt_count < count)
        script.attempts[script.attempt_count++] = claim->attempt;
    out->outcome = answer.outcome;
    if (answer.class == RLK_DONE && answer.outcome == RLK_GRANTED && !answer.token)
        state.token++;
    if (answer.outcome != RLK_IN_FLIGHT)
        fill_row(&out->row, &answer, claim->name,
                 answer.outcome == RLK_GRANTED ? claim->owner : "rival", claim->ttl_us);
    leave();
    return answer.class;
}

static enum rlk_class script_probe(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                                   struct rlk_grant *out)
{
    (void)conn;
    struct script_answer answer = take(OP_PROBE, call);
    out->outcome = answer.outcome == RLK_GRANTED ? RLK_HELD : answer.outcome;
    if (out->outcome == RLK_HELD)
        fill_row(&out->row, &answer, claim->name, "rival", claim->ttl_us);
    return answer.class;
}

static enum rlk_class script_renew(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                   int64_t ttl_us, struct rlk_renewal *out)
{
    (void)conn;
    struct script_answer answer = take(OP_RENEW, call);
    note_held(held);
    enter();
    script.renew_ttl_us = ttl_us;
    leave();
    out->found = !answer.missing;
    out->now_us = db_now();
    out->expires_us = out->now_us + or_else(answer.left_us, ttl_us);
    out->lapsed_us = answer.lapsed_us;
    return answer.class;
}

static enum rlk_class script_release(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                     bool *found)
{
    (void)conn;
    struct script_answer answer = take(OP_RELEASE, call);
    note_held(held);
    *found = answer.class == RLK_DONE && !answer.missing;
    return answer.class;
}

static enum rlk_class script_verify(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                    struct rlk_verified *out)
{
    (void)conn;
    struct script_answer answer = take(OP_VERIFY, call);
    note_held(held);
    out->found = !answer.missing;
    out->now_us = db_now();
    out->expires_us = out->now_us + or_else(answer.left_us, 1000000);
    return answer.class;
}

/* So many rows, named in order after the given name. True if the caller wants no more. */
static void give_rows(const struct script_answer *answer, const char *after, rlk_row_fn *each,
                      void *context, struct rlk_row *last)
{
    int first = 0;
    snprintf(script.last_after, sizeof script.last_after, "%s", after);
    if (sscanf(after, "lock %d", &first) == 1)
        first++;
    for (int i = 0; i < answer->rows; i++) {
        char name[40];
        struct rlk_row row;
        snprintf(name, sizeof name, "lock %06d", first + i);
        fill_row(&row, answer, name, "rival", 1000000);
        if (last)
            *last = row;
        if (each(context, &row) != 0)
            return;
    }
}

static enum rlk_class script_list(void *conn, struct rlk_call *call, const char *name,
                                  const char *after_name, int after_slot, int limit,
                                  rlk_row_fn *each, void *context)
{
    (void)conn;
    (void)name;
    (void)after_slot;
    (void)limit;
    struct script_answer answer = take(OP_LIST, call);
    give_rows(&answer, after_name, each, context, NULL);
    return answer.class;
}

static enum rlk_class script_last(void *conn, struct rlk_call *call, const char *name, bool *found,
                                  int64_t *token, int64_t *granted_us)
{
    (void)conn;
    (void)name;
    struct script_answer answer = take(OP_LAST, call);
    *found = answer.class == RLK_DONE && !answer.missing;
    if (*found) {
        *token = or_else(answer.token, token_so_far());
        *granted_us = db_now();
    }
    return answer.class;
}

static enum rlk_class script_sweep(void *conn, struct rlk_call *call, const struct rlk_sweep *sweep,
                                   int *seen, struct rlk_row *last, rlk_row_fn *each, void *context)
{
    (void)conn;
    struct script_answer answer = take(OP_SWEEP, call);
    script.sweep = *sweep;
    if (answer.class != RLK_DONE)
        return answer.class;
    char after[RLK_TEXT_MAX + 1];
    snprintf(after, sizeof after, "%s", sweep->after_name);
    give_rows(&answer, after, each, context, last);
    *seen = answer.rows;
    return RLK_DONE;
}

static enum rlk_class script_fold(void *conn, struct rlk_call *call, struct rlk_fold *fold)
{
    (void)conn;
    struct script_answer answer = take(OP_FOLD, call);
    script.fold = *fold;
    if (answer.class == RLK_DONE)
        fold->folded = answer.rows;
    return answer.class;
}

static enum rlk_class script_break(void *conn, struct rlk_call *call, const char *name, int slot,
                                   int64_t token, bool *found, struct rlk_row *broken)
{
    (void)conn;
    (void)slot;
    (void)token;
    struct script_answer answer = take(OP_BREAK, call);
    *found = answer.class == RLK_DONE && !answer.missing;
    if (*found)
        fill_row(broken, &answer, name, "rival", 1000000);
    return answer.class;
}

static void note_leases(const struct rlk_lease *leases, size_t count)
{
    int most = (int)(sizeof script.lease_counts / sizeof script.lease_counts[0]);
    enter();
    script.lease_token = leases[0].held.token;
    if (script.lease_call_count < most)
        script.lease_counts[script.lease_call_count++] = (int)count;
    leave();
}

static enum rlk_class script_renew_all(void *conn, struct rlk_call *call, struct rlk_lease *leases,
                                       size_t count, int64_t *now_us)
{
    (void)conn;
    note_leases(leases, count);
    struct script_answer answer = take(OP_RENEW_ALL, call);
    for (size_t i = 0; i < count && answer.class == RLK_DONE && !answer.missing; i++)
        leases[i].renewed = !answer.but || strcmp(leases[i].held.name, answer.but) != 0;
    *now_us = db_now();
    return answer.class;
}

static enum rlk_class script_withdraw(void *conn, struct rlk_call *call,
                                      const struct rlk_claim *claim, bool *found)
{
    (void)conn;
    struct script_answer answer = take(OP_WITHDRAW, call);
    enter();
    script.withdrawn = claim->attempt;
    leave();
    *found = answer.class == RLK_DONE && !answer.missing;
    return answer.class;
}

static enum rlk_class script_guard(void *conn, struct rlk_call *call, const char *name, bool *found,
                                   int64_t *token)
{
    (void)conn;
    (void)name;
    struct script_answer answer = take(OP_GUARD, call);
    *found = answer.class == RLK_DONE && !answer.missing;
    *token = or_else(answer.token, token_so_far());
    return answer.class;
}

static enum rlk_class script_fence(void *conn, struct rlk_call *call, const char *resource,
                                   int64_t token, bool *accepted)
{
    (void)conn;
    (void)resource;
    (void)token;
    struct script_answer answer = take(OP_FENCE, call);
    *accepted = answer.class == RLK_DONE && !answer.missing;
    return answer.class;
}

static enum rlk_class script_raise(void *conn, struct rlk_call *call, int64_t by, int64_t *floor)
{
    (void)conn;
    struct script_answer answer = take(OP_RAISE, call);
    *floor = or_else(answer.token, token_so_far() + by);
    return answer.class;
}

/* ---- in the place of src/backends.c */

static const char *const schemes[] = {"postgresql", "mysql", "sqlite", NULL};

/* It takes SQLite's name for the sake of its statements, which core expands and nobody sends
 * here. */
static struct rlk_backend backend = {
    .name = "sqlite",
    .schemes = schemes,
    .conn_size = 64,
    .quote = '"',
    .open = script_backend_open,
    .adopt = script_backend_adopt,
    .close = script_backend_close,
    .install = script_install,
    .meta = script_meta,
    .facts = script_facts,
    .acquire = script_acquire,
    .probe = script_probe,
    .renew = script_renew,
    .release = script_release,
    .verify = script_verify,
    .list = script_list,
    .last = script_last,
    .sweep = script_sweep,
    .fold = script_fold,
    .break_grant = script_break,
    .renew_all = script_renew_all,
    .withdraw = script_withdraw,
    .guard = script_guard,
    .fence = script_fence,
    .raise_tokens = script_raise,
};

/* "mariadb" stands for a database that is known but not built in. */
const struct rlk_backend *rlk_backend_find(const char *scheme, bool *known)
{
    *known = strcmp(scheme, "mariadb") == 0;
    for (size_t i = 0; schemes[i]; i++)
        if (strcmp(schemes[i], scheme) == 0)
            *known = true;
    backend.probes_first = script.probes_first;
    return *known && strcmp(scheme, "mariadb") != 0 ? &backend : NULL;
}

/* ---- handles */

static void give_up(const rowlock_error *err)
{
    printf("Bail out! the scripted database does not open: %s\n", err->text);
    exit(1);
}

static rowlock_db *shorten(rowlock_db *db)
{
    db->statement_us = SCRIPT_MOMENT_MS * 1000;
    db->reconnect_us = db->reconnect_us ? SCRIPT_MOMENT_MS * 1000 : 0;
    script_calls();
    return db;
}

rowlock_db *script_open(const rowlock_db_options *options)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_db_open(&db, "sqlite:script", options, &err) != ROWLOCK_OK)
        give_up(&err);
    return shorten(db);
}

rowlock_db *script_adopt(void)
{
    static int vendor;
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (rowlock_db_adopt_sqlite(&db, (struct sqlite3 *)(void *)&vendor, NULL, &err) != ROWLOCK_OK)
        give_up(&err);
    return shorten(db);
}
