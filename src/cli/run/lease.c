/* SPDX-License-Identifier: MIT
 *
 * Looks at the leases of a running job and at its progress, and prints messages about them.
 * It does not wait for the database. supervise.c decides what follows.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <unistd.h>

int64_t lease_margin_ms(void)
{
    return within(asked.ttl_ms / 20, 20, 500);
}

void lease_begin(struct lease *lease, struct cli *cli, int progress_fd)
{
    *lease = (struct lease){.cli = cli, .progress_fd = progress_fd};
    lease->each = must_have(calloc((size_t)cli->lock_count, sizeof *lease->each));
    lease_look(lease);
    /* At the grant. */
    lease->progress_ms = lease->deadline_ms - asked.ttl_ms;
}

/* The database's clock may have moved on much further than ours between two renewals. */
static bool has_lapsed(const struct one_lease *one, int64_t deadline_ms, int64_t expires_us)
{
    int64_t theirs_ms = (expires_us - one->expires_us) / 1000;
    int64_t ours_ms = deadline_ms - one->deadline_ms;
    return one->expires_us && theirs_ms > asked.ttl_ms && theirs_ms - ours_ms > asked.ttl_ms / 2;
}

static void say_jeopardy(const struct lease *lease, const char *name)
{
    char why[WARNING_SIZE];
    if (lease_stalled(lease))
        complain("%s '%s': the job reported no progress for %s; its lease is not renewed",
                 lease->cli->command->name, name,
                 duration_text(now_ms() - lease->progress_ms).text);
    else
        complain("renew lock '%s': %s", name,
                 last_warning(why)       ? why
                 : is_quorum(lease->cli) ? "only as many members have it as are needed"
                                         : "the database has not answered yet");
}

static void note_state(const struct lease *lease, struct one_lease *one, const char *name,
                       rowlock_state state)
{
    bool held = state == ROWLOCK_STATE_HELD, jeopardy = state == ROWLOCK_STATE_JEOPARDY;
    if (jeopardy && !one->in_jeopardy)
        say_jeopardy(lease, name);
    if (held && one->in_jeopardy)
        complain("renew lock '%s': %s", name,
                 is_quorum(lease->cli) ? "more members have it again" : "done after all");
    one->in_jeopardy = jeopardy;
    if (held || jeopardy || one->lost)
        return;
    one->lost = true;
    one->running_out = now_ms() >= one->deadline_ms - lease->cli->margin_ms;
}

/* Our clock is read before the remaining time, so the sum is never too late. For a lost lease the
 * library says that no time is left; it keeps its old deadline. */
static void look_at(const struct lease *lease, struct one_lease *one, rowlock_lock *lock)
{
    const char *name = rowlock_lock_name(lock);
    int64_t expires_us = rowlock_lock_expires_us(lock);
    int64_t now = now_ms();
    int64_t left_ms = rowlock_lock_remaining_ms(lock);
    if (left_ms > 0 && has_lapsed(one, now + left_ms, expires_us))
        complain("renew lock '%s': the lease had run out by the database's clock; for a while the "
                 "job was not protected, but no other client got the lock",
                 name);
    if (left_ms > 0) {
        one->deadline_ms = now + left_ms;
        one->expires_us = expires_us;
    }
    note_state(lease, one, name, rowlock_lock_state(lock));
}

void lease_look(struct lease *lease)
{
    lease->deadline_ms = INT64_MAX;
    lease->in_jeopardy = lease->lost = false;
    lease->gone = NULL;
    for (int i = 0; i < lease->cli->lock_count; i++) {
        struct one_lease *one = &lease->each[i];
        look_at(lease, one, lease->cli->locks[i]);
        lease->deadline_ms = at_most(one->deadline_ms, lease->deadline_ms);
        lease->in_jeopardy |= one->in_jeopardy;
        lease->lost |= one->lost;
        if (one->lost && !one->running_out)
            lease->gone = rowlock_lock_name(lease->cli->locks[i]);
    }
    lease->running_out = lease->lost && !lease->gone;
    if (!lease->in_jeopardy && !lease->lost)
        keep_warning("");
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
    return asked.stall_ms && now_ms() - lease->progress_ms >= asked.stall_ms;
}
