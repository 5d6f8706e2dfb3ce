/* SPDX-License-Identifier: MIT
 * From the files in sql/, embedded at build, to the text a connection sends: each name of ours gets
 * its schema and prefix, quoted. In a routine's body it gets the prefix alone where the dialect looks such
 * names up in the routine's own schema: a copy of that schema by another name then works on itself.
 * Values never come near it. */
#include "statements.h"

#include <ctype.h>
#include <string.h>

#include "statements.inc"

static const char OUR[] = "rowlock_";

static const char *const step_names[RLK_STEP_COUNT] = {
    [RLK_STEP_SCHEMA] = "schema",
    [RLK_STEP_FACTS] = "facts",
    [RLK_STEP_META] = "meta",
    [RLK_STEP_ACQUIRE] = "acquire",
    [RLK_STEP_ACQUIRE_USUAL] = "acquire_usual",
    [RLK_STEP_LOOK] = "look",
    [RLK_STEP_RENEW] = "renew",
    [RLK_STEP_RELEASE] = "release",
    [RLK_STEP_VERIFY] = "verify",
    [RLK_STEP_LIST] = "list",
    [RLK_STEP_LAST] = "last",
    [RLK_STEP_EXPIRED] = "expired",
    [RLK_STEP_SWEEP] = "sweep",
    [RLK_STEP_FOLD] = "fold",
    [RLK_STEP_BREAK] = "break",
    [RLK_STEP_RENEW_ALL] = "renew_all",
    [RLK_STEP_WITHDRAW] = "withdraw",
    [RLK_STEP_GUARD] = "guard",
    [RLK_STEP_FENCE] = "fence",
    [RLK_STEP_RAISE] = "raise",
    [RLK_STEP_ACQUIRE_ALL] = "acquire_all",
    [RLK_STEP_ENQUEUE] = "enqueue",
    [RLK_STEP_LEAVE] = "leave",
    [RLK_STEP_AWAIT] = "await",
    [RLK_STEP_RING] = "ring",
    [RLK_STEP_CYCLE] = "cycle",
    [RLK_STEP_WAITERS] = "waiters",
    [RLK_STEP_DOWNGRADE] = "downgrade",
    [RLK_STEP_SWEEP_WAITERS] = "sweep_waiters",
    [RLK_STEP_TABLE] = "table",
    [RLK_STEP_ROW_UPDATE] = "row_update",
    [RLK_STEP_ROW_INSERT] = "row_insert",
    [RLK_STEP_ROW_REMOVE] = "row_remove",
    [RLK_STEP_ROW_READ] = "row_read",
    [RLK_STEP_ROW_LOCK] = "row_lock",
    [RLK_STEP_ROWS_UPDATE] = "rows_update",
    [RLK_STEP_ROWS_INSERT] = "rows_insert",
    [RLK_STEP_ROWS_REMOVE] = "rows_remove",
    [RLK_STEP_ROWS_FIND] = "rows_find",
    [RLK_STEP_ROWS_MARKED] = "rows_marked",
    [RLK_STEP_ROWS_PAGE] = "rows_page",
    [RLK_STEP_ROWS_COUNT] = "rows_count",
    [RLK_STEP_ONCE_CLAIM] = "once_claim",
    [RLK_STEP_ONCE_LOOK] = "once_look",
    [RLK_STEP_ONCE_COMPLETE] = "once_complete",
    [RLK_STEP_ONCE_PROVE] = "once_prove",
    [RLK_STEP_ONCE_ABANDON] = "once_abandon",
    [RLK_STEP_ONCE_SWEEP] = "once_sweep",
    [RLK_STEP_ONCE_LIST] = "once_list",
    [RLK_STEP_ONCE_FORGET] = "once_forget",
    [RLK_STEP_WALK_LOAD] = "walk_load",
    [RLK_STEP_WALK_SAVE] = "walk_save",
    [RLK_STEP_WALK_END] = "walk_end",
    [RLK_STEP_OBJECTS] = "objects",
    [RLK_STEP_NEW_IDENTITY] = "new_identity",
    [RLK_STEP_DROP] = "drop",
};

