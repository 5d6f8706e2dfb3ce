/* SPDX-License-Identifier: MIT
 *
 * The server itself interrupts: a statement that waits for a row is cancelled, or runs out of the
 * time that its session allows, or its connection is killed. The surroundings are those of loss.h,
 * without losing anything on the way. */

#include "each.h"
#include "loss.h"

enum { WORKERS = 8, JOBS_MAX = 100, STATEMENT_MS = 2000, PATIENCE_MS = 60000, HAMMER_MS = 2500 };

enum interruption { CANCELLED, KILLED, TIMED_OUT, INTERRUPTIONS };
static const char *const interruption_texts[INTERRUPTIONS] = {"cancelled", "killed", "timed out"};

/* A call that waits for a row of a table. */
static const struct waiting {
    const char *what, *table, *key;
    enum verb { BREAK, RENEW, RELEASE, RAISE, FENCE, GUARD, TX_RELEASE, TX_FENCE } verb;
} waitings[] = {
    {"break", "tokens", "name", BREAK},
    {"renew", "locks", "name", RENEW},
    {"release", "locks", "name", RELEASE},
    {"raise", "tokens", "name", RAISE},
    {"fence", "fences", "resource", FENCE},
    {"guard", "tokens", "name", GUARD},
    {"release in a transaction", "locks", "name", TX_RELEASE},
    {"fence in a transaction", "fences", "resource", TX_FENCE},
};
enum { WAITINGS = COUNT(waitings) };

/* One case. */
struct kill {
    struct loss *l;
    const struct waiting *waiting;
    bool in_tx;
    enum interruption how;
    bool stays; /* the holder of the row keeps it until the call has ended */
    void *session; /* adopted; NULL: the connection is our own */
    rowlock_db *db, *holders; /* the one that is interrupted, and another */
    rowlock_lock *lock;
    long long token;
    atomic_bool ended;
};

static bool is_mysql(const struct loss *l)
{
    return strcmp(l->raw->name, "mysql") == 0;
}

static int call(struct kill *k)
{
    switch (k->waiting->verb) {
    case BREAK:
        return rowlock_break(k->db, k->l->name, k->token, NULL);
    case RENEW:
        return rowlock_renew(k->lock, 0);
    case RELEASE:
        return rowlock_release(k->lock);
    case RAISE:
        return rowlock_raise_tokens(k->db, 1000, NULL);
    case GUARD:
        return rowlock_guard(k->lock, k->db);
    case TX_RELEASE:
        return rowlock_tx_release(k->lock, k->db);
    default:
        return rowlock_fence(k->db, k->l->name, 5);
    }
}

static bool is_done(const struct kill *k)
{
    switch (k->waiting->verb) {
    case RENEW:
        return loss_column(k->l, "renewals") > 0;
    case RAISE:
        return loss_token(k->l) > k->token;
    case FENCE:
    case TX_FENCE:
        return raw_int(k->l->raw, k->l->session,
                       "SELECT max(token) FROM %sfences WHERE resource = '%s'", k->l->prefix,
                       k->l->name) == 5;
    default:
        return loss_rows(k->l) == 0;
    }
}

/* A session that waits, or one that is at work, by the name of the tables in its statement. */
static bool find_session(struct loss *l, bool waits, char *id, size_t cap)
{
    static const char *const waiting[] = {"wait_event_type = 'Lock'",
                                          "command <> 'Sleep' AND time_ms > 30"};
    const char *where = waits ? waiting[is_mysql(l)] : is_mysql(l) ? "1 = 1" : "state = 'active'";
    const char *sql = textf(
        is_mysql(l) ? "SELECT id FROM information_schema.processlist WHERE info LIKE '%%%s%%' "
                      "AND id <> connection_id() AND %s LIMIT 1"
                    : "SELECT pid FROM pg_stat_activity WHERE query LIKE '%%%s%%' AND pid <> "
                      "pg_backend_pid() AND %s LIMIT 1",
        l->prefix, where);
    return l->raw->ask(l->session, sql, id, cap);
}

/* It may have ended by itself meanwhile. */
static void interrupt_session(struct loss *l, const char *id, enum interruption how)
{
    char ignored[300];
    const char *sql =
        is_mysql(l) ? textf("KILL %s %s", how == KILLED ? "CONNECTION" : "QUERY", id)
                    : textf("SELECT pg_%s_backend(%s)", how == KILLED ? "terminate" : "cancel", id);
    l->raw->run(l->session, sql, ignored, sizeof ignored);
}

static int call_in_thread(void *argument)
{
    struct kill *k = argument;
    int said = call(k);
    k->ended = true;
    return said;
}

