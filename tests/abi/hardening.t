#!/usr/bin/env bash
# The default build is hardened: stack protector, checked string functions, nothing writable in the relocation tables.
. "$(dirname "$0")/../lib/tap.sh"

build=${ROWLOCK_TEST_BUILD:-build}
[ -e "$build/librowlock.so" ] || skip_all "no library in $build"

relro() { readelf -lW "$1" | grep GNU_RELRO; }
now() { readelf -dW "$1" | grep -E 'BIND_NOW|FLAGS_1.*NOW'; }
sanitized() { nm "$1" | grep -E '__(asan|tsan|ubsan)_' | head -n 1 | grep .; }
names() { nm -D --undefined-only "$1" | grep -E "$2"; }

case " ${ROWLOCK_TEST_HARDENED:-} " in
    *" protected "*) ;;
    *)
        ok "a build that is not hardened has a sanitizer" sanitized "$build/rowlock"
        done_testing
        exit
        ;;
esac

for file in "$build/librowlock.so" "$build/rowlock"; do
    name=$(basename "$file")
    ok "$name: relocations are read-only after the start" relro "$file"
    ok "$name: all of them are made at the start" now "$file"
    ok "$name: functions with arrays have a stack protector" names "$file" '__stack_chk_fail'
    case " $ROWLOCK_TEST_HARDENED " in
        *" fortified "*) ok "$name: copies and prints check their bounds" names "$file" '_chk(@|$)' ;;
    esac
done

done_testing
