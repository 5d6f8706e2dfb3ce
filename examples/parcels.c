/* SPDX-License-Identifier: MIT
 *
 * A parcel and its items are rows of two tables. Each action changes both under versions, in one
 * transaction. After a conflict rowlock_retry() does all of the action again.
 *
 *     parcels URL pack|send|clear ID
 *
 *     table parcels: id, sent, version
 *     table items: parcel, number, content, weight, fragile, picture, version
 */
#include <rowlock/versions.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* results from 100 on are the program's own */
enum { ITEMS = 2, PACKED_BEFORE = 100 };

struct parcel {
    const char *verb;
    rowlock_table *parcels, *items;
    rowlock_value id, keys[ITEMS][2];
    rowlock_change changes[ITEMS];
};

static int pack(struct parcel *p)
{
    rowlock_value sent = rowlock_null();
    rowlock_value book[] = {rowlock_text("book"), rowlock_real(1.5), rowlock_bool(0),
                            rowlock_bytes("\x89\0\xff", 3)};
    rowlock_value vase[] = {rowlock_textn(ROWLOCK_TEXT, "vase, blue", 4), rowlock_real(0.25),
                            rowlock_bool(1), rowlock_null()};
    rowlock_change parcel = {.key = &p->id, .values = &sent};
    p->changes[0].values = book, p->changes[1].values = vase;
    int result = rowlock_insert(p->parcels, &parcel, 1, NULL);
    /* rowlock_retry() would try again after EXISTS. */
    if (result == ROWLOCK_EXISTS)
        return PACKED_BEFORE;
    return result == ROWLOCK_OK ? rowlock_insert(p->items, p->changes, ITEMS, NULL) : result;
}

static int note_version(void *context, size_t index, const rowlock_row *row)
{
    struct parcel *p = context;
    p->changes[index].version = row ? row->version : 0;
    if (row)
        printf("item: %.*s\n", (int)row->values[0].length, row->values[0].text);
    return 0;
}

/* Reads the versions of the parcel and of its items. */
static int look(struct parcel *p, const rowlock_attempt *attempt, rowlock_change *parcel)
{
    rowlock_row row = ROWLOCK_ROW_INIT;
    int result = rowlock_read(p->parcels, &p->id, attempt->lock, &row);
    *parcel = (rowlock_change){.key = &p->id, .version = row.version};
    return result != ROWLOCK_OK
               ? result
               : rowlock_read_many(p->items, p->keys[0], ITEMS, attempt->lock, note_version, p);
}

/* The parcel is sent if its items stay as they were read, until the commit. */
static int send_off(struct parcel *p, const rowlock_attempt *attempt)
{
    rowlock_value time = rowlock_time("2026-12-24 18:00:00");
    rowlock_change parcel;
    int result = look(p, attempt, &parcel);
    if (result == ROWLOCK_OK)
        result = rowlock_expect(p->items, p->changes, ITEMS, NULL);
    parcel.values = &time;
    return result == ROWLOCK_OK ? rowlock_update(p->parcels, &parcel, 1, NULL) : result;
}

/* No column of the parcel changes. But clients that have read it must learn that it is empty. */
static int clear(struct parcel *p, const rowlock_attempt *attempt)
{
    rowlock_change parcel;
    int result = look(p, attempt, &parcel);
    if (result == ROWLOCK_OK)
        result = rowlock_remove(p->items, p->changes, ITEMS, NULL);
    return result == ROWLOCK_OK ? rowlock_touch(p->parcels, &parcel, 1, NULL) : result;
}

static int act(void *context, const rowlock_attempt *attempt)
{
    struct parcel *p = context;
    if (strcmp(p->verb, "pack") == 0)
        return pack(p);
    return strcmp(p->verb, "send") == 0 ? send_off(p, attempt) : clear(p, attempt);
}

static int open_tables(rowlock_db *db, struct parcel *p)
{
    static const char *const id[] = {"id", NULL}, *const sent[] = {"sent", NULL};
    static const char *const item[] = {"parcel", "number", NULL};
    static const char *const of_item[] = {"content", "weight", "fragile", "picture", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    about.columns = sent;
    int result = rowlock_table_open(db, "parcels", id, &about, &p->parcels);
    about.columns = of_item;
    return result == ROWLOCK_OK ? rowlock_table_open(db, "items", item, &about, &p->items) : result;
}

int main(int argc, char **argv)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    struct parcel p = {0};
    rowlock_db *db = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: parcels URL pack|send|clear ID\n");
        return 2;
    }
    int result = rowlock_db_open(argv[1], NULL, &db, &err);
    if (result == ROWLOCK_OK)
        result = open_tables(db, &p);
    if (result == ROWLOCK_OK) {
        p.id = rowlock_int(atoll(argv[3]));
        for (int i = 0; i < ITEMS; i++) {
            p.keys[i][0] = p.id, p.keys[i][1] = rowlock_int(i + 1);
            p.changes[i].key = p.keys[i];
        }
        p.verb = argv[2];
        result = rowlock_retry(db, act, &p, NULL, NULL);
    }
    if (db)
        err = *rowlock_db_error(db);
    if (result == PACKED_BEFORE)
        puts("was packed before");
    else if (result != ROWLOCK_OK)
        fprintf(stderr, "parcels: %s %s\n", rowlock_result_name(result), err.text);
    rowlock_table_close(p.items);
    rowlock_table_close(p.parcels);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}
