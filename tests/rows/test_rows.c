/* SPDX-License-Identifier: MIT
 *
 * What core makes of the answers to changes of rows: those that no database gives on demand. What
 * databases answer is in the contract tests, transactions are in test_frames.c. */
#include "backend_script.h"

enum { ROWS_MAX = 8 };

static rowlock_db *db;
static rowlock_table *table;

/* "adopted mysql": the application's connection, in its transaction. */
static void begin(const char *dialect)
{
    bool adopted = strncmp(dialect, "adopted ", 8) == 0;
    static const char *const key[] = {"id", NULL}, *const columns[] = {"price", NULL};
    script_reset();
    script_dialect(adopted ? dialect + 8 : dialect);
    script_jump();
    db = adopted ? script_adopt() : script_open(NULL);
    struct about about =
        *ABOUT(.name = "prices", .key = key, .columns = columns, .first_version = 1);
    if (open_table(db, &about, &table) != ROWLOCK_OK)
        tap_ok(false, "a table is opened: %s", why(db));
    script_calls();
    script.inside = adopted;
}

static void end(void)
{
    rowlock_table_close(table);
    rowlock_db_close(db);
}

/* Rows 1, 2, … of version 7, 8, …, as they were read. */
static rowlock_change changes[ROWS_MAX];
static rowlock_value keys[ROWS_MAX], values[ROWS_MAX];

static void prepare(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        keys[i] = rowlock_int((int64_t)i + 1);
        values[i] = rowlock_decimal("19.90");
        changes[i] =
            (rowlock_change){.key = &keys[i], .values = &values[i], .version = (int64_t)i + 7};
    }
}

/* One call for the first rows, of which it says what it returns. */
#define CALL(name, result)        \
    static int name(size_t count) \
    {                             \
        prepare(count);           \
        return result;            \
    }
CALL(update, rowlock_update(table, changes, count, NULL))
CALL(insert, rowlock_insert(table, changes, count, NULL))
CALL(remove_them, rowlock_remove(table, changes, count, NULL))
CALL(update_all_or_nothing,
     rowlock_update(table, changes, count, OPTIONS(change, .all_or_nothing = 1)))
CALL(update_in_no_chunks, rowlock_update(table, changes, count, OPTIONS(change, .chunk = -1)))

static const struct {
    const char *word;
    struct script_answer answer;
} answers[] = {
    {"lost", {.class = RLK_UNCERTAIN}},
    {"unsent", {.class = RLK_UNSENT}},
    {"busy", {.class = RLK_CONTENTION}},
    {"late", {.class = RLK_CONTENTION, .late = true}},
    {"over", {.class = RLK_CONTENTION, .tx_over = true}},
    {"denied", {.class = RLK_DENIED}},
    {"refused", {.class = RLK_REFUSED}},
    {"check", {.class = RLK_VIOLATION, .constraint = ROWLOCK_CONSTRAINT_CHECK}},
    {"unique",
     {.class = RLK_VIOLATION,
      .native = 1062,
      .sqlstate = "23000",
      .constraint = ROWLOCK_CONSTRAINT_UNIQUE}},
    {"none", {.missing = true}},
};

/* The cells of all answers of a play. */
static rowlock_value cells[100];
static char marks[20][10];
static size_t cell_count, mark_count;

static rowlock_value cell_of(const char *word)
{
    char *end;
    long long number = strtoll(word, &end, 10);
    if (!*end)
        return rowlock_int(number);
    if (strcmp(word, "null") == 0)
        return rowlock_null();
    return rowlock_text(strcpy(marks[mark_count++], word));
}

/* Rows are cut by "/", their cells by ":". */
static struct script_answer rows_of(char *text)
{
    struct script_answer answer = {.cells = &cells[cell_count]};
    char *next_row, *next_cell;
    for (char *row = strtok_r(text, "/", &next_row); row; row = strtok_r(NULL, "/", &next_row)) {
        answer.rows++;
        answer.width = 0;
        for (char *cell = strtok_r(row, ":", &next_cell); cell;
             cell = strtok_r(NULL, ":", &next_cell), answer.width++)
            cells[cell_count++] = cell_of(cell);
    }
    return answer;
}

