#!/usr/bin/env bash
# A wait for a time stands in a loop that waits for an event, or a comment above it says what needs the
# real clock (CONTRIBUTING.md, "Time in tests").
. "$(dirname "$0")/../lib/tap.sh"

# fixed_waits FILE…: FILE:LINE of each wait for a time that is in no loop and has no reason. A loop may
# begin up to six lines before. A reason is a comment that begins with "Time:", with at most three
# lines between. A sleep of 100 s and more is a job that its test ends.
fixed_waits() {
    awk '
        FNR == 1 { loop = reason = -9 }
        /(^|[^a-z_])(while|for|until|do)([^a-z_]|$)/ { loop = FNR }
        /^[ \t]*(\/\*|#)[ \t]+Time:/ { reason = FNR }
        /^[ \t]*(#|\*|\/\*)/ { next }
        /(^|[^a-z_])(sleep_ms|usleep|nanosleep|poll_ms) ?\(/ || (FILENAME !~ /\.[ch]$/ && /^[ \t]*([^ \t].*([;&|({]|then|else)[ \t]+)?sleep ([0-9]?[0-9]([^0-9]|$)|[."$])/) {
            if (FNR - loop > 6 && FNR - reason > 4) print FILENAME ":" FNR
        }' "$@"
}

# The loads of check-more and the benchmarks let time go by on purpose.
mapfile -t files < <(find tests -name '*.[cht]' -o -name '*.sh' |
    grep -vE '^tests/(bench|soak|peers|lib|cluster|more)/' | sort)
is "a wait for a time says why" "$(fixed_waits "${files[@]}")" ""

plant() {
    printf '%s\n' "$2" >"$TMPDIR/$1"
    fixed_waits "$TMPDIR/$1" | sed 's/.*://'
}
is "a wait without a reason is found" "$(plant a.c $'{\n    sleep_''ms(500);')" 2
is "and one of a script" "$(plant a.t $'run &\nsl''eep 0.5')" 2
is "a wait in a loop is none" "$(plant a.c $'while (!done)\n    sleep_ms(1);')" ""
is "and none with its reason above" "$(plant a.c $'/* Time: the lease ends. */\nsleep_ms(1);')" ""
is "nor is a job that its test ends" "$(plant a.t "begun x sh -c 'echo; sl"$'eep 300\'')" ""
is "nor a program named so in a text" "$(plant a.t 'start run x -- sleep 30')" ""

done_testing
