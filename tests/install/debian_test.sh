#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# debian_test.sh WORK -- the Debian packages build without a warning, lintian finds nothing, and who
# installs them has what README and docs/install.md say; and the ABI is that of the last release.
#
# They are installed into a folder of WORK.  It has this machine's list of packages, so dpkg asks for
# each package that they depend on; this machine itself stays as it is.
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$1"
work=$(realpath "$1")
root=$work/root
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
bad=0
find "$work" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
unset LD_LIBRARY_PATH PKG_CONFIG_PATH

fail() {
	echo "FAIL: $*"
	bad=1
}

# ---- They build ----------------------------------------------------------------------

tools/deb.sh "$work/deb" >"$work/build.txt" 2>&1 || {
	tail -n 40 "$work/build.txt"
	exit 1
}
said=$(grep -i 'warning' "$work/build.txt") && fail "it builds with warnings: $said"

# One tag is left out: to close a request for the package is a duty in Debian's own archive, where these do not go.
said=$(lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
	"$work"/deb/gale_*.changes 2>&1) || fail "lintian: $said"

# ---- They are installed --------------------------------------------------------------

mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
cp /var/lib/dpkg/status "$root/var/lib/dpkg"
dpkgs() { # ARGUMENT...
	# Of packages that are only in the list, it misses the files.
	PATH=$PATH:/usr/sbin:/sbin fakeroot dpkg --root="$root" "$@" >"$work/dpkg.txt" 2>&1
}
packages='libgale0 libgale-redis0 libgale-postgres0 libgale-tls0 libgale-policy0 libgale-dev gale-tools'
debs=()
for package in $packages; do
	debs+=("$(echo "$work/deb/${package}"_*.deb)")
done
dpkgs --install "$work"/deb/libgale-redis0_*.deb && fail "a part is installed without its library"
dpkgs --purge libgale-redis0
dpkgs --install "${debs[@]}" || fail "dpkg: $(grep -v 'files list file' "$work/dpkg.txt")"
depends() { # PACKAGE: on which libraries
	dpkg-deb -f "$work/deb/$1"_*.deb Depends | grep -o 'lib[a-z0-9.-]*[0-9]' | sort | tr '\n' ' '
}
[ "$(depends libgale0)" = 'libc6 ' ] || fail "libgale0 depends on $(depends libgale0)"
[ "$(depends libgale-redis0)" = 'libc6 libgale0 libhiredis0.14 ' ] ||
	fail "libgale-redis0 depends on $(depends libgale-redis0)"
[ "$(depends libgale-postgres0)" = 'libc6 libgale0 libpq5 ' ] ||
	fail "libgale-postgres0 depends on $(depends libgale-postgres0)"
[ "$(depends libgale-tls0)" = 'libc6 libgale0 libssl3 ' ] ||
	fail "libgale-tls0 depends on $(depends libgale-tls0)"
[ "$(depends libgale-policy0)" = 'libc6 libgale0 libyaml-0-2 ' ] ||
	fail "libgale-policy0 depends on $(depends libgale-policy0)"

# ---- They are used -------------------------------------------------------------------

export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
builds() { # SOURCE PACKAGE OUT
	# shellcheck disable=SC2046 # flags are words
	cc -x c "$1" -x none $(pkg-config --cflags --libs "$2") -o "$3" >"$work/cc.txt" 2>&1 ||
		fail "$1: $(cat "$work/cc.txt")"
}
installed() { # PROGRAM ARGUMENT...: runs it with the library in $root
	LD_LIBRARY_PATH=$root/usr/lib/$triplet "$@" 2>&1
}
tests/readme-program.sh README.md "$work/first.c"
builds "$work/first.c" gale "$work/first"
said=$(installed timeout 20 "$work/first")
[ "$(grep -c 'may pass$' <<<"$said") $(grep -c 'denied$' <<<"$said")" = '3 2' ] || fail "the README's program says $said"
said=$(installed ldd "$work/first" | grep -o "$root.*libgale[^ ]*")
[ "$said" = "$root/usr/lib/$triplet/libgale.so.0" ] || fail "the README's program loads $said"

builds tests/install/opens.c gale "$work/opens"
for url in 'redis:///no/such' 'postgres:///db?host=/no/such'; do
	said=$(installed "$work/opens" "$url")
	[ "$said" = open ] || fail "$url: $said"
done
printf 'stores: {here: {url: "memory:"}}\nlimiters: {api: {rule: fixed_window, limit: 1 per day, store: here}}\n...\n' \
	>"$work/policy.yaml"
builds examples/policy.c gale-policy "$work/policy"
said=$(printf 'key\nkey\n' | installed "$work/policy" "$work/policy.yaml" | tr '\n' ' ')
[ "$said" = 'yes no ' ] || fail "with a policy: $said"

gale=$root/usr/bin/gale
said=$(installed "$gale" sim --seeds 0-9 --lost 5) || fail "gale sim: $said"
said=$(installed "$gale" check "$work/policy.yaml") || fail "gale check: $said"
said=$(installed "$gale" peek 'rediss://127.0.0.1?ca=/no/such' api k --limit 1 --window 1h)
case $said in
*'no certificate can be read from the file'*) ;;
*) fail "gale peek rediss://: $said" ;;
esac
for page in man1/gale man1/gale-watch man3/gale_ask man3/gale_policy_open; do
	MANPAGER=cat man "$root/usr/share/man/$page.${page:3:1}.gz" 2>&1 | grep -q '^NAME' || fail "there is no page $page"
done

# ---- They go -------------------------------------------------------------------------

# shellcheck disable=SC2086 # names are words
dpkgs --purge $packages || fail "dpkg: $(grep -v 'files list file' "$work/dpkg.txt")"
said=$(find "$root" -name '*gale*')
[ -z "$said" ] || fail "when they are purged, there is still $said"

# ---- The ABI -------------------------------------------------------------------------

# What was built for the packages has debug info until they are stripped.
build=$work/deb/gale/obj-$triplet
said=$(tools/abi.sh compare "$build" 2>&1) || fail "$said"
planted() { # WORDS SED-SCRIPT: as if the last release had been otherwise
	rm -rf "$work/abi" && cp -r packaging/abi "$work/abi"
	sed -i "$2" "$work/abi/libgale.abi"
	cmp -s packaging/abi/libgale.abi "$work/abi/libgale.abi" && fail "nothing was planted for: $1"
	said=$(tools/abi.sh compare "$build" "$work/abi" 2>&1) && fail "the ABI may differ: $1"
	grep -q "$1" <<<"$said" && grep -q 'Restore what is reported above; or raise the SONAME' <<<"$said" ||
		fail "of an ABI that differs it says: $said"
}
planted "1 Removed function" "s/'gale_why_text'/'gale_why_words'/"
planted "type size changed from 448 to 512" \
	"/<class-decl name='gale_answer' size-in-bits='512'/s/512/448/"

[ $bad = 0 ] && echo "all as it should be"
exit $bad
