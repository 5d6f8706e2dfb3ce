#!/usr/bin/env bash
# The synchronous standby of PostgreSQL is frozen or killed: commits wait. No lock is granted or renewed
# then, and holders are told before their leases end.
. "$(dirname "$0")/postgres.sh"

make_pair sync

outage() { # outage NAME FAULT REPAIR WHAT
    load_begin "standby_$1"
    load_goes_on "locks are granted"
    "$2" "$standby"
    load_outage
    "$3" "$standby"
    load_survives "when the standby $4, locks are granted again" standby_back
    load_end "the standby is $1"
}

outage frozen server_freeze server_thaw "wakes up"
outage killed server_crash start_standby "is back"
done_testing
