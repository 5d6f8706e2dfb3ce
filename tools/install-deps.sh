#!/usr/bin/env bash
# Installs the Debian packages that are missing for building and testing rowlock.
#
# usage: tools/install-deps.sh [GROUP]...
#   sqlite    build with the embedded database only (enough for `make demo`)
#   build     build with every database
#   wheel     what `make wheel` needs
#   all       build with every database, and run `make check` (the default)
#   more      what `make check-more` also needs. Debian starts Prometheus and pgpool as services.
#   lint      what `make lint` and `make format` need
#   valgrind  what `make check-valgrind` also needs
#   fuzz      what `make fuzz` also needs
#   peers     what `make bench-peers` also needs. Debian starts Redis, memcached and etcd as services
#             when it installs them. The benchmark does not use these: stop them before you measure.
#   model     what `make model` needs; states: what `make simulate-states` needs
#   deb       what `make deb` needs: build-essential and the Build-Depends of debian/control
#   check-reproducible, check-deb, check-abidiff: what these targets of make also need
#
# A need is written as PACKAGE, or as COMMAND=PACKAGE if any program of that name is enough.
# shellcheck disable=SC2034 # the groups are used by their names
set -euo pipefail

sqlite_needs=(make=make gcc=gcc libc6-dev pkg-config=pkg-config libsqlite3-dev libjansson-dev)
build_needs=("${sqlite_needs[@]}" libncurses-dev libpq-dev libmariadb-dev)
# For /usr/bin/python3, which is not what python3 is for everyone.
wheel_needs=("${build_needs[@]}" python3-cffi python3-dev python3-setuptools python3-wheel python3-pip)
python_needs=(python3-venv python3-psycopg python3-psycopg2 python3-mysqldb python3-pymysql python3-asyncpg mypy)
all_needs=("${wheel_needs[@]}" "g++=g++" nm=binutils prove=perl
    setpriv=util-linux script=bsdutils sqlite3=sqlite3 postgresql mariadbd=mariadb-server-core mariadb=mariadb-client-core
    openssl=openssl systemd-analyze=systemd locales mandoc=mandoc zsh=zsh fish=fish faketime=faketime tzdata "${python_needs[@]}"
    python3-prometheus-client python3-pyte python3-django python3-sqlalchemy python3-celery)
more_needs=("${all_needs[@]}" node=nodejs npm=npm patchelf=patchelf pgbouncer=pgbouncer postgresql-15-cron
    wsrep_sst_rsync=mariadb-server galera-4 rsync=rsync ip=iproute2 debootstrap autopkgtest promtool=prometheus
    patroni=patroni etcd=etcd-server haproxy=haproxy curl=curl pgpool=pgpool2
    ruby=ruby ruby-activerecord ruby-pg ruby-mysql2 ruby-sqlite3 clang=clang musl-gcc=musl-tools tclsh=tcl
    i686-linux-gnu-gcc=gcc-i686-linux-gnu libc6-dev-i386-cross aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu
    libc6-dev-arm64-cross s390x-linux-gnu-gcc=gcc-s390x-linux-gnu libc6-dev-s390x-cross
    qemu-aarch64-static=qemu-user-static)
lint_needs=(clang-tidy=clang-tidy clang-format=clang-format cppcheck=cppcheck
    shellcheck=shellcheck man=man-db)
valgrind_needs=(valgrind=valgrind libc6-dbg)
fuzz_needs=(clang=clang libclang-rt-14-dev)
states_needs=(make=make gcc=gcc clang=clang libclang-rt-14-dev llvm-cov=llvm libsqlite3-dev)
peers_needs=(redis-server=redis-server libhiredis-dev etcd=etcd-server zookeeper libzookeeper-mt-dev
    memcached=memcached libmemcached-dev libcurl4-openssl-dev python3-redis)
model_needs=("${sqlite_needs[@]}" spin=spin)
check_reproducible_needs=(faketime=faketime locales)
deb_needs=(build-essential debhelper dh-python libjansson-dev libmariadb-dev libncurses-dev libpq-dev libsqlite3-dev pkgconf
    python3-all-dev python3-cffi python3-setuptools)
check_deb_needs=("${deb_needs[@]}" lintian)
check_abidiff_needs=(abidiff=abigail-tools)

needs=()
for group in "${@:-all}"; do
    if ! declare -p "${group//-/_}_needs" >/dev/null 2>&1; then
        sed -n '/^# usage/,/^#$/s/^# *//p' "$0" >&2
        exit 64
    fi
    declare -n group_needs=${group//-/_}_needs
    needs+=("${group_needs[@]}")
done

# Some of these programs are in sbin, which is not on every user's path.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

packages=()
for need in "${needs[@]}"; do
    case $need in
        *=*) command -v "${need%%=*}" >/dev/null || packages+=("${need#*=}") ;;
        *) packages+=("$need") ;;
    esac
done
[ ${#packages[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    # Without Debian's tools only programs can be found. The compiler reports missing libraries.
    echo "There is no apt-get here. If the build or the tests fail, install what your system calls:" >&2
    printf '    %s\n' "${packages[@]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    case $status in installed*) ;; *) missing+=("$package") ;; esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Neither root nor sudo: ask an administrator for  apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null
}

install_missing() {
    apt install --yes --no-install-recommends "${missing[@]}"
}

# The package lists may be missing or old. They are fetched only if the first try fails.
# An update that fails for one unrelated source does not matter if the install then succeeds.
if ! install_missing; then
    : >"$log"
    apt update || true
    if ! install_missing; then
        cat "$log" >&2
        echo "could not install ${missing[*]}" >&2
        exit 1
    fi
fi
