/* SPDX-License-Identifier: MIT
 *
 * A thousand rows written back under their versions: by rowlock_update(), and by hand. Each way has a table of its
 * own, so that none meets another's dead rows.
 */
#include "bench.h"

#include <rowlock/versions.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILL_AT_ONCE = 1000 };

const struct rows_hand *rows_hand_of(const struct hand *hand)
{
    static const struct rows_hand *const all[] = {
#if RLK_WITH_POSTGRES
        &rows_postgres,
#endif
#if RLK_WITH_MYSQL
        &rows_mysql,
#endif
#if RLK_WITH_SQLITE
        &rows_sqlite,
#endif
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, hand->name) == 0)
            return all[i];
    die("nobody writes rows by hand on %s", hand->name);
}

void make_rows(const struct hand *hand, const struct place *place, const char *table, int rows)
{
    const struct rows_hand *way = rows_hand_of(hand);
    void *session = way->open(hand, place, table);
    static char sql[100 + FILL_AT_ONCE * 40];
    way->run(session, "DROP TABLE IF EXISTS ?");
    snprintf(sql, sizeof sql,
             "CREATE TABLE ? (id BIGINT NOT NULL PRIMARY KEY, amount BIGINT NOT NULL,"
             " note %s NOT NULL, version BIGINT NOT NULL)",
             way->note_type);
    way->run(session, sql);
    for (int row = 1; row <= rows; row += FILL_AT_ONCE) {
        char *at = sql + sprintf(sql, "INSERT INTO ? VALUES ");
        for (int i = row; i < row + FILL_AT_ONCE && i <= rows; i++)
            at += sprintf(at, "%s(%d, 0, 'as it was', 1)", i > row ? "," : "", i);
        way->run(session, sql);
    }
    way->close(session);
}

struct batch {
    const struct rows_hand *way;
    void *hand; /* NULL: rowlock's */
    rowlock_db *db;
    rowlock_table *table;
    struct rows rows;
    int64_t versions[TABLE_ROWS + 1];
    int64_t turn;
    unsigned seed;
};

/* ---- what is to be written */

static bool scattered;

/* Those that follow each other, as a job has them that goes through the table; or one of every hundred. */
static void fill(struct batch *b)
{
    struct rows *rows = &b->rows;
    int apart = TABLE_ROWS / BATCH_ROWS, first = rand_r(&b->seed) % apart * BATCH_ROWS;
    b->turn++;
    for (int i = 0; i < BATCH_ROWS; i++) {
        int64_t id = 1 + (scattered ? i * apart + rand_r(&b->seed) % apart : first + i);
        rows->id[i] = id;
        rows->version[i] = b->versions[id]++;
        rows->amount[i] = b->turn * 1000 + i;
        snprintf(rows->note[i], NOTE_CAP, "turn %" PRId64 " of %d", b->turn, i);
    }
}

/* Rows that are not there yet. */
static void fill_new(struct batch *b)
{
    struct rows *rows = &b->rows;
    for (int i = 0; i < BATCH_ROWS; i++) {
        rows->id[i] = FILL_AT_ONCE + 1 + b->turn * BATCH_ROWS + i;
        rows->amount[i] = i;
        snprintf(rows->note[i], NOTE_CAP, "turn %" PRId64 " of %d", b->turn, i);
    }
    b->turn++;
}

static struct batch *new_batch(const struct place *place)
{
    struct batch *b = calloc(1, sizeof *b);
    if (!b)
        die("out of memory");
    b->way = rows_hand_of(place->hand);
    for (int i = 0; i <= TABLE_ROWS; i++)
        b->versions[i] = 1;
    return b;
}

/* ---- by hand: each way opens the table that is named after it */

static void *open_hand_of(const struct place *place, const char *table, int count)
{
    struct batch *b = new_batch(place);
    make_rows(place->hand, place, table, count);
    b->hand = b->way->open(place->hand, place, table);
    return b;
}

static void *open_hand(const struct place *place, const char *table)
{
    return open_hand_of(place, table, TABLE_ROWS);
}

static void *open_insert(const struct place *place, const char *name)
{
    (void)name;
    return open_hand_of(place, "batch_insert", FILL_AT_ONCE);
}

static void *open_rows(const struct place *place, const char *name)
{
    (void)name;
    return open_hand(place, "batch_rows");
}

static void *open_pipe(const struct place *place, const char *name)
{
    (void)name;
    return open_hand(place, "batch_pipe");
}

static void *open_set(const struct place *place, const char *name)
{
    (void)name;
    return open_hand(place, "batch_set");
}

static void *open_other_set(const struct place *place, const char *name)
{
    (void)name;
    return open_hand(place, "batch_other_set");
}

static void row_by_row(void *session)
{
    struct batch *b = session;
    fill(b);
    b->way->row_by_row(b->hand, &b->rows);
}

