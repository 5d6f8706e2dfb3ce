/* SPDX-License-Identifier: MIT
 *
 * Acquiring without blocking: that no other call comes between the thread that waits and its connection, what it
 * takes and gives back, closing and fork. What becomes of the lock is in start.c. The clock is the real one, but
 * nothing is waited for by it: a thread stands still where a test wants it to, or until it is woken for.
 */
#include "fail_alloc.h"
#include "story.h"

#include <sys/resource.h>

enum { TTL_MS = 600000 };
#define HOUR_US INT64_C(3600000000)

/* ---- a thread that stands still at its next step of one kind */

static _Atomic enum script_op halt_at;
static atomic_bool halting;
static sem_t halted, go_on;

static void halt(enum script_op op)
{
    if (!halting || op != halt_at)
        return;
    halting = false;
    sem_post(&halted);
    sem_wait(&go_on);
}

static void let_go(void)
{
    sem_post(&go_on);
}

/* Ends the test before. */
static void begin(void)
{
    ticking();
    sem_init(&halted, 0, 0);
    sem_init(&go_on, 0, 0);
    halting = false;
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    script_hook(halt);
}

static int start(rowlock_lock *which)
{
    return rowlock_acquire_start(which,
                                 OPTIONS(acquire, .ttl_ms = TTL_MS, .wait_ms = ROWLOCK_FOREVER));
}

static void must_start(void)
{
    tap_is_int(start(story.lock), ROWLOCK_OK, "an acquire is started");
}

/* Its thread stands still at that step when this returns. */
static void start_halted(enum script_op op)
{
    halt_at = op;
    halting = true;
    must_start();
    sem_wait(&halted);
}

/* It waits in line when this returns. */
static void begin_waiting(void)
{
    begin();
    start_halted(OP_AWAIT);
    let_go();
}

static rowlock_lock *begin_holding_another(void)
{
    begin();
    rowlock_lock *other = must_lock(story.db, "other");
    script_next(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    tap_is_int(try_lock(other, TTL_MS), ROWLOCK_OK, "another lock is held");
    return other;
}

static void grant_and_wake(void)
{
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    if (!script_wake())
        tap_ok(false, "somebody stands in line to be woken for");
}

/* As an event loop does, which would not sleep for ever. */
static bool becomes_readable(int fd)
{
    struct pollfd it = {.fd = fd, .events = POLLIN};
    return poll(&it, 1, (int)slow_ms(60000)) == 1;
}

static int finish(rowlock_lock *which)
{
    bool soon = becomes_readable(rowlock_acquire_fd(which));
    return soon ? rowlock_acquire_step(which) : ROWLOCK_PENDING;
}

static void finishes(int want, const char *what)
{
    tap_is_int(finish(story.lock), want, "%s", what);
}

/* ---- what it is for */

static void test_waits(void)
{
    begin_waiting();
    int fd = rowlock_acquire_fd(story.lock);
    struct pollfd it = {.fd = fd, .events = POLLIN};
    tap_ok(fd >= 0 && poll(&it, 1, 0) == 0, "there is a descriptor, with nothing to step for");
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_PENDING, "a step says so");
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_PENDING, "however often");
    tap_ok((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "programs that are started do not get it");
    grant_and_wake();
    tap_ok(becomes_readable(fd), "it gets readable");
    tap_is_int(rowlock_acquire_fd(story.lock), fd, "and stays the same");
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_OK, "the step tells the result");
    tap_is_int(fcntl(fd, F_GETFD), -1, "then it is closed");
    tap_is_int(script.threads_entered, 1, "the driver was told of the thread");
    tap_is_int(script.threads_left, 1, "and of its end");
    script_calls();
    must_start();
    finishes(ROWLOCK_OK, "a lock that is held is entered again like this too");
    tap_is_str(script_calls(), "", "without a step of the database's");
}

static int start_with(const rowlock_acquire_options *options)
{
    int result = rowlock_acquire_start(story.lock, options);
    return result == ROWLOCK_OK ? finish(story.lock) : result;
}

