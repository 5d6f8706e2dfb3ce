/* SPDX-License-Identifier: MIT
 *
 * From the embedded texts to what a connection sends: schema and prefix in front of each name of
 * ours, and nothing else changed. What the statements do is in the contract tests. */
#include "fail_alloc.h"
#include "core/statements.h"
#include "quick.h"

#include <ctype.h>

static const struct rlk_driver dialects[] = {
    {.name = "postgres", .quote = '"', .marker = '$', .numbered = true},
    {.name = "mysql", .quote = '`', .marker = '?'},
    {.name = "sqlite", .quote = '"', .marker = '?', .numbered = true},
};
enum { DIALECTS = COUNT(dialects) };

static void fill(struct rlk_texts *texts, const struct rlk_driver *dialect, const char *schema,
                 const char *prefix)
{
    memset(texts, 0, sizeof *texts);
    snprintf(texts->schema, sizeof texts->schema, "%s", schema);
    snprintf(texts->prefix, sizeof texts->prefix, "%s", prefix);
    if (rlk_texts_fill(texts, dialect) != 0)
        tap_ok(false, "texts are filled");
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* Words in braces. */
static int braced(const char *sql)
{
    int n = 0;
    for (const char *at = strchr(sql, '{'); at; at = strchr(at + 1, '{'))
        n += islower((unsigned char)at[1]) != 0;
    return n;
}

/* A dialect has not what its driver does by itself, or by other steps of its own. Behind a step's name
 * stand the first letters of the dialects that are without it. */
static bool is_without(const char *dialect, int step)
{
    static const char without[] =
        " await:ps wake:p acquire_all:s acquire_met:ms acquire_usual:ms"
        " acquire_usual_many:ms acquire_many:s renew_many:s release_many:s enqueue_many:s"
        " listen:ms look:pm still_held:p still_held_many:ps sweep:m sweep_quiet:m"
        " sweep_end:pm sweep_keys:ps once_prove:ms row_lock:pm rows_update:s rows_insert:s"
        " rows_remove:s rows_find:s routines:ps events:ps may_remake:ps remake:s grants:s"
        " renew_usual:ps renew_all_usual:ps blockers:s upgrade:pms rows_read:s rows_marked:ps";
    const char *key = textf(" %s:", rlk_steps[step].name);
    const char *found = strstr(without, key);
    const char *letters = found ? found + strlen(key) : " ";
    return memchr(letters, dialect[0], strcspn(letters, " ")) != NULL;
}

static void test_all_steps(void)
{
    for (int d = 0; d < DIALECTS; d++) {
        CLOSED_BY(rlk_texts_clear) struct rlk_texts texts;
        fill(&texts, &dialects[d], "s", "zz_");
        for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++) {
            const char *sql = texts.sql[step];
            if (is_without(dialects[d].name, step)) {
                tap_ok(sql == NULL, "%s is without step %d", dialects[d].name, step);
                continue;
            }
            if (!tap_ok(sql != NULL, "%s has step %d", dialects[d].name, step))
                continue;
            tap_is_int(count(sql, "rowlock_"), 0, "no name of ours is left in it");
            tap_ok(step == RLK_STEP_GRANTS || strstr(sql, "/* rowlock:"), "its comment stays");
            if (!(rlk_steps[step].is & RLK_TEMPLATE))
                tap_is_int(braced(sql), 0, "what stands in braces is a parameter of the step");
            const char quote = dialects[d].quote;
            const char *quoted = textf("%cs%c.%czz_", quote, quote, quote);
            bool has_bodies = strcmp(dialects[d].name, "mysql") == 0 && step == RLK_STEP_SCHEMA;
            if (has_bodies)
                tap_ok(count(sql, quoted) < count(sql, "`zz_") &&
                           count(sql, "`zz_") == count(sql, "zz_"),
                       "each name is quoted, and in its schema where that is not the routine's");
            else
                tap_is_int(count(sql, quoted), count(sql, "zz_"),
                           "each name is quoted and in its schema");
        }
    }
}

/* Quotes come in pairs, names end where they ended: taken back, the expansion is the text again. */
static bool undo(char *out, const char *sql, const char *expanded)
{
    const char *alone = strchr(expanded, '.') + 1; /* in a routine's body */
    while (*sql) {
        size_t length = strlen(expanded);
        if (strncmp(sql, expanded, length) != 0) {
            length = strlen(alone);
            if (strncmp(sql, alone, length) != 0) {
                *out++ = *sql++;
                continue;
            }
        }
        memcpy(out, "rowlock_", 8);
        out += 8;
        sql += length;
        while (isalnum((unsigned char)*sql) || *sql == '_')
            *out++ = *sql++;
        if (*sql != expanded[0])
            return false;
        sql++;
    }
    *out = '\0';
    return true;
}

static void test_nothing_else(void)
{
    static char a[100000], b[100000];
    for (int d = 0; d < DIALECTS; d++) {
        CLOSED_BY(rlk_texts_clear) struct rlk_texts one, two;
        char first[16], second[200];
        char q = dialects[d].quote;
        fill(&one, &dialects[d], "s", "zz_");
        fill(&two, &dialects[d], "another place; --", "a_much_longer_prefix_0123456789_");
        snprintf(first, sizeof first, "%cs%c.%czz_", q, q, q);
        snprintf(second, sizeof second, "%c%s%c.%c%s", q, two.schema, q, q, two.prefix);
        bool same = true;
        for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++)
            same = same && (is_without(dialects[d].name, step) ||
                            (strlen(two.sql[step]) < sizeof b && undo(a, one.sql[step], first) &&
                             undo(b, two.sql[step], second) && strcmp(a, b) == 0));
        tap_ok(same, "schema and prefix change the names in %s and nothing else", dialects[d].name);
    }
}

