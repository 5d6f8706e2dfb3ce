/* SPDX-License-Identifier: MIT
 *
 * acquire, renew, release and verify: a lock in single steps, for scripts. obtain.c waits.
 */
#include "cli/commands/commands.h"

#include "cli/run/obtain.h"
#include "cli/print/json.h"
#include "cli/run/outer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int acquire_options[] = {OPT_NONBLOCK, OPT_WAIT,   OPT_CONFLICT, OPT_SHARED,
                               OPT_PERMITS,  OPT_UNFAIR, OPT_TTL,      OPT_OWNER,
                               OPT_NOTE,     OPT_JSON,   OPT_VERBOSE,  OPT_END};
const int renew_options[] = {OPT_ITS_OWNER, OPT_ITS_TOKEN, OPT_NEW_TTL, OPT_JSON, OPT_END};
const int grant_options[] = {OPT_ITS_OWNER, OPT_ITS_TOKEN, OPT_JSON, OPT_END};

static const char *from_environment(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* ---------------------------------------------------------------- acquire */

static void print_grant(const rowlock_lock *lock, bool json)
{
    if (!json) {
        printf("%lld\n", (long long)rowlock_lock_token(lock));
        return;
    }
    json_t *object = must_have(json_object());
    json_put(object, "result", json_of_result(ROWLOCK_OK));
    json_put(object, "name", json_of_text(rowlock_lock_name(lock)));
    json_put(object, "owner", json_of_text(rowlock_lock_owner(lock)));
    json_put_integer(object, "token", rowlock_lock_token(lock));
    json_put_time(object, "expires", rowlock_lock_expires_us(lock));
    json_put_integer(object, "remaining_ms", rowlock_lock_remaining_ms(lock));
    json_print(object, 0);
}

static void print_refusal(const struct cli *cli, int result)
{
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    if (!cli->set.json || status_of(result) != EXIT_NOT_ACQUIRED)
        return;
    json_t *object = must_have(json_object());
    json_put(object, "result", json_of_result(result));
    json_put(object, "name", json_of_text(rowlock_lock_name(cli->locks[0])));
    bool known = rowlock_lock_holder(cli->locks[0], &holder) == ROWLOCK_OK;
    json_put(object, "holder", known ? json_of_grant(&holder) : json_null());
    json_print(object, 0);
}

/* If the token cannot be written, closing the handle releases the lock. */
static int hand_over(struct cli *cli)
{
    print_grant(cli->locks[0], cli->set.json);
    if (fflush(stdout) != 0 || ferror(stdout))
        /* finish_output() finds the failure too, and returns the status. */
        return EXIT_FINE;
    /* Closing either handle would release the grant. The script releases it itself. */
    cli->leave_grant = !is_quorum(cli);
    /* Then closing is safe. It gives the slower members of a quorum a moment to grant it too. */
    rowlock_forget(cli->locks[0]);
    return EXIT_FINE;
}

int cmd_acquire(struct cli *cli)
{
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    int result = ROWLOCK_OK;
    int status = grant_settings(cli);
    if (status != EXIT_FINE)
        return status;
    if (!cli->set.owner)
        cli->set.owner = from_environment("ROWLOCK_OWNER");
    options.owner = cli->set.owner;
    if (!options.owner && !cli->set.json)
        return usage_error(cli,
                           "say --owner or set ROWLOCK_OWNER: you need the owner to release the "
                           "lock (--json makes a random owner and prints it)");
    status = connect_database(cli, &options);
    if (status == EXIT_FINE)
        status = outer_refuses(cli);
    if (status != EXIT_FINE)
        return status;
    if (grant_get(cli, &result, &status))
        return hand_over(cli);
    print_refusal(cli, result);
    return status;
}

/* ---------------------------------------------------------------- renew, release, verify */

static int grant_of_others(struct cli *cli)
{
    struct settings *set = &cli->set;
    const char *token = from_environment("ROWLOCK_TOKEN");
    if (!set->owner)
        set->owner = from_environment("ROWLOCK_OWNER");
    if (!set->owner)
        return usage_error(cli,
                           "the owner of the grant is missing; say --owner or set ROWLOCK_OWNER");
    if (set->token == UNSET && !token)
        return usage_error(cli,
                           "the token of the grant is missing; say --token or set ROWLOCK_TOKEN");
    if (set->token == UNSET && !parse_number(token, 1, INT64_MAX, &set->token))
        return usage_error(cli, "ROWLOCK_TOKEN: '%s' is not a token; set it to a number above 0",
                           token);
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    cli->locks = must_have(calloc(1, sizeof(rowlock_lock *)));
    int result =
        rowlock_lock_attach(cli->db, cli->arguments[0], set->owner, set->token, cli->locks);
    if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    cli->lock_count = 1;
    return EXIT_FINE;
}

static void print_answer(const struct cli *cli, int result, bool renewed)
{
    if (!cli->set.json || result < 0)
        return;
    json_t *object = must_have(json_object());
    json_put(object, "result", json_of_result(result));
    json_put(object, "name", json_of_text(cli->arguments[0]));
    json_put(object, "owner", json_of_text(cli->set.owner));
    json_put_integer(object, "token", cli->set.token);
    if (renewed) {
        json_put_time(object, "expires", rowlock_lock_expires_us(cli->locks[0]));
        json_put_integer(object, "remaining_ms", rowlock_lock_remaining_ms(cli->locks[0]));
    }
    json_print(object, 0);
}

static int answer(const struct cli *cli, int result)
{
    const char *what = cli->command->name;
    const char *name = cli->arguments[0];
    long long token = (long long)cli->set.token;
    if (result == ROWLOCK_LOST)
        complain(
            "%s lock '%s': the grant with token %lld is gone: it was taken over, broken, swept "
            "or released",
            what, name, token);
    else if (result == ROWLOCK_LAPSED)
        complain("%s lock '%s': the lease of token %lld had run out, but no other client got the "
                 "lock",
                 what, name, token);
    else if (result != ROWLOCK_OK)
        return report_failure(cli, result);
    return status_of(result);
}

int cmd_renew(struct cli *cli)
{
    int status = grant_of_others(cli);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_renew(cli->locks[0], cli->set.ttl_ms == UNSET ? 0 : cli->set.ttl_ms);
    bool renewed = result == ROWLOCK_OK || result == ROWLOCK_LAPSED;
    print_answer(cli, result, renewed);
    status = answer(cli, result);
    return renewed ? EXIT_FINE : status;
}

int cmd_release(struct cli *cli)
{
    int status = grant_of_others(cli);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_release(cli->locks[0]);
    print_answer(cli, result, false);
    return answer(cli, result);
}

int cmd_verify(struct cli *cli)
{
    int status = grant_of_others(cli);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_verify(cli->locks[0]);
    print_answer(cli, result, false);
    return answer(cli, result);
}
