#!/usr/bin/env bash
# The tarball and what is built from it depend on the commit alone: not on the folder, the user's mask, time zone,
# language, home, number of jobs or the time, and git is not needed. `make check-reproducible` runs it.
. "$(dirname "$0")/../lib/tap.sh"

# Not in TMPDIR, from which nothing may be run on some machines.
work=$(mktemp -d "${ROWLOCK_TEST_BUILD:-$TMPDIR}/dist.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# Nothing of the make that runs this test.
plain=(env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u SOURCE_DATE_EPOCH -u GZIP)

here() { "${plain[@]}" HOME=/ TZ=UTC LC_ALL=C bash -c 'umask 022 && exec "$@"' here "$@"; }

mkdir "$work/locale"
localedef -f UTF-8 -i tr_TR "$work/locale/tr_TR" 2>/dev/null
elsewhere() {
    "${plain[@]}" HOME="$work" TZ=XYZ-13:45 LOCPATH="$work/locale" LC_ALL=tr_TR USER=another \
        bash -c 'umask 077 && exec faketime "+500 days" "$@"' elsewhere "$@"
}

# Stands before git, so that each use of it fails.
mkdir "$work/bin"
printf '#!/bin/sh\necho "git was called" >&2\nexit 1\n' >"$work/bin/git"
chmod +x "$work/bin/git"

# contents FOLDER: kind, mode, target and sum of each file.
contents() {
    (cd "$1" && find . -printf '%y %m %P %l\n' | LC_ALL=C sort &&
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}

version=$(awk '$2 ~ /^ROWLOCK_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/rowlock/rowlock.h)
release=rowlock-$version

# packed HOW FOLDER: what make dist writes there, under a name of its own.
packed() {
    "$1" make -s -C "$2" dist && cp "$2/build/$release.tar.gz" "$work/$3.tar.gz"
}
ok "make dist packs the commit" packed here . one
ok "and again, with another mask, zone, language, home and time" packed elsewhere . two
ok "with the same bytes" cmp "$work/one.tar.gz" "$work/two.tar.gz"
is "all owners and times in it are the same" \
    "$(tar -tvzf "$work/one.tar.gz" --numeric-owner --full-time | awk '{ print $2, $4, $5 }' | sort -u | wc -l)" 1
is "git knows each file in it" "$([ ! -e .git ] || comm -13 <(git ls-tree -r --name-only HEAD | sort) \
    <(tar -tzf "$work/one.tar.gz" | grep -v '/$' | sed "s|^$release/||" | sort))" ""

mkdir -p "$work/a" "$work/another/folder"
ok "it is unpacked" here tar -xzf "$work/one.tar.gz" -C "$work/a"
ok "and elsewhere" elsewhere tar -xzf "$work/one.tar.gz" -C "$work/another/folder"
one=$work/a/$release two=$work/another/folder/$release

# built HOW FOLDER JOBS: installs below the FOLDER's root/.
built() { PATH=$work/bin:$PATH "$1" make -s -j"$3" -C "$2" install prefix=/usr DESTDIR="$2.root"; }
ok "without git it is built and installed" built here "$one" 2
ok "and elsewhere, with one job" built elsewhere "$two" 1
contents "$one.root" >"$work/one"
contents "$two.root" >"$work/two"
ok "something is installed" grep -q 'usr/bin/rowlock' "$work/one"
ok "what is installed has the same names, modes and bytes" diff "$work/one" "$work/two"

ok "the unpacked source packs itself, without git" env PATH="$work/bin:$PATH" make -s -C "$two" dist
ok "and gives the same tarball" cmp "$work/one.tar.gz" "$two/build/$release.tar.gz"
is "no file of it names its folder" "$(grep -rlF "$work" "$one.root" "$two.root")" ""

done_testing