static const struct {
    const char *dialect;
    bool local_bodies; /* a routine finds unqualified names in its own schema */
    const struct rlk_statement *statements;
    size_t count;
} dialects[] = {
    {"postgres", false, rlk_postgres_statements,
     sizeof rlk_postgres_statements / sizeof rlk_postgres_statements[0]},
    {"mysql", true, rlk_mysql_statements,
     sizeof rlk_mysql_statements / sizeof rlk_mysql_statements[0]},
    {"sqlite", false, rlk_sqlite_statements,
     sizeof rlk_sqlite_statements / sizeof rlk_sqlite_statements[0]},
};

static const char *find_text(const char *dialect, const char *step, bool *local_bodies)
{
    for (size_t d = 0; d < sizeof dialects / sizeof dialects[0]; d++) {
        if (strcmp(dialects[d].dialect, dialect) != 0)
            continue;
        *local_bodies = dialects[d].local_bodies;
        for (size_t i = 0; i < dialects[d].count; i++)
            if (strcmp(dialects[d].statements[i].step, step) == 0)
                return dialects[d].statements[i].text;
    }
    return NULL;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Next place in text where one of our names begins, or NULL. */
static const char *next_name(const char *text, const char *from)
{
    for (const char *at = strstr(from, OUR); at; at = strstr(at + 1, OUR))
        if (at == text || !in_word(at[-1]))
            return at;
    return NULL;
}

/* In a routine's body all lines are indented but the first, which ends with BEGIN, and the last. */
static bool in_body(const char *text, const char *at)
{
    const char *line = at;
    while (line > text && (line[-1] != '\n' || *line == ' '))
        line--;
    size_t length = strcspn(line, "\n");
    return line < at && length >= 5 && memcmp(line + length - 5, "BEGIN", 5) == 0;
}

static char *append(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}

static char *append_quoted(char *out, const char *text, size_t length, char quote)
{
    *out++ = quote;
    out = append(out, text, length);
    *out++ = quote;
    return out;
}

/* Schema and prefix hold no quotes (options.c), so quoting is all they need. */
static char *expand(const char *text, const struct rlk_texts *texts, char quote, bool local_bodies)
{
    size_t names = 0;
    for (const char *at = next_name(text, text); at; at = next_name(text, at + 1))
        names++;
    size_t each = strlen(texts->schema) + strlen(texts->prefix) + 5;
    char *whole = rlk_alloc(strlen(text) + names * each + 1);
    if (!whole)
        return NULL;

    char *out = whole;
    const char *from = text;
    for (const char *at = next_name(text, text); at; at = next_name(text, from)) {
        const char *word = at + strlen(OUR);
        size_t length = 0;
        while (in_word(word[length]))
            length++;
        out = append(out, from, (size_t)(at - from));
        if (!local_bodies || !in_body(text, at)) {
            out = append_quoted(out, texts->schema, strlen(texts->schema), quote);
            *out++ = '.';
        }
        *out++ = quote;
        out = append(out, texts->prefix, strlen(texts->prefix));
        out = append(out, word, length);
        *out++ = quote;
        from = word + length;
    }
    append(out, from, strlen(from) + 1);
    return whole;
}

int rlk_texts_fill(struct rlk_texts *texts, const struct rlk_backend *backend)
{
    for (int step = 0; step < RLK_STEP_COUNT; step++) {
        bool local_bodies = false;
        const char *text = find_text(backend->name, step_names[step], &local_bodies);
        if (text && !(texts->sql[step] = expand(text, texts, backend->quote, local_bodies)))
            return -1;
    }
    return 0;
}

void rlk_texts_clear(struct rlk_texts *texts)
{
    for (int step = 0; step < RLK_STEP_COUNT; step++) {
        rlk_free(texts->sql[step]);
        texts->sql[step] = NULL;
    }
}
