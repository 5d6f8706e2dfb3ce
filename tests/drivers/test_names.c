/* SPDX-License-Identifier: MIT
 *
 * What may be a name, how texts are copied and cut, and what things are called. No database is
 * asked. How long a name may be is in lock/names.c. */
#include "base/ident.h"
#include "backend_script.h"

static int opens(rowlock_db *db, const char *name)
{
    OWNED(lock) rowlock_lock *lock = (rowlock_lock *)db;
    int result = rowlock_lock_open(db, name, &lock);
    if (result == ROWLOCK_OK ? !lock : lock != NULL)
        tap_ok(false, "there is a handle if and only if it was opened");
    if (result == ROWLOCK_OK && strcmp(rowlock_lock_name(lock), name) != 0)
        tap_ok(false, "a name is kept byte by byte");
    return result;
}

static void test_utf8(rowlock_db *db)
{
    static const struct {
        const char *bytes;
        bool good;
        const char *what;
    } cases[] = {
        {"nightly", true, "letters"},
        {" ", true, "a blank"},
        {"a\nb\x01\x7F", true, "control characters"},
        {"'; DROP TABLE x --\"`\\%_", true, "what looks like SQL"},
        {"\xC2\x80", true, "U+0080, the lowest of two bytes"},
        {"\xDF\xBF", true, "U+07FF, the highest of two bytes"},
        {"\xE0\xA0\x80", true, "U+0800, the lowest of three bytes"},
        {"\xED\x9F\xBF", true, "U+D7FF, before the surrogates"},
        {"\xEE\x80\x80", true, "U+E000, behind the surrogates"},
        {"\xEF\xBF\xBF", true, "U+FFFF"},
        {"\xF0\x90\x80\x80", true, "U+10000, the lowest of four bytes"},
        {"\xF4\x8F\xBF\xBF", true, "U+10FFFF, the highest of all"},
        {"\x80", false, "a continuation alone"},
        {"a\xBF", false, "a continuation behind a letter"},
        {"\xC0\x80", false, "an overlong U+0000"},
        {"\xC1\xBF", false, "an overlong letter of two bytes"},
        {"\xE0\x80\xAF", false, "an overlong slash of three bytes"},
        {"\xE0\x9F\xBF", false, "an overlong U+07FF"},
        {"\xF0\x80\x80\xAF", false, "an overlong slash of four bytes"},
        {"\xF0\x8F\xBF\xBF", false, "an overlong U+FFFF"},
        {"\xED\xA0\x80", false, "the lowest surrogate"},
        {"\xED\xBF\xBF", false, "the highest surrogate"},
        {"\xF4\x90\x80\x80", false, "U+110000"},
        {"\xF5\x80\x80\x80", false, "a first byte beyond all characters"},
        {"\xF8\x88\x80\x80\x80", false, "five bytes"},
        {"\xFE", false, "0xFE"},
        {"\xFF", false, "0xFF"},
        {"\xC3", false, "two bytes cut after the first"},
        {"\xC3(", false, "two bytes with a wrong second"},
        {"\xE2\x82", false, "three bytes cut after the second"},
        {"\xE2(\x82", false, "three bytes with a wrong second"},
        {"\xE2\x82(", false, "three bytes with a wrong third"},
        {"\xF0\x9F\x92", false, "four bytes cut after the third"},
        {"\xF0\x9F\x92(", false, "four bytes with a wrong fourth"},
        {"\xE9 latin-1", false, "Latin-1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        tap_is_int(opens(db, cases[i].bytes), cases[i].good ? ROWLOCK_OK : ROWLOCK_EINVAL, "%s: %s",
                   cases[i].what, cases[i].good ? "is a name" : "is none");
}

/* A long plain text is looked at several bytes at a time. */
static void test_utf8_everywhere(void)
{
    static const char bad[] = {'\0', '\x80', '\xC3', '\xFF'};
    int accepted = 0, refused = 0;
    for (size_t length = 1; length <= 27; length++)
        for (size_t at = 0; at < length; at++)
            for (size_t i = 0; i < sizeof bad; i++) {
                char text[27];
                memset(text, at % 2 ? 1 : 0x7F, length);
                refused += !rlk_is_utf8(text, length);
                text[at] = bad[i];
                accepted += rlk_is_utf8(text, length);
            }
    tap_is_int(refused, 0, "plain texts of 1 to 27 bytes are UTF-8");
    tap_is_int(accepted, 0, "and are not with one bad byte, wherever it is");
}

static void test_names_elsewhere(rowlock_db *db)
{
    int64_t token = 77;
    tap_is_int(rowlock_lock_open(db, "nightly", NULL), ROWLOCK_EINVAL,
               "there has to be a place for the handle");
    tap_is_int(rowlock_break(db, "\xFF", 0, NULL), ROWLOCK_EINVAL, "break takes names only");
    tap_is_int(rowlock_break(db, NULL, 0, NULL), ROWLOCK_EINVAL, "and one at least");
    tap_is_int(rowlock_break(db, "x", -1, NULL), ROWLOCK_EINVAL, "and no token below nought");
    tap_is_int(rowlock_last_grant(db, "", &token, NULL), ROWLOCK_EINVAL, "so does last grant");
    tap_is_int(rowlock_list(db, "x", NULL, NULL), ROWLOCK_EINVAL, "list needs somebody to tell");
    tap_is_str(script_calls(), "", "none of these asks the database");
    script_next(OP_LAST, ANSWER(.missing = true));
    tap_is_int(rowlock_last_grant(db, "x", &token, NULL), ROWLOCK_NONE, "never granted is NONE");
    tap_is_int(token, 77, "and tells no token");
    script_next(OP_LAST, ANSWER(.token = 5));
    tap_is_int(rowlock_last_grant(db, "x", &token, NULL), ROWLOCK_OK, "granted before");
    tap_is_int(token, 5, "tells its token");
}

static void test_copying(void)
{
    static const struct {
        const char *in;
        size_t len, cap;
        const char *out;
    } cases[] = {
        {"abc", 3, 4, "abc"},
        {"abc", 3, 3, "ab"},
        {"abc", 2, 9, "ab"},
        {"abc", 0, 9, ""},
        {"abc", 3, 1, ""},
        {"a\xC3\xB6", 3, 4, "a\xC3\xB6"},
        {"a\xC3\xB6", 3, 3, "a"},
        {"\xF0\x9F\x92\xA9", 4, 5, "\xF0\x9F\x92\xA9"},
        {"\xF0\x9F\x92\xA9", 4, 4, ""},
        {"x\xF0\x9F\x92\xA9y", 6, 4, "x"},
        {"\x80\x80\x80\x80", 4, 3, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[16];
        memset(out, 0x5A, sizeof out);
        rlk_copy_text(out, cases[i].cap, cases[i].in, cases[i].len);
        tap_is_str(out, cases[i].out, "text %d is cut where a character ends", (int)i);
        tap_is_int(out[cases[i].cap], 0x5A, "and not written beyond its room");
    }
}

static void test_diag(void)
{
    struct rlk_call call = {0};
    rlk_diag_set(&call, 7, "40001", "ERROR:\tsomething\r\nhappened\x7F\n");
    tap_is_str(call.text, "ERROR: something happened", "a message of many lines becomes one");
    tap_is_str(call.sqlstate, "40001", "with the SQLSTATE");
    tap_is_int(call.native, 7, "and number");
    rlk_diag_set(&call, 0, NULL, NULL);
    tap_ok(!call.text[0] && !call.sqlstate[0] && !call.native, "nothing is nothing");
    rlk_diag_set(&call, 0, "too long for it", "  \n ");
    tap_is_str(call.sqlstate, "too l", "a longer state is cut");
    tap_is_str(call.text, "", "blanks alone are nothing");
    char text[1025];
    for (size_t i = 0; i < 512; i++)
        memcpy(text + 2 * i, "\xC3\xB6", 2);
    text[1024] = '\0';
    rlk_diag_set(&call, 0, NULL, text);
    tap_is_int((int)strlen(call.text), 510, "a long message is cut where a character ends");
}

/* The longest words that can come together fit. */
static void test_long_errors(rowlock_db *db)
{
    char name[256], words[600];
    memset(name, 'n', 255);
    name[255] = '\0';
    memset(words, 'w', sizeof words);
    words[sizeof words - 1] = '\0';
    OWNED(lock) rowlock_lock *lock = must_lock(db, name);
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_STANDBY, .text = words));
    tap_is_int(rowlock_acquire(lock, NULL), ROWLOCK_EREADONLY, "the longest error");
    rowlock_error err = error_of(db);
    tap_ok(strstr(err.text, "use a server that takes writes") != NULL, "still says what to do");
    tap_ok(strncmp(err.action, "acquire lock 'nnn", 17) == 0 &&
               err.action[strlen(err.action) - 1] == '\'',
           "and names the lock in full");
}

