/* SPDX-License-Identifier: MIT
 *
 * acquire, renew, release and verify: a lock in single steps, for scripts. obtain.c waits.
 */
#include "cli/run/run.h"

#include <stdlib.h>

static const char *from_environment(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* granted: the lease runs from now on. */
static void print_answer(const struct cli *cli, int result, const char *owner, int64_t token,
                         bool granted)
{
    const rowlock_lock *lock = cli->locks[0];
    json_t *object = json_of_answer(cli, result);
    json_put_text(object, "name", rowlock_lock_name(lock));
    json_put_text(object, "owner", owner);
    json_put_integer(object, "token", token);
    if (granted) {
        json_put_time(object, "expires", rowlock_lock_expires_us(lock));
        json_put_integer(object, "remaining_ms", rowlock_lock_remaining_ms(lock));
    }
    json_print(object, false);
}

/* ---------------------------------------------------------------- acquire */

static void print_refusal(const struct cli *cli, int result)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    if (!general.json || status_of(result) != EXIT_NOT_ACQUIRED)
        return;
    json_t *object = json_of_answer(cli, result);
    json_put_text(object, "name", rowlock_lock_name(cli->locks[0]));
    bool known = rowlock_lock_holder(cli->locks[0], &holder) == ROWLOCK_OK;
    json_put(object, "holder", known ? json_of_grant(&holder) : json_null());
    json_print(object, false);
}

/* If the token cannot be written, closing the handle releases the lock. */
static int hand_over(struct cli *cli)
{
    rowlock_lock *lock = cli->locks[0];
    if (general.json)
        print_answer(cli, ROWLOCK_OK, rowlock_lock_owner(lock), rowlock_lock_token(lock), true);
    else
        printf("%lld\n", (long long)rowlock_lock_token(lock));
    if (fflush(stdout) != 0 || ferror(stdout))
        /* finish_output() finds the failure too, and returns the status. */
        return EXIT_FINE;
    /* Closing either handle would release the grant. The script releases it itself. */
    cli->leave_grant = !is_quorum(cli);
    /* Then closing is safe. It gives the slower members of a quorum a moment to grant it too. */
    rowlock_forget(lock);
    return EXIT_FINE;
}

static int run_acquire(struct cli *cli)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    int result = ROWLOCK_OK;
    grant_settings(cli);
    if (!asked.owner)
        asked.owner = from_environment("ROWLOCK_OWNER");
    options.owner = asked.owner;
    if (!options.owner && !general.json)
        usage_error(cli, "say --owner or set ROWLOCK_OWNER: you need the owner to release the "
                         "lock (--json makes a random owner and prints it)");
    int status = connect_database(cli, &options);
    if (status != EXIT_FINE)
        return status;
    if (grant_get(cli, &result, &status))
        return hand_over(cli);
    print_refusal(cli, result);
    return status;
}

const struct command acquire_command = COMMAND(
    "acquire", "NAME", "get a lock and print its token",
    "The grant stays when this command ends, until it is released or its lease runs out.\n"
    "To renew or release it you need its owner. So give --owner, set ROWLOCK_OWNER, or use\n"
    "the random owner that --json prints.\n",
    asked_options, 1, 1, true, QUORUM, run_acquire);

/* ---------------------------------------------------------------- renew, release, verify */

/* The grant of another process. */
static struct {
    const char *owner;
    int64_t token;
    int64_t ttl_ms;
} its = {.token = UNSET};

static const struct option_row grant_options[] = {
    OPTION("owner", 0, "OWNER", "the owner of the grant ($ROWLOCK_OWNER)", TEXT, its.owner),
    NUMBER_OPTION("token", "the token of the grant ($ROWLOCK_TOKEN)", its.token, 1, INT64_MAX),
    {"ttl", 0, LENGTH, "DURATION", "length of the lease from now on (as before)", &its.ttl_ms, 0,
     INT64_MAX, "renew"},
    JSON_OPTION,
    {.name = NULL},
};

static int attach(struct cli *cli)
{
    const char *token = from_environment("ROWLOCK_TOKEN");
    if (!its.owner)
        its.owner = from_environment("ROWLOCK_OWNER");
    if (!its.owner)
        usage_error(cli, "the owner of the grant is missing; say --owner or set ROWLOCK_OWNER");
    if (its.token == UNSET && !token)
        usage_error(cli, "the token of the grant is missing; say --token or set ROWLOCK_TOKEN");
    if (its.token == UNSET && !parse_number(token, 1, INT64_MAX, &its.token))
        usage_error(cli, "ROWLOCK_TOKEN: '%s' is not a token; set it to a number above 0", token);
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    cli->locks = must_have(calloc(1, sizeof(rowlock_lock *)));
    int result = rowlock_lock_attach(cli->db, cli->arguments[0], its.owner, its.token, cli->locks);
    cli->lock_count = result == ROWLOCK_OK;
    return reported(cli, result);
}

static int run_attached(struct cli *cli)
{
    const char *what = cli->command->name, *name = cli->arguments[0];
    bool renews = cli->command == &renew_command, releases = cli->command == &release_command;
    int status = attach(cli);
    if (status != EXIT_FINE)
        return status;
    rowlock_lock *lock = cli->locks[0];
    int result = renews     ? rowlock_renew(lock, its.ttl_ms)
                 : releases ? rowlock_release(lock)
                            : rowlock_verify(lock);
    bool renewed = renews && (result == ROWLOCK_OK || result == ROWLOCK_LAPSED);
    if (general.json && result >= 0)
        print_answer(cli, result, its.owner, its.token, renewed);
    if (result == ROWLOCK_LOST)
        complain(
            "%s lock '%s': the grant with token %lld is gone: it was taken over, broken, swept "
            "or released",
            what, name, (long long)its.token);
    else if (result == ROWLOCK_LAPSED)
        complain("%s lock '%s': the lease of token %lld had run out, but no other client got the "
                 "lock",
                 what, name, (long long)its.token);
    else if (result != ROWLOCK_OK)
        return reported(cli, result);
    return renewed ? EXIT_FINE : status_of(result);
}

const struct command renew_command = COMMAND("renew", "NAME", "extend the lease of a grant",
                                             "Exit status: 0 renewed; 76 the grant is gone.\n",
                                             grant_options, 1, 1, false, QUORUM, run_attached);

const struct command release_command =
    COMMAND("release", "NAME", "release a lock",
            "Exit status: 0 released; 76 the grant was gone already.\n", grant_options, 1, 1, false,
            QUORUM, run_attached);

const struct command verify_command =
    COMMAND("verify", "NAME", "ask whether a grant is still valid",
            "Exit status: 0 valid; 76 the grant is gone, or its lease has run out.\n",
            grant_options, 1, 1, false, QUORUM, run_attached);
