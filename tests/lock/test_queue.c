/* SPDX-License-Identifier: MIT
 *
 * Standing in line: which steps are taken in which order, when a waiter looks again, that no release is slept
 * through, and that no ticket stays behind. The clock stands still but where core waits. Several locks at once
 * are in test_many.c, ends and cancels of a wait in test_wait.c. */
#include "story.h"

enum { TTL_MS = 10000 };
#define HOUR_US INT64_C(3600000000)

static rowlock_lock *other;

static void end(void)
{
    rowlock_log_set(NULL, NULL, ROWLOCK_LOG_WARNING);
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    rowlock_lock_close(other);
    other = NULL;
    story_end();
}

/* Ends the test before. */
static void begin_as(const char *owner)
{
    end();
    opened_with(OPTIONS(db, .owner = owner));
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
}

static void begin(void)
{
    begin_as(NULL);
}

static int wait_with(rowlock_acquire_options options)
{
    options.size = sizeof options;
    options.ttl_ms = options.ttl_ms ? options.ttl_ms : TTL_MS;
    return rowlock_acquire(story.lock, &options);
}

/* So often it is held, and then ours. */
static void grant_after(int looks)
{
    for (int i = 0; i < looks; i++)
        script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
}

/* ---- the steps */

/* What the database answers, call by call; all other tries find the lock held for an hour. */
struct reply {
    enum script_op op;
    struct script_answer answer;
};

static const struct course {
    const char *what, *calls;
    int want;
    int granted; /* at this try, after those of the replies; 0: at none */
    int64_t ticket; /* of the last try */
    const char *owner; /* NULL: that of a handle, which is in no cycle */
    bool tries, cancelled; /* with wait_ms 0; while it waits */
    struct reply replies[6];
} courses[] = {
    {"a free lock takes one step, and no ticket", "meta acquire", ROWLOCK_OK, .granted = 1},
    {"a try of a lock that others wait for takes no ticket", "meta acquire", ROWLOCK_BUSY,
     .tries = true, .replies = {{OP_ACQUIRE, .answer.outcome = RLK_BEHIND}}},
    {"nor does one of a lock whose grant is in flight", "meta acquire", ROWLOCK_BUSY, .tries = true,
     .replies = {{OP_ACQUIRE, .answer.outcome = RLK_IN_FLIGHT}}},
    {"others are before us, so we stand in the queue like them", "meta acquire enqueue acquire",
     ROWLOCK_OK, .granted = 1, .ticket = 1,
     .replies = {{OP_ACQUIRE, .answer.outcome = RLK_BEHIND}}},
    {"a notification that came too soon is followed by a look, and by a question for our place",
     "meta acquire enqueue acquire await acquire enqueue await acquire", ROWLOCK_OK, .granted = 4,
     .ticket = 1, .replies = {{OP_AWAIT, .answer.wakeup = WAKEUP_CAME}}},
    {"a cancel that costs the connection leaves the queue on a new one",
     "meta acquire enqueue acquire await open meta leave", ROWLOCK_CANCELLED, .ticket = 1,
     .cancelled = true,
     .replies = {{OP_AWAIT, .answer.class = RLK_UNSENT, .answer.wakeup = WAKEUP_INTERRUPTED}}},
    {"a ticket that was swept: with another one we look again, with the same one we do not",
     "meta acquire enqueue acquire await acquire enqueue await acquire enqueue acquire await "
     "acquire",
     ROWLOCK_OK, .granted = 6, .ticket = 9,
     .replies = {{OP_ENQUEUE, .answer.ticket = 7},
                 {OP_ENQUEUE, .answer.ticket = 7},
                 {OP_ENQUEUE, .answer.ticket = 9},
                 {OP_AWAIT, .answer.wakeup = WAKEUP_CAME},
                 {OP_AWAIT, .answer.wakeup = WAKEUP_CAME},
                 {OP_AWAIT, .answer.wakeup = WAKEUP_CAME}}},
    {"a ticket whose answer is lost is asked for again, and only then the lock is",
     "meta acquire enqueue open meta enqueue acquire", ROWLOCK_OK, .granted = 2, .ticket = 1,
     .replies = {{OP_ENQUEUE, .answer.class = RLK_UNCERTAIN}}},
    {"a grant whose answer is lost is found by the same ticket, and renewed",
     "meta acquire enqueue acquire open meta acquire renew", ROWLOCK_OK, .granted = 1, .ticket = 1,
     .replies = {{OP_ACQUIRE, .answer.outcome = RLK_HELD},
                 {OP_ACQUIRE, .answer.class = RLK_UNCERTAIN}}},
    {"a grant that came too late, and that another took over meanwhile, is waited for once more",
     "meta acquire enqueue acquire renew verify enqueue acquire", ROWLOCK_OK, .granted = 1,
     .ticket = 2,
     .replies = {{OP_ACQUIRE, .answer.outcome = RLK_HELD},
                 {OP_ACQUIRE, .answer.takes_us = (TTL_MS + 1) * 1000},
                 {OP_RENEW, .answer.missing = true}}},
    {"a cycle is told to a waiter, which leaves the queue then", "meta acquire enqueue cycle leave",
     ROWLOCK_DEADLOCK, .owner = "job 7", .replies = {{OP_CYCLE, .answer.circle = true}}},
    {"where there is no cycle it is not looked for again so soon",
     "meta acquire enqueue cycle acquire await acquire enqueue await acquire", ROWLOCK_OK,
     .granted = 4, .ticket = 1, .owner = "job 7",
     .replies = {{OP_AWAIT, .answer.wakeup = WAKEUP_CAME}}},
    {"a lost answer about cycles is asked for again",
     "meta acquire enqueue cycle open meta cycle acquire", ROWLOCK_OK, .granted = 2, .ticket = 1,
     .owner = "job 7", .replies = {{OP_CYCLE, .answer.class = RLK_UNCERTAIN}}},
    {"a failure to look for cycles ends the wait, and the ticket is given back",
     "meta acquire enqueue cycle leave", ROWLOCK_EDENIED, .owner = "job 7",
     .replies = {{OP_CYCLE, .answer.class = RLK_DENIED}}},
};

