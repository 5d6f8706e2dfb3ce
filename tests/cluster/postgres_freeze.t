#!/usr/bin/env bash
# The primary of PostgreSQL is frozen, its synchronous standby is promoted, and the old primary wakes up
# with all its connections. It is the first in the list of hosts.
. "$(dirname "$0")/postgres.sh"

make_pair sync

load_begin frozen
load_goes_on "locks are granted"
server_freeze "$primary"
load_mark cut
sleep 1
promote
load_goes_on "after the promotion locks are granted again"
server_thaw "$primary"
load_survives "clients of the new primary go on when the old one wakes up" thawed
sleep 6
server_crash "$primary"
load_survives "with the old primary stopped, all go on" old_primary_gone
load_end "the primary is frozen"
done_testing
