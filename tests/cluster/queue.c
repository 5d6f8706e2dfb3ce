/* SPDX-License-Identifier: MIT
 *
 * A holder and its waiters, round after round: the order of the queue before the lock is free, and
 * the order in which the waiters get it. See load.h. */
#include "load.h"

enum {
    /* LOAD_TICKET_MS: so long may an outage last without costing a waiter its place. */
    TICKET_MS = 40000,
    WAIT_MS = 300000,
    /* The queue is not complete: a fault came in between. */
    LOOK_FOR_MS = 10000,
    LOOK_MS = 20
};

static struct queue {
    struct client holder, waiters[WAITERS];
    /* The holder's connection that reads the queue. */
    rowlock_db *reader;
    struct helper *threads[WAITERS + 1];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* The round that waiters take part in, how many of them may come, and how many are done. */
    int round, invited, done;
    bool over;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- waiters */

/* false: the load is over. */
static bool invited(const struct client *c, int number, int *round)
{
    pthread_mutex_lock(&queue.mutex);
    while (!queue.over && (queue.round == *round || queue.invited <= number))
        pthread_cond_wait(&queue.changed, &queue.mutex);
    bool come = queue.round != *round && queue.invited > number;
    if (come)
        *round = queue.round;
    pthread_mutex_unlock(&queue.mutex);
    return come;
}

static void is_done(void)
{
    pthread_mutex_lock(&queue.mutex);
    queue.done++;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
}

static int64_t ticket_ms(void)
{
    const char *text = getenv("LOAD_TICKET_MS");
    return text ? atoi(text) : TICKET_MS;
}

static int wait_in_rounds(void *argument)
{
    struct client *c = argument;
    int number = (int)(c - queue.waiters), round = 0;
    while (invited(c, number, &round)) {
        rowlock_acquire_options options = *OPTIONS(acquire, .ttl_ms = TTL_MS, .keeper = c->keeper,
                                                   .wait_ms = WAIT_MS, .ticket_ms = ticket_ms());
        char note[20];
        snprintf(note, sizeof note, "%d %d", round, number);
        options.note = note;
        int result = acquire(c, &options);
        tell("w %d %d %s %lld", round, number, rowlock_result_name(result),
             (long long)rowlock_lock_token(c->lock));
        if (result == ROWLOCK_OK) {
            hold(c, rand_r(&c->seed) % 10);
            release(c);
        }
        is_done();
    }
    return 0;
}

/* ---- the holder */

struct places {
    int round, count;
    int waiters[WAITERS];
};

/* A ticket of an earlier round may still be there, if its waiter has died. */
static int take_place(void *context, const rowlock_waiter *waiter)
{
    struct places *places = context;
    int round, number;
    if (sscanf(waiter->note, "%d %d", &round, &number) == 2 && round == places->round &&
        places->count < WAITERS)
        places->waiters[places->count++] = number;
    return 0;
}

/* false: the waiters of this round are not all there. */
static bool read_places(int round, int wanted, struct places *out)
{
    *out = (struct places){.round = round};
    return rowlock_list_waiters(queue.reader, queue.holder.name, take_place, out) == ROWLOCK_OK &&
           out->count == wanted;
}

static void invite(int round, int count)
{
    pthread_mutex_lock(&queue.mutex);
    queue.done = queue.round == round ? queue.done : 0;
    queue.round = round;
    queue.invited = count;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
}

static void until_all_done(void)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.done < WAITERS)
        pthread_cond_wait(&queue.changed, &queue.mutex);
    pthread_mutex_unlock(&queue.mutex);
}

/* false: the lock is lost, or the waiters do not come. */
static bool until_places(struct client *c, int round, int wanted, struct places *out)
{
    int64_t give_up = clock_ms() + LOOK_FOR_MS;
    while (!read_places(round, wanted, out)) {
        sleep_ms(LOOK_MS);
        if (clock_ms() > give_up || !hold(c, 0))
            return false;
    }
    return true;
}

/* The waiters come one after the other. */
static void fill(struct client *c, int round)
{
    struct places places;
    bool full = true;
    for (int i = 1; i <= WAITERS; i++) {
        invite(round, i);
        full = full && until_places(c, round, i, &places);
    }
    for (int i = 0; full && hold(c, 0) && i < WAITERS; i++)
        tell("Q %d %d %d", round, i + 1, places.waiters[i]);
}

static int hold_in_rounds(void *argument)
{
    struct client *c = argument;
    for (int round = 1; !c->load->over; round++) {
        int result =
            acquire(c, OPTIONS(acquire, .ttl_ms = TTL_MS, .keeper = c->keeper, .wait_ms = TTL_MS));
        if (result != ROWLOCK_OK) {
            sleep_ms(LOOK_MS);
            continue;
        }
        fill(c, round);
        hold(c, rand_r(&c->seed) % 1000);
        release(c);
        until_all_done();
    }
    pthread_mutex_lock(&queue.mutex);
    queue.over = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
    return 0;
}

/* ---- all */

void queue_start(struct load *load, int first_number)
{
    client_open(&queue.holder, load, first_number, "queue");
    queue.reader = load_open(queue.holder.url);
    for (int i = 0; i < WAITERS; i++) {
        client_open(&queue.waiters[i], load, first_number + 1 + i, "queue");
        queue.threads[i] = helper_start(wait_in_rounds, &queue.waiters[i]);
    }
    queue.threads[WAITERS] = helper_start(hold_in_rounds, &queue.holder);
}

void queue_end(void)
{
    for (int i = WAITERS; i >= 0; i--)
        helper_join(queue.threads[i]);
    for (int i = 0; i < WAITERS; i++)
        client_close(&queue.waiters[i]);
    client_close(&queue.holder);
    rowlock_db_close(queue.reader);
}
