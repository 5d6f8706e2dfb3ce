#!/usr/bin/env bash
# The Python package on SQLite.
exec "$(dirname "$0")/run.sh" sqlite
