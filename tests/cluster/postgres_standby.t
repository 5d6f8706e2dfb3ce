#!/usr/bin/env bash
# The synchronous standby of PostgreSQL is frozen or killed: commits wait. No lock is granted or renewed
# then, and holders are told before their leases end.
. "$(dirname "$0")/postgres.sh"

# Longer than a lease.
OUTAGE_S=7

make_pair sync

load_begin standby_frozen
load_goes_on "locks are granted"
server_freeze "$standby"
load_mark cut
sleep $OUTAGE_S
load_mark back
server_thaw "$standby"
load_goes_on "when the standby wakes up, locks are granted again"
load_end "the standby is frozen"

load_begin standby_killed
load_goes_on "locks are granted"
server_crash "$standby"
load_mark cut
sleep $OUTAGE_S
load_mark back
start_standby
load_mark standby_back
load_goes_on "when the standby is back, locks are granted again"
load_end "the standby is killed"
done_testing
