#!/usr/bin/env bash
# The recipes of docs/GUARDING.md for people without the library, typed into psql and the mysql client.
. "$(dirname "$0")/cli.sh"

lapsed() { json_is '$d->{grants}[0]{remaining_ms} < 0' 1 show "$1"; }

guarding() {
    local guard="SELECT token FROM rowlock_tokens WHERE name = 'typed' FOR SHARE"
    [ "$db" = postgres ] || guard=${guard/FOR SHARE/LOCK IN SHARE MODE}
    rl acquire typed --owner me --ttl 30 -n
    token=$out
    say "BEGIN"
    say "$guard"
    same "the guard answers with our token" "$said" "$token"
    exits "the lease can be renewed meanwhile" 0 renew typed --owner me --token "$token" --ttl 0.3
    until_true lapsed typed
    exits "an expired lock is not taken over while a transaction guards it" 75 acquire typed --owner rival -n
    silent "which a run that may not wait does not speak of" 75 run -n typed true
    silent "nor with a status of its own" 0 run -n -E 0 typed true
    errs "unless it is asked to" 75 "another transaction is changing it" run -n -v typed true
    errs "after a wait it is said: no holder is in the way" 75 "another transaction is changing it" \
        run -w 100ms typed true
    errs "also if connecting took longer than the wait" 75 "another transaction is changing it" run -w 1ms typed true
    say "COMMIT"
    gets_above "after its end it is, with a greater token" "$token" acquire typed --owner rival -n
    say "BEGIN"
    say "$guard"
    same "which a stale holder's guard shows" "$said" "$out"
    say "ROLLBACK"
}

looking_is_not_guarding() {
    rl acquire looked --owner me --ttl 0.3 -n
    token=$out
    until_true lapsed looked
    say "BEGIN"
    say "SELECT token FROM rowlock_tokens WHERE name = 'looked'"
    same "a plain SELECT shows our token" "$said" "$token"
    exits "and stops no client" 0 acquire looked --owner rival -n
    say "ROLLBACK"
}

# As ALTER TABLE does, or a backup.
tables_locked() {
    say "$([ "$db" = postgres ] && echo 'BEGIN; LOCK TABLE rowlock_locks' || echo 'LOCK TABLES rowlock_locks WRITE')"
    start run behind -- true
    errs "behind a locked table, a run that may not wait has not got the lock" 75 "kept it busy" run -n behind -- true
    say "$([ "$db" = postgres ] && echo COMMIT || echo 'UNLOCK TABLES')"
    ends "one that began before waits longer than a statement may, and has its turn" 0 "$pid"
}

# The recipe for a script that feeds psql: an error, so that nothing is committed.
one_shot() {
    [ "$db" = postgres ] || return 0
    local guard="SELECT 1 / count(*) FROM (SELECT FROM rowlock_tokens WHERE name = 'shot' AND token = "
    rl acquire shot --owner me --ttl 30 -n
    say "BEGIN"
    say "$guard$out FOR SHARE) ours"
    same "the one-line guard passes with our token" "$said" 1
    say "COMMIT"
    say "$guard$((out + 1)) FOR SHARE) ours"
    has "and is an error with another, or with no row at all" "$said" "division by zero"
}

releasing() {
    rl acquire together --owner me --ttl 30 -n
    token=$out
    say "BEGIN"
    say "DELETE FROM rowlock_locks WHERE name = 'together' AND slot = 0 AND owner = 'me' AND token = $token"
    exits "a release within a transaction is not there before its end" 75 acquire together --owner rival -n
    say "ROLLBACK"
    exits "nor after a rollback" 0 verify together --owner me --token "$token"
}

fencing() {
    say "DROP TABLE IF EXISTS fenced"
    say "CREATE TABLE fenced (id INT PRIMARY KEY, v INT, fence BIGINT NOT NULL DEFAULT 0)"
    say "INSERT INTO fenced (id, v) VALUES (1, 0)"
    say "UPDATE fenced SET v = 10, fence = 5 WHERE id = 1 AND fence <= 5"
    say "UPDATE fenced SET v = 20, fence = 7 WHERE id = 1 AND fence <= 7"
    say "UPDATE fenced SET v = 30, fence = 6 WHERE id = 1 AND fence <= 6"
    say "SELECT v FROM fenced"
    same "a fence column refuses the older token's write" "$said" 20
    say "DROP TABLE fenced"
}

register() {
    local answers=
    for t in 5 7 6 7; do
        if [ "$db" = postgres ]; then
            say "WITH put AS (INSERT INTO rowlock_fences AS f (resource, token, seen)
                 VALUES ('typed', $t, 0) ON CONFLICT (resource) DO UPDATE SET token = excluded.token
                 WHERE f.token <= excluded.token RETURNING 1) SELECT count(*) FROM put"
        else
            say "CALL rowlock_fence('typed', $t)"
        fi
        answers+=$said
    done
    same "the register refuses the older token" "$answers" 1101
    say "DELETE FROM rowlock_fences WHERE resource = 'typed'"
}

recipes() {
    [ "$db" != sqlite ] || return 0
    rl install
    start_client
    guarding
    looking_is_not_guarding
    one_shot
    releasing
    fencing
    register
    tables_locked
    stop_client
}
for_each_database recipes

done_testing
