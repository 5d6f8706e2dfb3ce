/* SPDX-License-Identifier: MIT
 *
 * URLs of databases: the scheme, the parts, and the parameters of rowlock. A driver decides what
 * the parts and the other parameters mean.
 */
#ifndef RLK_URL_H
#define RLK_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Copies the text before the first colon. False if it is not a scheme, or is too long. */
bool rlk_url_scheme(const char *url, char *out, size_t cap);

/* The parameters rowlock_schema, rowlock_prefix and rowlock_pooler, decoded. "" if the URL does not
 * have them. */
struct rlk_url_own {
    char schema[130];
    char prefix[34];
    char pooler[10];
};

/* Takes the parameters of rowlock out of a URL. *rest is the URL without them, otherwise unchanged.
 * Free it with rlk_free().
 *
 * Returns
 *    0  done
 *   -1  the URL is bad; *why is a static text
 *   -2  out of memory */
int rlk_url_take(const char *url, char **rest, struct rlk_url_own *own, const char **why);

/* URLs in one text, with white space before, between and after them. White space before what is no
 * URL is a part of the URL before it: the path of a file may have some. */
enum { RLK_URLS_MAX = 5 };
struct rlk_urls {
    const char *url[RLK_URLS_MAX];
    /* May be more than there is room for. */
    size_t count;
    char *memory;
};

/* False: out of memory. Call rlk_urls_free() after both. */
bool rlk_urls_cut(const char *text, struct rlk_urls *out);
void rlk_urls_free(struct rlk_urls *urls);
/* The URLs as one text again, whose paths of files do not depend on the current folder. Free it
 * with rlk_free(). NULL: out of memory. */
char *rlk_urls_absolute(const struct rlk_urls *urls);

enum { RLK_URL_HOSTS_MAX = 16, RLK_URL_PARAMS_MAX = 16 };

struct rlk_url_host {
    /* Without the brackets of an IPv6 address. */
    const char *name;
    /* 0: the URL has none. */
    unsigned port;
};

/* The parts of scheme://user:password@host:port,host:port/path?key=value&…, decoded. NULL: the URL
 * does not have the part. */
struct rlk_url {
    const char *user, *password;
    struct rlk_url_host host[RLK_URL_HOSTS_MAX];
    /* At least 1. If there are several, each has a name. */
    size_t hosts;
    /* Without the first slash. NULL instead of an empty path. */
    const char *path;
    struct {
        const char *key, *value;
    } param[RLK_URL_PARAMS_MAX];
    size_t params;
    /* All texts above are in this block. */
    char *memory;
};

/* Returns the same as rlk_url_take(). Call rlk_url_free() after -1 too. */
int rlk_url_split(const char *text, struct rlk_url *url, const char **why);
void rlk_url_free(struct rlk_url *url);

/* NULL: the URL does not have the parameter. */
const char *rlk_url_param(const struct rlk_url *url, const char *key);

#endif
