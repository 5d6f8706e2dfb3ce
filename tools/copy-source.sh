#!/usr/bin/env bash
# Copies the source into a new folder, without what a build made.
#
# usage: tools/copy-source.sh FOLDER [REF]
#   With REF it is the source of that commit. tools/source-date is then the time of the commit.
#   Without REF it is the source as it is now, with files that git does not know yet.
#   An unpacked tarball is copied whole, except build/. REF then counts for nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { echo "usage: $0 FOLDER [REF]" >&2; exit 64; }
folder=$1
ref=${2:-}
rm -rf "$folder"
mkdir -p "$folder"

# known_to_git: the files that are there, each with a NUL behind it.
known_to_git() {
    git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' file; do
        if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
    done
}

if [ -n "$ref" ] && [ -e .git ]; then
    git archive --format=tar "$ref" | tar -xf - -C "$folder"
elif [ -e .git ] && git ls-files README.md >/dev/null 2>&1; then
    known_to_git | tar -cf - --null -T - | tar -xf - -C "$folder"
else
    tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$folder"
fi
