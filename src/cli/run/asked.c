/* SPDX-License-Identifier: MIT
 *
 * The options of the commands that wait for a lock, and what they may be together.
 */
#include "cli/run/run.h"

struct asked asked = {
    .wait_ms = ROWLOCK_FOREVER,
    .conflict_status = EXIT_NOT_ACQUIRED,
    .ttl_ms = 30000,
    .grace_ms = UNSET,
};

#define ASKED(users, name, letter, argument, help, kind, member) \
    OPTION_OF(users, name, letter, argument, help, kind, asked.member, 0, INT64_MAX)

const struct option_row asked_options[] = {
    ASKED("run acquire wait", "nonblock", 'n', NULL,
          "do not wait: exit at once if the lock is held", FLAG, nonblock),
    ASKED("run lead acquire wait", "wait", 'w', "DURATION",
          "wait at most this long (default: no limit)", DURATION, wait_ms),
    {"conflict-exit-code", 'E', NUMBER, "N", "exit status if the lock is not acquired (75)",
     &asked.conflict_status, 0, 255, "run lead acquire wait"},
    ASKED("run acquire", "shared", 's', NULL, "share the lock with all clients that use -s", FLAG,
          shared),
    {"permits", 0, NUMBER, "N", "at most N holders at once; all must give the same N",
     &asked.permits, 1, 1000000, "run acquire"},
    ASKED("run acquire", "unfair", 0, NULL, "pass the queue if the lock is free", FLAG, unfair),
    ASKED("run lead acquire", "ttl", 0, "DURATION",
          "length of the lease, unless it is renewed (30s)", LENGTH, ttl_ms),
    ASKED("run", "min-hold", 0, "DURATION",
          "keep the lock at least this long, even if COMMAND ends (0)", DURATION, min_hold_ms),
    ASKED("run lead", "max-hold", 0, "DURATION",
          "end COMMAND when it has held the lock this long (no limit)", LENGTH, max_hold_ms),
    ASKED("run lead", "stall", 0, "DURATION",
          "renew only while COMMAND reports progress this often (off)", LENGTH, stall_ms),
    ASKED("run lead", "grace", 0, "DURATION",
          "time from SIGTERM to SIGKILL, also after a stop (5s)", DURATION, grace_ms),
    ASKED("run lead acquire", "owner", 0, "OWNER",
          "owner of the lock (run, lead: random; acquire: $ROWLOCK_OWNER)", TEXT, owner),
    ASKED("run lead acquire", "note", 0, "TEXT", "a remark that list and show print", TEXT, note),
    ASKED("run", "once", 0, "KEY", "run COMMAND only if it was not done under this key", TEXT,
          once),
    ASKED("run", "every", 0, "DURATION", "run COMMAND if it was not done in this period yet",
          LENGTH, every_ms),
    ASKED("run", "at", 0, "TIME", "when periods of --every begin: 02:00, 'mon 02:00' (00:00)", TEXT,
          at),
    ASKED("run", "timezone", 0, "ZONE", "the time zone of --every and --at (UTC)", TEXT, timezone),
    ASKED("run", "retry-after", 0, "DURATION",
          "do not repeat a failed COMMAND sooner (default: at the next call)", LENGTH,
          retry_after_ms),
    ASKED("run", "jitter", 0, "DURATION", "first pause for a random time, at most this long (0)",
          DURATION, jitter_ms),
    ASKED("run", "metrics", 0, "DIR", "keep a file of metrics in DIR, for the node exporter", TEXT,
          metrics),
    {"json", 0, FLAG, NULL, "print JSON", &general.json, 0, 0, "acquire"},
    FLAG_OPTION("verbose", 'v', "explain on standard error what happens", general.verbose),
    {.name = NULL},
};

int32_t asked_permits(void)
{
    return asked.shared ? ROWLOCK_SHARED : (int32_t)asked.permits;
}

void wait_settings(struct cli *cli)
{
    if (asked.nonblock && asked.wait_ms != ROWLOCK_FOREVER)
        usage_error(cli, "--nonblock and --wait exclude each other");
    if (asked.nonblock)
        asked.wait_ms = 0;
    if (asked.wait_ms > LEAP_YEAR_MS)
        usage_error(cli, "--wait: must be at most 366d; leave it out to wait without a limit");
    wait_begin(cli);
}

void wait_begin(struct cli *cli)
{
    cli->wait_until_ms = asked.wait_ms == ROWLOCK_FOREVER ? INT64_MAX
                         : asked.wait_ms == 0             ? 0
                                                          : now_ms() + asked.wait_ms;
}

int conflict_status(int status)
{
    return status == EXIT_NOT_ACQUIRED ? (int)asked.conflict_status : status;
}

void grant_settings(struct cli *cli)
{
    /* What a quorum does not grant is refused before a member is asked. */
    const char *reason =
        !is_quorum(cli) ? NULL
        : asked.shared || asked.permits
            ? "they grant exclusive locks only, so --shared and --permits need one URL"
        : cli->name_count > 1 ? "they grant one lock at a time; put one run into another, in the "
                                "same order everywhere"
        : asked.once || asked.every_ms ? "--once and --every need one URL; keys are in one database"
                                       : NULL;
    wait_settings(cli);
    if (asked.ttl_ms < 100 || asked.ttl_ms > LEAP_YEAR_MS)
        usage_error(cli, "--ttl: the lease must be from 100ms to 366d");
    if (asked.shared && asked.permits)
        usage_error(cli, "--shared and --permits exclude each other");
    if (reason)
        usage_error(cli, "several URLs: %s", reason);
}
