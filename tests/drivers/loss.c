/* SPDX-License-Identifier: MIT
 *
 * One request or answer that gets lost, and a worker's surroundings; see loss.h. Each worker has
 * tables and a proxy of its own, since some operations concern all names of an installation. */
#include "loss.h"

#include "core/db.h"

enum { GRACE_MS = 3000, RECONNECT_MS = 8000 };

/* Time limits are longer on a slow machine, but a test has 900 seconds. */
static int64_t stretched(const struct loss *l, int64_t ms)
{
    return ms * (slowdown() > 3 ? 3 : slowdown()) * (l->patience ? l->patience : 1);
}

/* MySQL's client libraries know whole seconds only. */
int64_t loss_deadline_ms(const struct loss *l)
{
    return stretched(l, strcmp(l->raw->name, "mysql") == 0 ? 1000 : 500);
}

static int64_t loss_delay_ms(const struct loss *l)
{
    return loss_deadline_ms(l) * 3 / 2;
}

bool loss_is_late(const struct loss *l)
{
    return l->way == REQUEST_LATE || l->way == REQUEST_LATE_POOLED || l->way == REQUEST_LATE_DONE;
}

bool loss_is_cut(enum loss_way way)
{
    return way == REQUEST_CUT || way == ANSWER_CUT;
}

/* The old session can be ended. Not in MySQL, which tells a session by its port: the proxy's. */
static bool loss_can_end(const struct loss *l)
{
    return l->way != REQUEST_LATE_POOLED && strcmp(l->raw->name, "mysql") != 0;
}

static struct fault loss_fault(const struct loss *l)
{
    bool cut = loss_is_cut(l->way);
    bool swallowed = l->way == REQUEST_SWALLOWED || l->way == ANSWER_SWALLOWED;
    bool answer = l->way == ANSWER_CUT || l->way == ANSWER_LATE || l->way == ANSWER_SWALLOWED;
    return (struct fault){.kind = cut         ? FAULT_CUT
                                  : swallowed ? FAULT_BLACKHOLE
                                              : FAULT_DELAY,
                          .side = answer ? ON_ANSWER : ON_REQUEST,
                          .delay_ms = (int)loss_delay_ms(l)};
}

rowlock_db_options loss_options(const struct loss *l)
{
    return *OPTIONS(db, .statement_timeout_ms = loss_deadline_ms(l),
                    .connect_timeout_ms = loss_deadline_ms(l),
                    .reconnect_ms = l->mode == NOT_RECONNECTING ? -1 : stretched(l, RECONNECT_MS));
}

rowlock_db_options loss_longer(struct loss *l, int64_t end_ms, const char *why)
{
    if (clock_ms() > end_ms)
        raw_failed("opening", why);
    l->patience++;
    return loss_options(l);
}

rowlock_db *loss_open_at(struct loss *l, const char *url, const char *prefix)
{
    rowlock_db_options options = loss_options(l);
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    int64_t end_ms = clock_ms() + OPENING_MS;
    while (options.prefix = prefix, rowlock_db_open(url, &options, &db, &err) != ROWLOCK_OK)
        options = loss_longer(l, end_ms, err.text);
    return db;
}

rowlock_db *loss_open(struct loss *l)
{
    rowlock_db *db = loss_open_at(l, l->via, NULL);
    if (l->way == REQUEST_LATE_POOLED)
        db->session[0] = '\0';
    return db;
}

rowlock_lock *loss_hold(struct loss *l, rowlock_db *db)
{
    rowlock_lock *lock = must_lock(db, l->name);
    loss_result(l, db, try_lock(lock, LONG_TTL_MS), ROWLOCK_OK, "a lock is granted at first");
    return lock;
}

void loss_arm(struct loss *l)
{
    if (l->mode == CONNECTING)
        faultproxy_cut(l->proxy);
    l->armed_ms = clock_ms();
    faultproxy_round_trips(l->proxy);
    faultproxy_arm(l->proxy, l->nth, loss_fault(l));
}

void loss_disarm(struct loss *l)
{
    l->fired = faultproxy_fired(l->proxy);
    l->requests = faultproxy_round_trips(l->proxy);
    faultproxy_arm(l->proxy, 0, loss_fault(l));
}

int loss_ended(struct loss *l, int said)
{
    loss_disarm(l);
    return said;
}

/* Time: the proxy delays by the real clock, since some moment between arming and now. On a machine
 * that is not called slow, a statement takes half of a deadline at most. */