static struct script_answer answer_of(char *word)
{
    for (size_t i = 0; i < COUNT(answers); i++)
        if (strcmp(word, answers[i].word) == 0) {
            struct script_answer answer = answers[i].answer;
            answer.text = "the server's own words";
            return answer;
        }
    return word[0] == '#' ? ANSWER(.changed = atoi(word + 1)) : rows_of(word);
}

/* The operation of a statement about rows, OP_OPEN, or OP_COUNT. */
static enum script_op op_of(const char *word)
{
    for (int step = RLK_STEP_ROW_UPDATE; step <= RLK_STEP_ROWS_MARKED; step++)
        if (strcmp(word, rlk_steps[step].name) == 0)
            return (enum script_op)(OP_ROW_UPDATE + step - RLK_STEP_ROW_UPDATE);
    return strcmp(word, "open") == 0 ? OP_OPEN : OP_COUNT;
}

/* A step and, behind "=", its answer; with a "!" at the end the answer to each such step. */
static void answer_step(const char *word, char *answer)
{
    char *always = answer ? strchr(answer, '!') : NULL;
    if (always)
        *always = '\0';
    if (always)
        script_always(op_of(word), answer_of(answer));
    else if (answer)
        script_next(op_of(word), answer_of(answer));
    else if (op_of(word) != OP_COUNT && op_of(word) != OP_OPEN)
        script_next(op_of(word), ANSWER(.class = RLK_DONE));
}

static const char *short_name(int result)
{
    return rowlock_result_name(result) + strlen("ROWLOCK_");
}

/* One call for so many rows, on a new connection. */
struct play {
    const char *dialect; /* as begin() takes it */
    int (*call)(size_t count);
    size_t count;
    /* The statements that are sent, in their order, each with its answer behind "=": a word of
     * answers[], "#2" for two rows changed, "1:8/2:9" for two rows of two cells. Without an answer
     * it goes well. After a "*" there are others. */
    const char *steps;
    /* What becomes of it: the result of the call, then the result and version of each row. */
    const char *want;
    const char *what;
    const char *says; /* is in the error, see error_text(); "!word" is not in it; NULL: anything */
};

static const char *error_text(void)
{
    static char text[1000];
    const rowlock_error *error = &db->error;
    snprintf(text, sizeof text, "%s; transaction_over %d, row %lld, %s", why(db),
             error->transaction_over, (long long)error->row,
             error->constraint == ROWLOCK_CONSTRAINT_UNIQUE  ? "UNIQUE"
             : error->constraint == ROWLOCK_CONSTRAINT_CHECK ? "CHECK"
                                                             : "");
    return text;
}

