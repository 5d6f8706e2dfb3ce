#!/usr/bin/env bash
# A primary of MariaDB or MySQL is killed, and a replica is promoted by the recipe of docs/OPERATIONS.md. What is lost
# is counted. Asynchronous, or semi-synchronous with --semi of tests/more/with-replicas.sh.
set -u
# shellcheck source=tests/cluster/nodes.sh
. "$(dirname "$0")/nodes.sh"

cluster_is replicas

# Longer than a lease.
LEASE_S=5
case $(node sql 1 'SELECT VERSION()') in *MariaDB*) product=MariaDB ;; *) product=MySQL ;; esac
case $(node sql 1 "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'") in *ON*) semi=1 ;; *) semi=0 ;; esac

# The lines of docs/OPERATIONS.md for this product, run for node N. The judge is told when programs can connect.
recipe() {
    local url
    url=$(hosts "$1")
    mkdir -p "$work/bin"
    ln -sf "$command" "$work/bin/rowlock"
    awk -v product="$product:" '$0 == product { here = 1 } /^```$/ && inside { exit }
        inside { print } here && /^```bash$/ { inside = 1 }' docs/OPERATIONS.md >"$work/recipe.sh"
    cat >"$work/bin/sql" <<SQL
#!/bin/sh
case "\$*" in *"GLOBAL read_only = OFF"*) "$load" mark "$load_folder" back ;; esac
exec mariadb --no-defaults --host=${url#*@} --user=ops --batch --skip-column-names "\$@"
SQL
    sed -i 's|--host=\([^:]*\):\([0-9]*\)/[^ ]*|--host=\1 --port=\2|' "$work/bin/sql"
    chmod +x "$work/bin/sql"
    sql=sql operator=mysql://ops@${url#*@} lease=$LEASE_S PATH=$work/bin:$PATH bash -u "$work/recipe.sh"
}

# In plain words: no raise, no wait.
open_at_once() {
    if [ $product = MariaDB ]; then
        node sql "$1" "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL rpl_semi_sync_master_enabled = OFF"
    else
        node sql "$1" "STOP REPLICA; RESET REPLICA ALL"
        [ $semi = 0 ] || node sql "$1" "SET GLOBAL rpl_semi_sync_source_enabled = OFF"
    fi
    load_mark back
    node sql "$1" "SET GLOBAL read_only = OFF"
    load_mark open
}

finding() {
    exits "check is done before" 0 check --json
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
    load_mark open
    load_goes_on "$what: locks are granted again"
    node start 1
    load_mark old_primary_back
    errs "$what: the old primary comes back and takes no writes" 78 "--read-only" acquire -n --url "$(hosts 1)" \
        --owner x exclusive-0
    load_goes_on "$what: programs go on with the new one"
}

during_the_recipe() {
    errs "$what: before that programs cannot lock there" 78 "--read-only" acquire -n --url "$(hosts 2)" --owner x new
}

too_late() {
    lose
    open_at_once 2
    load_goes_on "$what: programs lock at once" 50
    exits "$what: tokens are raised a moment later" 0 raise-tokens
    load_goes_on "$what: and locks are granted" 50
}

breaks() { # breaks NAME FUNCTION
    echo "# $1"
    load_begin "${1// /_}"
    load_goes_on "$1: locks are granted"
    "$2"
    load_breaks "$1: tokens are granted twice" "no token is granted twice"
}

asynchronous() {
    finding "asynchronous, replicas: 2" warning
    tried "tokens are raised before programs connect" raised --may-lose
    node restore
    what="tokens are raised too late"
    breaks "$what" too_late
}

# ---- semi-synchronous

# Node 3 gets nothing from here on, and node 2 acknowledges each commit.
one_behind() {
    node freeze 3
    load_goes_on "$what: locks are granted with one replica" 200
    crash_primary
}

most_received() {
    one_behind
    node thaw 3
    node follow 3 2
    open_at_once_semi 2
    load_goes_on "$what: locks are granted again"
}

# Nothing was lost. So neither the raise nor the wait is needed.
open_at_once_semi() {
    if [ $product = MariaDB ]; then
        node sql "$1" "STOP SLAVE; RESET SLAVE ALL"
    else
        node sql "$1" "STOP REPLICA; RESET REPLICA ALL"
    fi
    load_mark back
    node sql "$1" "SET GLOBAL read_only = OFF"
    load_mark promoted
}

with_recipe() {
    one_behind
    node thaw 3
    node follow 3 2
    ok "$what: the recipe goes through" recipe 2
    load_mark open
    load_goes_on "$what: locks are granted again"
}

least_received() {
    one_behind
    node thaw 3
    open_at_once 3
    load_goes_on "$what: locks are granted again"
}

# No commit is answered until a replica is back.
no_replica() {
    node cut 1
    load_mark cut
    sleep $OUTAGE_S
    load_mark back
    node heal
    load_mark healed
    load_goes_on "$what: locks are granted again"
}

short_timeout() {
    local name=master
    [ $product = MariaDB ] || name=source
    node sql 1 "SET GLOBAL rpl_semi_sync_${name}_timeout = 500"
}

semi_synchronous() {
    finding "semi-synchronous, replicas: 2" fine
    tried "no replica answers" no_replica
    node restore
    tried "the replica that has received most is promoted" most_received
    node restore
    tried "it is promoted by the recipe" with_recipe
    node restore
    what="a replica that was behind is promoted"
    breaks "$what" least_received
    node restore
    short_timeout
    finding "semi-synchronous, replicas: 2 (asynchronous after 500 ms)" warning
    what="a timeout that is too short"
    breaks "$what" lost_after_timeout
}

lost_after_timeout() {
    lose
    open_at_once 2
    load_goes_on "$what: locks are granted again"
}

tried() {
    what=$1
    under_load "$@"
}

LOAD_URLS=$(hosts 1 2 3)
LOAD_INSTALL_URL=$(hosts 1)
ROWLOCK_URL=$LOAD_URLS
export LOAD_URLS LOAD_INSTALL_URL ROWLOCK_URL
load_install
sleep 1
node save
if [ $semi = 1 ]; then semi_synchronous; else asynchronous; fi
done_testing