static void open_connection(struct kill *k)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    options.statement_timeout_ms = k->stays ? slow_ms(STATEMENT_MS) : PATIENCE_MS;
    options.prefix = k->l->prefix;
    if (!k->in_tx && k->how != TIMED_OUT) {
        k->db = must_open_with(k->l->url, &options);
        return;
    }
    k->session = k->l->raw->open(k->l->url);
    if (k->l->raw->adopt(&k->db, k->session, &options, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    if (k->in_tx)
        raw_run(k->l->raw, k->session, "BEGIN");
}

/* What is adopted with a transaction of its own, or may be lost, does not own the lock. */
static void set_the_scene(struct kill *k)
{
    struct loss *l = k->l;
    char why_not[300] = "";
    open_connection(k);
    k->holders = must_open(l->ours);
    bool ours = k->waiting->verb == RENEW || k->waiting->verb == RELEASE;
    k->lock = must_lock(ours ? k->db : k->holders, l->name);
    loss_is(l, try_lock(k->lock, LONG_TTL_MS), ROWLOCK_OK, "a lock is held");
    k->token = rowlock_lock_token(k->lock);
    loss_is(l, rowlock_fence(k->holders, l->name, 3), ROWLOCK_OK, "and fenced");
    const char *limit =
        is_mysql(l) ? "SET max_statement_time = 0.4" : "SET statement_timeout = 400";
    if (k->how == TIMED_OUT && !l->raw->run(k->session, limit, why_not, sizeof why_not))
        tap_note("this server has no such timeout: %s", why_not);
}

static int run_and_interrupt(struct kill *k)
{
    struct loss *l = k->l;
    char id[40];
    OWNED(session) void *blocker = l->raw->open(l->url);
    raw_run(l->raw, blocker, "BEGIN");
    raw_run(l->raw, blocker, "SELECT * FROM %s%s WHERE %s = '%s' FOR UPDATE", l->prefix,
            k->waiting->table, k->waiting->key, l->name);
    /* A server may still list what it has answered. What this finds must not be the blocker. */
    raw_run(l->raw, blocker, "SELECT 1");
    struct helper *helper = helper_start(call_in_thread, k);
    int64_t end_ms = clock_ms() + PATIENCE_MS;
    bool found = false;
    while (!found && !k->ended && clock_ms() < end_ms) {
        found = find_session(l, true, id, sizeof id);
        sleep_ms(10);
    }
    /* If the machine stood still, a statement that waits for a lock in vain has timed out by itself. */
    loss_ok(l, found || k->how == TIMED_OUT || (k->stays && k->ended), "the statement waits");
    if (found && k->how != TIMED_OUT)
        interrupt_session(l, id, k->how);
    /* Time: the session's limit of 400 ms goes by the server's clock. The checks allow that the row
     * is let go before it. */
    if (k->how == TIMED_OUT)
        sleep_ms(500);
    if (!k->stays)
        raw_run(l->raw, blocker, "ROLLBACK");
    return helper_join(helper);
}

/* True if it was committed. */
static bool end_transaction(struct kill *k, int said)
{
    char ignored[300];
    bool committed =
        said == ROWLOCK_OK && k->l->raw->run(k->session, "COMMIT", ignored, sizeof ignored);
    loss_ok(k->l, said == ROWLOCK_OK || said == ROWLOCK_CONFLICT || said == ROWLOCK_ECONN,
            "in a transaction: %s", rowlock_result_name(said));
    if (said == ROWLOCK_CONFLICT)
        loss_ok(k->l, k->l->raw->run(k->session, "ROLLBACK", ignored, sizeof ignored),
                "what lost is rolled back");
    return committed;
}

static void check_truth(struct kill *k, int said)
{
    struct loss *l = k->l;
    bool sure = said == ROWLOCK_OK;
    if (k->in_tx)
        sure = end_transaction(k, said);
    else if (k->session) /* the statement alone was lost, or more; no reconnecting */
        loss_ok(l, said == ROWLOCK_OK || said == ROWLOCK_EUNCERTAIN || said == ROWLOCK_ESERVER,
                "on an adopted connection: %s", rowlock_result_name(said));
    else if (!k->stays)
        loss_ok(l, sure || (said == ROWLOCK_EUNCERTAIN && k->waiting->verb == BREAK),
                "it is done in the end: %s", sure ? "OK" : why(k->db));
    /* Time: nothing may be done later either. What comes after this is missed, and not reported. */
    sleep_ms(slow_ms(200));
    if (k->waiting->verb != GUARD && said != ROWLOCK_EUNCERTAIN)
        loss_is(l, is_done(k), sure, "%s is the truth", rowlock_result_name(said));
}

/* The handle of the lock finds out. */
static void clean_up(struct kill *k)
{
    struct loss *l = k->l;
    bool broken = k->waiting->verb == BREAK && loss_rows(l) == 0;
    if (k->session) {
        rowlock_lock *held =
            must_attach(k->holders, l->name, rowlock_lock_owner(k->lock), k->token);
        int said = rowlock_release(held);
        loss_ok(l, said == ROWLOCK_OK || said == ROWLOCK_LOST, "it is released: %s",
                rowlock_result_name(said));
        rowlock_lock_close(held);
    } else if (rowlock_lock_token(k->lock)) {
        loss_is(l, rowlock_release(k->lock), broken ? ROWLOCK_LOST : ROWLOCK_OK, "it is released");
    }
    if (broken)
        loss_is(l, loss_token(l), k->token + 1, "the token is bumped once");
    rowlock_forget(k->lock);
    rowlock_lock_close(k->lock);
    close_dbs(k->db, k->holders);
    if (k->session)
        l->raw->close(k->session);
    loss_is(l, loss_rows(l), 0, "nothing is left behind");
    loss_rival_gets(l, k->token);
}

static void run_case(struct loss *l, const struct waiting *waiting, enum interruption how,
                     bool stays)
{
    struct kill k = {
        .l = l, .waiting = waiting, .in_tx = waiting->verb >= GUARD, .how = how, .stays = stays};
    snprintf(l->text, sizeof l->text, "%s, %s%s", waiting->what, interruption_texts[how],
             stays ? ", and the row stays locked" : "");
    snprintf(l->name, sizeof l->name, "%s%s %d", l->prefix, waiting->what, ++l->serial);
    set_the_scene(&k);
    check_truth(&k, run_and_interrupt(&k));
    clean_up(&k);
}

/* ---- grants while everything is interrupted all the time */

struct hammer {
    struct loss *l;
    long long last;
    atomic_int grants;
    int failures;
    char failure[300]; /* the last one */
    bool rising;
    atomic_bool healthy, stop;
};

static int until_done(struct hammer *h, rowlock_db *db, int (*step)(rowlock_lock *lock),
                      rowlock_lock *lock)
{
    int said = step(lock);
    for (int i = 0; i < 1000 && said != ROWLOCK_OK && said != ROWLOCK_EMISUSE; i++) {
        h->failures++;
        snprintf(h->failure, sizeof h->failure, "%s", why(db));
        said = step(lock);
    }
    return said;
}

static int acquire(rowlock_lock *lock)
{
    return try_lock(lock, LONG_TTL_MS);
}

static int swing(void *argument)
{
    struct hammer *h = argument;
    OWNED(db)
    rowlock_db *db = must_open_with(h->l->ours, OPTIONS(db, .statement_timeout_ms = slow_ms(1000)));
    while (!h->stop && h->healthy) {
        OWNED(lock) rowlock_lock *lock = must_lock(db, h->l->name);
        h->healthy = until_done(h, db, acquire, lock) == ROWLOCK_OK;
        h->rising = h->rising && rowlock_lock_token(lock) > h->last;
        h->last = rowlock_lock_token(lock);
        h->healthy = h->healthy && until_done(h, db, rowlock_release, lock) == ROWLOCK_OK;
        h->grants += h->healthy;
        if (!h->healthy)
            tap_note("%s: %s; the last failure: %s", h->l->text, why(db), h->failure);
    }
    return 0;
}

static void hammer(struct loss *l, enum interruption how)
{
    struct hammer h = {.l = l, .rising = true, .healthy = true};
    char id[40];
    int interrupted = 0;
    snprintf(l->text, sizeof l->text, "acquire and release, %s at any time",
             interruption_texts[how]);
    snprintf(l->name, sizeof l->name, "%shammer %d", l->prefix, ++l->serial);
    struct helper *helper = helper_start(swing, &h);
    int64_t end_ms = clock_ms() + HAMMER_MS, last_ms = end_ms + PATIENCE_MS;
    while (clock_ms() < (!(h.grants && interrupted) && h.healthy ? last_ms : end_ms)) {
        bool found = find_session(l, false, id, sizeof id);
        if (found)
            interrupt_session(l, id, how);
        interrupted += found;
        sleep_ms(!found ? 0 : how == KILLED ? 20 : 3);
    }
    h.stop = true;
    helper_join(helper);
    loss_ok(l, h.healthy && h.grants > 0 && interrupted > 0,
            "%d grants, %d interruptions, %d failures that were told", h.grants, interrupted,
            h.failures);
    loss_ok(l, h.rising, "each with a higher token");
    loss_is(l, loss_rows(l), 0, "nothing is left behind");
}

static atomic_int next_job;

static int work(void *argument)
{
    struct loss *l = argument;
    const int cases = WAITINGS * INTERRUPTIONS * 2;
    for (int at; (at = atomic_fetch_add(&next_job, 1)) < cases + 2;)
        if (at < 2)
            hammer(l, (enum interruption)at);
        else
            run_case(l, &waitings[(at - 2) % WAITINGS],
                     (enum interruption)((at - 2) / WAITINGS % INTERRUPTIONS),
                     (at - 2) / WAITINGS / INTERRUPTIONS);
    snprintf(l->text, sizeof l->text, "tables %s", l->prefix);
    loss_check_rest(l);
    return 0;
}

static int run(const struct raw *raw, const char *url)
{
    static struct loss workers[WORKERS];
    struct helper *helpers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if (!loss_set_up(&workers[i], raw, url, i))
            return tap_skip_all("the server's URL has no host and port");
    for (int i = 0; i < WORKERS; i++)
        helpers[i] = helper_start(work, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        helper_join(helpers[i]);
    for (int i = 0; i < WORKERS; i++)
        loss_tear_down(&workers[i]);
    return tap_done();
}

EACH_MAIN(run)
