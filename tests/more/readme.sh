#!/bin/sh
# README.md as a newcomer follows it: its commands up to "Install", but for sudo, make check and make deb. Then its
# example in C, with what was installed. For a bare Debian, as root: autopkgtest.sh SUITE ROOT --run tests/more/readme.sh
set -eu
cd "$(dirname "$0")/../.."
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/assume-yes
begin=$(date +%s)

commands=$(awk '/^## What/ { exit } /^```/ { block = !block; next } block && /^(apt-get|make|tools)/' README.md |
    sed 's/ *#.*//; s/sudo //' | grep -v '^make check\|^make deb')
# If README changes, so does this number.
[ "$(echo "$commands" | wc -l)" = 4 ]
echo "$commands" | while read -r line; do
    echo "+ $line"
    sh -ec "$line" </dev/null
    echo "$(($(date +%s) - begin)) s"
done
AUTOPKGTEST_TMP=$(mktemp -d) debian/tests/readme-example
echo "$(($(date +%s) - begin)) s: the first lock of a program in C"
