/* SPDX-License-Identifier: MIT
 *
 * Hand-written ways to lock and to update are data: tests/bench/sql/DATABASE.sql and common.sql.
 * This file reads and runs them. A way of common.sql is left out where a step of it is missing.
 *
 *     -- way KIND | LABEL | STEPS | LEGEND      a competitor; LABEL and LEGEND are for the report
 *     -- step NAME[, WORD…][: COLUMN…]          the SQL that follows is this step
 *     -- text NAME                              the SQL that follows replaces {NAME} in others
 *
 * In STEPS each name may have a sign:
 *     !     the step must find or change one row
 *     =     it must find or change all rows of the batch, or all leases that were learned
 *     *     it is sent once for each of those, and must change one row each time
 *     ~     the same, pipelined
 * The step "work" is what a program does between reading and writing.
 *
 * The words of a step:
 *     as text           it is sent unprepared
 *     each row          the columns of all rows are kept, not only of the last
 *     deadlock again    after a deadlock it is sent again
 *     deadlock busy     a deadlock counts as no row
 *
 * COLUMN names the parameter that keeps this column of the answer, "-" none. In the SQL, {PARAMETER}
 * is a value and {table} the name of a table. */
#include "hand.h"

#include <strings.h>

const struct hand *const hands[] = {
#if RLK_WITH_POSTGRES
    &hand_postgres,
#endif
#if RLK_WITH_MYSQL
    &hand_mysql,
#endif
#if RLK_WITH_SQLITE
    &hand_sqlite,
#endif
    NULL,
};

#define TEXT_OF(name) #name
static const char *const parameters[] = {EACH_PARAMETER(TEXT_OF), "TABLE", "-"};

enum { WAYS_MAX = 64 };

static struct script {
    const struct hand *hand;
    struct step steps[STEPS_MAX];
    struct way ways[WAYS_MAX];
    int step_count, way_count;
} scripts[3];

struct lease {
    char name[256], owner[256];
    int64_t token;
};

/* ---- reading */

static enum parameter parameter_of(const char *word, size_t length)
{
    int i = 0;
    while (i < UNKNOWN &&
           (strlen(parameters[i]) != length || strncasecmp(parameters[i], word, length) != 0))
        i++;
    return (enum parameter)i;
}

static char *copy(const char *text)
{
    char *made = strdup(text);
    if (!made)
        die("out of memory");
    return made;
}

/* The part before the next bar, without spaces around it. */
static char *next_part(char **at)
{
    char *part = strsep(at, "|");
    if (!part)
        die("a way has four parts");
    part += strspn(part, " ");
    for (size_t end = strlen(part); end > 0 && part[end - 1] == ' ';)
        part[--end] = '\0';
    return part;
}

static struct script *script_of(const struct hand *hand)
{
    int i = 0;
    while (scripts[i].hand && scripts[i].hand != hand)
        i++;
    scripts[i].hand = hand;
    return &scripts[i];
}

static void begin_step(struct script *script, char *head)
{
    struct step *step = &script->steps[script->step_count];
    char *columns = strchr(head, ':'), *word;
    if (script->step_count == STEPS_MAX)
        die("too many steps");
    step->index = script->step_count++;
    if (columns)
        *columns++ = '\0';
    step->as_text = strstr(head, ", as text") != NULL;
    step->each_row = strstr(head, ", each row") != NULL;
    step->again = strstr(head, ", deadlock again") != NULL;
    step->busy = strstr(head, ", deadlock busy") != NULL;
    step->name = copy(strsep(&head, ","));
    while ((word = strsep(&columns, " "))) {
        enum parameter which = parameter_of(word, strlen(word));
        if (*word && which == UNKNOWN)
            die("%s: no parameter is called %s", step->name, word);
        if (*word)
            step->keeps[step->kept++] = which;
    }
}

static void add_line(struct step *step, const char *line)
{
    char *longer = NULL;
    if (asprintf(&longer, "%s%s%s", step->sql ? step->sql : "", step->sql ? "\n" : "", line) < 0)
        die("out of memory");
    free(step->sql);
    step->sql = longer;
}

/* Returns NULL if the database has no step of this name. */
static const struct step *step_of(const struct script *script, const char *name, size_t length)
{
    for (int i = 0; i < script->step_count; i++)
        if (strncmp(script->steps[i].name, name, length) == 0 && !script->steps[i].name[length])
            return &script->steps[i];
    return NULL;
}

/* Ways stand before their steps, so this runs when the files are read. Returns a missing step. */
static const char *find_steps(const struct script *script, struct way *way)
{
    char *word;
    while ((word = strsep(&way->words, " "))) {
        size_t length = strcspn(word, "!=*~");
        struct taken *taken = &way->steps[way->count];
        if (length == 0)
            continue;
        taken->how = word[length];
        taken->step = step_of(script, word, length);
        if (!taken->step && strcmp(word, "work") != 0)
            return word;
        way->count++;
    }
    return NULL;
}

