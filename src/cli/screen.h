/* SPDX-License-Identifier: MIT
 *
 * The screen of `watch` on a terminal.
 */
#ifndef ROWLOCK_CLI_SCREEN_H
#define ROWLOCK_CLI_SCREEN_H

#include "looker.h"

/* Shows what the looker finds until it ends, a key is pressed that means so, or a signal comes. The
 * looker must not run; it is started and stopped here. first is shown at once and freed. Returns
 * the exit status. False: there can be no screen here, and nothing was done. */
bool screen_watch(struct looker *looker, struct view *first, int *status);

#endif
