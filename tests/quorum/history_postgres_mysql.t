#!/usr/bin/env bash
# Clients of a quorum of PostgreSQL, MariaDB and SQLite, whose members die, freeze and are cut off
# from some of the clients, while clients die and stand still. ROWLOCK_TEST_GRANTS: how many grants
# at least (300).
set -u
# shellcheck source=tests/quorum/crew.sh
. "$(dirname "$0")/crew.sh"

make_member postgres
make_member mysql
make_member sqlite
CREW_VIEWS=${CREW_VIEWS:-200}
CREW_DEATHS=1
export CREW_VIEWS CREW_DEATHS
crew_begin mixed
crew_until "${ROWLOCK_TEST_GRANTS:-300}" "kill_one 0" "freeze_one 1" "stick_one 2" "lose_two 0 1" \
    "kill_one 1" "freeze_one 0"
crew_end "three databases"
done_testing
