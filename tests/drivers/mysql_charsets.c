/* SPDX-License-Identifier: MIT
 *
 * Adopted MySQL connections whose character set has characters that end with the byte of a quote.
 */
#include "contract.h"

static void refused(const struct contract *c, const char *charset)
{
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    raw_run(c->raw, session, "SET NAMES %s", charset);
    tap_is_str(rowlock_result_name(c->raw->adopt(&db, session, NULL, &err)), "ROWLOCK_EINVAL",
               "a connection that speaks %s is not adopted", charset);
    rowlock_db_close(db);
    raw_run(c->raw, session, "SET NAMES utf8mb4");
    if (c->raw->adopt(&db, session, NULL, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "charsets");
    is_result(db, try_lock(lock, 30000), ROWLOCK_OK, "one that speaks UTF-8 is");
    raw_run(c->raw, session, "SET NAMES %s", charset);
    is_result(db, rowlock_verify(lock), ROWLOCK_EINVAL, "until it is told to speak %s", charset);
    raw_run(c->raw, session, "SET NAMES latin1");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "in latin1 it goes on");
}

void contract_mysql_charsets(const struct contract *c)
{
    static const char *const charsets[] = {"gbk", "big5", "sjis", "cp932"};
    for (size_t i = 0; i < COUNT(charsets); i++)
        refused(c, charsets[i]);
}
