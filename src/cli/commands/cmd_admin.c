/* SPDX-License-Identifier: MIT
 *
 * install, upgrade, break and raise-tokens: the commands for administrators.
 */
#include "cli/print/print.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- install */

static bool grants;
static const char *role, *user;

static const struct option_row install_options[] = {
    FLAG_OPTION("print", 0, "print the SQL for the database's shell; change nothing", general.sql),
    FLAG_OPTION("print-grants", 0, "print what --user needs, for the database's shell", grants),
    OPTION("user", 0, "USER", "with --print-grants: who gets the privileges", TEXT, user),
    OPTION("role", 0, "ROLE", "reader, user, operator or sweeper (user)", TEXT, role),
    JSON_OPTION,
    {.name = NULL},
};

static int print_sql(void *context, const char *sql, size_t length)
{
    (void)context;
    return fwrite(sql, 1, length, stdout) != length;
}

/* For install and upgrade. option: the one that prints SQL. */
static void sql_settings(const struct cli *cli, const char *option)
{
    not_for_members(cli, general.sql, "each member has its own SQL; give the --url of one member");
    if (general.sql && general.json)
        usage_error(cli, "%s and --json exclude each other", option);
}

static int run_install(struct cli *cli)
{
    if (general.sql && grants)
        usage_error(cli, "--print and --print-grants exclude each other");
    if (grants != (user != NULL) || (role && !grants))
        usage_error(cli, grants ? "--print-grants needs --user USER"
                                : "--user and --role belong to --print-grants");
    general.sql = general.sql || grants;
    sql_settings(cli, grants ? "--print-grants" : "--print");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (general.sql)
        return reported(cli, rowlock_install_script(cli->db,
                                                    !grants ? NULL
                                                    : role  ? role
                                                            : "user",
                                                    user, print_sql, NULL));
    int result = rowlock_install(cli->db);
    if (result == ROWLOCK_OK && general.json)
        json_print_answer(cli, result, NULL, NULL);
    else if (result == ROWLOCK_OK)
        say_member("The tables are in place.");
    return reported(cli, result);
}

const struct command install_command = COMMAND(
    "install", "", "create the tables",
    "If the tables are there, it changes nothing. Without the privilege, let a DBA run what\n"
    "--print prints: psql -v ON_ERROR_STOP=1 -f FILE, or mysql DATABASE < FILE.\n"
    "Then --print-grants prints the least privileges of a user: reader looks, user takes locks,\n"
    "operator also sweeps and breaks, sweeper only calls rowlock_housekeeping. MySQL, MariaDB:\n"
    "'app' is app@%, 'app@10.%' has a host.\n",
    install_options, 0, 0, true, EACH_MEMBER, run_install);

/* ---------------------------------------------------------------- upgrade */

static bool dry_run;

static const struct option_row upgrade_options[] = {
    FLAG_OPTION("dry-run", 0, "print what would be done; change nothing", dry_run),
    FLAG_OPTION("sql", 0, "print the SQL for the database's shell; change nothing", general.sql),
    JSON_OPTION,
    {.name = NULL},
};

struct upgrading {
    /* NULL: they are printed. */
    json_t *steps;
    int count;
};

static int on_step(void *context, const rowlock_upgrade_step *step)
{
    static const struct member members[] = {
        {"what", WORDS, offsetof(rowlock_upgrade_step, what)},
        {"sql", WORDS, offsetof(rowlock_upgrade_step, sql)},
        {"done", BOOLEAN, offsetof(rowlock_upgrade_step, done)},
        {"retries", SHORT_INTEGER, offsetof(rowlock_upgrade_step, retries)},
        {"blocker", WORDS, offsetof(rowlock_upgrade_step, blocker)},
        {.key = NULL},
    };
    struct upgrading *u = context;
    bool waits = !step->done && step->retries > 0;
    if (waits)
        complain("upgrade: %s: waiting for other transactions%s%s", step->what,
                 step->blocker[0] ? ": " : "", step->blocker);
    else if (u->steps)
        json_append(u->steps, json_of(members, step));
    else if (general.sql)
        printf("-- %s\n%s", step->what, step->sql);
    else
        say_member("%s: %s", step->done ? "done" : "to do", step->what);
    fflush(stdout);
    u->count += !waits;
    return 0;
}

static int run_upgrade(struct cli *cli)
{
    struct upgrading u = {.count = 0};
    rowlock_upgrade_options options = ROWLOCK_UPGRADE_OPTIONS_INIT;
    sql_settings(cli, "--sql");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (general.json)
        u.steps = must_have(json_array());
    options.dry_run = dry_run || general.sql;
    options.each = on_step;
    options.context = &u;
    int result = rowlock_upgrade(cli->db, &options);
    if (result != ROWLOCK_OK)
        json_decref(u.steps);
    else if (general.json)
        json_print_answer(cli, result, "steps", u.steps);
    else if (u.count == 0 && !general.sql)
        say_member("There is nothing to do.");
    else if (!dry_run && !general.sql)
        say_member("The tables are upgraded.");
    return reported(cli, result);
}

