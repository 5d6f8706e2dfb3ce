/* SPDX-License-Identifier: MIT
 *
 * A queue of many processes: in which order they are granted the lock, and what becomes of the others
 * when every third is killed while it waits, and a few while they hold it. Each writes down the token
 * that it is granted. The order of tickets is in the table before the first of them is granted.
 * Leases are long enough for a disk that hangs. The test ends those of the dead. */
#include "each.h"
#include "history.h"
#include "judge.h"
#include "loads.h"

enum { BRIEF = 24, WHOLE = 64, LEASE_MS = 600000 };

struct queue {
    const struct raw *raw;
    const char *url;
    pid_t holder, pids[WHOLE];
    int go[2]; /* pipe: the holder releases when it is closed */
    int size, listed;
    long long sessions; /* that the server has when all stand in the queue */
    long long token; /* of the holder that is waited for */
    int number; /* of the process that is started now, or is this one */
};

static const char NAME[] = "line";
/* The queue's number in the history; when the leases of the dead end. */
enum { ROUND = 1, OVER = 5 };

static bool is_killed(int number)
{
    return number % 3 == 1;
}

static bool kills_itself(int number)
{
    return number % 24 == 2;
}

/* ---- in their processes */

static int hold(void *argument)
{
    const struct queue *queue = argument;
    char byte;
    child_of_load();
    close(queue->go[1]);
    OWNED(db) rowlock_db *db = must_open(queue->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, NAME);
    int result = wait_lock(lock, LEASE_MS, LEASE_MS);
    if (read(queue->go[0], &byte, 1) < 0 || result != ROWLOCK_OK)
        return 1;
    return rowlock_release(lock) == ROWLOCK_OK ? 0 : 1;
}

static int stand(void *argument)
{
    const struct queue *queue = argument;
    child_of_load();
    close(queue->go[0]);
    close(queue->go[1]);
    OWNED(db) rowlock_db *db = must_open_as(queue->url, textf("%d", queue->number));
    OWNED(lock) rowlock_lock *lock = must_lock(db, NAME);
    int result = rowlock_acquire(lock, OPTIONS(acquire, .wait_ms = ROWLOCK_FOREVER,
                                               .ttl_ms = LEASE_MS, .ticket_ms = LEASE_MS));
    tell("w %d %d %s %lld", ROUND, queue->number, rowlock_result_name(result),
         (long long)rowlock_lock_token(lock));
    if (kills_itself(queue->number))
        kill(getpid(), SIGKILL);
    if (result == ROWLOCK_OK)
        result = rowlock_release(lock);
    if (result != ROWLOCK_OK)
        tap_note("%d: %s: %s", queue->number, rowlock_result_name(result), why(db));
    return result == ROWLOCK_OK ? 0 : 1;
}

/* ---- in ours */

/* Those of a pooler are not ours to count. */
static bool has_sessions(const struct queue *queue)
{
    return queue->raw != &raw_sqlite && raw_is_ours(queue->raw);
}

/* How many are not over. */
static long long count(const struct queue *queue, const char *table)
{
    return db_int(queue->raw, queue->url,
                  "SELECT count(*) FROM rowlock_%s WHERE name = '%s' AND expires > %d", table, NAME,
                  OVER);
}

static long long newest_token(const struct queue *queue)
{
    return db_int(queue->raw, queue->url,
                  "SELECT coalesce(max(token), 0) FROM rowlock_tokens WHERE name = '%s'", NAME);
}

static bool comes_to(const struct queue *queue, const char *table, int wanted)
{
    int64_t until = clock_ms() + slow_ms(LOAD_GIVE_UP_MS);
    while (count(queue, table) < wanted && clock_ms() < until)
        sleep_ms(20);
    return count(queue, table) == wanted;
}

/* The judge expects nothing of those that are to die. */
static int take_position(void *context, const rowlock_waiter *waiter)
{
    struct queue *queue = context;
    queue->listed++;
    if (!is_killed(atoi(waiter->owner)))
        tell("Q %d %d %s", ROUND, queue->listed, waiter->owner);
    return 0;
}

