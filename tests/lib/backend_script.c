/* SPDX-License-Identifier: MIT
 *
 * A scripted database and clock; see backend_script.h. Nothing here decides what is right.
 */
#include "backend_script.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 64, CALLS_MAX = 4096 };

#define DB_NOW_US INT64_C(1700000000000000) /* the database's clock when ours shows nought */

struct script script;

/* Guards script and state. Not held while the hook runs. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    struct script_answer always[OP_COUNT], queue[OP_COUNT][QUEUE_MAX];
    int queued[OP_COUNT], taken[OP_COUNT], count[OP_COUNT];
    int total;
    char calls[CALLS_MAX], asked[CALLS_MAX];
    int64_t token;
    int64_t ticket; /* the last one that was given out */
    int64_t ticket_of; /* the attempt that has it; 0: nobody stands in line */
    bool hears; /* it was taken on this connection */
    bool jumps;
    pthread_t jumper;
    bool in_tx; /* a transaction of ours is open */
    int queries;
} state;

enum { QUERIES_KEPT = 64 };
static struct script_query queries[QUERIES_KEPT];

/* What the seam calls conn. */
struct connection {
    bool adopted, in_tx;
    const struct rlk_texts *texts;
};

static int bell = -1; /* readable once it was rung */
static const char *home = "postgres"; /* the dialect after a reset */

