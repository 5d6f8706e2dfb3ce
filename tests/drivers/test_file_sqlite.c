/* SPDX-License-Identifier: MIT
 *
 * SQLite files that cannot be opened, written or had: read-only, missing, something else, on a full
 * disk, locked by another process; and which client gets a file next. Each scene that spoils something for a
 * whole process has one of its own. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "contract.h"

enum { TTL_MS = 60000, PATIENCE_MS = 60000, NOBODY = 65534, FINE = 0, CANNOT_SET_UP = 99 };

static char folder[200];

static char *url_of(const char *name)
{
    return strdup(textf("sqlite:%s/%s", folder, name));
}

static void cannot_open(const char *name, int want, const char *words, const char *what)
{
    OWNED(text) char *url = url_of(name);
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    tap_is_int(rowlock_db_open(url, NULL, &db, &err), want, "%s is %s: %s", what,
               rowlock_result_name(want), err.text);
    tap_ok(strstr(err.text, words) != NULL, "and the text says so");
}

/* Also at a path where install would make the file. */
static void test_not_a_file(void)
{
    OWNED(text) char *pipe = url_of("pipe");
    if (mkfifo(path_of(pipe), 0600) != 0)
        abort();
    cannot_open("pipe", ROWLOCK_EINVAL, "not a regular file", "a named pipe");
    cannot_open("../../../../../../../../../dev/null", ROWLOCK_EINVAL, "not a regular file",
                "a device");
    cannot_open(".", ROWLOCK_EINVAL, "is a folder", "a folder in the place of the file");
}

static void test_not_a_database(void)
{
    OWNED(text) char *url = url_of("letter.txt");
    FILE *file = fopen(path_of(url), "w");
    for (int i = 0; i < 200; i++)
        fprintf(file, "Dear database,\n");
    fclose(file);
    cannot_open("letter.txt", ROWLOCK_EINVAL, "not a database", "a file that is none");
    tap_is_int(link(path_of(url), textf("%s/second", folder)), 0, "it gets a second name");
    cannot_open("letter.txt", ROWLOCK_EINVAL, "another name", "a file with a hard link");
}

/* Opens the file and tries a lock: the result, and its words on standard error. A failure has some. */
static int open_and_try(const char *url, const char *words)
{
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    int result = rowlock_db_open(url, NULL, &db, &err);
    if (result == ROWLOCK_OK) {
        OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
        result = try_lock(lock, TTL_MS);
        err = *rowlock_db_error(db);
    }
    fprintf(stderr, "# %s\n", err.text);
    bool silent = result != ROWLOCK_OK && !err.text[0];
    return !silent && strstr(err.text, words) ? result : -99;
}

/* ---- a file, or its folder, that takes no writes: the superuser may write it all the same, so
 * become another user */

static bool become_nobody(void)
{
    return geteuid() != 0 || (setregid(NOBODY, NOBODY) == 0 && setreuid(NOBODY, NOBODY) == 0);
}

static int as_nobody(void *argument)
{
    return become_nobody() ? -open_and_try(argument, "") : CANNOT_SET_UP;
}

static int install_as_nobody(void *argument)
{
    if (!become_nobody())
        return CANNOT_SET_UP;
    OWNED(db) rowlock_db *db = must_open(argument);
    int result = rowlock_install(db);
    fprintf(stderr, "# %s\n", why(db));
    return strstr(why(db), "may not write in the folder") ? -result : 98;
}

static void test_read_only_folder(void)
{
    OWNED(text) char *url = url_of("new.db"), *open = url_of("open.db");
    must_install(open);
    chmod(path_of(open), 0666);
    chmod(folder, 0555);
    tap_is_int(child_join(child_start(install_as_nobody, url)), -ROWLOCK_EDENIED,
               "a folder that this user may not write in is EDENIED, and named");
    tap_is_int(child_join(child_start(as_nobody, open)), -ROWLOCK_EDENIED,
               "also if the file is there and its journal is not");
    chmod(folder, 0755);
}

