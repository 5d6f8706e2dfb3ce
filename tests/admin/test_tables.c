/* SPDX-License-Identifier: MIT
 *
 * What core makes of the tables it finds: missing, half installed, older, newer; when it installs,
 * and what rowlock_check() reports. What the tables look like is the databases' business.
 */
#include "backend_script.h"
#include "quick.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

static rowlock_db *db;

static void begin(void)
{
    script_reset();
    db = script_open(NULL);
}

static const char *error_text(void)
{
    static rowlock_error err;
    err = (rowlock_error)ROWLOCK_ERROR_INIT;
    rowlock_db_error(db, &err);
    return err.text;
}

/* ---- using them */

static void test_unusable(struct script_answer meta, const char *what, const char *advice)
{
    begin();
    rowlock_lock *lock = must_lock(db, "nightly");
    script_always(OP_META, meta);
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ESCHEMA, "%s tables are refused", what);
    tap_is_str(script_calls(), "meta", "nothing is sent to them");
    tap_ok(strstr(error_text(), advice) != NULL, "the text says what to do: %s", error_text());
    if (meta.class == RLK_DONE)
        tap_ok(strstr(error_text(), "'main'") != NULL, "and where they are");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ESCHEMA, "they are refused each time");
    script_always(OP_META, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "until they are as they should be");
    rowlock_lock_close(lock);
    rowlock_db_close(db);
}

/* ---- installing */

static void test_install_fresh(void)
{
    begin();
    script_next(OP_META, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "missing tables are installed");
    tap_is_str(script_calls(), "objects meta install objects meta", "and looked at afterwards");
    rowlock_db_close(db);
}

static void test_install_half(void)
{
    begin();
    script_next(OP_META, ANSWER(.missing = true));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "half installed tables are completed");
    tap_is_str(script_calls(), "objects meta install objects meta", "in the same way");
    rowlock_db_close(db);
}

static void test_install_again(void)
{
    begin();
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "tables that are there are fine");
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "however often");
    tap_is_str(script_calls(),
               "objects meta install objects meta objects meta install objects meta",
               "what else may be missing is created");
    rowlock_db_close(db);
}

static void test_install_unprivileged(void)
{
    begin();
    script_always(OP_INSTALL, FAILS(RLK_DENIED));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "where all is there no privilege is needed");
    script_always(OP_META, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_install(db), ROWLOCK_EDENIED, "where it is not, the refusal is told");
    rowlock_db_close(db);
}

static void test_install_foreign(void)
{
    begin();
    script_always(OP_META, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA,
               "a foreign table of our name is not made ours");
    tap_ok(strstr(error_text(), "another program's") != NULL, "and is called what it is");
    rowlock_db_close(db);
}

static const rowlock_value TRAP[] = {{.kind = ROWLOCK_TEXT, .text = "locks", .length = 5},
                                     {.kind = ROWLOCK_TEXT, .text = "has a trigger", .length = 13},
                                     {.kind = ROWLOCK_BOOL, .number = 0}};
static const rowlock_value DRIFT[] = {
    {.kind = ROWLOCK_TEXT, .text = "grant", .length = 5},
    {.kind = ROWLOCK_TEXT, .text = "has an old body", .length = 15},
    {.kind = ROWLOCK_BOOL, .number = 1}};
static const rowlock_value RISK[] = {{.kind = ROWLOCK_TEXT, .text = "schema", .length = 6},
                                     {.kind = ROWLOCK_TEXT, .text = "is open", .length = 7},
                                     {.kind = ROWLOCK_NULL}};
#define OBJECT(what) ANSWER(.cells = what, .rows = 1, .width = 3)

static void test_install_over_trap(void)
{
    begin();
    script_next(OP_OBJECTS, OBJECT(TRAP));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "what somebody prepared for us is refused");
    tap_ok(strstr(error_text(), "locks is not as rowlock makes it: has a trigger") != NULL,
           "by its name and with the reason: %s", error_text());
    tap_is_str(script_calls(), "objects", "before any of it is read");
    rowlock_db_close(db);
}

