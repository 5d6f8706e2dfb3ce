#!/usr/bin/env bash
# The Python package on MariaDB or MySQL.
exec "$(dirname "$0")/run.sh" mysql
