/* SPDX-License-Identifier: MIT
 *
 * URLs: their scheme, our own parameters in them, and their parts. No database is asked what it
 * makes of them. */
#include "base/url.h"
#include "base/base.h"
#include "quick.h"

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void test_schemes(void)
{
    static const char *const bad[] = {"",        "/a/b",       "nightly", ":x",
                                      "1db://h", "my sql://h", "a/b:c"};
    char out[12];
    tap_ok(rlk_url_scheme("mysql://h/d", out, sizeof out) && same(out, "mysql"),
           "a scheme ends at the colon");
    tap_ok(rlk_url_scheme("sqlite:/a:b", out, sizeof out) && same(out, "sqlite"),
           "a scheme needs no slashes");
    tap_ok(rlk_url_scheme("postgresql:", out, sizeof out) && same(out, "postgresql"),
           "a scheme that just fits");
    tap_ok(!rlk_url_scheme("postgresqlxx://h", out, sizeof out), "a scheme that does not fit");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        tap_ok(!rlk_url_scheme(bad[i], out, sizeof out), "no scheme in '%s'", bad[i]);
}

static void takes(const char *url, const char *rest, const char *schema, const char *prefix)
{
    struct rlk_url_own own;
    char *got = NULL;
    const char *why = NULL;
    const int result = rlk_url_take(url, &got, &own, &why);
    tap_ok(result == 0 && same(got, rest) && same(own.schema, schema) && same(own.prefix, prefix),
           "%s leaves %s", url, rest);
    rlk_free(got);
}

static void refuses_to_take(const char *query)
{
    struct rlk_url_own own;
    char *rest = NULL;
    const char *why = NULL;
    char url[1000] = "mysql://h/d?";
    strncat(url, query, sizeof url - strlen(url) - 1);
    tap_ok(rlk_url_take(url, &rest, &own, &why) == -1 && why && !rest, "refused: %.60s", query);
}

static void test_own_parameters(void)
{
    char long_value[600] = "rowlock_schema=";
    takes("mysql://h/d", "mysql://h/d", "", "");
    takes("postgresql://a,b:1/d?rowlock_schema=app", "postgresql://a,b:1/d", "app", "");
    takes("mysql://h/d?rowlock_prefix=rl_&socket=/s", "mysql://h/d?socket=/s", "", "rl_");
    takes("mysql://h/d?x=1&rowlock_schema=a&rowlock_prefix=b&y=%41", "mysql://h/d?x=1&y=%41", "a",
          "b");
    takes("sqlite:/a%20b?rowlock_prefix=p%5F", "sqlite:/a%20b", "", "p_");
    takes("sqlite:x?rowlock_schema=a%26b%3Dc", "sqlite:x", "a&b=c", "");
    takes("mysql://h/d?norowlock_x=1", "mysql://h/d?norowlock_x=1", "", "");
    takes("mysql://h/d?a=%zz", "mysql://h/d?a=%zz", "", "");
    takes("mysql://h/d?&&a=1&", "mysql://h/d?a=1", "", "");
    takes("postgresql://h/d?rowlock_pooler=session&x=1", "postgresql://h/d?x=1", "", "");
    refuses_to_take("rowlock_schem=x");
    refuses_to_take("rowlock_pooler=whatever else");
    refuses_to_take("rowlock_=x");
    refuses_to_take("rowlock_schema");
    refuses_to_take("rowlock_schema=");
    refuses_to_take("a=1&rowlock_prefix=&b=2");
    refuses_to_take("rowlock_prefix=a&rowlock_prefix=a");
    refuses_to_take("rowlock_prefix=%4");
    refuses_to_take("rowlock_prefix=a%00b");
    refuses_to_take("rowlock_prefix=0123456789012345678901234567890123");
    memset(long_value + strlen(long_value), 'x', 500);
    refuses_to_take(long_value);
}

struct parts {
    const char *user, *password, *host, *path;
    unsigned port;
};

static void splits(const char *text, struct parts want)
{
    CLOSED_BY(rlk_url_free) struct rlk_url url;
    const char *why = NULL;
    const int result = rlk_url_split(text, &url, &why);
    tap_ok(result == 0 && same(url.user, want.user) && same(url.password, want.password) &&
               same(url.path, want.path) && url.hosts == 1 && same(url.host[0].name, want.host) &&
               url.host[0].port == want.port,
           "parts of %s", text);
}

