/* SPDX-License-Identifier: MIT
 *
 * check and quorum-join, and how a command goes from member to member of a quorum.
 */
#include "cli/print/print.h"

#include <rowlock/quorum.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- check */

static const struct option_row check_options[] = {JSON_OPTION, {.name = NULL}};

struct findings {
    /* NULL: they are printed at once. */
    json_t *list;
    rowlock_verdict worst;
};

static int on_finding(void *context, const rowlock_finding *finding)
{
    static const struct member members[] = {
        {"item", WORDS, offsetof(rowlock_finding, item)},
        {"value", WORDS, offsetof(rowlock_finding, value)},
        {"verdict", VERDICT, offsetof(rowlock_finding, verdict)},
        {"advice", WORDS, offsetof(rowlock_finding, advice)},
        {.key = NULL},
    };
    static const char *const verdicts[] = {"ok", "WARN", "BAD"};
    struct findings *findings = context;
    if (finding->verdict > findings->worst)
        findings->worst = finding->verdict;
    if (findings->list) {
        json_append(findings->list, json_of(members, finding));
        return 0;
    }
    say("%-5s %-18s %s", verdicts[finding->verdict], finding->item, finding->value);
    if (finding->advice[0])
        say("%-5s %-18s %s", "", "", finding->advice);
    return 0;
}

/* status: of the check itself. Returns the exit status. */
static int findings_end(const struct cli *cli, struct findings *findings, int status)
{
    if (status != EXIT_FINE) {
        json_decref(findings->list);
        return status;
    }
    if (findings->list) {
        json_t *object = json_begin(cli);
        json_put_text(object, "worst", verdict_text(findings->worst));
        json_put(object, "findings", findings->list);
        json_print(object, false);
    }
    return findings->worst == ROWLOCK_BAD ? EXIT_NOTHING : EXIT_FINE;
}

static int run_check(struct cli *cli)
{
    static const rowlock_finding missing = {.item = "tables",
                                            .value = "the embedded database does not exist",
                                            .advice = "run `rowlock install`",
                                            .verdict = ROWLOCK_BAD};
    int status = connect_database(cli, NULL);
    if (status != EXIT_FINE)
        return status;
    struct findings findings = {.list = general.json ? must_have(json_array()) : NULL};
    if (cli->member && !general.json)
        printf("member %d:\n", cli->member);
    /* Without a file there is only one thing to find. */
    if (cli->no_file)
        on_finding(&findings, &missing);
    else
        status = reported(cli, rowlock_check(cli->db, on_finding, &findings, NULL));
    return findings_end(cli, &findings, status);
}

/* Only the other members know whether a member may vote. */
static int check_votes(const struct cli *cli)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    struct findings findings = {.list = general.json ? must_have(json_array()) : NULL};
    char *urls = joined_urls();
    if (!general.json)
        puts("quorum:");
    int result = rowlock_quorum_check(urls, NULL, on_finding, &findings, &error);
    free(urls);
    return findings_end(cli, &findings, report_error(result, &error));
}

const struct command check_command =
    COMMAND("check", "", "examine whether the database is fit for locks",
            "Exit status: 0 fine, perhaps with warnings; 1 something is bad.\n", check_options, 0,
            0, false, EACH_MEMBER, run_check);

/* ---------------------------------------------------------------- from member to member */

void not_for_members(const struct cli *cli, bool bad, const char *reason)
{
    if (!bad || !cli->member)
        return;
    general.speaks_for = 0;
    usage_error(cli, "several URLs: %s", reason);
}

int run_for_members(struct cli *cli)
{
    int fine = 0, status, worst = EXIT_FINE;
    check_urls(cli);
    if (cli->command->across == ONE_DATABASE)
        usage_error(cli, "several URLs: it works on one database; give the --url of one member");
    while (cli->member < general.url_count && worst != EXIT_USAGE) {
        general.speaks_for = ++cli->member;
        status = cli->command->run(cli);
        fine += status == EXIT_FINE;
        worst = status > worst ? status : worst;
        disconnect_database(cli);
        fflush(stdout);
    }
    general.speaks_for = 0;
    if (cli->command == &check_command && worst != EXIT_USAGE) {
        status = check_votes(cli);
        worst = status > worst ? status : worst;
    }
    /* A grant that a majority has taken away is gone. Otherwise each member counts. */
    bool enough = cli->command == &break_command && fine > general.url_count / 2;
    return enough ? EXIT_FINE : worst;
}

/* ---------------------------------------------------------------- quorum-join */

/* 0: not given. */
static int64_t replaced, statement_ms;

static const struct option_row join_options[] = {
    NUMBER_OPTION("replace", "another database takes the place of member N", replaced, 1,
                  URLS_MOST),
    OPTION("statement-timeout", 0, "DURATION",
           "the longest that a statement of your programs may take (10s)", LENGTH, statement_ms),
    JSON_OPTION,
    {.name = NULL},
};

static int run_quorum_join(struct cli *cli)
{
    rowlock_error error = ROWLOCK_ERROR_INIT;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    check_urls(cli);
    if (!is_quorum(cli))
        usage_error(cli, "give the --url of each of the 3 or %d members", URLS_MOST);
    listen_to_library(cli);
    /* It may take as long as a lease. */
    cli->waiting = true;
    char *urls = joined_urls();
    options.statement_timeout_ms = statement_ms;
    int result = rowlock_quorum_join(urls, (int)replaced, &options, &error);
    free(urls);
    if (result == ROWLOCK_OK && general.json)
        json_print_answer(cli, result, NULL, NULL);
    else if (result == ROWLOCK_OK)
        printf("The %d members vote.\n", general.url_count);
    return report_error(result, &error);
}

const struct command join_command = COMMAND(
    "quorum-join", "", "make databases a quorum, or let a member vote again",
    "Run it with the URLs of all members, after install. Run it again after a member was\n"
    "restarted, restored or failed over: until then that member does not vote. It waits until\n"
    "calls and leases are over that the member may have forgotten, and raises its tokens above\n"
    "all others. Locks go on with the other members meanwhile.\n"
    "Another database in the place of a member is refused. --replace N takes it.\n"
    "Exit status: 0 all members vote; 69 a member is away: run it again when it is back.\n",
    join_options, 0, 0, false, QUORUM, run_quorum_join);
