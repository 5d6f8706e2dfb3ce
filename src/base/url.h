/* SPDX-License-Identifier: MIT
 *
 * URLs of databases: their scheme, our own parameters in them, and their parts.
 * What a part or a parameter means to a database is its driver's business.
 */
#ifndef RLK_URL_H
#define RLK_URL_H

#include <stdbool.h>
#include <stddef.h>

/* What stands before the first colon. False if that is no scheme, or does not fit. */
bool rlk_url_scheme(const char *url, char *out, size_t cap);

/* Our own parameters, decoded; "" if the URL does not have them. */
struct rlk_url_own {
    char schema[130]; /* rowlock_schema */
    char prefix[34]; /* rowlock_prefix */
    char pooler[10]; /* rowlock_pooler */
};

/* Take our own parameters out of any URL. *rest is the URL without them, the rest of it byte for
 * byte as it was; rlk_free() it. 0: done; -1: the URL is bad, *why is a static text; -2: no
 * memory. */
int rlk_url_take(const char *url, char **rest, struct rlk_url_own *own, const char **why);

enum { RLK_URL_HOSTS_MAX = 16, RLK_URL_PARAMS_MAX = 16 };

struct rlk_url_host {
    const char *name; /* without the brackets of an IPv6 address */
    unsigned port; /* 0: not there */
};

/* The parts of scheme://user:password@host:port,host:port/path?key=value&…, decoded. NULL: not
 * there. */
struct rlk_url {
    const char *user, *password;
    struct rlk_url_host host[RLK_URL_HOSTS_MAX];
    size_t hosts; /* at least 1; of several each has a name */
    const char *path; /* without its first slash; not empty */
    struct {
        const char *key, *value;
    } param[RLK_URL_PARAMS_MAX];
    size_t params;
    char *memory; /* of all these */
};

/* Returns as rlk_url_take() does. url may be freed in any case. */
int rlk_url_split(const char *text, struct rlk_url *url, const char **why);
void rlk_url_free(struct rlk_url *url);

/* The value of a parameter; NULL: not there. */
const char *rlk_url_param(const struct rlk_url *url, const char *key);

#endif
