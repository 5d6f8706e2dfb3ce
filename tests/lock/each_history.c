/* SPDX-License-Identifier: MIT
 *
 * A life of readers, writers and counted holders; see history.h. They write into a file what they are
 * granted, what a guard says of it, and when they let it go. Somebody stops them for longer than their leases
 * last, and kills them. What was written is judged in judgement.c.
 */
#include "history.h"

#include "each.h"
#include "quick.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PEOPLE = 8,
    LEASE_MS = 150,
    RUN_MS = 7000,
    GIVE_UP_MS = 45000,
    WATCHDOG_S = 120,
    WANTED = 8 /* of each kind of mishap */
};

/* What all processes see. */
struct life {
    const struct raw *raw;
    const char *url;
    char path[300];
    atomic_bool over;
    atomic_int odd; /* answers that nobody should get */
    atomic_int granted, lost;
};

struct person {
    struct life *life;
    unsigned seed;
    int file;
    void *session; /* adopted by tx */
    rowlock_db *db, *tx;
    rowlock_lock *locks[HISTORY_NAMES];
};

static const char *const names[HISTORY_NAMES] = {"history of readers", "history of counted"};

/* ---- writing it down */

static void note(const struct person *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(const struct person *p, const char *format, ...)
{
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(p->file, line, (size_t)length) != length)
        abort();
}

static void odd(const struct person *p, const rowlock_db *db, const char *what, int result)
{
    p->life->odd++;
    tap_note("%s: %s: %s", what, rowlock_result_name(result), why(db));
}

static long long now_us(const struct person *p)
{
    return raw_int(p->life->raw, p->session, "SELECT %s", p->life->raw->clock);
}

/* ---- one turn */

/* In a transaction whose clock is read under the guard: until then, at least, nobody else had it. */
static bool guard(struct person *p, int which)
{
    rowlock_lock *lock = p->locks[which];
    char ignored[200];
    raw_run(p->life->raw, p->session, "BEGIN");
    int result = rowlock_guard(lock, p->tx);
    long long at = result == ROWLOCK_OK ? now_us(p) : 0;
    if (result == ROWLOCK_OK && rand_r(&p->seed) % 4 == 0)
        sleep_ms(rand_r(&p->seed) % LEASE_MS); /* a moment in which to be stopped */
    if (result == ROWLOCK_OK)
        note(p, "K %d %lld %lld\n", which, (long long)rowlock_lock_token(lock), at);
    p->life->raw->run(p->session, result == ROWLOCK_OK ? "COMMIT" : "ROLLBACK", ignored,
                      sizeof ignored);
    if (result != ROWLOCK_OK && result != ROWLOCK_LOST && result != ROWLOCK_CONFLICT)
        odd(p, p->tx, "guard", result);
    return result != ROWLOCK_LOST;
}

static bool renew(struct person *p, int which)
{
    rowlock_lock *lock = p->locks[which];
    int result = rowlock_renew(lock, 0);
    if (result == ROWLOCK_OK || result == ROWLOCK_LAPSED)
        note(p, "R %d %lld %lld\n", which, (long long)rowlock_lock_token(lock),
             (long long)rowlock_lock_expires_us(lock));
    else if (result != ROWLOCK_LOST)
        odd(p, p->db, "renew", result);
    return result != ROWLOCK_LOST;
}

static void let_go(struct person *p, int which)
{
    rowlock_lock *lock = p->locks[which];
    long long token = rowlock_lock_token(lock), at = now_us(p);
    note(p, "E %d %lld %lld\n", which, token, at);
    int result = rowlock_release(lock);
    if (result == ROWLOCK_OK)
        note(p, "K %d %lld %lld\n", which, token, at);
    else if (result == ROWLOCK_LOST)
        note(p, "L %d %lld\n", which, token);
    else
        odd(p, p->db, "release", result);
    p->life->lost += result == ROWLOCK_LOST;
}

