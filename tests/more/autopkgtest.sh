#!/usr/bin/env bash
# Runs debian/tests with the packages of make deb, or another command, in a new Debian of its own. It needs root.
#
# usage: tests/more/autopkgtest.sh SUITE ROOT [OPTION…]
#   ROOT is made by debootstrap if it is not there. Packages are installed into a copy of it.
#   OPTION   for autopkgtest, such as --test-name=rivals; or --run COMMAND…, in a copy of the source
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 2 ] || { echo "usage: $0 SUITE ROOT [OPTION…]" >&2; exit 64; }
suite=$1 root=$(readlink -m "$2")
shift 2

# Its mounts end with it.
if [ "${OWN_MOUNTS:-0}" != 1 ]; then
    OWN_MOUNTS=1 exec unshare --mount --pid --fork --kill-child "$0" "$suite" "$root" "$@"
fi
mount -t proc proc /proc

if [ ! -e "$root/etc/os-release" ]; then
    rm -rf "$root.new" "$root"
    debootstrap --variant=minbase "$suite" "$root.new"
    mv "$root.new" "$root"
fi
work=$(mktemp -d "$root.XXXXXX")
# A process of the command may still be there.
trap 'umount -R -l "$work" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
cp -a "$root/." "$work"
mount --bind "$work" "$work"
cp /etc/resolv.conf "$work/etc/"
cp /etc/apt/apt.conf.d/*proxy* "$work/etc/apt/apt.conf.d/" 2>/dev/null || true
mount -t proc proc "$work/proc"
mount -t tmpfs tmpfs "$work/dev"
for device in null zero full random urandom tty; do
    touch "$work/dev/$device" && mount --bind "/dev/$device" "$work/dev/$device"
done
mkdir "$work/dev/shm" "$work/dev/pts"
ln -s /proc/self/fd "$work/dev/fd"
mount -t tmpfs tmpfs "$work/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$work/dev/pts"
ln -s pts/ptmx "$work/dev/ptmx"

tools/copy-source.sh "$work/rowlock"
if [ "${1:-}" = --run ]; then
    chroot "$work" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive sh -c 'cd /rowlock && "$@"' "$@"
    exit
fi
# Its own limits of 100 s are short for a busy machine.
autopkgtest --timeout-factor=10 "$@" "$work/rowlock/" build/deb/*.deb -- chroot "$work"
