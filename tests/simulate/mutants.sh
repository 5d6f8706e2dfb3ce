#!/usr/bin/env bash
# Plants each fault of tests/simulate/mutants in a copy of the source, and runs the simulation until
# it finds the fault. `make simulate-mutants` calls it.
#
# usage: tests/simulate/mutants.sh PROGRAM [WORD]   only the faults with WORD in their names
#   MUTANT_SEEDS   how many runs look for each (400), on all processors
# Prints each fault with its world, the seed and the seconds of the first failure. The status is 1
# if one was not found.
set -u
cd "$(dirname "$0")/../.." || exit 1
program=$1 limit=${MUTANT_SEEDS:-400} processors=$(getconf _NPROCESSORS_ONLN)
here=$PWD bad=0 tried=
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
chmod 711 "$copy"
# The objects come along, so that only what changes is built.
cp -a Makefile include src sql tools tests docs examples bindings packaging debian CHANGELOG.md "$copy" 2>/dev/null
mkdir -p "$copy/build" "$copy/files"
cp -a "${program%/tests/*}" "$copy/build/"
cd "$copy" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

# run WORLD SEED GRANTS: the message of a failure. A run that does not end has failed, too.
run() {
    local out
    out=$(TMPDIR=$copy/files timeout 900 "$program" "$1" "$2" "$3" 2>&1)
    case $? in
        0) return 0 ;;
        124) echo "does not end" ;;
        *) grep -o 'VIOLATION: .*' <<<"$out" || echo "crashes" ;;
    esac
}

build() { make -s simulate-program >build.log 2>&1; }

build || { cat build.log; exit 1; }

while IFS='|' read -r name world file command; do
    name=$(xargs <<<"$name") world=$(xargs <<<"$world") file=$(xargs <<<"$file") command=${command# }
    case $name in '#'* | '') continue ;; *"${2:-}"*) ;; *) continue ;; esac
    sed -i "$command" "$file"
    tried=1 message=
    ! cmp -s "$file" "$here/$file" || message="IS NOT PLANTED: the line is not there any more"
    [ -n "$message" ] || build || message="IS NOT PLANTED: $(grep -m 1 error build.log)"
    begin=$SECONDS
    for ((seed = 0; seed < limit && ${#message} == 0; )); do
        for ((i = 1; i <= processors; i++)); do run "$world" $((seed + i)) 5000 >"found.$i" & done
        wait
        for ((i = 1; i <= processors && ${#message} == 0; i++, seed++)); do message=$(<"found.$i"); done
    done
    case ${message:=NOT FOUND} in 'NOT FOUND' | 'IS NOT PLANTED'*) bad=1 ;; esac
    printf '%-30s %-8s %4s s, seed %-3s %.90s\n' "$name" "$world" $((SECONDS - begin)) "$seed" "${message#VIOLATION: }"
    cp "$here/$file" "$file"
done < <(sed 's/ *| */|/; s/ *| */|/2; s/ *| */|/3' "$here/tests/simulate/mutants")
[ -n "$tried" ] || echo "no fault has '$2' in its name" >&2
[ -n "$tried" ] && exit $bad
