/* SPDX-License-Identifier: MIT
 *
 * The machines of a quorum, without threads and servers: each table has what the members say, and
 * what comes of it. */
#include "quorum/ballot.h"
#include "tap.h"

enum { MOST = RLK_MEMBERS_MOST, START = 1000000, END = 9000000, LEASE = 5000000 };

/* What a member does: a number is the token that it grants, or what is left of a lease. */
enum { LACKS, HANGS = -10, AWAY, LOST, BUSY, STANDBY, BARE };
/* To an ACQUIRE: two holders that are in the way, others in the queue, the grant of an attempt
 * before. BARE: it has no tables. */
enum { NO = -4, OTHER, QUEUED, FOUND_AGAIN };

static void put(struct rlk_answer *answer, const rowlock_value *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        answer->row.value[i] = cells[i];
    answer->row.count = count;
    answer->has_row = true;
}

static void put_grant(struct rlk_answer *answer, int said)
{
    rowlock_value cells[RLK_COPIES_MOST] = {{0}};
    for (size_t i = 0; i < RLK_COPIES_MOST; i++)
        cells[i] = rowlock_null();
    if (said > 0)
        cells[TOKEN] = rowlock_int(said);
    if (said == FOUND_AGAIN) {
        cells[OURS] = rowlock_int(1);
        cells[ROW_TOKEN] = rowlock_int(7);
    }
    if (said == NO || said == OTHER) {
        cells[OURS] = rowlock_int(0);
        cells[ROW_OWNER] = rowlock_text(said == NO ? "rival" : "another");
    }
    put(answer, cells, ROW_TOKEN + 1);
}

/* The member gives that answer to the step. */
static void say(struct rlk_ballot *b, size_t member, int said)
{
    struct rlk_answer *answer = &b->answer[member];
    *answer = (struct rlk_answer){.came = said != HANGS};
    if (said >= AWAY && said <= BARE)
        answer->class = (enum rlk_class[]){RLK_UNSENT, RLK_UNCERTAIN, RLK_CONTENTION, RLK_STANDBY,
                                           RLK_SCHEMA}[said - AWAY];
    if (answer->class != RLK_DONE || said == HANGS)
        return;
    if (b->step == RLK_STEP_ACQUIRE)
        put_grant(answer, said);
    else if (said > 0)
        put(answer,
            (rowlock_value[]){rowlock_int(said + END), rowlock_int(said % 10), rowlock_int(END)},
            3);
}

static struct rlk_ballot begin(int step, size_t count, const int *said)
{
    struct rlk_ballot b = {.step = (enum rlk_step)step,
                           .count = count,
                           .need = rlk_majority(count),
                           .sent_us = START,
                           .deadline_us = END,
                           .ttl_us = LEASE};
    for (size_t i = 0; i < count; i++)
        say(&b, i, said[i]);
    return b;
}

enum { ACQUIRE = RLK_STEP_ACQUIRE, RENEW = RLK_STEP_RENEW, WITHDRAW = RLK_STEP_WITHDRAW };
/* Of what class a failure is. */
#define WHY(class) (100 + (class))
enum { RACED = 99 };

/* ---- a grant */

enum { OPEN = RLK_ROUND_OPEN, LIFT = RLK_ROUND_LIFT, GRANTED = RLK_ROUND_GRANTED };
enum { REFUSED = RLK_ROUND_REFUSED, FAILED = RLK_ROUND_FAILED, ENOUGH = RLK_ROUND_ENOUGH };
enum { RENEWED = RLK_ROUND_RENEWED, LACKING = RLK_ROUND_LACKING };

