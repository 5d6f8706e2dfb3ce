/* SPDX-License-Identifier: MIT
 *
 * Two processes send batches of the same rows in opposite order, a thousand times at once. By hand, row by row,
 * that ends in a deadlock each time; which is shown too, so that the rest is known to mean something.
 */
#include "crowded.h"

#include "quick.h"
#include "tap.h"

#include <rowlock/versions.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 50, ROUNDS = 1000, INSIDE_ROUNDS = 200, WATCHDOG_S = 120 };

/* What both processes see. */
struct pair {
    const struct crowded *how;
    const char *url;
    bool inside; /* transactions of their own */
    int rounds;
    pthread_barrier_t barrier;
    atomic_int odd, victims, both, neither;
    int results[2][ROWS]; /* of this round; each writes his own */
};

struct one {
    struct pair *pair;
    int number;
    rowlock_db *db;
    rowlock_table *table;
    void *session;
};

/* ---- rowlock's batches */

static void open_here(struct one *one)
{
    static const char *const key[] = {"id", NULL};
    const struct raw *raw = one->pair->how->raw;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.name = "opposite", about.key = key, about.set = "amount = amount + ?";
    if (one->pair->inside) {
        one->session = raw->open(one->pair->url);
        if (raw->adopt(&one->db, one->session, NULL, &err) != ROWLOCK_OK)
            raw_failed("adopt", err.text);
    } else {
        one->db = must_open(one->pair->url);
    }
    if (rowlock_table_open(one->db, &about, &one->table) != ROWLOCK_OK)
        raw_failed("table", why(one->db));
}

static void close_here(struct one *one)
{
    rowlock_table_close(one->table);
    rowlock_db_close(one->db);
    if (one->session)
        one->pair->how->raw->close(one->session);
}

/* One begins with the first row, the other with the last. */
static int send_round(struct one *one, int64_t version, rowlock_change *changes)
{
    static rowlock_value keys[ROWS], amount;
    amount = rowlock_int(1);
    for (int i = 0; i < ROWS; i++) {
        keys[i] = rowlock_int(one->number == 0 ? i : ROWS - 1 - i);
        changes[i] = (rowlock_change){.key = &keys[i], .values = &amount, .version = version};
    }
    return rowlock_update(one->table, changes, ROWS, NULL);
}

static void play_round(struct one *one, int64_t version)
{
    struct pair *pair = one->pair;
    const struct raw *raw = pair->how->raw;
    rowlock_change changes[ROWS];
    if (pair->inside)
        raw_run(raw, one->session, "%s", pair->how->begin_to_write);
    int result = send_round(one, version, changes);
    if (pair->inside)
        raw_run(raw, one->session, "COMMIT");
    if (result != ROWLOCK_OK && result != ROWLOCK_STALE && pair->odd++ < 5)
        tap_note("%s: %s", rowlock_result_name(result), why(one->db));
    for (int i = 0; i < ROWS; i++)
        pair->results[one->number][changes[i].key->number] = changes[i].result;
}

/* Each row is changed by one of the two. */
static void compare(struct pair *pair)
{
    for (int i = 0; i < ROWS; i++) {
        int good = (pair->results[0][i] == ROWLOCK_OK) + (pair->results[1][i] == ROWLOCK_OK);
        pair->both += good == 2;
        pair->neither += good == 0;
    }
}

static int play(void *argument)
{
    struct one *one = argument;
    struct pair *pair = one->pair;
    signal(SIGALRM, SIG_DFL);
    alarm(WATCHDOG_S);
    open_here(one);
    for (int round = 0; round < pair->rounds; round++) {
        pthread_barrier_wait(&pair->barrier);
        play_round(one, 1 + round);
        pthread_barrier_wait(&pair->barrier);
        if (one->number == 0)
            compare(pair);
    }
    close_here(one);
    return 0;
}

/* ---- the same by hand */

static bool change_by_hand(struct one *one, int row)
{
    char sql[100], text[300];
    snprintf(sql, sizeof sql, "UPDATE opposite SET amount = amount + 1 WHERE id = %d", row);
    return one->pair->how->raw->run(one->session, sql, text, sizeof text);
}

