#!/usr/bin/env bash
# Runs a command that runs tests, such as prove, and says last which checks have failed.
#
# usage: run-tests.sh COMMAND…
#   exports ROWLOCK_TEST_RUN, a folder of this run. run-test.sh writes the failed checks there, and
#   make_data of server.sh keeps the data of new servers.
set -u
. "$(dirname "$0")/scratch.sh"

ROWLOCK_TEST_RUN=$(mktemp -d "$(scratch_base)/rowlock-run.XXXXXX") || exit 1
export ROWLOCK_TEST_RUN
trap 'rm -rf "$ROWLOCK_TEST_RUN"' EXIT
# Servers run under another account, and copy from here.
chmod 711 "$ROWLOCK_TEST_RUN"

passing_signals "$@"
status=$?
if [ -s "$ROWLOCK_TEST_RUN/failed" ]; then
    printf '\nFailed:\n' >&2
    cat "$ROWLOCK_TEST_RUN/failed" >&2
fi
exit "$status"
