#!/usr/bin/env bash
# The wheel works where the library is not installed: in a new environment of Python, without an index.
. "$(dirname "$0")/../lib/tap.sh"

python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import setuptools, cffi, pip, wheel, venv' 2>/dev/null || skip_all "a package of Python is missing"

# Not in TMPDIR, from which nothing may be run on some machines.
work=$(mktemp -d "${ROWLOCK_TEST_BUILD:-$TMPDIR}/wheel.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
in_venv() { env -u PYTHONPATH -u LD_LIBRARY_PATH -C "$work" "$work/venv/bin/python" "$@"; }
ok "make run-wheel makes it" "${MAKE:-make}" --no-print-directory run-wheel
# cffi is the system's.
ok "an environment is made" "$python" -m venv --system-site-packages "$work/venv"
ok "pip installs the wheel there" in_venv -m pip --disable-pip-version-check -q install --no-index "$PWD"/build/wheel/rowlock-*.whl

lock='
import rowlock
db = rowlock.connect("sqlite:wheel.db")
db.install()
with db.lock("nightly"):
    used = {line.split()[-1] for line in open("/proc/self/maps") if "librowlock" in line}
    print(db.lock("nightly").locked(), *used)'
is "it takes a lock with the library inside" "$(in_venv -c "$lock" 2>&1)" \
    "True $(realpath "$work"/venv/lib/python3*/site-packages/rowlock)/librowlock.so.0"

done_testing
