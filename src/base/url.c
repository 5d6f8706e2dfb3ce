/* SPDX-License-Identifier: MIT
 * Takes URLs apart. This file knows no database, so it accepts any scheme and parameter. */
#include "base/url.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* isalpha() would depend on the locale. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool rlk_url_scheme(const char *url, char *out, size_t cap)
{
    size_t len = strcspn(url, ":");
    if (url[len] != ':' || !is_letter(url[0]) || len >= cap)
        return false;
    for (size_t i = 1; i < len; i++) {
        if (!is_letter(url[i]) && !is_digit(url[i]) && !strchr("+-.", url[i]))
            return false;
    }
    memcpy(out, url, len);
    out[len] = '\0';
    return true;
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes in place: the result is never longer. Returns what is wrong with the text, or NULL. */
static const char *decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_value(in[1]);
        int low = high < 0 ? -1 : hex_value(in[2]);
        if (low < 0)
            return "a % in the URL is not followed by two hexadecimal digits; write % itself as "
                   "%25";
        if (high == 0 && low == 0)
            return "the URL holds a zero byte (%00)";
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return NULL;
}

/* --- The parameters of rowlock */

/* Returns where the value of a parameter goes, and sets the room there and the length of "key=".
 * NULL: there is no such parameter. */
static char *find_own(const char *param, struct rlk_url_own *own, size_t *skip, size_t *cap)
{
    const struct {
        const char *key;
        char *out;
        size_t cap;
    } own_params[] = {{"rowlock_schema=", own->schema, sizeof own->schema},
                      {"rowlock_prefix=", own->prefix, sizeof own->prefix},
                      {"rowlock_pooler=", own->pooler, sizeof own->pooler}};
    for (size_t i = 0; i < sizeof own_params / sizeof own_params[0]; i++) {
        *skip = strlen(own_params[i].key);
        *cap = own_params[i].cap;
        if (strncmp(param, own_params[i].key, *skip) == 0)
            return own_params[i].out;
    }
    return NULL;
}

/* param is "key=value" of len bytes. Returns what is wrong with it, or NULL. */
static const char *take_own(const char *param, size_t len, struct rlk_url_own *own)
{
    size_t skip, cap;
    char *out = find_own(param, own, &skip, &cap);
    char value[3 * sizeof own->schema];
    if (!out)
        return "an unknown rowlock_ parameter; there are only rowlock_schema=, "
               "rowlock_prefix= and rowlock_pooler=";
    if (out[0])
        return "a rowlock_ parameter is given twice in the URL";
    if (len - skip >= sizeof value)
        return "the value of a rowlock_ parameter is too long";
    memcpy(value, param + skip, len - skip);
    value[len - skip] = '\0';

    const char *why = decode(value);
    if (why)
        return why;
    if (!value[0])
        return "a rowlock_ parameter in the URL is empty";
    if (strlen(value) >= cap)
        return "the value of a rowlock_ parameter is too long";
    memcpy(out, value, strlen(value) + 1);
    return NULL;
}

int rlk_url_take(const char *url, char **rest, struct rlk_url_own *own, const char **why)
{
    static const char own_key[] = "rowlock_";
    size_t len = strcspn(url, "?");
    const char *query = url + len;
    char *out = rlk_alloc(strlen(url) + 1);
    memset(own, 0, sizeof *own);
    *rest = NULL;
    if (!out)
        return -2;
    memcpy(out, url, len);
    *why = NULL;
    for (char join = '?'; *query && !*why; query += strcspn(query, "&")) {
        const char *param = ++query;
        const size_t size = strcspn(param, "&");
        if (strncmp(param, own_key, sizeof own_key - 1) == 0) {
            *why = take_own(param, size, own);
        } else if (size > 0) {
            out[len++] = join;
            memcpy(out + len, param, size);
            len += size;
            join = '&';
        }
    }
    if (*why) {
        rlk_free(out);
        return -1;
    }
    out[len] = '\0';
    *rest = out;
    return 0;
}

/* --- Several URLs */

static bool begins_url(const char *text)
{
    const char *end = text;
    while (is_letter(*end))
        end++;
    return end > text && (strncmp(end, "://", 3) == 0 || strncmp(text, "sqlite:", 7) == 0);
}

bool rlk_urls_cut(const char *text, struct rlk_urls *out)
{
    static const char white[] = " \t\r\n";
    *out = (struct rlk_urls){.count = 1, .memory = rlk_strdup(text)};
    if (!out->memory)
        return false;
    char *at = out->memory + strspn(out->memory, white), *end;
    out->url[0] = at;
    while (*(end = at + strcspn(at, white))) {
        at = end + strspn(end, white);
        if (!*at || begins_url(at))
            *end = '\0';
        if (!begins_url(at))
            continue;
        if (out->count < RLK_URLS_MAX)
            out->url[out->count] = at;
        out->count++;
    }
    return true;
}

/* sqlite:file, but not sqlite::memory: */
static const char *relative_path(const char *url)
{
    const char *path = url + strspn(url, "abcdefghijklmnopqrstuvwxyz");
    return path > url && *path == ':' && path[1] && !strchr("/:", path[1]) ? path + 1 : NULL;
}

