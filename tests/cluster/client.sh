#!/bin/sh
# A client of the load in Python. See client.py.
export PYTHONPATH="${ROWLOCK_TEST_BUILD:-build}/python/site" PYTHONDONTWRITEBYTECODE=1
exec "${PYTHON:-/usr/bin/python3}" tests/cluster/client.py "$@"