static void cancel_on_await(enum script_op op)
{
    if (op == OP_AWAIT)
        rowlock_cancel(story.db);
}

static void test_course(const struct course *c)
{
    begin_as(c->owner);
    for (size_t i = 0; i < sizeof c->replies / sizeof c->replies[0]; i++)
        script_next(c->replies[i].op, c->replies[i].answer);
    if (c->granted)
        grant_after(c->granted - 1);
    if (c->cancelled)
        script_hook(cancel_on_await);
    int64_t began_us = rlk_now_us();
    tap_is_int(wait_lock(story.lock, TTL_MS, c->tries ? 0 : ROWLOCK_FOREVER), c->want, "%s",
               c->what);
    tap_is_str(script_calls(), c->calls, "in these steps");
    tap_is_int(script.request.ticket, c->ticket, "the last try has this ticket");
    tap_is_int(new_requests(0), 0, "all of it is one request");
    tap_is_int(rowlock_lock_token(story.lock) != 0, c->want == ROWLOCK_OK,
               "held is what was granted");
    if (c->cancelled)
        tap_is_int(rlk_now_us(), began_us, "it ends at once");
    if (c->want == ROWLOCK_DEADLOCK)
        tap_ok(strstr(why(story.db), "'nightly' held by 'rival'") != NULL, "with words: %s",
               why(story.db));
}

static void test_courses(void)
{
    static const enum rlk_class classes[] = {RLK_UNSENT, RLK_UNCERTAIN, RLK_REFUSED};
    for (size_t i = 0; i < sizeof courses / sizeof courses[0]; i++)
        test_course(&courses[i]);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        test_course(&(struct course){
            "the connection is lost while we wait: we look, keep the ticket, and look again",
            "meta acquire enqueue acquire await open meta acquire enqueue acquire await acquire",
            ROWLOCK_OK, .granted = 5, .ticket = 1, .replies = {{OP_AWAIT, FAILS(classes[i])}}});
}

