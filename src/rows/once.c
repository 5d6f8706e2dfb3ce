/* SPDX-License-Identifier: MIT
 * Once keys: a client claims a key, does its work, and completes or abandons the claim. */
#include "base/ident.h"
#include "base/options.h"
#include "core/step_cells.h"
#include "rows/rows.h"

#include <string.h>

/* "rlon" */
#define RLK_ONCE_TAG 0x726C6F6Eu
/* 366 days */
#define LONGEST_PAUSE_MS (INT64_C(366) * 24 * 3600 * 1000)

enum { LONGEST_RESULT = 65535, SWEEP_BATCH = 500, LIST_PAGE = 500 };

struct rowlock_once {
    uint32_t tag;
    /* NULL: it is closed. */
    rowlock_db *db;
    rowlock_once *next, *previous;
    char *key;
    int64_t attempt;
    bool done;
    struct rlk_buffer result;
};

/* ---- handles */

static void link_to_db(rowlock_once *once, rowlock_db *db)
{
    once->db = db;
    once->next = db->onces;
    if (once->next)
        once->next->previous = once;
    db->onces = once;
}

static void unlink_from_db(rowlock_once *once, rowlock_db *db)
{
    if (once->next)
        once->next->previous = once->previous;
    if (once->previous)
        once->previous->next = once->next;
    else
        db->onces = once->next;
    once->next = once->previous = NULL;
    once->db = NULL;
}

void rlk_onces_abandon(rowlock_db *db)
{
    while (db->onces)
        unlink_from_db(db->onces, db);
}

/* ---- claiming */

struct found {
    bool any, done;
    int64_t attempt;
    /* The fingerprint is the same. */
    bool same;
    const char *fingerprint;
    struct rlk_buffer *result;
};

static int take_found(void *context, const rowlock_value *cells, size_t count)
{
    enum { ATTEMPT, FINGERPRINT, DONE, RESULT };
    struct found *f = context;
    (void)count;
    f->any = true;
    f->attempt = cells[ATTEMPT].number;
    f->done = cells[DONE].number != 0;
    f->same = cells[FINGERPRINT].length == strlen(f->fingerprint) &&
              memcmp(cells[FINGERPRINT].text, f->fingerprint, cells[FINGERPRINT].length) == 0;
    rlk_buffer_add(f->result, cells[RESULT].text, cells[RESULT].length);
    return 0;
}

static void forget_found(void *context)
{
    struct found *f = context;
    f->any = false;
    rlk_buffer_clear(f->result);
}

static int give_up(const rowlock_once *once, rowlock_db *db)
{
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    ASK(&ask, ONCE_ABANDON, rowlock_text(once->key), rowlock_int(once->attempt));
    return rlk_ask_ours(db, &ask);
}

/* The key is claimed, but the look after it failed. Gives the claim back. */
static int give_back(rowlock_once *once, int result)
{
    rowlock_error error = once->db->error;
    int given = give_up(once, once->db);
    once->db->error = error;
    if (given == ROWLOCK_OK || error.transaction_over || result != ROWLOCK_ECONN)
        return result;
    return rlk_fail_unknown(once->db);
}

/* The first step claims the key, takes it over, or changes nothing. The second step reads the
 * result. Both may be repeated after a lost answer. */
static int claim(rowlock_once *once, const rowlock_once_options *o)
{
    const char *fingerprint = o->fingerprint ? o->fingerprint : "";
    struct found found = {.fingerprint = fingerprint, .result = &once->result};
    struct rlk_ask take = {.step = RLK_STEP_NONE};
    struct rlk_ask look = {.read = take_found, .out = &found, .restart = forget_found};
    ASK(&take, ONCE_CLAIM, rowlock_text(once->key), rowlock_text(fingerprint),
        rowlock_int(once->attempt), rowlock_int(o->ttl_ms * 1000), rowlock_int(o->token));
    ASK(&look, ONCE_LOOK, rowlock_text(once->key));
    int result = rlk_ask_ours(once->db, &take);
    if (result != ROWLOCK_OK)
        return result;
    result = rlk_ask_ours(once->db, &look);
    if (result == ROWLOCK_OK && once->result.no_memory)
        result = rlk_fail(once->db, ROWLOCK_ENOMEM, "out of memory");
    if (result != ROWLOCK_OK)
        return give_back(once, result);
    once->done = found.done;
    if (found.any && !found.same)
        return rlk_fail(once->db, ROWLOCK_MISMATCH,
                        "the key was used for something else: it has another fingerprint");
    if (found.any && found.done)
        return ROWLOCK_DONE;
    if (found.any && found.attempt == once->attempt)
        return ROWLOCK_OK;
    return rlk_fail(once->db, ROWLOCK_BUSY,
                    found.any && found.attempt == 0
                        ? "the key was given back, and its pause is not over"
                        : "the key is in progress: another client has claimed it");
}

