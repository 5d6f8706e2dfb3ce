/* SPDX-License-Identifier: MIT
 *
 * What core makes of the tables it finds, where no server shows it: in which order it looks and
 * installs, answers that are lost or misshapen, and what rowlock_check() reports of servers that
 * are hard to come by. The rest is in install.c. */
#include "backend_script.h"

static rowlock_db *db;

/* Ends the test before. */
static void begin(void)
{
    rowlock_db_close(db);
    script_reset();
    db = script_open(NULL);
}

static void test_unusable(struct script_answer meta, const char *what, const char *advice)
{
    begin();
    OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
    script_always(OP_META, meta);
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ESCHEMA, "%s tables are refused", what);
    tap_is_str(script_calls(), "meta", "nothing is sent to them");
    tap_ok(strstr(why(db), advice) != NULL, "the text says what to do: %s", why(db));
    if (meta.class == RLK_DONE)
        tap_ok(strstr(why(db), "'main'") != NULL, "and where they are");
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_ESCHEMA, "they are refused each time");
    script_always(OP_META, ANSWER(.class = RLK_DONE));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_OK, "until they are as they should be");
}

/* ---- installing */

static const rowlock_value TRAP[] = {{.kind = ROWLOCK_TEXT, .text = "locks", .length = 5},
                                     {.kind = ROWLOCK_TEXT, .text = "has a trigger", .length = 13},
                                     {.kind = ROWLOCK_BOOL, .number = 0}};
static const rowlock_value DRIFT[] = {
    {.kind = ROWLOCK_TEXT, .text = "function rowlock_wake(text)", .length = 27},
    {.kind = ROWLOCK_TEXT, .text = "has an old body", .length = 15},
    {.kind = ROWLOCK_BOOL, .number = 1}};
#define OBJECT(what) ANSWER(.cells = what, .rows = 1, .width = 3)

static void test_install(void)
{
    const struct {
        const char *what;
        enum script_op op;
        struct script_answer answer;
        bool always; /* not only the first time */
        int result, installs;
        const char *calls, *text; /* NULL: any */
    } cases[] = {
        {"tables that are there stay as they are", OP_META, ANSWER(.class = RLK_DONE), false,
         ROWLOCK_OK, 0, "objects meta objects facts", NULL},
        {"a foreign table of our name, still there afterwards, is not made ours", OP_META,
         FAILS(RLK_SCHEMA), true, ROWLOCK_ESCHEMA, 1, NULL, "another program's"},
        {"a role that may not look may not install blindly", OP_META, FAILS(RLK_DENIED), false,
         ROWLOCK_EDENIED, 0, NULL, NULL},
        {"what somebody prepared for us is refused before any of it is read", OP_OBJECTS,
         OBJECT(TRAP), false, ROWLOCK_ESCHEMA, 0, "objects",
         "locks is not as rowlock makes it: has a trigger"},
        {"an answer of another shape about what is there is not taken for none", OP_OBJECTS,
         ANSWER(ROWS(2, rowlock_text("table locks"), rowlock_text("a trigger"))), false,
         ROWLOCK_ESCHEMA, 0, NULL, NULL},
        {"a routine with another body is named, and stays as it is", OP_OBJECTS, OBJECT(DRIFT),
         true, ROWLOCK_ESCHEMA, 0, NULL, "has an old body"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin();
        if (cases[i].always)
            script_always(cases[i].op, cases[i].answer);
        else
            script_next(cases[i].op, cases[i].answer);
        tap_is_int(rowlock_install(db), cases[i].result, "%s", cases[i].what);
        tap_is_int(script_count(OP_INSTALL), cases[i].installs, "installing is tried so often");
        if (cases[i].calls)
            tap_is_str(script_calls(), cases[i].calls, "these are the steps");
        if (cases[i].text)
            tap_ok(strstr(why(db), cases[i].text) != NULL, "the text says: %s", why(db));
    }
}

static void test_install_failing(void)
{
    begin();
    script_next(OP_META, FAILS(RLK_SCHEMA));
    script_next(OP_INSTALL, FAILS(RLK_CONTENTION));
    script_next(OP_INSTALL, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "a lost race and a lost answer are made good");
    tap_is_int(script_count(OP_INSTALL), 3, "by installing again, which is harmless");
    script_always(OP_INSTALL, FAILS(RLK_DENIED));
    script_always(OP_META, FAILS(RLK_SCHEMA));
    tap_is_int(rowlock_install(db), ROWLOCK_EDENIED, "a missing privilege is told");
}

static void test_install_over_another(void)
{
    begin();
    tap_is_int(rowlock_install(db), ROWLOCK_OK, "one installation");
    script_always(OP_META, ANSWER(.identity = "second"));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "another in its place is not ours to touch");
    tap_is_int(script_count(OP_INSTALL), 0, "nothing is done to it");
}

/* ---- upgrading: what is left of it where the tables are of our version */

/* Asked before anything is touched, and by the repair. */
static void begin_over_drift(void)
{
    script_home("postgres");
    begin();
    script_next(OP_OBJECTS, OBJECT(DRIFT));
    script_next(OP_OBJECTS, OBJECT(DRIFT));
}

static int count_steps(void *context, const rowlock_upgrade_step *step)
{
    int *seen = context;
    tap_is_str(step->what, "make routine rowlock_wake", "the step is told");
    seen[step->done]++;
    return 0;
}