/* All come at once. No handle of ours is open while they are started. */
static bool line_up(struct queue *queue)
{
    if (pipe(queue->go) != 0)
        abort();
    if (has_sessions(queue))
        tap_ok(EVENTUALLY(raw_sessions(queue->raw, queue->url) == 1), "no other session is left");
    queue->holder = child_start(hold, queue);
    close(queue->go[0]);
    bool held = comes_to(queue, "locks", 1);
    for (queue->number = 0; queue->number < queue->size; queue->number++)
        queue->pids[queue->number] = child_start(stand, queue);
    bool stand_there = comes_to(queue, "waiters", queue->size);
    queue->sessions = has_sessions(queue) ? raw_sessions(queue->raw, queue->url) : 0;
    return tap_ok(held && stand_there, "%d processes stand in the queue", queue->size);
}

static void look_at(struct queue *queue)
{
    OWNED(db) rowlock_db *db = must_open(queue->url);
    if (rowlock_list_waiters(db, NAME, take_position, queue) != ROWLOCK_OK)
        tap_ok(false, "the queue is listed: %s", why(db));
}

/* A try of the killed that reached the server after the release would be granted the lock. */
static int kill_some(const struct queue *queue)
{
    int killed = 0;
    for (int i = 0; i < queue->size; i++)
        if (is_killed(i)) {
            kill(queue->pids[i], SIGKILL);
            killed++;
        }
    if (has_sessions(queue))
        tap_ok(EVENTUALLY(raw_sessions(queue->raw, queue->url) <= queue->sessions - killed),
               "the server knows that they are dead");
    return killed;
}

static int number_of(const struct queue *queue, pid_t pid)
{
    int number = 0;
    while (number < queue->size - 1 && queue->pids[number] != pid)
        number++;
    return number;
}

/* What the dead have left is over: now. In the brief form this is before the lock is released, so
 * that no other waits until it looks by itself. */
static void bury(const struct queue *queue, const char *table, int number)
{
    db_exec(queue->raw, queue->url,
            "UPDATE rowlock_%s SET expires = %d WHERE name = '%s' AND owner = '%d'", table, OVER,
            NAME, number);
}

static bool ended_as_it_should(struct queue *queue)
{
    pid_t child = -1;
    int ending = child_join_any(&child), number = number_of(queue, child);
    bool waits = is_killed(number), killed = waits || kills_itself(number);
    queue->pids[number] = 0;
    if (killed)
        bury(queue, waits ? "waiters" : "locks", number);
    return ending == (killed ? 256 + SIGKILL : 0);
}

static void judge_line(const struct queue *queue)
{
    struct judgement j;
    int expected = 0;
    judge(history_path("history"), 0, &j);
    tap_sentences(&j, queue_sentences, "with deaths");
    for (int i = 0; i < queue->size; i++)
        expected += !is_killed(i);
    tap_is_int(j.waits, expected, "each that lives gets its turn, once");
    tap_is_int(newest_token(queue), queue->token + expected, "with one token after the other");
}

static int run(const struct raw *raw, const char *url)
{
    int ended = 0;
    struct queue queue = {.raw = raw, .url = url};
    must_install(url);
    history_open(NULL);
    history_clear();
    queue.size = load_count(BRIEF, WHOLE, BRIEF);
    line_up(&queue);
    queue.token = newest_token(&queue);
    look_at(&queue);
    tap_is_int(queue.listed, queue.size, "each has a ticket of its own");
    int killed = kill_some(&queue), early = load_is_long() ? 0 : killed;
    while (ended < early && ended_as_it_should(&queue))
        ended++;
    int64_t begin = clock_ms();
    close(queue.go[1]);
    tap_is_int(child_join(queue.holder), 0, "the lock is released");
    for (int i = early; i < queue.size; i++)
        ended += ended_as_it_should(&queue);
    tap_is_int(ended, queue.size, "killed are those that should be, and no other fails");
    judge_line(&queue);
    tap_note("%lld ms for all", (long long)(clock_ms() - begin));
    tap_is_int(count(&queue, "locks") + count(&queue, "waiters"), 0,
               "nothing is left behind but by the dead");
    db_exec(raw, url, "DELETE FROM rowlock_locks WHERE name = '%s'", NAME);
    db_exec(raw, url, "DELETE FROM rowlock_waiters WHERE name = '%s'", NAME);
    return tap_done();
}

EACH_MAIN(run)
