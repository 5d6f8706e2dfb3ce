#!/usr/bin/env bash
# Runs a command that speaks TLS with the private servers of with-*.sh, and accepts no certificate but theirs.
#
# usage: with-postgres.sh with-tls.sh COMMAND…      or with-mysql.sh
set -euo pipefail
. "$(dirname "$0")/../lib/server.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_DIR:-}${ROWLOCK_TEST_MYSQL_DIR:-}" ] || fail "no private server here"
[ $# -gt 0 ] || fail "which command?"
ctl=$(dirname "$0")/../lib/server-ctl.sh

# make_certificate DIR: DIR/tls.crt, which vouches for itself, and DIR/tls.key
make_certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$1/tls.key" -out "$1/tls.crt" 2>"$1/tls.log" || fail "openssl: $(tail -n 1 "$1/tls.log")"
    chmod 600 "$1/tls.key"
    own_by_server "$1/tls.key" "$1/tls.crt"
}

if [ -n "${ROWLOCK_TEST_POSTGRES_DIR:-}" ]; then
    dir=$ROWLOCK_TEST_POSTGRES_DIR
    make_certificate "$dir"
    printf '%s\n' -c ssl=on -c "ssl_cert_file=$dir/tls.crt" -c "ssl_key_file=$dir/tls.key" >>"$dir/argv"
    "$ctl" postgres restart
    export PGSSLMODE=verify-full PGSSLROOTCERT=$dir/tls.crt
fi
if [ -n "${ROWLOCK_TEST_MYSQL_DIR:-}" ]; then
    dir=$ROWLOCK_TEST_MYSQL_DIR
    make_certificate "$dir"
    printf '%s\n' "--ssl-cert=$dir/tls.crt" "--ssl-key=$dir/tls.key" --require-secure-transport=ON >>"$dir/argv"
    "$ctl" mysql restart
    ROWLOCK_TEST_MYSQL_URL+="?ssl_mode=verify&ssl_ca=$dir/tls.crt"
fi
"$@"
