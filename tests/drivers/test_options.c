/* SPDX-License-Identifier: MIT
 *
 * Options structs: defaults, limits, and structs of older and newer headers. Names are in
 * test_names.c. */
#include "backend_script.h"

#define DAY_MS INT64_C(86400000)

static rowlock_error err;

static int opens(const rowlock_db_options *options)
{
    OWNED(db) rowlock_db *db = NULL;
    err = (rowlock_error)ROWLOCK_ERROR_INIT;
    int result = rowlock_db_open("sqlite:/x", options, &db, &err);
    if (result != ROWLOCK_OK && err.text[0] == '\0')
        tap_ok(false, "a refusal has a text");
    return result;
}

static void test_db_defaults(void)
{
    OWNED(db) rowlock_db *db = NULL;
    rowlock_db_options options = ROWLOCK_DB_OPTIONS_INIT;
    script_reset();
    tap_is_int(rowlock_db_open("sqlite:/x", &options, &db, NULL), ROWLOCK_OK,
               "options as they come");
    tap_is_int(db->target.connect_ms, 5000, "connecting may take five seconds");
    tap_is_int(db->statement_us, 10000000, "a statement ten");
    tap_is_int(db->target.timeout_ms, 10000, "of which the driver is told");
    tap_is_int(db->reconnect_us, 5000000, "reconnecting five");
    tap_is_str(db->texts.prefix, "rowlock_", "tables begin with rowlock_");
    tap_is_str(db->texts.schema, "main", "in the place that the driver names");
    tap_is_str(db->owner, "", "owners are each lock's own");
    tap_ok(db->program[0] != '\0' && strstr(db->program, "test_options"),
           "the program is this program: %s", db->program);
}