static void test_results(void)
{
    begin();
    OWNED(lock) rowlock_lock *there = must_attach(story.db, "weekly", "me", 5);
    tap_is_int(start_with(OPTIONS(acquire, .wait_ms = 0)), ROWLOCK_BUSY, "a try");
    tap_is_int(error_code(story.db), ROWLOCK_BUSY, "says so");
    script_next(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .permits = 4));
    tap_is_int(start_with(OPTIONS(acquire, .permits = 3)), ROWLOCK_MISMATCH, "another kind");
    script_next(OP_ACQUIRE, FAILS(RLK_DENIED));
    tap_is_int(start_with(OPTIONS(acquire, .wait_ms = 0)), ROWLOCK_EDENIED, "a failure");
    rowlock_error err = error_of(story.db);
    tap_ok(err.code == ROWLOCK_EDENIED && strcmp(err.action, "acquire lock 'nightly'") == 0,
           "whose facts the handle has: %s", err.action);
    int result = start(there);
    tap_is_int(result == ROWLOCK_OK ? finish(there) : result, ROWLOCK_EMISUSE,
               "what is attached elsewhere is not acquired like this");
    script_calls();
    tap_is_int(start_with(OPTIONS(acquire, .permits = -2)), ROWLOCK_EINVAL,
               "what cannot be is refused at once");
    tap_is_int(rowlock_acquire_start(NULL, NULL), ROWLOCK_EMISUSE, "nor for no lock");
    tap_is_str(script_calls(), "", "nothing was sent");
}

/* ---- all others meanwhile */

static void test_others_are_turned_away(void)
{
    rowlock_grant grant = ROWLOCK_GRANT_INIT;
    begin();
    OWNED(lock) rowlock_lock *other = must_lock(story.db, "other");
    OWNED(db) rowlock_db *tx = script_adopt();
    start_halted(OP_AWAIT);
    script_calls();
    script.inside = true;
    tap_is_str(accepted(story.db, story.lock, "async"), NULL,
               "every other call on the lock is a mistake");
    tap_is_int(rowlock_lock_holder(story.lock, &grant), ROWLOCK_EMISUSE, "no holder is known");
    rowlock_progress(story.lock);
    rowlock_forget(story.lock);
    tap_is_str(accepted(story.db, other, "state_fd"), NULL,
               "every call on another one of its db is, and there is no descriptor");
    tap_is_int(rowlock_guard(story.lock, tx), ROWLOCK_EMISUSE, "also in a transaction: guard");
    tap_is_int(rowlock_tx_acquire(other, tx, NULL), ROWLOCK_EMISUSE, "acquire");
    tap_is_int(rowlock_tx_release(story.lock, tx), ROWLOCK_EMISUSE, "release");
    script.inside = false;
    rowlock_error err = error_of(story.db);
    tap_is_int(err.code, ROWLOCK_EMISUSE, "the thread's error is not read: %s", err.text);
    tap_is_str(script_calls(), "", "nothing was sent beside it");
    let_go();
    grant_and_wake();
    finishes(ROWLOCK_OK, "and it goes on");
}

/* What is held otherwise can be asked for what it knows. */
static void test_another_is_held(void)
{
    OWNED(lock) rowlock_lock *other = begin_holding_another();
    start_halted(OP_AWAIT);
    tap_ok(rowlock_lock_token(other) == 1 && rowlock_lock_remaining_ms(other) > 0 &&
               rowlock_lock_state(other) == ROWLOCK_STATE_HELD,
           "the other one goes on");
    tap_is_int(rowlock_release(other), ROWLOCK_EMISUSE, "but is not released beside it");
    let_go();
    grant_and_wake();
    finishes(ROWLOCK_OK, "it is granted");
    tap_is_int(rowlock_release(other), ROWLOCK_OK, "then the other one can be released");
}

static atomic_bool asking_enough, asked_once;

/* In the keeper's thread. */
static void ask_for_long(void *context, rowlock_lock *whose, rowlock_state state)
{
    while (!asking_enough) {
        asked_once = rowlock_lock_state(whose) != ROWLOCK_STATE_NONE;
        sleep_ms(0);
    }
}

/* Others are started and ended while a callback asks for what it is about. */
static void test_callback_asks_meanwhile(void)
{
    OWNED(keeper) rowlock_keeper *keeper = NULL;
    begin();
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    script_always(OP_RENEW_ALL, FAILS(RLK_DENIED));
    OWNED(lock) rowlock_lock *kept = must_lock(story.db, "kept");
    asking_enough = asked_once = false;
    rowlock_acquire_options options = *OPTIONS(acquire, .on_state = ask_for_long, .ttl_ms = 300);
    tap_is_int(open_keeper_at("sqlite:script", NULL, &keeper, NULL), ROWLOCK_OK, "a keeper");
    options.keeper = keeper;
    tap_is_int(rowlock_acquire(kept, &options), ROWLOCK_OK, "keeps another lock");
    (void)EVENTUALLY(asked_once);
    int good = 0;
    for (int i = 0; i < 50; i++) {
        good += start(story.lock) == ROWLOCK_OK && finish(story.lock) == ROWLOCK_OK;
        good += rowlock_release(story.lock) == ROWLOCK_OK;
    }
    tap_is_int(good, 100, "while its callback asks, acquires are started and ended");
    asking_enough = true;
}