int rowlock_once_claim(rowlock_db *db, const char *key, const rowlock_once_options *options,
                       rowlock_once **out)
{
    rowlock_once_options o;
    int result = rlk_need_database(db, rlk_enter_open(db, "claim once", NULL, out));
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "key", key, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "claim once", key);
    if ((result = rlk_take_once_options(&db->error, &o, options)) != ROWLOCK_OK)
        return result;
    rowlock_once *once = rlk_alloc(sizeof *once);
    if (!once || !(once->key = rlk_strdup(key))) {
        rlk_free(once);
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    }
    once->tag = RLK_ONCE_TAG;
    link_to_db(once, db);
    once->attempt = rlk_next_number(db);
    result = claim(once, &o);
    if (result == ROWLOCK_OK || result == ROWLOCK_DONE)
        *out = once;
    else
        rowlock_once_close(once);
    return rlk_end_call(db, result);
}

/* ---- afterwards */

static int enter_once(rowlock_once *once, rowlock_db *db, const char *verb)
{
    if (!once || once->tag != RLK_ONCE_TAG)
        return ROWLOCK_EMISUSE;
    int result = rlk_enter(db, verb, once->key);
    if (result == ROWLOCK_OK && !once->db)
        return rlk_fail(db, ROWLOCK_EMISUSE, "the rowlock_db of the claim is closed");
    if (result == ROWLOCK_OK && once->done)
        return rlk_fail(db, ROWLOCK_EMISUSE, "the claim is completed already");
    return result;
}

/* The update changed nothing, so the claim is lost. Inside a transaction the snapshot may only be
 * older than the claim. Then once_prove fails as CONFLICT. It makes a row if there is none, and
 * once_abandon removes that row at once. */
static int found_lost(const rowlock_once *once, rowlock_db *tx)
{
    struct rlk_ask prove = {.step = RLK_STEP_NONE};
    bool inside = false;
    int result = tx->texts.sql[RLK_STEP_ONCE_PROVE] ? rlk_is_inside(tx, &inside) : ROWLOCK_OK;
    ASK(&prove, ONCE_PROVE, rowlock_text(once->key), rowlock_int(once->attempt));
    if (result == ROWLOCK_OK && inside)
        result = rlk_ask_ours(tx, &prove);
    if (result == ROWLOCK_OK && prove.changed > 0)
        result = give_up(once, tx);
    if (result != ROWLOCK_OK)
        return result;
    return rlk_fail(tx, ROWLOCK_LOST,
                    "the claim is gone: another client has claimed the key since, or it was given "
                    "back or swept; roll back");
}

int rowlock_once_complete(rowlock_once *once, rowlock_db *tx, const void *bytes, size_t length)
{
    int result = enter_once(once, tx, "complete");
    if (result == ROWLOCK_OK)
        result = rlk_same_tables(tx, RLK_EITHER, once->db);
    if (result != ROWLOCK_OK)
        return result;
    if (length > LONGEST_RESULT || (!bytes && length > 0))
        return rlk_fail(tx, ROWLOCK_EINVAL, "the result must have at most %d bytes",
                        LONGEST_RESULT);
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    ASK(&ask, ONCE_COMPLETE, rowlock_bytes(bytes ? bytes : "", length), rowlock_text(once->key),
        rowlock_int(once->attempt));
    result = rlk_ask_ours(tx, &ask);
    if (result != ROWLOCK_OK || ask.changed > 0)
        return result;
    return found_lost(once, tx);
}

int rowlock_once_abandon(rowlock_once *once, int64_t pause_ms, const void *why, size_t length)
{
    int result = enter_once(once, once ? once->db : NULL, "abandon");
    if (result != ROWLOCK_OK)
        return result;
    if (pause_ms < 0 || pause_ms > LONGEST_PAUSE_MS || length > LONGEST_RESULT || (!why && length))
        return rlk_fail(once->db, ROWLOCK_EINVAL,
                        "the pause must be 0 to 366 days, and the reason at most %d bytes",
                        LONGEST_RESULT);
    if (pause_ms == 0 && !why)
        return give_up(once, once->db);
    struct rlk_ask ask = {.step = RLK_STEP_NONE};
    ASK(&ask, ONCE_FAIL, rowlock_bytes(why ? why : "", length), rowlock_int(pause_ms * 1000),
        rowlock_text(once->key), rowlock_int(once->attempt));
    return rlk_ask_ours(once->db, &ask);
}

const void *rowlock_once_result(const rowlock_once *once, size_t *length)
{
    bool done = once && once->tag == RLK_ONCE_TAG && once->done;
    if (length)
        *length = done ? once->result.length : 0;
    if (!done)
        return NULL;
    return once->result.text ? once->result.text : "";
}

void rowlock_once_close(rowlock_once *once)
{
    if (!once || once->tag != RLK_ONCE_TAG)
        return;
    if (once->db)
        unlink_from_db(once, once->db);
    once->tag = 0;
    rlk_buffer_clear(&once->result);
    rlk_free(once->key);
    rlk_free(once);
}