/* Either has his first row before the other asks for it. */
static int cross(void *argument)
{
    struct one *one = argument;
    struct pair *pair = one->pair;
    const struct raw *raw = pair->how->raw;
    char ignored[300];
    signal(SIGALRM, SIG_DFL);
    alarm(WATCHDOG_S);
    one->session = raw->open(pair->url);
    raw_run(raw, one->session, "BEGIN");
    bool good = change_by_hand(one, one->number);
    pthread_barrier_wait(&pair->barrier);
    good = good && change_by_hand(one, 1 - one->number);
    pair->victims += !good;
    raw->run(one->session, "ROLLBACK", ignored, sizeof ignored);
    raw->close(one->session);
    return 0;
}

/* ---- in our own process */

static pid_t pids[2];

static void watchdog(int signal)
{
    static const char text[] = "Bail out! the two never came to an end\n";
    (void)signal;
    for (int i = 0; i < 2; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

static struct pair *new_pair(const struct crowded *how, const char *url)
{
    pthread_barrierattr_t shared;
    struct pair *pair =
        mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pair == MAP_FAILED)
        abort();
    pair->how = how;
    pair->url = url;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&pair->barrier, &shared, 2);
    db_exec(how->raw, url, "DROP TABLE IF EXISTS opposite");
    db_exec(how->raw, url,
            "CREATE TABLE opposite (id INTEGER NOT NULL PRIMARY KEY, amount BIGINT NOT NULL, "
            "version BIGINT NOT NULL)");
    for (int i = 0; i < ROWS; i++)
        db_exec(how->raw, url, "INSERT INTO opposite VALUES (%d, 0, 1)", i);
    return pair;
}

static void end_pair(struct pair *pair)
{
    db_exec(pair->how->raw, pair->url, "DROP TABLE opposite");
    munmap(pair, sizeof *pair);
}

static int run_both(struct pair *pair, int (*work)(void *argument))
{
    struct one ones[2];
    int good = 0;
    signal(SIGALRM, watchdog);
    alarm(WATCHDOG_S);
    for (int i = 0; i < 2; i++) {
        ones[i] = (struct one){.pair = pair, .number = i};
        pids[i] = child_start(work, &ones[i]);
    }
    for (int i = 0; i < 2; i++) {
        good += child_join(pids[i]) == 0;
        pids[i] = 0;
    }
    alarm(0);
    return good;
}

static void run_batches(const struct crowded *how, const char *url, bool inside, int rounds)
{
    const char *who = inside ? "in transactions of their own" : "in opposite order";
    struct pair *pair = new_pair(how, url);
    int64_t begin = clock_ms();
    pair->inside = inside;
    pair->rounds = (int)(rounds / slowdown() > 20 ? rounds / slowdown() : 20);
    tap_is_int(run_both(pair, play), 2, "two send the same rows %s, %d times at once", who,
               pair->rounds);
    tap_is_int(pair->odd, 0, "%s: neither is told of a deadlock", who);
    tap_is_int(pair->both, 0, "%s: no row is changed by both", who);
    tap_is_int(pair->neither, 0, "%s: none by neither", who);
    tap_is_int(db_int(how->raw, url,
                      "SELECT COUNT(*) FROM opposite WHERE version = %d AND amount = %d",
                      1 + pair->rounds, pair->rounds),
               ROWS, "%s: each row was changed once in every round", who);
    tap_note("%s: %d rounds of %d rows in %lld ms", who, pair->rounds, ROWS,
             (long long)(clock_ms() - begin));
    end_pair(pair);
}

void opposite_run(const struct crowded *how, const char *url)
{
    long long before = how->deadlocks ? db_int(how->raw, url, "%s", how->deadlocks) : 0;
    run_batches(how, url, false, ROUNDS);
    run_batches(how, url, true, INSIDE_ROUNDS);
    if (!how->deadlocks)
        return; /* here the second who begins to write waits for the first */
    tap_note("the server has met %lld deadlocks",
             db_int(how->raw, url, "%s", how->deadlocks) - before);
    struct pair *pair = new_pair(how, url);
    tap_is_int(run_both(pair, cross), 2, "two change two rows in opposite order by hand");
    tap_is_int(pair->victims, 1, "and one of them is a deadlock's victim");
    end_pair(pair);
}
