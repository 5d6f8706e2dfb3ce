#!/usr/bin/env bash
# Builds rowlock for another machine, C library or compiler, and runs what needs no server.
#
# usage: ports.sh clang|i386|arm64|s390x|musl [TARGET]…
#   TARGET: port-tests, or another of make, such as contract-postgres
# Ends with 75 if a tool or package cannot be had. arm64 and s390x run in an emulator, so only compiled programs
# run. What is fetched stays in $XDG_CACHE_HOME/rowlock-test.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$([ "$(id -u)" = 0 ] && echo /var/cache || echo "$HOME/.cache")}/rowlock-test
port=$1
shift
targets=("${@:-port-tests}")
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

absent() { echo "$*" >&2; exit 75; }
need() { for tool; do command -v "$tool" >/dev/null || absent "$tool is not installed"; done; }
build() { exec "${MAKE:-make}" --no-print-directory "-j$(nproc)" "$@" "${targets[@]}"; }

# cross GNU_NAME LIBRARIES: with packages of that architecture unpacked into a folder.
cross() {
    local root=$cache/port-$port libs log=$cache/port-$port.log
    libs=$root/usr/lib/$2
    need "$1-gcc" "$1-ld"
    mkdir -p "$cache"
    [ -s "$root/VERSIONS" ] || tests/more/debian-root.sh --arch "$port" "$suite" "$root" libsqlite3-dev libjansson-dev \
        libncurses-dev libpq-dev libmariadb-dev >"$log" 2>&1 || { tail -n 5 "$log" >&2; absent "no packages"; }
    export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libs/pkgconfig:$root/usr/share/pkgconfig
    local flags="-L$libs -Wl,-rpath-link,$libs -Wl,-rpath,$libs -Wl,--disable-new-dtags"
    if [ "$port" = i386 ]; then
        flags+=" -Wl,--dynamic-linker=$root/lib/ld-linux.so.2"
    else
        local qemu=qemu-${port/arm64/aarch64}-static
        need "$qemu"
        export ROWLOCK_TEST_WRAPPER="$qemu -L $root" ROWLOCK_TEST_SLOWDOWN=10 ROWLOCK_TEST_TIMEOUT=3600
    fi
    # -Wno-psabi: gcc tells which layouts its version 11 has changed.
    build CC="$1-gcc" LD="$1-ld" CFLAGS='-O2 -g -Wno-psabi' LDFLAGS="$flags"
}

# Debian has no SQLite for musl. HAVE_USLEEP: else its waits are whole seconds. Of jansson only headers are used.
musl() {
    local root=$cache/port-musl mirror apt
    need musl-gcc tclsh
    if [ ! -s "$root/libsqlite3.a" ]; then
        rm -rf "$root" && mkdir -p "$root/lists/partial" "$root/source"
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$root/sources.list"
        apt=(apt-get -qq -o "Dir::Etc::sourcelist=$root/sources.list" -o Dir::Etc::sourceparts=/dev/null
            -o "Dir::State::lists=$root/lists" -o APT::Sandbox::User=root)
        (cd "$root" && "${apt[@]}" update && "${apt[@]}" source --download-only sqlite3) || absent "no source of SQLite"
        tar -xf "$(echo "$root"/sqlite3_*.orig.tar.xz)" -C "$root/source" --strip-components=1
        (cd "$root/source" && ./configure --disable-tcl && make sqlite3.c sqlite3.h &&
            musl-gcc -O1 -fPIC -DHAVE_USLEEP=1 -DSQLITE_ENABLE_COLUMN_METADATA -c sqlite3.c) >"$root/log"
        cp "$root/source/sqlite3.h" /usr/include/jansson.h "$(dpkg -L libjansson-dev | grep jansson_config.h)" "$root"
        ar rcs "$root/libsqlite3.a" "$root/source/sqlite3.o"
    fi
    build CC=musl-gcc WITH_POSTGRES=0 WITH_MYSQL=0 WITH_CURSES=0 JANSSON_LIBS=-ljansson \
        SQLITE_CFLAGS="-isystem $root" SQLITE_LIBS="$root/libsqlite3.a"
}

case $port in
    clang) need clang && build CC=clang all ;;
    i386) cross i686-linux-gnu i386-linux-gnu ;;
    arm64) cross aarch64-linux-gnu aarch64-linux-gnu ;;
    s390x) cross s390x-linux-gnu s390x-linux-gnu ;;
    musl) musl ;;
    *) echo "usage: $0 clang|i386|arm64|s390x|musl [TARGET]…" >&2 && exit 64 ;;
esac
