/* SPDX-License-Identifier: MIT
 *
 * etcd by its lock service. It has no client library for C, so this speaks JSON to its gateway, which
 * is a client of gRPC in the same process. A lock is attached to the lease of its client, which
 * must be kept alive: one thread does so for all leases of this program. */
#include "peers.h"

#include <curl/curl.h>
#include <jansson.h>

enum { LEASE_S = LEASE_MS / 1000, NAME_CAP = 100, CODED_CAP = NAME_CAP * 2, TRY_MS = 1500 };

struct etcd {
    CURL *curl;
    struct curl_slist *headers;
    char url[100], name[CODED_CAP], lease[32], key[CODED_CAP * 2];
    char answer[4000];
    size_t length;
    struct etcd *next;
};

static void encode(const char *text, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i += 3) {
        unsigned bits = (unsigned char)text[i] * 65536u;
        bits += i + 1 < length ? (unsigned char)text[i + 1] * 256u : 0;
        bits += i + 2 < length ? (unsigned char)text[i + 2] : 0;
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < length ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < length ? digits[bits & 63] : '=';
    }
    *out = '\0';
}

/* ---- one request */

static size_t take_answer(char *data, size_t size, size_t count, void *session)
{
    struct etcd *s = session;
    size_t length = size * count;
    if (length >= sizeof s->answer - s->length)
        return 0;
    memcpy(s->answer + s->length, data, length);
    s->length += length;
    s->answer[s->length] = '\0';
    return length;
}

static CURLcode perform(struct etcd *s, const char *path, const char *body, long timeout_ms)
{
    char url[200];
    snprintf(url, sizeof url, "%s%s", s->url, path);
    s->length = 0;
    curl_easy_setopt(s->curl, CURLOPT_URL, url);
    curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    return curl_easy_perform(s->curl);
}

/* Posts a body to a path of the gateway. Copies the value of a key of the answer. Returns false after
 * timeout_ms, if that is not 0. */
static bool post(struct etcd *s, const char *path, const char *body, long timeout_ms,
                 const char *wanted, char *out, size_t capacity)
{
    CURLcode done = perform(s, path, body, timeout_ms);
    if (done == CURLE_OPERATION_TIMEDOUT && timeout_ms)
        return false;
    if (done != CURLE_OK)
        die("etcd: %s: %s", path, curl_easy_strerror(done));
    json_t *answer = json_loads(s->answer, JSON_DISABLE_EOF_CHECK, NULL);
    if (!answer || json_object_get(answer, "error"))
        die("etcd: %s: %s", path, s->answer);
    const char *text = wanted ? json_string_value(json_object_get(answer, wanted)) : NULL;
    if (wanted && !text)
        die("etcd: %s: no %s in %s", path, wanted, s->answer);
    if (text)
        snprintf(out, capacity, "%s", text);
    json_decref(answer);
    return true;
}

static CURL *new_curl(struct etcd *s)
{
    CURL *curl = curl_easy_init();
    s->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!curl || !s->headers)
        die("out of memory");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    return curl;
}

static void connect_etcd(struct etcd *s, const char *url)
{
    snprintf(s->url, sizeof s->url, "%s", url);
    s->curl = new_curl(s);
}

static void disconnect_etcd(struct etcd *s)
{
    curl_easy_cleanup(s->curl);
    curl_slist_free_all(s->headers);
}

/* ---- leases */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct etcd *sessions;
static bool keeping;

/* Returns the lease that follows this one in the list, or the first. */
static bool next_lease(const char *lease, char *out, size_t capacity)
{
    pthread_mutex_lock(&mutex);
    struct etcd *s = sessions;
    while (*lease && s && strcmp(s->lease, lease) != 0)
        s = s->next;
    if (*lease && s)
        s = s->next;
    if (s)
        snprintf(out, capacity, "%s", s->lease);
    pthread_mutex_unlock(&mutex);
    return s != NULL;
}

/* The answers do not matter: a lease may have been revoked meanwhile, and the server may be down. */
static void *keep_alive(void *url)
{
    struct etcd own = {.next = NULL};
    char lease[32], body[100];
    connect_etcd(&own, url);
    for (;;) {
        sleep_s(LEASE_S / 3.0);
        for (lease[0] = '\0'; next_lease(lease, lease, sizeof lease);) {
            snprintf(body, sizeof body, "{\"ID\":\"%s\"}", lease);
            perform(&own, "/v3/lease/keepalive", body, 0);
        }
    }
    return NULL;
}

static void keep_lease(struct etcd *s)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    s->next = sessions;
    sessions = s;
    bool first = !keeping;
    keeping = true;
    pthread_mutex_unlock(&mutex);
    char *url = first ? strdup(s->url) : NULL;
    if (first && (!url || pthread_create(&thread, NULL, keep_alive, url) != 0))
        die("cannot start a thread");
    if (first)
        pthread_detach(thread);
}

static void drop_lease(struct etcd *s)
{
    pthread_mutex_lock(&mutex);
    struct etcd **at = &sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&mutex);
}

/* ---- locks */

static void *open_etcd(const struct place *place, const char *name)
{
    struct etcd *s = zeroed(1, sizeof *s);
    char url[50], body[50];
    snprintf(url, sizeof url, "http://127.0.0.1:%.10s", place->url);
    connect_etcd(s, url);
    encode(name, s->name);
    snprintf(body, sizeof body, "{\"TTL\":%d}", (int)LEASE_S);
    post(s, "/v3/lease/grant", body, 0, "ID", s->lease, sizeof s->lease);
    keep_lease(s);
    return s;
}

/* The connection may have ended in a crash of the server, so this does not die. */
static void close_etcd(void *session)
{
    struct etcd *s = session;
    char body[100];
    drop_lease(s);
    snprintf(body, sizeof body, "{\"ID\":\"%s\"}", s->lease);
    perform(s, "/v3/lease/revoke", body, 0);
    disconnect_etcd(s);
    free(s);
}

static bool lock(struct etcd *s, long timeout_ms)
{
    char body[CODED_CAP + 100];
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"lease\":\"%s\"}", s->name, s->lease);
    return post(s, "/v3/lock/lock", body, timeout_ms, "key", s->key, sizeof s->key);
}

static bool acquire_etcd(void *session)
{
    return lock(session, 0);
}

static bool try_etcd(void *session)
{
    return lock(session, TRY_MS);
}

static void release_etcd(void *session)
{
    struct etcd *s = session;
    char body[sizeof s->key + 20];
    snprintf(body, sizeof body, "{\"key\":\"%s\"}", s->key);
    post(s, "/v3/lock/unlock", body, 0, NULL, NULL, 0);
}

/* The gateway's connection to the server is one for all, so connections are not counted. */
const struct locking etcd_locking = {
    .way = {.open = open_etcd,
            .close = close_etcd,
            .acquire = acquire_etcd,
            .release = release_etcd},
    .try = try_etcd,
    .statements = {"GET /metrics HTTP/1.0\r\n\r\n", {"grpc_server_msg_received_total{"}}};