static void test_options_of_the_line(void)
{
    begin();
    grant_after(2);
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK, "a lock that gets free");
    tap_is_str(script_calls(), "meta acquire enqueue acquire await acquire",
               "try, take a ticket, look again, wait, look");
    tap_is_int(script.ticket_lease_us, TTL_MS * 500, "the ticket lives half as long as the lease");
    tap_ok(script.queued.ticket == 1 && script.queued.number == script.requests[0],
           "the wait is for the ticket of that request");
    tap_is_int(rowlock_release(story.lock), ROWLOCK_OK, "it is released");
    grant_after(1);
    tap_is_int(
        wait_with((rowlock_acquire_options){
            .wait_ms = ROWLOCK_FOREVER, .permits = ROWLOCK_SHARED, .unfair = 1, .ticket_ms = 2000}),
        ROWLOCK_OK, "a shared lock, unfairly, with a short ticket");
    tap_ok(script.request.unfair, "the try is told that it passes by");
    tap_is_int(script.queued.permits, ROWLOCK_SHARED, "which kind it waits for");
    tap_is_int(script.ticket_lease_us, 2000000, "and how long the ticket lives");
    tap_is_int(rowlock_release(story.lock), ROWLOCK_OK, "it is released");
    tap_is_int(try_lock(story.lock, TTL_MS), ROWLOCK_BUSY, "the next try");
    tap_is_int(script.request.ticket, 0, "has no ticket any more");
}

static void test_wakeup_without_reason(void)
{
    begin();
    grant_after(3);
    script_next(OP_AWAIT, ANSWER(.wakeup = WAKEUP_INTERRUPTED));
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "interrupted without a cancel");
    tap_is_int(script.waits[0].until_us - script.acquired_us[2] < 2000 &&
                   script.acquired_us[2] >= script.waits[0].until_us,
               true, "the pause is made all the same");
}

/* ---- no release is slept through */

static struct {
    int at, calls;
    int64_t us; /* when it came */
    int waits; /* so many had begun before it */
} release;

/* Another's release comes while the answer to this call is on its way, and wakes for the first in the queue. */
static void release_at_call(enum script_op op)
{
    if (++release.calls != release.at)
        return;
    release.us = rlk_now_us();
    release.waits = script.wait_count;
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    script_wake();
}

static void wait_for_release(void (*hook)(enum script_op op), int at)
{
    memset(&release, 0, sizeof release);
    release.at = at;
    script_hook(hook);
}

static int slept_after_release(void)
{
    int slept = 0;
    for (int i = release.waits; i < script.wait_count; i++)
        slept += script.waits[i].wakeup == RLK_SILENT;
    return slept;
}

/* Whatever the reason, a wakeup that was not heard may cost a short pause, but not the long one. */
enum { SHORT_US = 200000 };

/* Tickets are kept often here, so that those steps are met too. */
static void lose_and_release(int lost, enum rlk_class class, int at)
{
    begin();
    script.fail_at = lost;
    script.fail_as = class;
    story.db->reconnect_us = 10 * 1000000;
    wait_for_release(release_at_call, at);
    int result =
        wait_with((rowlock_acquire_options){.wait_ms = ROWLOCK_FOREVER, .ticket_ms = 4000});
    int64_t late_us = rlk_now_us() - release.us;
    tap_ok(
        result == ROWLOCK_OK && slept_after_release() == 0 && late_us < (lost ? SHORT_US : 1),
        "the connection lost (%d) at step %d (0: never), a release after step %d: %s; %d us late",
        (int)class, lost, at, script_calls(), (int)late_us);
}

static void test_release_at_every_point(void)
{
    for (int at = 1; at <= 24; at++)
        lose_and_release(0, RLK_DONE, at);
    for (int lost = 3; lost <= 8; lost++)
        for (int at = lost; at <= lost + 8; at++) {
            lose_and_release(lost, RLK_UNSENT, at);
            lose_and_release(lost, RLK_UNCERTAIN, at);
        }
}

/* Just before the ticket is kept on the new connection, where no session heard it until then. */
static void release_before_ticket(enum script_op op)
{
    if (op != OP_ENQUEUE || script_count(OP_ENQUEUE) != 2)
        return;
    release.us = rlk_now_us();
    release.waits = script.wait_count;
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
}

