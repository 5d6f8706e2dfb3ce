#!/usr/bin/env bash
# Checks one model with spin, in all its states.
#
# usage: tests/model/check.sh holds|fails|built NAME FILE [CONSTANT[=VALUE]...]
#   holds    fails if a property does not hold, and shows the way to it
#   built    only makes the program of spin
#   fails    is for a mutant: fails if all properties hold
# What spin has made stays in build/model/NAME.
set -euo pipefail

want=$1 name=$2 file=$3
shift 3
dir=build/model/$name
rm -rf "$dir"
mkdir -p "$dir"
cp "tests/model/$file" "$dir"
cd "$dir"

give_up() {
    echo "$name: $1: see $dir" >&2
    exit 1
}

# The file names its constants with their values.
declare -A value
while IFS='=' read -r constant first; do value[$constant]=$first; done < <(
    grep -oE '^ \*   [a-z ]+  .*' "$file" | grep -oE '[A-Z][A-Z0-9_]*=[^ :]+')
for constant in "$@"; do
    [ -n "${value[${constant%%=*}]-}" ] || give_up "$file has no constant ${constant%%=*}"
    value[${constant%%=*}]=1
    case $constant in *=*) value[${constant%%=*}]=${constant#*=} ;; esac
done
constants=()
for constant in "${!value[@]}"; do constants+=("-D$constant=${value[$constant]}"); done

spin "${constants[@]}" -a "$file" >spin.log 2>&1 || give_up "spin refuses the model"
# Breadth first finds the shortest way.
flags=(-DSAFETY -DNOREDUCE -DNOFAIR)
[ "$want" != built ] || flags+=(-DMEMLIM=500)
[ "$want" != fails ] || flags+=(-DBFS)
"${CC:-cc}" -O2 -w -I"$OLDPWD/tests/model" "${flags[@]}" -o pan pan.c >cc.log 2>&1 ||
    give_up "the program of spin does not compile"
[ "$want" != built ] || exit 0
./pan -m5000000 -w25 >pan.log 2>&1 || true
if grep -qE 'max search depth too small|out of memory|table is full' pan.log; then
    give_up "the search was cut short, which proves nothing"
fi

found=
case $(grep -o 'errors: [0-9]*' pan.log) in
    'errors: 0') said="holds in all $(awk '/states, stored/ { print $1 }' pan.log) states" ;;
    'errors: 1')
        # The line of the assert says which property it is.
        spin "${constants[@]}" -t -p "$file" >trail.log 2>&1 || true
        line=$(sed -n 's/^spin: .*:\([0-9]*\), Error: assertion .*/\1/p' trail.log | head -n 1)
        found=$(sed -n "${line:-1}p" "$file" | grep -o '[PQ][0-9] \*/' || echo "line $line")
        found=${found% \*/}
        said="$found fails"
        ;;
    *) give_up "the search did not end" ;;
esac
printf '  %-6s%-32s %s\n' MODEL "$name" "$said"
case $want in
    holds) [ -z "$found" ] || { cat trail.log >&2 && give_up "$found does not hold"; } ;;
    fails) [ -n "$found" ] || give_up "no property fails, so the model does not see this mistake" ;;
esac
