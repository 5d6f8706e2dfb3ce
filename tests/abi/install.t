#!/usr/bin/env bash
# What `make install` lays down is enough to compile, link and run a program against, and uninstall takes
# all of it away again.
. "$(dirname "$0")/../lib/tap.sh"

# Not in TMPDIR, from which nothing may be run on some machines.
work=$(mktemp -d "${ROWLOCK_TEST_BUILD:-$TMPDIR}/install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
root=$work/root
# Sanitizers would want a program of their own kind, so this is always the plain library.
install_to() {
    env -u PKG_CONFIG_PATH -u PKG_CONFIG_SYSROOT_DIR "${MAKE:-make}" --no-print-directory "$1" DESTDIR="$root" "${2:-prefix}=${3:-/opt/rl}" SANITIZE= COVERAGE=0
}

ok "make install succeeds" install_to install
for file in lib/librowlock.so lib/librowlock.a bin/rowlock include/rowlock/rowlock.h \
    lib/pkgconfig/rowlock.pc $(ls include/rowlock/*.h) share/man/man1/rowlock.1 \
    share/man/man1/rowlock-release.1 share/bash-completion/completions/rowlock \
    share/zsh/site-functions/_rowlock share/fish/vendor_completions.d/rowlock.fish; do
    ok "it lays down $file" test -e "$root/opt/rl/$file"
done
ok "the units call the installed command" \
    grep -q '^ExecStart=/opt/rl/bin/rowlock sweep ' "$root/opt/rl/lib/systemd/system/rowlock-sweep.service"
is "nothing in the pkg-config file is left to fill in" "$(grep '@' "$root/opt/rl/lib/pkgconfig/rowlock.pc")" ""
is "no installed file names the source folder" \
    "$(grep -rlF -e "$PWD/src/" -e "$PWD/build/" -e "$PWD/include/" "$root/opt/rl/lib" "$root/opt/rl/include" 2>/dev/null)" ""
ok "the installed command runs from anywhere" env -C / "$root/opt/rl/bin/rowlock" --help

cat >"$work/user.c" <<'C'
#include <rowlock/versions.h>
int main(void)
{
    rowlock_table_close(0);
    return ROWLOCK_VERSION_MAJOR < 0;
}
C
export PKG_CONFIG_PATH=$root/opt/rl/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
# shellcheck disable=SC2046 # the flags are words
ok "a program builds with the flags of pkg-config" \
    "${CC:-cc}" "$work/user.c" -o "$work/user" $(pkg-config --cflags --libs rowlock)
ok "it runs with the installed library" env LD_LIBRARY_PATH="$root/opt/rl/lib" "$work/user"

is "the library may be read by all and run by none" "$(stat -L -c %a "$root/opt/rl/lib/librowlock.so")" 644
is "so may the manual and the completions" "$(find "$root/opt/rl/share" -type f ! -perm 644)" ""
# Where only rowlock is installed: the databases' own .pc files are not found.
ok "its flags need no package of a database" \
    env PKG_CONFIG_LIBDIR="$PKG_CONFIG_PATH" pkg-config --cflags --libs rowlock
# shellcheck disable=SC2046 # the flags are words
ok "a program builds with the archive too" "${CC:-cc}" "$work/user.c" -o "$work/static" \
    $(pkg-config --cflags rowlock) "$root/opt/rl/lib/librowlock.a" \
    $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-l rowlock | sed 's/-lrowlock//') -pthread

ok "make uninstall succeeds" install_to uninstall
is "nothing is left behind" "$(find "$root" -type f -o -type l)" ""

ok "PREFIX does what prefix does" install_to install-headers PREFIX
ok "it names the same place" test -e "$root/opt/rl/include/rowlock/versions.h"
ok "and for uninstall" install_to uninstall PREFIX
is "nothing is anywhere else" "$(find "$root" -type f -o -type l)" ""

# Without DESTDIR it is for this machine.
mkdir "$work/bin" && printf '#!/bin/sh\necho "$@" >>%s/asked\n' "$work" >"$work/bin/ldconfig" && chmod +x "$work/bin/ldconfig"
said=$(PATH=$work/bin:$PATH root='' install_to install-lib prefix "$work/here" 2>&1 >/dev/null)
is "the loader is told of the library, then asked for it" "$(tr '\n' , <"$work/asked")" ",-p,"
ok "and the user of a folder where it does not look" grep -q "libraries in $work/here/lib yet" <<<"$said"

ok "a prefix may have spaces and other odd letters" install_to install prefix '/opt/r & l|'
export PKG_CONFIG_PATH="$root/opt/r & l|/lib/pkgconfig"
flags=()
eval "flags=($(pkg-config --cflags --libs rowlock))"
ok "pkg-config tells it so that a shell understands" "${CC:-cc}" "$work/user.c" -o "$work/odd" "${flags[@]}"
ok "and for uninstall" install_to uninstall prefix '/opt/r & l|'
is "which leaves nothing" "$(find "$root" -type f -o -type l)" ""

done_testing
