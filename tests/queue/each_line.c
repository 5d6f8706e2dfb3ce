/* SPDX-License-Identifier: MIT
 *
 * A line of 64 processes: in which order they are granted the lock, and what becomes of the others when every
 * third of them is killed while he waits, and a few while they hold it. Everybody writes his number and token into a file while he holds the
 * lock: that is the order of grants. The order of tickets is told by the table before the first of them.
 * Leases are long enough for a disk that hangs for seconds; that of who dies holding the lock is ended by us.
 */
#include "each.h"
#include "quick.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEOPLE = 64, HELD_MS = 240000, TICKET_MS = 12000, WATCHDOG_S = 150 };

struct line {
    const struct raw *raw;
    const char *url;
    char path[300];
    bool deadly; /* every third is killed while he waits, and a few kill themselves */
    pid_t holder, pids[PEOPLE];
    int go[2]; /* pipe: the holder releases when it is closed */
    int order[PEOPLE]; /* by their tickets */
    int count;
};

struct place {
    const struct line *line;
    int number;
};

static const char NAME[] = "line of many";

static bool is_killed(const struct line *line, int number)
{
    return line->deadly && number % 3 == 1;
}

static bool kills_himself(const struct line *line, int number)
{
    return line->deadly && number % 24 == 2;
}

/* ---- in their processes */

static int hold(void *argument)
{
    const struct line *line = argument;
    char byte;
    close(line->go[1]);
    rowlock_db *db = must_open(line->url);
    rowlock_lock *lock = must_lock(db, NAME);
    int result = wait_lock(lock, HELD_MS, 20000);
    ssize_t ignored = read(line->go[0], &byte, 1);
    (void)ignored;
    if (result == ROWLOCK_OK)
        result = rowlock_release(lock);
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}

