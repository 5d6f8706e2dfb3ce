# shellcheck shell=bash
# What the tests of the command share; sourced by tests/cli/*.t.
#
#     rl ARGUMENT…                    runs the command; sets $status, $out and $err
#     exits "what holds" N ARGUMENT…  the same, and passes when it exits with N
#     errs "what holds" N PART ARGUMENT…      the same, and PART is in what it says on standard error
#     prints "what holds" N PART ARGUMENT…    or on standard output
#     gives "what holds" N TEXT ARGUMENT…     or that is TEXT, and no more
#     answers "what holds" N EXPRESSION VALUE ARGUMENT…   or EXPRESSION of its JSON is VALUE; see json below
#     counts "what holds" N COUNT PATTERN ARGUMENT…     or so many lines of standard output match PATTERN
#     silent "what holds" N ARGUMENT…         or it says nothing at all
#     gets_above "what holds" TOKEN ARGUMENT…     or it exits with 0 and prints a token above TOKEN
#     refused "what" PART ARGUMENT…   exits with 64, PART, a hint at --help, and nothing on standard output
#     has "what holds" TEXT PART      passes when PART is in TEXT
#     json EXPRESSION [TEXT]          what Perl makes of EXPRESSION, with $d the JSON of TEXT, or of $out
#     can_do "what holds" COMMAND…    whether COMMAND succeeds; if not, root has failed and others skip
#     needs PROGRAM "what holds"       whether it is there; if not, that is skipped
#     until_true COMMAND…             tries again until COMMAND succeeds
#     pause                           a twentieth of a second
#     for_each_database FUNCTION…     calls them in turn with ROWLOCK_URL set, and $db the database's name
#     install_tables                  the first of them, if the others need tables
#     ended_by FILE END               whether the times that a job has noted are before END
#     expire NAME [END]               ends the lease of a lock, in the table of $db
#     own_servers                     comes first in a script that stops servers
#     own_server                      whether the server of $db is a private one
#     server freeze|thaw|stop|start   that server
#     start_client, say SQL, stop_client   a client of $db that stays connected; say sets $said
. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

command=${ROWLOCK_TEST_COMMAND:-$PWD/build/rowlock}
slow=${ROWLOCK_TEST_SLOWDOWN:-1}
work=$TMPDIR/work
mkdir -p "$work"

# The names of tests begin with the database, when there is one.
db=
about() { printf '%s%s' "${db:+$db: }" "$1"; }

# Sets $words. A lease outlives a test on a slow machine, unless the test says how long it is.
lasting() {
    words=("$@")
    [[ ${1:-} != acquire || " $* " = *" --ttl"* ]] || words=(acquire --ttl 1h "${@:2}")
}

rl() {
    local words
    lasting "$@"
    "$command" "${words[@]}" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    out=$(<"$work/out")
    err=$(<"$work/err")
    # If the machine stood still while the command connected, nothing was sent, and it is run once more.
    [[ $status$err != 69*"before the connect timeout"* || -n ${again:-} ]] || again=1 rl "$@"
}

# given NAME N TEXT PART: the last run exited with N, and PART is in TEXT.
given() {
    local bad=1
    [ "$status" != "$2" ] || case $3 in *"$4"*) bad=0 ;; esac
    tap_result $bad "$(about "$1")"
    [ $bad = 0 ] || tap_note "exited with $status, not $2, or without '$4':" "$out" "$err"
}

exits() { rl "${@:3}"; given "$1" "$2" "" ""; }
errs() { rl "${@:4}"; given "$1" "$2" "$err" "$3"; }
prints() { rl "${@:4}"; given "$1" "$2" "$out" "$3"; }
gives() { rl "${@:4}"; given "$1" "$2" "=$out=" "=$3="; }
answers() { rl "${@:5}"; given "$1" "$2" "=$(json "$3")=" "=$4="; }
counts() { rl "${@:5}"; given "$1" "$2" "=$(grep -c -- "$4" <<<"$out")=" "=$3="; }
silent() { rl "${@:3}"; given "$1" "$2" "=$out$err=" "=="; }
gets_above() { rl "${@:3}"; given "$1" 0 "$([ "${out:-0}" -gt "$2" ] && echo above)" above; }

