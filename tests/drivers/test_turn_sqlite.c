/* SPDX-License-Identifier: MIT
 *
 * Who gets a SQLite file next: a client that waits for it, or the one that has just had it. */
#include "quick.h"
#include "raw.h"
#include "tap.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { ENOUGH = 10, ROUNDS = 200, LONGER_THAN_PAUSES_MS = 25 };

static struct sockaddr_un address;
static socklen_t address_size;
static atomic_bool waiter_had_it;
static rowlock_db *waiter;

static void find_address(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        abort();
    address.sun_family = AF_UNIX;
    int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "rowlock-turn-%llx-%llx",
                 (unsigned long long)file.st_dev, (unsigned long long)file.st_ino);
    address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool is_taken(void)
{
    int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool taken = connect(probe, (const struct sockaddr *)&address, address_size) == 0;
    close(probe);
    return taken;
}

static int do_nothing(void *context, const rowlock_attempt *attempt)
{
    (void)context, (void)attempt;
    return ROWLOCK_OK;
}

static int note_it(void *context, const rowlock_attempt *attempt)
{
    (void)attempt;
    *(atomic_bool *)context = true;
    return ROWLOCK_OK;
}

static int wait_for_file(void *argument)
{
    return rowlock_retry(waiter, note_it, argument, NULL, NULL);
}

/* Holds the file until the waiter has the turn. */
static int hold_file(void *context, const rowlock_attempt *attempt)
{
    (void)attempt;
    *(struct helper **)context = helper_start(wait_for_file, &waiter_had_it);
    /* Time: SQLite's own pauses go by the real clock. The loop waits for the turn itself. */
    sleep_ms(LONGER_THAN_PAUSES_MS);
    for (int i = 0; i < 10000 && !is_taken(); i++)
        sleep_ms(1);
    return is_taken() ? ROWLOCK_OK : ROWLOCK_ESERVER;
}

static int look(void *context, const rowlock_attempt *attempt)
{
    (void)attempt;
    *(int *)context += waiter_had_it;
    return ROWLOCK_OK;
}

/* The holder begins again right after its commit. On a loaded machine the waiter may wake too late.
 * Without turns it comes first in one round of a hundred. */
static void test_waiter_first(rowlock_db *holder)
{
    int first = 0, failed = 0, rounds = 0;
    for (; first < ENOUGH && rounds < ROUNDS; rounds++) {
        struct helper *helper = NULL;
        waiter_had_it = false;
        failed += rowlock_retry(holder, hold_file, &helper, NULL, NULL) != ROWLOCK_OK;
        failed += rowlock_retry(holder, look, &first, NULL, NULL) != ROWLOCK_OK;
        failed += helper_join(helper) != ROWLOCK_OK;
    }
    tap_is_int(failed, 0, "a client that waits for a file takes the turn");
    tap_is_int(
        first, ENOUGH,
        "it gets the file before the one that has just had it, as a rule: in %d of %d rounds",
        first, rounds);
    tap_ok(!is_taken(), "and gives the turn back");
}

/* Any user of the machine can take the turn of a file. */
static void test_stranger(rowlock_db *db)
{
    int stranger = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int failed = bind(stranger, (const struct sockaddr *)&address, address_size) != 0;
    for (int i = 0; i < 5; i++)
        failed += rowlock_retry(db, do_nothing, NULL, NULL, NULL) != ROWLOCK_OK;
    tap_is_int(failed, 0, "a stranger who has the turn stops nobody");
    close(stranger);
}

int main(void)
{
    const char *given = getenv(raw_sqlite.url_env);
    if (!given || !*given)
        return tap_skip_all("no SQLite to test on");
    OWNED(text) char *url = file_url("turn.db");
    must_install(url);
    find_address(path_of(url));
    rowlock_db *holder = must_open(url);
    waiter = must_open(url);
    test_waiter_first(holder);
    test_stranger(holder);
    close_dbs(waiter, holder);
    return tap_done();
}