static void test_install_misfit(void)
{
    begin();
    script_next(OP_OBJECTS,
                ANSWER(ROWS(2, rowlock_text("table locks"), rowlock_text("a trigger"))));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA,
               "an answer of another shape about what is there is not taken for none");
    tap_is_int(script_count(OP_INSTALL), 0, "nothing is installed over it");
    rowlock_db_close(db);
}

static void test_install_over_drift(void)
{
    begin();
    script_next(OP_OBJECTS, OBJECT(DRIFT));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "a routine that install makes anew is no obstacle");
    script_always(OP_OBJECTS, OBJECT(DRIFT));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "unless it is as it was afterwards");
    rowlock_db_close(db);
}

static void test_install_over_newer(void)
{
    begin();
    script_always(OP_META, ANSWER(.version = RLK_SCHEMA_VERSION + 1));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "newer tables are left alone");
    tap_is_int(script_count(OP_INSTALL), 0, "nothing is done to them");
    tap_ok(strstr(error_text(), "upgrade rowlock") != NULL, "the text says what to do");
    rowlock_db_close(db);
}

static void test_install_over_another(void)
{
    begin();
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "one installation");
    script_always(OP_META, ANSWER(.identity = "second"));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "another in its place is not ours to touch");
    tap_is_int(script_count(OP_INSTALL), 1, "nothing more is done to it");
    rowlock_db_close(db);
}

static void test_install_in_vain(void)
{
    begin();
    script_always(OP_META, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA,
               "tables that are still not there afterwards are not called installed");
    tap_is_int(script_count(OP_INSTALL), 1, "and it is tried once");
    rowlock_db_close(db);
}

static void test_install_failing(void)
{
    begin();
    script_next(OP_META, FAILS(RLK_DENIED));
    tap_is_int(rowlock_install(db), ROWLOCK_EDENIED, "who may not look may not install");
    tap_is_int(script_count(OP_INSTALL), 0, "blindly");
    script_next(OP_META, FAILS(RLK_SCHEMA));
    script_next(OP_INSTALL, FAILS(RLK_CONTENTION));
    script_next(OP_INSTALL, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "a lost race and a lost answer are made good");
    tap_is_int(script_count(OP_INSTALL), 3, "by installing again, which is harmless");
    rowlock_db_close(db);
}

/* ---- the doctor */

struct findings {
    int count, bad, stop_after;
    char tables[600], objects[300], clock[200], writable[50], replication[600];
};

static int note_finding(void *context, const rowlock_finding *finding)
{
    struct findings *f = context;
    f->count++;
    f->bad += finding->verdict == ROWLOCK_BAD;
    if (strcmp(finding->item, "tables") == 0)
        strncpy(f->tables, finding->advice, sizeof f->tables - 1);
    if (strcmp(finding->item, "objects") == 0)
        snprintf(f->objects, sizeof f->objects, "%s: %s", finding->value, finding->advice);
    if (strcmp(finding->item, "clock") == 0)
        strncpy(f->clock, finding->value, sizeof f->clock - 1);
    if (strcmp(finding->item, "writable") == 0)
        strncpy(f->writable, finding->value, sizeof f->writable - 1);
    if (strcmp(finding->item, "replication") == 0)
        snprintf(f->replication, sizeof f->replication, "%d %s %s", (int)finding->verdict,
                 finding->value, finding->advice);
    return f->stop_after && f->count == f->stop_after;
}

static void test_check_fine(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_BAD;
    begin();
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a look at a sound server");
    tap_is_int(worst, ROWLOCK_FINE, "finds nothing");
    tap_ok(f.count >= 8 && f.bad == 0, "in any of its %d findings", f.count);
    tap_is_str(f.writable, "yes", "which say what was seen");
    rowlock_db_close(db);
}

static void test_check_warning(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    script_next(OP_FACTS, ANSWER(.left_us = 7200000000));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a clock two hours ahead");
    tap_is_int(worst, ROWLOCK_WARNING, "is worth a warning");
    tap_ok(strncmp(f.clock, "+7", 2) == 0, "with the difference: %s", f.clock);
    rowlock_db_close(db);
}

