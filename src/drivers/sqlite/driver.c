/* SPDX-License-Identifier: MIT
 *
 * The driver for SQLite, version 3.35 (RETURNING) and later.
 *
 * A file has one writer at a time. A step that writes waits a moment for the file, in SQLite's busy
 * handler. Then the step is RLK_CONTENTION. Core tries again with jitter, so that others get the
 * file in between. In WAL mode a read waits for no writer.
 *
 * Connections and answers cannot be lost, so no step here is RLK_UNCERTAIN.
 *
 * A deadline bounds the wait for the file. On our own connections it also bounds each statement,
 * except COMMIT and ROLLBACK. The application's connection keeps its own busy and progress
 * handlers. */
#include "driver.h"

#include <stdio.h>

static void client(char *out, size_t cap)
{
    snprintf(out, cap, "SQLite %s", sqlite3_libversion());
}

static const char *const schemes[] = {"sqlite", NULL};

extern const struct rlk_driver rlk_driver_sqlite;
const struct rlk_driver rlk_driver_sqlite = {
    .name = "sqlite",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '"',
    .marker = '?',
    .numbered = true,
    .local = true,
    .packing = RLK_SINGLY,
    .client = client,
    .open = lite_open,
    .adopt = lite_adopt,
    .close = lite_close,
    .script = lite_script,
    .facts = lite_facts,
    .note = lite_note,
    .await = lite_await,
    .query = lite_query,
    .frame = lite_frame,
};