static void test_db_limits(void)
{
    static const struct {
        rowlock_db_options options;
        int result;
        const char *what;
    } cases[] = {
        {{.connect_timeout_ms = 1}, ROWLOCK_OK, "a millisecond to connect"},
        {{.connect_timeout_ms = 3600000}, ROWLOCK_OK, "an hour to connect"},
        {{.connect_timeout_ms = 3600001}, ROWLOCK_EINVAL, "more than an hour to connect"},
        {{.connect_timeout_ms = -1}, ROWLOCK_EINVAL, "less than no time to connect"},
        {{.statement_timeout_ms = 1}, ROWLOCK_OK, "a millisecond for a statement"},
        {{.statement_timeout_ms = 3600001}, ROWLOCK_EINVAL, "more than an hour for a statement"},
        {{.statement_timeout_ms = -1}, ROWLOCK_EINVAL, "less than no time for a statement"},
        {{.reconnect_ms = 3600000}, ROWLOCK_OK, "an hour to reconnect"},
        {{.reconnect_ms = 3600001}, ROWLOCK_EINVAL, "more than an hour to reconnect"},
        {{.reconnect_ms = INT64_MIN}, ROWLOCK_OK, "never to reconnect"},
        {{.owner = ""}, ROWLOCK_EINVAL, "an empty owner"},
        {{.owner = "\xFF"}, ROWLOCK_EINVAL, "an owner that is no UTF-8"},
        {{.program = ""}, ROWLOCK_OK, "an empty program"},
        {{.program = "\xC3"}, ROWLOCK_EINVAL, "a program that is no UTF-8"},
        {{.schema = ""}, ROWLOCK_EINVAL, "an empty schema"},
        {{.schema = "a b;c"}, ROWLOCK_OK, "a schema with blanks"},
        {{.schema = "a\"b"}, ROWLOCK_EINVAL, "a schema with a quote"},
        {{.schema = "a`b"}, ROWLOCK_EINVAL, "a schema with a backquote"},
        {{.schema = "a\\b"}, ROWLOCK_EINVAL, "a schema with a backslash"},
        {{.schema = "a'b"}, ROWLOCK_EINVAL, "a schema with an apostrophe"},
        {{.schema = "a\nb"}, ROWLOCK_EINVAL, "a schema of two lines"},
        {{.schema = "123456789012345678901234567890123456789012345678901234567890123"},
         ROWLOCK_OK,
         "a schema of 63 bytes"},
        {{.schema = "1234567890123456789012345678901234567890123456789012345678901234"},
         ROWLOCK_EINVAL,
         "a schema of 64 bytes"},
        {{.prefix = ""}, ROWLOCK_EINVAL, "an empty prefix"},
        {{.prefix = "Z_9"}, ROWLOCK_OK, "a prefix of letters, digits, underscores"},
        {{.prefix = "a-b"}, ROWLOCK_EINVAL, "a prefix with a hyphen"},
        {{.prefix = "a b"}, ROWLOCK_EINVAL, "a prefix with a blank"},
        {{.prefix = "a'b"}, ROWLOCK_EINVAL, "a prefix with an apostrophe"},
        {{.prefix = "a\"b"}, ROWLOCK_EINVAL, "a prefix with a quote"},
        {{.prefix = "a`b"}, ROWLOCK_EINVAL, "a prefix with a backquote"},
        {{.prefix = "a;b"}, ROWLOCK_EINVAL, "a prefix with a semicolon"},
        {{.prefix = "a.b"}, ROWLOCK_EINVAL, "a prefix with a dot"},
        {{.prefix = "l\xC3\xB6"}, ROWLOCK_EINVAL, "a prefix with an umlaut"},
        {{.prefix = "12345678901234567890123456789012"}, ROWLOCK_OK, "a prefix of 32 bytes"},
        {{.prefix = "123456789012345678901234567890123"}, ROWLOCK_EINVAL, "a prefix of 33 bytes"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rowlock_db_options options = cases[i].options;
        options.size = sizeof options;
        script_reset();
        tap_is_int(opens(&options), cases[i].result, "%s: %s", cases[i].what,
                   rowlock_result_name(cases[i].result));
        if (cases[i].result != ROWLOCK_OK)
            tap_is_int(script_count(OP_OPEN), 0, "no driver is asked");
    }
}

static void test_db_url_parameters(void)
{
    rowlock_db *db = NULL;
    rowlock_db_options options = *OPTIONS(db, .schema = "one", .prefix = "one_");
    script_reset();
    tap_is_int(
        rowlock_db_open("sqlite:/x?rowlock_schema=two&rowlock_prefix=two_", &options, &db, NULL),
        ROWLOCK_OK, "a URL with parameters of ours");
    tap_is_str(db->texts.schema, "two", "its schema counts before the options'");
    tap_is_str(db->texts.prefix, "two_", "so does its prefix");
    tap_is_str(db->target.url, "sqlite:/x", "the driver does not see them");
    rowlock_db_close(db);
    tap_is_int(rowlock_db_open("sqlite:/x?rowlock_prefix=a-b", NULL, &db, NULL), ROWLOCK_EINVAL,
               "what options may not say a URL may not either");
}

static void test_sizes(void)
{
    struct {
        rowlock_db_options known;
        int64_t newer[2];
    } larger = {.known = ROWLOCK_DB_OPTIONS_INIT};
    rowlock_db_options options = {.size = 0};
    script_reset();
    tap_is_int(opens(&options), ROWLOCK_EINVAL, "a struct without a size is refused");
    tap_ok(strstr(err.text, "no size") != NULL, "since it has none");
    options.size = sizeof options.size - 1;
    tap_is_int(opens(&options), ROWLOCK_EINVAL, "so is one smaller than its size");
    options.size = 4097;
    tap_is_int(opens(&options), ROWLOCK_EINVAL, "so is one of an unknown size");
    tap_ok(strstr(err.text, "4097") != NULL, "which is named");
    options.size = sizeof options.size;
    options.owner = "\xFF";
    tap_is_int(opens(&options), ROWLOCK_OK, "of an older struct only what it has is read");
    larger.known.size = sizeof larger;
    tap_is_int(opens(&larger.known), ROWLOCK_OK,
               "a newer struct that asks for nothing new is fine");
    larger.newer[1] = INT64_C(1) << 56;
    tap_is_int(opens(&larger.known), ROWLOCK_EINVAL, "one that asks for something new is refused");
}

static void test_short_error(void)
{
    struct {
        rowlock_error err;
        char beyond[64];
    } room;
    rowlock_db *db = NULL;
    memset(&room, 0x5A, sizeof room);
    room.err.size = offsetof(rowlock_error, action);
    tap_is_int(rowlock_db_open("nonsense", NULL, &db, &room.err), ROWLOCK_EINVAL, "no URL");
    tap_is_int(room.err.code, ROWLOCK_EINVAL, "an older error struct gets what it has room for");
    tap_is_int(room.err.action[0], 0x5A, "and no more");
    tap_is_int((int)room.err.size, (int)offsetof(rowlock_error, action), "its size stays");
    room.err.size = sizeof room;
    tap_is_int(rowlock_db_open("nonsense", NULL, &db, &room.err), ROWLOCK_EINVAL, "no URL");
    tap_ok(room.beyond[0] == 0x5A && room.err.text[0], "a newer one gets what we know");
    room.err.size = 0;
    room.err.code = 77;
    tap_is_int(rowlock_db_open("nonsense", NULL, &db, &room.err), ROWLOCK_EINVAL, "no URL");
    tap_is_int(room.err.code, 77, "one without a size gets nothing");
}

/* ---- of an acquire: which are refused is in options.c */

static void test_refused_acquire(void)
{
    script_reset();
    OWNED(db) rowlock_db *db = script_open(NULL);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
    tap_is_int(rowlock_acquire(lock, OPTIONS(acquire, .ttl_ms = 99)), ROWLOCK_EINVAL,
               "a refused acquire");
    tap_is_str(script_calls(), "", "sends nothing");
}

static void test_sweep_limits(void)
{
    static const struct {
        int64_t older_ms, idle_ms;
        int32_t batch;
        int result;
    } cases[] = {
        {0, 0, 0, ROWLOCK_OK},
        {-1, 0, 0, ROWLOCK_EINVAL},
        {36600 * DAY_MS, 36600 * DAY_MS, 0, ROWLOCK_OK},
        {36600 * DAY_MS + 1, 0, 0, ROWLOCK_EINVAL},
        {0, 36600 * DAY_MS + 1, 0, ROWLOCK_EINVAL},
        {0, -1, 0, ROWLOCK_OK},
        {0, INT64_MIN, 0, ROWLOCK_OK},
        {0, 0, 1, ROWLOCK_OK},
        {0, 0, 10000, ROWLOCK_OK},
        {0, 0, 10001, ROWLOCK_EINVAL},
        {0, 0, -1, ROWLOCK_EINVAL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        script_reset();
        OWNED(db) rowlock_db *db = script_open(NULL);
        tap_is_int(rowlock_sweep(db,
                                 OPTIONS(sweep, .older_than_ms = cases[i].older_ms,
                                         .idle_ms = cases[i].idle_ms, .batch = cases[i].batch),
                                 NULL),
                   cases[i].result, "older %lld, idle %lld, batch %d: %s",
                   (long long)cases[i].older_ms, (long long)cases[i].idle_ms, (int)cases[i].batch,
                   rowlock_result_name(cases[i].result));
        if (cases[i].result == ROWLOCK_OK)
            tap_is_int(script_count(OP_FOLD), cases[i].idle_ms >= 0,
                       "counters are folded unless never is asked for");
    }
}

static int stop(void *context, const rowlock_grant *grant)
{
    return 1;
}

static void test_sweep_defaults(void)
{
    script_reset();
    OWNED(db) rowlock_db *db = script_open(NULL);
    tap_is_int(rowlock_sweep(db, NULL, NULL), ROWLOCK_OK, "a sweep as it comes");
    tap_is_int(script.sweep_batch, 500, "takes 500 rows at a time");
    script_always(OP_SWEEP, ANSWER(.rows = 5));
    script_calls();
    rowlock_sweep_options options = *OPTIONS(sweep, .batch = 5, .each = stop);
    tap_is_int(rowlock_sweep(db, &options, NULL), ROWLOCK_OK, "a sweep that is told to stop");
    tap_is_str(script_calls(), "sweep", "stops after its batch, and folds nothing");
    options.dry_run = 1;
    options.each = NULL;
    script_always(OP_SWEEP, ANSWER(.rows = 0));
    script_always(OP_FOLD, ANSWER(.rows = 5));
    tap_is_int(rowlock_sweep(db, &options, NULL), ROWLOCK_OK, "a dry run that would go on");
    tap_is_str(script_calls(), "sweep fold",
               "asks once: it would be told the same for ever; and removes no tickets");
}

int main(void)
{
    test_db_defaults();
    test_db_limits();
    test_db_url_parameters();
    test_sizes();
    test_short_error();
    test_refused_acquire();
    test_sweep_limits();
    test_sweep_defaults();
    return tap_done();
}
