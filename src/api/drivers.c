/* SPDX-License-Identifier: MIT
 * The list of databases. */
#include "api/api.h"

#include <string.h>

static const struct rlk_driver *const drivers[] = {
#if RLK_WITH_POSTGRES
    &rlk_driver_postgres,
#endif
#if RLK_WITH_MYSQL
    &rlk_driver_mysql,
#endif
#if RLK_WITH_SQLITE
    &rlk_driver_sqlite,
#endif
    NULL,
};

/* Also the schemes of drivers that this build leaves out. Their URLs get an error of their own. */
static const char *const schemes[] = {"postgresql", "postgres", "mysql", "mariadb", "sqlite", NULL};

static bool among(const char *scheme, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, scheme) == 0)
            return true;
    return false;
}

int rowlock_list_drivers(int (*each)(void *context, const char *driver, const char *client),
                         void *context)
{
    int stop = 0;
    if (!each)
        return ROWLOCK_EINVAL;
    for (size_t i = 0; drivers[i] && stop == 0; i++) {
        char client[80];
        drivers[i]->client(client, sizeof client);
        stop = each(context, drivers[i]->name, client);
    }
    return ROWLOCK_OK;
}

const struct rlk_driver *rlk_driver_find(const char *scheme, bool *known)
{
    *known = among(scheme, schemes);
    for (size_t i = 0; drivers[i]; i++)
        if (among(scheme, drivers[i]->schemes))
            return drivers[i];
    return NULL;
}
