# Turns what the simulation tells (its TRACE) into events for trace.h: what, client, member, token.
# -v name=LOCK -v clients=N -v words=1: the lines themselves. A client that is started in place of a
# killed one has its number. It ends before tokens are too high for the model.

function event(what, client, member, token) {
    print words ? $0 : what " " place[client] " " member " " token
}

BEGIN {
    what["claims"] = 1; what["tops-up"] = 2; what["lifts"] = 3; what["renews"] = 4; what["removes"] = 5
    for (born = 0; born++ < clients;)
        place[born] = born
    born = clients
}

$7 > 249 && ($2 == "server" || $5 == "granted") { exit }
$2 == "server" && $5 == name && $4 in what { event(what[$4], $6, $3 + 1, $7) }
$2 == "client" && $5 == "granted" && $6 == name { event(6, $3, 0, $7) }
$2 == "client" && $5 == "killed" { event(7, $3, 0, 0); place[++born] = place[$3] }