/* ---- ending it */

/* The lock, or its db. What is left of the test goes on with a new one. */
static void close_it(bool the_db)
{
    if (the_db) {
        rowlock_db_close(story.db);
        tap_ok(rowlock_acquire_step(story.lock) == ROWLOCK_EMISUSE &&
                   rowlock_acquire_fd(story.lock) == -1,
               "after its db a lock has nothing to step for, and no descriptor");
        story.db = script_open(NULL);
    }
    closes(0);
}

static void test_closing(bool the_db)
{
    begin_waiting();
    int fd = rowlock_acquire_fd(story.lock);
    close_it(the_db);
    tap_is_int(script_count(OP_LEAVE), 1, "closing the %s waits until it has left the line",
               the_db ? "db" : "lock");
    tap_is_int(script_count(OP_CLOSE), the_db, "the connection is closed with the db");
    tap_is_int(fcntl(fd, F_GETFD), -1, "its descriptor is closed");
    tap_is_int(script.threads_left, 1, "its thread has ended");
    tap_is_int(wait_lock(story.lock, TTL_MS, 5), ROWLOCK_TIMEOUT, "the next wait is not cancelled");
}

static int go_on_later(void *argument)
{
    let_go();
    return 0;
}

/* It is granted while it is being closed. */
static void test_closing_what_was_granted(bool the_db)
{
    begin();
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    start_halted(OP_ACQUIRE);
    struct helper *later = helper_start(go_on_later, NULL);
    close_it(the_db);
    helper_join(later);
    tap_is_int(script_count(OP_RELEASE), 1, "what is granted while the %s is closed is released",
               the_db ? "db" : "lock");
    script_always(OP_ACQUIRE, ANSWER(.outcome = RLK_HELD, .left_us = HOUR_US));
    tap_is_int(wait_lock(story.lock, TTL_MS, 5), ROWLOCK_TIMEOUT,
               "a cancel without a wait does not end the next wait");
}

/* Ended, but no step was called. */
static void test_closing_unstepped(void)
{
    begin();
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    must_start();
    tap_ok(becomes_readable(rowlock_acquire_fd(story.lock)), "and ends");
    script_calls();
    close_it(false);
    tap_is_str(script_calls(), "release", "closed without a step, it is released");
    tap_is_int(try_lock(story.lock, TTL_MS), ROWLOCK_OK, "and the db goes on");
}

static atomic_bool asking, beside;

/* Do two threads use the connection at once? */
static void note_asking(enum script_op op)
{
    if (op == OP_RELEASE && asking)
        beside = true;
    if (op == OP_ACQUIRE && script_count(OP_ACQUIRE) == 2) {
        asking = true;
        halt(op);
        asking = false;
    }
}

static void test_closing_another_lock(void)
{
    rowlock_lock *other = begin_holding_another();
    asking = beside = false;
    script_hook(note_asking);
    start_halted(OP_ACQUIRE);
    struct helper *later = helper_start(go_on_later, NULL);
    rowlock_lock_close(other);
    helper_join(later);
    tap_ok(!beside, "closing the other one sends nothing beside the thread");
    rowlock_cancel(story.db);
    finishes(ROWLOCK_CANCELLED, "what was started ends as cancelled, and says so");
    close_it(false);
    tap_is_int(wait_lock(story.lock, TTL_MS, 5) == ROWLOCK_OK, false, "the db goes on");
}

/* What was started is the lock's until it has been stepped for, ended or not. */
static void test_starting_another(void)
{
    begin();
    rowlock_lock *other = must_lock(story.db, "other"), *third = must_lock(story.db, "third");
    must_start();
    rowlock_lock_close(third);
    rowlock_cancel(story.db);
    tap_ok(becomes_readable(rowlock_acquire_fd(story.lock)), "and ends");
    int result = start(other);
    tap_is_int(result, ROWLOCK_EMISUSE, "another is not started before it was stepped for");
    if (result == ROWLOCK_OK) {
        rowlock_cancel(story.db);
        finish(other);
    }
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_CANCELLED, "whose result is still there");
    rowlock_lock_close(other);
}

