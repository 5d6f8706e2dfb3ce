#!/usr/bin/env bash
# Servers that speak a protocol and are another engine: each is refused by its name. A program of a few
# lines says what they say at login; the engines themselves are not run.
. "$(dirname "$0")/cli.sh"

# A server that sends the first text to each client, and the second after the
# client's first message. It prints its port.
server='
import socket, sys
first, second = (bytes.fromhex(text) for text in sys.argv[1:])
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(first)
    asked = client.recv(4096)
    if asked[4:8] == b"\x04\xd2\x16\x2f":  # TLS? No.
        client.sendall(b"N")
        client.recv(4096)
    client.sendall(second)
    client.recv(4096)
    client.close()
'
hex() { od -An -v -tx1 | tr -d ' \n'; }
# pg_says NAME VALUE ...: a login of PostgreSQL that reports these parameters
pg_says() {
    printf 'R\0\0\0\10\0\0\0\0' | hex
    while [ $# -gt 0 ]; do
        printf 'S%08x' $((6 + ${#1} + ${#2})) | sed 's/^S/53/'
        printf '%s\0%s\0' "$1" "$2" | hex
        shift 2
    done
    printf 'Z\0\0\0\5I' | hex
}
# my_says VERSION: the handshake of MySQL, then OK
my_greets() {
    printf '\12%s\0\1\0\0\0abcdefgh\0\377\367\10\2\0\17\200\25\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0' "$1" >"$work/greeting"
    printf '%02x000000' "$(wc -c <"$work/greeting")" && hex <"$work/greeting"
}

refused() {
    python3 -c "$server" "$3" "$4" >"$work/port" &
    until_true test -s "$work/port"
    errs "$1 is refused" "${6:-78}" "${5:-this is $1, not}" check --url "$2//u@127.0.0.1:$(cat "$work/port")/x"
    kill $! && wait $! 2>/dev/null
    rm -f "$work/port"
}

rl --version
drivers=$out
if [[ $drivers = *postgres* ]]; then
    refused CockroachDB postgresql: "" "$(pg_says server_version 13.0.0 crdb_version 'CockroachDB CCL v23.2.1')"
    # What pgpool-II says while it has not noticed that its server is gone.
    refused "a login that fails in a proxy" postgresql: "" \
        "$(printf 'E\0\0\0\72SFATAL\0CXX000\0Mfailed to create a backend connection\0\0' | hex)" "a backend connection" 69
    refused "a wrong password in a proxy" postgresql: "" \
        "$(printf 'E\0\0\0\63SFATAL\0CXX000\0Mpassword authentication failed\0\0' | hex)" "authentication failed" 77
    refused YugabyteDB postgresql: "" "$(pg_says server_version 15.2-YB-2.25.0.0-b0)"
fi
if [[ $drivers = *mysql* ]]; then
    refused TiDB mysql: "$(my_greets 8.0.36-TiDB-v7.5.0)" 0700000200000002000000 "itself is needed"
    refused "a server that cannot read from us" mysql: "$(my_greets 8.0.36)" \
        "15000002ff8604$(printf '#08S01Got an error' | hex)" "Got an error" 69
    refused "an old version that a proxy reports" mysql: "$(my_greets 5.5.30)" 0700000200000002000000 "ProxySQL: mysql-server"
fi
done_testing
