#!/usr/bin/env bash
# The recipes of docs/OPERATIONS.md that sweep: each is run as it stands there, at once instead of at night.
. "$(dirname "$0")/cli.sh"

# section HEADING: the lines of docs/OPERATIONS.md below it.
section() { awk -v heading="$1" '/^##/ { inside = $0 ~ "^###? " heading "$"; next } inside' docs/OPERATIONS.md; }
# block [LANGUAGE]: the first block of this language in the lines that it reads.
block() { awk -v begin="\`\`\`${1:-}" '/^```/ { if (inside) exit; inside = $0 == begin; next } inside'; }

# As a program that ended without releasing leaves it.
leave_lock() {
    rl acquire "left behind" --ttl 100ms --owner gone
    rl wait "left behind"
}

# locks_left "what holds" N
locks_left() { answers "$1" 0 'scalar grep { $_->{name} eq "left behind" } @$d' "$2" list --json; }

# starts FILE COMMAND: as cron and systemd do, with nothing but the variables of a file.
starts() {
    local variables=()
    mapfile -t variables < <(sed "s|^ROWLOCK_URL=.*|ROWLOCK_URL=$ROWLOCK_URL|; s|^PATH=|PATH=$work/bin:|" "$1")
    env -i "${variables[@]}" /bin/sh -c "$2" >"$work/out" 2>"$work/err"
    status=$?
}

by_cron() {
    local entry
    mkdir -p "$work/bin"
    ln -sf "$command" "$work/bin/rowlock"
    section Cron | block >"$work/cron"
    entry=$(grep -v '^[A-Z_]*=' "$work/cron")
    grep '^[A-Z_]*=' "$work/cron" >"$work/variables"
    same "the entry of cron.d has five times and a user" \
        "$(sed -E 's/^([0-9*]+ ){5} *[a-z]+  rowlock run .*/fine/' <<<"$entry")" fine
    leave_lock
    starts "$work/variables" "${entry#*  ops  }"
    same "its command says nothing, so that cron sends no mail" "$status $(cat "$work/out" "$work/err")" "0 "
    locks_left "and sweeps" 0
    leave_lock
    rl acquire sweeping --owner another --ttl 1h
    starts "$work/variables" "${entry#*  ops  }"
    same "while another host sweeps it ends well" "$status $(cat "$work/out" "$work/err")" "0 "
    locks_left "and does nothing" 1
    rl break sweeping
}

by_systemd() {
    section systemd | block | sed -n "s/^echo '\(ROWLOCK_URL=.*\)' >>.*/\1/p" >"$work/default"
    same "/etc/default/rowlock has a line" "$(wc -l <"$work/default")" 1
    leave_lock
    starts "$work/default" "$(sed -n "s|^ExecStart=/usr/bin/rowlock|$command|p" packaging/systemd/rowlock-sweep.service)"
    same "the command of the service says nothing" "$status $(cat "$work/out" "$work/err")" "0 "
    locks_left "and sweeps with no more than that line" 0
}

# Units of the machine are not ours to judge.
verified() {
    systemd-analyze verify --man=no "$@" >"$work/findings" 2>&1
    echo "$? $(grep -v '^/[^:]*/systemd/' "$work/findings")"
}

units() {
    needs systemd-analyze "the units are as systemd wants them" || return
    mkdir -p "$TMPDIR/units"
    cp packaging/systemd/* "$TMPDIR/units"
    sed -i "s|^ExecStart=/usr/bin/rowlock|ExecStart=/bin/true|" "$TMPDIR/units/rowlock-sweep.service"
    is "the units are as systemd wants them" "$(verified "$TMPDIR"/units/*)" "0 "
    section Leaders | block ini | sed -E 's|^(ExecStart=)[^ ]*|\1/bin/true|' >"$TMPDIR/units/api.service"
    is "and so is that of a leader" "$(verified "$TMPDIR/units/api.service") $(grep -c ^Exec "$TMPDIR/units/api.service")" "0  2"
    ok "the service is shut off from the machine" \
        systemd-analyze security --offline=yes --threshold=20 "$TMPDIR/units/rowlock-sweep.service"
}

base=housekeeping_recipe
admin() { mariadb --no-defaults --socket="$ROWLOCK_TEST_MYSQL_DIR/s.sock" --user=root -N "$@"; }
drop_event() { admin -e "SET GLOBAL event_scheduler = OFF; DROP DATABASE IF EXISTS $base; DROP USER IF EXISTS sweep@localhost"; }
was_swept() { [ "$(admin -e "SELECT swept > 0 FROM rowlock_meta" $base)" = 1 ]; }
event() { rl check --json; json '(grep { $_->{item} eq "event" } @{$d->{findings}})[0]{value}'; }

by_event() {
    [ "$db" = mysql ] && own_server || return
    local ROWLOCK_URL=${ROWLOCK_TEST_MYSQL_URL%/*}/$base recipe
    export ROWLOCK_URL
    recipe=$(section "An event of MySQL or MariaDB" | block sql)
    drop_event
    admin -e "CREATE DATABASE $base"
    rl install
    same "an event's tables are made" "$status $err" "0 "
    {
        sed '/^-- now the grants/,$d' <<<"$recipe"
        "$command" install --print-grants --role sweeper --user sweep@localhost
        sed '1,/^-- now the grants/d; s/EVERY 1 DAY STARTS .*/EVERY 1 SECOND/' <<<"$recipe"
    } >"$work/event.sql"
    leave_lock
    holds "the recipe goes through" admin $base -e "source $work/event.sql"
    holds "the event sweeps" until_true was_swept
    locks_left "with the rights of its definer" 0
    same "check knows of it" "$(event)" "rowlock_housekeeping, every 1 second"
    # As a replica has the event of its primary.
    admin $base -e "ALTER DEFINER = sweep@localhost EVENT rowlock_housekeeping DISABLE ON SLAVE"
    same "after a failover check says so" "$(event)" "rowlock_housekeeping, disabled on this server"
    recipe=$(section "An event of MySQL or MariaDB" | sed -n 's/^  `\(ALTER DEFINER.*\)`\.$/\1/p')
    admin $base -e "$recipe; UPDATE rowlock_meta SET swept = 0"
    same "what enables it again leaves the definer" \
        "$(admin -e "SELECT definer, status FROM information_schema.events WHERE event_schema = '$base'")" \
        "sweep@localhost	ENABLED"
    holds "and it sweeps again" until_true was_swept
    same "the definer may take no lock" "$(admin -e "SHOW GRANTS FOR sweep@localhost" | grep -cE 'rowlock_grant|ALL PRIV')" 0
    drop_event
}

units
for_each_database install_tables by_cron by_systemd by_event
done_testing
