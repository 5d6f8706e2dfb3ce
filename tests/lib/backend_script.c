/* SPDX-License-Identifier: MIT
 *
 * A scripted database and clock; see backend_script.h. It judges nothing. */
#include "backend_script.h"
#include "core/link.h"

#include <sys/eventfd.h>

enum { QUEUE_MAX = 64, CALLS_MAX = 4096 };

#define DB_NOW_US INT64_C(1700000000000000) /* the database's clock when ours shows nought */

struct script script;

/* Guards the script and its state. It is free while the hook runs. */
static pthread_mutex_t mutex;

static struct {
    struct script_answer always[OP_COUNT], queue[OP_COUNT][QUEUE_MAX];
    int queued[OP_COUNT], taken[OP_COUNT], count[OP_COUNT];
    int total;
    char calls[CALLS_MAX], asked[CALLS_MAX];
    int64_t token;
    /* the newest ticket */
    int64_t ticket;
    /* the request that has it; 0: the queue is empty */
    int64_t ticket_of;
    /* it was taken on this connection */
    bool wakeable;
    bool jumps;
    pthread_t jumper;
    /* a transaction of ours is open */
    bool in_tx;
    bool gone;
    int queries;
} state;

enum { QUERIES_KEPT = 64 };
static struct script_query queries[QUERIES_KEPT];

/* A connection, which driver.h calls conn. */
struct connection {
    bool adopted, in_tx;
    const struct rlk_texts *texts;
};

/* readable after a wake-up */
static int wakeup = -1;
/* the dialect after a reset */
static const char *home = "postgres";

/* Names of the operations that are not steps. */
static const char *const other_names[] = {"open",   "adopt",    "close", "install", "begin",
                                          "commit", "rollback", "save",  "keep",    "undo"};

static void enter(void)
{
    pthread_mutex_lock(&mutex);
}

static void leave(void)
{
    pthread_mutex_unlock(&mutex);
}

static void leave_block(const int *ignored)
{
    leave();
}

/* Until the end of the block. */
#define GUARDED __attribute__((cleanup(leave_block), unused)) const int guarded = (enter(), 0)

/* ---- the clock */

static int64_t script_clock(void)
{
    GUARDED;
    return script.ahead_us + (script.frozen ? 0 : now_us());
}

static int64_t db_now(void)
{
    return DB_NOW_US + script_clock();
}

void script_freeze(void)
{
    GUARDED;
    script.ahead_us = script_clock();
    script.frozen = true;
}

void script_jump(void)
{
    script_freeze();
    GUARDED;
    state.jumps = true;
    state.jumper = pthread_self();
}

static bool is_frozen(void)
{
    GUARDED;
    return script.frozen;
}

static bool jumps_here(void)
{
    GUARDED;
    return state.jumps && pthread_equal(state.jumper, pthread_self());
}

static atomic_int pauses;

/* Core makes all its pauses by this. */
static int script_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!jumps_here()) {
        pauses++;
        return poll(fds, count, timeout_ms);
    }
    int ready = poll(fds, count, 0);
    if (ready == 0)
        script_pass_ms(timeout_ms);
    return ready;
}

static void pass_us(int64_t us)
{
    GUARDED;
    script.ahead_us += us;
}

void script_pass_ms(int64_t ms)
{
    pass_us(ms * 1000);
}

int script_pauses(void)
{
    return pauses;
}

/* ---- answers */

/* A forked child has one thread, and needs a free mutex. */
static void renew_mutex(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
}

void script_reset(void)
{
    static bool at_fork;
    if (!at_fork)
        renew_mutex();
    if (!at_fork)
        at_fork = pthread_atfork(enter, leave, renew_mutex) == 0;
    memset(&script, 0, sizeof script);
    memset(&state, 0, sizeof state);
    if (wakeup >= 0)
        close(wakeup);
    wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    script_dialect(home);
    rlk_clock = script_clock;
    rlk_poll = script_poll;
}

void script_next(enum script_op op, struct script_answer answer)
{
    GUARDED;
    if (state.queued[op] == QUEUE_MAX)
        abort();
    state.queue[op][state.queued[op]++] = answer;
}

void script_always(enum script_op op, struct script_answer answer)
{
    GUARDED;
    state.always[op] = answer;
}

void script_hook(void (*hook)(enum script_op op))
{
    GUARDED;
    script.hook = hook;
}

