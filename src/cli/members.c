/* SPDX-License-Identifier: MIT
 *
 * The members of a quorum. Commands that a quorum does not do as a whole go from member to member.
 * The others say why they do not.
 */
#include "cli/commands/commands.h"

#include "cli/commands/findings.h"

#include <rowlock/quorum.h>
#include <stdio.h>

/* NULL: the command may go from member to member. */
static const char *why_not(const struct cli *cli)
{
    const struct settings *set = &cli->set;
    if (cli->command->across == ONE_DATABASE)
        return "it works on one database; give the --url of one member";
    if (set->print || set->sql)
        return "each member has its own SQL; give the --url of one member";
    if (set->every_ms != UNSET)
        return "--every works on one database; start one sweep for the --url of each member";
    if (cli->command->run == cmd_break && set->if_token == UNSET)
        return "give --if-token, so that all members take the same grant away; `rowlock show` "
               "prints the token";
    return NULL;
}

/* A grant that a majority has taken away is gone. Otherwise each member counts. */
static int sum_up(const struct cli *cli, int fine, int worst)
{
    bool enough = cli->command->run == cmd_break && fine > cli->set.url_count / 2;
    return enough ? EXIT_FINE : worst;
}

/* Only the other members know whether a member may vote. */
static int check_votes(const struct cli *cli)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    struct findings findings;
    findings_begin(&findings, cli, "quorum");
    int result = rowlock_quorum_check(cli->set.urls, (size_t)cli->set.url_count, NULL, findings_add,
                                      &findings, &error);
    if (result != ROWLOCK_OK)
        complain("%s: %s", error.action, error.text);
    return findings_end(&findings, status_of_error(result, &error));
}

int run_for_members(struct cli *cli)
{
    int fine = 0, worst = EXIT_FINE;
    int status = check_urls(cli);
    if (status != EXIT_FINE)
        return status;
    const char *reason = why_not(cli);
    if (reason)
        return usage_error(cli, "several URLs: %s", reason);
    while (cli->member < cli->set.url_count && worst != EXIT_USAGE) {
        complain_for_member(++cli->member);
        status = cli->command->run(cli);
        fine += status == EXIT_FINE;
        worst = status > worst ? status : worst;
        disconnect_database(cli);
        fflush(stdout);
    }
    complain_for_member(0);
    if (cli->command->run == cmd_check && worst != EXIT_USAGE) {
        status = check_votes(cli);
        worst = status > worst ? status : worst;
    }
    return sum_up(cli, fine, worst);
}

/* ---------------------------------------------------------------- quorum-join */

const int quorum_join_options[] = {OPT_REPLACE, OPT_JSON, OPT_END};

int cmd_quorum_join(struct cli *cli)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    int status = check_urls(cli);
    if (status != EXIT_FINE)
        return status;
    if (!is_quorum(cli))
        return usage_error(cli, "give the --url of each of the 3 or %d members", URLS_MOST);
    listen_to_library(cli);
    /* It may take as long as a lease. */
    cli->waiting = true;
    size_t count = (size_t)cli->set.url_count;
    int result =
        cli->set.replace == UNSET
            ? rowlock_quorum_join(cli->set.urls, count, NULL, &error)
            : rowlock_quorum_replace(cli->set.urls, count, (size_t)cli->set.replace, NULL, &error);
    if (result != ROWLOCK_OK) {
        complain("%s: %s", error.action, error.text);
        return status_of_error(result, &error);
    }
    if (cli->set.json) {
        json_t *object = json_answer(cli);
        json_put(object, "result", json_of_result(result));
        json_print(object, 0);
    } else {
        printf("The %d members vote.\n", cli->set.url_count);
    }
    return EXIT_FINE;
}
