/* SPDX-License-Identifier: MIT
 * The witness of a transaction: the first row that it changed. After a commit without an answer,
 * this row shows whether the transaction was committed. */
#include "rows/rows.h"

void rlk_witness_row(rowlock_table *t, const rowlock_change *change)
{
    struct rlk_witness *w = t->db->witness;
    rowlock_value cells[t->keys + 1];
    if (!w || w->t)
        return;
    for (size_t i = 0; i < t->keys; i++)
        cells[i] = change->key[i];
    cells[t->keys] = rowlock_int(change->version);
    rlk_page_begin(&w->row, t->keys);
    rlk_page_add(&w->row, cells, t->keys + 1);
    if (rlk_page_end(t, &w->row) == ROWLOCK_OK)
        w->t = t;
}

void rlk_witness_free(rowlock_db *db)
{
    if (db->witness)
        rlk_page_clear(&db->witness->row);
    rlk_free(db->witness);
    db->witness = NULL;
}

void rlk_witness_forget(const rowlock_table *t)
{
    if (t->db->witness && t->db->witness->t == t)
        t->db->witness->t = NULL;
}