static void test_release_before_wakeup_is_heard(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    script_next(OP_ACQUIRE, FAILS(RLK_UNSENT));
    wait_for_release(release_before_ticket, 0);
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "a connection that was lost at a look hears no wakeup");
    tap_ok(release.us > 0 && slept_after_release() == 0,
           "as soon as one is heard again there is a look for what it may have missed");
}

/* ---- the ticket */

static void test_ticket_is_kept(void)
{
    begin();
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 60000, .ticket_ms = 6000}),
               ROWLOCK_TIMEOUT, "a long wait");
    tap_ok(script.ticket_count >= 28 && script.ticket_count <= 31, "keeps its ticket: %d times",
           script.ticket_count);
    bool in_time = true;
    for (int i = 1; i < script.ticket_count; i++) {
        int64_t after_us = script.tickets_us[i] - script.tickets_us[i - 1];
        in_time = in_time && after_us >= 2000000 && after_us < 2010000;
    }
    tap_ok(in_time, "whenever a third of its lease has passed");
    tap_is_int(script_count(OP_LEAVE), 1, "and gives it back");
}

/* The next acquire asks for what may have been granted. */
static void test_uncertain(enum script_op op)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(op, FAILS(RLK_UNCERTAIN));
    script_next(OP_OPEN, FAILS(RLK_DENIED));
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_EUNCERTAIN,
               "a lost answer that cannot be had again is told");
    tap_is_int(script_count(OP_LEAVE), 0, "no ticket is given back");
    int asked = script.request_count;
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
               "the next acquire gets it");
    if (op == OP_ACQUIRE)
        tap_ok(script.requests[asked] == script.requests[0], "by the same request");
}

/* ---- how a wait ends */

/* A second look that says so. */
static void test_ends(struct script_answer last, int result, const char *what)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, last);
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 60000, .permits = 3}), result,
               "%s ends a wait", what);
    tap_is_int(script_count(OP_LEAVE), 1, "which leaves the line");
    tap_is_str(script.queue_name, "nightly", "of that lock");
    tap_is_int(error_code(story.db), result, "and is what the handle has to tell");
    tap_is_int(rowlock_lock_token(story.lock), 0, "nothing is held");
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(try_lock(story.lock, TTL_MS), ROWLOCK_OK, "the handle can acquire again");
    tap_is_int(script.request.ticket, 0, "without that ticket");
}

/* A ticket is taken; at the next look the connection is lost, and there is no server. */
static void begin_cut_off(void)
{
    begin();
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, FAILS(RLK_UNSENT));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
}

static void test_cut_off(void)
{
    begin_cut_off();
    int64_t began_us = rlk_now_us();
    tap_is_int(wait_lock(story.lock, TTL_MS, 60000), ROWLOCK_ECONN,
               "a server that is away at the end");
    int64_t took_us = rlk_now_us() - began_us;
    tap_ok(took_us >= 59990000 && took_us <= 60000000, "was looked for all the time: %lld us",
           (long long)took_us);
    tap_ok(strstr(why(story.db), "away for 60.0 s") || strstr(why(story.db), "away for 59.9 s"),
           "and the text says for how long: %s", why(story.db));
    tap_is_int(script_count(OP_LEAVE), 0, "it is not asked to take the ticket back");
    begin_cut_off();
    story.db->reconnect_us = 0; /* reconnect_ms < 0 */
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_ECONN,
               "a handle that never reconnects waits for none");
}

/* What is logged at level WARNING; and the moment at which the server is back. */
static struct {
    int lines;
    char last[200];
    int64_t back_us;
} outage;

static void note_line(void *unused, rowlock_log_level level, const char *line)
{
    outage.lines++;
    snprintf(outage.last, sizeof outage.last, "%s", line);
}

static void come_back(enum script_op op)
{
    if (op == OP_OPEN && rlk_now_us() >= outage.back_us)
        script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
}

static void begin_outage(int64_t ms)
{
    outage.lines = 0;
    outage.back_us = rlk_now_us() + ms * 1000;
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    script.hook = come_back;
    rowlock_log_set(note_line, NULL, ROWLOCK_LOG_WARNING);
}

