/* SPDX-License-Identifier: MIT
 *
 * A payment that is made once, however often it is asked for.
 *
 *     once URL pay ORDER AMOUNT     pays, or shows the receipt of the payment that was made
 *     once URL list                 all orders
 *     once URL forget ORDER         the order may be paid again
 *     once URL sweep DAYS           forgets payments that are older
 *
 * An amount of 0 stands for a payment that fails.
 */
#include <rowlock/once.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length of the receipt, or 0 if the payment failed. */
static int charge(const char *order, const char *amount, char *receipt, size_t size)
{
    return atoi(amount) <= 0 ? 0 : snprintf(receipt, size, "receipt of %s for %s", amount, order);
}

/* A failed payment gives the key back: the next request may try at once. */
static int pay_new(rowlock_db *db, rowlock_once *once, const char *order, const char *amount)
{
    char receipt[200];
    int length = charge(order, amount, receipt, sizeof receipt);
    if (length == 0) {
        puts("the payment failed");
        return rowlock_once_abandon(once, 0, NULL, 0);
    }
    printf("paid: %s\n", receipt);
    return rowlock_once_complete(once, db, receipt, strlen(receipt));
}

static int pay(rowlock_db *db, const char *order, const char *amount)
{
    rowlock_once_options options = ROWLOCK_ONCE_OPTIONS_INIT;
    rowlock_once *once = NULL;
    size_t length = 0;
    /* The same order with another amount is a MISMATCH. */
    options.fingerprint = amount;
    int result = rowlock_once_claim(db, order, &options, &once);
    if (result == ROWLOCK_OK) {
        result = pay_new(db, once, order, amount);
    } else if (result == ROWLOCK_DONE) {
        const char *receipt = rowlock_once_result(once, &length);
        printf("paid before: %.*s\n", (int)length, receipt);
        result = ROWLOCK_OK;
    } else if (result == ROWLOCK_BUSY) {
        puts("is being paid at this moment");
    } else if (result == ROWLOCK_MISMATCH) {
        puts("was asked for with another amount");
    }
    rowlock_once_close(once);
    return result;
}

static int show(void *context, const rowlock_once_record *record)
{
    (void)context;
    printf("%s: %s, amount %s\n", record->key, record->done ? "paid" : "in progress",
           record->fingerprint);
    return 0;
}

static int sweep(rowlock_db *db, const char *days)
{
    int64_t removed = 0;
    int result = rowlock_once_sweep(db, strtoll(days, NULL, 10) * 24 * 3600 * 1000, 0, &removed);
    if (result == ROWLOCK_OK)
        printf("%lld removed\n", (long long)removed);
    return result;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 2 ? argv[2] : "";
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db *db = NULL;
    int result = rowlock_db_open(argc > 1 ? argv[1] : "", NULL, &db, &err);
    if (result == ROWLOCK_OK) {
        result = ROWLOCK_EINVAL;
        if (!strcmp(verb, "pay") && argc == 5)
            result = pay(db, argv[3], argv[4]);
        else if (!strcmp(verb, "list") && argc == 3)
            result = rowlock_once_list(db, NULL, show, NULL);
        else if (!strcmp(verb, "forget") && argc == 4)
            result = rowlock_once_forget(db, argv[3], 0);
        else if (!strcmp(verb, "sweep") && argc == 4)
            result = sweep(db, argv[3]);
        else
            fputs("usage: once URL pay|list|forget|sweep …\n", stderr);
        err = *rowlock_db_error(db);
    }
    if (result != ROWLOCK_OK)
        fprintf(stderr, "once: %s %s\n", rowlock_result_name(result), err.text);
    rowlock_db_close(db);
    return result == ROWLOCK_OK ? 0 : 1;
}