int rowlock_once_sweep(rowlock_db *db, int64_t older_ms, int32_t batch, int64_t *removed)
{
    int result = rlk_need_database(db, rlk_enter(db, "sweep once keys", NULL));
    int64_t rows = batch ? batch : SWEEP_BATCH, all = 0, changed = 0;
    int64_t until_us = rlk_now_us() + RLK_SWEEP_US;
    if (result != ROWLOCK_OK)
        return result;
    if (older_ms < 0 || older_ms > INT64_MAX / 1000 || rows < 1 || rows > 10000)
        return rlk_fail(db, ROWLOCK_EINVAL, "the age must be 0 or more, and a batch 1 to 10000");
    do {
        struct rlk_ask ask = {.step = RLK_STEP_NONE};
        ASK(&ask, ONCE_SWEEP, rowlock_int(older_ms * 1000), rowlock_int(rows));
        result = rlk_ask_ours(db, &ask);
        changed = ask.changed;
        all += result == ROWLOCK_OK ? changed : 0;
    } while (result == ROWLOCK_OK && changed == rows && rlk_now_us() < until_us);
    if (removed)
        *removed = all;
    return result;
}

/* ---- listing and forgetting */

struct page {
    rowlock_once_record *record;
    int64_t count;
};

static void start_page(void *context)
{
    struct page *page = context;
    page->count = 0;
}

static int take_record(void *context, const rowlock_value *cells, size_t count)
{
    enum { KEY, FINGERPRINT, TOKEN, DONE, EXPIRES, CHANGED, NOW, RESULT };
    struct page *page = context;
    (void)count;
    if (page->count == LIST_PAGE)
        return 1;
    rowlock_once_record *record = &page->record[page->count++];
    record->size = sizeof *record;
    COPY(&cells[KEY], record->key);
    COPY(&cells[FINGERPRINT], record->fingerprint);
    record->token = cells[TOKEN].number;
    record->result_length = -1;
    if (!is_null(&cells[RESULT]) && cells[RESULT].length <= sizeof record->result) {
        record->result_length = (int)cells[RESULT].length;
        memcpy(record->result, cells[RESULT].text, cells[RESULT].length);
    }
    record->done = cells[DONE].number != 0;
    record->changed_us = cells[CHANGED].number;
    record->age_ms = (cells[NOW].number - cells[CHANGED].number) / 1000;
    record->remaining_ms = record->done ? 0 : (cells[EXPIRES].number - cells[NOW].number) / 1000;
    return 0;
}

/* The keys of the page that begin with prefix. False: there are no others, or each() ended it. */
static bool give_page(const struct page *page, const char *prefix,
                      int (*each)(void *context, const rowlock_once_record *record), void *context)
{
    for (int64_t i = 0; i < page->count; i++)
        if (strncmp(page->record[i].key, prefix, strlen(prefix)) != 0 ||
            each(context, &page->record[i]) != 0)
            return false;
    return page->count == LIST_PAGE;
}

static int list_from(rowlock_db *db, struct page *page, const char *prefix,
                     int (*each)(void *context, const rowlock_once_record *record), void *context)
{
    char after[RLK_TEXT_MAX + 1] = "";
    int result;
    do {
        struct rlk_ask ask = {.read = take_record, .out = page, .restart = start_page};
        ASK(&ask, ONCE_LIST, rowlock_text(prefix), rowlock_text(after), rowlock_int(LIST_PAGE));
        result = rlk_ask_ours(db, &ask);
        const char *last = page->count ? page->record[page->count - 1].key : "";
        /* The same page would come again and again. */
        if (result == ROWLOCK_OK && page->count && strcmp(last, after) <= 0)
            result = rlk_fail_misfit(db, false);
        memcpy(after, last, strlen(last) + 1);
    } while (result == ROWLOCK_OK && give_page(page, prefix, each, context));
    return result;
}

int rowlock_once_list(rowlock_db *db, const char *prefix,
                      int (*each)(void *context, const rowlock_once_record *record), void *context)
{
    int result = rlk_need_database(db, rlk_enter(db, "list once keys", NULL));
    const char *begin = prefix ? prefix : "";
    if (result == ROWLOCK_OK && !each)
        return rlk_fail(db, ROWLOCK_EINVAL, "the callback must not be NULL");
    if (result == ROWLOCK_OK)
        result = rlk_check_text(&db->error, "prefix", begin, true);
    if (result != ROWLOCK_OK)
        return result;
    struct page page = {.record = rlk_alloc(LIST_PAGE * sizeof *page.record)};
    result = page.record ? list_from(db, &page, begin, each, context)
                         : rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    rlk_free(page.record);
    return result;
}

/* After a lost answer the first attempt may have removed the key. */
int rowlock_once_forget(rowlock_db *db, const char *key, int64_t token)
{
    int result = rlk_need_database(db, rlk_enter(db, "forget key", NULL));
    if (result != ROWLOCK_OK ||
        (result = rlk_check_text(&db->error, "key", key, false)) != ROWLOCK_OK)
        return result;
    rlk_action(db, "forget key", key);
    struct rlk_ask ask = {.step = RLK_STEP_ONCE_FORGET,
                          .in = {rowlock_text(key), rowlock_int(token)}};
    result = rlk_ask_ours(db, &ask);
    bool gone = ask.changed > 0 || ask.was_uncertain;
    return rlk_end_call(db, result == ROWLOCK_OK && !gone ? ROWLOCK_NONE : result);
}
