/* SPDX-License-Identifier: MIT
 *
 * Where the nodes are; see nodes.h. No checks are here. */
#include "nodes.h"

#include "raw.h"

char node[3][200];

bool nodes_found(void)
{
    const char *urls = getenv("ROWLOCK_TEST_NODES"), *kind = getenv("ROWLOCK_TEST_CLUSTER");
    raw_here = &raw_mysql;
    return urls && kind && strcmp(kind, "replicas") != 0 &&
           sscanf(urls, "%199s %199s %199s", node[0], node[1], node[2]) == 3;
}

bool is_galera(void)
{
    return db_int(&raw_mysql, node[1], "SELECT VERSION() LIKE '%%MariaDB%%'");
}

struct found {
    const char *item;
    char *value;
    size_t cap;
    rowlock_verdict verdict;
};

static int find(void *context, const rowlock_finding *finding)
{
    struct found *found = context;
    if (strcmp(finding->item, found->item) == 0) {
        snprintf(found->value, found->cap, "%s", finding->value);
        found->verdict = finding->verdict;
    }
    return 0;
}

rowlock_verdict finding(const char *url, const char *item, char *value, size_t cap)
{
    struct found found = {.item = item, .value = value, .cap = cap};
    OWNED(db) rowlock_db *db = must_open(url);
    *value = '\0';
    if (rowlock_check(db, find, &found, NULL) != ROWLOCK_OK)
        raw_failed("check", why(db));
    return found.verdict;
}