static void have_it(struct person *p, int which, int permits)
{
    rowlock_lock *lock = p->locks[which];
    bool mine = true;
    long long expires = rowlock_lock_expires_us(lock);
    note(p, "G %d %d %lld %lld %lld %lld\n", which, permits, (long long)rowlock_lock_token(lock),
         expires - LEASE_MS * 1000 - p->life->raw->tick_us, expires, now_us(p));
    p->life->granted++;
    for (int i = rand_r(&p->seed) % 4; i > 0 && mine; i--) {
        switch (rand_r(&p->seed) % 8) {
        case 0:
            sleep_ms(LEASE_MS + 10);
            break;
        case 1:
        case 2:
            mine = guard(p, which);
            break;
        case 3:
        case 4:
            mine = renew(p, which);
            break;
        default:
            sleep_ms(rand_r(&p->seed) % 20);
        }
    }
    let_go(p, which);
}

/* Most of those who ask for the first lock read it, most who ask for the second count. */
static void take_turn(struct person *p)
{
    int which = rand_r(&p->seed) % HISTORY_NAMES;
    bool alone = rand_r(&p->seed) % 4 == 0;
    rowlock_acquire_options how = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    how.permits = alone ? 0 : which == 0 ? ROWLOCK_SHARED : HISTORY_PERMITS;
    how.ttl_ms = LEASE_MS;
    how.wait_ms = rand_r(&p->seed) % 4 ? 500 + rand_r(&p->seed) % 2000 : 0;
    how.ticket_ms = 1000;
    how.unfair = rand_r(&p->seed) % 8 == 0;
    int result = rowlock_acquire(p->locks[which], &how);
    if (result == ROWLOCK_OK)
        have_it(p, which, how.permits);
    else if (result != ROWLOCK_BUSY && result != ROWLOCK_TIMEOUT)
        odd(p, p->db, "acquire", result);
}