refused() {
    errs "$1 is a usage error, $1 is named" 64 "$2" "${@:3}"
    has "$1 comes with a hint at --help" "$err" "--help"
    is "$1 prints nothing on standard output" "$out" ""
}

# full "what" ARGUMENT…: its output cannot be written.
full() {
    timeout $((120 * slow)) "$command" "${@:2}" >/dev/full 2>"$work/err"
    same "$1 onto a full disk is noticed" $? 74
    has "$1 onto a full disk says so" "$(<"$work/err")" "write to standard output"
    timeout $((120 * slow)) "$command" "${@:2}" >&- 2>/dev/null
    same "$1 with standard output closed is noticed" $? 74
}

has() {
    local found=1
    case $2 in *"$3"*) found=0 ;; esac
    tap_result $found "$(about "$1")"
    [ $found = 0 ] || tap_note "got $2" "without $3"
}

# Namespaces are root's to make. Where root may not, the tests of them would be missed in silence.
can_do() {
    "${@:2}" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ]; then
        tap_result 1 "$(about "$1")"
        tap_note "root cannot run this: give it CAP_SYS_ADMIN, or run the tests as another user: ${*:2}"
    else
        cannot "$(about "$1")" "this user cannot run: ${*:2}"
    fi
    return 1
}

needs() { command -v "$1" >/dev/null || { skip "$(about "$2")" "there is no $1"; return 1; }; }

# has_module NAME: sets $python to one that has this module.
has_module() {
    for python in python3 /usr/bin/python3; do ! "$python" -c "import $1" 2>/dev/null || return 0; done
    skip "what needs Python's $1" "there is no $1"
    return 1
}

same() { is "$(about "$1")" "$2" "$3"; }
holds() { ok "$(about "$1")" "${@:2}"; }

json() {
    local value
    if [ ! -p "$work/json" ]; then
        mkfifo "$work/json.answer" "$work/json"
        (tests/lib/json.pl "$work/json" $$ </dev/null >/dev/null 2>&1 &)
    fi
    printf '%s\0%s' "$1" "${2-$out}" >"$work/json"
    IFS= read -rd '' value <"$work/json.answer"
    printf '%s' "$value"
}

# json_is EXPRESSION VALUE ARGUMENT…: whether EXPRESSION of its JSON is VALUE.
json_is() { rl "${@:3}" --json; [ "$(json "$1")" = "$2" ]; }

# free NAME, queued NAME [N], renewed NAME [N]: no client holds it, N clients (1) wait, it was renewed more often than N (0).
free() {
    rl list --names
    ! grep -qxF -- "$1" <<<"$out"
}
queued() { json_is "scalar grep { \$_->{name} eq '$1' && !\$_->{expired} } @\$d" "${2:-1}" list --waiters; }
renewed() { json_is "(\$d->{grants}[0]{renewals} // 0) > ${2:-0}" 1 show "$1"; }

# Starts no program. After a read with a limit a shell may ignore SIGINT, so a subshell reads.
pause() {
    [ -p "$TMPDIR/never" ] || mkfifo "$TMPDIR/never"
    (read -rt 0.05 <>"$TMPDIR/never") || true
}

# The limit is for machines that are busy or stand still. What is waited for comes much earlier.
until_true() {
    local end=$((SECONDS + 120 * slow))
    [[ $1 != [0-9]* ]] || shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { tap_note "waited in vain: $*"; return 1; }
        pause
    done
}

# Has the process ended? One that is not collected yet has.
gone() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    case ${stat##*) } in Z* | X*) return 0 ;; esac
    return 1
}

