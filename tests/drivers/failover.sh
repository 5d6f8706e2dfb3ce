# shellcheck shell=bash
# What the tests of several hosts share: a primary and a standby of their own, which end with the test;
# sourced by tests/drivers/failover_*.t.
#
#     two_dirs KIND             folders for two servers: sets $primary and $standby
#     start_server DIR MAKE     makes a server with MAKE PORT, and starts it
#     make_standby PORT         of PostgreSQL: a copy of $primary
#     follows                   it has all, and is sync or async, as $replication says
#     listen_silently           a socket that is never answered: sets $hung_port
#     within MS STATUS URL      a list of URL is done in time
#     replication KEY           what the findings in $out say about replication
#
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"

kind=
primary=
standby=
hung=

two_dirs() {
    kind=$1
    primary=$(new_server_dir a)
    standby=$(new_server_dir b)
    trap clean_up EXIT
    trap 'exit 1' INT TERM HUP
}

clean_up() {
    trap '' INT TERM HUP
    touch "$work/stop"
    "${kind}_stop" "$primary"
    "${kind}_stop" "$standby"
    [ -z "$hung" ] || kill "$hung" 2>/dev/null
    rm -rf "$primary" "$standby"
}

start_server() { start_somewhere "$kind" "$1" "$2" PORT; }

make_standby() {
    rm -rf "$standby/data"
    postgres_copy "$primary" "$standby" "$1" s1 -c fsync=off
}
follows() {
    [ "$(postgres_shell "$primary" 'SELECT sync_state FROM pg_stat_replication')" = "${replication:-sync}" ] &&
        postgres_shell "$standby" 'SELECT 1'
}

address() { echo "127.0.0.1:$(cat "$1/port")"; }

listen_silently() {
    perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(Listen => 8, LocalAddr => "127.0.0.1") or die;
        $| = 1;
        print $s->sockport, "\n";
        sleep 600' >"$work/hung.port" &
    hung=$!
    until_true 60 test -s "$work/hung.port" || fail "no socket to hang on"
    # shellcheck disable=SC2034 # read by the tests
    hung_port=$(<"$work/hung.port")
}

now_ms() { date +%s%3N; }

# within MS STATUS URL: is a list of URL done in so many milliseconds, with this exit code? A slow machine tries again.
within() {
    local began
    began=$(now_ms)
    rl list --url "$3"
    [ "$status" = "$2" ] && [ $(($(now_ms) - began)) -lt "$1" ]
}

replication() { json '(grep { $_->{item} eq "replication" } @{$d->{findings}})[0]{'"$1"'}'; }

longer() { [ "$(wc -c <"$1")" -gt "$2" ]; }
