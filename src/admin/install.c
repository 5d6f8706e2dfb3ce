/* SPDX-License-Identifier: MIT
 * Installs rowlock's tables, or writes the script that does. */
#include "admin/inspect.h"
#include "base/buffer.h"
#include "core/ask.h"
#include "core/statements.h"

#include <string.h>

typedef int write_fn(void *context, const char *sql, size_t length);

/* ---- grants */

/* The words of the text in braces, and what each becomes. */
struct grantee {
    const char *word, *is;
    size_t length;
};
enum { USER, HOST, SCHEMA, WORDS };

/* Is the role one of the words? There is a space before each. */
static bool names_role(const char *words, const char *role)
{
    size_t length = 0;
    for (; *words == ' '; words += length) {
        length = strcspn(++words, " \n");
        if (length == strlen(role) && strncmp(words, role, length) == 0)
            return true;
    }
    return false;
}

static void add_line(struct rlk_buffer *out, const char *line, const char *end,
                     const struct grantee *grantee)
{
    for (const char *at; line < end; line = at) {
        at = line + strcspn(line, "{\n") + 1;
        rlk_buffer_add(out, line, (size_t)(at - line) - (at[-1] == '{'));
        for (int i = 0; at[-1] == '{' && i < WORDS; i++) {
            size_t length = strlen(grantee[i].word);
            if (strncmp(at, grantee[i].word, length) != 0)
                continue;
            rlk_buffer_add(out, grantee[i].is, grantee[i].length);
            at += length + 1;
            break;
        }
    }
}

/* A quote of any database would end the name in some statement. No role needs one. */
static int check_user(rowlock_db *db, const char *user)
{
    if (!user || !*user || *user == '@' || strlen(user) > RLK_TEXT_MAX)
        return rlk_fail(db, ROWLOCK_EINVAL, "the user's name must have 1 to 255 bytes");
    if (strpbrk(user, "'\"`\\\n\r"))
        return rlk_fail(db, ROWLOCK_EINVAL,
                        "the user's name must contain no quote, backslash or line break");
    return ROWLOCK_OK;
}

static int write_grants(rowlock_db *db, const char *role, const char *user, write_fn *write,
                        void *context)
{
    static const char head[] = "-- what:";
    const char *line = db->texts.sql[RLK_STEP_GRANTS];
    int result = check_user(db, user);
    if (result == ROWLOCK_OK && !line)
        return rlk_fail(db, ROWLOCK_EUNSUPPORTED,
                        "this database has no users: who may write to its file may lock");
    if (result != ROWLOCK_OK)
        return result;
    const char *host = strstr(line, "{host}") ? strrchr(user, '@') : NULL;
    const struct grantee grantee[WORDS] = {
        [USER] = {"user", user, host ? (size_t)(host - user) : strlen(user)},
        [HOST] = {"host", host ? host + 1 : "%", host ? strlen(host + 1) : 1},
        [SCHEMA] = {"schema", db->texts.schema, strlen(db->texts.schema)}};
    struct rlk_buffer out = {0};
    for (bool wanted = false; *line;) {
        const char *end = line + strcspn(line, "\n") + 1;
        if (strncmp(line, head, strlen(head)) == 0)
            wanted = names_role(line + strlen(head), role);
        else if (wanted)
            add_line(&out, line, end, grantee);
        line = end;
    }
    if (out.no_memory)
        result = rlk_fail(db, ROWLOCK_ENOMEM, "out of memory");
    else if (out.length == 0)
        result = rlk_fail(db, ROWLOCK_EINVAL, "the role must be reader, user, operator or sweeper");
    else
        write(context, out.text, out.length);
    rlk_buffer_clear(&out);
    return result;
}

