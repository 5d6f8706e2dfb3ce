/* SPDX-License-Identifier: MIT
 *
 * A bank whose clerks are stopped at the worst moments: what rowlock_guard() promises, and what goes wrong
 * without it. Clerks, each a process, move money between the accounts of a branch under the branch's lock. They
 * read the balances, think, and write new ones, not differences: who writes by balances that another
 * has changed since makes or loses money. Their manager stops them for longer than their leases last,
 * and they fall asleep over their sums by themselves. A journal, written in the same transactions,
 * tells what the balances should be.
 */
#include "each.h"
#include "loads.h"
#include "quick.h"
#include "tap.h"

#include <stdatomic.h>

/* How a clerk begins transactions: at one isolation or another. */
struct manner {
    const char *setup; /* SQL for a new session, or NULL */
    const char *begin;
};

struct bank {
    const char *database;
    const struct manner manners[4]; /* taken in turn by the clerks; ends with a NULL begin */
    const char *const conflicts[4]; /* in the text of an error after which one tries again */
    /* How many must succeed in the whole form. */
    int transfers;
    const struct raw *raw;
};

#define LEVEL "SET SESSION TRANSACTION ISOLATION LEVEL "

static struct bank banks[] = {
    {"postgres",
     {{NULL, "BEGIN"},
      {NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ"},
      {NULL, "BEGIN ISOLATION LEVEL SERIALIZABLE"}},
     {"could not serialize", "deadlock detected"},
     2000,
     NULL},
    /* A deadlock, a lock timeout, and a row newer than the snapshot where the server minds that. */
    {"mysql",
     {{LEVEL "READ COMMITTED", "BEGIN"},
      {LEVEL "REPEATABLE READ", "BEGIN"},
      {LEVEL "SERIALIZABLE", "BEGIN"}},
     {"1213 ", "1205 ", "1020 "},
     2000,
     NULL},
    {"sqlite", {{NULL, "BEGIN"}, {NULL, "BEGIN IMMEDIATE"}}, {"database is locked"}, 500, NULL},
};

enum {
    CLERKS = 6,
    BRANCHES = 4,
    ACCOUNTS = 4, /* of each branch, numbered from BRANCH * ACCOUNTS */
    START_CENTS = 1000000,
    LEASE_MS = 150,
    WHOLE_MS = 12000,
    BRIEF_TRANSFERS = 100,
    ATTEMPTS = 10, /* of one transaction, when it loses against others */
    SLEEPS_ONE_IN = 30,
    DOZES_ONE_IN = 60, /* in the middle of the transaction */
    /* Times that a clerk was overtaken, of either kind. */
    BRIEF_OVERTAKEN = 2,
    WHOLE_OVERTAKEN = 5
};

/* What all processes see. */
struct day {
    const struct bank *bank;
    const char *url;
    bool guarded;
    atomic_bool over;
    atomic_int committed, conflicts;
    atomic_int slept, stopped; /* overtaken: after falling asleep, after being stopped */
    atomic_bool busy[CLERKS]; /* thinks, writes or releases */
};

struct clerk {
    struct day *day;
    int number;
    const char *begin;
    rowlock_db *db, *tx; /* tx: the session, adopted */
    rowlock_lock *locks[BRANCHES];
    void *session;
};

struct transfer {
    rowlock_lock *lock;
    int source, target; /* accounts */
    long long source_cents, target_cents, cents;
    bool slept;
};

enum fate { DONE, OVERTAKEN, CONFLICT, BROKEN };

/* ---- one transfer */

static enum fate broken(const struct clerk *clerk, const char *what, const char *reason)
{
    tap_note("clerk %d: %s: %s", clerk->number, what, reason);
    return BROKEN;
}

static enum fate say(const struct clerk *clerk, const char *sql)
{
    char reason[300] = "";
    if (clerk->day->bank->raw->run(clerk->session, sql, reason, sizeof reason))
        return DONE;
    for (const char *const *known = clerk->day->bank->conflicts; *known; known++)
        if (strstr(reason, *known))
            return CONFLICT;
    return broken(clerk, sql, reason);
}

static long long balance(const struct clerk *clerk, int account)
{
    return raw_int(clerk->day->bank->raw, clerk->session,
                   "SELECT cents FROM bank_accounts WHERE id = %d", account);
}

static enum fate set_balance(const struct clerk *clerk, int account, long long cents)
{
    char sql[200];
    snprintf(sql, sizeof sql, "UPDATE bank_accounts SET cents = %lld WHERE id = %d", cents,
             account);
    return say(clerk, sql);
}

static enum fate write_down(const struct clerk *clerk, const struct transfer *t)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "INSERT INTO bank_journal (source, target, cents, token) VALUES (%d, %d, %lld, %lld)",
             t->source, t->target, t->cents, (long long)rowlock_lock_token(t->lock));
    enum fate fate = set_balance(clerk, t->source, t->source_cents - t->cents);
    if (fate == DONE)
        fate = set_balance(clerk, t->target, t->target_cents + t->cents);
    return fate == DONE ? say(clerk, sql) : fate;
}

