/* SPDX-License-Identifier: MIT
 *
 * memcached: add succeeds if there is no such key. It has no compare-and-delete. */
#include "peers.h"

#include <libmemcached/memcached.h>

struct cache {
    struct polling polling;
    memcached_st *conn;
    char name[100];
};

static void must(struct cache *s, memcached_return_t result)
{
    if (result != MEMCACHED_SUCCESS)
        die("memcached: %s", memcached_strerror(s->conn, result));
}

/* A key has no spaces. */
static void *open_cache(const struct place *place, const char *name)
{
    struct cache *s = calloc(1, sizeof *s);
    if (!s || !(s->conn = memcached_create(NULL)))
        die("out of memory");
    must(s, memcached_server_add(s->conn, "127.0.0.1", (in_port_t)atoi(place->url)));
    must(s, memcached_behavior_set(s->conn, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1));
    snprintf(s->name, sizeof s->name, "%s", name);
    for (char *space; (space = strchr(s->name, ' '));)
        *space = '_';
    s->polling = polling_of(0.1);
    return s;
}

static void close_cache(void *session)
{
    struct cache *s = session;
    memcached_free(s->conn);
    free(s);
}

static bool try_cache(void *session)
{
    struct cache *s = session;
    memcached_return_t result =
        memcached_add(s->conn, s->name, strlen(s->name), "held", 4, LEASE_MS / 1000, 0);
    if (result == MEMCACHED_NOTSTORED || result == MEMCACHED_DATA_EXISTS)
        return false;
    must(s, result);
    return true;
}

static bool acquire_cache(void *session)
{
    return poll_for(session, try_cache, session);
}

static void release_cache(void *session)
{
    struct cache *s = session;
    must(s, memcached_delete(s->conn, s->name, strlen(s->name), 0));
}

const struct locking memcached_locking = {
    .way = {.open = open_cache,
            .close = close_cache,
            .acquire = acquire_cache,
            .release = release_cache,
            .stop = stop_polling},
    .try = try_cache,
    .statements = {"stats\r\nquit\r\n",
                   {"STAT cmd_get ", "STAT cmd_set ", "STAT cmd_touch ", "STAT delete_misses ",
                    "STAT delete_hits "}},
    .connections = {"stats\r\nquit\r\n", {"STAT curr_connections "}}};
