#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# newer.sh WORK -- the Redis store with what newer Debians have: hiredis 1.2 of Debian 13, and Valkey of
# Debian 12's backports.
#
# The packages are fetched from this machine's own mirror, and unpacked in WORK: nothing is installed.
# gale is built there with that hiredis, and its tests run against the Redis that is installed, and
# then against Valkey.  Without these packages this fails: make test ARGS=all runs it.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$1"
work=$(realpath "$1")
build=$work/build root=$work/root
lib=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
hiredis='libhiredis1.1.0/trixie libhiredis-dev/trixie'
valkey='valkey-server/bookworm-backports valkey-tools/bookworm-backports'

fail() {
	echo "FAIL: $*"
	exit 1
}

# ---- The packages --------------------------------------------------------------------

apts() { # COMMAND...: as this machine's apt-get, but of these suites
	apt-get -q -o Dir::Etc::SourceList="$work/apt/list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root "$@"
}
fetch() {
	local mirror
	mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | head -n 1)
	mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/debs"
	printf "deb $mirror %s main\n" trixie bookworm-backports >"$work/apt/list"
	# shellcheck disable=SC2086 # names are words
	apts update && cd "$work/debs" && apts download $hiredis $valkey
}
(fetch) >"$work/fetch.txt" 2>&1 || fail "Debian 13 and the backports of 12 are not to be had: $(tail -n 3 "$work/fetch.txt")"
rm -rf "$root"
for deb in "$work"/debs/*.deb; do
	dpkg-deb -x "$deb" "$root" || fail "$deb"
done

# As the package's own, which says /usr.
mkdir -p "$work/pc"
cat >"$work/pc/hiredis.pc" <<END
Name: hiredis
Description: hiredis of Debian 13
Version: $(sed -n 's/^Version: //p' "$lib/pkgconfig/hiredis.pc")
Libs: -L$lib -lhiredis
Cflags: -I$root/usr/include/hiredis -I$root/usr/include
END
export PKG_CONFIG_PATH=$work/pc LD_LIBRARY_PATH=$lib PATH=$root/usr/bin:$PATH

# ---- Built with them -----------------------------------------------------------------

again=
[ -f "$build/build.ninja" ] && again=--reconfigure
wire='redis_wire_test redis_corpus redis_ear_corpus redis_reply_corpus'
servers='redis_script_test redis_store_test redis_cluster_test redis_sentinel_test redis_tls_test conformance_test'
valkeys='redis_script_test redis_store_test redis_cluster_test redis_tls_test beat_servers_test'
targets='libgale-redis.so.0 libgale-tls.so.0'
for name in $wire; do
	case $name in
	*_corpus) targets+=" tests/fuzz/$name" ;;
	*) targets+=" tests/unit/$name" ;;
	esac
done
for name in $servers $valkeys; do
	targets+=" tests/stores/$name"
done
{
	# shellcheck disable=SC2086 # words
	meson setup "$build" $again -Dbrief=true -Dmodel_steps=50000 -Dc_args=-g0 && ninja -k 0 -C "$build" $targets
} >"$work/build.txt" 2>&1 || fail "it does not build: $(grep -E 'error|ERROR|FAILED' "$work/build.txt" | head -n 20)"
ldd "$build/libgale-redis.so.0" | grep -q "$lib/libhiredis.so.1" ||
	fail "it is built with another hiredis: $(ldd "$build/libgale-redis.so.0")"

# shellcheck disable=SC2086 # names are words
meson test -C "$build" --no-rebuild --timeout-multiplier 3 --print-errorlogs $wire $servers conformance_valkey_test \
	>"$work/hiredis.txt" 2>&1 || fail "with this hiredis: $(tail -n 60 "$work/hiredis.txt")"
for name in $valkeys; do
	but=()
	[ "$name" = redis_store_test ] && but=(--but '*get_fifty*') # of two hundred threads none may be late
	GALE_TEST_REDIS=valkey-server timeout 600 "$build/tests/stores/$name" "${but[@]}" >"$work/$name.txt" 2>&1 ||
		fail "$name with Valkey: $(grep -aE 'ERROR|LINE|FAILED' "$work/$name.txt")"
done
echo "hiredis $(pkg-config --modversion hiredis), and $(valkey-server --version)"
