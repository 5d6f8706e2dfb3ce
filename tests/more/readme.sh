#!/bin/sh
# README.md as a newcomer follows it, and the time of the first lock. For a bare Debian, as root:
# usage: tests/more/autopkgtest.sh SUITE ROOT --run tests/more/readme.sh PART
#   source     its commands up to "Install", but for sudo, make check and make deb; then its example in C
#   packages   make deb, and what it installs with apt; then tests of debian/tests for C, the command and Python
set -eu
cd "$(dirname "$0")/../.."
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/assume-yes
begin=$(date +%s)

commands=$(awk '/^## What/ { exit } /^```/ { block = !block; next } block && /^(apt-get|make|tools|sudo)/' README.md |
    sed 's/ *#.*//; s/sudo //' | grep -v '^make check')
case $1 in
    source) commands=$(echo "$commands" | grep -v 'deb\|^apt install') count=4 tests=readme-example ;;
    packages) commands=$(echo "$commands" | grep 'deb\|^apt') count=5 tests='readme-example rivals python' ;;
esac
# If README changes, so does this number.
[ "$(echo "$commands" | wc -l)" = "$count" ]
echo "$commands" | while read -r line; do
    echo "+ $line"
    sh -ec "$line" </dev/null
    echo "$(($(date +%s) - begin)) s"
done
for test in $tests; do
    AUTOPKGTEST_TMP=$(mktemp -d) "debian/tests/$test"
    echo "$(($(date +%s) - begin)) s: $test"
done
