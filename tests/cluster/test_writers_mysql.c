/* SPDX-License-Identifier: MIT
 *
 * Two nodes of one cluster that both take writes: Galera, or Group Replication in multi-primary mode. A row
 * lock is local to its node there, so what a transaction promises must show in the rows that it changes.
 * And what a node has not applied yet, a read on it does not see. */

#include "nodes.h"
#include "raw.h"

enum { SHORT_MS = 200, TTL_MS = 30000, ROUNDS = 60, RACE_MS = 100, MINE = 100 };

/* A holder on one node and a rival on the other. The rival's grant is newer. */
struct pair {
    void *session; /* the holder's transaction */
    rowlock_db *tx, *own, *rival;
    rowlock_lock *lock, *wanted;
};

static struct pair pair_open(const char *name)
{
    struct pair p = {
        .session = raw_mysql.open(node[0]), .own = must_open(node[0]), .rival = must_open(node[1])};
    p.tx = must_adopt(&raw_mysql, p.session, NULL);
    p.lock = must_lock(p.own, name);
    p.wanted = must_lock(p.rival, name);
    return p;
}

static void pair_close(struct pair *p)
{
    close_locks(p->lock, p->wanted);
    close_dbs(p->tx, p->own, p->rival);
    raw_mysql.close(p->session);
}

static int hold(rowlock_lock *lock, int permits, int64_t ttl_ms)
{
    return rowlock_acquire(
        lock, OPTIONS(acquire, .permits = permits, .ttl_ms = ttl_ms, .wait_ms = slow_ms(10000)));
}

/* What the busy node commits from now on reaches the others later: they have much else to do before. */
static void make_lag_behind(const char *busy)
{
    db_exec(&raw_mysql, busy, "UPDATE cluster_big SET v = v + 1");
}

/* A row that was read under the lock is written in a transaction that ends after the rival's grant. */
static int unclear; /* times that a step in the transaction ended without a clear answer */

static bool commits(struct pair *p, const char *work, int (*prove)(struct pair *p))
{
    char why_not[300] = "";
    raw_run(&raw_mysql, p->session, "START TRANSACTION");
    const bool worked = raw_mysql.run(p->session, work, why_not, sizeof why_not);
    const int proved = worked ? prove(p) : ROWLOCK_CONFLICT;
    unclear += proved < 0;
    if (proved == ROWLOCK_OK && raw_mysql.run(p->session, "COMMIT", why_not, sizeof why_not))
        return true;
    tap_note("%s, %s", proved == ROWLOCK_OK ? "OK" : why(p->tx), why_not);
    raw_run(&raw_mysql, p->session, "ROLLBACK");
    return false;
}

static int prove_by_guard(struct pair *p)
{
    return rowlock_guard(p->lock, p->tx);
}

static int prove_by_release(struct pair *p)
{
    return rowlock_tx_release(p->lock, p->tx);
}

static int prove_by_fence(struct pair *p)
{
    return rowlock_fence(p->tx, "cluster", rowlock_lock_token(p->lock));
}

static int prove_by_hand(struct pair *p)
{
    char changed[20] = "";
    raw_run(&raw_mysql, p->session,
            "UPDATE rowlock_tokens SET guards = guards + 1 WHERE name = 'hand' AND token = %lld",
            (long long)rowlock_lock_token(p->lock));
    if (!raw_mysql.ask(p->session, "SELECT ROW_COUNT()", changed, sizeof changed))
        raw_failed("ROW_COUNT", "no answer");
    return strcmp(changed, "1") == 0 ? ROWLOCK_OK : ROWLOCK_LOST;
}

/* The lease of a holder on node 1 has run out. A rival is granted the lock on node 2. */
static void too_late(const char *name, int permits, int (*prove)(struct pair *p), const char *what)
{
    CLOSED_BY(pair_close) struct pair p = pair_open(name);
    tap_is_int(hold(p.lock, permits, SHORT_MS), ROWLOCK_OK, "%s: a lock is held on node 1", what);
    sleep_ms(SHORT_MS + 100);
    make_lag_behind(node[1]);
    tap_is_int(hold(p.wanted, 0, TTL_MS), ROWLOCK_OK,
               "and granted to a rival on node 2 afterwards");
    if (prove == prove_by_fence)
        tap_is_int(rowlock_fence(p.rival, "cluster", rowlock_lock_token(p.wanted)), ROWLOCK_OK,
                   "which shows the resource its token");
    tap_ok(!commits(&p, "UPDATE cluster_money SET cents = cents - 100 WHERE id = 1", prove),
           "%s: the holder's transaction does not commit after that", what);
}