char *rlk_urls_absolute(const struct rlk_urls *urls)
{
    char folder[4096], *text = NULL;
    size_t room = 1, length = 0;
    bool known = getcwd(folder, sizeof folder) && !strchr(folder, '?');
    if (!known || strcmp(folder, "/") == 0)
        folder[0] = '\0';
    for (size_t i = 0; i < urls->count && i < RLK_URLS_MAX; i++)
        room += strlen(urls->url[i]) + strlen(folder) + 2;
    if (!(text = rlk_alloc(room)))
        return NULL;
    for (size_t i = 0; i < urls->count && i < RLK_URLS_MAX; i++) {
        const char *url = urls->url[i], *path = known ? relative_path(url) : NULL;
        length += (size_t)snprintf(text + length, room - length, "%s%.*s%s%s%s", i ? " " : "",
                                   path ? (int)(path - url) : 0, url, path ? folder : "",
                                   path ? "/" : "", path ? path : url);
    }
    return text;
}

void rlk_urls_free(struct rlk_urls *urls)
{
    rlk_free(urls->memory);
}

/* --- The parts. Each function cuts its part out of the copied text. It returns what is wrong with
 * the text, or NULL. */

static const char *split_port(const char *digits, unsigned *port)
{
    static const char bad[] = "the port in the URL is not a number from 1 to 65535";
    unsigned value = 0;
    if (!*digits || strlen(digits) > 5)
        return bad;
    for (; *digits; digits++) {
        if (!is_digit(*digits))
            return bad;
        value = value * 10 + (unsigned)(*digits - '0');
    }
    if (value < 1 || value > 65535)
        return bad;
    *port = value;
    return NULL;
}

static const char *split_host(char *host, struct rlk_url_host *out)
{
    char *end = NULL;
    if (host[0] == '[') {
        end = strchr(++host, ']');
        if (!end)
            return "the IPv6 address in the URL has no closing bracket";
        *end++ = '\0';
        if (*end && *end != ':')
            return "after the IPv6 address in the URL only a port can follow";
    } else {
        end = host + strcspn(host, ":");
        if (*end && strchr(end + 1, ':'))
            return "write an IPv6 address in the URL in [brackets]";
    }
    if (*end) {
        *end = '\0';
        const char *why = split_port(end + 1, &out->port);
        if (why)
            return why;
    }
    out->name = host[0] ? host : NULL;
    return decode(host);
}

static const char *split_hosts(char *text, struct rlk_url *url)
{
    const char *why = NULL;
    for (char *next = text; next && !why;) {
        char *host = next;
        next = strchr(host, ',');
        if (next)
            *next++ = '\0';
        if (url->hosts == RLK_URL_HOSTS_MAX)
            return "the URL names too many hosts";
        struct rlk_url_host *out = &url->host[url->hosts++];
        why = split_host(host, out);
        if (!why && !out->name && (next || url->hosts > 1))
            why = "one of the URL's hosts has no name";
    }
    return why;
}

static const char *split_authority(char *text, struct rlk_url *url)
{
    char *host = strrchr(text, '@');
    const char *why = NULL;
    if (!host)
        return split_hosts(text, url);
    *host++ = '\0';
    char *password = strchr(text, ':');
    if (password) {
        *password++ = '\0';
        url->password = password;
        why = decode(password);
    }
    url->user = text[0] ? text : NULL;
    if (!why)
        why = decode(text);
    return why ? why : split_hosts(host, url);
}

static const char *split_query(char *text, struct rlk_url *url)
{
    const char *why = NULL;
    for (char *next = text; next && !why;) {
        char *key = next;
        next = strchr(key, '&');
        if (next)
            *next++ = '\0';
        char *value = strchr(key, '=');
        if (!value)
            return "a parameter in the URL has no value: write key=value";
        if (url->params == RLK_URL_PARAMS_MAX)
            return "the URL has too many parameters";
        *value++ = '\0';
        why = decode(key);
        if (!why && rlk_url_param(url, key))
            return "a parameter is given twice in the URL";
        if (!why)
            why = decode(value);
        url->param[url->params].key = key;
        url->param[url->params++].value = value;
    }
    return why;
}

static const char *split(char *text, struct rlk_url *url)
{
    char *authority = strstr(text, "://");
    if (!authority || authority != strchr(text, ':'))
        return "the URL must begin like scheme://host/";
    authority += 3;
    char *query = strchr(authority, '?');
    if (query)
        *query++ = '\0';
    char *path = strchr(authority, '/');
    if (path)
        *path++ = '\0';
    url->path = path && *path ? path : NULL;

    const char *why = split_authority(authority, url);
    if (!why && path)
        why = decode(path);
    return why || !query || !*query ? why : split_query(query, url);
}

int rlk_url_split(const char *text, struct rlk_url *url, const char **why)
{
    const size_t size = strlen(text) + 1;
    memset(url, 0, sizeof *url);
    *why = NULL;
    url->memory = rlk_alloc(size);
    if (!url->memory)
        return -2;
    memcpy(url->memory, text, size);
    *why = split(url->memory, url);
    return *why ? -1 : 0;
}

void rlk_url_free(struct rlk_url *url)
{
    rlk_free(url->memory);
    memset(url, 0, sizeof *url);
}

const char *rlk_url_param(const struct rlk_url *url, const char *key)
{
    for (size_t i = 0; i < url->params; i++) {
        if (strcmp(url->param[i].key, key) == 0)
            return url->param[i].value;
    }
    return NULL;
}