static void test_result_names(void)
{
    static const struct {
        int result;
        const char *name;
    } all[] = {
        {0, "ROWLOCK_OK"},        {1, "ROWLOCK_BUSY"},          {2, "ROWLOCK_TIMEOUT"},
        {3, "ROWLOCK_LOST"},      {4, "ROWLOCK_LAPSED"},        {9, "ROWLOCK_NONE"},
        {7, "ROWLOCK_CANCELLED"}, {20, "ROWLOCK_STALE"},        {21, "ROWLOCK_CONFLICT"},
        {5, "ROWLOCK_MISMATCH"},  {6, "ROWLOCK_DEADLOCK"},      {8, "ROWLOCK_PENDING"},
        {22, "ROWLOCK_GONE"},     {23, "ROWLOCK_EXISTS"},       {24, "ROWLOCK_UNDONE"},
        {26, "ROWLOCK_DONE"},     {25, "ROWLOCK_VIOLATION"},    {-1, "ROWLOCK_EUNCERTAIN"},
        {-2, "ROWLOCK_ECONN"},    {-3, "ROWLOCK_ESCHEMA"},      {-4, "ROWLOCK_EINVAL"},
        {-5, "ROWLOCK_ENOMEM"},   {-6, "ROWLOCK_EREADONLY"},    {-7, "ROWLOCK_EDENIED"},
        {-8, "ROWLOCK_EMISUSE"},  {-9, "ROWLOCK_EUNSUPPORTED"}, {-10, "ROWLOCK_ESERVER"},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        tap_is_str(rowlock_result_name(all[i].result), all[i].name, "%d is %s, for ever",
                   all[i].result, all[i].name);
    tap_is_str(rowlock_result_name(27), "unknown result", "what is no result has a name too");
    tap_is_str(rowlock_result_name(-11), "unknown result", "on both sides");
    tap_is_str(
        rowlock_version(),
        textf("%d.%d.%d", ROWLOCK_VERSION_MAJOR, ROWLOCK_VERSION_MINOR, ROWLOCK_VERSION_PATCH),
        "the library's version is the header's");
}

static int lines;
static char last_line[1000];

static void note_line(void *context, rowlock_log_level level, const char *line)
{
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static void test_log(rowlock_db *db)
{
    rowlock_lock *lock = must_lock(db, "logged");
    rowlock_log_set(note_line, NULL, ROWLOCK_LOG_DEBUG);
    int got = rowlock_acquire(lock, NULL);
    tap_ok(got == ROWLOCK_OK && lines > 0 && strstr(last_line, "logged"),
           "a program that wants all lines is told, with the lock's name");
    tap_ok(strstr(last_line, rowlock_lock_owner(lock)) == NULL, "but not the owner");
    lines = 0;
    rowlock_log_set(note_line, NULL, ROWLOCK_LOG_WARNING);
    got = rowlock_release(lock) | rowlock_acquire(lock, NULL);
    tap_ok(got == ROWLOCK_OK && lines == 0,
           "a program that wants warnings only is not told of grants");
    script_next(OP_RENEW, ANSWER(.missing = true));
    got = rowlock_renew(lock, 0);
    tap_ok(got == ROWLOCK_LOST && lines == 1, "but of losses");
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_DEBUG);
    rowlock_lock_close(lock);
    tap_is_int(lines, 1, "a program that wants no lines is told nothing");
}

int main(void)
{
    script_reset();
    OWNED(db) rowlock_db *db = script_open(NULL);
    test_utf8(db);
    test_utf8_everywhere();
    test_names_elsewhere(db);
    test_copying();
    test_diag();
    test_long_errors(db);
    test_result_names();
    test_log(db);
    return tap_done();
}