static void pipelined(void *session)
{
    struct batch *b = session;
    fill(b);
    b->way->pipelined(b->hand, &b->rows);
}

static void insert_by_hand(void *session)
{
    struct batch *b = session;
    fill_new(b);
    b->way->insert(b->hand, &b->rows);
}

static void set_based(void *session)
{
    struct batch *b = session;
    fill(b);
    b->way->set_based[0](b->hand, &b->rows);
}

static void other_set_based(void *session)
{
    struct batch *b = session;
    fill(b);
    b->way->set_based[1](b->hand, &b->rows);
}

/* ---- rowlock's */

static void *open_ours_of(const struct place *place, int count)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"amount", "note", NULL};
    struct batch *b = new_batch(place);
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    make_rows(place->hand, place, "batch_ours", count);
    b->db = ours_connect(place);
    about.schema = place->schema;
    about.name = "batch_ours", about.key = key, about.columns = columns;
    if (rowlock_table_open(b->db, &about, &b->table) != ROWLOCK_OK)
        die("the table cannot be opened");
    return b;
}

static void *open_ours(const struct place *place, const char *name)
{
    (void)name;
    return open_ours_of(place, TABLE_ROWS);
}

static void *open_our_insert(const struct place *place, const char *name)
{
    (void)name;
    return open_ours_of(place, FILL_AT_ONCE);
}

static void send_ours(struct batch *b, int (*send)(rowlock_table *, rowlock_change *, size_t,
                                                   const rowlock_change_options *))
{
    rowlock_value keys[BATCH_ROWS], values[BATCH_ROWS][2];
    rowlock_change changes[BATCH_ROWS];
    rowlock_error err = ROWLOCK_ERROR_INIT;
    for (int i = 0; i < BATCH_ROWS; i++) {
        keys[i] = rowlock_int(b->rows.id[i]);
        values[i][0] = rowlock_int(b->rows.amount[i]);
        values[i][1] = rowlock_text(b->rows.note[i]);
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = values[i], .version = b->rows.version[i]};
    }
    if (send(b->table, changes, BATCH_ROWS, NULL) == ROWLOCK_OK)
        return;
    rowlock_db_error(b->db, &err);
    die("%s: %s", err.action, err.text);
}

static void ours(void *session)
{
    fill(session);
    send_ours(session, rowlock_update);
}

static void our_insert(void *session)
{
    fill_new(session);
    send_ours(session, rowlock_insert);
}

static void close_batch(void *session)
{
    struct batch *b = session;
    if (b->hand)
        b->way->close(b->hand);
    rowlock_table_close(b->table);
    rowlock_db_close(b->db);
    free(b);
}

/* ---- all of them */

static struct contender contender(const char *label, const char *legend, const struct place *place,
                                  void *(*open)(const struct place *, const char *),
                                  void (*step)(void *))
{
    return (struct contender){.label = label,
                              .legend = legend,
                              .place = place,
                              .open = open,
                              .close = close_batch,
                              .step = step};
}

static int ways_to_write(const struct site *site, struct contender *c)
{
    const struct rows_hand *way = rows_hand_of(site->hand);
    int count = 0;
    c[count++] = contender("rowlock_update", NULL, &site->ours, open_ours, ours);
    if (way->set_based[0])
        c[count++] = contender(way->set_labels[0], NULL, &site->theirs, open_set, set_based);
    if (way->set_based[1])
        c[count++] =
            contender(way->set_labels[1], NULL, &site->theirs, open_other_set, other_set_based);
    if (way->pipelined)
        c[count++] = contender("pipelined row by row", "in one transaction, a hundred on the way",
                               &site->theirs, open_pipe, pipelined);
    c[count++] = contender("row by row", "in one transaction, prepared", &site->theirs, open_rows,
                           row_by_row);
    return count;
}

void bench_batch(const struct site *site, const char *key, bool all_over, double seconds)
{
    static const int one = 1;
    struct contender c[CONTENDERS_MAX];
    struct outcome outcomes[1][CONTENDERS_MAX];
    int count = ways_to_write(site, c);
    scattered = all_over;
    contest(c, count, 1, seconds, "batch", false, outcomes[0]);
    report_contest(key, "batches/s", c, count, &one, 1,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}

void bench_insert(const struct site *site, double seconds)
{
    static const int one = 1;
    const struct rows_hand *way = rows_hand_of(site->hand);
    struct outcome outcomes[1][CONTENDERS_MAX];
    if (!way->insert)
        return;
    const struct contender c[] = {
        contender("rowlock_insert", NULL, &site->ours, open_our_insert, our_insert),
        contender(way->insert_label, NULL, &site->theirs, open_insert, insert_by_hand),
    };
    contest(c, 2, 1, seconds, "insert", false, outcomes[0]);
    report_contest("insert", "batches/s", c, 2, &one, 1,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}