/* ---- what it takes */

static int highest_descriptor(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static int start_without_descriptors(void)
{
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){.rlim_cur = (rlim_t)highest_descriptor(), .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    int result = start(story.lock);
    setrlimit(RLIMIT_NOFILE, &before);
    return result;
}

/* No room for a stack. */
static int start_without_thread(void)
{
    pthread_attr_t before, huge;
    pthread_getattr_default_np(&before);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, SIZE_MAX / 8 * 7);
    pthread_setattr_default_np(&huge);
    int result = start(story.lock);
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&before);
    return result;
}

static int start_without_memory(void)
{
    fail_alloc_at(1);
    int result = start(story.lock);
    fail_alloc_at(0);
    return result;
}

static void test_shortage(int (*start_without)(void), const char *what)
{
    begin();
    int next = highest_descriptor();
    fail_alloc_at(0);
    int live = fail_alloc_live();
    tap_is_int(start_without(), ROWLOCK_ENOMEM, "without %s nothing is started", what);
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_EMISUSE,
               "so there is nothing to step for");
    tap_is_int(rowlock_acquire_fd(story.lock), -1, "and there is no descriptor");
    tap_is_int(highest_descriptor(), next, "nor is one left open");
    tap_is_int(fail_alloc_live(), live, "and nothing leaked");
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    must_start();
    finishes(ROWLOCK_OK, "with enough of it the handle works as before");
    tap_is_int(fail_alloc_live(), live, "and all is given back");
}

static atomic_int open_to_signals;

static void look_at_signals(enum script_op op)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (op == OP_ACQUIRE)
        open_to_signals += !sigismember(&blocked, SIGTERM) + !sigismember(&blocked, SIGALRM);
}

static void test_signals(void)
{
    sigset_t before, after;
    begin();
    open_to_signals = 0;
    script_hook(look_at_signals);
    script_always(OP_ACQUIRE, ANSWER(.class = RLK_DONE));
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    must_start();
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    finishes(ROWLOCK_OK, "and granted");
    tap_is_int(open_to_signals, 0, "its thread takes no signals");
    tap_is_int(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM), "the caller's does");
}

/* ---- fork */

static int pipe_to_child[2];

static int in_child(void *argument)
{
    char byte;
    alarm((unsigned)slow_ms(120000) / 1000); /* a program that hangs is ended */
    close(pipe_to_child[1]);
    int wrong = accepted(story.db, story.lock, NULL) != NULL;
    while (read(pipe_to_child[0], &byte, 1) > 0)
        wrong = 2;
    story_end();
    return wrong;
}

/* The child has the descriptors too, as long as it lives, which is longer than the parent waits here. */
static void test_fork(void)
{
    begin_waiting();
    if (pipe2(pipe_to_child, O_CLOEXEC) != 0)
        tap_ok(false, "there is a pipe");
    pid_t child = child_start(in_child, NULL);
    close(pipe_to_child[0]);
    grant_and_wake();
    tap_ok(becomes_readable(rowlock_acquire_fd(story.lock)),
           "beside a child the descriptor gets readable");
    tap_is_int(rowlock_acquire_step(story.lock), ROWLOCK_OK, "and the parent is granted the lock");
    close(pipe_to_child[1]);
    tap_is_int(child_join(child), 0, "in a child nothing is started, and the handles are useless");
    tap_is_int(rowlock_release(story.lock), ROWLOCK_OK, "the parent releases");
}

int main(void)
{
    test_waits();
    test_results();
    test_others_are_turned_away();
    test_another_is_held();
    test_callback_asks_meanwhile();
    test_starting_another();
    for (int the_db = 0; the_db < 2; the_db++) {
        test_closing(the_db);
        test_closing_what_was_granted(the_db);
    }
    test_closing_unstepped();
    test_closing_another_lock();
    test_shortage(start_without_memory, "memory");
    test_shortage(start_without_descriptors, "descriptors");
    if (confstr(_CS_GNU_LIBC_VERSION, NULL, 0)) /* musl makes the stack smaller */
        test_shortage(start_without_thread, "a thread");
    test_signals();
    test_fork();
    story_end();
    return tap_done();
}
