# shellcheck shell=bash
# Where tests and their servers keep what they write; sourced by the scripts beside it.

# scratch_base: prints the folder in which theirs are made, TMPDIR if that is set to something. Else it is one in
# memory if there is room: a disk that hangs for seconds makes deadlines pass and leases end that a test has given.
# The path is short, because a Unix socket's may have no more than 107 bytes.
scratch_base() {
    local base=${TMPDIR:-/tmp} memory=/dev/shm kilobytes
    [ ${#base} -le 60 ] || base=/tmp
    if [ "$base" = /tmp ] && [ -w $memory ]; then
        kilobytes=$(df -kP $memory | awk 'NR == 2 { print $4 }')
        [ "${kilobytes:-0}" -lt 2000000 ] || base=$memory
    fi
    echo "$base"
}

# scratch_on_disk: what is begun from here on keeps it on a disk, for who measures.
scratch_on_disk() {
    [ "${TMPDIR:-/tmp}" != /tmp ] || export TMPDIR=/var/tmp
}
