# shellcheck shell=bash
# Completion of rowlock for bash 4.1 and later. It needs neither the package bash-completion nor any other file.

# Sets options and arguments: what the command $1 takes. The argument of an option stands after "=". literals:
# the words among the arguments that stand for themselves.
_rowlock_command() {
    # shellcheck disable=SC2034 # variables of the caller
    case $1 in
@MADE@

# Sets words: bash has cut them at colons and the like. The last one ends at the cursor.
_rowlock_join() {
    local line=${COMP_LINE:0:COMP_POINT} part i
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]}
        if [[ $i == 0 || $line == [[:blank:]]* ]]; then
            line=${line#"${line%%[![:blank:]]*}"}
            words+=("${line:0:${#part}}")
        else
            words[${#words[@]} - 1]+=${line:0:${#part}}
        fi
        line=${line:${#part}}
    done
}

# _rowlock_quote QUOTE: makes candidate a word that the shell takes as it is, behind QUOTE if that is not empty. Fails
# if there is none: nothing makes an exclamation mark literal in double quotes.
_rowlock_quote() {
    local i char quoted=
    case $1 in
        '') printf -v candidate %q "$candidate" ;;
        \') candidate=${candidate//\'/"'\\''"} ;;
        *)
            [[ $candidate != *!* ]] || return 1
            for ((i = 0; i < ${#candidate}; i++)); do
                char=${candidate:i:1}
                [[ $char != [\$\`\"\\] ]] || quoted+=\\
                quoted+=$char
            done
            candidate=$quoted
            ;;
    esac
}

# _rowlock_offer CURRENT CANDIDATE...: offers those that begin so.
_rowlock_offer() {
    local current=$1 candidate quote=
    [[ $current != [\'\"]* ]] || quote=${current:0:1}
    shift
    for candidate; do
        _rowlock_quote "$quote" || continue
        [[ $quote$candidate != "$current"* ]] || COMPREPLY+=("$quote$candidate")
    done
}

# Offers the names of locks, if there is a database that answers within a second. A name that begins with a dash
# would be an option. \xNN stands for a control character, which would have to be typed.
_rowlock_names() {
    local names name safe=()
    [[ -n ${ROWLOCK_URL:-} && " ${words[*]}" != *' --url'* ]] || return 0
    mapfile -t names < <(timeout 1 rowlock list --names 2>/dev/null </dev/null)
    for name in "${names[@]}"; do
        [[ $name == -* || $name == *\\x[0-9a-f][0-9a-f]* ]] || safe+=("$name")
    done
    _rowlock_offer "$1" ${safe[@]+"${safe[@]}"}
}

# _rowlock_value ARGUMENT CURRENT: what an option's argument can be, as --help shows it.
_rowlock_value() {
    case $1 in
        NAME | GLOB) _rowlock_names "$2" ;;
        DIR | FILE) compopt -o default ;;
    esac
}

_rowlock_options() {
    local option
    for option in $options; do
        [[ $option != --* ]] || _rowlock_offer "$1" "${option%%=*}"
    done
}

# _rowlock_argument COUNT CURRENT: what may stand after COUNT other words.
_rowlock_argument() {
    # shellcheck disable=SC2086 # words
    case $1:$arguments in
        '0:[COMMAND]') _rowlock_offer "$2" $_rowlock_commands ;;
        0:*\|*) _rowlock_offer "$2" $literals ;;
        0:*NAME* | *NAME*...*) _rowlock_names "$2" ;;
    esac
}

# _rowlock_job BEGINS: the command line of run begins at that word.
_rowlock_job() {
    if [ "$1" = "$last" ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "${words[last]}")
    else
        compopt -o default
    fi
}

_rowlock() {
    local words options arguments='' literals='' command='' kind='' count=0 job=0 runs=0 dashes=0 word i
    _rowlock_join
    local last=$((${#words[@]} - 1))
    local current=${words[last]}
    COMPREPLY=()
    _rowlock_command ''
    [[ " ${words[*]:0:last} " != *' -- '* ]] || dashes=1
    for ((i = 1; i < last && job == 0; i++)); do
        word=${words[i]}
        if [ -n "$kind" ]; then
            kind=
        elif [[ $word == -* && " $options " == *" $word="* ]]; then
            kind=${options#*"$word="}
            kind=${kind%% *}
        elif [[ $word == -- && $runs == 1 ]]; then
            job=$((count > 0 ? i + 1 : i + 2))
        elif [[ $word == -* ]]; then
            continue
        elif [ -z "$command" ]; then
            command=$word
            _rowlock_command "$command" || return
            [[ $arguments != *'COMMAND [ARGUMENT]'* ]] || runs=1
        else
            count=$((count + 1))
            [ $((count * runs)) -lt 2 ] || [ $dashes = 1 ] || job=$i
        fi
    done
    if [ -n "$kind" ]; then
        _rowlock_value "$kind" "$current"
    elif [ $job -gt 0 ] && [ $job -le "$last" ]; then
        _rowlock_job $job
    elif [[ $current == -* ]]; then
        _rowlock_options "$current"
    elif [ -z "$command" ]; then
        # shellcheck disable=SC2086 # words
        _rowlock_offer "$current" $_rowlock_commands
    elif [ $runs = 1 ] && [ $count -gt 0 ]; then
        _rowlock_job "$last"
    else
        _rowlock_argument $count "$current"
    fi
    # Bash replaces only what stands after the last colon.
    local done=${current%"${2:-}"}
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$done"}; done
}
complete -F _rowlock rowlock