static void test_outage(void)
{
    static const enum rlk_class classes[] = {RLK_UNSENT, RLK_UNCERTAIN};
    static const enum script_op ops[] = {OP_ACQUIRE, OP_ENQUEUE, OP_AWAIT};
    for (size_t i = 0; i < 6; i++) {
        begin();
        script_next(ops[i / 2], FAILS(classes[i % 2]));
        grant_after(2);
        begin_outage(3600000);
        tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_OK,
                   "a waiter waits through an outage of an hour");
        tap_is_int(outage.lines, 2, "of which it logs the beginning and the end");
        tap_ok(strstr(outage.last, "is back after 360") || strstr(outage.last, "after 3599."),
               "and how long it was: %s", outage.last);
        int opens = script_count(OP_OPEN);
        tap_ok(opens > 3600 && opens < 20000, "it asks about twice a second: %d times", opens);
    }
}

static void test_outage_before_the_try(void)
{
    begin();
    rlk_lose(story.db);
    begin_outage(20000);
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(story.lock, TTL_MS, 0), ROWLOCK_ECONN, "a try does not wait for a server");
    tap_is_int(outage.lines, 0, "nor logs a warning");
    tap_is_int(wait_lock(story.lock, TTL_MS, 60000), ROWLOCK_OK,
               "a client that may wait does, also at first");
    tap_is_int(outage.lines, 2, "and logs it");
}

static void test_outage_not_waited_for(void)
{
    static const enum rlk_class classes[] = {RLK_DENIED, RLK_INVALID, RLK_SCHEMA};
    for (size_t i = 0; i < 3; i++) {
        begin_cut_off();
        script_next(OP_OPEN, FAILS(RLK_UNSENT));
        script_next(OP_OPEN, FAILS(classes[i]));
        tap_ok(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER) < 0,
               "a server that refuses us is not waited for: %s", why(story.db));
        tap_is_int(script_count(OP_OPEN), 3, "beyond that answer");
    }
}

/* The connection is lost as the wait ends: whether the lock is held, only the server can say. */
static void test_lost_at_the_end(void)
{
    begin();
    script_always(OP_ENQUEUE, ANSWER(.ahead = 3));
    script_next(OP_AWAIT, ANSWER(.class = RLK_UNSENT, .takes_us = 1000000));
    script_always(OP_OPEN, FAILS(RLK_UNSENT));
    tap_is_int(wait_lock(story.lock, TTL_MS, 1000), ROWLOCK_ECONN,
               "a connection that is lost as the wait ends is no TIMEOUT");
}

static void cancel_on_open(enum script_op op)
{
    if (op == OP_OPEN)
        rowlock_cancel(story.db);
}

