/* SPDX-License-Identifier: MIT
 *
 * ZooKeeper's lock recipe, as its documentation has it. Its own recipe for C is not packaged.
 *
 *   1. Create an ephemeral sequential node below the node of the lock.
 *   2. Read the children. If ours is the lowest, we have the lock.
 *   3. Else watch the next lower one. If it is there, wait for the watch. Go on with 2.
 *
 * A lost answer of 1 is not resolved here: it ends the program. */
#include "peers.h"

/* The functions that wait for their answer are in the threaded library. */
#define THREADED
#include <zookeeper/zookeeper.h>

enum { PATH_CAP = 200, CONNECT_S = 20 };

struct keeper {
    zhandle_t *zh;
    char parent[PATH_CAP], node[PATH_CAP + 40];
    pthread_mutex_t mutex;
    pthread_cond_t told;
    bool connected, moved, stopped;
};

static void must(int result, const char *what)
{
    if (result != ZOK)
        die("ZooKeeper: %s: %s", what, zerror(result));
}

/* For the session, and for the watch of a node. */
static void watch(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct keeper *s = context;
    pthread_mutex_lock(&s->mutex);
    if (type == ZOO_SESSION_EVENT)
        s->connected = state == ZOO_CONNECTED_STATE;
    else
        s->moved = true;
    pthread_cond_broadcast(&s->told);
    pthread_mutex_unlock(&s->mutex);
}

static void wait_connected(struct keeper *s)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += CONNECT_S;
    pthread_mutex_lock(&s->mutex);
    while (!s->connected)
        if (pthread_cond_timedwait(&s->told, &s->mutex, &end) != 0)
            die("ZooKeeper: no connection");
    pthread_mutex_unlock(&s->mutex);
}

static void *open_keeper(const struct place *place, const char *name)
{
    struct keeper *s = zeroed(1, sizeof *s);
    char host[40];
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->told, NULL);
    snprintf(host, sizeof host, "127.0.0.1:%.10s", place->url);
    snprintf(s->parent, sizeof s->parent, "/%s", name);
    zoo_set_debug_level((ZooLogLevel)0); /* none: crashes of the server are wanted */
    s->zh = zookeeper_init(host, watch, LEASE_MS, NULL, s, 0);
    if (!s->zh)
        die("ZooKeeper: no connection");
    wait_connected(s);
    int made = zoo_create(s->zh, s->parent, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    if (made != ZNODEEXISTS)
        must(made, "create");
    return s;
}

static void close_keeper(void *session)
{
    struct keeper *s = session;
    zookeeper_close(s->zh);
    pthread_cond_destroy(&s->told);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* The number at the end of a node's name has ten digits. */
static const char *number_of(const char *node)
{
    return node + strlen(node) - 10;
}

static void enter(struct keeper *s)
{
    char path[PATH_CAP + 40];
    snprintf(path, sizeof path, "%s/%016llx-lock-", s->parent,
             (unsigned long long)zoo_client_id(s->zh)->client_id);
    must(zoo_create(s->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, s->node,
                    sizeof s->node),
         "create");
}

/* Writes the path of the node before ours. Returns false if there is none. */
static bool find_before(struct keeper *s, char *out, size_t capacity)
{
    struct String_vector children;
    const char *own = number_of(s->node), *before = NULL;
    must(zoo_get_children(s->zh, s->parent, 0, &children), "get children");
    for (int i = 0; i < children.count; i++) {
        const char *number = number_of(children.data[i]);
        if (strcmp(number, own) < 0 && (!before || strcmp(number, number_of(before)) > 0))
            before = children.data[i];
    }
    if (before)
        snprintf(out, capacity, "%s/%s", s->parent, before);
    deallocate_String_vector(&children);
    return before != NULL;
}

static void leave(struct keeper *s)
{
    must(zoo_delete(s->zh, s->node, -1), "delete");
}

/* Returns false if the wait was stopped. */
static bool wait_gone(struct keeper *s, const char *path)
{
    struct Stat stat;
    s->moved = false;
    int found = zoo_wexists(s->zh, path, watch, s, &stat);
    if (found == ZNONODE)
        return true;
    must(found, "exists");
    pthread_mutex_lock(&s->mutex);
    while (!s->moved && !s->stopped)
        pthread_cond_wait(&s->told, &s->mutex);
    bool go_on = !s->stopped;
    pthread_mutex_unlock(&s->mutex);
    return go_on;
}

static bool acquire_keeper(void *session)
{
    struct keeper *s = session;
    char before[PATH_CAP + 40];
    enter(s);
    while (find_before(s, before, sizeof before)) {
        if (!wait_gone(s, before)) {
            leave(s);
            return false;
        }
    }
    return true;
}

static bool try_keeper(void *session)
{
    struct keeper *s = session;
    char before[PATH_CAP + 40];
    enter(s);
    if (!find_before(s, before, sizeof before))
        return true;
    leave(s);
    return false;
}

static void release_keeper(void *session)
{
    leave(session);
}

static void stop_keeper(void *session)
{
    struct keeper *s = session;
    pthread_mutex_lock(&s->mutex);
    s->stopped = true;
    pthread_cond_broadcast(&s->told);
    pthread_mutex_unlock(&s->mutex);
}

/* Its server counts packets. */
const struct locking zookeeper_locking = {.way = {.open = open_keeper,
                                                  .close = close_keeper,
                                                  .acquire = acquire_keeper,
                                                  .release = release_keeper,
                                                  .stop = stop_keeper},
                                          .try = try_keeper,
                                          .statements = {"srvr", {"Received: "}},
                                          .connections = {"srvr", {"Connections: "}}};
