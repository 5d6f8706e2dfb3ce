# Completion of rowlock for fish.

@MADE@

# Prints the words up to the cursor: the command and what follows, without options and their arguments. The words
# of a job come last, and all of them.
function __rowlock_words
    set -l tokens (commandline -opc)
    set -l dashes (contains -i -- -- $tokens)
    set -l taken 0
    set -l words
    for i in (seq 2 (count $tokens))
        set -l token $tokens[$i]
        if test -n "$dashes"; and test $i -ge "$dashes"
            set -a words $token
        else if test -z "$dashes"; and test (count $words) -ge 2; and contains -- $words[1] $__rowlock_runs
            set -a words $token
        else if test $taken = 1
            set taken 0
        else if contains -- $token $__rowlock_with_argument
            set taken 1
        else if not string match -q -- '-*' $token
            set -a words $token
        end
    end
    test -z "$words"; or printf '%s\n' $words
end

function __rowlock_no_command
    test (count (__rowlock_words)) = 0
end

# __rowlock_at COMMAND [COUNT]: the cursor is in its arguments, after COUNT of them.
function __rowlock_at
    set -l words (__rowlock_words)
    test "$words[1]" = $argv[1]; or return 1
    test -z "$argv[2]"; or test (count $words) = (math $argv[2] + 1)
end

# The cursor is in the command line that COMMAND runs.
function __rowlock_in_job
    set -l words (__rowlock_words)
    test "$words[1]" = $argv[1]; and test (count $words) -ge 2
end

function __rowlock_takes_options
    set -l words (__rowlock_words)
    test "$words[1]" = $argv[1]; or return 1
    contains -- $argv[1] $__rowlock_runs; or return 0
    test (count $words) -le 2; and not contains -- -- $words
end

function __rowlock_job
    set -l words (__rowlock_words)
    set -l from (math (contains -i -- -- $words; or echo 2) + 1)
    set -l line (string escape -- $words[$from..-1]) (commandline -ct)
    string match -q -- '-*' "$line"; or complete -C "$line"
end

# Names of locks, if there is a database that answers within a second. A name that begins with a dash would be an
# option. \xNN stands for a control character, which would have to be typed.
function __rowlock_names
    set -q ROWLOCK_URL; or return
    contains -- --url (commandline -opc); and return
    timeout 1 rowlock list --names 2>/dev/null </dev/null | string match -rv '^-|\\\\x[0-9a-f]{2}'
end
