/* SPDX-License-Identifier: MIT
 *
 * Redis as its documentation has locks: SET NX PX with a random value, which only its owner deletes.
 */
#include "peers.h"

#include <hiredis/hiredis.h>

static const char unlock_script[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
    "else return 0 end";

struct redis {
    struct polling polling;
    redisContext *conn;
    char name[100], value[40], script[48];
};

static redisReply *must_reply(struct redis *s, redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        die("Redis: %s", reply ? reply->str : s->conn->errstr);
    return reply;
}

static void *open_redis(const struct place *place, const char *name)
{
    struct redis *s = zeroed(1, sizeof *s);
    s->conn = redisConnect("127.0.0.1", atoi(place->url));
    if (!s->conn || s->conn->err)
        die("Redis: %s", s->conn ? s->conn->errstr : "out of memory");
    snprintf(s->name, sizeof s->name, "lock:%s", name);
    snprintf(s->value, sizeof s->value, "%08x%08x", (unsigned)rand(), (unsigned)rand());
    redisReply *reply = must_reply(
        s, redisCommand(s->conn, "SCRIPT LOAD %b", unlock_script, strlen(unlock_script)));
    snprintf(s->script, sizeof s->script, "%s", reply->str);
    freeReplyObject(reply);
    s->polling = polling_of(0.1);
    return s;
}

static void close_redis(void *session)
{
    struct redis *s = session;
    redisFree(s->conn);
    free(s);
}

static bool try_redis(void *session)
{
    struct redis *s = session;
    redisReply *reply = must_reply(
        s, redisCommand(s->conn, "SET %s %s NX PX %d", s->name, s->value, (int)LEASE_MS));
    bool got = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return got;
}

static bool acquire_redis(void *session)
{
    return poll_for(session, try_redis, session);
}

static void release_redis(void *session)
{
    struct redis *s = session;
    redisReply *reply =
        must_reply(s, redisCommand(s->conn, "EVALSHA %s 1 %s %s", s->script, s->name, s->value));
    if (reply->integer != 1)
        die("Redis: the lock was lost");
    freeReplyObject(reply);
}

const struct locking redis_locking = {
    .way = {.open = open_redis,
            .close = close_redis,
            .acquire = acquire_redis,
            .release = release_redis,
            .stop = stop_polling},
    .try = try_redis,
    .statements = {"INFO stats\r\nQUIT\r\n", {"total_commands_processed:"}},
    .connections = {"INFO clients\r\nQUIT\r\n", {"connected_clients:"}}};