const char *script_calls(void)
{
    GUARDED;
    memcpy(state.asked, state.calls, sizeof state.asked);
    state.calls[0] = '\0';
    return state.asked;
}

int script_count(enum script_op op)
{
    GUARDED;
    return state.count[op];
}

int script_leases(int nth)
{
    GUARDED;
    return nth < script.lease_call_count ? script.lease_counts[nth] : -1;
}

const struct script_query *script_query(int back)
{
    GUARDED;
    int at = state.queries - 1 - back;
    if (back < 0 || back >= QUERIES_KEPT || at < 0)
        abort();
    return &queries[at % QUERIES_KEPT];
}

bool script_in_tx(void)
{
    GUARDED;
    return state.in_tx;
}

static void note_call(enum script_op op)
{
    size_t used = strlen(state.calls);
    if (op == OP_PEEK)
        return;
    state.count[op]++;
    state.total++;
    snprintf(state.calls + used, sizeof state.calls - used, "%s%s", used ? " " : "",
             op < OP_OPEN ? rlk_steps[op].name : other_names[op - OP_OPEN]);
}

/* Changes the tables before the answer, so that a hook sees the change. */
static void carry_out(enum script_op op, const struct script_answer *answer, int64_t request)
{
    if (op == OP_OPEN)
        state.wakeable = false;
    if (answer->class != RLK_DONE)
        return;
    if (op == OP_ENQUEUE) {
        if (state.ticket_of != request)
            state.ticket++;
        state.ticket_of = request;
        state.wakeable = !answer->no_wakeup;
    }
    bool granted = (op == OP_ACQUIRE || op == OP_ACQUIRE_ALL) && answer->outcome == RLK_GRANTED;
    if (op == OP_LEAVE || granted)
        state.ticket_of = 0;
}

/* Is a transaction open? Core's transactions are in the connection's state. The caller's is on an
 * adopted connection. */
static bool is_inside(const struct connection *c)
{
    return c->in_tx || (c->adopted && script.inside);
}

static void set_in_tx(struct connection *c, bool in_tx)
{
    GUARDED;
    state.in_tx = c->in_tx = in_tx;
}

static struct script_answer take_for(struct connection *c, enum script_op op, struct rlk_call *call,
                                     int64_t request)
{
    enter();
    call->inside = call->where != RLK_OUTSIDE && is_inside(c);
    if (call->where == RLK_INSIDE && !call->inside) {
        leave();
        return FAILS(RLK_NO_TX);
    }
    struct script_answer answer =
        state.taken[op] < state.queued[op] ? state.queue[op][state.taken[op]++] : state.always[op];
    script.deadline_us = call->deadline_us;
    script.where = call->where;
    note_call(op);
    if (state.total == script.fail_at)
        answer = FAILS(script.fail_as);
    carry_out(op, &answer, request);
    void (*hook)(enum script_op) = script.hook;
    leave();
    if (hook)
        hook(op);
    pass_us(answer.takes_us);
    call->constraint = (enum rowlock_constraint)answer.constraint;
    call->late = answer.late;
    call->tx_over = answer.tx_over;
    if (answer.class != RLK_DONE && answer.text)
        rlk_diag_set(call, answer.native, answer.sqlstate, answer.text);
    if (rlk_is_gone(answer.class))
        set_in_tx(c, false);
    return answer;
}

static struct script_answer take(struct connection *c, enum script_op op, struct rlk_call *call)
{
    return take_for(c, op, call, 0);
}

/* ---- the backend's operations */

static enum rlk_class script_backend_open(void *conn, struct rlk_call *call,
                                          const struct rlk_target *target,
                                          const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct connection *c = conn;
    c->texts = texts;
    hello->takes_writes = script.takes_writes;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(c, OP_OPEN, call).class;
}

static enum rlk_class script_backend_adopt(void *conn, struct rlk_call *call, void *vendor,
                                           const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct connection *c = conn;
    c->adopted = true;
    c->texts = texts;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return take(c, OP_ADOPT, call).class;
}

static void script_backend_close(void *conn, bool in_child)
{
    const struct connection *c = conn;
    GUARDED;
    state.in_tx = state.in_tx && !c->in_tx;
    state.count[OP_CLOSE]++;
    script.closed_in_child = in_child;
}

