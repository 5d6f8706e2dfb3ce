/* SPDX-License-Identifier: MIT
 * Bring tables of the version before to ours while programs use them, and make routines again that
 * are missing or have another body.
 *
 * The text of the step `upgrade` is a list of blocks. Two comments begin a block: what it does, and
 * a query that finds a row if that is done. The last block sets the version. */
#include "base/buffer.h"
#include "base/options.h"
#include "admin/inspect.h"
#include "core/ask.h"
#include "core/core.h"
#include "core/statements.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* So long others go on before a block that had to wait is tried again. */
enum { PAUSE_US = 1000000 };

struct block {
    struct rlk_buffer what, unless, sql;
};

struct upgrading {
    rowlock_upgrade_options options;
    int64_t until_us;
    struct block block;
    /* the block was done before this upgrade */
    bool was_done;
    /* the upgrade has changed something */
    bool changed;
    int32_t retries;
    char blocker[300];
    /* routines with another body */
    struct rlk_buffer stale;
    /* routines that exist */
    struct rlk_buffer present;
    /* this user may not make routines, and may not see some that exist */
    bool blind;
};

/* ---- a block */

static void clear_block(struct block *b)
{
    rlk_buffer_clear(&b->what);
    rlk_buffer_clear(&b->unless);
    rlk_buffer_clear(&b->sql);
}

static bool is_whole(const struct block *b)
{
    return !b->what.no_memory && !b->unless.no_memory && !b->sql.no_memory;
}

static bool take_mark(const char *line, size_t length, const char *mark, struct rlk_buffer *out)
{
    size_t skip = strlen(mark);
    if (length < skip || memcmp(line, mark, skip) != 0)
        return false;
    if (out->length > 0)
        rlk_buffer_text(out, " ");
    rlk_buffer_add(out, line + skip, length - skip);
    return true;
}

/* The next block of a text. False: there is none. */
static bool read_block(const char **text, struct block *b)
{
    static const char what[] = "-- what: ", unless[] = "-- unless: ";
    clear_block(b);
    for (size_t length; **text; *text += length + ((*text)[length] == '\n')) {
        length = strcspn(*text, "\n");
        if (b->sql.length > 0 && strncmp(*text, what, strlen(what)) == 0)
            return true;
        if (take_mark(*text, length, what, &b->what) ||
            take_mark(*text, length, unless, &b->unless) || b->what.length == 0)
            continue;
        rlk_buffer_add(&b->sql, *text, length);
        rlk_buffer_text(&b->sql, "\n");
    }
    return b->sql.length > 0;
}

static int note_row(void *context, const rowlock_value *cells, size_t count)
{
    (void)cells;
    (void)count;
    *(bool *)context = true;
    return 1;
}

static enum rlk_class ask_unless(rowlock_db *db, struct rlk_call *call, const struct upgrading *u,
                                 bool *done)
{
    struct rlk_query query = {
        .step = RLK_STEP_NONE, .sql = u->block.unless.text, .each = note_row, .context = done};
    *done = false;
    return query.sql ? db->driver->query(db->conn, call, &query) : RLK_DONE;
}

/* Another upgrade may have been faster: then the statement fails, and all is well. */
static enum rlk_class run_block(rowlock_db *db, struct rlk_call *call, struct rlk_ask *ask)
{
    struct upgrading *u = ask->out;
    enum rlk_class class = ask_unless(db, call, u, &u->was_done);
    if (class != RLK_DONE || u->was_done || u->options.dry_run)
        return class;
    u->changed = true;
    class = db->driver->script(db->conn, call, u->block.sql.text);
    if (class == RLK_DONE || class == RLK_CONTENTION || class == RLK_UNSENT ||
        class == RLK_UNCERTAIN)
        return class;
    struct rlk_call unheard = {.deadline_us = call->deadline_us};
    bool done = false;
    return ask_unless(db, &unheard, u, &done) == RLK_DONE && done ? RLK_DONE : class;
}

/* ---- what the caller is told */

static int write_text(void *context, const char *text, size_t length)
{
    rlk_buffer_add(context, text, length);
    return 0;
}

static int tell(rowlock_db *db, const struct upgrading *u, bool done)
{
    struct rlk_buffer shell = {0};
    if (!u->options.each)
        return ROWLOCK_OK;
    if (u->options.dry_run)
        rlk_write_script(db->driver, u->block.sql.text, write_text, &shell);
    const rowlock_upgrade_step step = {.what = u->block.what.text,
                                       .sql = shell.text ? shell.text : u->block.sql.text,
                                       .done = done,
                                       .retries = u->retries,
                                       .blocker = u->blocker};
    int stop = shell.no_memory ? 0 : u->options.each(u->options.context, &step);
    rlk_buffer_clear(&shell);
    if (shell.no_memory)
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    return stop ? ROWLOCK_CANCELLED : ROWLOCK_OK;
}