void loss_pass(const struct loss *l)
{
    int64_t longest_ms = clock_ms() - l->armed_ms, half_ms = loss_deadline_ms(l) / 2;
    if (longest_ms > half_ms)
        longest_ms = half_ms;
    int64_t until_ms = l->armed_ms + longest_ms + loss_delay_ms(l) + half_ms;
    /* Time: see above. What has not arrived by then arrives later, and the calls that follow allow it. */
    if (loss_is_late(l) && until_ms > clock_ms())
        sleep_ms(until_ms - clock_ms());
}

bool loss_may_have_passed(const struct loss *l)
{
    return l->way != REQUEST_LATE_DONE && loss_is_late(l) && !loss_can_end(l) &&
           clock_ms() - l->armed_ms >= loss_delay_ms(l);
}

void loss_pass_before(const struct loss *l)
{
    if (l->way == REQUEST_LATE_DONE)
        loss_pass(l);
}

bool loss_result(struct loss *l, const rowlock_db *db, int got, int want, const char *what)
{
    l->unreached |= got == ROWLOCK_ECONN || got == ROWLOCK_EUNCERTAIN;
    return loss_is(l, got, want, "%s%s%s", what, got == want ? "" : ": ",
                   got == want ? "" : why(db));
}

static void check_duration(const struct loss *l)
{
    rowlock_db_options options = loss_options(l);
    int64_t longest_ms = 2 * (options.statement_timeout_ms + options.connect_timeout_ms) +
                         (options.reconnect_ms > 0 ? options.reconnect_ms : 0) +
                         stretched(l, GRACE_MS);
    int64_t took_ms = clock_ms() - l->armed_ms;
    loss_ok(l, took_ms < longest_ms, "it takes no longer than it may, %lld ms", (long long)took_ms);
}

bool loss_said(struct loss *l, const rowlock_db *db, int said, int want)
{
    check_duration(l);
    if (!l->fired || l->mode != NOT_RECONNECTING)
        return loss_result(l, db, said, want, "it is done");
    return loss_ok(l, said == ROWLOCK_ECONN || said == ROWLOCK_EUNCERTAIN,
                   "%s tells that it is lost", rowlock_result_name(said));
}

void loss_read_said(struct loss *l, const rowlock_db *db, int said)
{
    check_duration(l);
    bool lost = l->fired && l->mode == NOT_RECONNECTING;
    loss_result(l, db, said, lost ? ROWLOCK_ECONN : ROWLOCK_OK, "a read is never uncertain");
}

long long loss_rows(const struct loss *l)
{
    return loss_int(l, "SELECT count(*) FROM %slocks WHERE name = '%s'", l->prefix, l->name);
}

long long loss_floor(const struct loss *l)
{
    return loss_int(l, "SELECT token_floor FROM %smeta", l->prefix);
}

long long loss_token(const struct loss *l)
{
    return loss_int(l, "SELECT coalesce(max(token), 0) FROM %stokens WHERE name = '%s'", l->prefix,
                    l->name);
}

long long loss_seen(const struct loss *l)
{
    return loss_int(l, "SELECT coalesce(max(token), 0) FROM %sfences WHERE resource = '%s'",
                    l->prefix, l->name);
}

long long loss_next_token(const struct loss *l)
{
    long long token = loss_token(l);
    return (token ? token : loss_floor(l)) + 1;
}

long long loss_column(const struct loss *l, const char *column)
{
    return loss_int(l, "SELECT coalesce(max(%s), 0) FROM %slocks WHERE name = '%s'", column,
                    l->prefix, l->name);
}

long long loss_left_ms(const struct loss *l)
{
    long long left_us = raw_int(
        l->raw, l->session, "SELECT coalesce(max(expires - %s), 0) FROM %slocks WHERE name = '%s'",
        l->raw->clock, l->prefix, l->name);
    return left_us > 0 ? left_us / 1000 : 0;
}

/* Our clock is asked last, so that time works for us. */
void loss_not_overstated(const struct loss *l, const rowlock_lock *lock)
{
    long long there_ms = loss_left_ms(l);
    long long counted_ms = rowlock_lock_remaining_ms(lock);
    loss_ok(l, counted_ms <= there_ms, "%lld ms are counted upon, the table has %lld", counted_ms,
            there_ms);
}

void loss_granted(const struct loss *l, const rowlock_lock *lock, long long token)
{
    char owner[300] = "", sql[200];
    snprintf(sql, sizeof sql, "SELECT owner FROM %slocks WHERE name = '%s'", l->prefix, l->name);
    loss_is(l, loss_rows(l), 1, "one grant is in the table");
    l->raw->ask(l->session, sql, owner, sizeof owner);
    loss_ok(l,
            strcmp(owner, rowlock_lock_owner(lock)) == 0 &&
                loss_column(l, "token") == rowlock_lock_token(lock),
            "it is ours");
    loss_is(l, rowlock_lock_token(lock), token, "there never was another");
    loss_is(l, loss_token(l), token, "by its counter too");
    loss_not_overstated(l, lock);
}