static void test_grants(void)
{
    static const struct {
        const char *what;
        size_t count;
        int said[MOST], at, verdict;
        int64_t token;
        unsigned found, level;
    } rows[] = {
        {"one grant is no majority", 3, {7, HANGS, HANGS}, 0, OPEN, 0, 1, 0},
        {"equal tokens of a majority are a grant", 3, {7, HANGS, 7}, 0, GRANTED, 7, 5, 5},
        {"a higher one moves the token", 3, {9, 5, HANGS}, 0, LIFT, 9, 3, 1},
        {"a third at the token is enough", 3, {9, 5, 9}, 0, GRANTED, 9, 7, 5},
        {"five members, two gone", 5, {4, AWAY, 4, AWAY, 4}, 0, GRANTED, 4, 21, 21},
        {"five members, three gone", 5, {4, AWAY, 4, AWAY, AWAY}, 0, REFUSED, 0, 5, 0},
        {"five members, one has all of the token", 5, {4, 3, 5, 2, HANGS}, 0, LIFT, 5, 15, 4},
        {"after two refusals there is none", 3, {NO, NO, HANGS}, 0, REFUSED, 0, 0, 0},
        {"one refusal, one hangs", 3, {NO, 7, HANGS}, 0, OPEN, 0, 2, 0},
        {"one refusal, one hangs for a second", 3, {NO, 7, HANGS}, START, REFUSED, 0, 2, 0},
        {"without a rival it waits on", 3, {7, HANGS, HANGS}, START, OPEN, 0, 1, 0},
        {"until the deadline", 3, {7, HANGS, HANGS}, END, REFUSED, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlk_ballot b = begin(ACQUIRE, rows[i].count, rows[i].said);
        rlk_ballot_next(&b, START + rows[i].at);
        bool same =
            b.token == rows[i].token && b.found == rows[i].found && b.level == rows[i].level;
        tap_ok((int)b.verdict == rows[i].verdict && same, "a grant: %s", rows[i].what);
    }
}

static void test_found_again(void)
{
    struct rlk_ballot b = begin(ACQUIRE, 3, (int[]){7, FOUND_AGAIN, 7});
    rlk_ballot_next(&b, START);
    tap_ok(b.verdict == RLK_ROUND_GRANTED && b.token == 7 && b.row == &b.answer[1],
           "a grant: the row of an earlier attempt counts, and the caller gets it");
}

/* After LIFT, `late` answers, and `lifted` have the token. */
static void test_lifting(void)
{
    static const struct {
        const char *what;
        int late;
        unsigned lifted;
        int verdict;
        unsigned found;
    } rows[] = {
        {"it is granted when a majority has the token", HANGS, 2, GRANTED, 3},
        {"a row that is gone cannot be lifted: all rows go", HANGS, 0, REFUSED, 3},
        {"a late grant does not count, and goes too", 9, 0, REFUSED, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlk_ballot b = begin(ACQUIRE, 3, (int[]){9, 5, HANGS});
        rlk_ballot_next(&b, START);
        say(&b, 2, rows[i].late);
        b.lifted = rows[i].lifted;
        rlk_ballot_next(&b, START + 1);
        tap_ok((int)b.verdict == rows[i].verdict && b.found == rows[i].found, "lifting: %s",
               rows[i].what);
    }
}

/* answer: the member that has it, RACED, or WHY it failed. */
static void test_refusals(void)
{
    static const struct {
        const char *what;
        int said[3], answer;
    } rows[] = {
        {"the holder that most name is told", {OTHER, NO, NO}, 1},
        {"one alone, if no one has granted", {AWAY, OTHER, AWAY}, 1},
        {"not if another has granted: a race", {7, OTHER, NO}, RACED},
        {"the queue of the first", {QUEUED, 7, OTHER}, 0},
        {"an outage", {7, AWAY, AWAY}, WHY(RLK_UNSENT)},
        {"a lost answer", {7, LOST, AWAY}, WHY(RLK_UNCERTAIN)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlk_ballot b = begin(ACQUIRE, 3, rows[i].said);
        rlk_ballot_next(&b, END);
        int answer = b.row ? (int)(b.row - b.answer) : b.raced ? RACED : WHY((int)b.class);
        tap_is_int(b.verdict, RLK_ROUND_REFUSED, "refused: %s", rows[i].what);
        tap_is_int(answer, rows[i].answer, "and the answer says so");
    }
    struct rlk_ballot b = begin(ACQUIRE, 3, (int[]){NO, 7, HANGS});
    b.standing[2].away = true;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_REFUSED, "refused: a rival, and the last member is away");
    b.standing[2] = (struct rlk_standing){.began_us = 1};
    b.verdict = RLK_ROUND_OPEN;
    rlk_ballot_next(&b, START + 1);
    tap_is_int(b.verdict, RLK_ROUND_REFUSED, "or it has been at another job for a second");
    b = begin(ACQUIRE, 3, (int[]){BUSY, 7, HANGS});
    rlk_ballot_next(&b, START);
    tap_ok(b.verdict == RLK_ROUND_OPEN && b.look_us == START + 1000000,
           "a member that is busy with a rival: look again when the last one hangs");
}

/* ---- jobs of members */

enum { LEAVE = RLK_JOB_LEAVE, JOINS = RLK_JOB_LIFT, RETRACT = RLK_JOB_RETRACT };
enum { OWE = RLK_JOB_OWE, TOP_UP = RLK_JOB_TOP_UP, SEND = RLK_JOB_SEND };

/* Members 1 and 2 have given `said`. The third answers later, or has not been sent the step. */
static void test_late(void)
{
    static const struct {
        const char *what;
        int step;
        int said[2], late, at, next, sent;
    } rows[] = {
        {"a grant with the token stays", ACQUIRE, {7, 7}, 7, 0, LEAVE, SEND},
        {"one with another token is lifted", ACQUIRE, {7, 7}, 6, 0, JOINS, SEND},
        {"also a higher one", ACQUIRE, {7, 7}, 8, LEASE - 1, JOINS, SEND},
        {"after the lease it goes", ACQUIRE, {7, 7}, 7, LEASE, RETRACT, LEAVE},
        {"while others are lifted it joins", ACQUIRE, {9, 5}, 6, 0, JOINS, SEND},
        {"after a refusal it goes", ACQUIRE, {NO, NO}, 7, 0, RETRACT, LEAVE},
        {"a late refusal is nothing", ACQUIRE, {7, 7}, NO, 0, LEAVE, SEND},
        {"a lost answer is owed", ACQUIRE, {NO, NO}, LOST, 0, OWE, LEAVE},
        {"before the verdict it is counted", ACQUIRE, {7, HANGS}, 7, 0, LEAVE, SEND},
        {"a row that lacks is given", RENEW, {9, 9}, LACKS, 0, TOP_UP, SEND},
        {"a late renewal is nothing", RENEW, {9, 9}, 9, 0, LEAVE, SEND},
        {"after the deadline it is not sent", RENEW, {9, 9}, AWAY, END, LEAVE, LEAVE},
        {"a refused one gives nothing", RENEW, {LACKS, LACKS}, LACKS, 0, LEAVE, LEAVE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int said[3] = {rows[i].said[0], rows[i].said[1], HANGS};
        struct rlk_ballot b = begin(rows[i].step, 3, said);
        rlk_ballot_next(&b, START);
        int sent = (int)rlk_job_next(&b, 2, false, START + rows[i].at);
        say(&b, 2, rows[i].late);
        int next = (int)rlk_job_next(&b, 2, true, START + rows[i].at);
        tap_ok(next == rows[i].next && sent == rows[i].sent, "late: %s", rows[i].what);
    }
    struct rlk_ballot b = begin(ACQUIRE, 3, (int[]){7, 7, HANGS});
    rlk_ballot_next(&b, START);
    b.standing[2].waiting = 16;
    tap_is_int(rlk_job_next(&b, 2, false, START), LEAVE, "late: who has fallen behind stays out");
    b.must = true;
    tap_is_int(rlk_job_next(&b, 2, false, END), SEND, "late: what must be removed is removed");
    b = begin(ACQUIRE, 3, (int[]){7, 7, 7});
    rlk_ballot_next(&b, START);
    b.verdict = RLK_ROUND_RELEASED;
    tap_is_int(rlk_job_next(&b, 2, true, START), LEAVE, "late: a row is left to its release");
    say(&b, 2, 6);
    tap_is_int(rlk_job_next(&b, 2, true, START), RETRACT, "late: what it does not remove goes");
}

/* ---- what holders send */

static void test_majorities(void)
{
    static const struct {
        const char *what;
        int step;
        size_t count;
        int said[MOST], at, verdict;
    } rows[] = {
        {"one is no majority", RLK_STEP_VERIFY, 3, {1, HANGS, HANGS}, 0, OPEN},
        {"two are", RLK_STEP_VERIFY, 3, {1, HANGS, 1}, 0, ENOUGH},
        {"two of five are not", RENEW, 5, {1, 1, AWAY, AWAY, HANGS}, 0, OPEN},
        {"three of five are", RENEW, 5, {1, 1, AWAY, AWAY, 1}, 0, RENEWED},
        {"two that lack it", RENEW, 3, {LACKS, 1, LACKS}, 0, LACKING},
        {"one lacks it, one is away", RENEW, 3, {LACKS, 1, AWAY}, 0, WHY(RLK_UNSENT)},
        {"two away", RENEW, 3, {1, AWAY, AWAY}, 0, WHY(RLK_UNSENT)},
        {"two that take no writes", RENEW, 3, {STANDBY, 1, STANDBY}, 0, WHY(RLK_UNSENT)},
        {"the deadline", RLK_STEP_RELEASE, 3, {1, HANGS, HANGS}, END, WHY(RLK_UNCERTAIN)},
        {"a lost answer", RENEW, 3, {1, LOST, AWAY}, 0, WHY(RLK_UNCERTAIN)},
        {"no tables in two", RENEW, 3, {BARE, AWAY, BARE}, 0, WHY(RLK_SCHEMA)},
        {"no tables, one away", RENEW, 3, {BARE, AWAY, 1}, 0, WHY(RLK_UNSENT)},
        {"one is busy", RENEW, 3, {BUSY, 1, BARE}, 0, WHY(RLK_CONTENTION)},
        {"in another order", RENEW, 3, {BARE, 1, BUSY}, 0, WHY(RLK_CONTENTION)},
        {"one busy, one away", RENEW, 3, {BUSY, AWAY, 1}, 0, WHY(RLK_CONTENTION)},
        {"two without tables, one busy", RENEW, 3, {BARE, BARE, BUSY}, 0, WHY(RLK_SCHEMA)},
        {"a withdrawal: any answer of two", WITHDRAW, 3, {1, LACKS, HANGS}, 0, ENOUGH},
        {"one answer does not", WITHDRAW, 3, {1, AWAY, HANGS}, 0, OPEN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rlk_ballot b = begin(rows[i].step, rows[i].count, rows[i].said);
        rlk_ballot_next(&b, START + rows[i].at);
        tap_is_int(b.verdict == RLK_ROUND_FAILED ? WHY(b.class) : b.verdict, rows[i].verdict,
                   "a majority: %s", rows[i].what);
    }
    struct rlk_ballot b = begin(RLK_STEP_RELEASE, 3, (int[]){LACKS, 1, HANGS});
    b.removed = 1;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_ENOUGH, "what was removed at an earlier attempt counts");
    b = begin(RLK_STEP_RELEASE, 3, (int[]){LACKS, 1, AWAY});
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_FAILED, "the member that is away may have the row");
    b.again = true;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_LACKING,
               "an answer was lost: the newest token of those that answered will tell");
    b = begin(RLK_STEP_RELEASE, 3, (int[]){LACKS, 1, HANGS});
    b.again = true;
    b.standing[2].waiting = 2;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_OPEN, "but one that is only busy may still have the row");
    rlk_ballot_next(&b, END);
    tap_is_int(b.verdict, RLK_ROUND_LACKING, "until the deadline");
}

