/* SPDX-License-Identifier: MIT
 *
 * How a database's client library carries out what hand.c has read from tests/bench/sql. */
#pragma once

#include "bench.h"
#include "raw.h"

/* What may stand in braces in a step, or be kept of its answer: numbers, texts from TEXT on, and from
 * IDS on lists of the rows that are to be written. */
#define EACH_PARAMETER(X)                                                                          \
    X(NUMBER), X(TOKEN), X(REQUEST), X(TTL), X(PID), X(NOW), X(BATCH_SIZE), X(STANDING), X(COUNT), \
        X(ID), X(VERSION), X(AMOUNT), X(TEXT), X(NAME), X(OWNER), X(HOST), X(PROGRAM), X(NOTE),    \
        X(AFTER), X(LEASES), X(NAMES), X(SLOTS), X(OWNERS), X(TOKENS), X(IDS), X(VERSIONS),        \
        X(AMOUNTS), X(NOTES), X(JSON), X(SELECTS), X(TUPLES)

#define ENUMERATOR(name) name
enum parameter {
    EACH_PARAMETER(ENUMERATOR),
    PARAMETERS,
    TABLE = PARAMETERS, /* is put into the text */
    SKIPPED, /* a column that is not kept */
    UNKNOWN
};

struct value {
    enum { INT_VALUE, TEXT_VALUE, BINARY_VALUE } kind;
    int64_t number;
    const char *text;
    size_t length;
};

enum { VALUES_MAX = 12, COLUMNS_MAX = 12, STEPS_MAX = 64 };

struct step {
    char *name, *sql;
    bool as_text; /* sent unprepared */
    bool each_row; /* what is kept is kept of each row */
    bool again, busy; /* on a deadlock: try again; count no rows */
    enum parameter keeps[COLUMNS_MAX];
    int kept, index;
};

/* One step of a way. */
struct taken {
    const struct step *step; /* NULL: work */
    char how;
};

struct way {
    const char *kind, *label, *legend; /* legend NULL: none */
    char *words; /* that the steps are found by */
    struct taken steps[8];
    int count, number;
};

/* A step in a session. */
struct prepared {
    const struct step *step;
    char *sql; /* with the database's own marks */
    enum parameter needs[VALUES_MAX];
    int count;
    void *handle;
};

struct answer {
    int64_t rows; /* found, or changed where there are no columns */
    int64_t id; /* that the server made, where it does */
    bool deadlock;
};

struct session {
    const struct hand *hand;
    const struct way *way; /* what a contender does */
    void *conn;
    const char *table;
    char name[300], owner[40], host[256], file[600];
    struct value values[PARAMETERS];
    char *kept[PARAMETERS]; /* texts that values point to */
    char *lists[PARAMETERS];
    struct prepared prepared[STEPS_MAX];
    const struct rows
        *rows; /* for a step that is taken for each; NULL: the leases that were learned */
    struct lease *leases;
    int64_t lease_count;
    void (*work)(void);
};

struct hand {
    const struct raw *raw; /* connects and adopts */
    const char *settings; /* SQL for a new connection; NULL: none */
    const char *use_schema; /* SQL that the name of a schema completes */
    const char
        *server_dir_env; /* where the folder with its pid is found; NULL: there is no server */
    bool numbered; /* marks of parameters are $1, $2 and so on, not ? */

    /* Both give each row to hand_keep(). */
    struct answer (*query)(struct session *s, const struct step *step, const char *sql);
    struct answer (*execute)(struct session *s, struct prepared *p, const struct value *values);
    void (*forget)(struct prepared *p); /* its handle; may be NULL */

    /* May be NULL. */
    void (*pipeline)(struct session *s, struct prepared *p); /* for each row */
    void (*make_places)(const char *url, struct place *ours, struct place *theirs);
    int64_t (*written)(struct session *s);
};

void hand_keep(struct session *s, const struct step *step, const struct value *cells, int count);

/* The values of a step, for the row of that number if there are rows. */
void hand_values(struct session *s, const struct prepared *p, int64_t row, struct value *out);

/* Writes a list of all rows, and says how long it is. */
size_t hand_list(const struct rows *rows, enum parameter which, char *out);
enum { LIST_CAP = 20 + BATCH_ROWS * 120 };