static void test_upgrade(void)
{
    int seen[2] = {0};
    rowlock_upgrade_options options = *OPTIONS(upgrade, .each = count_steps, .context = seen);
    begin_over_drift();
    script_next(OP_INSTALL, FAILS(RLK_UNCERTAIN));
    tap_is_int(rowlock_upgrade(db, &options), ROWLOCK_OK, "a routine with another body");
    tap_is_int(script_count(OP_INSTALL), 2, "is made again, and after a lost answer once more");
    tap_ok(seen[0] == 0 && seen[1] == 1, "which is told once");
    begin_over_drift();
    options.dry_run = 1;
    tap_is_int(rowlock_upgrade(db, &options), ROWLOCK_OK, "a dry run");
    tap_is_int(script_count(OP_INSTALL), 0, "changes nothing");
    tap_is_int(seen[0], 1, "and tells what is to be done");
    begin_over_drift();
    options.dry_run = 0;
    options.deadline_ms = 1;
    script_always(OP_INSTALL, FAILS(RLK_CONTENTION));
    tap_is_int(rowlock_upgrade(db, &options), ROWLOCK_TIMEOUT,
               "a table that others keep locked is not waited for longer than was asked");
    tap_ok(strstr(why(db), "make routine rowlock_wake") != NULL, "the text says for what: %s",
           why(db));
    begin_over_drift();
    script_always(OP_INSTALL, FAILS(RLK_DENIED));
    tap_is_int(rowlock_upgrade(db, &options), ROWLOCK_EDENIED, "a missing privilege is told");
    script_home("sqlite");
}

/* ---- the doctor */

struct findings {
    const char *item; /* this one is kept as text */
    int count, bad, stop_after;
    char text[800];
};

static int note_finding(void *context, const rowlock_finding *finding)
{
    struct findings *f = context;
    f->count++;
    f->bad += finding->verdict == ROWLOCK_BAD;
    if (f->item && strcmp(finding->item, f->item) == 0)
        snprintf(f->text, sizeof f->text, "%d %s %s", (int)finding->verdict, finding->value,
                 finding->advice);
    return f->stop_after && f->count == f->stop_after;
}

static void test_check(void)
{
    const struct {
        const char *what;
        enum script_op op;
        struct script_answer answer;
        rowlock_verdict worst;
        const char *item, *begins, *advice; /* one of them: verdict, value, advice */
    } cases[] = {
        {"a clock two hours ahead", OP_FACTS, ANSWER(.left_us = 7200000000), ROWLOCK_WARNING,
         "clock", "1 +7", ""},
        {"replication as it should be", OP_META, ANSWER(.class = RLK_DONE), ROWLOCK_FINE,
         "replication", "0 0 late ", ""},
        {"replicas that lag", OP_FACTS, ANSWER(.rows = 1), ROWLOCK_WARNING, "replication",
         "1 1 late ", "raise-tokens"},
        {"replicas that are not seen", OP_FACTS, ANSWER(.rows = 2), ROWLOCK_WARNING, "replication",
         "1 unknown ", ""},
        {"a read-only server", OP_FACTS, ANSWER(.missing = true), ROWLOCK_BAD, "writable", "2 no ",
         ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct findings f = {.item = cases[i].item};
        rowlock_verdict worst = (rowlock_verdict)77;
        begin();
        script_next(cases[i].op, cases[i].answer);
        tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a look at %s",
                   cases[i].what);
        tap_is_int(worst, cases[i].worst, "%s: the verdict", cases[i].what);
        tap_is_int(f.bad, worst == ROWLOCK_BAD, "%s: findings that are bad", cases[i].what);
        tap_ok(strncmp(f.text, cases[i].begins, strlen(cases[i].begins)) == 0 &&
                   strstr(f.text, cases[i].advice),
               "%s: it is told: %s", cases[i].what, f.text);
    }
}

static void test_check_ends(void)
{
    struct findings f = {0};
    rowlock_verdict worst = ROWLOCK_FINE;
    begin();
    tap_is_int(rowlock_check(db, note_finding, &f, NULL), ROWLOCK_OK, "a look at a sound server");
    tap_ok(f.count >= 8, "has %d findings", f.count);
    begin();
    script_next(OP_OBJECTS, OBJECT(TRAP));
    tap_is_int(rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "a look at a trap");
    tap_is_str(script_calls(), "objects", "goes no further");
    script_next(OP_OBJECTS, OBJECT(DRIFT));
    tap_is_int(rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "a look at an old routine");
    tap_is_int(script_count(OP_FACTS), 1, "goes on to everything else");
    f = (struct findings){.stop_after = 2};
    script_next(OP_FACTS, ANSWER(.left_us = 7200000000));
    tap_is_int(rowlock_check(db, note_finding, &f, &worst), ROWLOCK_OK, "a report may be stopped");
    tap_is_int(f.count, 2, "after any finding");
    tap_is_int(worst, ROWLOCK_WARNING, "the verdict is of all of them");
    worst = (rowlock_verdict)77;
    script_always(OP_META, FAILS(RLK_UNSENT));
    tap_is_int(rowlock_check(db, NULL, NULL, &worst), ROWLOCK_ECONN,
               "a server that cannot be reached is not looked at");
    tap_is_int((int)worst, 77, "and no verdict is given");
}

int main(void)
{
    script_home("sqlite");
    test_unusable(ANSWER(.missing = true), "not completely installed", "rowlock install");
    test_unusable(ANSWER(.version = -1), "never written", "no rowlock has written");
    test_install();
    test_install_failing();
    test_install_over_another();
    test_upgrade();
    test_check();
    test_check_ends();
    rowlock_db_close(db);
    return tap_done();
}