static void read_line(struct script *script, char *line)
{
    if (strncmp(line, "-- way ", 7) == 0) {
        struct way *way = &script->ways[script->way_count];
        if (script->way_count == WAYS_MAX)
            die("too many ways");
        line = copy(line + 7);
        way->kind = next_part(&line);
        way->label = next_part(&line);
        way->words = next_part(&line);
        way->legend = next_part(&line);
        if (!way->legend[0])
            way->legend = NULL;
        way->number = script->way_count++;
    } else if (strncmp(line, "-- step ", 8) == 0 || strncmp(line, "-- text ", 8) == 0) {
        begin_step(script, line + 8);
    } else if (line[0] && strncmp(line, "--", 2) != 0) {
        add_line(&script->steps[script->step_count - 1], line);
    }
}

static void read_file(struct script *script, const char *name)
{
    char path[100], line[1000];
    snprintf(path, sizeof path, "tests/bench/sql/%s.sql", name);
    FILE *file = fopen(path, "r");
    if (!file)
        die("cannot read %s: run this in the folder of the project", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        read_line(script, line);
    }
    fclose(file);
}

void hand_load(const struct hand *hand)
{
    struct script *script = script_of(hand);
    int kept;
    read_file(script, hand->raw->name);
    kept = script->way_count;
    read_file(script, "common");
    for (int i = 0; i < script->way_count; i++) {
        const char *missing = find_steps(script, &script->ways[i]);
        if (missing && i < kept)
            die("%s: no step is called %s", hand->raw->name, missing);
        if (missing)
            script->ways[i].kind = "";
    }
}

const struct way *hand_way(const struct hand *hand, const char *kind, int number)
{
    const struct script *script = script_of(hand);
    for (int i = 0; i < script->way_count; i++)
        if (strcmp(script->ways[i].kind, kind) == 0 && number-- == 0)
            return &script->ways[i];
    return NULL;
}

/* ---- sessions */

static void set_int(struct session *s, enum parameter which, int64_t number)
{
    s->values[which] = (struct value){.kind = INT_VALUE, .number = number};
}

static void set_text(struct session *s, enum parameter which, const char *text)
{
    s->values[which] = (struct value){.kind = TEXT_VALUE, .text = text, .length = strlen(text)};
}

static void *connect_to(const struct hand *hand, const char *url, const char *schema)
{
    void *conn = hand->raw->open(url);
    if (hand->settings)
        raw_run(hand->raw, conn, "%s", hand->settings);
    if (schema)
        raw_run(hand->raw, conn, "%s %s", hand->use_schema, schema);
    return conn;
}

/* Without a place in the database, and without a lock. */
static struct session *new_session(const struct hand *hand, const char *url, const char *schema)
{
    struct session *s = zeroed(1, sizeof *s);
    s->hand = hand;
    s->conn = connect_to(hand, url, schema);
    snprintf(s->file, sizeof s->file, "%s", strchr(url, ':') + 1);
    return s;
}

struct session *hand_open(const struct place *place, const char *name)
{
    struct session *s = new_session(place->hand, place->url, place->schema);
    if (!name)
        return s;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->owner, sizeof s->owner, "%032d", rand());
    gethostname(s->host, sizeof s->host - 1);
    set_text(s, NAME, s->name);
    set_text(s, OWNER, s->owner);
    set_text(s, HOST, s->host);
    set_text(s, PROGRAM, "bench");
    set_int(s, REQUEST, rand());
    set_int(s, TTL, LEASE_MS * INT64_C(1000));
    set_int(s, PID, getpid());
    hand_do(s, "counter");
    return s;
}

struct session *hand_open_rows(const struct place *place, const char *table,
                               const struct rows *rows)
{
    struct session *s = hand_open(place, NULL);
    s->table = table;
    s->rows = rows;
    set_int(s, STANDING, BATCH_ROWS);
    return s;
}

void hand_set_name(struct session *s, const char *name)
{
    snprintf(s->name, sizeof s->name, "%s", name);
    set_text(s, NAME, s->name);
}

void hand_set_work(struct session *s, void (*work)(void))
{
    s->work = work;
}

void hand_close(void *session)
{
    struct session *s = session;
    for (int i = 0; i < STEPS_MAX; i++) {
        if (s->prepared[i].handle && s->hand->forget)
            s->hand->forget(&s->prepared[i]);
        free(s->prepared[i].sql);
    }
    s->hand->raw->close(s->conn);
    for (int i = 0; i < PARAMETERS; i++) {
        free(s->kept[i]);
        free(s->lists[i]);
    }
    free(s->leases);
    free(s);
}

/* ---- answers */