static void test_parts(void)
{
    splits("mysql://u:p@h:3307/d", (struct parts){"u", "p", "h", "d", 3307});
    splits("mysql://h/d", (struct parts){NULL, NULL, "h", "d", 0});
    splits("mysql:///d", (struct parts){NULL, NULL, NULL, "d", 0});
    splits("mysql://h", (struct parts){NULL, NULL, "h", NULL, 0});
    splits("mysql://h/?a=b", (struct parts){NULL, NULL, "h", NULL, 0});
    splits("mysql://h?a=b", (struct parts){NULL, NULL, "h", NULL, 0});
    splits("mysql://u@/d", (struct parts){"u", NULL, NULL, "d", 0});
    splits("mysql://u:@h/d", (struct parts){"u", "", "h", "d", 0});
    splits("mysql://u%40x:p%3A%2f%25@h/a%2Fb", (struct parts){"u@x", "p:/%", "h", "a/b", 0});
    splits("mysql://u:a@b:c@h/d", (struct parts){"u", "a@b:c", "h", "d", 0});
    splits("mysql://u@[::1]/d", (struct parts){"u", NULL, "::1", "d", 0});
    splits("mysql://[fe80::1%25eth0]:65535/d",
           (struct parts){NULL, NULL, "fe80::1%eth0", "d", 65535});
    splits("mysql://h/d%C3%A4", (struct parts){NULL, NULL, "h", "d\xc3\xa4", 0});
}

static void splits_hosts(const char *text, const struct rlk_url_host *want, size_t count)
{
    CLOSED_BY(rlk_url_free) struct rlk_url url;
    const char *why = NULL;
    bool fine = rlk_url_split(text, &url, &why) == 0 && url.hosts == count && same(url.path, "d");
    for (size_t i = 0; fine && i < count; i++)
        fine = same(url.host[i].name, want[i].name) && url.host[i].port == want[i].port;
    tap_ok(fine, "hosts of %.60s", text);
}

static void test_hosts(void)
{
    const struct rlk_url_host three[] = {{"a", 0}, {"b", 3307}, {"::1", 3308}};
    const struct rlk_url_host two[] = {{"fe80::1%eth0", 0}, {"x,y", 1}};
    struct rlk_url_host many[RLK_URL_HOSTS_MAX];
    char text[200] = "mysql://h0";
    char host[] = ",h0";
    splits_hosts("mysql://a,b:3307,[::1]:3308/d", three, 3);
    splits_hosts("mysql://u:p,q@a,b:3307,[::1]:3308/d?x=,", three, 3);
    splits_hosts("mysql://[fe80::1%25eth0],x%2Cy:1/d", two, 2);
    for (size_t i = 0; i < RLK_URL_HOSTS_MAX; i++)
        many[i] = (struct rlk_url_host){"h0", 0};
    for (size_t i = 1; i < RLK_URL_HOSTS_MAX; i++)
        strncat(text, host, sizeof text - strlen(text) - 1);
    strncat(text, "/d", sizeof text - strlen(text) - 1);
    splits_hosts(text, many, RLK_URL_HOSTS_MAX);
}

static void test_parameters(void)
{
    struct rlk_url url;
    const char *why = NULL;
    tap_ok(rlk_url_split("mysql://h/d?socket=%2Fa b&k%3D=v=w&empty=", &url, &why) == 0 &&
               url.params == 3,
           "parameters are split");
    tap_ok(same(rlk_url_param(&url, "socket"), "/a b"), "a value is decoded");
    tap_ok(same(rlk_url_param(&url, "k="), "v=w"), "a key is decoded, and ends at the first =");
    tap_ok(same(rlk_url_param(&url, "empty"), ""), "a value can be empty");
    tap_ok(!rlk_url_param(&url, "sock"), "what is not there is NULL");
    rlk_url_free(&url);
    tap_ok(url.params == 0 && !url.memory, "freeing leaves nothing");
}

static void refuses_to_split(const char *text)
{
    CLOSED_BY(rlk_url_free) struct rlk_url url;
    const char *why = NULL;
    tap_ok(rlk_url_split(text, &url, &why) == -1 && why && *why, "refused: %.60s", text);
}