static int live(void *argument)
{
    struct person *p = argument;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    signal(SIGALRM, SIG_DFL);
    alarm(WATCHDOG_S);
    p->session = p->life->raw->open(p->life->url);
    if (p->life->raw->adopt(&p->tx, p->session, NULL, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    p->db = must_open(p->life->url);
    p->file = open(p->life->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    for (int i = 0; i < HISTORY_NAMES; i++)
        p->locks[i] = must_lock(p->db, names[i]);
    while (!p->life->over)
        take_turn(p);
    for (int i = 0; i < HISTORY_NAMES; i++)
        rowlock_lock_close(p->locks[i]);
    close_dbs(p->db, p->tx);
    p->life->raw->close(p->session);
    close(p->file);
    return 0;
}

/* ---- mishaps */

static struct crew {
    struct person people[PEOPLE];
    pid_t pids[PEOPLE];
    int64_t until[PEOPLE]; /* stopped until then; 0: he is not */
    int stops, kills, ended_badly;
} crew;

static void watchdog(int signal)
{
    static const char text[] = "Bail out! the people never came to an end\n";
    (void)signal;
    for (int i = 0; i < PEOPLE; i++)
        if (crew.pids[i] > 0)
            kill(crew.pids[i], SIGKILL);
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

static void be_born(struct life *life, int i, unsigned seed)
{
    crew.people[i] = (struct person){.life = life, .seed = seed};
    crew.pids[i] = child_start(live, &crew.people[i]);
}

/* Somebody else comes in his place. */
static void kill_one(struct life *life, int i, unsigned seed)
{
    kill(crew.pids[i], SIGKILL);
    if (child_join(crew.pids[i]) != 256 + SIGKILL)
        crew.ended_badly++;
    crew.kills++;
    crew.until[i] = 0;
    be_born(life, i, seed);
}

static void wake_up(bool all)
{
    for (int i = 0; i < PEOPLE; i++)
        if (crew.until[i] && (all || clock_ms() >= crew.until[i])) {
            kill(crew.pids[i], SIGCONT);
            crew.until[i] = 0;
        }
}

static bool enough(const struct life *life, int64_t ms)
{
    if (life->odd > 0 || ms > slow_ms(GIVE_UP_MS))
        return true;
    return ms > RUN_MS && crew.kills >= WANTED && crew.stops >= WANTED && life->lost >= WANTED;
}

static void disturb(struct life *life, unsigned seed)
{
    int64_t begin = clock_ms(), next = begin + 200;
    while (!enough(life, clock_ms() - begin)) {
        int i = rand_r(&seed) % PEOPLE;
        if (clock_ms() >= next) {
            if (rand_r(&seed) % 3 == 0) {
                kill_one(life, i, (unsigned)rand_r(&seed));
            } else if (crew.until[i] == 0) {
                kill(crew.pids[i], SIGSTOP);
                crew.stops++;
                crew.until[i] = clock_ms() + LEASE_MS + 20 + rand_r(&seed) % 200;
            }
            next = clock_ms() + 40 + rand_r(&seed) % 120;
        }
        sleep_ms(5);
        wake_up(false);
    }
    life->over = true;
    wake_up(true);
}

/* ---- the whole */

static unsigned first_seed(void)
{
    const char *text = getenv("ROWLOCK_TEST_SEED");
    return text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)getpid();
}

static struct life *new_life(const struct raw *raw, const char *url)
{
    const char *tmp = getenv("TMPDIR");
    struct life *life =
        mmap(NULL, sizeof *life, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (life == MAP_FAILED)
        abort();
    life->raw = raw;
    life->url = url;
    snprintf(life->path, sizeof life->path, "%s/history", tmp ? tmp : "/tmp");
    int fd = open(life->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    close(fd);
    return life;
}

static void judge(const struct life *life)
{
    static struct history history;
    int most;
    history_read(&history, life->path);
    tap_ok(history.count >= life->granted, "every grant that was counted is in the history");
    tap_is_int(history_conflicts(&history, true), 0, "in %d grants never a writer with a reader",
               history.count);
    tap_is_int(history_excesses(&history, &most), 0, "never more than the permits");
    tap_ok(most > 1, "and more than one at a time: %d", most);
    tap_is_int(history_inversions(&history), 0, "tokens increase strictly in the order of grants");
    tap_note("%d grants, %d confirmations, %d lost, %d stops, %d kills", history.count,
             history.kept, history.lost, crew.stops, crew.kills);

    /* The same history with one lie in it, so that the above is known to show something. A grant
     * may be over as soon as it begins, so it is about the longest. */
    struct past lie = history.past[0];
    for (int i = 1; i < history.count; i++)
        if (history.past[i].end - history.past[i].start > lie.end - lie.start)
            lie = history.past[i];
    lie.permits = lie.permits == 0 ? HISTORY_PERMITS : 0;
    lie.told = lie.start;
    lie.witnessed = false;
    lie.end = lie.start + 1000000;
    history.past[history.count++] = lie;
    tap_ok(history_conflicts(&history, false) > 0 && history_inversions(&history) > 0,
           "a lie in it would be found");
}

static int run(const struct raw *raw, const char *url)
{
    unsigned seed = first_seed();
    signal(SIGALRM, watchdog);
    must_install(url);
    struct life *life = new_life(raw, url);
    tap_note("seed %u", seed);
    alarm(WATCHDOG_S);
    for (int i = 0; i < PEOPLE; i++)
        be_born(life, i, (unsigned)rand_r(&seed));
    disturb(life, seed);
    for (int i = 0; i < PEOPLE; i++) {
        crew.ended_badly += child_join(crew.pids[i]) != 0;
        crew.pids[i] = 0;
    }
    alarm(0);
    tap_is_int(crew.ended_badly, 0, "everybody who is not killed comes to his end");
    tap_is_int(life->odd, 0, "nobody is told what he should not be");
    tap_ok(crew.kills >= WANTED && crew.stops >= WANTED && life->lost >= WANTED,
           "some were killed (%d), stopped (%d), and lost what they had (%d)", crew.kills,
           crew.stops, life->lost);
    judge(life);
    unlink(life->path);
    munmap(life, sizeof *life);
    db_exec(raw, url, "DELETE FROM rowlock_locks WHERE name LIKE 'history%%'");
    db_exec(raw, url, "DELETE FROM rowlock_waiters WHERE name LIKE 'history%%'");
    return tap_done();
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_main(argv, run);
}