/* This user may have no right to know. */
static void find_blocker(rowlock_db *db, struct upgrading *u)
{
    static const struct rlk_field blocker[] = {RLK_FIELD(struct upgrading, blocker)};
    struct rlk_ask ask = {
        .step = RLK_STEP_BLOCKERS, .fields = blocker, .out = u, .contention_us = 1};
    u->blocker[0] = '\0';
    if (!db->texts.sql[RLK_STEP_BLOCKERS] || rlk_ask(db, &ask) != ROWLOCK_OK)
        u->blocker[0] = '\0';
}

static int fail_blocked(rowlock_db *db, const struct upgrading *u)
{
    return rlk_fail(db, ROWLOCK_TIMEOUT,
                    "%s: other transactions kept the tables locked for all of %lld ms%s%s; steps "
                    "that were done stay done: run it again",
                    u->block.what.text, (long long)u->options.deadline_ms,
                    u->blocker[0] ? ", such as " : "", u->blocker);
}

/* ---- doing it */

static int do_block(rowlock_db *db, struct upgrading *u)
{
    if (!is_whole(&u->block))
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    u->blocker[0] = '\0';
    for (u->retries = 0;;) {
        struct rlk_ask ask = {.step = RLK_STEP_UPGRADE,
                              .run = run_block,
                              .out = u,
                              .contention_us = 1,
                              .retryable_if_lost = true};
        int result = rlk_ask(db, &ask);
        if (result == ROWLOCK_OK)
            return u->was_done ? ROWLOCK_OK : tell(db, u, !u->options.dry_run);
        if (!ask.contended)
            return result;
        find_blocker(db, u);
        u->retries++;
        rlk_action(db, "upgrade the tables", NULL);
        if (rlk_now_us() + PAUSE_US >= u->until_us)
            return fail_blocked(db, u);
        if ((result = tell(db, u, false)) != ROWLOCK_OK)
            return result;
        if (!rlk_wait_until(&db->waiting, rlk_now_us() + PAUSE_US))
            return ROWLOCK_CANCELLED;
    }
}

/* ---- routines */

static int note_stale(void *context, const rowlock_value *cells, size_t count)
{
    enum { OBJECT, PROBLEM, MENDED };
    (void)count;
    if (cells[MENDED].kind != ROWLOCK_NULL && cells[MENDED].number)
        rlk_buffer_add(context, cells[OBJECT].text, cells[OBJECT].length);
    return 0;
}

static int note_present(void *context, const rowlock_value *cells, size_t count)
{
    (void)count;
    rlk_buffer_text(context, " ");
    rlk_buffer_add(context, cells[0].text, cells[0].length);
    return 0;
}

static void forget_words(void *out)
{
    rlk_buffer_clear(out);
}

static int look_at_routines(rowlock_db *db, struct upgrading *u)
{
    struct rlk_ask objects = {.step = RLK_STEP_OBJECTS,
                              .in = {rowlock_text(db->texts.sql[RLK_STEP_SCHEMA])},
                              .read = note_stale,
                              .out = &u->stale,
                              .restart = forget_words};
    struct rlk_ask routines = {.step = RLK_STEP_ROUTINES,
                               .read = note_present,
                               .out = &u->present,
                               .restart = forget_words};
    struct rlk_ask may = {.script = db->texts.sql[RLK_STEP_MAY_REMAKE]};
    int result = rlk_ask(db, &objects);
    if (result == ROWLOCK_OK && db->texts.sql[RLK_STEP_ROUTINES])
        result = rlk_ask(db, &routines);
    /* It names a routine that is not there. A role that may look is told so. */
    struct rlk_call call;
    int looked = ROWLOCK_OK;
    if (result == ROWLOCK_OK && may.script)
        u->blind = rlk_attempt(db, &may, &call, &looked) == RLK_DENIED;
    if (result == ROWLOCK_OK && (u->stale.no_memory || u->present.no_memory))
        return rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    return result;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const struct rlk_buffer *words, const char *word, size_t length)
{
    const char *text = words->text ? words->text : "";
    for (const char *at = strchr(text, word[0]); at; at = strchr(at + 1, word[0]))
        if (strncmp(at, word, length) == 0 && !in_word(at[length]) &&
            (at == text || !in_word(at[-1])))
            return true;
    return false;
}

/* A routine of ours: "schema"."name" with its parameters right behind it. */
struct routine {
    /* FUNCTION or PROCEDURE on PostgreSQL. Other dialects do not use it. */
    const char *kind;
    const char *whole, *name, *rest;
    size_t name_length;
};

static bool find_routine(const char *sql, size_t length, char quote, struct routine *out)
{
    const char *end = memchr(sql, '(', length);
    out->whole = memchr(sql, quote, length);
    if (!end || !out->whole || out->whole > end || end[-1] != quote)
        return false;
    out->rest = end;
    out->name = end - 1;
    while (out->name[-1] != quote)
        out->name--;
    out->name_length = (size_t)(end - 1 - out->name);
    out->kind = out->whole - 1;
    while (in_word(out->kind[-1]))
        out->kind--;
    return true;
}

