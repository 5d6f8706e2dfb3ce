# shellcheck shell=bash
# Folders for what tests and their servers write, and how tests are run. Sourced by the scripts
# beside it.

# scratch_base: prints the folder for temporary folders. It is TMPDIR if that is set. Otherwise it
# is a folder in memory, if there is room: if a disk hangs for seconds, leases and deadlines of
# tests end. The path is short, because the path of a Unix socket has at most 107 bytes.
scratch_base() {
    local base=${TMPDIR:-/tmp} memory=/dev/shm kilobytes
    [ ${#base} -le 60 ] || base=/tmp
    if [ "$base" = /tmp ] && [ -w $memory ]; then
        kilobytes=$(df -kP $memory | awk 'NR == 2 { print $4 }')
        [ "${kilobytes:-0}" -lt 2000000 ] || base=$memory
    fi
    echo "$base"
}

# scratch_on_disk: from here on the folders are on a disk, for benchmarks.
scratch_on_disk() {
    [ "${TMPDIR:-/tmp}" != /tmp ] || export TMPDIR=/var/tmp
}

# passing_signals COMMAND…: runs it and gives its status. The shell would wait for the command before
# it heeds a signal, so the command runs in the background and gets the signal at once.
passing_signals() {
    local child status
    "$@" &
    child=$!
    # shellcheck disable=SC2064 # this child
    trap "kill -TERM $child 2>/dev/null" INT TERM HUP
    wait "$child"
    status=$?
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        status=$?
    done
    return "$status"
}