/* A renewal does not wait for a member that is known to hang. */
static void test_hanging(void)
{
    struct rlk_ballot b = begin(RENEW, 3, (int[]){1, LACKS, HANGS});
    b.standing[2].away = true;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_FAILED, "the rest hangs: it is decided without it");
    b.standing[2] = (struct rlk_standing){.waiting = 2};
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_FAILED, "so is one that has earlier jobs to do");
    b.answer[0].came = b.answer[1].came = false;
    b.standing[0].away = b.standing[1].away = true;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_OPEN, "but one answer is waited for");
    b.answer[0].came = b.answer[1].came = b.all = true;
    rlk_ballot_next(&b, 2 * END);
    tap_ok(b.verdict == RLK_ROUND_OPEN && b.look_us == INT64_MAX,
           "and all, if the caller needs each answer");
}

static void test_leases(void)
{
    struct rlk_ballot b = begin(RENEW, 3, (int[]){3003007, HANGS, 2003005});
    rlk_ballot_next(&b, START);
    tap_is_int(b.left_us, 2000000, "the lease is the second longest, less a thousandth and 1 ms");
    tap_is_int(b.until_us, START + 2000000, "from before it was sent");
    tap_is_int(b.lapsed_us, 7, "it had ended when a majority was free");
    tap_ok(!b.at_risk, "a member that was well the last time will have it");
    b.standing[1].fails = true;
    rlk_ballot_next(&b, START);
    tap_ok(b.at_risk, "one that failed may not: a bare majority is at risk");
    b.standing[1] = (struct rlk_standing){.away = true};
    rlk_ballot_next(&b, START);
    tap_ok(b.at_risk, "so may one that is away");
    b.standing[1].away = false;
    say(&b, 1, LACKS);
    b.ttl_us = 0;
    rlk_ballot_next(&b, START);
    tap_ok(b.at_risk && b.missing == 2, "and a member that lacks the row gets it");
    tap_is_int(b.ttl_us, b.left_us, "for as long as the others have it");
    say(&b, 1, 1003005);
    rlk_ballot_next(&b, START);
    tap_ok(b.left_us == 2000000 && !b.at_risk, "an older row in one member costs nothing");
    b = begin(RENEW, 5, (int[]){5005000, 4005000, AWAY, AWAY, 3004000});
    rlk_ballot_next(&b, START);
    tap_ok(b.left_us == 3000000 && b.at_risk, "of five without two it is the shortest, at risk");
}