void loss_rival_gets(struct loss *l, long long above)
{
    rowlock_db *db = l->others;
    OWNED(lock) rowlock_lock *lock = must_lock(db, l->name);
    loss_result(l, db, wait_lock(lock, LONG_TTL_MS, GENEROUS_MS), ROWLOCK_OK,
                "somebody else gets the lock");
    loss_ok(l, rowlock_lock_token(lock) > above, "with a higher token");
    loss_result(l, db, rowlock_release(lock), ROWLOCK_OK, "and gives it back");
}

void loss_gone_or_explained(struct loss *l, const char *owner)
{
    bool may_arrive = loss_is_late(l) && !loss_can_end(l);
    if (loss_rows(l) == 0) {
        loss_ok(l, true, "nothing is left behind");
        l->may_follow += may_arrive;
        return;
    }
    loss_ok(l, may_arrive, "only what arrives after all is left behind");
    loss_is(l, loss_rows(l), 1, "that is one grant");
    loss_ok(l, strcmp(grant_of(l->others, l->name).owner, owner) == 0, "of ours");
    loss_is(l, loss_column(l, "expires - acquired"), TTL_MS * 1000LL,
            "and expires as it was asked for");
    l->explained++;
}

void loss_drop_tables(const struct loss *l)
{
    static const char *const tables[] = {"locks", "waiters", "tokens", "fences",
                                         "meta",  "once",    "walks",  "rows"};
    for (int t = 0; t < COUNT(tables); t++)
        loss_run(l, "DROP TABLE IF EXISTS %s%s%s", l->prefix, tables[t],
                 strcmp(l->raw->name, "postgres") == 0 ? " CASCADE" : "");
}

bool loss_set_up(struct loss *l, const struct raw *raw, const char *url, int number)
{
    *l = (struct loss){.raw = raw, .url = url, .number = number, .what = "a worker"};
    l->proxy = faultproxy_start(l->url, &l->through);
    if (!l->proxy)
        return false;
    snprintf(l->text, sizeof l->text, "worker %d", number);
    snprintf(l->prefix, sizeof l->prefix, "lost%d_", number);
    const char *parameter = textf("rowlock_prefix=%s", l->prefix);
    l->ours = url_with(l->url, parameter);
    l->via = url_with(l->through, parameter);
    l->session = l->raw->open(l->url);
    loss_drop_tables(l);
    l->others = must_open(l->ours);
    loss_result(l, l->others, rowlock_install(l->others), ROWLOCK_OK, "there are tables");
    loss_run(l, "CREATE TABLE %srows (id bigint PRIMARY KEY, n bigint, version bigint NOT NULL)",
             l->prefix);
    return true;
}

/* What is left behind was counted, and a sweep finds it when its lease is over. */
void loss_check_rest(struct loss *l)
{
    /* What a case had sent that was begun anew may have arrived after its rows were removed. */
    loss_run(l, "DELETE FROM %slocks WHERE name IN ('%s')", l->prefix, l->dropped);
    long long left = loss_int(l, "SELECT count(*) FROM %slocks", l->prefix);
    char name[300] = "";
    l->raw->ask(l->session, textf("SELECT max(name) FROM %slocks", l->prefix), name, sizeof name);
    loss_ok(l, left >= l->explained && left <= l->explained + l->may_follow,
            "%lld rows are left, the last of '%s': %d explained, %d may have come since", left,
            name, l->explained, l->may_follow);
    if (left == 0)
        return;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    loss_run(l, "UPDATE %slocks SET expires = 1", l->prefix);
    loss_result(l, l->others, rowlock_sweep(l->others, NULL, &report), ROWLOCK_OK, "that is swept");
    loss_is(l, report.locks, left, "all of it had expired");
}

void loss_clean(struct loss *l)
{
    static const char *const tables[] = {"locks", "waiters"};
    for (size_t t = 0; t < COUNT(tables); t++)
        loss_run(l, "DELETE FROM %s%s WHERE name = '%s'", l->prefix, tables[t], l->name);
    size_t used = strlen(l->dropped);
    snprintf(l->dropped + used, sizeof l->dropped - used, "', '%s", l->name);
}

void loss_tear_down(struct loss *l)
{
    rowlock_db_close(l->others);
    loss_drop_tables(l);
    l->raw->close(l->session);
    faultproxy_stop(l->proxy);
    free(l->through);
    free(l->ours);
    free(l->via);
}
