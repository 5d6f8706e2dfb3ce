#!/usr/bin/env bash
# The completions in real shells: what TAB makes of a line.
. "$(dirname "$0")/cli.sh"

made=$work/made
ok "the completions are made" tools/completion/make "$command" "$made"

# The shells find this command, and a database with three names.
mkdir -p "$work/bin" "$work/patient" "$work/empty"
ln -s "$command" "$work/bin/rowlock"
# A busy machine may need longer than the second that they give a database.
cat >"$work/patient/timeout" <<END
#!/bin/sh
[ "\$1" != 1 ] || { shift; set -- 20 "\$@"; echo "\$*" >>$work/limited; }
exec $(command -v timeout) "\$@"
END
chmod +x "$work/patient/timeout"
PATH=$work/patient:$work/bin:$PATH
export ROWLOCK_URL=sqlite:$work/locks.db
rl install
for name in import:stock importer 'two words'; do rl acquire "$name" --owner o; done

# A key prints the line, and empties it.
cat >"$work/bashrc" <<END
PS1=; unset HISTFILE; cd $work/empty
. $made/rowlock.bash
show() { printf %s "\$READLINE_LINE" >$work/line; READLINE_LINE=; : >$work/shown; }
bind -x '"\C-g": show' 2>/dev/null
bind 'set bell-style none' 'set enable-bracketed-paste off'
: >$work/ready
END
cat >"$work/.zshrc" <<END
PS1=; cd $work/empty
fpath=($made \$fpath); autoload -U compinit; compinit -u -D
show() { print -rn -- \$BUFFER >$work/line; BUFFER=; : >$work/shown }
zle -N show; bindkey '^G' show
setopt no_auto_list no_beep; bindkey '^I' complete-word
: >$work/ready
END
declare -A started_by=([bash]="bash --noprofile --rcfile $work/bashrc -i" [zsh]="env ZDOTDIR=$work zsh -d -i")

# open_shell SHELL: on a terminal. What is typed goes to file descriptor 7.
open_shell() {
    rm -f "$work/ready" "$work/keys"
    mkfifo "$work/keys"
    SHELL=/bin/bash TERM=dumb script -qec "${started_by[$1]}" "$work/screen" <"$work/keys" >/dev/null 2>&1 &
    pid=$!
    exec 7>"$work/keys"
    until_true test -e "$work/ready"
}

close_shell() {
    printf 'exit\n' >&7
    exec 7>&-
    finished "$pid"
}

# typed KEYS: the line after them. In KEYS, \t is TAB.
typed() {
    rm -f "$work/shown"
    printf '%b\a' "$1" >&7
    until_true test -e "$work/shown"
    cat "$work/line"
}

in_fish() {
    cat >"$work/fish" <<END
set -g fish_greeting; cd $work/empty
function fish_prompt; end
source $made/rowlock.fish
function show; commandline >$work/line; kill \$fish_pid; end
bind \cg show
echo ready >$work/ready
END
    rm -f "$work/ready" "$work/line"
    { until_true 20 test -e "$work/ready"; printf '%b\a' "$1"; until_true 20 test -s "$work/line"; } |
        TERM=dumb timeout 60 script -qec "fish --no-config --init-command 'source $work/fish'" "$work/screen" >/dev/null 2>&1
    cat "$work/line"
}

# What fish offers for a line, one on a line.
fish_offers() {
    (cd "$work/empty" && timeout 600 fish --no-config -c "source $made/rowlock.fish; complete -C '$1'" | cut -f 1)
}

