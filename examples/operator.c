/* SPDX-License-Identifier: MIT
 *
 * What an operator does, in C: look at locks, and repair them. The command `rowlock` does it too.
 *
 *     operator URL look             is the database fit? who holds, who waits? is an upgrade due?
 *     operator URL script           the SQL of install, for a DBA
 *     operator URL break NAME       takes the lock away from the holder that `look` shows
 *     operator URL count GLOB       how much is in the tables, and of the names like GLOB
 *     operator URL sweep            removes what is over
 *     operator URL restored         after a restore: tokens above all old ones, a new identity
 */
#include <rowlock/admin.h>

#include <stdio.h>
#include <string.h>

/* The log tells of reconnects. */
static void tell(void *file, rowlock_log_level level, const char *line)
{
    fprintf(file, "%d: %s\n", (int)level, line);
}

static int write_text(void *file, const char *sql, size_t length)
{
    return fwrite(sql, 1, length, file) != length;
}

static int show_finding(void *file, const rowlock_finding *finding)
{
    static const char *const verdicts[] = {"fine", "warning", "bad"};
    fprintf(file, "%s: %s is %s\n", verdicts[finding->verdict], finding->item, finding->value);
    return 0;
}

static int show_grant(void *file, const rowlock_grant *grant)
{
    fprintf(file, "grant of %s: owner %s, token %lld, %s\n", grant->name, grant->owner,
            (long long)grant->token, grant->remaining_ms < 0 ? "expired" : "valid");
    return 0;
}

static int show_waiter(void *file, const rowlock_waiter *waiter)
{
    fprintf(file, "waiter for %s: %s\n", waiter->name, waiter->owner);
    return 0;
}

static int show_step(void *file, const rowlock_upgrade_step *step)
{
    fprintf(file, "upgrade: %s\n", step->what);
    return 0;
}

static int look(rowlock_db *db)
{
    rowlock_upgrade_options upgrade = ROWLOCK_UPGRADE_OPTIONS_INIT;
    rowlock_verdict worst = ROWLOCK_BAD;
    upgrade.dry_run = 1, upgrade.each = show_step, upgrade.context = stdout;
    int result = rowlock_check(db, show_finding, stdout, &worst);
    if (result == ROWLOCK_OK)
        result = rowlock_list(db, NULL, show_grant, stdout);
    if (result == ROWLOCK_OK)
        result = rowlock_list_waiters(db, NULL, show_waiter, stdout);
    if (result == ROWLOCK_OK)
        result = rowlock_upgrade(db, &upgrade);
    if (result == ROWLOCK_OK)
        puts(worst == ROWLOCK_BAD ? "not fit for locks" : "fit for locks");
    return result;
}

static int show_name(void *file, const rowlock_name_figures *figures)
{
    fprintf(file, "%s: %lld holders, %lld waiters\n", figures->name, (long long)figures->holders,
            (long long)figures->waiters);
    return 0;
}

static int count(rowlock_db *db, const char *glob)
{
    rowlock_figures figures = ROWLOCK_FIGURES_INIT;
    int result = rowlock_measure(db, &figures);
    if (result == ROWLOCK_OK)
        printf("%lld exclusive grants, the oldest of all for %lld ms\n",
               (long long)figures.exclusive, (long long)figures.longest_hold_ms);
    return result == ROWLOCK_OK ? rowlock_measure_names(db, glob, show_name, stdout) : result;
}

/* If the lock is granted again in between, this is NONE, and the new holder keeps it. */
static int take_away(rowlock_db *db, const char *name)
{
    rowlock_grant broken = ROWLOCK_GRANT_INIT;
    int64_t token = 0, granted_us = 0;
    int result = rowlock_last_grant(db, name, &token, &granted_us);
    if (result == ROWLOCK_OK)
        result = rowlock_break(db, name, token, &broken);
    if (result == ROWLOCK_OK)
        printf("%s had it, with token %lld\n", broken.owner, (long long)broken.token);
    return result;
}

/* 1,000,000: more grants than can have been made since the backup. */
static int restored(rowlock_db *db)
{
    int result = rowlock_raise_tokens(db, 1000000, NULL);
    return result == ROWLOCK_OK ? rowlock_new_identity(db) : result;
}

static int run(rowlock_db *db, const char *verb, const char *name)
{
    if (!strcmp(verb, "look"))
        return look(db);
    if (!strcmp(verb, "script"))
        return rowlock_install_script(db, NULL, NULL, write_text, stdout);
    if (!strcmp(verb, "break") && name)
        return take_away(db, name);
    if (!strcmp(verb, "count") && name)
        return count(db, name);
    if (!strcmp(verb, "sweep"))
        return rowlock_sweep(db, NULL, NULL);
    return strcmp(verb, "restored") ? ROWLOCK_EINVAL : restored(db);
}

static int show_driver(void *file, const char *driver, const char *client)
{
    fprintf(file, "%s by %s\n", driver, client);
    return 0;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    rowlock_log_set(tell, stderr, ROWLOCK_LOG_INFO);
    if (argc < 3) {
        fprintf(stderr, "rowlock %s\nusage: operator URL VERB [NAME]\n", rowlock_version());
        (void)!rowlock_list_drivers(show_driver, stderr);
    }
    int result = argc < 3 ? ROWLOCK_EINVAL : rowlock_db_open(argv[1], NULL, &db, &err);
    if (result == ROWLOCK_OK) {
        result = run(db, argv[2], argc > 3 ? argv[3] : NULL);
        err = *rowlock_db_error(db);
    }
    if (result != ROWLOCK_OK)
        fprintf(stderr, "operator: %s %s\n", rowlock_result_name(result), err.text);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}