static enum fate guard(const struct clerk *clerk, const struct transfer *t)
{
    switch (clerk->day->guarded ? rowlock_guard(t->lock, clerk->tx) : ROWLOCK_OK) {
    case ROWLOCK_OK:
        return DONE;
    case ROWLOCK_LOST:
        return OVERTAKEN;
    case ROWLOCK_CONFLICT:
        return CONFLICT;
    default:
        return broken(clerk, "guard", why(clerk->tx));
    }
}

/* No client can come between a guard and the commit. Between the writes and the guard one can. */
static enum fate transact(const struct clerk *clerk, struct transfer *t)
{
    bool guard_first = rand() % 2 == 0;
    char reason[300];
    enum fate fate = say(clerk, clerk->begin);
    if (fate == DONE)
        fate = guard_first ? guard(clerk, t) : write_down(clerk, t);
    if (fate == DONE && rand() % DOZES_ONE_IN == 0) {
        t->slept = true;
        /* Time: the lease ends by the real clock. More changes nothing. */
        sleep_ms(LEASE_MS + 100);
    }
    if (fate == DONE)
        fate = guard_first ? write_down(clerk, t) : guard(clerk, t);
    if (fate == DONE)
        fate = say(clerk, "COMMIT");
    /* The database may have rolled back already. If not, the next BEGIN says so. */
    if (fate != DONE)
        clerk->day->bank->raw->run(clerk->session, "ROLLBACK", reason, sizeof reason);
    return fate;
}

/* Until somebody else has got the lock and changed one of the two balances. */
static void fall_asleep(const struct clerk *clerk, const struct transfer *t)
{
    int64_t wake_up = clock_ms() + slow_ms(3000);
    do
        sleep_ms(10);
    while (!clerk->day->over && clock_ms() < wake_up &&
           raw_int(clerk->day->bank->raw, clerk->session,
                   "SELECT COUNT(*) FROM bank_journal WHERE token > %lld AND "
                   "(source IN (%d, %d) OR target IN (%d, %d))",
                   (long long)rowlock_lock_token(t->lock), t->source, t->target, t->source,
                   t->target) == 0);
}

/* A moment in which to be stopped. */
static void think(void)
{
    /* Time: of any length. */
    usleep((useconds_t)(rand() % 5000));
}

/* Another try writes the same balances: as long as the guard says yes, they still hold. */
static enum fate transfer(const struct clerk *clerk, struct transfer *t)
{
    enum fate fate = CONFLICT;
    t->source_cents = balance(clerk, t->source);
    t->target_cents = balance(clerk, t->target);
    t->cents = 1 + rand() % 1000;
    t->slept = rand() % SLEEPS_ONE_IN == 0;
    if (t->slept)
        fall_asleep(clerk, t);
    clerk->day->busy[clerk->number] = true;
    if (!t->slept && rand() % 4 == 0)
        think();
    for (int i = 0; i < ATTEMPTS && fate == CONFLICT; i++) {
        fate = transact(clerk, t);
        clerk->day->conflicts += fate == CONFLICT;
    }
    return fate;
}

/* ---- a clerk's day */

