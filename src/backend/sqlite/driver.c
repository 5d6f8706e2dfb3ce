/* SPDX-License-Identifier: MIT
 * The driver for SQLite, version 3.35 (RETURNING) and later.
 *
 * A file has one writer at a time. A step that writes waits for it in SQLite's busy handler, for a
 * moment only. Then the step is RLK_CONTENTION, and core tries again with jitter, which lets others
 * in between. In WAL mode a read waits for nobody.
 *
 * No connection and no answer can be lost, so nothing here is ever RLK_UNCERTAIN.
 *
 * A deadline bounds the wait for the file. On our own connections it also bounds each
 * statement, but not COMMIT and ROLLBACK. The application's connection keeps its own busy and
 * progress handlers. */
#include "driver.h"

static const char *const schemes[] = {"sqlite", NULL};

extern const struct rlk_backend rlk_backend_sqlite;
const struct rlk_backend rlk_backend_sqlite = {
    .name = "sqlite",
    .schemes = schemes,
    .conn_size = sizeof(struct conn),
    .quote = '"',
    .marker = '?',
    .numbered = true,
    .local = true,
    .packing = RLK_SINGLY,
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
