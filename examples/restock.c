/* SPDX-License-Identifier: MIT
 *
 * Adds 10 to the stock of many items, each exactly once, while others change the same rows.
 *
 * It reads all rows and their versions in one round trip, computes, and writes all of them in one
 * statement. Rows that another program changed meanwhile are STALE. They are read, computed and
 * written again.
 *
 *     ./restock postgresql://app@db1/shop 1 1000      table: items (id, stock, version) */
#include <rowlock/versions.h>
#include <stdio.h>
#include <stdlib.h>

/* The items that are still to be changed. The arrays have the same order. */
struct order {
    size_t count;
    rowlock_value *keys;
    rowlock_value *stocks;
    rowlock_change *changes;
};

/* Called once for each key. Skips an item that does not exist. */
static int add_ten(void *context, size_t index, const rowlock_row *row)
{
    struct order *order = context;
    order->changes[index] = (rowlock_change){.key = &order->keys[index], .result = ROWLOCK_GONE};
    if (!row)
        return 0;
    order->stocks[index] = rowlock_int(row->values[0].number + 10);
    order->changes[index].values = &order->stocks[index];
    order->changes[index].version = row->version;
    order->changes[index].result = ROWLOCK_STALE;
    return 0;
}

/* Keeps the items whose change had this result, and returns how many. */
static size_t keep(struct order *order, int result)
{
    size_t kept = 0;
    for (size_t i = 0; i < order->count; i++)
        if (order->changes[i].result == result) {
            order->keys[kept] = order->keys[i];
            order->stocks[kept] = order->stocks[i];
            order->changes[kept] = order->changes[i];
            order->changes[kept].key = &order->keys[kept];
            order->changes[kept].values = &order->stocks[kept];
            kept++;
        }
    return order->count = kept;
}

/* Returns ROWLOCK_OK if all items that exist were changed. */
static int restock(rowlock_table *items, struct order *order)
{
    for (int round = 1; round <= 20 && order->count > 0; round++) {
        int result = rowlock_read_many(items, order->keys, order->count, 0, add_ten, order);
        if (result != ROWLOCK_OK && result != ROWLOCK_GONE)
            return result;
        keep(order, ROWLOCK_STALE);
        result = rowlock_update(items, order->changes, order->count, NULL);
        if (result != ROWLOCK_OK && result != ROWLOCK_STALE && result != ROWLOCK_GONE)
            return result;
        printf("round %d: %zu items", round, order->count);
        printf(", %zu to do again\n", keep(order, ROWLOCK_STALE));
    }
    return order->count == 0 ? ROWLOCK_OK : ROWLOCK_STALE;
}

static int run(rowlock_db *db, rowlock_table *items, int64_t first, int64_t last)
{
    size_t count = last < first ? 0 : (size_t)(last - first) + 1;
    struct order order = {.count = count,
                          .keys = calloc(count, sizeof *order.keys),
                          .stocks = calloc(count, sizeof *order.stocks),
                          .changes = calloc(count, sizeof *order.changes)};
    int result = ROWLOCK_ENOMEM;
    if (order.keys && order.stocks && order.changes) {
        for (size_t i = 0; i < count; i++)
            order.keys[i] = rowlock_int(first + (int64_t)i);
        result = restock(items, &order);
    }
    if (result != ROWLOCK_OK) {
        const rowlock_error *err = rowlock_db_error(db);
        fprintf(stderr, "restock: %s: %s\n", rowlock_result_name(result), err->text);
    }
    free(order.keys);
    free(order.stocks);
    free(order.changes);
    return result == ROWLOCK_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"stock", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_table *items = NULL;
    rowlock_db *db = NULL;
    if (argc != 4) {
        fputs("usage: restock URL FIRST LAST\n", stderr);
        return 64;
    }
    about.columns = columns;
    int result = rowlock_db_open(argv[1], NULL, &db, &err);
    if (result == ROWLOCK_OK &&
        (result = rowlock_table_open(db, "items", key, &about, &items)) != ROWLOCK_OK)
        err = *rowlock_db_error(db);
    int status = EXIT_FAILURE;
    if (result == ROWLOCK_OK)
        status = run(db, items, atoll(argv[2]), atoll(argv[3]));
    else
        fprintf(stderr, "restock: %s\n", err.text);
    rowlock_table_close(items);
    rowlock_db_close(db);
    return status;
}
