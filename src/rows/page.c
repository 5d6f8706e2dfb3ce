/* SPDX-License-Identifier: MIT
 * Pages: rows that were read, with all their texts in one buffer. The witness is one of one row. */
#include "rows/rows.h"

#include <string.h>

void rlk_page_begin(struct rlk_page *page, size_t width)
{
    page->width = width;
    page->rows = page->texts.length = 0;
    page->failed = ROWLOCK_OK;
}

void rlk_page_restart(void *context)
{
    struct rlk_page *page = context;
    rlk_page_begin(page, page->width);
}

static bool make_room(struct rlk_page *page)
{
    if (page->rows < page->room)
        return true;
    size_t room = page->room ? 2 * page->room : 4;
    size_t row = page->width * sizeof *page->cells;
    rowlock_value *cells = rlk_grow(page->cells, page->rows * row, room * row);
    if (!cells)
        return false;
    page->cells = cells;
    int64_t *versions =
        rlk_grow(page->versions, page->rows * sizeof *versions, room * sizeof *versions);
    if (!versions)
        return false;
    page->versions = versions;
    page->room = room;
    return true;
}

/* The buffer of texts moves while it grows. So a cell holds the offset of its text until
 * rlk_page_settle(). */
int rlk_page_add(void *context, const rowlock_value *cells, size_t count)
{
    struct rlk_page *page = context;
    if (!make_room(page) || page->texts.no_memory)
        page->failed = ROWLOCK_ENOMEM;
    bool too_many = page->most && page->rows == page->most;
    if (page->failed == ROWLOCK_OK && (too_many || count != page->width + 1))
        page->failed = ROWLOCK_ESERVER;
    if (page->failed == ROWLOCK_OK && cells[page->width].kind != ROWLOCK_INT)
        page->failed = ROWLOCK_EINVAL;
    if (page->failed != ROWLOCK_OK)
        return 1;
    rowlock_value *to = &page->cells[page->rows * page->width];
    for (size_t i = 0; i < page->width; i++) {
        to[i] = cells[i];
        if (!cells[i].text)
            continue;
        to[i].number = (int64_t)page->texts.length;
        rlk_buffer_add(&page->texts, cells[i].text, cells[i].length);
        rlk_buffer_add(&page->texts, "", 1);
    }
    page->versions[page->rows++] = cells[page->width].number;
    return 0;
}

/* A database may answer with another kind than the column has: SQLite stores each value as it was
 * given, and MySQL may show texts as bytes. */
static rowlock_kind kind_of(const struct rlk_column *column, rowlock_kind shown)
{
    bool text = column->kind == ROWLOCK_TEXT || column->kind == ROWLOCK_TIME ||
                column->kind == ROWLOCK_DECIMAL;
    bool as_text = shown == ROWLOCK_BYTES || shown == ROWLOCK_TEXT;
    if (column->kind == ROWLOCK_BOOL && shown == ROWLOCK_INT)
        return ROWLOCK_BOOL;
    return text && as_text ? column->kind : shown;
}

/* SQLite stores the decimals of a column as numbers. The caller gets decimals, as from the other
 * databases, and can write back what it has read. */
static void spell_decimal(struct rlk_page *page, rowlock_value *cell)
{
    char digits[RLK_INT_TEXT > RLK_REAL_TEXT ? RLK_INT_TEXT : RLK_REAL_TEXT];
    const char *text = digits;
    if (cell->kind == ROWLOCK_INT)
        text = rlk_write_int(cell->number, digits);
    else
        rlk_write_real(cell->real, digits);
    *cell = (rowlock_value){.kind = ROWLOCK_DECIMAL,
                            .number = (int64_t)page->texts.length,
                            .text = "",
                            .length = strlen(text)};
    rlk_buffer_add(&page->texts, text, cell->length + 1);
}

static void spell_decimals(const rowlock_table *t, struct rlk_page *page)
{
    for (size_t at = 0; at < page->rows * page->width; at += page->width)
        for (size_t i = 0; i < page->width && i < t->keys + t->columns; i++) {
            rowlock_value *cell = &page->cells[at + i];
            bool is_number = cell->kind == ROWLOCK_INT || cell->kind == ROWLOCK_REAL;
            if (is_number && t->all[i].kind == ROWLOCK_DECIMAL)
                spell_decimal(page, cell);
        }
}

void rlk_page_settle(struct rlk_page *page)
{
    for (size_t i = 0; i < page->rows * page->width; i++) {
        rowlock_value *cell = &page->cells[i];
        if (cell->text) {
            cell->text = page->texts.text + cell->number;
            cell->number = 0;
        }
    }
}

int rlk_page_end(rowlock_table *t, struct rlk_page *page)
{
    if (page->failed == ROWLOCK_OK)
        spell_decimals(t, page);
    if (page->texts.no_memory || page->failed == ROWLOCK_ENOMEM)
        return rlk_fail(t->db, ROWLOCK_ENOMEM, "out of memory");
    if (page->failed == ROWLOCK_EINVAL)
        return rlk_fail(t->db, ROWLOCK_EINVAL, "%s", RLK_ODD_VERSION);
    if (page->failed != ROWLOCK_OK)
        return rlk_fail_misfit(t->db, false);
    rlk_page_settle(page);
    for (size_t at = 0; at < page->rows * page->width; at += page->width)
        for (size_t i = 0; i < page->width && i < t->keys + t->columns; i++)
            page->cells[at + i].kind = kind_of(&t->all[i], page->cells[at + i].kind);
    return ROWLOCK_OK;
}

rowlock_row rlk_page_row(const rowlock_table *t, const struct rlk_page *page, size_t row)
{
    const rowlock_value *cells = &page->cells[row * page->width];
    return (rowlock_row){sizeof(rowlock_row), cells, cells + t->keys, page->versions[row]};
}

void rlk_page_clear(struct rlk_page *page)
{
    rlk_free(page->cells);
    rlk_free(page->versions);
    rlk_buffer_clear(&page->texts);
    *page = (struct rlk_page){0};
}

/* ---- the witness */

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