/* Nor does a cancel wait for a server that is not there. */
static void test_cancel_while_cut_off(void)
{
    begin_cut_off();
    script.hook = cancel_on_open;
    tap_is_int(wait_lock(story.lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_CANCELLED,
               "cancelled while the server is looked for");
    tap_is_int(script_count(OP_OPEN), 2, "after the first attempt");
    tap_is_int(script_count(OP_LEAVE), 0, "the ticket is left to its lease");
    script.hook = NULL;
    int64_t began_us = rlk_now_us();
    rowlock_lock_close(story.lock);
    tap_ok(script_count(OP_OPEN) > 2, "closing tries to give it back");
    tap_ok(rlk_now_us() - began_us <= 500000, "but looks for the server for half a second at most");
    story.lock = NULL;
}

/* The server is gone when the wait ends, and comes back afterwards. */
static void begin_left_behind(void)
{
    begin_cut_off();
    tap_is_int(wait_lock(story.lock, TTL_MS, 5000), ROWLOCK_ECONN,
               "a ticket that could not be given back");
    script_always(OP_OPEN, ANSWER(.class = RLK_DONE));
    script_calls();
    other = must_lock(story.db, "weekly");
}

/* The next call of the same rowlock_db gives it back first. */
static void test_left_behind(bool by_its_own, enum rlk_class class, const char *calls,
                             const char *what)
{
    begin_left_behind();
    script_next(OP_LEAVE, class == RLK_DONE ? ANSWER(.class = RLK_DONE) : FAILS(class));
    tap_is_int(try_lock(by_its_own ? story.lock : other, TTL_MS), ROWLOCK_BUSY, "%s", what);
    tap_is_str(script_calls(), calls, "gives it back before its own step");
    tap_is_str(script.queue_name, "nightly", "in the queue where it stands");
    tap_ok(script.queued.number == script.requests[0], "by its own request");
    tap_is_int(try_lock(story.lock, TTL_MS), ROWLOCK_BUSY, "its own handle's next try");
    tap_is_str(script_calls(), class == RLK_DENIED ? "leave acquire" : "acquire",
               "gives back what could not be given back before");
    close_locks(other, story.lock);
    tap_is_str(script_calls(), "", "and then it is gone for good");
    other = story.lock = NULL;
}

static void test_left_behind_and_closed(void)
{
    begin_left_behind();
    rowlock_lock_close(story.lock);
    tap_is_str(script_calls(), "open meta leave", "closing the handle gives it back");
    tap_ok(script.leaves_later, "and a pool may do so after the handle is gone");
    story.lock = NULL;
}

/* The ticket of a wait that goes on is not one that was left behind. */
static void test_not_left_behind(void)
{
    begin_left_behind();
    script_next(OP_AWAIT, FAILS(RLK_UNSENT));
    tap_is_int(wait_lock(other, TTL_MS, 2000), ROWLOCK_TIMEOUT, "a wait that loses its connection");
    tap_is_int(script_count(OP_LEAVE), 2, "keeps its own ticket until it ends");
    tap_is_str(script.queue_name, "weekly", "which is given back last");
}

/* The reason is kept when there is no one to tell, and when telling fails. */
static void test_leaving_fails(void)
{
    begin();
    script_always(OP_LEAVE, FAILS(RLK_DENIED));
    tap_is_int(wait_lock(story.lock, TTL_MS, 100), ROWLOCK_TIMEOUT,
               "a wait in vain is that, though the ticket could not be given back");
    tap_is_int(error_code(story.db), ROWLOCK_TIMEOUT, "and the handle says so");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD));
    script_next(OP_ACQUIRE, FAILS(RLK_REFUSED));
    tap_is_int(wait_lock(story.lock, TTL_MS, 100), ROWLOCK_ESERVER, "an error");
    tap_is_int(error_code(story.db), ROWLOCK_ESERVER, "is not replaced by that");
    script_always(OP_LEAVE, ANSWER(.missing = true));
    tap_is_int(wait_lock(story.lock, TTL_MS, 100), ROWLOCK_TIMEOUT,
               "nor is it worth a word that the ticket was not there");
}

/* ---- when to look */

static bool within(int64_t value, int64_t low, int64_t high)
{
    return value >= low && value <= high;
}

/* Each wait for a wakeup, but the last one, which ends with the whole wait, and those that a ticket ends. */
static bool waits_are_within(int64_t low_us, int64_t high_us)
{
    bool good = script.wait_count > 2;
    for (int i = 0; i + 1 < script.wait_count; i++) {
        int64_t until_us = script.waits[i].until_us;
        bool kept = false;
        for (int t = 0; t < script.ticket_count; t++)
            kept = kept || within(script.tickets_us[t] - until_us, 0, 2000);
        int64_t pause_us = until_us - script.waits[i].from_us;
        good = good && within(pause_us, kept ? 0 : low_us, high_us);
    }
    return good;
}

/* Others wake. When the holder's lease ends soon the first in the queue looks then. */
static void test_pace_with_wakeup(int ahead, int64_t left_us)
{
    begin();
    script_always(OP_ENQUEUE, ANSWER(.ahead = ahead));
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .behind = ahead > 0, .left_us = left_us));
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 300000, .ticket_ms = 3000000}),
               ROWLOCK_TIMEOUT, "%d before us, which wake", ahead);
    tap_ok(waits_are_within(750000 * (1 + ahead), 1250000 * (1 + ahead)),
           "we look every second for each of us");
}

