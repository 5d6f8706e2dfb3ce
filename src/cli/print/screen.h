/* SPDX-License-Identifier: MIT
 *
 * The screen of `watch` on a terminal.
 */
#ifndef ROWLOCK_CLI_SCREEN_H
#define ROWLOCK_CLI_SCREEN_H

#include "cli/commands/looker.h"

/* Shows what the looker finds, until the looker, a key or a signal ends it.
 *   - The looker must not run. It is started and stopped here.
 *   - first is shown at once, and freed.
 *   - *status gets the exit status.
 * False: there can be no screen here, and nothing was done. */
bool screen_watch(struct looker *looker, struct view *first, int *status);

#endif