static const char *const op_names[OP_COUNT] = {
    [OP_OPEN] = "open",
    [OP_ADOPT] = "adopt",
    [OP_CLOSE] = "close",
    [OP_INSTALL] = "install",
    [OP_META] = "meta",
    [OP_FACTS] = "facts",
    [OP_ACQUIRE] = "acquire",
    [OP_ACQUIRE_ALL] = "acquire_all",
    [OP_ENQUEUE] = "enqueue",
    [OP_LEAVE] = "leave",
    [OP_AWAIT] = "await",
    [OP_CYCLE] = "cycle",
    [OP_WAITERS] = "waiters",
    [OP_DOWNGRADE] = "downgrade",
    [OP_RENEW] = "renew",
    [OP_RELEASE] = "release",
    [OP_VERIFY] = "verify",
    [OP_LIST] = "list",
    [OP_LAST] = "last",
    [OP_SWEEP] = "sweep",
    [OP_SWEEP_WAITERS] = "sweep_waiters",
    [OP_FOLD] = "fold",
    [OP_BREAK] = "break",
    [OP_RENEW_ALL] = "renew_all",
    [OP_WITHDRAW] = "withdraw",
    [OP_GUARD] = "guard",
    [OP_FENCE] = "fence",
    [OP_RAISE] = "raise",
    [OP_TABLE] = "table",
    [OP_ROW_UPDATE] = "row_update",
    [OP_ROW_INSERT] = "row_insert",
    [OP_ROW_REMOVE] = "row_remove",
    [OP_ROW_READ] = "row_read",
    [OP_ROW_LOCK] = "row_lock",
    [OP_ROWS_UPDATE] = "rows_update",
    [OP_ROWS_INSERT] = "rows_insert",
    [OP_ROWS_REMOVE] = "rows_remove",
    [OP_ROWS_FIND] = "rows_find",
    [OP_ROWS_MARKED] = "rows_marked",
    [OP_ROWS_PAGE] = "rows_page",
    [OP_ROWS_COUNT] = "rows_count",
    [OP_ONCE_CLAIM] = "once_claim",
    [OP_ONCE_LOOK] = "once_look",
    [OP_ONCE_COMPLETE] = "once_complete",
    [OP_ONCE_PROVE] = "once_prove",
    [OP_ONCE_ABANDON] = "once_abandon",
    [OP_ONCE_SWEEP] = "once_sweep",
    [OP_ONCE_LIST] = "once_list",
    [OP_ONCE_FORGET] = "once_forget",
    [OP_WALK_LOAD] = "walk_load",
    [OP_WALK_SAVE] = "walk_save",
    [OP_WALK_END] = "walk_end",
    [OP_OBJECTS] = "objects",
    [OP_NEW_IDENTITY] = "new_identity",
    [OP_BEGIN] = "begin",
    [OP_COMMIT] = "commit",
    [OP_ROLLBACK] = "rollback",
    [OP_SAVE] = "save",
    [OP_KEEP] = "keep",
    [OP_UNDO] = "undo",
    [OP_LOOK] = "look",
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

void script_jump(void)
{
    script_freeze();
    enter();
    state.jumps = true;
    state.jumper = pthread_self();
    leave();
}

static bool jumps_here(void)
{
    enter();
    bool jumps = state.jumps && pthread_equal(state.jumper, pthread_self());
    leave();
    return jumps;
}

static int poll_for_ms(struct pollfd *fds, nfds_t count, int64_t timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    return ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

/* All pauses of core are made by it. */
static int script_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!jumps_here())
        return poll_for_ms(fds, count, timeout_ms);
    int ready = poll_for_ms(fds, count, 0);
    if (ready == 0)
        script_pass_ms(timeout_ms);
    return ready;
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
    if (bell >= 0)
        close(bell);
    bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    script_dialect(home);
    rlk_clock = script_clock;
    rlk_poll = script_poll;
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

const struct script_query *script_query(int back)
{
    enter();
    int at = state.queries - 1 - back;
    if (back < 0 || back >= QUERIES_KEPT || at < 0)
        abort();
    leave();
    return &queries[at % QUERIES_KEPT];
}

bool script_in_tx(void)
{
    enter();
    bool in_tx = state.in_tx;
    leave();
    return in_tx;
}

static void note_call(enum script_op op)
{
    size_t used = strlen(state.calls);
    if (op == OP_LOOK)
        return;
    state.count[op]++;
    state.total++;
    snprintf(state.calls + used, sizeof state.calls - used, "%s%s", used ? " " : "", op_names[op]);
}

/* The tables are changed before the answer is under way, so that a hook finds them so. */
static void carry_out(enum script_op op, const struct script_answer *answer, int64_t attempt)
{
    if (op == OP_OPEN)
        state.hears = false;
    if (answer->class != RLK_DONE)
        return;
    if (op == OP_ENQUEUE) {
        if (state.ticket_of != attempt)
            state.ticket++;
        state.ticket_of = attempt;
        state.hears = !answer->no_bell;
    }
    bool granted = (op == OP_ACQUIRE || op == OP_ACQUIRE_ALL) && answer->outcome == RLK_GRANTED;
    if (op == OP_LEAVE || granted)
        state.ticket_of = 0;
}

static struct script_answer take_for(enum script_op op, struct rlk_call *call, int64_t attempt)
{
    enter();
    call->inside = call->where != RLK_OUTSIDE && (script.inside || state.in_tx);
    if (call->where == RLK_INSIDE && !call->inside) {
        leave();
        return FAILS(RLK_NO_TX);
    }
    struct script_answer answer =
        state.taken[op] < state.queued[op] ? state.queue[op][state.taken[op]++] : state.always[op];
    note_call(op);
    if (state.total == script.fail_at)
        answer = FAILS(script.fail_as);
    carry_out(op, &answer, attempt);
    void (*hook)(enum script_op) = script.hook;
    leave();
    if (hook)
        hook(op);
    enter();
    script.ahead_us += answer.takes_us;
    script.deadline_us = call->deadline_us;
    script.where = call->where;
    leave();
    call->late = answer.late;
    call->constraint = (enum rowlock_constraint)answer.constraint;
    call->tx_over = answer.tx_over;
    if (answer.class != RLK_DONE && answer.text)
        rlk_diag_set(call, answer.native, answer.sqlstate, answer.text);
    return answer;
}

static struct script_answer take(enum script_op op, struct rlk_call *call)
{
    return take_for(op, call, 0);
}

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static void note_held(const struct rlk_held *held)
{
    int most = (int)(sizeof script.slots / sizeof script.slots[0]);
    enter();
    script.held = *held;
    if (script.slot_count < most)
        script.slots[script.slot_count++] = held->slot;
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
    row->token = or_else(or_else(answer->token, token_so_far()), 1);
    row->now_us = db_now();
    row->ttl_us = ttl_us;
    row->expires_us = row->now_us + or_else(answer->left_us, ttl_us);
    row->acquired_us = row->expires_us - ttl_us;
    row->pid = 4711;
}

static void fill_grant(struct rlk_grant *out, const struct script_answer *answer,
                       const struct rlk_claim *claim)
{
    bool granted = answer->outcome == RLK_GRANTED;
    out->outcome = answer->outcome;
    out->behind = answer->behind || answer->outcome == RLK_BEHIND;
    out->settling = answer->settling;
    if (granted && answer->class == RLK_DONE && !answer->token)
        state.token++;
    if (!granted && answer->outcome != RLK_HELD)
        return;
    fill_row(&out->row, answer, claim->name, granted ? claim->owner : "rival", claim->ttl_us);
    out->row.permits = granted ? claim->permits : answer->permits;
    out->row.slot = rlk_slot(out->row.permits, out->row.token);
}

/* ---- the backend's operations */

static enum rlk_class script_backend_open(void *conn, struct rlk_call *call,
                                          const struct rlk_target *target,
                                          const struct rlk_texts *texts, struct rlk_hello *hello)
{
    ((struct connection *)conn)->adopted = false;
    ((struct connection *)conn)->texts = texts;
    (void)target;
    hello->several = script.several;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(OP_OPEN, call).class;
}

static enum rlk_class script_backend_adopt(void *conn, struct rlk_call *call, void *vendor,
                                           const struct rlk_texts *texts, struct rlk_hello *hello)
{
    ((struct connection *)conn)->adopted = true;
    ((struct connection *)conn)->texts = texts;
    (void)vendor;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(OP_ADOPT, call).class;
}

static void script_backend_close(void *conn, bool in_child)
{
    const struct connection *c = conn;
    enter();
    state.in_tx = state.in_tx && !c->in_tx;
    state.count[OP_CLOSE]++;
    script.closed_in_child = in_child;
    leave();
}

static void script_enter_thread(void)
{
    enter();
    script.threads_entered++;
    leave();
}

static void script_leave_thread(void)
{
    enter();
    script.threads_left++;
    leave();
}

static enum rlk_class script_install(void *conn, struct rlk_call *call)
{
    (void)conn;
    return take(OP_INSTALL, call).class;
}

/* The step has said it all. */
static enum rlk_class script_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    (void)conn, (void)call, (void)out;
    return RLK_DONE;
}

