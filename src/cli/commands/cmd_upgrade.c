/* SPDX-License-Identifier: MIT
 *
 * upgrade: brings the tables to the version of this command, or prints what it would do.
 */
#include "cli/commands/commands.h"

#include "cli/print/json.h"

#include <stdio.h>
#include <stdlib.h>

const int upgrade_options[] = {OPT_TRY_RUN, OPT_SQL, OPT_JSON, OPT_END};

struct upgrading {
    const struct cli *cli;
    /* NULL: they are printed. */
    json_t *steps;
    int count;
};

static void keep_step(const struct upgrading *u, const rowlock_upgrade_step *step)
{
    json_t *object = must_have(json_object());
    json_put(object, "what", json_of_text(step->what));
    json_put(object, "sql", json_of_text(step->sql));
    json_put(object, "done", json_boolean(step->done));
    json_put_integer(object, "retries", step->retries);
    json_put(object, "blocker", json_of_text(step->blocker));
    if (json_array_append_new(u->steps, object) != 0)
        must_have(NULL);
}

static int on_step(void *context, const rowlock_upgrade_step *step)
{
    struct upgrading *u = context;
    bool waits = !step->done && step->retries > 0;
    if (waits)
        complain("upgrade: %s: waiting for other transactions%s%s", step->what,
                 step->blocker[0] ? ": " : "", step->blocker);
    else if (u->steps)
        keep_step(u, step);
    else if (u->cli->set.sql)
        printf("-- %s\n%s", step->what, step->sql);
    else {
        print_member(u->cli);
        printf("%s: %s\n", step->done ? "done" : "to do", step->what);
    }
    fflush(stdout);
    u->count += !waits;
    return 0;
}

static void print_end(const struct upgrading *u)
{
    const struct settings *set = &u->cli->set;
    if (set->json) {
        json_t *object = json_answer(u->cli);
        json_put(object, "result", json_of_result(ROWLOCK_OK));
        json_put(object, "steps", u->steps);
        json_print(object, 0);
    } else if (u->count == 0 && !set->sql) {
        print_member(u->cli);
        puts("There is nothing to do.");
    } else if (!set->dry_run && !set->sql) {
        print_member(u->cli);
        puts("The tables are upgraded.");
    }
}

int cmd_upgrade(struct cli *cli)
{
    struct upgrading u = {.cli = cli};
    rowlock_upgrade_options options = ROWLOCK_UPGRADE_OPTIONS_INIT;
    if (cli->set.sql && cli->set.json)
        return usage_error(cli, "--sql and --json exclude each other");
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    if (cli->set.json)
        u.steps = must_have(json_array());
    options.dry_run = cli->set.dry_run || cli->set.sql;
    options.each = on_step;
    options.context = &u;
    int result = rowlock_upgrade(cli->db, &options);
    if (result == ROWLOCK_OK) {
        print_end(&u);
        return EXIT_FINE;
    }
    json_decref(u.steps);
    return report_failure(cli, result);
}