# What bash offers.
bash_offers() {
    timeout 60 bash --noprofile --norc -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_LINE=$*; COMP_POINT=${#COMP_LINE}
        compopt() { :; }
        COMP_CWORD=$(($# - 1)); _rowlock rowlock "${!#}" x; printf "%s\n" "${COMPREPLY[@]}"' - "$made/rowlock.bash" "$@"
}

# becomes SHELL TYPED LINE
becomes() { is "$1: '$2' becomes '$3'" "$(typed "$2" | sed 's/ *$//')" "$3"; }

for shell in bash zsh; do
    open_shell $shell
    rm -f "$work/limited"
    becomes $shell 'rowlock quo\t' 'rowlock quorum-join'
    becomes $shell 'rowlock run --min\t' 'rowlock run --min-hold'
    becomes $shell 'rowlock --url sqlite:x ver\t' 'rowlock --url sqlite:x verify'
    becomes $shell 'rowlock run -n --ttl 5 import:\t' 'rowlock run -n --ttl 5 import:stock'
    becomes $shell 'rowlock show tw\t' 'rowlock show two\ words'
    becomes $shell 'rowlock show importer imp\t' 'rowlock show importer imp'
    becomes $shell 'rowlock run importer importer -- rowlo\t' 'rowlock run importer importer -- rowlock'
    becomes $shell 'rowlock run importer -- rowlock quo\t' "rowlock run importer -- rowlock quo$([ $shell = bash ] || echo rum-join)"
    becomes $shell 'rowlock once for\t' 'rowlock once forget'
    becomes $shell 'rowlock help quo\t' 'rowlock help quorum-join'
    is "$shell: the database had a second for the names" "$(sort -u "$work/limited")" "20 rowlock list --names"
    becomes $shell 'rowlock --url sqlite:x show impor\t' 'rowlock --url sqlite:x show impor'
    [ $shell = zsh ] || becomes bash "rowlock show 'two\\t" "rowlock show 'two words'"
    close_shell
done

every_option() { "$command" "$1" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--.*' | sort; }
commands=$("$command" --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z-]+) .*/\1/p' | tr '\n' ' ')
(cd "$work/empty" && timeout 600 fish --no-config -c "source $made/rowlock.fish
    for name in $commands; complete -C \"rowlock \$name --\" >$work/fish.\$name; end")
for name in $commands; do
    expected=$(every_option "$name")
    is "bash: every option of $name" "$(bash_offers rowlock "$name" -- | sort)" "$expected"
    is "fish: every option of $name" "$(cut -f 1 "$work/fish.$name" | sort)" "$expected"
    is "zsh: every option of $name" "$(zsh -fc '_describe() { :; }; _arguments() { [[ $1 == -C ]] && state=argument || print -rl -- $@ }; words=($2); CURRENT=2
        source $1' - "$made/_rowlock" "$name" | grep -oE -- '--[a-z-]+(\[|,|\})' | tr -d '[,}' | sort -u)" "$expected"
done

# A name with control characters is listed with \xNN, which is another name. One with a dash is an option.
hostile=('$(touch made)' "q'u\"o" '=ls' '~' 'a;b' 'st*r' '{a,b}' '!!' '#x' 'ä' 'back\slash')
unsafe=($'new\nline' $'new\n' $'tab\tulator' $'esc\e[31m' $'turn\xe2\x80\xae' $'\xc2\x85' '-n' '--url')
home_url=$ROWLOCK_URL
ROWLOCK_URL=sqlite:$work/hostile.db
rl install
for name in "${hostile[@]}" "${unsafe[@]}"; do rl acquire --owner o -- "$name"; done
expected=$(printf '%s\n' "${hostile[@]}" | LC_ALL=C sort)
is "bash: names that it can insert, and no others" "$(bash_offers rowlock show '' | while IFS= read -r word; do
    eval "printf '%s\n' $word"; done | LC_ALL=C sort)" "$expected"
is "fish: names that it can insert, and no others" "$(fish_offers 'rowlock show ' | LC_ALL=C sort)" "$expected"
is "zsh: names that it can insert, and no others" "$(zsh -fc 'compadd() { print -rl -- $names }; _wanted() { shift 3; "$@" }
    _arguments() { _rowlock_name; exit }; BUFFER="rowlock show "; source $1' - "$made/_rowlock" | LC_ALL=C sort)" "$expected"
for shell in bash zsh; do
    open_shell $shell
    for name in '$(touch made)' "q'u\"o" 'st*r' 'back\slash'; do
        printf -v typed %q "${name:0:1}"
        is "$shell: '$name' is inserted as itself" "$(eval "printf '%s ' $(typed "rowlock show ${typed/\\/\\\\}\t")")" \
            "rowlock show $name "
    done
    close_shell
done
# Inside a quote too. A shell may insert nothing there.
for name in '1$(touch made)`touch made`\x' "2'; touch made; 'x" '3"; touch made; "x!x'; do
    rl acquire --owner o -- "$name"
    for shell in bash zsh fish; do
        enter=in_fish
        [ $shell = fish ] || { enter=typed; open_shell $shell; }
        for quote in "'" '"'; do
            line=$($enter "rowlock show $quote${name:0:1}\t")
            cut=${line#"rowlock show $quote${name:0:1}"}
            [ -n "${cut//[ \'\"]/}" ] || continue
            case $line in *"$quote" | *"$quote ") ;; *) line+=$quote ;; esac
            # A zsh that keeps a history removes the backslash.
            [ $shell != zsh ] || line=${line//\\!/!}
            is "$shell: '$name' in $quote is inserted as itself" "$(cd "$work/empty" && $shell -c "printf '%s ' $line")" "rowlock show $name "
        done
        [ $shell = fish ] || close_shell
    done
done
ok "no name is run as a command" test ! -e made -a ! -e "$work/empty/made"
ROWLOCK_URL=$home_url

rm -f "$work/limited"
is "fish: names" "$(fish_offers 'rowlock show ')" "$(printf '%s\n' import:stock importer 'two words')"
is "fish: the database had a second for them" "$(sort -u "$work/limited")" "20 rowlock list --names"
is "fish: a command line after the name" "$(fish_offers 'rowlock run importer rowlo')" rowlock
is "fish: and what completes it" "$(fish_offers 'rowlock run importer -- rowlock quo')" quorum-join
is "fish: words of once" "$(fish_offers 'rowlock once ')" "$(printf '%s\n' forget last list show)"

(unset ROWLOCK_URL; XDG_STATE_HOME=$work/embedded "$command" acquire embedded --owner o >"$work/out")
for offers in bash_offers fish_offers; do
    [ $offers = bash_offers ] && line=(rowlock show '') || line=('rowlock show ')
    is "${offers%_*}: without ROWLOCK_URL there are no names" "$(unset ROWLOCK_URL; $offers "${line[@]}")" ""
    is "${offers%_*}: without the file neither" "$(ROWLOCK_URL=sqlite:$work/none.db $offers "${line[@]}")" ""
    # Nothing answers at such an address. The shell's own limit would be that of the test.
    is "${offers%_*}: nor from a server that does not answer" \
        "$(PATH=${PATH#*:} ROWLOCK_URL=postgresql://nobody@192.0.2.1/x $offers "${line[@]}")" ""
    is "${offers%_*}: nor are there, if there is an embedded database" \
        "$(unset ROWLOCK_URL; XDG_STATE_HOME=$work/embedded $offers "${line[@]}")" ""
done
is "no file was made" "$(ls -A "$work/empty")$(ls "$work"/none* 2>/dev/null)$(ls "$XDG_STATE_HOME" 2>/dev/null)" ""

done_testing