# A shell has its background jobs ignore the keyboard's signals, which this undoes. Sets $pid. What it says is in
# $work/bg.out and $work/bg.err, or in files named by $as.
# shellcheck disable=SC2034 # read by the tests
start() {
    local as=${as:-bg} words
    lasting "$@"
    # Now, since the background job may take its time to do so, and the old ones would be read.
    : >"$work/$as.out"
    : >"$work/$as.err"
    env --default-signal=INT,QUIT "$command" "${words[@]}" >"$work/$as.out" 2>"$work/$as.err" </dev/null &
    pid=$!
}

# begun FILE ARGUMENT…: the same, and waits until FILE has something in it.
begun() {
    start "${@:2}"
    until_true test -s "$1" || tap_note "nothing in $1: $(cat "$work/${as:-bg}.err")"
}

# start_until TEXT ARGUMENT…: the same, and waits until it says TEXT on standard error.
start_until() { start "${@:2}"; until_true grep -q "$1" "$work/bg.err"; }

# ran NAME: how often $job has, which leaves a line each time in a file of the name's.
ran() { grep -c . "$work/$1" 2>/dev/null; }

# has_run "what holds" N COUNT NAME ARGUMENT…: the command exits with N, and the job has run so often in all.
has_run() {
    rl "${@:5}"
    same "$1" "$status $(ran "$4")" "$2 $3"
    [ "$status $(ran "$4")" = "$2 $3" ] || tap_note "$out" "$err"
}

# race "what holds" OPTION…: six runs of that job at once.
# shellcheck disable=SC2154 # $job is the test's
race() {
    local i racing=() failed=
    for i in 1 2 3 4 5 6; do
        "$command" run race "${@:2}" -- sh -c "$job" "$work/race" &
        racing+=($!)
    done
    for i in "${racing[@]}"; do wait "$i" || failed+=" $?"; done
    same "$1" "$(ran race)" 1
    same "and all are content" "$failed" ""
}

# finished PID: waits for it, and sets $status.
finished() {
    wait "$1" 2>/dev/null
    status=$?
}

# end PID: ends it, and sets $status.
end() {
    kill "$1"
    finished "$1"
}

# ends "what holds" N PID [PART]: it ends with N, and PART is in what a started one has said on standard error.
ends() {
    finished "$3"
    out=$(cat "$work/bg.out" 2>&1)
    err=$(cat "$work/bg.err" 2>&1)
    given "$1" "$2" "$err" "${4:-}"
}

# killed "what holds" SIGNAL N PID [PART]: the same after the signal.
killed() {
    kill -s "$2" "$4"
    ends "$1" "${@:3}"
}

# A URL with a prefix of its own, so that tests need not care what else is in that database.
private_url() { case $1 in *\?*) echo "$1&rowlock_prefix=$2" ;; *) echo "$1?rowlock_prefix=$2" ;; esac; }

url_of() {
    local url=ROWLOCK_TEST_${1^^}_URL
    echo "${!url:-}"
}

# The database's own client, fed with statements. Options are for that of MySQL.
sql_client() {
    local place
    place=$(url_of "$db")
    place=${place%%\?*}
    case $db in
        postgres) PGOPTIONS='-c client_min_messages=warning' psql -qAtX "$place" ;;
        mysql)
            place=${place#*@}
            # The server's certificate is its own. Debian 13's client warns of that, for each root without password.
            mariadb --no-defaults --skip-ssl-verify-server-cert -u root -h 127.0.0.1 -P "$(expr "$place" : '[^:]*:\([0-9]*\)')" \
                --skip-column-names --batch --unbuffered "$@" "$(basename "$place")"
            ;;
        sqlite) sqlite3 -cmd '.timeout 60000' "${place#sqlite:}" ;;
    esac
}

