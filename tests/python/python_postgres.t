#!/usr/bin/env bash
# The Python package on PostgreSQL.
exec "$(dirname "$0")/run.sh" postgres
