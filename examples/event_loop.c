/* SPDX-License-Identifier: MIT
 *
 * Waits for two locks in one event loop, which handles other events meanwhile.
 *
 *     event_loop URL NAME NAME */
#include <poll.h>
#include <rowlock/admin.h>
#include <rowlock/async.h>
#include <stdio.h>

enum { LOCKS = 2 };

struct job {
    /* one for each wait, since a rowlock_db does one thing at a time */
    rowlock_db *db;
    rowlock_lock *lock;
};

static int begin(struct job *job, const char *url, const char *name)
{
    rowlock_acquire_options options = ROWLOCK_ACQUIRE_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    options.wait_ms = 60000;
    int result = rowlock_db_open(url, NULL, &job->db, &err);
    if (result == ROWLOCK_OK)
        result = rowlock_install(job->db);
    if (result == ROWLOCK_OK)
        result = rowlock_lock_open(job->db, name, &job->lock);
    if (result == ROWLOCK_OK)
        result = rowlock_acquire_start(job->lock, &options);
    if (result != ROWLOCK_OK)
        fprintf(stderr, "%s: %s\n", name, err.text[0] ? err.text : rowlock_result_name(result));
    return result;
}

static int step(const struct job *job)
{
    int result = rowlock_acquire_step(job->lock);
    if (result == ROWLOCK_OK)
        printf("%s is ours, with token %lld\n", rowlock_lock_name(job->lock),
               (long long)rowlock_lock_token(job->lock));
    else if (result != ROWLOCK_PENDING)
        printf("%s: %s\n", rowlock_lock_name(job->lock), rowlock_result_name(result));
    return result;
}

static void loop(const struct job *jobs)
{
    struct pollfd fds[LOCKS];
    for (int i = 0; i < LOCKS; i++)
        fds[i] = (struct pollfd){.fd = rowlock_acquire_fd(jobs[i].lock), .events = POLLIN};
    for (int pending = LOCKS; pending > 0;) {
        if (poll(fds, LOCKS, 1000) == 0)
            puts("still waiting, and free to do something else");
        for (int i = 0; i < LOCKS; i++) {
            if (fds[i].fd < 0 || !fds[i].revents || step(&jobs[i]) == ROWLOCK_PENDING)
                continue;
            /* poll() ignores this entry from now on. */
            fds[i].fd = -1;
            pending--;
        }
    }
}

int main(int argc, char **argv)
{
    struct job jobs[LOCKS] = {0};
    int result = argc == 4 ? ROWLOCK_OK : ROWLOCK_EINVAL;
    /* Each line is written at once, also into a file. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (result != ROWLOCK_OK)
        fprintf(stderr, "usage: %s URL NAME NAME\n", argv[0]);
    for (int i = 0; i < LOCKS && result == ROWLOCK_OK; i++)
        result = begin(&jobs[i], argv[1], argv[2 + i]);
    if (result == ROWLOCK_OK)
        loop(jobs);
    for (int i = 0; i < LOCKS; i++)
        /* Releases what is held, and ends waits that have begun. */
        rowlock_db_close(jobs[i].db);
    for (int i = 0; i < LOCKS; i++)
        rowlock_lock_close(jobs[i].lock);
    return result == ROWLOCK_OK ? 0 : 1;
}
