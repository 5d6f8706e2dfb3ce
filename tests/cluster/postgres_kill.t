#!/usr/bin/env bash
# The primary of PostgreSQL is killed, its synchronous standby is promoted, and the old primary comes back
# as it was. It is the first in the list of hosts.
. "$(dirname "$0")/postgres.sh"

make_pair sync

load_begin killed
load_goes_on "locks are granted"
server_crash "$primary"
load_mark cut
sleep 1
promote
load_goes_on "after the promotion locks are granted again"
load_end "the primary is killed"

load_begin back
load_goes_on "locks are granted by the new primary"
SERVER_DEATH_SIGNAL=QUIT server_start postgres "$primary" || fail "the old primary does not start"
load_mark old_primary_back
exits "the old primary grants nothing: it waits for its standby" 69 acquire -n --owner me --url \
    "postgresql://postgres@$(address "$primary")/postgres" other
load_goes_on "clients of the new primary go on" 50
server_crash "$primary"
load_survives "with the old primary stopped, all go on" old_primary_gone
load_end "the old primary comes back, first in the list"
done_testing
