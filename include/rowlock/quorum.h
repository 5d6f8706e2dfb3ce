/* SPDX-License-Identifier: MIT
 *
 * rowlock: a lock over three or five independent databases, that survives the loss of one or two.
 *
 *     rowlock_db *db = NULL;
 *     rowlock_error err = ROWLOCK_ERROR_INIT;
 *     int result = rowlock_db_open("postgresql://app@db1/ops "
 *                                  "mysql://app@db2/ops "
 *                                  "postgresql://app@db3/ops", NULL, &db, &err);
 *
 * From there on a lock is what it is with one database: acquire, wait, renew, verify, release, a
 * keeper, tokens. Each member needs the tables of rowlock (`rowlock install`), and all must have
 * joined (`rowlock quorum-join`, or rowlock_quorum_join()). All programs must name the same members
 * in the same order. docs/QUORUM.md says how to run it, and when one replicated database is the
 * better choice.
 *
 * WHAT IT PROMISES
 *
 *   - The lock is held while a majority of the members has its row.
 *   - Tokens: no two grants of a name have the same. A grant that is asked for after another was
 *     returned has a higher one. This needs no clock.
 *   - Exclusion while leases hold, as with one database, if the clocks of the members and of this
 *     host run at the same rate within 1/1000.
 *   - With three members, one that is down, frozen or cut off costs no grant and no renewal. With
 *     two of them gone nothing is granted, and holders are LOST in time.
 *   - While only a bare majority has the row, the state of a lock with a keeper is JEOPARDY: one
 *     more loss ends it. The keeper gives the row to members that lack it.
 *
 * WHAT IT DOES NOT PROMISE
 *
 *   - A guard. One member's transaction proves nothing about a majority: rowlock_guard() is
 *     EUNSUPPORTED. Fence by token: rowlock_fence() in the database of the data refuses what is
 *     older than the newest token that has written.
 *   - An order of waiters. The queue is that of the first member, and a hint.
 *   - Shared and counted locks, several locks at once, once keys and versions are EUNSUPPORTED. So
 *     is what an operator does with the tables, such as rowlock_install(), rowlock_check(),
 *     rowlock_upgrade(), rowlock_sweep() and rowlock_break(): do it with the URL of each member.
 *   - A member that has lost commits (restored, failed over asynchronously) must not vote. Keep it
 *     out until its tokens were raised above all others (docs/QUORUM.md).
 */
#ifndef ROWLOCK_QUORUM_H
#define ROWLOCK_QUORUM_H

#include <rowlock/admin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rowlock_db_open() with several URLs connects to the members. A majority must answer. The others
 * are connected when they are there.
 *
 * url          3 or 5 URLs of any kinds, with spaces between them
 * options      for each member; pool must be NULL
 * Returns, besides the results of rowlock_db_open()
 *   ROWLOCK_EINVAL     not 3 or 5 members, or the same URL twice. One member whose URL has an
 *                      unknown parameter is only a member that cannot be used: the log says so, and
 *                      rowlock_quorum_check()
 *   ROWLOCK_ECONN, EDENIED, ESCHEMA, EUNSUPPORTED, ENOMEM
 *                      no majority can be used
 * Keepers      A member that lacks a lock's row is given it with the next renewal.
 * Threads      The handle has a thread for each member. A member that hangs at rowlock_db_close()
 *              keeps its thread until its statement ends. exit() frees memory that the client
 *              library may be using there. A program that ends meanwhile calls _exit() instead.
 * Round trips  of each step one to each member at the same time; of an acquire a second one if the
 *              members' tokens differ
 * Fork         A child cannot use it. Open after forking.
 * Example      examples/quorum.c
 */

/* rowlock_quorum_join makes these databases a quorum, or lets a member vote again that was
 * restarted, restored or failed over. It is for an operator: `rowlock quorum-join`.
 *
 *   - A new quorum: each member gets its number, the identity of the quorum, and a mark.
 *   - A member that may have lost grants gets tokens above all others and a new mark. Before, this
 *     waits until all calls have ended that were under way when it lost them, and then until all
 *     leases are over that it may have forgotten.
 *   - Members that may vote stay as they are. Locks go on with them meanwhile.
 *
 * urls         3 or 5 URLs in one text, as for rowlock_db_open(). The members need tables
 *              (rowlock_install()).
 * options      statement_timeout_ms is as long as that of every program, or longer: calls are over
 *              then. NULL: 10 s.
 * replaced     0. Or the number of a member, from 1, that is lost for good: another database may
 *              take its place now. A backup of the member itself needs no such permission.
 *
 * Returns
 *   ROWLOCK_OK         each of the databases may vote
 *   ROWLOCK_ECONN      a member is away. The others may vote, unless it is needed for that: for a
 *                      new quorum all of them are, later all others of three, four of five.
 *   ROWLOCK_ESCHEMA    a database is another member than its place says, of another quorum, or not
 *                      the one that joined in this place: name it as replaced. Or a majority has
 *                      lost what it knew
 *   ROWLOCK_EINVAL     there is no member with the number of replaced
 *   others             as rowlock_db_open()
 * Blocks       for statement_timeout_ms, less what a restarted server runs already, and then as
 *              long as the longest lease; up to 10 s for a MySQL server just started; while another
 *              join is under way
 * Example      examples/quorum.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int rowlock_quorum_join(const char *urls, int replaced,
                                                       const rowlock_db_options *options,
                                                       rowlock_error *err);

/* rowlock_quorum_check says which members vote. It changes nothing.
 *   - Each member in its order is a finding: "member 2" with "votes", or why not and what to do.
 *   - A member that is away, denies access or has no tables is one that does not vote.
 *   - each() returns 0 to go on. It must return (rowlock.h).
 *   - rowlock_check() examines the server and the tables of a single member.
 *
 * Returns
 *   ROWLOCK_OK         it could look, whatever it found
 *   ROWLOCK_ESCHEMA    as rowlock_quorum_join()
 *   others             as rowlock_db_open()
 * Round trips  2 to each member that is there, one after the other, after connecting
 * Example      examples/quorum.c
 */
ROWLOCK_MUST_CHECK ROWLOCK_API int
rowlock_quorum_check(const char *urls, const rowlock_db_options *options,
                     int (*each)(void *context, const rowlock_finding *finding), void *context,
                     rowlock_error *err);

#ifdef __cplusplus
}
#endif
#endif
