/* SPDX-License-Identifier: MIT
 *
 * What `check` finds, as text or as JSON.
 */
#ifndef ROWLOCK_CLI_FINDINGS_H
#define ROWLOCK_CLI_FINDINGS_H

#include "cli/cli.h"
#include "cli/print/json.h"

#include <rowlock/admin.h>

struct findings {
    const struct cli *cli;
    /* NULL: they are printed at once. */
    json_t *list;
    rowlock_verdict worst;
};

/* heading: above them in the text. NULL: none. */
void findings_begin(struct findings *findings, const struct cli *cli, const char *heading);
/* The each() of rowlock_check() and rowlock_quorum_check(). context: struct findings. */
int findings_add(void *context, const rowlock_finding *finding);
/* Returns the exit status: how the check failed, or else whether something is bad. */
int findings_end(struct findings *findings, int status);

#endif