static void test_in_literals(void)
{
    CLOSED_BY(rlk_texts_clear) struct rlk_texts texts;
    fill(&texts, &dialects[0], "my place", "zz_");
    tap_ok(strstr(texts.sql[RLK_STEP_FACTS], "'\"my place\".\"zz_locks\"'::regclass") != NULL,
           "a name inside a string literal is expanded too");
}

/* So that a copy of the database by another name works on itself. */
static void test_in_bodies(void)
{
    CLOSED_BY(rlk_texts_clear) struct rlk_texts texts;
    fill(&texts, &dialects[1], "my place", "zz_");
    const char *schema = texts.sql[RLK_STEP_SCHEMA];
    const char *body = strstr(schema, "PROCEDURE IF NOT EXISTS `my place`.`zz_break`(");
    body = body ? strstr(body, "\nBEGIN\n") : NULL;
    const char *end = body ? strstr(body, "\nEND") : NULL;
    const char *named = body ? strstr(body, "my place") : NULL;
    tap_ok(end && (!named || named > end), "the body of a procedure does not name its database");
    tap_ok(body && strstr(body, "UPDATE `zz_tokens`") != NULL, "but has the prefix");
    tap_ok(strstr(schema, "INSERT INTO `my place`.`zz_meta`") != NULL,
           "statements outside of bodies name it");
}

/* A prefix that looks like a name of ours is not expanded in its turn. */
static void test_own_prefix(void)
{
    for (int d = 0; d < DIALECTS; d++) {
        struct rlk_texts texts;
        fill(&texts, &dialects[d], "rowlock_", "rowlock_rowlock_");
        tap_is_int(count(texts.sql[RLK_STEP_LAST], "rowlock_rowlock_tokens"), 1,
                   "a prefix like our names is written once in %s", dialects[d].name);
        rlk_texts_clear(&texts);
        tap_ok(texts.sql[RLK_STEP_LAST] == NULL, "cleared texts are gone");
    }
}

static void test_unknown_dialect(void)
{
    struct rlk_texts texts = {.prefix = "zz_", .schema = "s"};
    const struct rlk_driver none = {.name = "none", .quote = '"'};
    tap_is_int(rlk_texts_fill(&texts, &none), 0, "a dialect without texts");
    tap_ok(texts.sql[RLK_STEP_META] == NULL, "has none");
}

static void test_no_memory(void)
{
    fail_alloc_at(0);
    int before = fail_alloc_live(), allocations = 0, kept = 0;
    for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++)
        if (!is_without(dialects[0].name, step)) /* pieces are put in first */
            allocations += rlk_steps[step].is & RLK_TEMPLATE ? 1 : 2;
    for (int nth = 1; nth <= allocations + 1; nth++) {
        CLOSED_BY(rlk_texts_clear) struct rlk_texts texts = {.prefix = "zz_", .schema = "s"};
        fail_alloc_at(nth);
        int result = rlk_texts_fill(&texts, &dialects[0]);
        tap_is_int(result, nth <= allocations ? -1 : 0, "memory that runs out at text %d", nth);
        fail_alloc_at(0);
        kept += result != 0 && fail_alloc_live() != before;
    }
    tap_is_int(kept, 0, "some texts are not kept without the others: the next call makes all");
    tap_is_int(fail_alloc_live(), before, "nothing leaks");
}

/* "*request* lease" of the document as the list has it. */
static const char *spelled_out(const char *told)
{
    static const char request[] = "*request*";
    bool short_form = strncmp(told, request, strlen(request)) == 0;
    return short_form ? textf("%s%s", RLK_REQUEST, told + strlen(request)) : told;
}

static void test_document(void)
{
    char line[4000], name[40], told[300];
    FILE *file = fopen("sql/README.md", "r");
    int found = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "| `%39[a-z_]` | %299[^|]", name, told) != 2)
            continue;
        for (int step = RLK_STEP_NONE + 1; step < RLK_STEP_COUNT; step++) {
            if (strcmp(rlk_steps[step].name, name) != 0 || (rlk_steps[step].is & RLK_TEMPLATE))
                continue;
            const char *semicolon = strstr(rlk_steps[step].parameters, " ;");
            const char *listed =
                textf("%.*s%s ", semicolon ? (int)(semicolon - rlk_steps[step].parameters) : 300,
                      rlk_steps[step].parameters, semicolon ? semicolon + 1 : "");
            found++;
            if (rlk_steps[step].parameters[0])
                tap_is_str(spelled_out(told), listed, "sql/README.md has the parameters of %s",
                           name);
        }
    }
    tap_ok(found > 30, "it has all steps");
    if (file)
        fclose(file);
}

int main(void)
{
    test_document();
    test_all_steps();
    test_nothing_else();
    test_in_literals();
    test_in_bodies();
    test_own_prefix();
    test_unknown_dialect();
    test_no_memory();
    return tap_done();
}
