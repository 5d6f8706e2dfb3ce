/* SPDX-License-Identifier: MIT
 *
 * Raises every price by five per cent, each exactly once, while others edit the same rows. If it is
 * killed and started again, it goes on where it stopped. It is BUSY until the lease of the killed
 * one is over (30 seconds).
 *
 *     cc reprice.c -o reprice $(pkg-config --cflags --libs rowlock)
 *     ./reprice postgresql://app@db1/shop       table: prices (id, price, version) */
#include <rowlock/walk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prices are decimals. They are counted in cents here, and written back as text. */
static int raise_price(void *context, const rowlock_row *row, rowlock_value *values)
{
    char *text = context;
    const rowlock_value *price = &row->values[0];
    long long cents = 0;
    if (price->kind == ROWLOCK_DECIMAL) {
        char copy[40];
        snprintf(copy, sizeof copy, "%.*s", (int)price->length, price->text);
        cents = (long long)(strtod(copy, NULL) * 100 + 0.5);
    }
    if (cents <= 0)
        /* Leave the row as it is. */
        return 1;
    cents = (cents * 105 + 50) / 100;
    snprintf(text, 40, "%lld.%02lld", cents / 100, cents % 100);
    values[0] = rowlock_decimal(text);
    return 0;
}

static void show(void *context, const rowlock_walk_report *so_far)
{
    (void)context;
    fprintf(stderr, "%lld of %lld rows, %.0f a second, %lld s left\n", (long long)so_far->rows,
            (long long)so_far->total, so_far->rate, (long long)so_far->left_ms / 1000);
}

int main(int argc, char **argv)
{
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    rowlock_table_options about = ROWLOCK_TABLE_OPTIONS_INIT;
    rowlock_walk_options how = ROWLOCK_WALK_OPTIONS_INIT;
    rowlock_walk_report report = ROWLOCK_WALK_REPORT_INIT;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_table *prices = NULL;
    rowlock_db *db = NULL;
    char text[40];

    int result = rowlock_db_open(argc > 1 ? argv[1] : "", NULL, &db, &err);
    about.columns = columns;
    if (result == ROWLOCK_OK)
        result = rowlock_table_open(db, "prices", key, &about, &prices);
    how.progress = show;
    if (result == ROWLOCK_OK)
        result = rowlock_walk(prices, "reprice", raise_price, text, &how, &report);
    if (db)
        err = *rowlock_db_error(db);
    if (result == ROWLOCK_BUSY)
        fputs("reprice: another one is at work\n", stderr);
    else if (result != ROWLOCK_OK)
        fprintf(stderr, "reprice: %s: %s\n", rowlock_result_name(result), err.text);
    printf("%lld rows, %lld written, %lld left as they were, %lld conflicts, %lld failed%s\n",
           (long long)report.rows, (long long)report.written, (long long)report.left,
           (long long)report.conflicts, (long long)report.failed,
           report.resumed ? ", resumed" : "");
    rowlock_table_close(prices);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}
