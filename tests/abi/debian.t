#!/usr/bin/env bash
# debian/ agrees with the version, the soname, the exported names and the needs of this source.
. "$(dirname "$0")/../lib/tap.sh"

number() { awk -v name="ROWLOCK_VERSION_$1" '$2 == name { print $3 }' include/rowlock/rowlock.h; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
soname=librowlock.so.$(number MAJOR) package=librowlock$(number MAJOR)

is "the packages have the header's version" \
    "$(sed -n '1s/^rowlock (\(.*\)) .*/\1/p' debian/changelog)" "$version"
# The date of debian/changelog is in the manual too.
if grep -q UNRELEASED debian/changelog; then when="not yet released"
else when=$(date -u -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%F); fi
is "CHANGELOG begins with the release and its date" "$(grep -m 1 '^## ' CHANGELOG.md)" "## $version ($when)"
ok "the library's package is named for the soname" grep -qx "Package: $package" debian/control
is "its symbols too" "$(head -n 1 "debian/$package.symbols")" "$soname $package #MINVER#"

# A node is a release, so its names are there since the version in its name.
nodes=$(sed -n 's/^\(ROWLOCK_\([0-9.]*\)\) .*{$/ (symver)\1 \2.0/p' src/rowlock.map)
is "the symbols have each node of src/rowlock.map, since its release" \
    "$(grep '^ ' "debian/$package.symbols")" "$nodes"

needs=$(sed -n '/^Build-Depends:/,/^[A-Z]*[a-z-]*: /p' debian/control | sed -n 's/^ \(.*\),$/\1/p' |
    sed 's/^debhelper-compat .*/debhelper/' | sort)
listed=$(sed -n '/^deb_needs=(/,/)$/{s/deb_needs=//;p}' tools/install-deps.sh | grep -oE '[a-z0-9-]+' | grep -vx build-essential |
    sort)
is "tools/install-deps.sh installs what the packages are built with" "$listed" "$needs"

is "each test is run by autopkgtest" \
    "$(sed -n 's/^Tests: //p' debian/tests/control | sort)" \
    "$(find debian/tests -type f ! -name control -printf '%f\n' | sort)"

done_testing