# A client that stays connected: say SQL types a statement and sets $said to the answer. The tables of
# this test have a prefix of their own.
start_client() { coproc CLIENT { sql_client --force 2>&1; }; }
say() {
    local line prefix=${ROWLOCK_URL##*rowlock_prefix=}
    printf '%s;\nSELECT %s;\n' "${1//rowlock_/$prefix}" "'end of answer'" >&"${CLIENT[1]}"
    said=
    while read -r -t $((20 * slow)) line <&"${CLIENT[0]}" && [ "$line" != "end of answer" ]; do
        said+=${said:+ }$line
    done
}
stop_client() {
    local pid=$CLIENT_PID
    echo '\q' >&"${CLIENT[1]}"
    wait "$pid" 2>/dev/null
}

# In a subshell of its own: what it finds is read from what it prints.
test_database() {
    local part
    work=$TMPDIR/$db
    mkdir -p "$work"
    ROWLOCK_URL=$(private_url "$(url_of "$db")" "cli_$$_")
    export ROWLOCK_URL
    for part in "$@"; do "$part"; done
    echo "# all of $db"
}

install_tables() { rl install; }

# expire NAME [END]: its lease ended as soon as it was granted, or ends then, in microseconds since 1970.
expire() { sql_client <<<"UPDATE ${ROWLOCK_URL##*rowlock_prefix=}locks SET expires = ${2:-acquired + 1} WHERE name = '$1';"; }

# They may be later if the machine stood still shortly before: for 200 ms in the last second.
ended_by() {
    awk -v end="$2" '$1 > end - 1000000 && last && $1 - last > 200000 { stood = 1 } { last = $1 }
        END { exit !last || last >= end && !stood }' "$1"
}

# The script runs anew, with servers that it may stop while other tests use the shared ones.
own_servers() {
    local kind with=()
    [ -z "${CLI_OWN_SERVERS:-}" ] || return 0
    export CLI_OWN_SERVERS=1
    for kind in postgres mysql; do
        local dir=ROWLOCK_TEST_${kind^^}_DIR
        [ -n "${!dir:-}" ] || continue
        unset "ROWLOCK_TEST_${kind^^}_URL" "$dir"
        with+=("tests/lib/with-$kind.sh")
    done
    [ ${#with[@]} = 0 ] || exec "${with[@]}" "$0"
}

own_server() {
    local dir=ROWLOCK_TEST_${db^^}_DIR
    [ -n "${!dir:-}" ]
}

# server WHAT: freeze, thaw, stop or start the server under test. A started one outlives this test, so
# it must inherit neither our private folder nor the pipe that our results go through.
server() {
    local dir=ROWLOCK_TEST_${db^^}_DIR
    TMPDIR=${!dir} tests/lib/server-ctl.sh "$db" "$1" 3>&- 4>&- 5>&-
}

# All databases at the same time, since a test of leases mostly waits. The lines of one stay together.
for_each_database() {
    local line last place tested=()
    for db in ${ROWLOCK_TEST_BACKENDS:-sqlite postgres mysql}; do
        if [ -n "$(url_of "$db")" ]; then
            (test_database "$@") >"$TMPDIR/$db.tap" 2>&1 &
            tested+=("$db")
        elif [ "${SKIPS_AS_FAILS:-0}" = 1 ]; then
            tap_result 1 "$(about "there is a database to test with")"
        fi
    done
    wait
    for db in "${tested[@]}"; do
        last=
        while IFS= read -r line; do
            last=$line
            case $line in
                "ok "*) tap_result 0 "${line#*- }" ;;
                "not ok "*)
                    IFS= read -r place
                    tap_result 1 "${line#*- }" "${place#\# }"
                    ;;
                # tap_result says it again.
                "#   failed: "*) ;;
                "#   "*) echo "$line" >&2 ;;
                *) echo "$line" ;;
            esac
        done <"$TMPDIR/$db.tap"
        tap_result "$([ "$last" = "# all of $db" ]; echo $?)" "$(about "the tests went through to their end")"
    done
    db=
    [ ${#tested[@]} -gt 0 ] || skip_all "no database to test with"
}