static void test_gets_first(void)
{
    begin();
    script_next(OP_ENQUEUE, ANSWER(.ahead = 50));
    tap_is_int(wait_lock(story.lock, TTL_MS, 20000), ROWLOCK_TIMEOUT, "fifty were before us once");
    tap_ok(waits_are_within(750000, 1250000),
           "but none is any more, as each look says: we look as the first does");
    begin();
    script_always(OP_ENQUEUE, ANSWER(.ahead = 5));
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .behind = true, .left_us = HOUR_US));
    for (int i = 0; i < 2; i++)
        script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .behind = true, .left_us = HOUR_US));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_IN_FLIGHT));
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 100000, .ticket_ms = 3000000}),
               ROWLOCK_TIMEOUT, "a look that finds it in flight");
    bool patient = script.wait_count > 4;
    for (int i = 2; i + 1 < script.wait_count; i++)
        patient = patient && script.waits[i].until_us - script.waits[i].from_us >= 6 * 750000;
    tap_ok(patient, "says nothing of those before us");
}

/* From 5 ms on, growing by a twentieth of the wait, to a quarter of a second. */
static bool looks_are_paced(int from)
{
    bool good = script.request_count > 20;
    int64_t began_us = script.acquired_us[0];
    for (int i = from; i + 1 < script.request_count - 1; i++) {
        int64_t so_far_us = (script.acquired_us[i] - began_us) / 20;
        int64_t pause_us = so_far_us < 5000 ? 5000 : so_far_us > 250000 ? 250000 : so_far_us;
        int64_t took_us = script.acquired_us[i + 1] - script.acquired_us[i];
        bool paced = within(took_us, pause_us * 3 / 4, pause_us * 5 / 4 + 2000);
        if (!paced)
            tap_note("look %d came after %d us, not about %d", i, (int)took_us, (int)pause_us);
        good = good && paced;
    }
    return good;
}

static void test_pace_without_wakeup(void)
{
    for (int ahead = 0; ahead <= 3; ahead += 3) {
        begin();
        script_always(OP_ENQUEUE, ANSWER(.ahead = ahead, .no_wakeup = true));
        script_always(OP_ACQUIRE,
                      ANSWER(.outcome = RLK_HELD, .behind = ahead > 0, .left_us = HOUR_US));
        tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 40000, .ticket_ms = 3000000}),
                   ROWLOCK_TIMEOUT, "%d before us, none wakes", ahead);
        tap_is_int(script_count(OP_AWAIT), 0, "no wakeup is waited for");
        int asked = script_count(OP_ENQUEUE);
        if (ahead == 0)
            tap_ok(looks_are_paced(1), "we look often at first, and then less and less");
        else
            tap_ok(script.request_count == 2 && asked > 20 && asked < 200,
                   "we look when we come, and then ask for our place only, %d times", asked);
    }
}

/* It takes 4 s for each look at last, with 200 before it. */
static void test_pace_far_back(void)
{
    begin();
    script_always(OP_ENQUEUE, ANSWER(.ahead = 200, .no_wakeup = true));
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .behind = true, .left_us = HOUR_US));
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 100000, .ticket_ms = 3000000}),
               ROWLOCK_TIMEOUT, "two hundred before us, and the queue stands still");
    int asked = script_count(OP_ENQUEUE);
    tap_ok(asked > 20 && asked < 40, "we look seldom, %d times", asked);
}

/* The driver finds out when it is asked to wait. */
static void test_wakeup_is_gone(void)
{
    begin();
    script_always(OP_AWAIT, ANSWER(.wakeup = WAKEUP_NONE));
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 2000, .ticket_ms = 3000000}),
               ROWLOCK_TIMEOUT, "a wakeup that is promised, but does not work");
    tap_is_int(script_count(OP_AWAIT), 1, "is waited for once");
    tap_ok(looks_are_paced(1), "and then the lock is looked at as without one");
    begin();
    script_next(OP_AWAIT, ANSWER(.wakeup = WAKEUP_NONE));
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 10000, .ticket_ms = 6000}),
               ROWLOCK_TIMEOUT, "one that works again later");
    tap_ok(script.wait_count > 4, "is waited for when the ticket is kept");
}