/* Without a guard, only the release tells that somebody else had the lock. */
static bool conclude(const struct clerk *clerk, const struct transfer *t, enum fate fate)
{
    struct day *day = clerk->day;
    int released = rowlock_release(t->lock);
    day->committed += fate == DONE;
    if (fate == OVERTAKEN || (!day->guarded && fate == DONE && released == ROWLOCK_LOST))
        ++*(t->slept ? &day->slept : &day->stopped);
    if (fate == OVERTAKEN && released != ROWLOCK_LOST)
        fate = broken(clerk, "release after a guard that failed", rowlock_result_name(released));
    if (released != ROWLOCK_OK && released != ROWLOCK_LOST)
        fate = broken(clerk, "release", why(clerk->db));
    return fate != BROKEN;
}

static bool serve_customer(struct clerk *clerk)
{
    int branch = rand() % BRANCHES, first = rand() % ACCOUNTS;
    int second = (first + 1 + rand() % (ACCOUNTS - 1)) % ACCOUNTS;
    struct transfer t = {.lock = clerk->locks[branch],
                         .source = branch * ACCOUNTS + first,
                         .target = branch * ACCOUNTS + second};
    int result = wait_lock(t.lock, LEASE_MS, 5000);
    if (result == ROWLOCK_TIMEOUT)
        return true;
    if (result != ROWLOCK_OK)
        return broken(clerk, "acquire", why(clerk->db)) != BROKEN;
    bool good = conclude(clerk, &t, transfer(clerk, &t));
    clerk->day->busy[clerk->number] = false;
    return good;
}

