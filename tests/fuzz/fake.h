/* SPDX-License-Identifier: MIT
 *
 * What the servers share that answer our statements, often with other rows and columns than were asked for.
 * The name of the database is the seed that decides how; 0: the server does not lie. */
#pragma once

#include "public.h"

/* In a thread of this process, until that ends. Returns the port on 127.0.0.1. */
int fake_postgres_start(void);
int fake_mysql_start(void);

/* The attempt that a server tells of where it does not lie. */
extern _Atomic int64_t fake_attempt;

enum { FAKE_COLUMNS = 48, FAKE_ROWS = 16 };
struct fake_table {
    size_t rows, columns;
    const char *cell[FAKE_ROWS][FAKE_COLUMNS]; /* NULL: it is NULL */
    char types[FAKE_COLUMNS + 1]; /* as in steps.h; d a decimal, y bytes; of MySQL its own */
    char text[4000], now[24], expires[24], attempt[24], far[400]; /* what cells point to */
};

/* What comes in the place of an answer to a step, but those that a connection begins with: G, H or W,
 * a COPY of PostgreSQL; ? no message of the protocol. 0: the answer. */
extern _Atomic char fake_garbles;

struct fake_link {
    int fd;
    uint64_t seed, state;
    char step[40];
    unsigned char in[200000], out[1 << 20];
    size_t length; /* of out */
    bool cut; /* the connection is lost within the next answer */
};

size_t fake_draw(struct fake_link *l, size_t below);
/* The step that a text of ours is; "": it is none. */
void fake_find_step(struct fake_link *l, const char *sql);
/* How this step is garbled, by fake_garbles. 0: it is not. */
char fake_garbled(const struct fake_link *l);
/* Does it lie about this step? Seldom about the first ones of a connection. */
bool fake_lies(struct fake_link *l);
/* The answer to the step, of 'p' PostgreSQL or 'm' MySQL; false: there are no rows to tell. letters:
 * types that a lie may give a column. */
bool fake_answer(struct fake_link *l, char database, const char *letters, bool lies,
                 struct fake_table *out);

void fake_put(struct fake_link *l, const void *bytes, size_t size);
bool fake_get(struct fake_link *l, void *out, size_t size);
/* False: the connection is over. */
bool fake_flush(struct fake_link *l);
int fake_start(void (*serve)(struct fake_link *l));

/* Each verb against such a server. The program's status. url: a format for the port and the seed. */
int verbs_run(int (*start)(void), const char *url);
