/* SPDX-License-Identifier: MIT
 *
 * Every verb against a server that answers with other rows and columns than were asked for: nothing crashes or
 * goes on for ever, and no grant is told that could be none. A server that does not lie comes first: all is well
 * then.
 *
 *   ROWLOCK_TEST_SEED    the first seed (1)
 *   ROWLOCK_TEST_SEEDS   how many
 */
#ifndef VERBS_H
#define VERBS_H

/* The program's status. url: a format for the port and the seed. */
int verbs_run(int (*start)(void), const char *url);

#endif