/* The rival's grant and the holder's commit meet at some moment. */
struct race {
    struct pair *p;
    int64_t pause_us;
    int result;
    long long seen; /* what the rival read under its lock */
};

static void pause_us(int64_t us)
{
    const struct timespec time = {.tv_nsec = (long)us * 1000};
    nanosleep(&time, NULL);
}

static int take_over(void *argument)
{
    struct race *r = argument;
    pause_us(r->pause_us);
    r->result = hold(r->p->wanted, 0, TTL_MS);
    r->seen = db_int(&raw_mysql, node[1], "SELECT cents FROM cluster_money WHERE id = 1");
    return 0;
}

/* Whatever became of its grant. */
static void let_go(rowlock_lock *lock)
{
    if (rowlock_release(lock) != ROWLOCK_OK)
        rowlock_forget(lock);
}

/* True: the holder committed, and the rival had read the row before. */
static bool overtakes(struct pair *p, int *committed)
{
    struct race r = {.p = p, .pause_us = rand() % 2500};
    if (hold(p->lock, 0, RACE_MS) != ROWLOCK_OK)
        raw_failed("no grant", why(p->own));
    sleep_ms(RACE_MS + 20);
    struct helper *rival = helper_start(take_over, &r);
    pause_us(rand() % 1500);
    const bool done =
        commits(p, "UPDATE cluster_money SET cents = cents + 1 WHERE id = 1", prove_by_guard);
    helper_join(rival);
    *committed += done;
    sleep_ms(60);
    const long long cents =
        db_int(&raw_mysql, node[1], "SELECT cents FROM cluster_money WHERE id = 1");
    let_go(p->wanted);
    let_go(p->lock);
    return done && r.result == ROWLOCK_OK && r.seen != cents;
}

static void races(void)
{
    CLOSED_BY(pair_close) struct pair p = pair_open("race");
    int committed = 0, overtaken = 0;
    for (int i = 0; i < ROUNDS || (committed == 0 && i < 50 * ROUNDS); i++)
        overtaken += overtakes(&p, &committed);
    tap_is_int(overtaken, 0,
               "no commit of %d rounds comes after a grant that its guard was to keep out", ROUNDS);
    tap_ok(committed > 0, "%d were committed before it", committed);
    tap_is_int(unclear, 0, "and each guard says clearly whether the transaction is over");
}

/* Two transactions on two nodes acquire the same lock, and commit. */
static void two_grants(void)
{
    CLOSED_BY(pair_close) struct pair p = pair_open("tx");
    OWNED(session) void *session = raw_mysql.open(node[1]);
    char why_not[300];
    tap_is_int(hold(p.lock, 0, TTL_MS), ROWLOCK_OK, "a name has been granted before");
    tap_is_int(rowlock_release(p.lock), ROWLOCK_OK, "and is free");
    sleep_ms(200);
    OWNED(db) rowlock_db *tx = must_adopt(&raw_mysql, session, NULL);
    OWNED(lock) rowlock_lock *other = must_lock(tx, "tx");
    raw_run(&raw_mysql, p.session, "START TRANSACTION");
    raw_run(&raw_mysql, session, "START TRANSACTION");
    tap_is_int(rowlock_tx_acquire(p.lock, p.tx, NULL), ROWLOCK_OK,
               "a transaction on node 1 acquires it");
    tap_is_int(rowlock_tx_acquire(other, tx, NULL), ROWLOCK_OK, "and so does one on node 2");
    const bool one = raw_mysql.run(p.session, "COMMIT", why_not, sizeof why_not);
    const bool two = raw_mysql.run(session, "COMMIT", why_not, sizeof why_not);
    tap_is_int(one + two, 1, "one of them commits");
    rowlock_forget(p.lock);
    rowlock_forget(other);
}

/* Two guarded transactions of a shared lock: the second one's commit may be refused, and then it is told. */
static void two_guards(void)
{
    CLOSED_BY(pair_close) struct pair p = pair_open("shared");
    OWNED(session) void *session = raw_mysql.open(node[1]);
    char why_not[300] = "";
    tap_is_int(hold(p.lock, ROWLOCK_SHARED, TTL_MS), ROWLOCK_OK, "a shared lock is held on node 1");
    tap_is_int(hold(p.wanted, ROWLOCK_SHARED, TTL_MS), ROWLOCK_OK, "and on node 2");
    sleep_ms(200);
    OWNED(db) rowlock_db *tx = must_adopt(&raw_mysql, session, NULL);
    raw_run(&raw_mysql, p.session, "START TRANSACTION");
    raw_run(&raw_mysql, session, "START TRANSACTION");
    tap_is_int(rowlock_guard(p.lock, p.tx), ROWLOCK_OK, "its guard on node 1");
    tap_is_int(rowlock_guard(p.wanted, tx), ROWLOCK_OK, "its guard on node 2");
    tap_ok(raw_mysql.run(p.session, "COMMIT", why_not, sizeof why_not), "one commits");
    tap_ok(!raw_mysql.run(session, "COMMIT", why_not, sizeof why_not), "the other does not: %s",
           why_not);
    raw_run(&raw_mysql, session, "ROLLBACK");
    raw_run(&raw_mysql, session, "START TRANSACTION");
    tap_is_int(rowlock_guard(p.wanted, tx), ROWLOCK_OK, "run again, it guards");
    tap_ok(raw_mysql.run(session, "COMMIT", why_not, sizeof why_not), "and commits");
}

