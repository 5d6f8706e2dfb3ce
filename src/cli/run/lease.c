/* SPDX-License-Identifier: MIT
 *
 * Looks at the leases of a running job and prints messages about them. No call here waits for the
 * database.
 */
#include "cli/run/lease.h"

#include "cli/run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void lease_begin(struct lease *lease, struct cli *cli, int progress_fd)
{
    *lease = (struct lease){.cli = cli, .progress_fd = progress_fd};
    lease->each = must_have(calloc((size_t)cli->lock_count, sizeof *lease->each));
    for (int i = 0; i < cli->lock_count; i++)
        lease->each[i].lock = cli->locks[i];
    lease_look(lease);
    /* At the grant. */
    lease->progress_ms = lease->deadline_ms - cli->set.ttl_ms;
}

void lease_end(struct lease *lease)
{
    free(lease->each);
    lease->each = NULL;
}

/* ---------------------------------------------------------------- one lease */

/* The database's clock may have moved on much further than ours between two renewals. */
static bool has_lapsed(const struct one_lease *one, int64_t deadline_ms, int64_t expires_us,
                       int64_t ttl_ms)
{
    int64_t theirs_ms = (expires_us - one->expires_us) / 1000;
    int64_t ours_ms = deadline_ms - one->deadline_ms;
    return one->expires_us && theirs_ms > ttl_ms && theirs_ms - ours_ms > ttl_ms / 2;
}

static void note_end(struct one_lease *one, int64_t deadline_ms, int64_t expires_us, int64_t ttl_ms)
{
    if (has_lapsed(one, deadline_ms, expires_us, ttl_ms))
        complain("renew lock '%s': the lease had run out by the database's clock; for a while the "
                 "job was not protected, but no other client got the lock",
                 rowlock_lock_name(one->lock));
    one->deadline_ms = deadline_ms;
    one->expires_us = expires_us;
}

static void say_jeopardy(const struct lease *lease, const struct one_lease *one)
{
    char text[DURATION_TEXT_SIZE];
    char why[WARNING_SIZE];
    duration_text(now_ms() - lease->progress_ms, text);
    if (lease_stalled(lease))
        complain("%s '%s': the job reported no progress for %s; its lease is not renewed",
                 lease->cli->command->name, rowlock_lock_name(one->lock), text);
    else
        complain("renew lock '%s': %s", rowlock_lock_name(one->lock),
                 last_warning(why)       ? why
                 : is_quorum(lease->cli) ? "only as many members have it as are needed"
                                         : "the database has not answered yet");
}

static void note_state(const struct lease *lease, struct one_lease *one, rowlock_state state)
{
    bool jeopardy = state == ROWLOCK_STATE_JEOPARDY;
    if (jeopardy && !one->in_jeopardy)
        say_jeopardy(lease, one);
    if (state == ROWLOCK_STATE_HELD && one->in_jeopardy)
        complain("renew lock '%s': %s", rowlock_lock_name(one->lock),
                 is_quorum(lease->cli) ? "more members have it again" : "done after all");
    one->in_jeopardy = jeopardy;
    if (state == ROWLOCK_STATE_HELD || jeopardy || one->lost)
        return;
    one->lost = true;
    one->running_out = now_ms() >= one->deadline_ms - lease->cli->margin_ms;
}

/* Our clock is read before the remaining time, so the sum is never too late. For a lost lease the
 * library says that no time is left; it keeps its old deadline. */
static void look_at(const struct lease *lease, struct one_lease *one)
{
    int64_t expires_us = rowlock_lock_expires_us(one->lock);
    int64_t now = now_ms();
    int64_t left_ms = rowlock_lock_remaining_ms(one->lock);
    if (left_ms > 0)
        note_end(one, now + left_ms, expires_us, lease->cli->set.ttl_ms);
    note_state(lease, one, rowlock_lock_state(one->lock));
}

/* ---------------------------------------------------------------- all of them */

static void sum_up(struct lease *lease)
{
    lease->deadline_ms = INT64_MAX;
    lease->in_jeopardy = false;
    lease->lost = false;
    lease->gone = NULL;
    for (int i = 0; i < lease->cli->lock_count; i++) {
        const struct one_lease *one = &lease->each[i];
        if (one->deadline_ms < lease->deadline_ms)
            lease->deadline_ms = one->deadline_ms;
        lease->in_jeopardy = lease->in_jeopardy || one->in_jeopardy;
        lease->lost = lease->lost || one->lost;
        if (one->lost && !one->running_out)
            lease->gone = rowlock_lock_name(one->lock);
    }
    lease->running_out = lease->lost && !lease->gone;
    if (!lease->in_jeopardy && !lease->lost)
        forget_warning();
}

void lease_look(struct lease *lease)
{
    for (int i = 0; i < lease->cli->lock_count; i++)
        look_at(lease, &lease->each[i]);
    sum_up(lease);
}

/* ---------------------------------------------------------------- progress */

int progress_open(int ends[2])
{
    char text[16];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    /* Our end only: the job does not expect O_NONBLOCK. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    snprintf(text, sizeof text, "%d", ends[1]);
    must_have(setenv("ROWLOCK_PROGRESS_FD", text, 1) == 0 ? text : NULL);
    return 0;
}

void lease_progress(struct lease *lease)
{
    lease->progress_ms = now_ms();
    for (int i = 0; i < lease->cli->lock_count; i++)
        rowlock_progress(lease->cli->locks[i]);
}

void lease_hear(struct lease *lease)
{
    char bytes[4096];
    ssize_t got = 0;
    bool any = false;
    while (lease->progress_fd >= 0 && (got = read(lease->progress_fd, bytes, sizeof bytes)) > 0)
        any = true;
    if (any)
        lease_progress(lease);
    /* All other ends of the pipe are closed. */
    if (got == 0 && lease->progress_fd >= 0) {
        close(lease->progress_fd);
        lease->progress_fd = -1;
    }
}

bool lease_stalled(const struct lease *lease)
{
    int64_t stall_ms = lease->cli->set.stall_ms;
    return stall_ms != UNSET && now_ms() - lease->progress_ms >= stall_ms;
}