static void test_check_replication(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK,
               "replication as it should be");
    tap_is_str(f.replication, "0 0 late ", "is fine");
    script_next(OP_FACTS, ANSWER(.rows = 1));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "replicas that lag");
    tap_ok(worst == ROWLOCK_WARNING && strncmp(f.replication, "1 1 late ", 9) == 0 &&
               strstr(f.replication, "raise-tokens"),
           "are worth a warning that says what to do: %s", f.replication);
    script_next(OP_FACTS, ANSWER(.rows = 2));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK,
               "replicas that are not seen");
    tap_ok(worst == ROWLOCK_WARNING && strncmp(f.replication, "1 unknown ", 10) == 0,
           "are not called fine: %s", f.replication);
    rowlock_db_close(db);
}

static void test_check_bad(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    script_next(OP_FACTS, ANSWER(.missing = true));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK,
               "a look at a read-only server succeeds");
    tap_is_int(worst, ROWLOCK_BAD, "and finds that it is useless");
    script_next(OP_META, FAILS(RLK_SCHEMA));
    f = (struct findings){0};
    worst = ROWLOCK_FINE;
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK,
               "so does a look at a server without our tables");
    tap_ok(worst == ROWLOCK_BAD && strstr(f.tables, "rowlock install"), "which says what to do");
    rowlock_db_close(db);
}

static void test_check_objects(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    script_next(OP_OBJECTS, ANSWER(.cells = TRAP, .rows = 1, .width = 3));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a look at a trap");
    tap_is_int(worst, ROWLOCK_BAD, "finds it");
    tap_is_str(f.objects, "locks: has a trigger", "says what it is");
    tap_is_str(script_calls(), "objects", "and goes no further");
    script_next(OP_OBJECTS, OBJECT(DRIFT));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK,
               "a look at a routine that was made for another place");
    tap_ok(f.bad == 2 && script_count(OP_FACTS) == 1, "goes on to everything else");
    worst = ROWLOCK_FINE;
    script_next(OP_OBJECTS, OBJECT(RISK));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a look at a risk");
    tap_is_int(worst, ROWLOCK_WARNING, "warns");
    tap_is_str(f.objects, "schema: is open", "of what it is");
    script_next(OP_OBJECTS, OBJECT(RISK));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "and installing goes on");
    rowlock_db_close(db);
}

static void test_check_failing(void)
{
    rowlock_verdict worst = (rowlock_verdict)77;
    begin();
    script_always(OP_META, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_check(db, NULL, NULL, &worst), ROWLOCK_ECONN,
               "a server that cannot be reached is not looked at");
    tap_is_int((int)worst, 77, "and no verdict is given");
    rowlock_db_close(db);
}

static void test_check_stopped(void)
{
    struct findings f = {.stop_after = 2};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    script_next(OP_FACTS, ANSWER(.left_us = 7200000000));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a report may be stopped");
    tap_is_int(f.count, 2, "after any finding");
    tap_is_int(worst, ROWLOCK_WARNING, "the verdict is of all of them");
    rowlock_db_close(db);
}

int main(void)
{
    script_home("sqlite");
    test_unusable(FAILS(RLK_SCHEMA), "missing", "rowlock install");
    test_unusable(ANSWER(.missing = true), "half installed", "rowlock install");
    test_unusable(ANSWER(.version = -1), "never written", "no rowlock has written");
    test_unusable(ANSWER(.version = RLK_SCHEMA_VERSION + 1), "newer", "upgrade rowlock");
    test_install_fresh();
    test_install_half();
    test_install_again();
    test_install_unprivileged();
    test_install_foreign();
    test_install_over_trap();
    test_install_misfit();
    test_install_over_drift();
    test_install_over_newer();
    test_install_over_another();
    test_install_in_vain();
    test_install_failing();
    test_check_fine();
    test_check_warning();
    test_check_replication();
    test_check_bad();
    test_check_objects();
    test_check_failing();
    test_check_stopped();
    return tap_done();
}
