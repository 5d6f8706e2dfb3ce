#!/usr/bin/env bash
# Object mappers and rowlock write one table on MariaDB or MySQL.
PROGRAM=tests/python/sharing.py exec "$(dirname "$0")/run.sh" mysql