static void sign(const struct line *line, int number, int64_t token)
{
    char text[60];
    int length = snprintf(text, sizeof text, "%d %lld\n", number, (long long)token);
    int fd = open(line->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        abort();
    close(fd);
}

static int stand(void *argument)
{
    const struct place *place = argument;
    const struct line *line = place->line;
    char owner[30];
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    snprintf(owner, sizeof owner, "%d", place->number);
    signal(SIGALRM, SIG_DFL);
    alarm(WATCHDOG_S);
    close(line->go[0]);
    close(line->go[1]);
    rowlock_db *db = must_open_as(line->url, owner);
    rowlock_lock *lock = must_lock(db, NAME);
    how.wait_ms = ROWLOCK_FOREVER;
    how.ttl_ms = HELD_MS;
    how.ticket_ms = TICKET_MS;
    int result = rowlock_acquire(lock, &how);
    if (result == ROWLOCK_OK)
        sign(line, place->number, rowlock_lock_token(lock));
    if (kills_himself(line, place->number))
        kill(getpid(), SIGKILL);
    if (result == ROWLOCK_OK)
        result = rowlock_release(lock);
    if (result != ROWLOCK_OK)
        tap_note("%d: %s: %s", place->number, rowlock_result_name(result), why(db));
    rowlock_lock_close(lock);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}

/* ---- in ours */

static struct line *watched;

static void watchdog(int signal)
{
    static const char text[] = "Bail out! the line never came to an end\n";
    (void)signal;
    for (int i = 0; i < PEOPLE; i++)
        if (watched->pids[i] > 0)
            kill(watched->pids[i], SIGKILL);
    if (watched->holder > 0)
        kill(watched->holder, SIGKILL);
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

static long long count(const struct line *line, const char *table)
{
    return db_int(line->raw, line->url, "SELECT count(*) FROM rowlock_%s WHERE name = '%s'", table,
                  NAME);
}

static bool comes_to(const struct line *line, const char *table, int wanted)
{
    int64_t until = clock_ms() + slow_ms(60000);
    while (count(line, table) < wanted && clock_ms() < until)
        sleep_ms(20);
    return count(line, table) == wanted;
}

static int take_position(void *context, const rowlock_waiter *waiter)
{
    struct line *line = context;
    if (line->count < PEOPLE)
        line->order[line->count] = atoi(waiter->owner);
    line->count++;
    return 0;
}

/* Everybody comes at once. No handle of ours is open while they are started. */
static bool line_up(struct line *line, struct place *places)
{
    if (pipe(line->go) != 0)
        abort();
    line->holder = child_start(hold, line);
    close(line->go[0]);
    bool held = comes_to(line, "locks", 1);
    for (int i = 0; i < PEOPLE; i++) {
        places[i] = (struct place){.line = line, .number = i};
        line->pids[i] = child_start(stand, &places[i]);
    }
    return tap_ok(held && comes_to(line, "waiters", PEOPLE), "%d processes stand in line", PEOPLE);
}

static void look_at(struct line *line)
{
    rowlock_db *db = must_open(line->url);
    if (rowlock_list_waiters(db, NAME, take_position, line) != ROWLOCK_OK)
        tap_ok(false, "the line is listed: %s", why(db));
    rowlock_db_close(db);
}

static int number_of(const struct line *line, pid_t pid)
{
    int number = 0;
    while (number < PEOPLE - 1 && line->pids[number] != pid)
        number++;
    return number;
}

/* After one who died holding the lock comes the next when his lease is over: now. */
static int ended_as_they_should(struct line *line)
{
    int good = 0;
    for (int i = 0; i < PEOPLE; i++) {
        pid_t child = -1;
        int ending = child_join_any(&child), number = number_of(line, child);
        bool killed = is_killed(line, number) || kills_himself(line, number);
        good += ending == (killed ? 256 + SIGKILL : 0);
        line->pids[number] = 0;
        if (kills_himself(line, number))
            db_exec(line->raw, line->url,
                    "UPDATE rowlock_locks SET expires = 5 WHERE name = '%s' AND owner = '%d'", NAME,
                    number);
    }
    return good;
}

static void judge(const struct line *line)
{
    int number = 0, granted = 0, misplaced = 0, unordered = 0, next = 0, expected = 0;
    long long token = 0, before = 0;
    FILE *file = fopen(line->path, "r");
    while (file && fscanf(file, "%d %lld", &number, &token) == 2) {
        while (next < PEOPLE && is_killed(line, line->order[next]))
            next++;
        misplaced += next >= PEOPLE || line->order[next] != number;
        unordered += before != 0 && token != before + 1;
        before = token;
        granted++;
        next++;
    }
    if (file)
        fclose(file);
    for (int i = 0; i < PEOPLE; i++)
        expected += !is_killed(line, i);
    tap_is_int(granted, expected, "everybody who lives gets his turn, once");
    tap_is_int(misplaced, 0, "in the order of tickets");
    tap_is_int(unordered, 0, "with one token after the other");
}

static void new_file(struct line *line)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(line->path, sizeof line->path, "%s/line", tmp ? tmp : "/tmp");
    int fd = open(line->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    close(fd);
}

static void run_line(const struct raw *raw, const char *url, bool deadly)
{
    struct place places[PEOPLE];
    struct line line = {.raw = raw, .url = url, .deadly = deadly};
    watched = &line;
    new_file(&line);
    alarm(WATCHDOG_S);
    line_up(&line, places);
    look_at(&line);
    tap_is_int(line.count, PEOPLE, "each has a ticket of his own");
    for (int i = 0; i < PEOPLE; i++)
        if (is_killed(&line, i))
            kill(line.pids[i], SIGKILL);
    int64_t begin = clock_ms();
    close(line.go[1]);
    tap_is_int(child_join(line.holder), 0, "the lock is released");
    line.holder = 0;
    tap_is_int(ended_as_they_should(&line), PEOPLE,
               deadly ? "killed are those who should be, and nobody else fails" : "nobody fails");
    alarm(0);
    judge(&line);
    tap_note("%s: %lld ms for all", deadly ? "with deaths" : "without deaths",
             (long long)(clock_ms() - begin));
    tap_is_int(deadly ? 0 : count(&line, "locks") + count(&line, "waiters"), 0,
               "nothing is left behind");
    db_exec(raw, url, "DELETE FROM rowlock_locks WHERE name = '%s'", NAME);
    db_exec(raw, url, "DELETE FROM rowlock_waiters WHERE name = '%s'", NAME);
    unlink(line.path);
}

static int run(const struct raw *raw, const char *url)
{
    signal(SIGALRM, watchdog);
    must_install(url);
    run_line(raw, url, false);
    run_line(raw, url, true);
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
