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
};

static int bell = -1; /* readable once it was rung */

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
    script_dialect("sqlite");
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
    (void)target;
    (void)texts;
    hello->several = script.several;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(OP_OPEN, call).class;
}

static enum rlk_class script_backend_adopt(void *conn, struct rlk_call *call, void *vendor,
                                           const struct rlk_texts *texts, struct rlk_hello *hello)
{
    ((struct connection *)conn)->adopted = true;
    (void)vendor;
    (void)texts;
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

static void note_attempt(const struct rlk_claim *claim, int64_t asked_us)
{
    int most = (int)(sizeof script.attempts / sizeof script.attempts[0]);
    script.claim = *claim;
    if (script.attempt_count == most)
        return;
    script.acquired_us[script.attempt_count] = asked_us;
    script.attempts[script.attempt_count++] = claim->attempt;
}

static enum rlk_class script_acquire(void *conn, struct rlk_call *call,
                                     const struct rlk_claim *claim, struct rlk_grant *out)
{
    (void)conn;
    int64_t asked_us = script_clock();
    struct script_answer answer = take(OP_ACQUIRE, call);
    enter();
    note_attempt(claim, asked_us);
    fill_grant(out, &answer, claim);
    leave();
    return answer.class;
}

static void note_names(const struct rlk_claim *claims, size_t count)
{
    size_t used = 0;
    script.names[0] = '\0';
    for (size_t i = 0; i < count && used < sizeof script.names; i++)
        used += (size_t)snprintf(script.names + used, sizeof script.names - used, "%s%s",
                                 i > 0 ? " " : "", claims[i].name);
}

static enum rlk_class script_acquire_all(void *conn, struct rlk_call *call,
                                         const struct rlk_claim *claims, size_t count,
                                         struct rlk_grant *out, size_t *which)
{
    (void)conn;
    int64_t asked_us = script_clock();
    struct script_answer answer = take(OP_ACQUIRE_ALL, call);
    enter();
    note_names(claims, count);
    note_attempt(&claims[0], asked_us);
    *which = answer.outcome == RLK_GRANTED ? 0 : answer.which;
    for (size_t i = 0; i < count; i++)
        if (answer.outcome == RLK_GRANTED || i == answer.which)
            fill_grant(&out[i], &answer, &claims[i]);
    leave();
    return answer.class;
}

/* ---- the line */

static void note_line(const struct rlk_claim *claim)
{
    script.in_line = *claim;
    snprintf(script.line, sizeof script.line, "%s", claim->name);
}

static enum rlk_class script_enqueue(void *conn, struct rlk_call *call,
                                     const struct rlk_claim *claim, int64_t lease_us,
                                     struct rlk_place *out)
{
    (void)conn;
    int64_t asked_us = script_clock();
    struct script_answer answer = take_for(OP_ENQUEUE, call, claim->attempt);
    enter();
    int most = (int)(sizeof script.tickets_us / sizeof script.tickets_us[0]);
    if (script.ticket_count < most)
        script.tickets_us[script.ticket_count++] = asked_us;
    note_line(claim);
    script.ticket_lease_us = lease_us;
    *out = (struct rlk_place){.ticket = or_else(answer.ticket, state.ticket),
                              .ahead = answer.ahead,
                              .belled = !answer.no_bell};
    leave();
    return answer.class;
}

static enum rlk_class script_leave(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                                   bool *found)
{
    (void)conn;
    struct script_answer answer = take(OP_LEAVE, call);
    enter();
    note_line(claim);
    leave();
    *found = answer.class == RLK_DONE && !answer.missing;
    return answer.class;
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

static enum rlk_class script_cycle(void *conn, struct rlk_call *call, const struct rlk_claim *claim,
                                   bool *found, char *words, size_t cap)
{
    (void)conn;
    struct script_answer answer = take(OP_CYCLE, call);
    enter();
    script.in_line = *claim;
    leave();
    *found = answer.class == RLK_DONE && answer.circle;
    if (*found)
        snprintf(words, cap, "'%s' held by 'rival', who waits for us", claim->name);
    return answer.class;
}

/* The nth living waiter in one line. */
static struct rlk_waiter waiter_in_crowd(int64_t ticket)
{
    struct rlk_waiter w = {
        .name = "crowd", .ticket = ticket, .attempt = ticket, .now_us = db_now()};
    w.expires_us = w.now_us + 15000000;
    return w;
}

static enum rlk_class script_waiters(void *conn, struct rlk_call *call, const char *name,
                                     const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                     void *context)
{
    (void)conn;
    (void)name;
    (void)limit;
    struct script_answer answer = take(OP_WAITERS, call);
    struct rlk_waiter last = *after;
    snprintf(script.last_after, sizeof script.last_after, "%s", last.name);
    script.last_ticket = last.ticket;
    for (int i = 0; i < answer.rows; i++) {
        struct rlk_waiter w =
            answer.waiters ? answer.waiters[i] : waiter_in_crowd(last.ticket + 1 + i);
        if (each(context, &w) != 0)
            break;
    }
    return answer.class;
}

/* ---- a grant */

static enum rlk_class script_downgrade(void *conn, struct rlk_call *call,
                                       const struct rlk_held *held, int permits, bool *found)
{
    (void)conn;
    struct script_answer answer = take(OP_DOWNGRADE, call);
    note_held(held);
    enter();
    script.downgraded_to = permits;
    leave();
    *found = answer.class == RLK_DONE && !answer.missing;
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
                                  const char *after_name, int64_t after_slot, int limit,
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

static enum rlk_class script_sweep_waiters(void *conn, struct rlk_call *call, int batch,
                                           int64_t *removed)
{
    (void)conn;
    (void)batch;
    struct script_answer answer = take(OP_SWEEP_WAITERS, call);
    if (answer.class == RLK_DONE)
        *removed = answer.rows;
    return answer.class;
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

static enum rlk_class script_break(void *conn, struct rlk_call *call, const char *name,
                                   int64_t token, bool *found, struct rlk_row *broken)
{
    (void)conn;
    struct script_answer answer = take(OP_BREAK, call);
    script.broken = token;
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
    script.lease_slot = leases[0].held.slot;
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

static enum rlk_class script_guard(void *conn, struct rlk_call *call, const struct rlk_held *held,
                                   bool *found, int64_t *token, bool *stands)
{
    (void)conn;
    struct script_answer answer = take(OP_GUARD, call);
    note_held(held);
    *found = answer.class == RLK_DONE && !answer.missing;
    *token = or_else(answer.token, token_so_far());
    *stands = *found && (held->slot == 0 ? *token == held->token : !answer.fallen);
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

/* ---- in the place of src/backends.c */

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
    .meta = script_meta,
    .facts = script_facts,
    .acquire = script_acquire,
    .acquire_all = script_acquire_all,
    .enqueue = script_enqueue,
    .leave = script_leave,
    .await = script_await,
    .cycle = script_cycle,
    .waiters = script_waiters,
    .downgrade = script_downgrade,
    .renew = script_renew,
    .release = script_release,
    .verify = script_verify,
    .list = script_list,
    .last = script_last,
    .sweep = script_sweep,
    .sweep_waiters = script_sweep_waiters,
    .fold = script_fold,
    .break_grant = script_break,
    .renew_all = script_renew_all,
    .withdraw = script_withdraw,
    .guard = script_guard,
    .fence = script_fence,
    .raise_tokens = script_raise,
    .query = script_backend_query,
    .frame = script_frame,
};

void script_dialect(const char *name)
{
    bool postgres = strcmp(name, "postgres") == 0, mysql = strcmp(name, "mysql") == 0;
    backend.name = name;
    backend.quote = mysql ? '`' : '"';
    backend.marker = postgres ? '$' : '?';
    backend.packing = postgres ? RLK_ARRAYS : mysql ? RLK_JSON : RLK_SINGLY;
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