static void perform(const struct play *play)
{
    char words[400], sent[400] = "", got[400], *next;
    bool all = true;
    cell_count = mark_count = 0;
    snprintf(words, sizeof words, "%s", play->steps);
    for (char *word = strtok_r(words, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        char *answer = strchr(word, '=');
        if (answer)
            *answer++ = '\0';
        answer_step(word, answer);
        all = all && strcmp(word, "*") != 0;
        snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%s", *sent ? " " : "", word);
    }
    int used = snprintf(got, sizeof got, "%s:", short_name(play->call(play->count)));
    for (size_t i = 0; i < play->count; i++)
        used += snprintf(got + used, sizeof got - (size_t)used, "%s %s %lld", i ? "," : "",
                         short_name(changes[i].result), (long long)changes[i].current);
    tap_is_str(got, play->want, "%s", play->what);
    if (strncmp(got, "EUNCERTAIN:", 11) == 0)
        tap_is_int(db->error.retryable, 0, "%s: what was perhaps done is not done again",
                   play->what);
    if (all)
        tap_is_str(script_calls(), sent, "%s: what is sent", play->what);
    if (play->says) {
        bool found = strstr(error_text(), play->says + (play->says[0] == '!')) != NULL;
        tap_ok(found == (play->says[0] != '!'), "%s: it says \"%s\": %s", play->what, play->says,
               error_text());
    }
}

/* 'a' and 'A' where case does not matter. */
static int update_two_keys_of_one_row(size_t count)
{
    prepare(count);
    changes[1].version = 7;
    return rowlock_update(table, changes, count, NULL);
}

static int update_twice(size_t count)
{
    prepare(count);
    keys[count - 1] = keys[0];
    return rowlock_update(table, changes, count, NULL);
}

#define PLAY(dialect, call, count, steps, want, what) \
    SAYS(dialect, call, count, steps, want, NULL, what)
#define SAYS(dialect, call, count, steps, want, says, what) \
    {                                                       \
        dialect, call, count, steps, want, what, says       \
    }

static const struct play plays[] = {
    SAYS("postgres", update, 1, "row_update=lost open row_update=none row_read=1:1:8",
         "EUNCERTAIN: EUNCERTAIN 8", "EUNCERTAIN",
         "a lost answer, and then the row has another version: ours, or another's"),
    PLAY("postgres", remove_them, 1, "row_remove=lost open row_remove=none row_read",
         "EUNCERTAIN: EUNCERTAIN 0",
         "a row that is not there any more: removed by us, or by another"),
    PLAY("postgres", insert, 1, "row_insert=lost open row_insert=none row_read=1:1:1",
         "EUNCERTAIN: EUNCERTAIN 1", "a row that is there: ours, or another's"),
    PLAY("postgres", update, 1, "row_update=lost open row_update", "OK: OK 8",
         "a lost answer, and the row is as it was: the second sending changes it"),
    SAYS("postgres", update, 1, "row_update=unsent open row_update=none row_read=1:1:9",
         "STALE: STALE 9", "row 1 has version 9, not 7",
         "what was certainly not sent leaves no doubt"),
    PLAY("postgres", update, 1, "row_update=lost row_update=busy! *", "EUNCERTAIN: EUNCERTAIN 0",
         "a lost answer, and then lost races only"),
    PLAY("postgres", update, 1, "row_update=lost open=unsent! *", "EUNCERTAIN: EUNCERTAIN 0",
         "a lost answer that cannot be asked for again"),
    PLAY("postgres", update, 1, "row_update=unsent open=unsent! *", "ECONN: CANCELLED 0",
         "no connection at all: no row was reached"),

    PLAY("postgres", update, 1, "row_update=busy row_update=busy row_update", "OK: OK 8",
         "outside of a transaction what lost a race is sent again until it wins"),
    PLAY("postgres", update, 1, "row_update=busy! *", "ESERVER: UNDONE 0",
         "or until the statement's time is over"),
    SAYS("adopted postgres", update, 1, "row_update=over", "CONFLICT: CANCELLED 0",
         "transaction_over 1", "inside of one it is sent once, and is a conflict"),
    SAYS("adopted postgres", update, 1, "row_update=busy", "CONFLICT: CANCELLED 0",
         "transaction_over 0", "another conflict"),
    SAYS("adopted postgres", update, 1, "row_update=lost", "ECONN: CANCELLED 0",
         "transaction_over 1", "a lost connection took the transaction with it"),
    /* What takes too long by itself is not laid at the door of others. */
    SAYS("postgres", insert, 2, "rows_insert=busy! *", "ESERVER: UNDONE 0, UNDONE 0",
         "other transactions kept it busy",
         "a race that is lost again and again is the doing of others"),
    SAYS("postgres", insert, 2, "rows_insert=late! *", "ESERVER: UNDONE 0, UNDONE 0", "time limit",
         "a statement that takes longer than it may perhaps had too much to do"),
    SAYS("postgres", insert, 2, "rows_insert=late! *", "ESERVER: UNDONE 0, UNDONE 0", "!try again",
         "and does not blame others"),

    PLAY("postgres", update, 1, "row_update=none row_read=1:1:7 row_update", "OK: OK 8",
         "a row that was changed back before the look is tried again at once"),
    PLAY("postgres", update, 1, "row_update=none row_read=1:1:7 row_update=denied",
         "EDENIED: CANCELLED 0",
         "tried again after a change back, and refused: it was not applied"),
    PLAY("postgres", update, 1, "row_update=none row_read=1:1:7 row_update=none row_read=denied",
         "EDENIED: CANCELLED 0",
         "looked at again after a change back, and refused: it was not applied"),
    SAYS("postgres", update, 1,
         "row_update=none row_read=1:1:7 row_update=none row_read=1:1:7 row_update=none "
         "row_read=1:1:7",
         "ESERVER: ESERVER 7", "row 1 matches",
         "a row that is always changed back is tried three times"),
    PLAY("postgres", insert, 1,
         "row_insert=none row_read row_insert=none row_read row_insert=none row_read",
         "ESERVER: ESERVER 0", "a row that is there and not there is made three times"),
    PLAY("mysql", insert, 1, "row_insert=unique row_read=1:1:3", "EXISTS: EXISTS 3",
         "a row that another made meanwhile is there"),
    SAYS("mysql", insert, 1, "row_insert=unique row_read", "VIOLATION: VIOLATION 0",
         "(native 1062, SQLSTATE '23000'); transaction_over 0, row 0, UNIQUE",
         "if none is there it was another key"),
    PLAY("mysql", update, 1, "row_update=unique", "VIOLATION: VIOLATION 0",
         "for an update it was one anyway: no look is needed"),
    PLAY("postgres", update, 1, "row_update=none row_read=1:null:null", "EINVAL: UNDONE 0",
         "a version that is NULL is none"),
    PLAY("postgres", update, 1, "row_update=none row_read=1:7", "ESERVER: UNDONE 0",
         "a row of another shape than was asked for"),
    PLAY("postgres", update_in_no_chunks, 2, "", "EINVAL: CANCELLED 0, CANCELLED 0",
         "no such chunk: nothing is sent"),
    PLAY("postgres", update_twice, 3, "", "EINVAL: CANCELLED 0, CANCELLED 0, CANCELLED 0",
         "a key twice: nothing is sent"),
    /* Many rows. rows_update tells number and version of a row; rows_find tells number, version,
     * marks, and the first number of the same row. */
    /* What was made under other keys than those given is made all the same. */
    PLAY("postgres", insert, 3, "rows_insert=0:3/2:1", "OK: OK 1, OK 1, OK 1",
         "as many were made as were given, one of them under its key: none is made again"),
    PLAY("postgres", insert, 3, "rows_insert=0:2/2:1",
         "EUNCERTAIN: EUNCERTAIN 0, OK 1, EUNCERTAIN 0",
         "two of three were made, one of them under its key: the other is the first or third"),
    PLAY("mysql", update, 3, "rows_update=#1 rows_find=1:8:,2:1/2:9:null:2/3:null:null:3",
         "STALE: STALE 8, OK 9, GONE 0",
         "a row that another changed, though it has the version that we would have given"),
    PLAY("mysql", update, 2, "rows_update=#0 rows_find=1:9:null:1/2:9:null:2",
         "STALE: STALE 9, STALE 9", "none was changed"),
    PLAY("mysql", insert, 2, "rows_insert=#2 rows_marked=null rows_find=1:1:null:1/2:1:null:2",
         "EXISTS: EXISTS 1, EXISTS 1", "it was killed before it began, and said that all was well"),
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=1:null:,1:1/2:9:null:2",
         "STALE: OK 8, STALE 9",
         "a row that was changed, and removed by another since, was changed"),
    PLAY("mysql", update_two_keys_of_one_row, 2, "rows_update=#1 rows_find=1:8:,1,2:1/2:8:null:1",
         "STALE: OK 8, STALE 8",
         "of two keys of one row the first has changed it, the second came too late"),
    SAYS("postgres", update, 3,
         "rows_update=check row_update rows_update=check row_update=check row_update",
         "VIOLATION: OK 8, VIOLATION 0, OK 10", "row 1, CHECK",
         "the row that would break a constraint is looked for by halves"),
    SAYS("postgres", update_all_or_nothing, 3,
         "begin rows_update=check rollback begin save rows_update=check undo save row_update keep "
         "save rows_update=check undo save row_update=check undo save row_update keep rollback",
         "VIOLATION: UNDONE 7, VIOLATION 0, UNDONE 9", "row 1, CHECK",
         "all or nothing: each half has a savepoint"),
    SAYS("sqlite", update, 3, "begin row_update row_update=check row_update commit",
         "VIOLATION: OK 8, VIOLATION 0, OK 10", "row 1, CHECK",
         "where rows go one by one they are one transaction"),
    PLAY("sqlite", update, 3, "begin row_update row_update=refused rollback",
         "ESERVER: UNDONE 0, UNDONE 0, UNDONE 0", "which is undone if one is refused"),
    /* The second attempt changed row 1, so the first did not. The first attempt or another client
     * changed row 2. Row 3 is as it was. Row 4 is gone. */
    PLAY("postgres", update, 4,
         "rows_update=lost open rows_update=1:8 rows_find=1:8:null:1/2:9:null:2/3:9:null:3 "
         "row_update",
         "EUNCERTAIN: OK 8, EUNCERTAIN 9, OK 10, EUNCERTAIN 0",
         "the first answer of two was lost: each row is judged by itself"),
    PLAY("mysql", update, 2, "rows_update=lost open rows_update=#2", "OK: OK 8, OK 9",
         "all are changed by the second: none was by the first"),
    /* Only the session in which rows were changed knows which they were. */
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=unsent rows_find=1:8:null:1/2:8:null:2! *",
         "EUNCERTAIN: EUNCERTAIN 8, OK 9",
         "a connection lost before the look: it is not known what changed the first row"),
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=lost rows_find=1:8:null:1/2:8:null:2! *",
         "EUNCERTAIN: EUNCERTAIN 8, OK 9", "whether the look was sent, or not"),
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=unsent open=unsent! *",
         "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0",
         "a connection lost for good before the look: nothing is known of any row"),
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=lost open=unsent! *",
         "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0", "whether the look was sent, or not"),
    PLAY("postgres", update, 2,
         "rows_update=1:8 rows_find=unsent open rows_find=1:8:null:1/2:11:null:2",
         "STALE: OK 8, STALE 11", "where changed rows were told it makes no difference"),
    PLAY("postgres", update, 2, "rows_update=refused", "ESERVER: UNDONE 0, UNDONE 0",
         "a chunk that is refused changes nothing"),
    PLAY("postgres", update, 2, "rows_update=denied row_update=denied",
         "EDENIED: CANCELLED 0, CANCELLED 0", "one that was not let in was not reached"),
    SAYS("postgres", update, 2, "rows_update=denied row_update row_update=denied",
         "EDENIED: OK 8, CANCELLED 0", "row 1", "the row that a policy refuses is named"),
    PLAY("postgres", update, 3,
         "rows_update=1:8 rows_find=1:8:null:1/2:8:null:2/3:9:null:3 row_update=denied",
         "EDENIED: OK 8, CANCELLED 0, CANCELLED 0",
         "of two that were changed back one fails: what was changed stays, the rest is not"),
    PLAY("postgres", update, 2, "rows_update rows_find=1:8.5:null:1", "EINVAL: EINVAL 0, GONE 0",
         "a version that is no integer is none, among many too"),
    /* A driver that tells nonsense is not followed out of the array. */
    PLAY("postgres", update, 2, "rows_update=-1:8/0:8/1:8",
         "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0", "numbers of rows that were not given"),
    PLAY("postgres", update, 2, "rows_update=0:-1", "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0",
         "fewer rows than none"),
    PLAY("postgres", update, 2, "rows_update=1:text", "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0",
         "a text for a version"),
    PLAY("postgres", update, 2, "rows_update=1", "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0",
         "no version"),
    PLAY("postgres", update, 2, "rows_update rows_find=1:8", "ESERVER: UNDONE 0, UNDONE 0",
         "a look that answers with too few columns"),
    PLAY("mysql", update, 2, "rows_update=#1 rows_find=1:8:1:1",
         "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0", "a number for a list of marks"),
    PLAY("mysql", insert, 2, "rows_insert=#1 rows_marked=,1:null",
         "EUNCERTAIN: EUNCERTAIN 0, EUNCERTAIN 0", "a list with a column more"),
    PLAY("postgres", update, 2, "rows_update rows_find=3:9:null:3 *", "ESERVER: UNDONE 0, UNDONE 0",
         "nor asked about"),
    PLAY("postgres", update, 2, "rows_update=1:8/1:8 rows_find=1:8:null:1/2:9:null:2",
         "STALE: OK 8, STALE 9",
         "the same row told twice counts once, and does not stand for another"),
    PLAY("adopted postgres", update, 2, "rows_find=over", "CONFLICT: CANCELLED 0, CANCELLED 0",
         "a conflict is sent once"),
    PLAY("adopted mysql", update, 2, "rows_update=#2", "OK: OK 8, OK 9",
         "where rows are gone through in order anyway they are not locked first"),
};