int rowlock_install_script(rowlock_db *db, const char *role, const char *user, write_fn *write,
                           void *context)
{
    int result = rlk_need_database(db, rlk_enter(db, "write a script for a DBA", NULL));
    if (result == ROWLOCK_OK && role)
        return write_grants(db, role, user, write, context);
    if (result == ROWLOCK_OK)
        rlk_write_script(db->driver, db->texts.sql[RLK_STEP_SCHEMA], write, context);
    return result;
}

/* ---- installing */

/* Says what is wrong with the tables, after their error without its advice. */
static int fail_tables(rowlock_db *db, const char *text)
{
    char cause[300];
    rlk_copy_text(cause, sizeof cause, db->error.text, strcspn(db->error.text, ";"));
    return rlk_fail(db, ROWLOCK_ESCHEMA, "%s: %s", cause, text);
}

/* install changes no tables or routines that are there. They may be of a later release. */
static int look_at_installation(rowlock_db *db)
{
    struct rlk_facts facts = {0};
    int result = rlk_refuse_objects(db, db->meta.version);
    if (result != ROWLOCK_OK || (result = rlk_examine(db, &facts)) != ROWLOCK_OK)
        return result;
    if (facts.may_lock)
        return ROWLOCK_OK;
    return rlk_fail(
        db, ROWLOCK_ESCHEMA,
        "the tables are there, but a table or routine is missing, or this user may not "
        "use it; `rowlock check` says more; `rowlock upgrade` makes routines again; for a table "
        "see 'A table is gone' in OPERATIONS");
}

/* Are the tables there? A table that was dropped took its rows along: made anew, it would grant a
 * lock or a token twice. So they count as absent only if no installation was ever complete here.
 * Another one may become complete meanwhile. */
static int look_for_tables(rowlock_db *db, bool *absent)
{
    struct rlk_ask ask = {.step = RLK_STEP_INSTALLED};
    int result = rlk_look_anew(db);
    *absent = false;
    if (result != ROWLOCK_ESCHEMA || db->meta.found)
        return result;
    /* A database without this step has no tables. */
    result = db->texts.sql[RLK_STEP_INSTALLED] ? rlk_ask(db, &ask) : ROWLOCK_ESCHEMA;
    *absent = result == ROWLOCK_OK ? ask.rows == 0 : result == ROWLOCK_ESCHEMA;
    if (*absent || result != ROWLOCK_OK)
        return *absent ? rlk_end_call(db, ROWLOCK_OK) : result;
    result = rlk_look_anew(db);
    if (result != ROWLOCK_ESCHEMA || db->meta.found)
        return result;
    return fail_tables(db,
                       "rowlock was installed here, and this table is damaged or gone; made anew "
                       "without its rows, it could grant a lock or a token twice: see 'A table "
                       "is gone' in OPERATIONS");
}

static int install(rowlock_db *db)
{
    bool absent;
    int result = rlk_refuse_objects(db, 0);
    if (result != ROWLOCK_OK || (result = look_for_tables(db, &absent)) != ROWLOCK_OK)
        return result;
    if (!absent)
        return look_at_installation(db);
    const char *script = db->texts.sql[RLK_STEP_SCHEMA];
    struct rlk_ask ask = {.script = script ? script : "", .retryable_if_lost = true};
    if ((result = rlk_ask(db, &ask)) != ROWLOCK_OK ||
        (result = rlk_refuse_objects(db, RLK_LEVEL)) != ROWLOCK_OK)
        return result;
    result = rlk_look_anew(db);
    if (result != ROWLOCK_ESCHEMA)
        return rlk_end_call(db, result);
    /* CREATE TABLE IF NOT EXISTS did nothing for it. */
    return fail_tables(db, "a table with a name of rowlock's has other columns: it is another "
                           "program's, or damaged; rename it, or choose another schema or prefix");
}

int rowlock_install(rowlock_db *db)
{
    int result = rlk_need_database(db, rlk_enter(db, "install the tables", NULL));
    return result == ROWLOCK_OK ? rlk_advise_denied(db, install(db)) : result;
}
