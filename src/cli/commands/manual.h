/* SPDX-License-Identifier: MIT
 *
 * The pages of the manual, for `help`.
 */
#ifndef ROWLOCK_CLI_MANUAL_H
#define ROWLOCK_CLI_MANUAL_H

/* Becomes man(1) with the page rowlock(1), or rowlock-COMMAND(1). Returns only if standard output
 * is no terminal, or if there is no such page. command may be NULL. */
void open_manual(const char *command);

#endif