static void come_in(struct clerk *clerk)
{
    const struct bank *bank = clerk->day->bank;
    const struct manner *manner = bank->manners;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    for (int i = 0; i < clerk->number; i++)
        manner = manner[1].begin ? manner + 1 : bank->manners;
    srand((unsigned)getpid());
    clerk->begin = manner->begin;
    clerk->session = bank->raw->open(clerk->day->url);
    if (manner->setup)
        raw_run(bank->raw, clerk->session, "%s", manner->setup);
    if (bank->raw->adopt(&clerk->tx, clerk->session, NULL, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    clerk->db = must_open(clerk->day->url);
    for (int i = 0; i < BRANCHES; i++) {
        char name[20];
        snprintf(name, sizeof name, "branch %d", i);
        clerk->locks[i] = must_lock(clerk->db, name);
    }
}

static void go_home(struct clerk *clerk)
{
    for (int i = 0; i < BRANCHES; i++)
        rowlock_lock_close(clerk->locks[i]);
    close_dbs(clerk->db, clerk->tx);
    clerk->day->bank->raw->close(clerk->session);
}

static int work(void *argument)
{
    struct clerk *clerk = argument;
    bool good = true;
    child_of_load();
    come_in(clerk);
    while (good && !clerk->day->over)
        good = serve_customer(clerk);
    if (!good)
        clerk->day->over = true;
    go_home(clerk);
    return good ? 0 : 1;
}

/* ---- the manager's */

static int wanted_transfers(const struct day *day)
{
    return load_count(BRIEF_TRANSFERS, day->bank->transfers, 20);
}

static bool were_overtaken(const struct day *day)
{
    int wanted = load_count(BRIEF_OVERTAKEN, WHOLE_OVERTAKEN, 1);
    return day->slept >= wanted && day->stopped >= wanted;
}

static int wrong_accounts(const struct day *day);

static bool enough(const struct day *day, int64_t began_ms)
{
    if (day->over || load_is_hopeless(began_ms, WHOLE_MS))
        return true;
    if (!were_overtaken(day))
        return false;
    if (!day->guarded)
        return wrong_accounts(day) > 0;
    return load_has_lasted(began_ms, WHOLE_MS) && day->committed >= wanted_transfers(day);
}

/* Whatever they are doing, but more often those who do something. */
static void disturb(struct day *day, struct children *clerks)
{
    int64_t began_ms = clock_ms(), next = began_ms;
    while (!enough(day, began_ms)) {
        int victim = rand() % CLERKS;
        bool chosen = day->busy[victim] || rand() % 20 == 0;
        if (chosen && clock_ms() >= next) {
            children_stop(clerks, victim, LEASE_MS + 20 + rand() % 200);
            next = clock_ms() + 50 + rand() % 100;
        }
        /* Time: until the next look. The day ends when enough is done. */
        sleep_ms(2);
        children_wake(clerks);
    }
    day->over = true;
    children_join(clerks);
}

/* ---- the books */

static void open_books(const struct raw *raw, const char *url)
{
    db_exec(raw, url, "DROP TABLE IF EXISTS bank_accounts");
    db_exec(raw, url, "DROP TABLE IF EXISTS bank_journal");
    db_exec(raw, url, "CREATE TABLE bank_accounts (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL)");
    db_exec(raw, url,
            "CREATE TABLE bank_journal (source INTEGER NOT NULL, target INTEGER NOT NULL, "
            "cents BIGINT NOT NULL, token BIGINT NOT NULL)");
    for (int i = 0; i < BRANCHES * ACCOUNTS; i++)
        db_exec(raw, url, "INSERT INTO bank_accounts VALUES (%d, %d)", i, START_CENTS);
}

static long long money_made(const struct day *day)
{
    return db_int(day->bank->raw, day->url, "SELECT SUM(cents) FROM bank_accounts") -
           (long long)START_CENTS * BRANCHES * ACCOUNTS;
}

static int wrong_accounts(const struct day *day)
{
    return (int)db_int(
        day->bank->raw, day->url,
        "SELECT COUNT(*) FROM bank_accounts a WHERE a.cents <> %d + "
        "(SELECT COALESCE(SUM(CASE WHEN j.target = a.id THEN j.cents ELSE -j.cents END), 0) "
        "FROM bank_journal j WHERE a.id IN (j.source, j.target))",
        START_CENTS);
}

static void run_day(struct day *day)
{
    const char *how = day->guarded ? "guarded" : "not guarded";
    struct clerk staff[CLERKS];
    struct children clerks = {0};
    for (int i = 0; i < CLERKS; i++) {
        staff[i] = (struct clerk){.day = day, .number = i};
        clerks.pid[i] = child_start(work, &staff[i]);
    }
    disturb(day, &clerks);
    tap_is_int(clerks.ended_badly, 0, "%s: every clerk gets through the day", how);
    tap_is_int(db_int(day->bank->raw, day->url, "SELECT COUNT(*) FROM bank_journal"),
               day->committed, "%s: what was committed is in the journal, and nothing else", how);
    tap_ok(were_overtaken(day),
           "%s: clerks who fell asleep were overtaken (%d), and clerks who were stopped (%d)", how,
           day->slept, day->stopped);
    tap_note("%s: %d transfers, %d overtaken, %d conflicts, %d stops", how, day->committed,
             day->slept + day->stopped, day->conflicts, clerks.stops);
}

static struct day *new_day(const struct bank *bank, const char *url, bool guarded)
{
    struct day *day = load_memory(sizeof *day);
    day->bank = bank;
    day->url = url;
    day->guarded = guarded;
    open_books(bank->raw, url);
    return day;
}

static void with_guard(const struct bank *bank, const char *url)
{
    struct day *day = new_day(bank, url, true);
    run_day(day);
    tap_ok(day->committed >= wanted_transfers(day), "guarded: %d transfers or more",
           wanted_transfers(day));
    tap_is_int(money_made(day), 0, "guarded: the sum of money is right to the cent");
    tap_is_int(wrong_accounts(day), 0, "guarded: every balance is what the journal says");
}

/* The same people without a guard, so that the above is known to show something. */
static void without_guard(const struct bank *bank, const char *url)
{
    struct day *day = new_day(bank, url, false);
    run_day(day);
    int wrong = wrong_accounts(day);
    tap_ok(wrong > 0, "not guarded: balances are not what the journal says (%d of %d)", wrong,
           BRANCHES * ACCOUNTS);
    tap_note("not guarded: the sum is off by %lld cents", money_made(day));
}

static int run(const struct raw *raw, const char *url)
{
    struct bank *bank = banks;
    while (strcmp(bank->database, raw->name) != 0)
        bank++;
    bank->raw = raw;
    must_install(url);
    with_guard(bank, url);
    without_guard(bank, url);
    db_exec(bank->raw, url, "DROP TABLE bank_accounts");
    db_exec(bank->raw, url, "DROP TABLE bank_journal");
    return tap_done();
}

EACH_MAIN(run)
