#!/usr/bin/env bash
# The event of docs/OPERATIONS.md on a primary of MariaDB or MySQL and its replicas: only the primary runs it. After a
# failover check says that it is disabled, and what is written there enables it.
. "$(dirname "$0")/nodes.sh"

cluster_is replicas

case $(node sql 1 'SELECT VERSION()') in *MariaDB*) kind=SLAVE ;; *) kind=REPLICA ;; esac
section() { awk '/^##/ { inside = $0 == "### An event of MySQL or MariaDB"; next } inside' docs/OPERATIONS.md; }
status_on() { node sql "$1" "SELECT status FROM information_schema.events WHERE event_name = 'rowlock_housekeeping'"; }
disabled_on() { [[ $(status_on "$1") == *SIDE_DISABLED ]]; }
was_swept() { says "$1" "SELECT swept > 0 FROM rowlock.rowlock_meta" 1; }
event_on() { rl check --json --url "$(hosts "$1")"; json 'join " ", map { "$_->{verdict}: $_->{value}" } grep { $_->{item} eq "event" } @{$d->{findings}}'; }

node save
rl install --url "$(hosts 1)"
recipe=$(section | awk '/^```/ { if (inside) exit; inside = $0 == "```sql"; next } inside')
rl install --url "$(hosts 1)" --print-grants --role sweeper --user sweep@localhost
grants=$out
# Privileges come before the event, which is refused without them.
recipe=$(sed '/^-- now the grants/,$d' <<<"$recipe"; echo "$grants"
    sed '1,/^-- now the grants/d; s/EVERY 1 DAY STARTS .*/EVERY 1 SECOND/' <<<"$recipe")
ok "the recipe goes through on the primary" node sql 1 "USE rowlock; $recipe"
ok "the event sweeps" until_true 20 was_swept 1
for replica in 2 3; do
    node sql $replica "SET GLOBAL event_scheduler = ON"
    ok "replica $replica has the event disabled" until_true 20 disabled_on $replica
done
is "check is content with the primary" "$(event_on 1)" "ok: rowlock_housekeeping, every 1 second"
sleep 2
is "a replica does not run it" "$(node sql 2 "SELECT last_executed IS NULL FROM information_schema.events WHERE event_name = 'rowlock_housekeeping'")" 1

node stop 1
node sql 2 "STOP $kind; RESET $kind ALL; SET GLOBAL $([ $kind = SLAVE ] || echo super_)read_only = OFF; SET GLOBAL read_only = OFF"
is "check says that the new primary does not run it" "$(event_on 2)" "warning: rowlock_housekeeping, disabled on this server"
node sql 2 "UPDATE rowlock.rowlock_meta SET swept = 0"
node sql 2 "USE rowlock; $(section | sed -n 's/^  `\(ALTER DEFINER.*\)`\.$/\1/p')"
ok "when it is enabled, it sweeps there" until_true 20 was_swept 2
is "and check is content" "$(event_on 2)" "ok: rowlock_housekeeping, every 1 second"
node start 1
node restore
done_testing
