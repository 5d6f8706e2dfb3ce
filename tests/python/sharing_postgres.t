#!/usr/bin/env bash
# Object mappers and rowlock write one table on PostgreSQL.
PROGRAM=tests/python/sharing.py exec "$(dirname "$0")/run.sh" postgres
