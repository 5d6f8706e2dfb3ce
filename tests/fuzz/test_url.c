/* SPDX-License-Identifier: MIT
 *
 * URLs of any bytes: our own parameters are taken out of them, and the rest is split. */
#include "fuzz.h"
#include "base/url.h"

#include "base/base.h"

static void split(const char *rest)
{
    struct rlk_url url;
    const char *why = NULL;
    if (rlk_url_split(rest, &url, &why) != 0) {
        fuzz_must(why);
        rlk_url_free(&url);
        return;
    }
    fuzz_must(url.hosts >= 1 && url.hosts <= RLK_URL_HOSTS_MAX);
    fuzz_must(url.params <= RLK_URL_PARAMS_MAX);
    for (size_t i = 0; i < url.hosts; i++)
        fuzz_must(url.host[i].port <= 65535 && (url.hosts == 1 || url.host[i].name));
    for (size_t i = 0; i < url.params; i++)
        fuzz_must(rlk_url_param(&url, url.param[i].key));
    rlk_url_free(&url);
}

static void cut(const char *text)
{
    struct rlk_urls urls;
    fuzz_must(rlk_urls_cut(text, &urls) && urls.count > 0);
    for (size_t i = 0; i < urls.count && i < RLK_URLS_MAX; i++)
        fuzz_must(strstr(text, urls.url[i]));
    rlk_urls_free(&urls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *rest = NULL, scheme[16];
    struct rlk_url_own own;
    const char *why = NULL;
    if (rlk_url_scheme(text, scheme, sizeof scheme))
        fuzz_must(strncmp(text, scheme, strlen(scheme)) == 0);
    if (rlk_url_take(text, &rest, &own, &why) == 0) {
        fuzz_must(strlen(rest) <= strlen(text));
        split(rest);
        rlk_free(rest);
    } else {
        fuzz_must(why);
    }
    cut(text);
    free(text);
    return 0;
}
