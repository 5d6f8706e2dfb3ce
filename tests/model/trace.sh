#!/usr/bin/env bash
# Is what the simulation's quorum does a run of quorum.pml? It runs seeds of the simulation, and looks
# for each lock whether the model can take the same way.
#
# usage: tests/model/trace.sh PROGRAM [SEED] [SEEDS]     PROGRAM: the simulation
# Left out: what the model leaves out, and requests that arrive after their client has given up.
set -euo pipefail
program=$(realpath "$1") first=${2:-1} seeds=${3:-100} bad=0 runs=0 all=0
export CLIENTS=3 WITHOUT='late slow freeze full jump restore upgrade save operate'
tests/model/check.sh built trace quorum.pml CLIENTS=3 TOKENS=250 LOSSES=1 LATE=1 DEATHS=1 TOPS_UP=1 \
    RENEWS_FIRST=1 TRACE=1
chmod 711 build/model/trace
cd build/model/trace
export TMPDIR=$PWD
for ((seed = first; seed < first + seeds; seed++)); do
    TRACE=story "$program" quorum "$seed" 40 >sum 2>&1 || { cat sum && exit 1; }
    mapfile -t names < <(grep -oE 'granted job-[0-9]+' story | cut -d' ' -f2 | sort -u)
    for name in "${names[@]}"; do
        events=(awk -v name="$name" -v clients=3 -f "$OLDPWD/tests/model/trace.awk")
        "${events[@]}" story >events
        EVENTS=events ./pan -m1000000 -w18 >pan.log 2>&1 || true
        runs=$((runs + 1)) all=$((all + $(wc -l <events)))
        grep -q '^a run of the model' pan.log && continue
        bad=$((bad + 1)) at=$(sed -n 's/^stuck at event \([0-9]*\).*/\1/p' pan.log)
        "${events[@]}" -v words=1 story | sed -n "1,${at}p" | tail -n 12
        echo "seed $seed: after these of '$name' the model cannot take the last"
    done
done
echo "$runs runs with $all events, $bad of which the model cannot take"
[ "$bad" = 0 ]