static void test_plays(void)
{
    for (size_t i = 0; i < COUNT(plays); i++) {
        begin(plays[i].dialect);
        perform(&plays[i]);
        end();
    }
}

/* A driver tells the rows, and then the commit of that very statement loses a race. */
static void apply_and_lose(struct rlk_query *query)
{
    const rowlock_value version = rowlock_int(8);
    query->each(query->context, &version, 1);
    query->changed = 1;
}

static void test_told_and_undone(void)
{
    begin("sqlite");
    script_next(OP_ROW_UPDATE, ANSWER(.class = RLK_CONTENTION, .give = apply_and_lose));
    script_next(OP_ROW_UPDATE, ANSWER(.missing = true));
    script_next(OP_ROW_READ, ANSWER(ROWS(3, rowlock_int(1), rowlock_int(1), rowlock_int(9))));
    tap_is_int(update(1), ROWLOCK_STALE,
               "what was told before its commit failed is not what the second sending did");
    tap_is_int(changes[0].current, 9, "nor its version");
    end();
}

static void test_adopted(void)
{
    const struct play locks = PLAY("", update, 2, "rows_find rows_update=1:8/2:9", "OK: OK 8, OK 9",
                                   "in the caller's transaction rows are locked in order first");
    const struct play looks =
        PLAY("", update, 2, "rows_find rows_update=1:8 rows_find=2:12:null:2",
             "STALE: OK 8, STALE 12", "a row that was not changed is looked at");
    begin("adopted postgres");
    perform(&locks);
    tap_ok(strstr(script_query(1)->sql, "FOR NO KEY UPDATE") != NULL, "for a change");
    perform(&looks);
    tap_ok(strstr(script_query(0)->sql, "FOR SHARE") != NULL,
           "with a lock, so that it sees what is there now");
    script_next(OP_ROWS_FIND, FAILS(RLK_UNCERTAIN));
    tap_is_int(update(2), ROWLOCK_ECONN, "a lost connection took the transaction with it");
    script_calls();
    tap_is_int(update(2), ROWLOCK_ECONN, "it stays lost");
    tap_is_str(script_calls(), "", "and nothing is sent on it");
    end();
}

/* The columns are there, but no parameter's kind is; or not even those. */
static void test_table(void)
{
    static const char *const key[] = {"id", NULL};
    const struct about *about = ABOUT(.name = "prices", .key = key);
    rowlock_value half[12] = {rowlock_text("id"), rowlock_text("int"), rowlock_int(1),
                              rowlock_int(9), [9] = rowlock_text("1/1")};
    rowlock_table *other;
    for (int i = 4; i < 12; i++)
        half[i] = i == 9 ? half[i] : rowlock_text("x");
    begin("sqlite");
    script_next(OP_TABLE, ANSWER(.cells = half, .width = 12, .rows = 1));
    tap_is_int(open_table(db, about, &other), ROWLOCK_ESERVER, "a table of which not all is told");
    script_next(OP_TABLE, ANSWER(.cells = half, .width = 2, .rows = 1));
    tap_is_int(open_table(db, about, &other), ROWLOCK_ESERVER, "or with too few columns");
    end();
}

int main(void)
{
    script_home("sqlite");
    test_plays();
    test_adopted();
    test_told_and_undone();
    test_table();
    return tap_done();
}
