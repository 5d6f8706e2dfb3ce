#!/usr/bin/env bash
# Runs what must pass before a release (docs/RELEASING.md), one item after the other, and prints a table.
#
# usage: tools/release-check.sh [ITEM]...     only these; without: all
#   MINUTES=60   how long the simulation runs, and then the soak
# The status is 1 if an item failed. The output of each is in build/release/ITEM.log.
set -u
cd "$(dirname "$0")/.." || exit 1
minutes=${MINUTES:-60} failed=0 table=()
all=(fresh bare lint clang check-asan check-tsan check-valgrind fuzz model
    simulate-mutants simulate soak check-more check-reproducible check-deb check-abidiff bench)
for item in "$@"; do
    [[ " ${all[*]} " == *" $item "* ]] || { echo "no item $item; there are: ${all[*]}" >&2; exit 64; }
done
items=("$@")
[ $# -gt 0 ] || items=("${all[@]}")
mkdir -p build/release

run() {
    local end=$((SECONDS + minutes * 60)) seed clone tarball suite
    case $1 in
        # As somebody who has only this commit.
        fresh)
            clone=$(mktemp -d) && git clone -q . "$clone/rowlock" && make -C "$clone/rowlock" demo check ||
                return 1
            rm -rf "$clone"
            ;;
        # As somebody who has nothing but Debian.
        bare)
            for suite in bookworm trixie; do
                tests/more/autopkgtest.sh "$suite" "${XDG_CACHE_HOME:-/var/cache}/rowlock-test/chroot-$suite" \
                    --run sh -c 'apt-get update && apt-get install -y make && make check' || return 1
            done
            ;;
        # As a packager, who has only the tarball.
        check-deb)
            tarball=$(mktemp -d) && make -s dist && tar -xzf build/rowlock-*.tar.gz -C "$tarball" &&
                make -C "$tarball"/rowlock-* check-deb || return 1
            rm -rf "$tarball"
            ;;
        clang) make -k CC=clang all test-programs ;;
        # A seed after the other, until the time is over. A failure names its seed.
        simulate)
            for ((seed = $(date +%s); SECONDS < end; seed++)); do
                make -s simulate SEED="$seed" GRANTS=20000 || return 1
            done
            ;;
        soak) make soak MINUTES="$minutes" ;;
        *) make "$1" ;;
    esac
}

for item in "${items[@]}"; do
    begin=$SECONDS result=passed
    echo "$item: build/release/$item.log"
    run "$item" >"build/release/$item.log" 2>&1 </dev/null || result=FAILED failed=1
    table+=("$(printf '%-20s %-8s %6d s' "$item" "$result" $((SECONDS - begin)))")
done
printf '\n%s, %s\n' "$(git describe --always --dirty)" "$(date -u +%F)"
printf '%s\n' "${table[@]}"
exit $failed