/* A session on node 2. If causal, a read in it waits for what is committed elsewhere, for so long. */
static void *open_reader(bool causal, int wait_s)
{
    void *session = raw_mysql.open(node[1]);
    if (is_galera()) {
        raw_run(&raw_mysql, session, "SET wsrep_sync_wait = %d", causal);
        raw_run(&raw_mysql, session,
                "SET GLOBAL wsrep_provider_options = 'repl.causal_read_timeout=PT%dS'", wait_s);
    } else {
        raw_run(&raw_mysql, session, "SET group_replication_consistency = '%s', wait_timeout = %d",
                causal ? "BEFORE" : "EVENTUAL", wait_s);
    }
    return session;
}

static void reads(const char *want, bool causal, int wait_s, const char *what)
{
    OWNED(session) void *session = open_reader(causal, wait_s);
    char cents[40];
    bool any = raw_mysql.ask(session, "SELECT cents FROM cluster_money WHERE id = 2", cents, 40);
    tap_is_str(any ? cents : "an error", want, "%s", what);
}

/* Lock and work go through node 1, and are committed. Node 2, where the next holder reads, applies nothing. */
static void stale_reads(void)
{
    OWNED(db) rowlock_db *db = must_open(node[0]);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "stale");
    OWNED(session) void *frozen = raw_mysql.open(node[1]);
    reads("1000", true, 60, "a row is seen on node 2");
    raw_run(&raw_mysql, frozen, "FLUSH TABLES WITH READ LOCK");
    tap_is_int(hold(lock, 0, TTL_MS), ROWLOCK_OK, "a lock is held on node 1");
    db_exec(&raw_mysql, node[0], "UPDATE cluster_money SET cents = 900 WHERE id = 2");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and released when the row was changed");
    tap_is_int(hold(lock, 0, TTL_MS), ROWLOCK_OK, "the next holder has it on node 1 too");
    reads("1000", false, 1, "and reads on node 2 what was there before the last holder's work");
    reads("an error", true, 1,
          "a read that waits for what is committed elsewhere has no answer yet");
    raw_run(&raw_mysql, frozen, "UNLOCK TABLES");
    reads("900", true, 60, "and gets the truth when node 2 has applied it");
    let_go(lock);
}

static void wait_for_token(const char *url, int64_t least)
{
    while (db_int(&raw_mysql, url,
                  "SELECT IFNULL(MAX(token), 0) FROM rowlock_tokens WHERE name = 'new'") < least)
        sleep_ms(50);
}

static int64_t raise_on_node_1(void)
{
    OWNED(db) rowlock_db *db = must_open(node[0]);
    int64_t highest = 0;
    tap_is_int(rowlock_raise_tokens(db, 1000, &highest), ROWLOCK_OK, "tokens are raised on node 1");
    return highest;
}

/* A raise changes no row that the first grant of a name on another node changes: see OPERATIONS. */
static void raises(void)
{
    OWNED(db) rowlock_db *db = must_open(node[1]);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "new");
    make_lag_behind(node[0]);
    int64_t highest = raise_on_node_1();
    tap_is_int(hold(lock, 0, TTL_MS), ROWLOCK_OK, "a new name is granted on node 2 meanwhile");
    tap_note("token %lld, raised to %lld", (long long)rowlock_lock_token(lock), (long long)highest);
    let_go(lock);
    wait_for_token(node[0], 1);
    highest = raise_on_node_1();
    wait_for_token(node[1], highest);
    tap_is_int(hold(lock, 0, TTL_MS), ROWLOCK_OK,
               "after a second raise, with nothing on its way, it is granted");
    tap_ok(rowlock_lock_token(lock) > highest, "with a token above");
    let_go(lock);
}

static void is_found(rowlock_verdict want, const char *want_value, const char *what)
{
    char value[200];
    const rowlock_verdict verdict = finding(node[1], "nodes", value, sizeof value);
    tap_is_str(value, want_value, "check says what reads wait for %s", what);
    tap_is_int(verdict, want, "and judges it");
}

