/* SPDX-License-Identifier: MIT
 *
 * A server that speaks PostgreSQL's protocol and answers our statements, often with other rows and columns
 * than were asked for. The name of the database is the seed that decides how; 0: it does not lie.
 */
#ifndef FAKE_POSTGRES_H
#define FAKE_POSTGRES_H

/* In a thread of this process, until that ends. Returns the port on 127.0.0.1; -1: it could not begin. */
int fake_postgres_start(void);

#endif
