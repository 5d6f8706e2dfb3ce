#!/usr/bin/env bash
# Runs the tests of bindings/python. They need the package in build/python/site (make python).
#
# usage: run.sh sqlite|postgres|mysql|static [WORD]…     only tests with a WORD in their names
#   PROGRAM   runs this one in their place
. "$(dirname "$0")/../lib/tap.sh"

site=${ROWLOCK_TEST_BUILD:-$PWD/build}/python/site
python=${PYTHON:-/usr/bin/python3}
[ -e "$site/rowlock/__init__.py" ] ||
    skip_all "the package was not built: tools/install-deps.sh all installs what \`make python\` needs"
export PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1
exec "$python" -X dev "${PROGRAM:-bindings/python/tests/run.py}" "$@"