/* ---- who may vote */

/* All read at START, of one quorum, and with the same marks. */
static void make_views(struct rlk_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        views[i] = (struct rlk_view){.known = true,
                                     .quorum = "q",
                                     .members = count,
                                     .self = i + 1,
                                     .begun_us = START,
                                     .read_us = START + 1};
        for (size_t k = 0; k < count; k++)
            memcpy(views[i].mark[k], (char[]){'m', (char)('1' + k), '\0'}, 3);
    }
}

static void test_votes(void)
{
    struct rlk_view views[MOST];
    make_views(views, 3);
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_YES, "a member with its mark votes");
    views[0].self = 0;
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_NO_MEMBER, "one that lost its mark does not");
    make_views(views, 3);
    tap_is_int(rlk_view_vote(views, 5, 0), RLK_VOTE_MISPLACED, "nor one of another number");
    views[0].restarted = true;
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_RESTARTED, "nor one that was restarted");
    make_views(views, 3);
    /* Member 1 is an old copy. */
    views[0].mark[0][1] = views[0].mark[1][1] = views[0].mark[2][1] = '0';
    views[2].known = false;
    tap_is_int(rlk_view_vote(views, 3, 1), RLK_VOTE_OPEN,
               "before member 3 is read, it is open whether member 2 or member 1 is old");
    views[2].known = true;
    tap_is_int(rlk_view_vote(views, 3, 1), RLK_VOTE_YES, "with it member 2 votes");
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_RESTORED, "and member 1 does not");
    views[2].quorum[0] = 'p';
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_RESTORED, "also if one is of another quorum");
    views[2].quorum[0] = 'q';
    views[0].quorum[0] = 'p';
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_STRANGER, "of another quorum: a stranger");
    make_views(views, 3);
    views[1].moved[0] = 1;
    views[0].begun_us = START + 2;
    tap_is_int(rlk_view_vote(views, 3, 0), RLK_VOTE_RESTORED,
               "one that has forgotten a move that was read before does not vote");
    make_views(views, 3);
    memcpy(views[0].mark[0], "0123456789abcdef0000001frandom..", RLK_MARK);
    memcpy(views[1].mark[0], "0123456789abcdef00000020random..", RLK_MARK);
    tap_is_int(rlk_mark_generation(views[0].mark[0]), 31, "marks are numbered");
    memcpy(views[2].mark[0], views[0].mark[0], RLK_MARK);
    tap_ok(rlk_view_is_behind(views, 3, 0), "one whose newer mark is known is behind");
    memcpy(views[1].mark[0], "0123456789abcdef0000001erandom..", RLK_MARK);
    tap_ok(!rlk_view_is_behind(views, 3, 0), "an older mark of it proves nothing");
    make_views(views, 5);
    views[0].known = views[1].known = false;
    tap_is_int(rlk_view_vote(views, 5, 2), RLK_VOTE_YES, "five members, two gone: the others vote");
}