/* For so many looks, and no more: it may go on for as long as others like. */
static void test_settling(struct script_answer answer, const char *what)
{
    enum { QUICK_LOOKS = 12 };
    begin();
    for (int i = 0; i < 2 + QUICK_LOOKS; i++)
        script_next(OP_ACQUIRE, answer);
    tap_is_int(wait_with((rowlock_acquire_options){.wait_ms = 20000, .ticket_ms = 3000000}),
               ROWLOCK_TIMEOUT, "%s", what);
    bool soon = script.wait_count > QUICK_LOOKS + 2, late = true;
    for (int i = 0; i < script.wait_count - 1; i++) {
        int64_t pause_us = script.waits[i].until_us - script.waits[i].from_us;
        int64_t range_us = i < 6 ? 1000 << i : 64000;
        if (i < QUICK_LOOKS)
            soon = soon && pause_us <= range_us * 5 / 4;
        else
            late = late && pause_us >= 750000;
    }
    tap_ok(soon, "is looked at again soon, but ever less often");
    tap_ok(late, "when that has gone on for long the waits are as ever");
}

static void test_holders_lease(bool unwakeable)
{
    begin();
    script_always(OP_ENQUEUE, ANSWER(.no_wakeup = unwakeable));
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = unwakeable ? 3000 : 400000));
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(wait_lock(story.lock, TTL_MS, 60000), ROWLOCK_OK, "the holder's lease ends soon");
    int64_t after_us = script.acquired_us[2] - script.acquired_us[1];
    tap_ok(within(after_us, unwakeable ? 3000 : 400000, unwakeable ? 6100 : 405000),
           "the first in line looks right after that: %d us", (int)after_us);
}

int main(void)
{
    test_courses();
    test_options_of_the_line();
    test_wakeup_without_reason();
    test_release_at_every_point();
    test_release_before_wakeup_is_heard();
    test_ticket_is_kept();
    test_uncertain(OP_ENQUEUE);
    test_uncertain(OP_ACQUIRE);
    test_ends(FAILS(RLK_DENIED), ROWLOCK_EDENIED, "a missing privilege");
    test_ends(FAILS(RLK_REFUSED), ROWLOCK_ESERVER, "an error of the server's");
    test_ends(FAILS(RLK_SCHEMA), ROWLOCK_ESCHEMA, "tables that went away");
    test_ends(FAILS(RLK_READONLY), ROWLOCK_EREADONLY, "a server that takes no writes any more");
    test_ends(FAILS(RLK_NOMEM), ROWLOCK_ENOMEM, "too little memory");
    test_ends(ANSWER(.outcome = RLK_HELD, .permits = 4), ROWLOCK_MISMATCH,
              "holders that count otherwise");
    test_ends(ANSWER(.outcome = RLK_HELD, .permits = ROWLOCK_SHARED), ROWLOCK_MISMATCH,
              "holders that share");
    test_cut_off();
    test_outage();
    test_outage_before_the_try();
    test_outage_not_waited_for();
    test_lost_at_the_end();
    test_cancel_while_cut_off();
    test_left_behind(false, RLK_DONE, "open meta leave acquire", "another handle's try");
    test_left_behind(true, RLK_DONE, "open meta leave acquire", "the same handle's try");
    test_left_behind(false, RLK_UNCERTAIN, "open meta leave open meta leave acquire",
                     "a try whose new connection is lost as well");
    test_left_behind(false, RLK_DENIED, "open meta leave acquire",
                     "a try beside a ticket that cannot be given back");
    test_left_behind_and_closed();
    test_not_left_behind();
    test_leaving_fails();
    for (int ahead = 0; ahead <= 20; ahead += 10)
        test_pace_with_wakeup(ahead, HOUR_US);
    test_pace_with_wakeup(3, 100000);
    test_gets_first();
    test_pace_without_wakeup();
    test_pace_far_back();
    test_wakeup_is_gone();
    test_settling(ANSWER(.outcome = RLK_HELD, .settling = true, .left_us = HOUR_US),
                  "a row that is being changed");
    test_settling(ANSWER(.outcome = RLK_IN_FLIGHT), "a grant in flight");
    test_holders_lease(false);
    test_holders_lease(true);
    end();
    return tap_done();
}