static void test_bad_urls(void)
{
    static const char *const bad[] = {
        "mysql:h/d",          "mysql:/h/d",        "x:y://h/d",           "mysql://h:/d",
        "mysql://h:0/d",      "mysql://h:65536/d", "mysql://h:123456/d",  "mysql://h:+1/d",
        "mysql://h:3306x/d",  "mysql://,/d",       "mysql://a,/d",        "mysql://::1/d",
        "mysql://,b/d",       "mysql://a,,b/d",    "mysql://a,:3306/d",   "mysql://a,::1/d",
        "mysql://a:1,b:x/d",  "mysql://a,[::1/d",  "mysql://a,%zz/d",     "mysql://a:1:2,b/d",
        "mysql://[::1/d",     "mysql://[::1]x/d",  "mysql://%zz@h/d",     "mysql://u:%4@h/d",
        "mysql://u:%@h/d",    "mysql://h%00/d",    "mysql://h/d%",        "mysql://h/d?a",
        "mysql://h/d?a=1&&b", "mysql://h/d?a=%g0", "mysql://h/d?a=1&a=2", "mysql://h/d?%=1",
    };
    char many[200] = "mysql://h/d?a=0";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuses_to_split(bad[i]);
    for (char key[] = "&b=0"; key[1] <= 'b' + RLK_URL_PARAMS_MAX; key[1]++)
        strncat(many, key, sizeof many - strlen(many) - 1);
    refuses_to_split(many);
    snprintf(many, sizeof many, "mysql://h");
    for (size_t i = 0; i < RLK_URL_HOSTS_MAX; i++)
        strncat(many, ",h", sizeof many - strlen(many) - 1);
    refuses_to_split(many);
}

/* want: the URLs, each in brackets. */
static void cuts(const char *text, size_t count, const char *want)
{
    CLOSED_BY(rlk_urls_free) struct rlk_urls urls;
    char got[500] = "";
    bool done = rlk_urls_cut(text, &urls);
    for (size_t i = 0; done && i < urls.count && i < RLK_URLS_MAX; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "[%s]", urls.url[i]);
    tap_ok(done && urls.count == count && same(got, want), "'%s' is %zu: %s", text, count, got);
}

static void test_several(void)
{
    cuts("", 1, "[]");
    cuts("sqlite:a", 1, "[sqlite:a]");
    cuts("sqlite:my file \n", 1, "[sqlite:my file]");
    cuts(" sqlite:a", 1, "[sqlite:a]");
    cuts("sqlite:a b://c", 2, "[sqlite:a][b://c]");
    cuts("sqlite:a b:c sqlite:d", 2, "[sqlite:a b:c][sqlite:d]");
    cuts("\nsqlite:my file\t \nmysql://b/c?d=e\r\npostgresql:// \n", 3,
         "[sqlite:my file][mysql://b/c?d=e][postgresql://]");
    cuts("a://1 a://2 a://3 a://4 a://5 a://6 a://7", 7, "[a://1][a://2][a://3][a://4][a://5]");
}

static void becomes(const char *text, const char *want)
{
    struct rlk_urls urls;
    if (!rlk_urls_cut(text, &urls))
        abort();
    char *got = rlk_urls_absolute(&urls);
    tap_is_str(got, want, "'%s' does not depend on the folder", text);
    rlk_free(got);
    rlk_urls_free(&urls);
}

static void test_absolute(void)
{
    if (chdir("/tmp") != 0)
        abort();
    becomes("sqlite:a", "sqlite:/tmp/a");
    becomes("sqlite:../my a?rowlock_prefix=b", "sqlite:/tmp/../my a?rowlock_prefix=b");
    if (chdir("/") != 0)
        abort();
    becomes("sqlite:a/b", "sqlite:/a/b");
    becomes("sqlite:/a", "sqlite:/a");
    becomes("sqlite::memory:", "sqlite::memory:");
    becomes("mysql://a/b", "mysql://a/b");
    becomes("sqlite:a\nmysql://a/b  sqlite:c ", "sqlite:/a mysql://a/b sqlite:/c");
    becomes("nothing", "nothing");
}

int main(void)
{
    test_absolute();
    test_several();
    test_schemes();
    test_own_parameters();
    test_parts();
    test_hosts();
    test_parameters();
    test_bad_urls();
    return tap_done();
}