/* A node of Galera cannot know whether others are written to. */
static void checks_of_galera(void)
{
    is_found(ROWLOCK_WARNING, "Galera, wsrep_sync_wait 0", "by default");
    db_exec(&raw_mysql, node[1], "SET GLOBAL wsrep_sync_wait = 1");
    is_found(ROWLOCK_FINE, "Galera, wsrep_sync_wait 1", "where they wait");
    db_exec(&raw_mysql, node[1], "SET GLOBAL wsrep_sync_wait = 0");
}

static void checks_of_group(void)
{
    db_exec(&raw_mysql, node[1], "SET GLOBAL group_replication_consistency = 'EVENTUAL'");
    is_found(ROWLOCK_BAD, "multi-primary, group_replication_consistency EVENTUAL",
             "where they do not");
    db_exec(&raw_mysql, node[1], "SET GLOBAL group_replication_consistency = 'BEFORE'");
    is_found(ROWLOCK_FINE, "multi-primary, group_replication_consistency BEFORE", "where they do");
    db_exec(&raw_mysql, node[1], "SET GLOBAL group_replication_consistency = DEFAULT");
    db_exec(&raw_mysql, node[1], "SELECT group_replication_switch_to_single_primary_mode()");
    is_found(ROWLOCK_FINE, "", "nothing, where one node is written to");
    db_exec(&raw_mysql, node[1], "SELECT group_replication_switch_to_multi_primary_mode()");
}

/* The row that the attempt has locked is changed on another node, which ends its transaction. */
static int write_and_give_up(void *context, const rowlock_attempt *attempt)
{
    rowlock_db *db = context;
    (void)attempt;
    tap_is_int(rowlock_fence(db, "given up", 1), ROWLOCK_OK, "a row is locked in a transaction");
    db_exec(&raw_mysql, node[1],
            "UPDATE rowlock_fences SET token = token + 1 WHERE resource = 'given up'");
    while (db_int(&raw_mysql, node[0],
                  "SELECT token = 1 FROM rowlock_fences WHERE resource = 'given up'"))
        sleep_ms(10);
    return MINE;
}

static void gives_up(rowlock_db *db, const char *whose)
{
    db_exec(&raw_mysql, node[1], "REPLACE INTO rowlock_fences VALUES ('given up', 1, 0)");
    while (
        db_int(&raw_mysql, node[0],
               "SELECT COUNT(*) FROM rowlock_fences WHERE resource = 'given up' AND token = 1") ==
        0)
        sleep_ms(10);
    tap_is_int(rowlock_retry(db, write_and_give_up, db, NULL, NULL), MINE,
               "%s: it is changed elsewhere, and the attempt gives up", whose);
    tap_is_int(rowlock_fence(db, "given up", 1), ROWLOCK_STALE,
               "the next call is in no transaction");
}

static void given_up(void)
{
    struct pair p = pair_open("given up");
    gives_up(p.own, "our own connection");
    gives_up(p.tx, "an adopted one");
    pair_close(&p);
}

static void make_tables(void)
{
    const char *const sql[] = {
        "DROP TABLE IF EXISTS cluster_money, cluster_big",
        "CREATE TABLE cluster_money (id INT PRIMARY KEY, cents BIGINT)",
        "INSERT INTO cluster_money VALUES (1, 1000), (2, 1000)",
        "CREATE TABLE cluster_big (id INT PRIMARY KEY AUTO_INCREMENT, v INT, pad CHAR(100))",
        "INSERT INTO cluster_big (v, pad) VALUES (1, 'x')",
    };
    for (size_t i = 0; i < sizeof sql / sizeof sql[0]; i++)
        db_exec(&raw_mysql, node[1], "%s", sql[i]);
    for (int i = 0; i < 16; i++)
        db_exec(&raw_mysql, node[1],
                "INSERT INTO cluster_big (v, pad) SELECT v, pad FROM cluster_big");
}

int main(void)
{
    if (!nodes_found())
        return tap_skip_all("ROWLOCK_TEST_NODES is not set");
    must_install(node[1]);
    make_tables();
    sleep_ms(2000);
    too_late("guard", 0, prove_by_guard, "guard");
    too_late("guard shared", ROWLOCK_SHARED, prove_by_guard, "guard of a shared lock");
    too_late("release", 0, prove_by_release, "release in the transaction");
    too_late("fence", 0, prove_by_fence, "fence");
    too_late("hand", 0, prove_by_hand, "a guard in plain SQL");
    races();
    two_grants();
    two_guards();
    given_up();
    raises();
    stale_reads();
    if (is_galera())
        checks_of_galera();
    else
        checks_of_group();
    return tap_done();
}
