/* SPDX-License-Identifier: MIT
 *
 * Prints findings. JSON is one object, at the end.
 */
#include "cli/commands/findings.h"

#include "cli/exit.h"

#include <stdio.h>
#include <stdlib.h>

static const char *verdict_text(rowlock_verdict verdict, bool json)
{
    switch (verdict) {
    case ROWLOCK_FINE:
        return "ok";
    case ROWLOCK_WARNING:
        return json ? "warning" : "WARN";
    case ROWLOCK_BAD:
        break;
    }
    return json ? "bad" : "BAD";
}

static void print_finding(const rowlock_finding *finding)
{
    char *value = printable(finding->value);
    printf("%-5s %-18s %s\n", verdict_text(finding->verdict, false), finding->item, value);
    free(value);
    if (finding->advice[0]) {
        char *advice = printable(finding->advice);
        printf("%-5s %-18s %s\n", "", "", advice);
        free(advice);
    }
}

static void keep_finding(json_t *list, const rowlock_finding *finding)
{
    json_t *object = must_have(json_object());
    json_put(object, "item", json_of_text(finding->item));
    json_put(object, "value", json_of_text(finding->value));
    json_put(object, "verdict", json_of_text(verdict_text(finding->verdict, true)));
    json_put(object, "advice", json_of_text(finding->advice));
    if (json_array_append_new(list, object) != 0)
        must_have(NULL);
}

void findings_begin(struct findings *findings, const struct cli *cli, const char *heading)
{
    *findings = (struct findings){.cli = cli};
    if (cli->set.json)
        findings->list = must_have(json_array());
    else if (heading)
        printf("%s:\n", heading);
}

int findings_add(void *context, const rowlock_finding *finding)
{
    struct findings *findings = context;
    if (finding->verdict > findings->worst)
        findings->worst = finding->verdict;
    if (findings->list)
        keep_finding(findings->list, finding);
    else
        print_finding(finding);
    return 0;
}

int findings_end(struct findings *findings, int status)
{
    if (status != EXIT_FINE) {
        json_decref(findings->list);
        return status;
    }
    if (findings->list) {
        json_t *object = json_answer(findings->cli);
        json_put(object, "worst", json_of_text(verdict_text(findings->worst, true)));
        json_put(object, "findings", findings->list);
        json_print(object, 0);
    }
    return findings->worst == ROWLOCK_BAD ? EXIT_NOTHING : EXIT_FINE;
}
