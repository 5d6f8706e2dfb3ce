/* SPDX-License-Identifier: MIT
 *
 * A thousand rows written back under their versions: by rowlock_update(), and by hand. Each way has a table of its
 * own, so that none meets another's dead rows. */
#include "hand.h"

enum { FILL_AT_ONCE = 1000 };

struct batch {
    const struct way *way; /* NULL: rowlock's */
    struct session *hand;
    rowlock_db *db;
    rowlock_table *table;
    char name[40];
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

/* ---- sessions, each with a table of its own, so that no way meets another's dead rows */

static void *open_batch(const struct contender *contender, const char *name)
{
    static const char *const columns[] = {"amount", "note", NULL};
    const struct place *place = contender->place;
    struct batch *b = zeroed(1, sizeof *b);
    for (int i = 0; i <= TABLE_ROWS; i++)
        b->versions[i] = 1;
    b->way = contender->way;
    snprintf(b->name, sizeof b->name, "batch_%d", b->way ? b->way->number : 0);
    make_rows(place, b->name, name[0] == 'i' ? FILL_AT_ONCE : TABLE_ROWS);
    if (b->way)
        b->hand = hand_open_rows(place, b->name, &b->rows);
    else
        b->table = ours_open_table(place, b->name, columns, &b->db);
    return b;
}

static void close_batch(void *session)
{
    struct batch *b = session;
    if (b->hand)
        hand_close(b->hand);
    rowlock_table_close(b->table);
    rowlock_db_close(b->db);
    free(b);
}

/* ---- steps */

static void send_rows(struct batch *b, int (*ours)(rowlock_table *, rowlock_change *, size_t,
                                                   const rowlock_change_options *))
{
    rowlock_value keys[BATCH_ROWS], values[BATCH_ROWS][2];
    rowlock_change changes[BATCH_ROWS];
    if (b->way) {
        hand_run(b->hand, b->way);
        return;
    }
    for (int i = 0; i < BATCH_ROWS; i++) {
        keys[i] = rowlock_int(b->rows.id[i]);
        values[i][0] = rowlock_int(b->rows.amount[i]);
        values[i][1] = rowlock_text(b->rows.note[i]);
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = values[i], .version = b->rows.version[i]};
    }
    if (ours(b->table, changes, BATCH_ROWS, NULL) == ROWLOCK_OK)
        return;
    const rowlock_error *err = rowlock_db_error(b->db);
    die("%s: %s", err->action, err->text);
}

static void update(void *session)
{
    fill(session);
    send_rows(session, rowlock_update);
}

static void insert(void *session)
{
    fill_new(session);
    send_rows(session, rowlock_insert);
}

/* ---- all of them */

/* kind: of the ways that rowlock is compared with, and how the names of sessions begin. */
static void compare(const struct site *site, const char *key, const char *kind, const char *label,
                    void (*step)(void *), double seconds)
{
    static const int one = 1;
    struct contender c[CONTENDERS_MAX] = {{.label = label, .place = &site->ours}};
    struct outcome outcomes[1][CONTENDERS_MAX];
    const struct way *way;
    int count = 1;
    for (; (way = hand_way(site->hand, kind, count - 1)); count++)
        c[count] = hand_contender(&site->theirs, way);
    for (int i = 0; i < count; i++) {
        c[i].open = open_batch;
        c[i].close = close_batch;
        c[i].step = step;
    }
    contest(c, count, 1, ROUNDS, seconds, kind, false, outcomes[0]);
    report_contest(key, "batches/s", c, count, &one, 1,
                   (const struct outcome(*)[CONTENDERS_MAX])outcomes);
}

void bench_batch(const struct site *site, const char *key, bool all_over, double seconds)
{
    scattered = all_over;
    compare(site, key, "batch", "rowlock_update", update, seconds);
}

void bench_insert(const struct site *site, double seconds)
{
    compare(site, "insert", "insert", "rowlock_insert", insert, seconds);
}
