#!/usr/bin/env bash
# Unpacks packages of another Debian suite, with everything they depend on, into a folder of their own.
#
# usage: debian-root.sh [--only] [--arch ARCH] SUITE ROOT PACKAGE…
#   --only: these packages alone, for programs that the system's interpreter runs
#   --arch: of another architecture. Programs stay as they are.
# Nothing is installed and the machine's own package state stays as it is: apt works on lists inside ROOT.
# The suite's C library comes along, and the programs are patched to use it. ROOT cannot be moved later,
# since its path is in them. ROOT/VERSIONS names what was unpacked.
set -euo pipefail

only=
arch=$(dpkg --print-architecture)
keep=
[ "${1:-}" != --only ] || { only=1 keep=1 && shift; }
[ "${1:-}" != --arch ] || { arch=$2 keep=1 && shift 2; }
[ $# -ge 3 ] || { echo "usage: $0 [--only] [--arch ARCH] SUITE ROOT PACKAGE…" >&2; exit 64; }
suite=$1
root=$(readlink -m "$2")
shift 2

apt_dir=$root/.apt
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror is the one that this system is set up to use.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
if [ -z "$mirror" ]; then
    mirror=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
        awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /:\//) { print $i; exit } }')
fi
[ -n "$mirror" ] || { echo "this system's apt names no Debian mirror" >&2; exit 1; }

rm -rf "$root"
mkdir -p "$apt_dir"/{state/lists/partial,cache/archives/partial,etc/{apt.conf.d,preferences.d,sources.list.d}}
: >"$apt_dir/status"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt_dir/etc/sources.list"
cat >"$apt_dir/apt.conf" <<CONF
Dir::State "$apt_dir/state";
Dir::State::status "$apt_dir/status";
Dir::Cache "$apt_dir/cache";
Dir::Etc "$apt_dir/etc";
Dir::Etc::trustedparts "/etc/apt/trusted.gpg.d";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
CONF
# What the system's apt is told about proxies holds here too.
cp /etc/apt/apt.conf.d/* "$apt_dir/etc/apt.conf.d/" 2>/dev/null || true

apt() { apt-get -c "$apt_dir/apt.conf" -qq "$@"; }

apt update
# No maintainer script ever runs here, so what only they need stays out, and so does what a server never
# loads.
unneeded='^(perl|perl-.*|libperl.*|lib.*-perl|libgdbm.*|libdb5.*|linux-libc-dev|libc-dev-bin|libc6-dev'
unneeded+='|libc-gconv-modules-extra|debconf|cdebconf.*|dpkg|tar|init-system-helpers|adduser|passwd'
unneeded+='|sysvinit-utils|ucf|sensible-utils|ssl-cert|openssl|openssl-provider-legacy|coreutils|gawk'
unneeded+='|mawk|bash|dash|sed|grep|diffutils|findutils|psmisc|procps|rsync|lsof|iproute2|login.*'
unneeded+='|libpam.*|libsemanage.*|systemd.*|udev|tzdata|locales.*|netbase|logrotate|cron.*|lsb-base'
unneeded+='|postgresql-common.*|postgresql-client-common|gcc-[0-9]*-base)$'
packages=("$@")
[ -n "$only" ] ||
    mapfile -t packages < <(apt install --simulate "$@" | awk '/^Inst / { print $2 }' | grep -vE "$unneeded")
[ ${#packages[@]} -gt 0 ] || { echo "$suite has no $*" >&2; exit 1; }

mkdir "$apt_dir/debs"
(cd "$apt_dir/debs" && apt download "${packages[@]}")
for deb in "$apt_dir"/debs/*.deb; do
    dpkg-deb -x "$deb" "$root"
    basename "$deb" .deb
done >"$root/.versions"
rm -rf "$apt_dir"

# Debian's /bin, /sbin and /lib are links into /usr. Packages from before that may hold real folders.
for name in lib lib64 bin sbin; do
    mkdir -p "$root/usr/$name"
    if [ -d "$root/$name" ] && [ ! -L "$root/$name" ]; then
        cp -a "$root/$name/." "$root/usr/$name/"
        rm -rf "${root:?}/$name"
    fi
    ln -sfn "usr/$name" "$root/$name"
done

[ -z "$keep" ] || { chmod -R a+rX "$root" && mv "$root/.versions" "$root/VERSIONS" && exit; }
libs=$root/usr/lib/$(gcc -print-multiarch)
loader=$(find "$libs" -maxdepth 1 -name 'ld-linux*.so.*' | head -n 1)
[ -x "$loader" ] || { echo "no loader in $libs" >&2; exit 1; }
private=$(find "$root/usr/lib" -type d -path '*/mysql/private' | paste -sd :)
find "$root/usr/bin" "$root/usr/sbin" -type f -perm -u+x |
    while IFS= read -r file; do
        if readelf -lW "$file" 2>/dev/null | grep -q INTERP; then
            patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libs${private:+:$private}" "$file"
        fi
    done
chmod -R a+rX "$root"
mv "$root/.versions" "$root/VERSIONS"
