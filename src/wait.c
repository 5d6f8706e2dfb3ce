/* SPDX-License-Identifier: MIT
 * The only file that waits: for how long, with which jitter, and until whose cancel. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum {
    FIRST_PAUSE_US = 20000, /* before the second look at a held lock */
    LONGEST_PAUSE_US = 500000, /* between two looks at a lock that stays held */
    LEASE_END_SLACK_US = 2000, /* after the holder's lease, so that one look suffices */
    FIRST_RETRY_US = 1000, /* after lost races, deadlocks and lost connections */
    LONGEST_RETRY_US = 64000
};

/* Jitter needs to differ between processes, not to be unguessable (xorshift64*, Marsaglia). */
int64_t rlk_jitter(rowlock_db *db, int64_t bound)
{
    uint64_t x = db->jitter ? db->jitter : 88172645463325252u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    db->jitter = x;
    return bound > 0 ? (int64_t)((x * 2685821657736338717u) >> 33) % bound : 0;
}

/* Full jitter over a doubling range: random(1, min(longest, first * 2^n)). */
static int64_t next_pause(rowlock_db *db, int *tries, int64_t first, int64_t longest)
{
    int64_t range = first << (*tries < 20 ? *tries : 20);
    if (range > longest)
        range = longest;
    (*tries)++;
    return 1 + rlk_jitter(db, range);
}

int64_t rlk_pause_retry(rowlock_db *db, int *tries)
{
    return next_pause(db, tries, FIRST_RETRY_US, LONGEST_RETRY_US);
}

/* Between two looks at a held lock: at least half of the range, so that waiters do not hammer; and not
 * beyond the end of the holder's lease, spread over a little time so that they do not arrive at once. */
int64_t rlk_pause_poll(rowlock_db *db, int *tries, int64_t lease_left_us)
{
    int64_t range = (int64_t)FIRST_PAUSE_US << (*tries < 10 ? *tries : 10);
    if (range > LONGEST_PAUSE_US)
        range = LONGEST_PAUSE_US;
    (*tries)++;
    int64_t pause = range / 2 + rlk_jitter(db, range / 2);
    if (lease_left_us > 0 && lease_left_us + LEASE_END_SLACK_US < pause)
        pause = lease_left_us + LEASE_END_SLACK_US + rlk_jitter(db, FIRST_PAUSE_US);
    return pause;
}

int rlk_wake_open(rowlock_db *db)
{
    if (pipe2(db->wake, O_CLOEXEC | O_NONBLOCK) == 0)
        return 0;
    db->wake[0] = db->wake[1] = -1;
    return -1;
}

void rlk_wake_close(rowlock_db *db)
{
    for (int i = 0; i < 2; i++)
        if (db->wake[i] >= 0)
            close(db->wake[i]);
    db->wake[0] = db->wake[1] = -1;
}

/* write() to a pipe is safe in signal handlers and threads; a full pipe is as good as one more byte. */
void rowlock_cancel(rowlock_db *db)
{
    if (!db || db->tag != RLK_DB_TAG || db->pid != getpid()) /* a child shares the pipe */
        return;
    int saved = errno;
    ssize_t ignored = write(db->wake[1], "", 1);
    (void)ignored;
    errno = saved;
}

static bool take_cancel(rowlock_db *db)
{
    char bytes[64];
    bool any = false;
    while (read(db->wake[0], bytes, sizeof bytes) > 0)
        any = true;
    return any;
}

bool rlk_wait_until(rowlock_db *db, int64_t until_us)
{
    for (;;) {
        int64_t left_us = until_us - rlk_now_us();
        struct pollfd fd = {.fd = db->wake[0], .events = POLLIN};
        int64_t left_ms = left_us <= 0 ? 0 : left_us / 1000 + 1;
        int n = poll(&fd, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (n > 0)
            return !take_cancel(db);
        if (left_us <= 0 || (n < 0 && errno != EINTR))
            return true;
    }
}

void rlk_wait_plain(int64_t pause_us)
{
    int64_t until = rlk_now_us() + pause_us;
    for (int64_t left = pause_us; left > 0; left = until - rlk_now_us())
        poll(NULL, 0, (int)(left / 1000 + 1));
}