static void script_use_in_thread(bool begins)
{
    GUARDED;
    if (begins)
        script.threads_entered++;
    else
        script.threads_left++;
}

static enum rlk_class script_script(void *conn, struct rlk_call *call, const char *sql)
{
    return take(conn, OP_INSTALL, call).class;
}

/* The step has returned all facts. */
static enum rlk_class script_facts(void *conn, struct rlk_call *call, struct rlk_facts *out)
{
    return RLK_DONE;
}

/* ---- the queue */

bool script_wake(void)
{
    static const uint64_t one = 1;
    GUARDED;
    return state.ticket_of != 0 && state.wakeable && write(wakeup, &one, sizeof one) > 0;
}

/* Waits for the wake-up or the descriptor. */
static bool wait_woken(int wake, int timeout_ms, enum rlk_wakeup *out)
{
    uint64_t wakes;
    struct pollfd fds[] = {{.fd = wakeup, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
    if (poll(fds, 2, timeout_ms) <= 0)
        return false;
    bool woken = fds[0].revents && read(wakeup, &wakes, sizeof wakes) > 0;
    *out = woken ? RLK_WAKEUP : RLK_INTERRUPTED;
    return true;
}

static enum rlk_wakeup await_by_itself(int64_t deadline_us, int wake)
{
    enum rlk_wakeup woken = RLK_SILENT;
    for (;;) {
        int64_t left_us = deadline_us - script_clock();
        bool still = is_frozen() || left_us <= 0;
        /* At most a second, since it may be too long for poll(). */
        int sleeps_ms = still ? 0 : left_us > 1000000 ? 1000 : (int)(left_us / 1000) + 1;
        if (wait_woken(wake, sleeps_ms, &woken))
            return woken;
        if (still && left_us > 0)
            pass_us(left_us);
        if (still)
            return RLK_SILENT;
    }
}

/* A connection without a ticket gets no wake-up, as in the databases. */
static enum rlk_wakeup await_wakeup(const struct script_answer *answer, int64_t deadline_us,
                                    int wake)
{
    enter();
    bool unwakeable = answer->wakeup == WAKEUP_NONE || !state.wakeable;
    leave();
    if (unwakeable)
        return RLK_NO_WAKEUPS;
    return answer->wakeup == WAKEUP_CAME          ? RLK_WAKEUP
           : answer->wakeup == WAKEUP_INTERRUPTED ? RLK_INTERRUPTED
                                                  : await_by_itself(deadline_us, wake);
}

static enum rlk_class script_await(void *conn, struct rlk_call *call,
                                   const struct rlk_request *request, int wake,
                                   enum rlk_wakeup *out)
{
    struct script_wait wait = {.from_us = script_clock(), .until_us = call->deadline_us};
    struct script_answer answer = take(conn, OP_AWAIT, call);
    enter();
    script.queued = *request;
    leave();
    /* The interruption may also cost the connection. */
    if (answer.wakeup == WAKEUP_INTERRUPTED)
        *out = RLK_INTERRUPTED;
    if (answer.class != RLK_DONE)
        return answer.class;
    *out = wait.wakeup = await_wakeup(&answer, call->deadline_us, wake);
    GUARDED;
    if (script.wait_count < (int)(sizeof script.waits / sizeof script.waits[0]))
        script.waits[script.wait_count++] = wait;
    return RLK_DONE;
}

/* ---- parameters, by their names in the list of steps */

static _Thread_local const struct rlk_texts *texts_now;

static const rowlock_value *given(const struct rlk_query *query, const char *name)
{
    static const rowlock_value none;
    const struct rlk_order *order = &texts_now->order[query->step];
    size_t length = strlen(name);
    int index = 0;
    for (const char *at = rlk_steps[query->step].parameters; at && *at;) {
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

static struct rlk_request request_of(const struct rlk_query *query)
{
    return (struct rlk_request){.name = text(query, "name"),
                                .permits = (int)number(query, "permits"),
                                .owner = text(query, "owner"),
                                .number = number(query, "request"),
                                .ttl_us = number(query, "ttl"),
                                .host = text(query, "host"),
                                .pid = number(query, "pid"),
                                .program = text(query, "program"),
                                .note = text(query, "note"),
                                .ticket = number(query, "ticket"),
                                .unfair = number(query, "unfair") != 0};
}

/* Reads the next element of {"a","b"} or {1,2}, without its quotes. NULL: there is none. */
static const char *next_element(const char *at, char out[RLK_TEXT_MAX + 1])
{
    size_t length = 0;
    if (*at == '}' || *at == '\0')
        return NULL;
    /* skips { or , */
    at++;
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

/* Returns how many elements there are, and writes them with blanks between. */
static int list_elements(const char *array, char *out, size_t cap)
{
    char word[RLK_TEXT_MAX + 1];
    int count = 0;
    out[0] = '\0';
    for (; (array = next_element(array, word)) != NULL; count++) {
        size_t used = strlen(out);
        snprintf(out + used, cap - used, "%s%s", count > 0 ? " " : "", word);
    }
    return count;
}

static int64_t first_number(const char *array)
{
    char word[RLK_TEXT_MAX + 1] = "";
    next_element(array, word);
    return strtoll(word, NULL, 10);
}

#define NOTE(list, count, value)                                  \
    do {                                                          \
        if (script.count < (int)(sizeof(list) / sizeof(list)[0])) \
            (list)[script.count++] = (value);                     \
    } while (0)

static void note_request(const struct rlk_request *request)
{
    if (script.request_count < (int)(sizeof script.requests / sizeof script.requests[0]))
        script.acquired_us[script.request_count] = script_clock();
    NOTE(script.requests, request_count, request->number);
    script.request = *request;
}

static void note_queue(const struct rlk_request *request)
{
    script.queued = *request;
    snprintf(script.queue_name, sizeof script.queue_name, "%s", request->name);
}

static void note_several(const struct rlk_query *query)
{
    char names[16000];
    int count = list_elements(text(query, "name"), names, sizeof names);
    snprintf(script.names, sizeof script.names, "%.*s", (int)sizeof script.names - 1, names);
    if (query->step == RLK_STEP_RENEW_ALL) {
        script.lease_token = first_number(text(query, "token"));
        next_element(text(query, "owner"), script.lease_owner);
        NOTE(script.lease_counts, lease_call_count, count);
        return;
    }
    struct rlk_request first = request_of(query);
    first.number = first_number(text(query, "request"));
    note_request(&first);
}

static void note_question(const struct rlk_query *query)
{
    struct rlk_request request = request_of(query);
    switch (query->step) {
    case RLK_STEP_ACQUIRE:
        note_request(&request);
        break;
    case RLK_STEP_ACQUIRE_ALL:
    case RLK_STEP_RENEW_ALL:
        note_several(query);
        break;
    case RLK_STEP_RENEW:
    case RLK_STEP_RELEASE:
    case RLK_STEP_VERIFY:
    case RLK_STEP_GUARD:
        script.held = (struct rlk_held){request.name, number(query, "slot"), request.owner,
                                        number(query, "token")};
        script.renew_ttl_us = request.ttl_us;
        NOTE(script.slots, slot_count, script.held.slot);
        break;
    case RLK_STEP_ENQUEUE:
        NOTE(script.tickets_us, ticket_count, script_clock());
        script.ticket_lease_us = number(query, "lease");
        note_queue(&request);
        break;
    case RLK_STEP_LEAVE:
        note_queue(&request);
        break;
    case RLK_STEP_CYCLE:
        script.queued = request;
        break;
    case RLK_STEP_WITHDRAW:
        script.withdrawn = request.number;
        break;
    case RLK_STEP_SWEEP:
    case RLK_STEP_SWEEP_QUIET:
    case RLK_STEP_EXPIRED:
        script.sweep_batch = (int)number(query, "limit");
        break;
    default:
        break;
    }
    if (given(query, "after")->text) {
        snprintf(script.last_after, sizeof script.last_after, "%s", text(query, "after"));
        script.last_ticket = request.ticket;
    }
}

/* ---- answers: the columns of each step by name, and the cell for each name */

#define CELLS(CELL)                                                                            \
    CELL(name), CELL(slot), CELL(permits), CELL(owner), CELL(token), CELL(acquired),           \
        CELL(expires), CELL(ttl), CELL(renewals), CELL(host), CELL(pid), CELL(program),        \
        CELL(note), CELL(now), CELL(none), CELL(ours), CELL(settling), CELL(behind),           \
        CELL(ordinal), CELL(lapsed), CELL(version), CELL(identity), CELL(floor), CELL(stands), \
        CELL(rows), CELL(raised), CELL(words), CELL(ticket), CELL(request), CELL(ahead),       \
        CELL(wakeup), CELL(since), CELL(swept)
#define MEMBER(name) name
#define FIND(name)                          \
    {                                       \
#name, offsetof(struct cells, name) \
    }

struct cells {
    rowlock_value CELLS(MEMBER);
};

#define ROW "name slot permits owner token acquired expires ttl renewals host pid program note "
static const struct {
    enum script_op op;
    const char *columns;
} answers[] = {
    {OP_META, "version version version identity floor swept floor"},
    {OP_ACQUIRE, "none ours settling behind now " ROW},
    {OP_ACQUIRE_ALL, "ordinal token now"},
    {OP_RENEW, "expires lapsed now"},
    {OP_RENEW_ALL, "ordinal now"},
    {OP_VERIFY, "expires now"},
    {OP_GUARD, "token stands"},
    {OP_ENQUEUE, "ticket ahead wakeup"},
    {OP_CYCLE, "words"},
    {OP_WAITERS, "name ticket request permits owner since expires host pid program note now"},
    {OP_LIST, ROW "now"},
    {OP_SWEEP, ROW "now"},
    {OP_SWEEP_QUIET, "rows name slot"},
    {OP_BREAK, ROW "now"},
    {OP_LAST, "token now"},
    {OP_FOLD, "rows"},
    {OP_RAISE, "raised"},
};

static rowlock_value cell_of(const struct cells *cells, const char *word)
{
    static const struct {
        const char *name;
        size_t at;
    } places[] = {CELLS(FIND)};
    rowlock_value value;
    size_t i = 0, length = strcspn(word, " ");
    while (strlen(places[i].name) != length || memcmp(places[i].name, word, length) != 0)
        i++;
    memcpy(&value, (const char *)cells + places[i].at, sizeof value);
    return value;
}

/* Gives one row. false: the step has no answer of its own, or no more rows are wanted. At most this
 * many columns are given. */
static bool give(const struct rlk_query *query, enum script_op op, const struct cells *cells,
                 size_t most)
{
    rowlock_value row[RLK_MARKERS * 2];
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        size_t count = 0;
        if (answers[i].op != op)
            continue;
        for (const char *at = answers[i].columns; *at && count < most;) {
            row[count++] = cell_of(cells, at);
            at += strcspn(at, " ");
            at += *at == ' ';
        }
        return query->each(query->context, row, count) == 0;
    }
    return false;
}

static rowlock_value or_else(int64_t value, int64_t otherwise)
{
    return rowlock_int(value ? value : otherwise);
}

/* The cells of the grant that the step names. A rival's grant has the same form. */
static struct cells cells_for(const struct rlk_query *query, const struct script_answer *answer)
{
    int64_t token = answer->token ? answer->token : state.token, now_us = db_now();
    bool asked = query->step == RLK_STEP_RENEW || number(query, "ttl");
    int64_t ttl_us = answer->ttl_us ? answer->ttl_us : asked ? number(query, "ttl") : 1000000;
    int64_t expires_us = now_us + (answer->left_us ? answer->left_us : ttl_us);
    bool stands = script.held.slot == 0 ? token == script.held.token : !answer->fallen;
    return (struct cells){
        .name = rowlock_text(text(query, "name")),
        .slot = rowlock_int(rlk_slot(answer->permits, token ? token : 1)),
        .permits = rowlock_int(answer->permits),
        .owner = rowlock_text("rival"),
        .token = rowlock_int(token),
        .acquired = rowlock_int(expires_us - ttl_us),
        .expires = rowlock_int(expires_us),
        .ttl = rowlock_int(ttl_us),
        .renewals = rowlock_int(0),
        .host = rowlock_text("elsewhere"),
        .pid = rowlock_int(4711),
        .program = rowlock_text("rival"),
        .note = rowlock_text("a note"),
        .now = rowlock_int(now_us),
        .settling = rowlock_bool(answer->settling),
        .behind = rowlock_bool(answer->behind || answer->outcome == RLK_BEHIND),
        .lapsed = rowlock_int(answer->lapsed_us),
        .version = or_else(answer->version, RLK_LEVEL),
        .identity = rowlock_text(answer->identity ? answer->identity : "first"),
        .none = rowlock_null(),
        .floor = rowlock_int(0),
        .stands = rowlock_bool(stands),
        .rows = rowlock_int(answer->rows),
        .raised = or_else(answer->token, state.token + number(query, "by")),
        .words = rowlock_text("'nightly' held by 'rival', who waits for us"),
        .ticket = or_else(answer->ticket, state.ticket),
        .ahead = rowlock_int(answer->ahead),
        .wakeup = rowlock_bool(!answer->no_wakeup),
        .swept = rowlock_int(unix_clock_us()),
    };
}

/* A grant is one that exists already, so that an answer may set what is left of its lease. A
 * request in flight with others ahead gets no row. */
static void give_try(const struct rlk_query *query, const struct script_answer *answer,
                     struct cells cells)
{
    bool granted = answer->outcome == RLK_GRANTED, stands = granted || answer->outcome == RLK_HELD;
    if (answer->outcome == RLK_IN_FLIGHT && answer->behind)
        return;
    if (granted) {
        int permits = (int)number(query, "permits");
        cells.owner = rowlock_text(text(query, "owner"));
        cells.permits = rowlock_int(permits);
        cells.slot = rowlock_int(rlk_slot(permits, cells.token.number));
    }
    cells.ours = rowlock_bool(granted);
    give(query, OP_ACQUIRE, &cells, stands ? SIZE_MAX : 5);
}

/* Gives all grants, or the one that is in the way. */
static void give_several(const struct rlk_query *query, const struct script_answer *answer,
                         struct cells cells)
{
    bool granted = answer->outcome == RLK_GRANTED;
    const char *names = text(query, "name");
    char name[RLK_TEXT_MAX + 1];
    for (size_t i = 0; (names = next_element(names, name)) != NULL; i++) {
        bool kept_out = query->step == RLK_STEP_ACQUIRE_ALL && !granted;
        if (kept_out ? i != answer->which : answer->but && strcmp(name, answer->but) == 0)
            continue;
        if (query->step == RLK_STEP_ACQUIRE_ALL)
            cells.token = kept_out ? rowlock_null() : or_else(answer->token, ++state.token);
        cells.ordinal = rowlock_int((int64_t)i + 1);
        give(query, (enum script_op)query->step, &cells, SIZE_MAX);
    }
}

static void give_waiters(const struct rlk_query *query, const struct script_answer *answer,
                         struct cells cells)
{
    for (int i = 0; i < answer->rows; i++) {
        int64_t next = number(query, "ticket") + 1 + i, now_us = db_now();
        struct rlk_waiter crowd = {.name = "crowd",
                                   .ticket = next,
                                   .request = next,
                                   .now_us = now_us,
                                   .expires_us = now_us + 15000000};
        const struct rlk_waiter *w = answer->waiters ? &answer->waiters[i] : &crowd;
        cells.name = rowlock_text(w->name), cells.owner = rowlock_text(w->owner);
        cells.ticket = rowlock_int(w->ticket), cells.request = rowlock_int(w->request);
        cells.permits = rowlock_int(w->permits), cells.pid = rowlock_int(w->pid);
        cells.since = rowlock_int(w->since_us), cells.expires = rowlock_int(w->expires_us);
        cells.host = rowlock_text(w->host), cells.program = rowlock_text(w->program);
        cells.note = rowlock_text(w->note), cells.now = rowlock_int(w->now_us);
        if (!give(query, OP_WAITERS, &cells, SIZE_MAX))
            return;
    }
}

/* Gives this many rows, named in order after the given name. A quiet sweep gets their number and
 * the last one. */
static void give_rows(const struct rlk_query *query, const struct script_answer *answer,
                      struct cells cells)
{
    bool quiet = query->step == RLK_STEP_SWEEP_QUIET;
    int first = 0;
    if (sscanf(text(query, "after"), "lock %d", &first) == 1)
        first++;
    for (int i = quiet && answer->rows > 0 ? answer->rows - 1 : 0; i < answer->rows; i++) {
        char name[40];
        snprintf(name, sizeof name, "lock %06d", first + i);
        cells.name = rowlock_text(name);
        if (!give(query, quiet ? OP_SWEEP_QUIET : OP_LIST, &cells, SIZE_MAX))
            return;
    }
}

static void give_facts(const struct rlk_query *query, const struct script_answer *answer)
{
    const rowlock_value cells[] = {
        rowlock_text("Script 1"),
        rowlock_int(unix_clock_us() + answer->left_us),
        /* read_only */
        rowlock_bool(answer->missing),
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
        rowlock_text(""),
        rowlock_text(answer->rows == 0   ? "0 late"
                     : answer->rows == 1 ? "1 late"
                                         : ""),
        /* replication_known */
        rowlock_bool(answer->rows < 2),
        /* replicates_late */
        rowlock_bool(answer->rows == 1),
        /* cut_off, no_standby, expects_standby */
        rowlock_bool(false),
        rowlock_bool(false),
        rowlock_bool(false),
    };
    query->each(query->context, cells, sizeof cells / sizeof *cells);
}

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

static struct rlk_driver backend;

/* The expected version, or the first one, comes last. A dialect without RETURNING reports only the
 * number of rows. */
static void give_applied(enum script_op op, struct rlk_query *query)
{
    rowlock_value version = query->values[query->count - 1];
    version.number += op == OP_ROW_UPDATE;
    query->changed = 1;
    if (backend.packing != RLK_JSON)
        query->each(query->context, &version, 1);
}

static void give_given(const struct rlk_query *query, const struct script_answer *answer)
{
    const rowlock_value *row = answer->cells;
    for (int i = 0; i < answer->rows && query->each; i++, row += answer->width)
        if (query->each(query->context, row, answer->width) != 0)
            return;
}

/* Answers a step that found its row. */
static void give_found(enum script_op op, struct rlk_query *query,
                       const struct script_answer *answer)
{
    bool of_locks = op >= OP_META && op <= OP_RAISE && op != OP_NEW_IDENTITY;
    bool granted = op == OP_ACQUIRE && answer->outcome == RLK_GRANTED;
    enter();
    state.token += granted && !answer->token;
    struct cells cells = cells_for(query, answer);
    leave();
    if (op == OP_FACTS)
        give_facts(query, answer);
    else if (op == OP_TABLE)
        give_columns(query);
    else if (op == OP_ROW_UPDATE || op == OP_ROW_INSERT || op == OP_ROW_REMOVE)
        answer->changed == 0 ? give_applied(op, query) : (void)0;
    else if (op == OP_ACQUIRE)
        give_try(query, answer, cells);
    else if (op == OP_ACQUIRE_ALL || op == OP_RENEW_ALL)
        give_several(query, answer, cells);
    else if (op == OP_LIST || op == OP_SWEEP)
        give_rows(query, answer, cells);
    else if (op == OP_WAITERS)
        give_waiters(query, answer, cells);
    else if (op == OP_SWEEP_WAITERS || op == OP_SWEEP_KEYS)
        query->changed = answer->rows;
    else if (of_locks && (op != OP_CYCLE || answer->circle) && !give(query, op, &cells, SIZE_MAX))
        query->changed = 1;
}

/* ---- queries */

/* A statement's text begins with the name of its step. A statement about the caller's own tables
 * has no step number. */
static enum script_op op_of(const struct rlk_query *query)
{
    static const char mark[] = "/* rowlock:";
    const char *name = strstr(query->sql, mark);
    size_t length = name ? strcspn(name + strlen(mark), " ") : 0;
    if (query->step == RLK_STEP_EXPIRED || query->step == RLK_STEP_SWEEP_QUIET)
        return OP_SWEEP;
    if (query->step != RLK_STEP_NONE)
        return (enum script_op)query->step;
    for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT && name; step++)
        if (strlen(rlk_steps[step].name) == length &&
            memcmp(rlk_steps[step].name, name + strlen(mark), length) == 0)
            return (enum script_op)step;
    abort();
}

static void note_query(const struct rlk_query *query)
{
    struct script_query *to = &queries[state.queries++ % QUERIES_KEPT];
    snprintf(to->sql, sizeof to->sql, "%s", query->sql);
    for (size_t i = 0; i < query->count && i < sizeof to->values / sizeof to->values[0]; i++)
        to->values[i] = query->values[i];
}

/* The question before a try or a batch gets no row, and is not among the calls. */
static enum rlk_class say_nothing(struct rlk_query *query)
{
    bool met = query->step == RLK_STEP_ACQUIRE_MET;
    const rowlock_value undecided[5] = {
        rowlock_int(0), {0}, {0}, met ? rowlock_null() : rowlock_bool(0), rowlock_int(db_now())};
    if (met || query->step == RLK_STEP_ACQUIRE_USUAL)
        query->each(query->context, undecided, 5);
    return RLK_DONE;
}

static enum rlk_class script_backend_query(void *conn, struct rlk_call *call,
                                           struct rlk_query *query)
{
    struct connection *c = conn;
    texts_now = c->texts;
    if (query->step == RLK_STEP_LOOK || query->step == RLK_STEP_STILL_HELD ||
        query->step == RLK_STEP_ACQUIRE_USUAL || query->step == RLK_STEP_ACQUIRE_MET ||
        query->step == RLK_STEP_SWEEP_END)
        return say_nothing(query);
    enum script_op op = op_of(query);
    enter();
    if (op > OP_RAISE)
        note_query(query);
    if (op == OP_LEAVE)
        script.leaves_later = call->worth_until_us > call->deadline_us;
    note_question(query);
    leave();
    struct script_answer answer = take_for(c, op, call, number(query, "request"));
    /* What is gone for a renewal or a release is gone for the proof after it. left_us: it is not. */
    enter();
    answer.missing |= op == OP_VERIFY && state.gone && !answer.left_us;
    state.gone = answer.missing && (op == OP_RENEW || op == OP_RELEASE);
    leave();
    query->changed = answer.changed;
    if (query->waits_for_all)
        *query->waits_for_all = !answer.elsewhere;
    if (answer.give)
        answer.give(query);
    else if (answer.class == RLK_DONE && answer.cells)
        give_given(query, &answer);
    else if (answer.class == RLK_DONE && (!answer.missing || op == OP_FACTS))
        give_found(op, query, &answer);
    return answer.class;
}

static bool script_tell(void *conn, struct rlk_call *call, enum rlk_news news,
                        const struct rlk_request *request, int64_t number)
{
    return news == RLK_ENQUEUED && number != 0;
}

/* A COMMIT that fails ends the transaction too. One without an answer is not inside. */
static enum rlk_class script_frame(void *conn, struct rlk_call *call, enum rlk_frame what)
{
    struct connection *c = conn;
    bool inside = is_inside(c);
    bool ends = what == RLK_COMMIT || what == RLK_ROLLBACK;
    call->where = RLK_EITHER;
    if (what == RLK_BEGIN ? inside : what != RLK_LOOK && !inside)
        return inside ? RLK_IN_TX : RLK_NO_TX;
    struct script_answer answer = take(c, (enum script_op)(OP_BEGIN + what - RLK_BEGIN), call);
    call->inside = inside && !(what == RLK_COMMIT && answer.class == RLK_UNCERTAIN);
    if (what == RLK_BEGIN && answer.class == RLK_DONE)
        set_in_tx(c, true);
    else if (ends)
        set_in_tx(c, false);
    return answer.class;
}

/* ---- replaces src/api/drivers.c */

static const char *const schemes[] = {"postgresql", "mysql", "sqlite", NULL};

/* Its name, quote, marker and packing are those of a dialect. Core fills in that dialect's
 * statements, which are not sent. */
static struct rlk_driver backend = {
    .schemes = schemes,
    .conn_size = sizeof(struct connection),
    .open = script_backend_open,
    .adopt = script_backend_adopt,
    .use_in_thread = script_use_in_thread,
    .close = script_backend_close,
    .script = script_script,
    .facts = script_facts,
    .tell = script_tell,
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

/* "mariadb" stands for a database that is known and not built in. */
const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known)
{
    const char *const *name = schemes;
    while (*name && strcmp(*name, scheme) != 0)
        name++;
    *known = *name || strcmp(scheme, "mariadb") == 0;
    return *name ? &backend : NULL;
}

/* ---- handles */

static rowlock_db *shorten(rowlock_db *db)
{
    db->statement_us = SCRIPT_MOMENT_MS * 1000;
    db->reconnect_us = db->reconnect_us ? SCRIPT_MOMENT_MS * 1000 : 0;
    script_calls();
    return db;
}

rowlock_db *script_open(const rowlock_db_options *options)
{
    return shorten(must_open_with("sqlite:script", options));
}

rowlock_db *script_adopt(void)
{
    static int vendor;
    rowlock_db *db = NULL;
    if (rowlock_db_adopt_sqlite((struct sqlite3 *)(void *)&vendor, NULL, &db, NULL) != ROWLOCK_OK)
        abort();
    return shorten(db);
}
