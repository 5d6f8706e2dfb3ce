#!/usr/bin/env bash
# What the Python package knows of the headers is what they say.
. "$(dirname "$0")/../lib/tap.sh"

python=$(command -v "${PYTHON:-/usr/bin/python3}" || command -v python3) || skip_all "there is no Python"

# A test that fails here says what to do.
up_to_date() {
    "$python" bindings/python/tools/make-cdef >"$TMPDIR/cdef.h" &&
        diff -u bindings/python/cdef.h "$TMPDIR/cdef.h"
}
ok "bindings/python/cdef.h is of these headers (else: make python-cdef, and commit it)" up_to_date

done_testing