static void keep(struct session *s, enum parameter which, const struct value *cell)
{
    const char *text = cell->kind == TEXT_VALUE ? cell->text : NULL;
    if (which < TEXT) {
        set_int(s, which, text ? strtoll(text, NULL, 10) : cell->number);
        return;
    }
    if (!text || (which == AFTER && strcmp(text, s->values[AFTER].text) <= 0))
        return;
    char *kept = copy(text);
    free(s->kept[which]);
    s->kept[which] = kept;
    set_text(s, which, kept);
}

static void add_lease(struct session *s)
{
    if (s->lease_count % 1000 == 0)
        s->leases = realloc(s->leases, ((size_t)s->lease_count + 1000) * sizeof *s->leases);
    if (!s->leases)
        die("out of memory");
    struct lease *lease = &s->leases[s->lease_count++];
    snprintf(lease->name, sizeof lease->name, "%s", s->values[NAME].text);
    snprintf(lease->owner, sizeof lease->owner, "%s", s->values[OWNER].text);
    lease->token = s->values[TOKEN].number;
}

void hand_keep(struct session *s, const struct step *step, const struct value *cells, int count)
{
    for (int i = 0; i < step->kept && i < count; i++)
        if (step->keeps[i] != SKIPPED)
            keep(s, step->keeps[i], &cells[i]);
    if (step->each_row)
        add_lease(s);
}

/* ---- values */

static void set_row(struct session *s, int64_t row)
{
    if (s->rows) {
        set_int(s, ID, s->rows->id[row]);
        set_int(s, VERSION, s->rows->version[row]);
        set_int(s, AMOUNT, s->rows->amount[row]);
        set_text(s, NOTE, s->rows->note[row]);
    } else {
        set_text(s, NAME, s->leases[row].name);
        set_text(s, OWNER, s->leases[row].owner);
        set_int(s, TOKEN, s->leases[row].token);
    }
}

static struct value value_of(struct session *s, enum parameter which)
{
    if (which < IDS)
        return s->values[which];
    if (!s->lists[which] && !(s->lists[which] = malloc(LIST_CAP)))
        die("out of memory");
    return (struct value){.kind = which < JSON ? BINARY_VALUE : TEXT_VALUE,
                          .text = s->lists[which],
                          .length = hand_list(s->rows, which, s->lists[which])};
}

void hand_values(struct session *s, const struct prepared *p, int64_t row, struct value *out)
{
    if (row >= 0)
        set_row(s, row);
    for (int i = 0; i < p->count; i++)
        out[i] = value_of(s, p->needs[i]);
}

static void put_word(struct session *s, FILE *out, const char *word, size_t length,
                     struct prepared *p);

/* SQL with what stands in braces filled in, or as marks that p then names. */
static void put_sql(struct session *s, FILE *out, const char *sql, struct prepared *p)
{
    for (const char *open; (open = strchr(sql, '{')); sql = strchr(open, '}') + 1) {
        fwrite(sql, 1, (size_t)(open - sql), out);
        put_word(s, out, open + 1, strcspn(open + 1, "}"), p);
    }
    fputs(sql, out);
}

static void put_word(struct session *s, FILE *out, const char *word, size_t length,
                     struct prepared *p)
{
    enum parameter which = parameter_of(word, length);
    const struct step *text = step_of(script_of(s->hand), word, length);
    if (which == TABLE) {
        fputs(s->table, out);
    } else if (which > TABLE) {
        if (!text)
            die("%s: nothing is called {%.*s}", s->hand->raw->name, (int)length, word);
        put_sql(s, out, text->sql, p);
    } else if (p) {
        p->needs[p->count++] = which;
        fprintf(out, s->hand->numbered ? "$%d" : "?", p->count);
    } else {
        struct value value = value_of(s, which);
        if (value.kind == INT_VALUE)
            fprintf(out, "%lld", (long long)value.number);
        else
            fwrite(value.text, 1, value.length, out);
    }
}

static char *make_sql(struct session *s, const struct step *step, struct prepared *p)
{
    char *made = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    put_sql(s, out, step->sql, p);
    if (fclose(out) != 0)
        die("out of memory");
    return made;
}

/* ---- running */

static struct prepared *prepare(struct session *s, const struct step *step)
{
    struct prepared *p = &s->prepared[step->index];
    if (!p->sql) {
        p->step = step;
        p->sql = make_sql(s, step, p);
    }
    return p;
}

/* row: which of several; -1: there is one. */
static struct answer execute(struct session *s, const struct step *step, int64_t row)
{
    struct value values[VALUES_MAX];
    struct answer answer;
    if (step->as_text) {
        char *sql = make_sql(s, step, NULL);
        answer = s->hand->query(s, step, sql);
        free(sql);
    } else {
        struct prepared *p = prepare(s, step);
        hand_values(s, p, row, values);
        answer = s->hand->execute(s, p, values);
    }
    if (answer.id && step->kept == 1 && step->keeps[0] == TOKEN)
        set_int(s, TOKEN, answer.id);
    return answer;
}