static void test_read_only(const char *journal)
{
    OWNED(text) char *url = url_of("readonly.db");
    must_install(url);
    db_exec(&raw_sqlite, url, "PRAGMA journal_mode = %s", journal);
    chmod(path_of(url), 0444);
    chmod(folder, 0777);
    tap_is_int(child_join(child_start(as_nobody, url)), -ROWLOCK_EREADONLY,
               "a lock in a file that takes no writes is EREADONLY, with journal_mode %s", journal);
    chmod(folder, 0755);
    chmod(path_of(url), 0644);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "where it takes writes it is granted");
    unlink(path_of(url));
}

static void test_forbidden(void)
{
    OWNED(text) char *url = url_of("forbidden.db");
    must_install(url);
    chmod(path_of(url), 0000);
    tap_is_int(child_join(child_start(as_nobody, url)), -ROWLOCK_EDENIED,
               "a file that may not be opened is EDENIED");
}

/* ---- a folder that all may write */

/* What another user could have put in the place of the journal, before and after the file is
 * opened. alarm() ends a test that hangs. */
static void test_open_folder(void)
{
    enum { PIPE, LINK, FOREIGN, KINDS };
    static const char *const kinds[] = {"a pipe", "a link", "another user's file"};
    OWNED(text) char *url = url_of("sticky/locks.db");
    OWNED(text) char *journal = strdup(textf("%s-journal", path_of(url)));
    const char *sticky = textf("%s/sticky", folder);
    if (mkdir(sticky, 0755) != 0 || chmod(sticky, 01777) != 0)
        abort();
    must_install(url);
    alarm((unsigned)slow_ms(60));
    for (int kind = PIPE; kind < KINDS; kind++) {
        rowlock_error err = ROWLOCK_ERROR_INIT;
        OWNED(db) rowlock_db *db = must_open(url), *late = NULL;
        OWNED(lock) rowlock_lock *lock = must_lock(db, "x");
        tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock in a folder that all may write");
        if (kind == PIPE ? mkfifo(journal, 0666)
                         : symlink(kind == LINK ? "/dev/null" : "none", journal))
            abort();
        if (kind == FOREIGN) {
            unlink(journal);
            close(open(journal, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
            if (chown(journal, NOBODY, NOBODY) != 0)
                kind = KINDS;
        }
        if (kind < KINDS) {
            tap_is_int(rowlock_release(lock), ROWLOCK_EDENIED, "%s for a journal is refused: %s",
                       kinds[kind], why(db));
            tap_is_int(rowlock_db_open(url, NULL, &late, &err), ROWLOCK_EDENIED,
                       "by a new handle too: %s", err.text);
        }
        unlink(journal);
        tap_is_int(rowlock_release(lock), ROWLOCK_OK, "without it all goes on");
    }
    alarm(0);
    OWNED(db) rowlock_db *db = must_open(url);
    tap_is_int(check_item(db, "access").verdict, ROWLOCK_WARNING, "check warns of the folder");
}

/* ---- a full disk: a small one of our own, which only the superuser can have */

static void fill_disk(const char *at)
{
    char block[512] = {0};
    int file = open(textf("%s/filler", at), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(file, block, sizeof block) > 0)
        ;
    close(file);
}

/* What a scene returns is the number of the expectation that failed. */
struct disk {
    char at[250], url[300];
    int (*scene)(const char *at, const char *url);
};

static int on_small_disk(void *argument)
{
    const struct disk *d = argument;
    if (mkdir(d->at, 0755) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("rowlock", d->at, "tmpfs", 0, "size=512k") != 0)
        return CANNOT_SET_UP;
    must_install(d->url);
    return d->scene(d->at, d->url);
}

static int see_writable(void *context, const rowlock_finding *finding)
{
    bool full = strcmp(finding->value, "no: the disk is full") == 0;
    if (strcmp(finding->item, "writable") == 0)
        *(bool *)context = full && finding->verdict == ROWLOCK_BAD;
    return 0;
}

/* Fills it first, so that not even the page of another lock fits. */
static int on_full_disk(const char *at, const char *url)
{
    rowlock_db *db = must_open(url);
    rowlock_lock *held = must_lock(db, "held"), *lock = must_lock(db, "nightly");
    if (try_lock(held, TTL_MS) != ROWLOCK_OK)
        return 2;
    fill_disk(at);
    int said = ROWLOCK_OK;
    for (int i = 0; i < 10000 && said == ROWLOCK_OK; i++) {
        said = try_lock(lock, TTL_MS);
        if (said == ROWLOCK_OK)
            said = rowlock_release(lock);
    }
    fprintf(stderr, "# %s\n", why(db));
    if (said != ROWLOCK_EREADONLY)
        return 3;
    if (rowlock_verify(held) != ROWLOCK_OK)
        return 4;
    bool full = false;
    if (rowlock_check(db, see_writable, &full, NULL) != ROWLOCK_OK || !full)
        return 7;
    unlink(textf("%s/filler", at));
    if (rowlock_check(db, see_writable, &full, NULL) != ROWLOCK_OK || full)
        return 8;
    int now = rowlock_lock_token(lock) > 0 ? rowlock_release(lock) : try_lock(lock, TTL_MS);
    if (now != ROWLOCK_OK)
        return 5;
    close_locks(lock, held);
    rowlock_db_close(db);
    return db_int(&raw_sqlite, url, "SELECT count(*) FROM rowlock_locks") == 0 ? FINE : 6;
}

static int on_disk_full_before(const char *at, const char *url)
{
    fill_disk(at);
    if (open_and_try(url, "full: make room") != ROWLOCK_EREADONLY)
        return 1;
    unlink(textf("%s/filler", at));
    return open_and_try(url, "") == ROWLOCK_OK ? FINE : 2;
}

static int on_disk_without_writes(const char *at, const char *url)
{
    if (mount(NULL, at, NULL, MS_REMOUNT | MS_RDONLY, "size=512k") != 0)
        return CANNOT_SET_UP;
    if (open_and_try(url, "takes no writes") != ROWLOCK_EREADONLY)
        return 1;
    const char *other = textf("sqlite:%s/other.db", at);
    return open_and_try(other, "no such file") < 0 ? FINE : 2;
}

static void test_disk(int (*scene)(const char *at, const char *url), const char *what)
{
    struct disk disk = {.scene = scene};
    snprintf(disk.at, sizeof disk.at, "%s/disk", folder);
    snprintf(disk.url, sizeof disk.url, "sqlite:%s/locks.db", disk.at);
    int status = child_join(child_start(on_small_disk, &disk));
    rmdir(disk.at);
    if (status == CANNOT_SET_UP)
        tap_skip(1, "only the superuser can have a small disk");
    else
        tap_is_int(status, FINE, "%s", what);
}

/* ---- another process that keeps the file locked */

struct keeper {
    const char *url, *begin;
    int told[2], wait[2];
    pid_t child;
};

static int keep_locked(void *argument)
{
    struct keeper *keeper = argument;
    char byte;
    close(keeper->wait[1]);
    void *session = raw_sqlite.open(keeper->url);
    raw_run(&raw_sqlite, session, "%s", keeper->begin);
    if (write(keeper->told[1], "x", 1) != 1 || read(keeper->wait[0], &byte, 1) < 0)
        return 1;
    raw_run(&raw_sqlite, session, "COMMIT");
    raw_sqlite.close(session);
    return 0;
}

static void lock_file(struct keeper *keeper)
{
    char byte;
    must_install(keeper->url);
    if (pipe(keeper->told) != 0 || pipe(keeper->wait) != 0)
        abort();
    keeper->child = child_start(keep_locked, keeper);
    close(keeper->wait[0]);
    if (read(keeper->told[0], &byte, 1) != 1)
        tap_ok(false, "another process locks the file");
}

static void unlock_file(struct keeper *keeper)
{
    close(keeper->wait[1]);
    close(keeper->told[0]);
    close(keeper->told[1]);
}

static void test_locked(const char *begin)
{
    OWNED(text) char *url = url_of("locked.db");
    struct keeper keeper = {.url = url, .begin = begin};
    lock_file(&keeper);
    OWNED(db)
    rowlock_db *db = must_open_with(url, OPTIONS(db, .statement_timeout_ms = slow_ms(2000)));
    OWNED(lock) rowlock_lock *lock = must_lock(db, "nightly");
    rowlock_grant holder = ROWLOCK_GRANT_INIT;
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_BUSY, "a file that another keeps with %s is BUSY",
               begin);
    tap_is_int(rowlock_lock_holder(lock, &holder), ROWLOCK_NONE, "and no holder can be named");
    unlock_file(&keeper);
    tap_is_int(wait_lock(lock, TTL_MS, PATIENCE_MS), ROWLOCK_OK, "when it is let go it is granted");
    tap_is_int(rowlock_release(lock), ROWLOCK_OK, "and released");
    tap_is_int(child_join(keeper.child), 0, "the other process noticed nothing");
}

/* Holding a lock needs the file only to say so. */
static void test_renew_while_locked(void)
{
    OWNED(text) char *url = url_of("kept.db");
    struct keeper keeper = {.url = url, .begin = "BEGIN IMMEDIATE"};
    lock_file(&keeper);
    OWNED(db) rowlock_db *db = must_open_with(url, OPTIONS(db, .statement_timeout_ms = 400));
    OWNED(lock) rowlock_lock *there = must_attach(db, "nightly", "me", 1);
    int said = rowlock_renew(there, TTL_MS);
    tap_is_int(said, ROWLOCK_ESERVER, "a renewal that cannot get at the file fails: %s", why(db));
    tap_is_int(error_of(db).retryable, 1, "and may be repeated");
    unlock_file(&keeper);
    child_join(keeper.child);
    tap_is_int(rowlock_renew(there, TTL_MS), ROWLOCK_LOST, "then it is told the truth");
}

/* Which client gets a file next: a client that waits for it, or the one that has just had it. */
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
    return ROWLOCK_OK;
}