static void note_attempt(const struct rlk_claim *claim, int64_t asked_us)
{
    int most = (int)(sizeof script.attempts / sizeof script.attempts[0]);
    script.claim = *claim;
    if (script.attempt_count == most)
        return;
    script.acquired_us[script.attempt_count] = asked_us;
    script.attempts[script.attempt_count++] = claim->attempt;
}

/* ---- the line */

static void note_line(const struct rlk_claim *claim)
{
    script.in_line = *claim;
    snprintf(script.line, sizeof script.line, "%s", claim->name);
}

bool script_ring(void)
{
    static const uint64_t one = 1;
    enter();
    bool heard = state.ticket_of != 0 && state.hears && write(bell, &one, sizeof one) > 0;
    leave();
    return heard;
}

/* A look at the bell and at the descriptor, for so long. */
static bool hears(int wake, int64_t timeout_ms, enum rlk_bell *out)
{
    uint64_t rings;
    struct pollfd fds[] = {{.fd = bell, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
    if (poll_for_ms(fds, 2, timeout_ms) <= 0)
        return false;
    bool rung = fds[0].revents && read(bell, &rings, sizeof rings) > 0;
    *out = rung ? RLK_RUNG : RLK_INTERRUPTED;
    return true;
}

static enum rlk_bell await_by_itself(int64_t deadline_us, int wake)
{
    enum rlk_bell heard = RLK_SILENT;
    for (;;) {
        int64_t left_us = deadline_us - script_clock();
        enter();
        bool frozen = script.frozen;
        leave();
        if (hears(wake, frozen || left_us <= 0 ? 0 : left_us / 1000 + 1, &heard) || left_us <= 0)
            return heard;
        if (!frozen)
            continue;
        enter();
        script.ahead_us += left_us;
        leave();
        return RLK_SILENT;
    }
}

/* As the databases do: a connection on which no ticket was taken hears no bell. */
static enum rlk_bell await_bell(const struct script_answer *answer, int64_t deadline_us, int wake)
{
    enter();
    bool deaf = answer->bell == BELL_DEAF || !state.hears;
    leave();
    if (deaf)
        return RLK_DEAF;
    return answer->bell == BELL_RUNG          ? RLK_RUNG
           : answer->bell == BELL_INTERRUPTED ? RLK_INTERRUPTED
                                              : await_by_itself(deadline_us, wake);
}

static enum rlk_class script_await(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                                   int wake, enum rlk_bell *out)
{
    (void)conn;
    struct script_wait wait = {.from_us = script_clock(), .until_us = call->deadline_us};
    struct script_answer answer = take(OP_AWAIT, call);
    enter();
    script.in_line = *claim;
    leave();
    if (answer.bell == BELL_INTERRUPTED) /* which may cost the connection, too */
        *out = RLK_INTERRUPTED;
    if (answer.class != RLK_DONE)
        return answer.class;
    *out = wait.bell = await_bell(&answer, call->deadline_us, wake);
    enter();
    if (script.wait_count < (int)(sizeof script.waits / sizeof script.waits[0]))
        script.waits[script.wait_count++] = wait;
    leave();
    return RLK_DONE;
}

/* The nth living waiter in one line. */
static struct rlk_waiter waiter_in_crowd(int64_t ticket)
{
    struct rlk_waiter w = {
        .name = "crowd", .ticket = ticket, .attempt = ticket, .now_us = db_now()};
    w.expires_us = w.now_us + 15000000;
    return w;
}

/* ---- queries */

static const char *or_text(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static void give_column(struct rlk_query *query, const struct script_column *column)
{
    const rowlock_value cells[] = {rowlock_text(column->name),
                                   rowlock_text(column->category),
                                   rowlock_bool(!column->may_be_null),
                                   rowlock_int(column->most),
                                   rowlock_text(or_text(column->wire, "x")),
                                   rowlock_text(or_text(column->unpack, "%")),
                                   rowlock_text(or_text(column->value, "%")),
                                   rowlock_text(or_text(column->match, "%")),
                                   rowlock_text(or_text(column->show, "%")),
                                   rowlock_text(or_text(column->uniques, "")),
                                   rowlock_text("home"),
                                   rowlock_text("# ~ %")};
    query->each(query->context, cells, sizeof cells / sizeof cells[0]);
}

static void give_columns(struct rlk_query *query)
{
    static const struct script_column usual[] = {
        {.name = "id", .category = "int", .most = INT64_MAX, .uniques = "pk/1"},
        {.name = "price", .category = "decimal", .may_be_null = true},
        {.name = "note", .category = "text", .may_be_null = true},
        {.name = "version", .category = "int", .most = INT64_MAX},
        {.name = NULL},
    };
    static const char *const kinds[] = {"int", "bool", "real", "decimal", "text", "time", "bytes"};
    for (const struct script_column *c = script.columns ? script.columns : usual; c->name; c++)
        give_column(query, c);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        give_column(query, &(struct script_column){.category = kinds[i], .wire = kinds[i]});
}

static struct rlk_backend backend;

/* The expected version, or the first one, comes last; a dialect without RETURNING tells the number of rows
 * only. */
static void give_applied(enum script_op op, struct rlk_query *query)
{
    rowlock_value version = query->values[query->count - 1];
    version.number += op == OP_ROW_UPDATE;
    query->changed = 1;
    if (backend.packing != RLK_JSON)
        query->each(query->context, &version, 1);
}

static void give_cells(const struct script_answer *answer, struct rlk_query *query)
{
    const rowlock_value *row = answer->cells;
    for (int i = 0; i < answer->rows && query->each; i++, row += answer->width)
        if (query->each(query->context, row, answer->width) != 0)
            return;
}

static void answer_query(enum script_op op, const struct script_answer *answer,
                         struct rlk_query *query)
{
    bool one = op == OP_ROW_UPDATE || op == OP_ROW_INSERT || op == OP_ROW_REMOVE;
    query->changed = answer->changed;
    if (answer->give)
        answer->give(query);
    else if (answer->class != RLK_DONE || answer->missing)
        return;
    else if (answer->cells)
        give_cells(answer, query);
    else if (op == OP_TABLE)
        give_columns(query);
    else if (one && answer->changed == 0)
        give_applied(op, query);
}

/* ---- steps: what was asked, by the names of the list of steps, and the cells of the answer */

static _Thread_local const struct rlk_texts *texts_now;

static const rowlock_value *given(const struct rlk_query *query, const char *name)
{
    static const rowlock_value none;
    const struct rlk_order *order = &texts_now->order[query->step];
    size_t length = strlen(name);
    int index = 0;
    for (const char *at = rlk_steps[query->step].parameters; *at;) {
        at += *at == '!';
        if (strncmp(at, name, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            break;
        index += *at != ';';
        size_t here = strcspn(at, " ");
        at += here + (at[here] == ' ');
    }
    for (size_t i = 0; i < order->count; i++)
        if (order->from[i] == index)
            return &query->values[i];
    return &none;
}

static const char *text(const struct rlk_query *query, const char *name)
{
    const char *value = given(query, name)->text;
    return value ? value : "";
}

static int64_t number(const struct rlk_query *query, const char *name)
{
    return given(query, name)->number;
}

static struct rlk_claim claim_of(const struct rlk_query *query)
{
    return (struct rlk_claim){.name = text(query, "name"),
                              .permits = (int)number(query, "permits"),
                              .owner = text(query, "owner"),
                              .attempt = number(query, "attempt"),
                              .ttl_us = number(query, "ttl"),
                              .host = text(query, "host"),
                              .pid = number(query, "pid"),
                              .program = text(query, "program"),
                              .note = text(query, "note"),
                              .ticket = number(query, "ticket"),
                              .unfair = number(query, "unfair") != 0};
}

static struct rlk_held held_of(const struct rlk_query *query)
{
    return (struct rlk_held){.name = text(query, "name"),
                             .slot = number(query, "slot"),
                             .owner = text(query, "owner"),
                             .token = number(query, "token")};
}

static int give(const struct rlk_query *query, const rowlock_value *cells, size_t count)
{
    return query->each(query->context, cells, count);
}

enum { ROW_CELLS = 13 };

static void row_cells(const struct rlk_row *row, rowlock_value *out)
{
    const rowlock_value cells[ROW_CELLS] = {
        rowlock_text(row->name),      rowlock_int(row->slot),   rowlock_int(row->permits),
        rowlock_text(row->owner),     rowlock_int(row->token),  rowlock_int(row->acquired_us),
        rowlock_int(row->expires_us), rowlock_int(row->ttl_us), rowlock_int(row->renewals),
        rowlock_text(row->host),      rowlock_int(row->pid),    rowlock_text(row->program),
        rowlock_text(row->note)};
    memcpy(out, cells, sizeof cells);
}

static int give_row(const struct rlk_query *query, const struct rlk_row *row)
{
    rowlock_value cells[ROW_CELLS + 1];
    row_cells(row, cells);
    cells[ROW_CELLS] = rowlock_int(row->now_us);
    return give(query, cells, ROW_CELLS + 1);
}

/* A grant is told as one that stands, so that an answer may say what is left of its lease. In flight with others
 * before us there is no row. */
static void give_try(const struct rlk_query *query, const struct rlk_grant *grant)
{
    rowlock_value cells[5 + ROW_CELLS] = {0};
    bool stands = grant->outcome == RLK_GRANTED || grant->outcome == RLK_HELD;
    if (grant->outcome == RLK_IN_FLIGHT && grant->behind)
        return;
    cells[2] = rowlock_bool(grant->settling);
    cells[3] = rowlock_bool(grant->behind);
    cells[4] = rowlock_int(stands ? grant->row.now_us : db_now());
    if (stands) {
        cells[1] = rowlock_bool(grant->outcome == RLK_GRANTED);
        row_cells(&grant->row, &cells[5]);
    }
    give(query, cells, 5 + ROW_CELLS);
}

static enum rlk_class step_acquire(struct rlk_query *query, struct rlk_call *call)
{
    struct rlk_claim claim = claim_of(query);
    struct rlk_grant grant = {0};
    int64_t asked_us = script_clock();
    struct script_answer answer = take(OP_ACQUIRE, call);
    enter();
    note_attempt(&claim, asked_us);
    fill_grant(&grant, &answer, &claim);
    leave();
    if (answer.class == RLK_DONE)
        give_try(query, &grant);
    return answer.class;
}

/* The next element of {"a","b"} or {1,2}, without its quotes; NULL: there is none. */
static const char *next_element(const char *at, char out[RLK_TEXT_MAX + 1])
{
    size_t length = 0;
    if (*at == '}' || *at == '\0')
        return NULL;
    at++; /* what is before it: { or , */
    bool quoted = *at == '"';
    if (*at == '}')
        return NULL;
    for (at += quoted; quoted ? *at != '"' : *at != ',' && *at != '}'; at++) {
        at += *at == '\\';
        out[length++] = *at;
    }
    out[length] = '\0';
    return at + quoted;
}

static int count_elements(const char *array)
{
    char word[RLK_TEXT_MAX + 1];
    int count = 0;
    while ((array = next_element(array, word)) != NULL)
        count++;
    return count;
}

static int64_t first_number(const char *array)
{
    char word[RLK_TEXT_MAX + 1] = "";
    next_element(array, word);
    return strtoll(word, NULL, 10);
}

static void note_names(const struct rlk_query *query)
{
    char name[RLK_TEXT_MAX + 1];
    size_t used = 0;
    script.names[0] = '\0';
    for (const char *at = text(query, "name");
         (at = next_element(at, name)) && used < sizeof script.names;)
        used += (size_t)snprintf(script.names + used, sizeof script.names - used, "%s%s",
                                 used > 0 ? " " : "", name);
}

static enum rlk_class step_acquire_all(struct rlk_query *query, struct rlk_call *call)
{
    int count = count_elements(text(query, "name"));
    struct rlk_claim first = claim_of(query);
    int64_t asked_us = script_clock();
    struct script_answer answer = take(OP_ACQUIRE_ALL, call);
    bool granted = answer.outcome == RLK_GRANTED;
    enter();
    note_names(query);
    first.attempt = first_number(text(query, "attempt"));
    note_attempt(&first, asked_us);
    leave();
    for (int i = 0; answer.class == RLK_DONE && i < count; i++) {
        if (!granted && (size_t)i != answer.which)
            continue;
        int64_t token = granted ? or_else(answer.token, ++state.token) : 0;
        const rowlock_value cells[] = {rowlock_int(i + 1),
                                       granted ? rowlock_int(token) : rowlock_null(),
                                       rowlock_int(db_now())};
        give(query, cells, 3);
    }
    return answer.class;
}

static enum rlk_class step_renew_all(struct rlk_query *query, struct rlk_call *call)
{
    const char *names = text(query, "name");
    int count = count_elements(names);
    int most = (int)(sizeof script.lease_counts / sizeof script.lease_counts[0]);
    enter();
    script.lease_token = first_number(text(query, "token"));
    script.lease_slot = first_number(text(query, "slot"));
    if (script.lease_call_count < most)
        script.lease_counts[script.lease_call_count++] = count;
    leave();
    struct script_answer answer = take(OP_RENEW_ALL, call);
    char name[RLK_TEXT_MAX + 1];
    for (int i = 0; i < count && answer.class == RLK_DONE && !answer.missing; i++) {
        names = next_element(names, name);
        const rowlock_value cells[] = {rowlock_int(i + 1), rowlock_int(db_now())};
        if (!answer.but || strcmp(name, answer.but) != 0)
            give(query, cells, 2);
    }
    return answer.class;
}

static enum rlk_class step_enqueue(struct rlk_query *query, struct rlk_call *call)
{
    struct rlk_claim claim = claim_of(query);
    int64_t asked_us = script_clock();
    struct script_answer answer = take_for(OP_ENQUEUE, call, claim.attempt);
    enter();
    int most = (int)(sizeof script.tickets_us / sizeof script.tickets_us[0]);
    if (script.ticket_count < most)
        script.tickets_us[script.ticket_count++] = asked_us;
    note_line(&claim);
    script.ticket_lease_us = number(query, "lease");
    const rowlock_value cells[] = {rowlock_int(or_else(answer.ticket, state.ticket)),
                                   rowlock_int(answer.ahead), rowlock_bool(!answer.no_bell)};
    leave();
    if (answer.class == RLK_DONE)
        give(query, cells, 3);
    return answer.class;
}

static bool script_note(void *conn, struct rlk_call *call, enum rlk_news news,
                        const struct rlk_claim *claim, int64_t number)
{
    (void)conn;
    (void)call;
    (void)claim;
    return news == RLK_ENQUEUED && number != 0;
}

static void give_waiters(const struct rlk_query *query, const struct script_answer *answer)
{
    int64_t last = number(query, "ticket");
    snprintf(script.last_after, sizeof script.last_after, "%s", text(query, "after"));
    script.last_ticket = last;
    for (int i = 0; i < answer->rows; i++) {
        struct rlk_waiter w = answer->waiters ? answer->waiters[i] : waiter_in_crowd(last + 1 + i);
        const rowlock_value cells[] = {
            rowlock_text(w.name),      rowlock_int(w.ticket), rowlock_int(w.attempt),
            rowlock_int(w.permits),    rowlock_text(w.owner), rowlock_int(w.since_us),
            rowlock_int(w.expires_us), rowlock_text(w.host),  rowlock_int(w.pid),
            rowlock_text(w.program),   rowlock_text(w.note),  rowlock_int(w.now_us)};
        if (give(query, cells, sizeof cells / sizeof cells[0]) != 0)
            return;
    }
}

/* So many rows, named in order after the given name. */
static void give_rows(const struct rlk_query *query, const struct script_answer *answer)
{
    const char *after = text(query, "after");
    int first = 0;
    snprintf(script.last_after, sizeof script.last_after, "%s", after);
    if (sscanf(after, "lock %d", &first) == 1)
        first++;
    for (int i = 0; i < answer->rows; i++) {
        char name[40];
        struct rlk_row row;
        snprintf(name, sizeof name, "lock %06d", first + i);
        fill_row(&row, answer, name, "rival", 1000000);
        row.permits = answer->permits;
        row.slot = rlk_slot(row.permits, row.token);
        if (give_row(query, &row) != 0)
            return;
    }
}

static void give_number(const struct rlk_query *query, int64_t number)
{
    const rowlock_value cell = rowlock_int(number);
    give(query, &cell, 1);
}

static void note_sweep(const struct rlk_query *query)
{
    script.sweep = (struct rlk_sweep){.older_us = number(query, "older"),
                                      .batch = (int)number(query, "limit"),
                                      .dry_run = query->step == RLK_STEP_EXPIRED,
                                      .after_slot = number(query, "slot")};
}

static enum script_op op_of_step(enum rlk_step step)
{
    if (step == RLK_STEP_EXPIRED)
        return OP_SWEEP;
    for (int op = 0; op < OP_BEGIN; op++)
        if (strcmp(op_names[op], rlk_steps[step].name) == 0)
            return (enum script_op)op;
    abort();
}

/* What is noted of a question whatever the answer. */
static void note_question(const struct rlk_query *query)
{
    struct rlk_held held = held_of(query);
    struct rlk_claim claim = claim_of(query);
    switch (query->step) {
    case RLK_STEP_RENEW:
        script.renew_ttl_us = number(query, "ttl");
        note_held(&held);
        break;
    case RLK_STEP_DOWNGRADE:
        script.downgraded_to = (int)number(query, "permits");
        note_held(&held);
        break;
    case RLK_STEP_RELEASE:
    case RLK_STEP_VERIFY:
    case RLK_STEP_GUARD:
        note_held(&held);
        break;
    case RLK_STEP_LEAVE:
        note_line(&claim);
        break;
    case RLK_STEP_CYCLE:
        script.in_line = claim;
        break;
    case RLK_STEP_WITHDRAW:
        script.withdrawn = claim.attempt;
        break;
    case RLK_STEP_BREAK:
        script.broken = held.token;
        break;
    case RLK_STEP_SWEEP:
    case RLK_STEP_EXPIRED:
        note_sweep(query);
        break;
    case RLK_STEP_FOLD:
        script.fold = (struct rlk_fold){.idle_us = number(query, "idle"),
                                        .batch = (int)number(query, "limit"),
                                        .dry_run = number(query, "dry") != 0};
        break;
    default:
        break;
    }
}

/* Of a step that found what it was sent for. */
static void give_found(struct rlk_query *query, const struct script_answer *answer)
{
    int64_t now_us = db_now();
    int64_t token = or_else(answer->token, token_so_far());
    struct rlk_row row;
    char words[400];
    switch (query->step) {
    case RLK_STEP_META: {
        const rowlock_value cells[] = {rowlock_int(or_else(answer->version, RLK_SCHEMA_VERSION)),
                                       rowlock_text(answer->identity ? answer->identity : "first"),
                                       rowlock_int(0)};
        give(query, cells, 3);
        break;
    }
    case RLK_STEP_RENEW: {
        const rowlock_value cells[] = {
            rowlock_int(now_us + or_else(answer->left_us, script.renew_ttl_us)),
            rowlock_int(answer->lapsed_us), rowlock_int(now_us)};
        give(query, cells, 3);
        break;
    }
    case RLK_STEP_VERIFY: {
        const rowlock_value cells[] = {rowlock_int(now_us + or_else(answer->left_us, 1000000)),
                                       rowlock_int(now_us)};
        give(query, cells, 2);
        break;
    }
    case RLK_STEP_GUARD: {
        bool stands = script.held.slot == 0 ? token == script.held.token : !answer->fallen;
        const rowlock_value cells[] = {rowlock_int(token), rowlock_bool(stands)};
        give(query, cells, 2);
        break;
    }
    case RLK_STEP_LAST: {
        const rowlock_value cells[] = {rowlock_int(token), rowlock_int(now_us)};
        give(query, cells, 2);
        break;
    }
    case RLK_STEP_CYCLE: {
        snprintf(words, sizeof words, "'%s' held by 'rival', who waits for us",
                 script.in_line.name);
        const rowlock_value cell = rowlock_text(words);
        if (answer->circle)
            give(query, &cell, 1);
        break;
    }
    case RLK_STEP_BREAK:
        fill_row(&row, answer, text(query, "name"), "rival", 1000000);
        give_row(query, &row);
        break;
    case RLK_STEP_RAISE:
        give_number(query, or_else(answer->token, token_so_far() + number(query, "by")));
        break;
    case RLK_STEP_FOLD:
        give_number(query, answer->rows);
        break;
    case RLK_STEP_SWEEP_WAITERS:
        query->changed = answer->rows;
        break;
    case RLK_STEP_LIST:
    case RLK_STEP_SWEEP:
    case RLK_STEP_EXPIRED:
        give_rows(query, answer);
        break;
    case RLK_STEP_WAITERS:
        give_waiters(query, answer);
        break;
    default:
        query->changed = 1;
    }
}

/* What is asked before a try says nothing, and is not among the calls. */
static enum rlk_class step_first(struct rlk_query *query)
{
    const rowlock_value undecided[5 + ROW_CELLS] = {
        rowlock_int(0), {0}, {0}, rowlock_bool(0), rowlock_int(db_now())};
    if (query->step == RLK_STEP_ACQUIRE_USUAL)
        give(query, undecided, 5 + ROW_CELLS);
    return RLK_DONE;
}

static enum rlk_class step_facts(struct rlk_query *query, struct rlk_call *call)
{
    struct script_answer answer = take(OP_FACTS, call);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const rowlock_value cells[] = {
        rowlock_text("Script 1"),
        rowlock_int((int64_t)now.tv_sec * 1000000 + answer.left_us),
        rowlock_bool(answer.missing), /* it takes no writes */
        rowlock_text("read committed"),
        rowlock_bool(false),
        rowlock_text("memory"),
        rowlock_bool(true),
        rowlock_text("C"),
        rowlock_bool(true),
        rowlock_text("script"),
        rowlock_bool(true),
        rowlock_bool(true),
        rowlock_bool(false),
        rowlock_text(answer.rows == 0   ? "0 late"
                     : answer.rows == 1 ? "1 late"
                                        : ""),
        rowlock_bool(answer.rows < 2), /* it is known which replicas there are */
        rowlock_bool(answer.rows == 1), /* and they lag */
        rowlock_bool(false)};
    if (answer.class == RLK_DONE)
        give(query, cells, sizeof cells / sizeof *cells);
    return answer.class;
}

static enum rlk_class step_plain(struct rlk_query *query, struct rlk_call *call)
{
    struct script_answer answer = take(op_of_step(query->step), call);
    enter();
    note_question(query);
    leave();
    if (answer.class == RLK_DONE && answer.cells)
        give_cells(&answer, query);
    else if (answer.class == RLK_DONE && !answer.missing)
        give_found(query, &answer);
    return answer.class;
}

/* Those of locks; all others are told apart by their names, as those of the caller's tables are. */
static bool is_of_locks(enum rlk_step step)
{
    return step == RLK_STEP_FACTS ||
           (step >= RLK_STEP_META && step <= RLK_STEP_RAISE && step != RLK_STEP_NEW_IDENTITY);
}

static enum rlk_class answer_step(struct rlk_query *query, struct rlk_call *call)
{
    switch (query->step) {
    case RLK_STEP_LOOK:
    case RLK_STEP_STILL_HELD:
    case RLK_STEP_ACQUIRE_USUAL:
        return step_first(query);
    case RLK_STEP_FACTS:
        return step_facts(query, call);
    case RLK_STEP_ACQUIRE:
        return step_acquire(query, call);
    case RLK_STEP_ACQUIRE_ALL:
        return step_acquire_all(query, call);
    case RLK_STEP_RENEW_ALL:
        return step_renew_all(query, call);
    case RLK_STEP_ENQUEUE:
        return step_enqueue(query, call);
    default:
        return step_plain(query, call);
    }
}

/* Each statement begins with the name of its step. */
static enum script_op op_of(const char *sql)
{
    static const char mark[] = "/* rowlock:";
    const char *name = strstr(sql, mark);
    size_t length = name ? strcspn(name + strlen(mark), " ") : 0;
    for (int op = OP_TABLE; op < OP_BEGIN; op++)
        if (name && strlen(op_names[op]) == length &&
            memcmp(op_names[op], name + strlen(mark), length) == 0)
            return (enum script_op)op;
    abort();
}

static void note_query(enum script_op op, const struct rlk_query *query)
{
    enter();
    struct script_query *to = &queries[state.queries++ % QUERIES_KEPT];
    *to = (struct script_query){.op = op, .id = query->id, .count = query->count};
    snprintf(to->sql, sizeof to->sql, "%s", query->sql);
    for (size_t i = 0; i < query->count && i < SCRIPT_VALUES; i++) {
        to->values[i] = query->values[i];
        if (!query->values[i].text)
            continue;
        rlk_copy_text(to->texts[i], sizeof to->texts[i], query->values[i].text,
                      query->values[i].length);
        to->values[i].text = to->texts[i];
    }
    leave();
}

/* Where the connection stands: core's transactions are its own, the caller's is on an adopted one. */
static bool is_inside(const struct connection *c)
{
    return c->in_tx || (c->adopted && script.inside);
}

static bool is_gone(enum rlk_class class)
{
    return class == RLK_UNSENT || class == RLK_UNCERTAIN;
}

static void set_in_tx(struct connection *c, bool in_tx)
{
    enter();
    state.in_tx = c->in_tx = in_tx;
    leave();
}

static enum rlk_class script_backend_query(void *conn, struct rlk_call *call,
                                           struct rlk_query *query)
{
    struct connection *c = conn;
    texts_now = c->texts;
    if (is_of_locks(query->step))
        return answer_step(query, call);
    enum script_op op = op_of(query->sql);
    bool inside = is_inside(c);
    note_query(op, query);
    struct script_answer answer = take(op, call);
    answer_query(op, &answer, query);
    call->inside = call->where != RLK_OUTSIDE && inside;
    if (is_gone(answer.class))
        set_in_tx(c, false);
    return answer.class;
}

/* A COMMIT that fails ends the transaction all the same, and one without an answer is not inside. */
static enum rlk_class script_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct connection *c = conn;
    bool inside = is_inside(c);
    bool ends = what == RLK_COMMIT || what == RLK_ROLLBACK;
    call->where = RLK_EITHER;
    if (what == RLK_BEGIN ? inside : what != RLK_LOOK && !inside)
        return inside ? RLK_IN_TX : RLK_NO_TX;
    struct script_answer answer = take((enum script_op)(OP_BEGIN + what), call);
    call->inside = inside && !(what == RLK_COMMIT && answer.class == RLK_UNCERTAIN);
    if (what == RLK_BEGIN && answer.class == RLK_DONE)
        set_in_tx(c, true);
    else if (ends || is_gone(answer.class))
        set_in_tx(c, false);
    return answer.class;
}

/* ---- in the place of src/db/backends.c */

static const char *const schemes[] = {"postgresql", "mysql", "sqlite", NULL};

/* Its name, quote, marker and packing are those of a dialect, for the sake of the statements, which core
 * completes and nobody sends here. */
static struct rlk_backend backend = {
    .schemes = schemes,
    .conn_size = sizeof(struct connection),
    .open = script_backend_open,
    .adopt = script_backend_adopt,
    .enter_thread = script_enter_thread,
    .leave_thread = script_leave_thread,
    .close = script_backend_close,
    .install = script_install,
    .facts = script_facts,
    .note = script_note,
    .await = script_await,
    .query = script_backend_query,
    .frame = script_frame,
};

void script_home(const char *name)
{
    home = name;
}

void script_dialect(const char *name)
{
    bool postgres = strcmp(name, "postgres") == 0, mysql = strcmp(name, "mysql") == 0;
    backend.name = name;
    backend.quote = mysql ? '`' : '"';
    backend.marker = postgres ? '$' : '?';
    backend.numbered = !mysql;
    backend.packing = postgres ? RLK_ARRAYS : mysql ? RLK_JSON : RLK_SINGLY;
    backend.has_policies = backend.locks_rows_first = postgres;
    backend.backslash_escapes = backend.tells_no_rows = mysql;
}

/* "mariadb" stands for a database that is known but not built in. */
const struct rlk_backend *rlk_backend_find(const char *scheme, bool *known)
{
    *known = strcmp(scheme, "mariadb") == 0;
    for (size_t i = 0; schemes[i]; i++)
        if (strcmp(schemes[i], scheme) == 0)
            *known = true;
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
