/* SPDX-License-Identifier: MIT
 *
 * Many threads and processes on one lock: nothing but the database keeps them apart. What one client sees
 * is in basics.c. The evidence of exclusion is a counter in a plain
 * file that everyone reads, adds one to and writes back; the evidence of order are tokens appended to
 * another file by whoever holds the lock.
 */
#include "each.h"
#include "quick.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MS = 60000, PROCESSES_MAX = 32 };

/* ---- one counter, many hands */

struct trial {
    const struct raw *raw;
    const char *url, *name; /* of the lock */
    int workers, rounds;
    bool adopted; /* on connections of the application */
    char counter[300], tokens[300];
};

struct worker {
    const struct trial *trial;
    int number;
};

static void new_files(struct trial *trial)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(trial->counter, sizeof trial->counter, "%s/counter", tmp ? tmp : "/tmp");
    snprintf(trial->tokens, sizeof trial->tokens, "%s/tokens", tmp ? tmp : "/tmp");
    int fd = open(trial->counter, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "0\n", 2) != 2)
        abort();
    close(fd);
    fd = open(trial->tokens, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    close(fd);
}

/* As careless as can be: without the lock, additions would be lost. */
static long read_counter(const struct trial *trial)
{
    char text[30] = "";
    int fd = open(trial->counter, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        abort();
    close(fd);
    return strtol(text, NULL, 10);
}

static void add_one(const struct trial *trial, int64_t token)
{
    char text[60];
    long count = read_counter(trial);
    int length = snprintf(text, sizeof text, "%ld\n", count + 1);
    int fd = open(trial->counter, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        abort();
    close(fd);
    length = snprintf(text, sizeof text, "%lld\n", (long long)token);
    fd = open(trial->tokens, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        abort();
    close(fd);
}

static int acquire_somehow(rowlock_lock *lock, int number)
{
    for (;;) {
        bool waits = number % 4 != 0;
        int result = wait_lock(lock, TTL_MS, waits ? 20000 : 0);
        if (result != ROWLOCK_BUSY && result != ROWLOCK_TIMEOUT)
            return result;
        if (!waits)
            usleep((useconds_t)(rand() % 3000));
    }
}

static int work_rounds(const struct worker *worker, rowlock_db *db)
{
    const struct trial *trial = worker->trial;
    rowlock_lock *lock = must_lock(db, trial->name);
    int result = ROWLOCK_OK;
    for (int round = 0; round < trial->rounds && result == ROWLOCK_OK; round++) {
        result = acquire_somehow(lock, worker->number);
        if (result != ROWLOCK_OK)
            break;
        add_one(trial, rowlock_lock_token(lock));
        result = rowlock_release(lock);
    }
    if (result != ROWLOCK_OK)
        tap_note("worker %d: %s: %s", worker->number, rowlock_result_name(result), why(db));
    rowlock_lock_close(lock);
    return result == ROWLOCK_OK ? 0 : 1;
}

static int work(void *argument)
{
    const struct worker *worker = argument;
    const struct trial *trial = worker->trial;
    rowlock_db *db = NULL;
    void *session = NULL;
    if (trial->adopted) {
        rowlock_error err = ROWLOCK_ERROR_INIT;
        session = trial->raw->open(trial->url);
        if (trial->raw->adopt(&db, session, NULL, &err) != ROWLOCK_OK)
            raw_failed("adopt", err.text);
    } else {
        db = must_open(trial->url);
    }
    int result = work_rounds(worker, db);
    rowlock_db_close(db);
    if (session)
        trial->raw->close(session);
    return result;
}

static int inversions(const struct trial *trial, int *count)
{
    FILE *file = fopen(trial->tokens, "r");
    long long token = 0, before = 0;
    int wrong = 0;
    for (*count = 0; file && fscanf(file, "%lld", &token) == 1; ++*count) {
        wrong += token <= before;
        before = token;
    }
    if (file)
        fclose(file);
    return wrong;
}

static void judge(const struct trial *trial, const char *who, int good, int64_t took_ms)
{
    int count = 0, total = trial->workers * trial->rounds, wrong = inversions(trial, &count);
    tap_is_int(good, trial->workers, "%s: nobody sees anything but OK, BUSY and TIMEOUT", who);
    tap_is_int(read_counter(trial), total, "%s: no addition to the counter is lost", who);
    tap_is_int(count, total, "%s: every grant has left its token", who);
    tap_is_int(wrong, 0, "%s: tokens increase strictly in the order of grants", who);
    tap_note("%s: %d x %d rounds in %lld ms", who, trial->workers, trial->rounds,
             (long long)took_ms);
}

static void try_out(struct trial *trial, bool by_threads, const char *who)
{
    struct worker workers[PROCESSES_MAX];
    struct helper *helpers[PROCESSES_MAX];
    pid_t children[PROCESSES_MAX];
    int good = 0;
    int64_t begin = clock_ms();
    new_files(trial);
    for (int i = 0; i < trial->workers; i++) {
        workers[i] = (struct worker){.trial = trial, .number = i};
        if (by_threads)
            helpers[i] = helper_start(work, &workers[i]);
        else
            children[i] = child_start(work, &workers[i]);
    }
    for (int i = 0; i < trial->workers; i++)
        good += (by_threads ? helper_join(helpers[i]) : child_join(children[i])) == 0;
    judge(trial, who, good, clock_ms() - begin);
}

static int fewer(int rounds)
{
    int64_t less = rounds / slowdown();
    return less > 5 ? (int)less : 5;
}

/* A way to set the isolation that connections begin with, and back. */
struct isolation {
    const char *database, *name;
    const char *set, *reset;
    const char *if_true; /* SQL: 1 if this server can do it; NULL: it can */
};

#define ROLE "ALTER ROLE CURRENT_USER SET default_transaction_isolation = "
#define RESET_ROLE "ALTER ROLE CURRENT_USER RESET default_transaction_isolation"
#define GLOBAL "SET GLOBAL TRANSACTION ISOLATION LEVEL "

static const struct isolation isolations[] = {
    {"postgres", "serializable by default", ROLE "'serializable'", RESET_ROLE, NULL},
    {"postgres", "repeatable read by default", ROLE "'repeatable read'", RESET_ROLE, NULL},
    {"mysql", "read committed", GLOBAL "READ COMMITTED", GLOBAL "REPEATABLE READ", NULL},
    {"mysql", "repeatable read", GLOBAL "REPEATABLE READ", GLOBAL "REPEATABLE READ", NULL},
    {"mysql", "serializable", GLOBAL "SERIALIZABLE", GLOBAL "REPEATABLE READ", NULL},
    {"mysql", "snapshot isolation", "SET GLOBAL innodb_snapshot_isolation = ON",
     "SET GLOBAL innodb_snapshot_isolation = DEFAULT",
     "SELECT COUNT(*) FROM information_schema.global_variables "
     "WHERE variable_name = 'INNODB_SNAPSHOT_ISOLATION'"},
};

static bool can_do(const struct raw *raw, const char *url, const struct isolation *isolation)
{
    char answer[20] = "1";
    if (isolation->if_true) {
        void *session = raw->open(url);
        if (!raw->ask(session, isolation->if_true, answer, sizeof answer))
            answer[0] = '\0';
        raw->close(session);
    }
    return strcmp(answer, "1") == 0;
}

/* Pitfalls 2, 3, 6 and 31: whatever isolation a connection begins with. */
static void under_isolations(const struct raw *raw, const char *url)
{
    const struct isolation *end = isolations + sizeof isolations / sizeof isolations[0];
    for (const struct isolation *i = isolations; i < end; i++) {
        if (strcmp(i->database, raw->name) != 0)
            continue;
        if (!can_do(raw, url, i)) {
            tap_note("%s: not on this server", i->name);
            continue;
        }
        db_exec(raw, url, "%s", i->set);
        struct trial trial = {.raw = raw, .url = url, .name = "isolated", .workers = 8};
        trial.rounds = fewer(50);
        try_out(&trial, false, i->name);
        trial.adopted = true;
        char who[100];
        snprintf(who, sizeof who, "%s, adopted", i->name);
        try_out(&trial, false, who);
        db_exec(raw, url, "%s", i->reset);
    }
}

/* ---- a holder that dies, a holder that stands still */

struct victim {
    const char *url;
    int64_t ttl_ms;
    int report[2]; /* pipe: when its lease ends */
};

static int hold_and_wait(void *argument)
{
    const struct victim *victim = argument;
    rowlock_db *db = must_open(victim->url);
    rowlock_lock *lock = must_lock(db, "victim");
    int64_t expires = 0;
    if (wait_lock(lock, victim->ttl_ms, 20000) == ROWLOCK_OK)
        expires = rowlock_lock_expires_us(lock);
    if (write(victim->report[1], &expires, sizeof expires) != sizeof expires)
        return 1;
    /* Here it is killed, or stopped and woken when others have had the lock. */
    while (rowlock_lock_remaining_ms(lock) > 0)
        sleep_ms(10);
    sleep_ms(500);
    int result = rowlock_renew(lock, 0);
    if (result != ROWLOCK_LOST)
        tap_note("the sleeper was told %s", rowlock_result_name(result));
    result = result == ROWLOCK_LOST ? rowlock_release(lock) : ROWLOCK_OK;
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return result == ROWLOCK_LOST ? 42 : 1;
}

static pid_t victim_start(struct victim *victim, int64_t *expires)
{
    if (pipe(victim->report) != 0)
        abort();
    pid_t child = child_start(hold_and_wait, victim);
    if (read(victim->report[0], expires, sizeof *expires) != sizeof *expires)
        *expires = 0;
    close(victim->report[0]);
    close(victim->report[1]);
    tap_ok(*expires > 0, "a process holds a lock");
    return child;
}

/* Looks again and again, so that a grant before its time would be noticed. */
static int take_over(void *argument)
{
    const char *url = argument;
    rowlock_db *db = must_open(url);
    rowlock_lock *lock = must_lock(db, "victim");
    int64_t give_up = clock_ms() + slow_ms(15000);
    int result = ROWLOCK_BUSY;
    while (result == ROWLOCK_BUSY && clock_ms() < give_up) {
        result = try_lock(lock, 5000);
        if (result == ROWLOCK_BUSY)
            sleep_ms(5);
    }
    if (result != ROWLOCK_OK)
        tap_note("taking over: %s", why(db));
    /* Dies with the lock in hand: its lease shows the order of grants. */
    return result == ROWLOCK_OK ? 0 : 1;
}

static int64_t granted_us(const char *url)
{
    int64_t token = 0, when = 0;
    rowlock_db *db = must_open(url);
    if (rowlock_last_grant(db, "victim", &token, &when) != ROWLOCK_OK)
        when = 0;
    rowlock_db_close(db);
    return when;
}

/* Another process takes over from the victim. Returns when, by the database's clock. */
static int64_t succeeded(const char *url, int64_t expires)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s", url);
    tap_is_int(child_join(child_start(take_over, copy)), 0, "another one gets the lock");
    int64_t granted = granted_us(url);
    tap_ok(granted >= expires, "not before the lease has ended");
    return granted;
}

static void killed_holder(const char *url)
{
    struct victim victim = {.url = url, .ttl_ms = 1500};
    int64_t expires = 0;
    pid_t child = victim_start(&victim, &expires);
    kill(child, SIGKILL);
    tap_is_int(child_join(child), 256 + SIGKILL, "and is killed");
    int64_t granted = succeeded(url, expires);
    tap_ok(granted <= expires + slow_ms(1000) * 1000, "but within a second (%lld ms after it)",
           (long long)(granted - expires) / 1000);
}

static void stopped_holder(const char *url)
{
    struct victim victim = {.url = url, .ttl_ms = 700};
    int64_t expires = 0;
    pid_t child = victim_start(&victim, &expires);
    kill(child, SIGSTOP); /* it stands still for too long */
    int64_t granted = succeeded(url, expires);
    kill(child, SIGCONT);
    tap_is_int(child_join(child), 42, "when it goes on it finds itself LOST");
    tap_is_int(granted_us(url), granted, "and has changed nothing");
}

/* ---- a sweep beside live traffic */

enum { TRAFFIC_MS = 4000 };

struct traffic {
    const struct raw *raw;
    const char *url;
    int64_t until;
    _Atomic int64_t last_token[4]; /* of each name, which only its lock keeps in order */
    atomic_int grants, inversions, unexpected;
};

struct driver {
    struct traffic *traffic;
    int number;
};

static void note_unexpected(struct traffic *traffic, const char *who, const rowlock_db *db)
{
    traffic->unexpected++;
    tap_note("%s: %s", who, why(db));
}

/* Every third grant is abandoned as a dying process would do, for the sweep to find. */
static int drive(void *argument)
{
    struct driver *driver = argument;
    struct traffic *traffic = driver->traffic;
    rowlock_db *db = must_open(traffic->url);
    for (int round = 0; clock_ms() < traffic->until; round++) {
        int which = (driver->number + round) % 4;
        char name[20];
        snprintf(name, sizeof name, "traffic %d", which);
        rowlock_lock *lock = must_lock(db, name);
        bool abandon = round % 3 == 2;
        int result = wait_lock(lock, abandon ? 100 : TTL_MS, 200);
        if (result == ROWLOCK_OK && !abandon) {
            int64_t token = rowlock_lock_token(lock);
            traffic->grants++;
            traffic->inversions += token <= traffic->last_token[which];
            traffic->last_token[which] = token;
            result = rowlock_release(lock);
        } else if (result == ROWLOCK_OK) {
            sleep_ms(150);
            result = rowlock_release(lock);
            if (result == ROWLOCK_LOST)
                result = ROWLOCK_OK;
        }
        if (result != ROWLOCK_OK && result != ROWLOCK_TIMEOUT)
            note_unexpected(traffic, "traffic", db);
        rowlock_lock_close(lock);
    }
    rowlock_db_close(db);
    return 0;
}

static int sweep(void *argument)
{
    struct traffic *traffic = argument;
    rowlock_db *db = must_open(traffic->url);
    rowlock_sweep_options how = ROWLOCK_SWEEP_OPTIONS_INIT;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    int swept = 0, folded = 0;
    how.idle_ms = 1;
    how.batch = 2;
    while (clock_ms() < traffic->until) {
        if (rowlock_sweep(db, &how, &report) != ROWLOCK_OK)
            note_unexpected(traffic, "sweep", db);
        swept += (int)report.locks;
        folded += (int)report.counters;
        sleep_ms(2);
    }
    tap_note("swept %d locks and folded %d counters", swept, folded);
    rowlock_db_close(db);
    return swept > 0 && folded > 0 ? 0 : 1;
}

/* Two of these run at the same time. Before, the sweeper alone finds something. */
static int keep_house(void *argument)
{
    struct traffic *traffic = argument;
    sleep_ms(slow_ms(TRAFFIC_MS / 2));
    void *session = traffic->raw->open(traffic->url);
    while (clock_ms() < traffic->until) {
        char why[300];
        if (!traffic->raw->run(session, "CALL rowlock_housekeeping(1, 1)", why, sizeof why)) {
            traffic->unexpected++;
            tap_note("housekeeping: %s", why);
        }
        sleep_ms(2);
    }
    traffic->raw->close(session);
    return 0;
}

/* Pitfalls 18, 19 and 57. */
static void beside_a_sweep(const struct raw *raw, const char *url)
{
    enum { DRIVERS = 6 };
    const bool has_procedures = strcmp(raw->name, "sqlite") != 0;
    struct traffic traffic = {.raw = raw, .url = url, .until = clock_ms() + slow_ms(TRAFFIC_MS)};
    struct driver drivers[DRIVERS];
    struct helper *helpers[DRIVERS];
    for (int i = 0; i < DRIVERS; i++) {
        drivers[i] = (struct driver){.traffic = &traffic, .number = i};
        helpers[i] = helper_start(drive, &drivers[i]);
    }
    struct helper *sweeper = helper_start(sweep, &traffic);
    struct helper *keepers[2] = {NULL, NULL};
    for (int i = 0; has_procedures && i < 2; i++)
        keepers[i] = helper_start(keep_house, &traffic);
    for (int i = 0; i < DRIVERS; i++)
        helper_join(helpers[i]);
    for (int i = 0; has_procedures && i < 2; i++)
        helper_join(keepers[i]);
    tap_is_int(helper_join(sweeper), 0, "a sweep beside live traffic finds locks and counters");
    tap_is_int(traffic.unexpected, 0, "and no call fails because of the other");
    tap_ok(traffic.grants > 50, "grants go on (%d)", traffic.grants);
    tap_is_int(traffic.inversions, 0, "and their tokens stay in order");
}

static int run(const struct raw *raw, const char *url)
{
    must_install(url);
    /* Processes come first, and threads have ended before others are started: see child_start(). */
    struct trial trial = {.raw = raw, .url = url, .name = "counter", .workers = 32};
    trial.rounds = fewer(200);
    try_out(&trial, false, "32 processes");
    under_isolations(raw, url);
    killed_holder(url);
    stopped_holder(url);
    trial.workers = 8;
    trial.rounds = fewer(100);
    try_out(&trial, true, "8 threads");
    beside_a_sweep(raw, url);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
