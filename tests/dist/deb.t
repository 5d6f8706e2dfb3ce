#!/usr/bin/env bash
# make deb makes packages that lintian accepts, and that are enough to compile and run. `make check-deb` runs it.
. "$(dirname "$0")/../lib/tap.sh"

# Not in TMPDIR, from which nothing may be run on some machines.
work=$(mktemp -d "${ROWLOCK_TEST_BUILD:-$TMPDIR}/deb.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
version=$(awk '$2 ~ /^ROWLOCK_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/rowlock/rowlock.h)

# ROWLOCK_TEST_DEB=folder: packages that are there already.
made=${ROWLOCK_TEST_DEB:-build/deb}
outside() { find . -path ./build -prune -o -path ./.git -prune -o -print | sort; }
if [ -z "${ROWLOCK_TEST_DEB:-}" ]; then
    before=$(outside)
    ok "make deb makes packages" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make run-deb
    is "it writes nothing outside of build/" "$(comm -13 <(echo "$before") <(outside))" ""
fi
ok "lintian has no error and no warning" lintian --fail-on error,warning "$made"/rowlock_*.changes
source_package() { tools/copy-source.sh "$work/source" && env -C "$work" dpkg-source --build source; }
ok "the source package is made" source_package
ok "lintian accepts it too" lintian --fail-on error,warning "$work/rowlock_$version.dsc"

root=$work/root
unpack() {
    local deb
    for deb in "$made"/*_"$version"_*.deb; do
        case $deb in *dbgsym*) ;; *) dpkg -x "$deb" "$root" || return ;; esac
    done
}
ok "the packages are unpacked" unpack
places='usr/(bin|include/rowlock|lib/[^/]*-[^/]*|lib/python3/dist-packages|lib/systemd/system|share/[^/]+)/|(usr/)?lib/systemd/system/'
is "all files are in the places of packages" \
    "$(cd "$root" && find . ! -type d -printf '%P\n' | grep -vE "^($places)")" ""

# Where these shells look in Debian.
for file in bash-completion/completions/rowlock zsh/vendor-completions/_rowlock fish/vendor_completions.d/rowlock.fish; do
    ok "the command's package has $file" test -s "$root/usr/share/$file"
done
missing=$(for page in docs/man/*.1; do [ -e "$root/usr/share/man/man1/$(basename "$page").gz" ] || echo "$page"; done)
is "and each page of its manual" "$missing" ""

links=$(cd "$root/usr/share/doc" && grep -roE --include='*.md' '\]\([^)#[:space:]]+|^\[[^]]+\]: *[^#[:space:]]+' . |
    sed -E 's/:(\]\(|\[[^]]+\]: *)/ /' | grep -v ' http')
ok "an installed document has a link to a header" grep -q '^./rowlock/docs/.*include/rowlock/admin.h$' <<<"$links"
is "each link of an installed document leads to an installed file" \
    "$(while read -r file link; do
        [ -e "$root/usr/share/doc/$(dirname "$file")/$link" ] || echo "$file: $link"
    done <<<"$links")" ""

multiarch=$(dpkg-architecture -q DEB_HOST_MULTIARCH)
export PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$root/usr/lib/$multiarch
export PKG_CONFIG_PATH=$root/usr/lib/$multiarch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
is "the command tells its version" "$(rowlock --version | grep -oF "$version" | head -n 1)" "$version"
ok "README's first example compiles and takes a lock" env AUTOPKGTEST_TMP="$work" debian/tests/readme-example
is "it was linked with the library of the package" \
    "$(ldd "$work/example" | grep -c "$root/usr/lib/$multiarch/librowlock.so.")" 1
mkdir "$work/rivals"
python() { env PYTHONPATH="$root/usr/lib/python3/dist-packages" AUTOPKGTEST_TMP="$work" debian/tests/python; }
ok "each python3 of this system imports the package and takes a lock" python
ok "rivals of rowlock run take turns" env AUTOPKGTEST_TMP="$work/rivals" debian/tests/rivals

hardened() { readelf -dW "$1" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' && nm -D "$1" | grep -q '__stack_chk_fail'; }
for file in usr/bin/rowlock "usr/lib/$multiarch/librowlock.so.$version"; do
    ok "$file is hardened" hardened "$root/$file"
done

done_testing
