#!/usr/bin/env bash
# Runs a command with one more private server, which ends with the command.
#
# usage: with-member.sh postgres|mysql COMMAND…     a server of this kind is there already
#   adds its URL to BENCH_MEMBERS, in which spaces stand between them
set -euo pipefail

kind=$1
shift
name=ROWLOCK_TEST_${kind^^}_URL dir=ROWLOCK_TEST_${kind^^}_DIR
exec env -u "$name" "$(dirname "$0")/../lib/with-$kind.sh" --durable bash -c '
    export BENCH_MEMBERS="${BENCH_MEMBERS:+$BENCH_MEMBERS }${!0}"
    exec env "$@"' "$name" "$name=${!name}" "$dir=${!dir}" "$@"
