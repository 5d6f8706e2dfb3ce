/* SPDX-License-Identifier: MIT
 *
 * A long job under two locks. A keeper renews both leases. The job looks at both locks before each
 * step, and stops when one of them is lost. Ctrl-C ends the wait for the locks, and the work. At
 * the end it tells what the handle has counted.
 *
 *     pipeline URL FROM TO STEPS         copies from one shelf to the other, a step each 100 ms
 */
#include <rowlock/admin.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static rowlock_db *db;
static volatile sig_atomic_t interrupted;

/* rowlock_cancel() is the one call on a rowlock_db that a signal handler may make. */
static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
    rowlock_cancel(db);
}

/* Called from the keeper's thread. */
static void tell_state(void *context, rowlock_lock *lock, rowlock_state state)
{
    static const char *const states[] = {"none", "held", "in jeopardy", "lost"};
    (void)context;
    fprintf(stderr, "%s is %s\n", rowlock_lock_name(lock), states[state]);
}

/* A signal or a lock that gets worse ends the step early. */
static int step(rowlock_lock *const *locks)
{
    struct pollfd fds[] = {{.fd = rowlock_lock_state_fd(locks[0]), .events = POLLIN},
                           {.fd = rowlock_lock_state_fd(locks[1]), .events = POLLIN}};
    if (poll(fds, 2, 100) < 0 || interrupted)
        return ROWLOCK_CANCELLED;
    for (int i = 0; i < 2; i++) {
        if (rowlock_lock_state(locks[i]) == ROWLOCK_STATE_LOST)
            return ROWLOCK_LOST;
        /* Without this for 10 s (progress_ms), the keeper takes the job for stuck. */
        rowlock_progress(locks[i]);
    }
    return ROWLOCK_OK;
}

static int work(rowlock_lock *const *locks, int steps)
{
    int result = ROWLOCK_OK, done = 0;
    printf("%s and %s are ours\n", rowlock_lock_name(locks[0]), rowlock_lock_name(locks[1]));
    for (; done < steps && result == ROWLOCK_OK; done += result == ROWLOCK_OK)
        result = step(locks);
    printf("%d of %d steps done\n", done, steps);
    for (int i = 0; i < 2; i++) {
        int released = rowlock_release(locks[i]);
        if (result == ROWLOCK_OK)
            result = released;
    }
    return result;
}

static void tell_stats(void)
{
    rowlock_stats stats = ROWLOCK_STATS_INIT;
    if (rowlock_db_stats(db, &stats) == ROWLOCK_OK)
        printf("%llu tries, %llu grants, waited %llu ms, %llu round trips\n",
               (unsigned long long)stats.tries, (unsigned long long)stats.granted,
               (unsigned long long)stats.waited_us / 1000, (unsigned long long)stats.round_trips);
}

static int acquire_and_work(rowlock_lock *const *locks, rowlock_keeper *keeper, int steps)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    size_t which = 0;
    options.ttl_ms = 15000;
    options.progress_ms = 10000;
    options.keeper = keeper;
    options.on_state = tell_state;
    int result = rowlock_acquire_all(locks, 2, &options, &which);
    if (result == ROWLOCK_BUSY && rowlock_lock_holder(locks[which], &holder) == ROWLOCK_OK) {
        printf("%s has %s: waiting\n", holder.owner, holder.name);
        options.wait_ms = ROWLOCK_FOREVER;
        result = rowlock_acquire_all(locks, 2, &options, &which);
    }
    return result == ROWLOCK_OK ? work(locks, steps) : result;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_keeper *keeper = NULL;
    rowlock_lock *locks[2] = {NULL, NULL};
    int result = ROWLOCK_EINVAL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 5)
        result = rowlock_db_open(argv[1], NULL, &db, &err);
    if (result == ROWLOCK_OK)
        result = rowlock_keeper_open(db, &keeper);
    for (int i = 0; i < 2 && result == ROWLOCK_OK; i++)
        result = rowlock_lock_open(db, argv[2 + i], &locks[i]);
    if (result == ROWLOCK_OK) {
        struct sigaction action = {.sa_handler = interrupt};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        result = acquire_and_work(locks, keeper, atoi(argv[4]));
        tell_stats();
    }
    if (db)
        err = *rowlock_db_error(db);
    if (result != ROWLOCK_OK)
        fprintf(stderr, "pipeline: %s %s\n", rowlock_result_name(result), err.text);
    /* The handler must not use db after its end. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    rowlock_lock_close(locks[0]);
    rowlock_lock_close(locks[1]);
    rowlock_keeper_close(keeper);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}
