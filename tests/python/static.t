#!/usr/bin/env bash
# The Python package without a database: its types, its list of declarations, its texts.
exec "$(dirname "$0")/run.sh" static
