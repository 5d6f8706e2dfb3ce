#!/usr/bin/env bash
# The models of tests/model name the SQL files that they model. These files are there.
. "$(dirname "$0")/../lib/tap.sh"

for model in tests/model/*.pml; do
    is "each transition of $model has a comment above it" \
        "$(awk '/^    :: d_step/ && before !~ /\*\/$/ { print NR ": " $0 } { before = $0 }' "$model")" ""
    mapfile -t named < <(grep -oE '[a-z/]+/[a-z_]+\.(sql|c)\b' "$model" | sort -u)
    ok "$model names files of SQL" test "${#named[@]}" -gt 0
    for file in "${named[@]}"; do
        case $file in
            sql/* | src/* | tests/*) ok "$model: $file is there" test -f "$file" ;;
            *) ok "$model: sql/postgres/$file is there" test -f "sql/postgres/$file" ;;
        esac
    done
done

done_testing
