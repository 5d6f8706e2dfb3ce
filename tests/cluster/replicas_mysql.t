#!/usr/bin/env bash
# A primary of MariaDB or MySQL is killed, and a replica is promoted by the recipe of docs/OPERATIONS.md. What is lost
# is counted. Asynchronous, or semi-synchronous with --semi of tests/more/with-replicas.sh.
. "$(dirname "$0")/nodes.sh"

cluster_is replicas

# Longer than a lease.
LEASE_S=5
twice="no token is granted twice"
case $(node sql 1 'SELECT VERSION()') in *MariaDB*) product=MariaDB role=master kind=SLAVE change=MASTER ;; *) product=MySQL role=source kind=REPLICA change='REPLICATION SOURCE' ;; esac
case $(node sql 1 "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'") in *ON*) semi=1 ;; *) semi=0 ;; esac

# The client of node N for the recipe, with the options that the text names. The judge is told when programs can
# connect.
make_client() {
    local place options
    place=$(hosts "$1")
    options=$(sed -n 's/.*`mariadb -h db2\( -[^`]*\)\{0,1\}`.*/\1/p' docs/OPERATIONS.md)
    place=${place#*@}
    mkdir -p "$work/bin"
    ln -sf "$command" "$work/bin/rowlock"
    cat >"$work/bin/sql" <<SQL
#!/bin/sh
case "\$*" in *"GLOBAL read_only = OFF"*) "$load" mark "$load_folder" back ;; esac
exec mariadb --no-defaults$options --host=${place%%:*} --port=$(cat "$(cut -d ' ' -f "$1" <<<"$ROWLOCK_TEST_NODE_DIRS")/port") \
    --user=$ROWLOCK_TEST_OPERATOR "\$@"
SQL
    chmod +x "$work/bin/sql"
}

# The lines of docs/OPERATIONS.md for this product, run for node N; without those that match a pattern.
recipe() {
    make_client "$1"
    awk -v product="$product:" '$0 == product { here = 1 } /^```$/ && inside { exit }
        inside { print } here && /^```bash$/ { inside = 1 }' docs/OPERATIONS.md | grep -v "${2:-^$}" >"$work/recipe.sh"
    sql=sql operator=$(hosts "$1" | sed "s/app@/$ROWLOCK_TEST_OPERATOR@/") lease=$LEASE_S PATH=$work/bin:$PATH bash -u "$work/recipe.sh"
}

open_at_once() {
    ok "$what: node $1 is promoted at once" recipe "$1" '^rowlock\|^sleep'
    load_mark open
}

finding() {
    exits "check is done before" 0 check --json --url "$operator"
    same "it sees the replicas" "$(json '(grep { $_->{item} eq "replication" } @{$d->{findings}})[0]{value}')" "$1"
    same "and judges" "$(json '(grep { $_->{item} eq "replication" } @{$d->{findings}})[0]{verdict}')" "$2"
}

crash_primary() {
    node crash 1
    load_mark cut
    node heal
}

# Clients reach the primary, but the replicas do not.
lose() {
    node cut 1
    load_goes_on "$what: locks are granted that no replica gets" 200
    crash_primary
}

# ---- asynchronous

raised() {
    lose
    ok "$what: the recipe goes through" recipe 2
    load_survives "$what: locks are granted again" open
    node start 1
    load_mark old_primary_back
    errs "$what: the old primary comes back and takes no writes" 69 "--read-only" acquire -n --url "$(hosts 1)" \
        --owner x exclusive-0
    load_goes_on "$what: programs go on with the new one"
}

too_late() {
    lose
    open_at_once 2
    load_goes_on "$what: programs lock at once" 50
    exits "$what: tokens are raised a moment later" 0 raise-tokens
    load_goes_on "$what: and locks are granted" 50
}

asynchronous() {
    finding "asynchronous, replicas: 2" warning
    under_load "tokens are raised before programs connect" raised --may-lose
    node restore
    breaks "tokens are raised too late" too_late "$twice"
}

# ---- semi-synchronous

# Node 3 gets nothing from here on, and node 2 acknowledges each commit.
one_behind() {
    node sql 3 "STOP $kind IO_THREAD"
    load_goes_on "$what: locks are granted with one replica" 200
    crash_primary
}

# Nothing was lost. So neither the raise nor the wait is needed. What the replica applies late is in its relay log.
most_received() {
    node sql 2 "STOP $kind; CHANGE $change TO ${role^^}_DELAY = 5; START $kind"
    ok "$what: the delayed replica is back" node join 2
    one_behind
    node follow 3 2
    open_at_once 2
    load_goes_on "$what: locks are granted again"
}

# The raise waits for the other replica.
with_recipe() {
    one_behind
    node follow 3 2
    node sql 2 "SET GLOBAL rpl_semi_sync_${role}_enabled = ON"
    ok "$what: the recipe goes through" recipe 2
    load_survives "$what: locks are granted again" open
}

least_received() {
    one_behind
    open_at_once 3
    load_goes_on "$what: locks are granted again"
}

# No commit is answered until a replica is back.
no_replica() {
    node cut 1
    load_outage
    node heal
    load_survives "$what: locks are granted again" healed
}

semi_synchronous() {
    finding "semi-synchronous, replicas: 2" ok
    under_load "no replica answers" no_replica
    node restore
    under_load "the replica that has received most is promoted" most_received
    node restore
    under_load "it is promoted by the recipe" with_recipe
    node restore
    breaks "a replica that was behind is promoted" least_received "$twice"
    node restore
    node sql 1 "SET GLOBAL rpl_semi_sync_${role}_timeout = 500"
    finding "semi-synchronous, replicas: 2 (asynchronous after 500 ms)" warning
    breaks "a timeout that is too short" lost_after_timeout "$twice"
}

lost_after_timeout() {
    lose
    open_at_once 2
    load_goes_on "$what: locks are granted again"
}

LOAD_URLS=$(hosts 1 2 3)
LOAD_INSTALL_URL=$(hosts 1)
ROWLOCK_URL=$LOAD_URLS
operator=$(hosts 1 | sed "s/app@/$ROWLOCK_TEST_OPERATOR@/")
export LOAD_URLS LOAD_INSTALL_URL ROWLOCK_URL
load_install
sleep 1
node save
if [ $semi = 1 ]; then semi_synchronous; else asynchronous; fi
done_testing