const struct command upgrade_command = COMMAND(
    "upgrade", "", "bring the tables to the version of this command",
    "Programs of this version and of the one before can use the tables meanwhile. It makes\n"
    "routines again that are missing or have another body.\n"
    "Exit status: 0 done; 75 other transactions kept the tables locked for a minute: run it\n"
    "again.\n",
    upgrade_options, 0, 0, false, EACH_MEMBER, run_upgrade);

/* ---------------------------------------------------------------- break */

/* 0: any. */
static int64_t if_token;

static const struct option_row break_options[] = {
    NUMBER_OPTION("if-token", "only if the grant has this token", if_token, 1, INT64_MAX),
    JSON_OPTION,
    {.name = NULL},
};

static void print_broken(const struct cli *cli, const rowlock_grant *grant)
{
    bool over = grant->remaining_ms < 0;
    if (general.json)
        json_print_answer(cli, ROWLOCK_OK, "broken", json_of_grant(grant));
    else
        say_member("took '%s' from %s, token %lld; its lease %s %s%s", grant->name,
                   holder_text(grant).text, (long long)grant->token, over ? "ended" : "had",
                   duration_text(llabs(grant->remaining_ms)).text, over ? " ago" : " left");
}

static int nothing_broken(const struct cli *cli)
{
    if (general.json)
        json_print_answer(cli, ROWLOCK_NONE, NULL, NULL);
    if (if_token)
        complain("break '%s': it has no holder with token %lld", cli->arguments[0],
                 (long long)if_token);
    else
        complain("break '%s': it has no holder", cli->arguments[0]);
    return EXIT_NOTHING;
}

/* There are several holders: the caller must choose. */
static int say_token(void *context, const rowlock_grant *grant)
{
    const struct cli *cli = context;
    complain("break '%s': for --if-token %lld: %s, %s", cli->arguments[0], (long long)grant->token,
             kind_text(grant->permits).text, held_text(grant).text);
    return 0;
}

static int run_break(struct cli *cli)
{
    rowlock_grant broken = ROWLOCK_GRANT_INIT;
    not_for_members(cli, if_token == 0,
                    "give --if-token, so that all members take the same grant away; `rowlock show` "
                    "prints the token");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_break(cli->db, cli->arguments[0], if_token, &broken);
    if (result == ROWLOCK_NONE)
        return nothing_broken(cli);
    if (result == ROWLOCK_OK)
        print_broken(cli, &broken);
    status = reported(cli, result);
    if (result == ROWLOCK_EINVAL && if_token == 0)
        (void)!rowlock_list(cli->db, cli->arguments[0], say_token, cli);
    return status;
}

const struct command break_command = COMMAND(
    "break", "NAME", "take a lock away from its holder",
    "The holder's token is out of date from now on. The holder learns it at its next renewal.\n"
    "Exit status: 0 taken away; 1 the lock has no holder, or the holder has another token.\n",
    break_options, 1, 1, false, EACH_MEMBER, run_break);

/* ---------------------------------------------------------------- raise-tokens */

static int64_t raise_by = 1000000;
static bool new_identity;

static const struct option_row raise_options[] = {
    NUMBER_OPTION("by", "how far above the highest token (1000000)", raise_by, 1,
                  INT64_C(1000000000000000)),
    FLAG_OPTION("new-identity", 0, "also give a restored copy a new identity", new_identity),
    JSON_OPTION,
    {.name = NULL},
};

static int run_raise_tokens(struct cli *cli)
{
    int64_t highest = 0;
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    int result = rowlock_raise_tokens(cli->db, raise_by, &highest);
    if (result == ROWLOCK_OK && new_identity)
        result = rowlock_new_identity(cli->db);
    if (result == ROWLOCK_OK && general.json)
        json_print_answer(cli, result, "highest", json_integer(highest));
    else if (result == ROWLOCK_OK)
        printf("%lld\n", (long long)highest);
    return reported(cli, result);
}

const struct command raise_command = COMMAND(
    "raise-tokens", "", "raise all tokens after a failover or a restore",
    "Run it after a failover to a replica that may lack the newest grants, or after restoring a\n"
    "backup, before locks are used again. N must be larger than the number of grants that may\n"
    "be missing. It prints the new highest token. Later tokens are above it. Grants go on, but\n"
    "their holders are fenced out.\n",
    raise_options, 0, 0, true, ONE_DATABASE, run_raise_tokens);