/* Opening waits for members that may vote, whatever they answer. */
static void test_opening(void)
{
    struct rlk_view views[3];
    struct rlk_ballot b = begin(RLK_STEP_META, 3, (int[]){AWAY, HANGS, HANGS});
    make_views(views, 3);
    b.views = views;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_ENOUGH, "a quorum is open when a majority may vote");
    b.standing[1].away = b.standing[2].away = true;
    views[0].known = views[1].known = false;
    rlk_ballot_next(&b, START);
    tap_is_int(b.verdict, RLK_ROUND_OPEN, "until then it waits for members that hang, too");
}

static void test_looking(void)
{
    struct rlk_view views[3] = {{.known = false}};
    struct rlk_looking l = {0};
    int reads = 0;
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START), RLK_VOTE_READ, "it is read first");
    make_views(views, 3);
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START + 1), RLK_VOTE_YES, "then it votes");
    l = (struct rlk_looking){0};
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START + 30000000), RLK_VOTE_YES,
               "within half a minute it is not read again");
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START + 30000001), RLK_VOTE_READ, "then it is");
    l = (struct rlk_looking){0};
    tap_is_int(rlk_vote_next(&l, views, 3, 0, false, START), RLK_VOTE_READ,
               "and on a new connection at once");
    views[1].moved[0] = 1;
    l = (struct rlk_looking){0};
    while (rlk_vote_next(&l, views, 3, 0, true, START + 1) == RLK_VOTE_READ && reads < 9)
        reads++;
    tap_is_int(reads, 4, "while the others know a newer move it is read, four times at most");
    make_views(views, 3);
    views[0].restarted = true;
    l = (struct rlk_looking){0};
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START + 249999), RLK_VOTE_RESTARTED,
               "one that may not vote is not asked again at once");
    tap_is_int(rlk_vote_next(&l, views, 3, 0, true, START + 250001), RLK_VOTE_READ_ALL,
               "but after a quarter of a second all are");
    tap_is_int(rlk_vote_next(&l, views, 3, 0, false, START + 500000), RLK_VOTE_RESTARTED, "once");
}