static int64_t take(struct session *s, const struct step *step, int64_t row)
{
    struct answer answer;
    do
        answer = execute(s, step, row);
    while (answer.deadlock && step->again);
    if (answer.deadlock && !step->busy)
        die("%s: a deadlock in %s", s->hand->raw->name, step->name);
    return answer.rows;
}

static void must_be(const struct session *s, const struct step *step, int64_t rows, int64_t wanted)
{
    if (rows != wanted)
        die("%s: %s has %lld rows instead of %lld", s->hand->raw->name, step->name, (long long)rows,
            (long long)wanted);
}

static int64_t take_all(struct session *s, const struct step *step)
{
    int64_t count = s->rows ? BATCH_ROWS : s->lease_count;
    for (int64_t i = 0; i < count; i++)
        must_be(s, step, take(s, step, i), 1);
    return count;
}

int64_t hand_run(struct session *s, const struct way *way)
{
    int64_t rows = 0;
    for (int i = 0; i < way->count; i++) {
        const struct step *step = way->steps[i].step;
        char how = way->steps[i].how;
        if (!step)
            s->work();
        else if (how == '~')
            s->hand->pipeline(s, prepare(s, step));
        else
            rows = how == '*' ? take_all(s, step) : take(s, step, -1);
        if (how == '!' || how == '=')
            must_be(s, step, rows, how == '!' ? 1 : s->values[STANDING].number);
    }
    return rows;
}

int64_t hand_do(struct session *s, const char *kind)
{
    const struct way *way = hand_way(s->hand, kind, 0);
    return way ? hand_run(s, way) : 0;
}

int64_t hand_number(struct session *s, const char *kind)
{
    hand_do(s, kind);
    return s->values[NUMBER].number;
}

const char *hand_text(struct session *s, const char *kind)
{
    hand_do(s, kind);
    return s->values[TEXT].text;
}

/* ---- what is done beside the contests */

void hand_make_places(const struct hand *hand, const char *url, struct place *ours,
                      struct place *theirs)
{
    if (hand->make_places) {
        hand->make_places(url, ours, theirs);
    } else {
        struct session *s = new_session(hand, url, NULL);
        hand_do(s, "make places");
        hand_close(s);
        snprintf(ours->url, sizeof ours->url, "%s", url);
        *theirs = *ours;
        ours->schema = "rowlock_bench_ours";
        theirs->schema = "rowlock_bench_hand";
    }
    ours->hand = theirs->hand = hand;
}

void hand_drop_places(const struct hand *hand, const char *url)
{
    struct place ours, theirs;
    if (hand->make_places) {
        hand->make_places(url, &ours, &theirs);
        return;
    }
    struct session *s = new_session(hand, url, NULL);
    hand_do(s, "drop places");
    hand_close(s);
}

int64_t hand_written(struct session *s)
{
    return s->hand->written ? s->hand->written(s) : hand_number(s, "log");
}

void hand_fill(struct session *s, int64_t rows)
{
    set_int(s, COUNT, rows);
    hand_do(s, "fill");
}

void hand_grow(struct session *s, int64_t from, int64_t to)
{
    if (from == 0)
        hand_do(s, "clear");
    set_int(s, STANDING, from);
    set_int(s, COUNT, to);
    hand_do(s, "grow");
}

int64_t hand_sweep(struct session *s, const struct way *way)
{
    int64_t gone = 0, count;
    set_text(s, AFTER, "");
    set_int(s, NOW, (int64_t)time(NULL) * 1000000);
    set_int(s, BATCH_SIZE, BATCH);
    do
        gone += count = hand_run(s, way);
    while (count == BATCH);
    return gone;
}

rowlock_db *hand_adopt(const struct place *place, const rowlock_db_options *options, void **conn)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    *conn = connect_to(place->hand, place->url, NULL);
    must_open(place->hand->raw->adopt(&db, *conn, options, &err), &err);
    return db;
}

void make_rows(const struct place *place, const char *table, int rows)
{
    struct session *s = hand_open_rows(place, table, NULL);
    set_int(s, COUNT, rows);
    hand_do(s, "make table");
    hand_close(s);
}

/* ---- as a contender */

static void *open_contender(const struct contender *contender, const char *name)
{
    struct session *s = hand_open(contender->place, name);
    s->way = contender->way;
    return s;
}

static void step_contender(void *session)
{
    struct session *s = session;
    hand_run(s, s->way);
}

struct contender hand_contender(const struct place *place, const struct way *way)
{
    return (struct contender){.label = way->label,
                              .legend = way->legend,
                              .place = place,
                              .way = way,
                              .open = open_contender,
                              .close = hand_close,
                              .step = step_contender};
}
