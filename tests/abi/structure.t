#!/usr/bin/env bash
# How the source is built: includes and calls go downward from room to room, no files are in a circle, and
# nothing is too long. A room is a folder of src/. tools/structure measures; `make structure` prints it all.
. "$(dirname "$0")/../lib/tap.sh"

# A figure that is not yet as wanted may be as bad as its limit and no worse. A limit is only lowered.
# Lines of folders are rounded up to hundreds.
#   figure         wanted  limit
limits='
    circle              0      0
    hops                1      1
    hops_pool           2      2
    hops_batch          2      3
    trampolines        10     10
    ucontext            0      0
    one_caller         45     54
    operations         11     11
    source_file       600    600
    driver_file       400    400
    routine            60     60
    wide                0      0
    public_functions   75     86
    source          28000  33300
    cli              6500   7105
    tests           50000  65774
    architecture      450    450
    changelog          60     60
    makefile          500    500
'

build=${ROWLOCK_TEST_BUILD:-build}
[ -d "$build/src" ] || skip_all "no objects in $build/src"
uses=$TMPDIR/uses figures=$TMPDIR/figures
tools/structure --build "$build" --uses >"$uses"
tools/structure --build "$build" --json >"$figures"
ok "the tree can be measured" grep -q ^call "$uses"

# The order of rooms stands in docs/ARCHITECTURE.md alone, lowest first.
rooms=$(grep -oE '`base core [a-z ]+`' docs/ARCHITECTURE.md | head -n 1 | tr -d '\`')
unplaced=
for folder in src/*/; do
    case " $rooms drivers " in *" $(basename "$folder") "*) ;; *) unplaced+=" $folder" ;; esac
done
is "docs/ARCHITECTURE.md says where each folder of src/ is in the order" "$unplaced" ""

is "each file of C is in a room" "$(find src -maxdepth 1 -name '*.[ch]')" ""

# A header may have the name of the file beside it.
is "no two files of src/ have the same name, except in drivers/" \
    "$(find src -name '*.[ch]' ! -path 'src/drivers/*' | sed 's/\.[ch]$//' | sort -u | sed 's:.*/::' | sort | uniq -d)" ""

# uses_that CONDITION: the lines of $uses for which it holds. from and to are the rooms; rank is their place in the
# order, or 0 for a driver's.
uses_that() {
    awk -v rooms="$rooms" '
        function room(file, part) { return split(file, part, "/") > 2 ? part[2] : "" }
        function driver(file, part) { split(file, part, "/"); sub(/\..*/, "", part[3]); return part[3] }
        BEGIN { for (n = split(rooms, order, " "); n > 0; n--) rank[order[n]] = n }
        { from = room($2); to = room($3) }
        '"$1" "$uses"
}
is "nothing includes or calls upward" "$(uses_that 'rank[from] && rank[to] && rank[from] < rank[to]')" ""
is "a driver uses base and core alone" "$(uses_that 'from == "drivers" && rank[to] > rank["core"]')" ""
is "no driver uses another" "$(uses_that 'from == "drivers" && to == "drivers" && driver($2) != driver($3)')" ""
is "only the list of drivers uses a driver" \
    "$(uses_that 'to == "drivers" && from != "drivers" && $2 !~ /\/api\/drivers\.c$/')" ""
is "the command uses the public functions alone" "$(uses_that 'from == "cli" && to != "cli" && $4 !~ /^rowlock_/')" ""
is "no header includes itself through others" \
    "$(uses_that '$1 == "include" && $2 ~ /\.h$/ { print $2, $3 } 0' | tsort 2>&1 >/dev/null)" ""
is "a machine calls nothing that waits, reads a clock, draws or sends" "$(grep ^acts "$uses")" ""

while read -r figure wanted limit; do
    [ -n "$figure" ] || continue
    value=$(sed -n "s/^ *\"$figure\": \([0-9]*\),*$/\1/p" "$figures")
    ok "$figure is at most $limit (wanted: $wanted)" test "$value" -le "$limit"
    if [ "$value" -gt "$limit" ]; then
        tap_note "$(tools/structure --build "$build")"
    elif [ "$limit" -gt "$wanted" ] && [ "$value" -le $((limit - (limit < 1000 ? 1 : 100))) ]; then
        tap_note "$figure is $value: lower its limit in tests/abi/structure.t"
    fi
done <<<"$limits"

done_testing