static void test_moves(void)
{
    struct rlk_view views[3];
    struct rlk_move move;
    make_views(views, 3);
    views[0].now_us = 40000000;
    views[0].read_us = 100000000;
    tap_ok(rlk_view_move(views, 0, 0, 0, 100000000, &move) && move.to == 40000000,
           "an old mark moves to the time of its member");
    tap_ok(!rlk_view_move(views, 0, 0, 90000000, 100000000, &move), "not twice in half a minute");
    tap_ok(!rlk_view_move(views, 0, 0, INT64_MAX, 100000000, &move), "not when the handle ends");
    views[0].moved[0] = 39000000;
    tap_ok(!rlk_view_move(views, 0, 0, 0, 100000000, &move), "not if another program has moved it");
    views[0].moved[0] = 50000000;
    tap_ok(rlk_view_move(views, 0, 0, 0, 100000000, &move) && move.to == 50000001,
           "it moves on although the clock was put back");
    tap_ok(rlk_view_move(views, 1, 0, 0, 0, &move) && move.from == 0 && move.to == 50000000,
           "the others write it down");
    views[1].mark[0][0] = 'x';
    tap_ok(!rlk_view_move(views, 1, 0, 0, 0, &move), "unless they have another mark of it");
}

int main(void)
{
    test_grants();
    test_found_again();
    test_lifting();
    test_refusals();
    test_late();
    test_majorities();
    test_hanging();
    test_leases();
    test_votes();
    test_opening();
    test_looking();
    test_moves();
    return tap_done();
}