static int note_it(void *context, const rowlock_attempt *attempt)
{
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
    *(struct helper **)context = helper_start(wait_for_file, &waiter_had_it);
    /* Time: SQLite's own pauses go by the real clock. The loop waits for the turn itself. */
    sleep_ms(LONGER_THAN_PAUSES_MS);
    for (int i = 0; i < 10000 && !is_taken(); i++)
        sleep_ms(1);
    return is_taken() ? ROWLOCK_OK : ROWLOCK_ESERVER;
}

static int look(void *context, const rowlock_attempt *attempt)
{
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
    tap_is_int(failed, 0, "a stranger that has the turn stops no client");
    close(stranger);
}

static void test_turn(void)
{
    OWNED(text) char *url = url_of("turn.db");
    must_install(url);
    find_address(path_of(url));
    rowlock_db *holder = must_open(url);
    waiter = must_open(url);
    test_waiter_first(holder);
    test_stranger(holder);
    close_dbs(waiter, holder);
}

int main(void)
{
    const char *given = getenv(raw_sqlite.url_env);
    if (!given || !*given)
        return tap_skip_all("no SQLite to test on");
    snprintf(folder, sizeof folder, "%s/files-XXXXXX", test_folder());
    if (!mkdtemp(folder) || chmod(folder, 0755) != 0)
        return 1;
    cannot_open("no/such/folder.db", ROWLOCK_EINVAL, "does not exist", "a folder that is missing");
    test_not_a_file();
    test_not_a_database();
    test_read_only("WAL");
    test_read_only("DELETE");
    test_read_only_folder();
    test_forbidden();
    test_open_folder();
    test_disk(on_full_disk, "a full disk is EREADONLY, and all goes on with room again");
    test_disk(on_disk_full_before,
              "a disk that is full when a file is opened is EREADONLY, and says so");
    test_disk(on_disk_without_writes, "so is a file system that takes no writes");
    test_locked("BEGIN IMMEDIATE");
    test_locked("BEGIN EXCLUSIVE");
    test_renew_while_locked();
    test_turn();
    return system(textf("rm -rf '%s'", folder)) == 0 ? tap_done() : 1;
}