static bool is_wanted(const rowlock_db *db, const struct upgrading *u, const struct routine *r)
{
    bool told = db->texts.sql[RLK_STEP_ROUTINES];
    return has_word(&u->stale, r->name, r->name_length) ||
           (told && !has_word(&u->present, r->name, r->name_length));
}

/* The text of the step `remake` with the routine in its place. */
static void compose_block(const rowlock_db *db, struct block *b, const struct routine *r,
                          const char *end)
{
    const struct {
        const char *word, *from, *end;
    } pieces[] = {{"{kind}", r->kind, r->whole - 1},
                  {"{name}", r->whole, r->rest},
                  {"{rest}\n", r->rest, end}};
    const char *text = db->texts.sql[RLK_STEP_REMAKE];
    clear_block(b);
    rlk_buffer_text(&b->what, "make routine ");
    rlk_buffer_add(&b->what, r->name, r->name_length);
    for (const char *at = strchr(text, '{'); at; at = strchr(text, '{')) {
        size_t i = 0;
        while (i < 2 && at[1] != pieces[i].word[1])
            i++;
        rlk_buffer_add(&b->sql, text, (size_t)(at - text));
        rlk_buffer_add(&b->sql, pieces[i].from, (size_t)(pieces[i].end - pieces[i].from));
        text = at + strlen(pieces[i].word);
    }
    rlk_buffer_text(&b->sql, text);
}

/* Never over those of a later release. */
static int remake_routines(rowlock_db *db, struct upgrading *u)
{
    if (!db->texts.sql[RLK_STEP_REMAKE] || db->meta.code > RLK_CODE)
        return ROWLOCK_OK;
    int result = look_at_routines(db, u);
    size_t length;
    for (const char *sql = db->texts.sql[RLK_STEP_SCHEMA]; *sql && result == ROWLOCK_OK;
         sql += length) {
        struct routine r = {0};
        length = rlk_statement_length(sql);
        if (!find_routine(sql, length, db->driver->quote, &r) || !is_wanted(db, u, &r))
            continue;
        if (u->blind)
            return rlk_fail(db, ROWLOCK_EDENIED,
                            "the routine %.*s is missing, or this user may not see it: ask as the "
                            "account that installed, or with its privileges",
                            (int)r.name_length, r.name);
        compose_block(db, &u->block, &r, sql + length);
        result = do_block(db, u);
    }
    return result;
}

/* Routines may need new columns, and a client that sees the new version calls new routines: so they
 * are made before the last block. */
static int run_blocks(rowlock_db *db, struct upgrading *u)
{
    const char *text = db->texts.sql[RLK_STEP_UPGRADE];
    int result = ROWLOCK_OK;
    bool behind = db->meta.version < RLK_LEVEL || db->meta.code < RLK_CODE;
    if (!text || !behind)
        return remake_routines(db, u);
    while (result == ROWLOCK_OK && read_block(&text, &u->block)) {
        struct block block = u->block;
        u->block = (struct block){0};
        if (!*text)
            result = remake_routines(db, u);
        clear_block(&u->block);
        u->block = block;
        if (result == ROWLOCK_OK)
            result = do_block(db, u);
    }
    return result;
}

/* A block has changed settings of the session, and a failure may have left them so. */
static int end_upgrade(rowlock_db *db, struct upgrading *u, int result)
{
    clear_block(&u->block);
    rlk_buffer_clear(&u->stale);
    rlk_buffer_clear(&u->present);
    if (u->changed)
        rlk_disconnect(db, false);
    if (result != ROWLOCK_OK || u->options.dry_run)
        return result;
    result = rlk_look_anew(db);
    return result == ROWLOCK_OK ? rlk_refuse_objects(db, db->meta.version) : result;
}

int rowlock_upgrade(rowlock_db *db, const rowlock_upgrade_options *options)
{
    struct upgrading u = {.retries = 0};
    int result = rlk_need_database(db, rlk_enter(db, "upgrade the tables", NULL));
    if (result != ROWLOCK_OK)
        return result;
    if ((result = rlk_take_upgrade_options(&db->error, &u.options, options)) != ROWLOCK_OK)
        return result;
    if (db->adopted)
        return rlk_fail(
            db, ROWLOCK_EUNSUPPORTED,
            "an upgrade changes settings of the session: open the rowlock_db with a URL");
    u.until_us = rlk_now_us() + u.options.deadline_ms * 1000;
    if ((result = rlk_refuse_objects(db, 0)) != ROWLOCK_OK ||
        (result = rlk_look_anew(db)) != ROWLOCK_OK)
        return result;
    return rlk_end_call(db, end_upgrade(db, &u, run_blocks(db, &u)));
}
