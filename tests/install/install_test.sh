#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# install_test.sh WORK [BUILD] -- what make build, install and uninstall do with whose rights, and
# who finds what is installed: pkg-config, CMake, meson, the loader.
#
# Builds under WORK, or in the release build BUILD; installs beneath WORK, and leaves alone what is
# installed here.  With BUILD, a project that has gale as a part is built with the static library
# alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$1"
work=$(realpath "$1")
program=$PWD/examples/blocking.c
bad=0
find "$work" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +

fail() {
	echo "FAIL: $*"
	bad=1
}
has() { # FOLDER FILE...: is all of that there?
	local file
	for file in "${@:2}"; do
		[ -e "$1/$file" ] || fail "there is no $file in $1"
	done
}
has_not() { # FOLDER FILE...
	local file
	for file in "${@:2}"; do
		[ ! -e "$1/$file" ] || fail "there is a $file in $1"
	done
}
says() { # WHAT PROGRAM: three of five calls may pass
	local name=$1
	shift
	case $("$@" 2>&1 | tr '\n' ' ') in
	'yes yes yes '*) ;;
	*) fail "$name: the program does not run: $("$@" 2>&1)" ;;
	esac
}

# What stands before the system's own: no word from Debian on its folders, as where dpkg-dev
# is not installed; ldconfig and apt-get only write down that they were called; and of packages
# only those are there that $lacks does not name.
mkdir -p "$work/stubs"
export lacks='' called=$work/called
stub() { # NAME SCRIPT
	printf '#!/bin/sh\n%s\n' "$2" >"$work/stubs/$1"
	chmod +x "$work/stubs/$1"
}
stub dpkg-architecture 'exit 127'
stub ldconfig 'echo "ldconfig $*" >>"$called"'
stub apt-get 'echo "apt-get $*" >>"$called"; exit 1'
stub dpkg-query '
	for package; do :; done
	case " $lacks " in *" $package "*) exit 1 ;; esac
	echo "install ok installed"'
calls() { # SCRIPT: what is called while it runs
	: >"$called"
	bash -c "$1" >"$work/log" 2>&1 || fail "$1: $(tail -n 20 "$work/log")"
	cat "$called"
}
export PATH=$work/stubs:$PATH
unset MAKEFLAGS MAKELEVEL DESTDIR PREFIX PKG_CONFIG_PATH LD_LIBRARY_PATH
export build=${2:-$work/build}
export make="make RELEASE=$build"

# ---- As a part of another project ----------------------------------------------------

# It says which library it wants.  It is built beside all that comes below, which mostly configures: that
# takes one processor.
mkdir -p "$work/guest/subprojects"
cp tests/install/meson.build "$work/guest"
cp "$program" "$work/guest/program.c"
ln -s "$PWD" "$work/guest/subprojects/gale"
guest() { # KIND OPTION...
	local at=$work/guest-$1
	meson setup "$at" "$work/guest" --wrap-mode=forcefallback --buildtype=plain "${@:2}" && ninja -C "$at" &&
		meson test -C "$at" --no-rebuild || return
	case $1-$(readelf -d "$at/program" | grep -c 'NEEDED.*libgale') in
	static-0 | shared-1) ;;
	*) echo "$1 is not honoured" && return 1 ;;
	esac
}
guests() { # BUILD
	{ [ -n "$1" ] || guest shared; } &&
		guest static -Ddefault_library=static -Dgale:redis=disabled -Dgale:postgres=disabled
}
guests "${2-}" >"$work/guests.log" 2>&1 &
guests=$!

# ---- Packages ------------------------------------------------------------------------

# Of those that build, install and run do not need, none is asked for.
lacks=$(sed 's/#.*//' packages.txt | awk '/^\[/ { inside = /servers|tests|bench|packages|compare|trace/; next }
	inside && NF && $1 !~ /^(binutils|python3)$/ { print $1 }' | tr '\n' ' ')
case $lacks in *libcmocka-dev*libck-dev*) ;; *) fail "packages.txt is not understood: $lacks" ;; esac
said=$(calls '$make build PREFIX=/opt/other') # what comes after is configured otherwise
[ -z "$said" ] || fail "make build: $said"

# Without what talks to servers, the libraries for that need not be there.
lacks='libhiredis-dev libpq-dev libssl-dev libyaml-dev'
said=$(calls '$make -C . RELEASE=$build-alone build \
	OPTIONS="-Dredis=disabled -Dpostgres=disabled -Dpolicy=disabled -Dtools=false -Ddefault_library=static -Doptimization=plain"')
[ -z "$said" ] || fail "make build without servers: $said"

# Who may install no packages is told the one command that helps, and of nothing more.
mkdir "$work/bare"
for tool in sh sed awk dirname cat; do
	ln -s "$(command -v $tool)" "$work/bare/$tool"
done
cp "$work/stubs/dpkg-query" "$work/stubs/apt-get" "$work/bare"
printf '#!/bin/sh\necho 1000\n' >"$work/bare/id"
chmod +x "$work/bare/id"
lacks='libxxhash-dev libck-dev redis-server'
: >"$called"
said=$(PATH=$work/bare tools/install-packages.sh library redis postgres 2>&1) && fail "nothing was lacking"
[ ! -s "$called" ] || fail "without rights: $(cat "$called")"
case $said in
*'As root, please run: apt-get install --no-install-recommends libxxhash-dev') ;;
*) fail "without rights it says: $said" ;;
esac
said=$(tools/install-packages.sh library servers 2>&1)
case $said in
*'== packages: installing libxxhash-dev redis-server
== packages: Debian will start these servers: redis-server'*) ;;
*) fail "of what it installs it says: $said" ;;
esac

# Debian starts no server that is compared; what tells it so is gone afterwards.
stub apt-get 'echo "apt-get $1: $(tail -n 1 "$GALE_POLICY_RC")" >>"$called"; exit 1'
lacks=nginx
said=$(GALE_POLICY_RC=$work/policy calls 'tools/install-packages.sh compare || :')
[ "$said" = 'apt-get update: exit 101' ] || fail "of what is compared: $said"
[ ! -e "$work/policy" ] || fail "Debian is still told to start no servers"
stub apt-get 'echo "apt-get $*" >>"$called"; exit 1'
lacks=

# ---- Where it goes -------------------------------------------------------------------

# Into a folder that stands for the machine; the loader of this one is not told.
at=$work/machine
said=$(calls "\$make install DESTDIR=$at")
[ -z "$said" ] || fail "with DESTDIR: $said"
installed=$(find "$at" ! -type d | sort)
root=$at/usr/local
has "$root" bin/gale lib/libgale.so lib/libgale.so.0 lib/libgale-{redis,postgres,tls}.so.0 lib/libgale.a lib/pkgconfig/gale.pc \
	lib/libgale-policy.so lib/libgale-policy.so.0 lib/libgale-policy.a lib/pkgconfig/gale-policy.pc \
	lib/cmake/gale/gale-config.cmake include/gale/*.h \
	share/man/man1/gale{,-check,-doctor,-fleet,-forecast,-peek,-reset,-sim,-store,-watch}.1 \
	share/man/man3/gale{,_ask,_wait,_policy_open,_uv_open}.3
grep -qx 'prefix=/usr/local' "$root/lib/pkgconfig/gale.pc" || fail "gale.pc is of another prefix"
grep -q 'max.*wait' "$root/share/man/man1/gale-sim.1" || fail "gale-sim(1) lacks flags"

# The library brings no allocator: a host that runs could not load it.  The command has one.
needed() { # FILE
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p' | sort | tr '\n' ' '
}
[ "$(needed "$root/lib/libgale.so")" = 'libc ' ] ||
	fail "the library needs $(needed "$root/lib/libgale.so")"
[ "$(needed "$root/lib/libgale-redis.so.0")" = 'libc libhiredis ' ] ||
	fail "the part for Redis needs $(needed "$root/lib/libgale-redis.so.0")"
[ "$(needed "$root/lib/libgale-postgres.so.0")" = 'libc libpq ' ] ||
	fail "the part for PostgreSQL needs $(needed "$root/lib/libgale-postgres.so.0")"
[ "$(needed "$root/lib/libgale-tls.so.0")" = 'libc libcrypto libssl ' ] ||
	fail "the part for TLS needs $(needed "$root/lib/libgale-tls.so.0")"
[ "$(needed "$root/bin/gale")" = 'libc libhiredis libjemalloc libm libpq libyaml-0 ' ] ||
	fail "the command needs $(needed "$root/bin/gale")"

# libyaml is for those who read policies.
[ "$(needed "$root/lib/libgale-policy.so")" = 'libc libgale libyaml-0 ' ] ||
	fail "the library of policies needs $(needed "$root/lib/libgale-policy.so")"

# There, pkg-config and the loader of a plain Debian look by themselves.
tr ':' '\n' <<<"$(pkg-config --variable pc_path pkg-config)" | grep -qx /usr/local/lib/pkgconfig ||
	fail "pkg-config does not look into /usr/local/lib/pkgconfig"
/sbin/ldconfig -v -N -X 2>/dev/null | grep -q '^/usr/local/lib:' ||
	fail "the loader does not look into /usr/local/lib"

# All of it goes again, and what others have put there stays.
mkdir -p "$root/lib/cmake/other" && echo >"$root/lib/libgalerie.so"
calls "\$make uninstall DESTDIR=$at" >"$work/uninstall.calls"
[ ! -s "$work/uninstall.calls" ] || fail "uninstall with DESTDIR: $(cat "$work/uninstall.calls")"
left=$(find "$at" ! -type d)
[ "$left" = "$root/lib/libgalerie.so" ] || fail "uninstall leaves $left"
left=$(cd "$root" && find . -type d -empty | sort | tr '\n' ' ')
[ "$left" = './bin ./include ./lib/cmake/other ./share/man ' ] || fail "uninstall leaves these folders empty: $left"

# Into a prefix: as root, the loader is told; who builds against it is told what it takes.
at=$work/prefix
wanted=
[ "$(id -u)" != 0 ] || wanted='ldconfig '
[ "$(calls "\$make install PREFIX=$at")" = "$wanted" ] || fail "with PREFIX, the loader is told otherwise"
grep -q "PKG_CONFIG_PATH=$at/lib/pkgconfig LD_LIBRARY_PATH=$at/lib" "$work/log" ||
	fail "nobody hears how to use $at"
[ "$(find "$at" ! -type d | sort | sed "s|^$at/||")" = "$(sed "s|^$work/machine/usr/local/||" <<<"$installed")" ] ||
	fail "into a prefix goes something else: $(find "$at" ! -type d)"

# A folder that is named from here is none of the machine's.
said=$(make install PREFIX=here 2>&1) && fail "PREFIX may be relative"
[ "$(head -n 1 <<<"$said")" = "PREFIX is here, and has to begin with /: make install PREFIX=\$PWD/here" ] ||
	fail "of a relative PREFIX it says: $said"

# Without rights a sentence says what to do, and nothing was built before.
if [ "$(id -u)" = 0 ]; then
	said=$(setpriv --reuid 65534 --regid 65534 --clear-groups make install 2>&1) && fail "nobody may install"
	[ "$(head -n 1 <<<"$said")" = "You may not write to /usr/local/bin: run this as root (sudo make install), or \
with a folder of yours: make install PREFIX=\$HOME/.local" ] || fail "without rights: $said"
	[ "$(wc -l <<<"$said")" = 2 ] || fail "without rights, more than a sentence: $said"

	# So it is where root has built before.  This folder may be root's alone, so that is
	# tried in another.
	public=$(mktemp -d)
	chmod 755 "$public"
	cp tools/configure.py "$public"
	for there in roots roots/release roots/release/.ninja_log; do
		mkdir -p "$public/roots/release"
		touch "$public/roots/release/.ninja_log"
		chown -R 65534 "$public/roots"
		chown 0 "$public/$there"
		[ $there != roots ] || rm -r "$public/roots/release"
		said=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$public/configure.py" "$public/roots/release" 2>&1) &&
			fail "nobody may build in root's $there"
		case $said in
		"You may not write to $public/roots/release, since"*) ;;
		*) fail "in root's $there: $said" ;;
		esac
		[ "$(wc -l <<<"$said")" = 1 ] || fail "in root's $there, more than a sentence: $said"
	done
	rm -r "$public"
fi

# ---- Who finds it --------------------------------------------------------------------

build_with_pkg_config() { # OUT
	# shellcheck disable=SC2046 # flags are words
	cc "$program" -o "$1" $(PKG_CONFIG_PATH=$at/lib/pkgconfig pkg-config --cflags --libs gale) 2>&1
}
cmakes() { # KIND...
	rm -rf "$work/cmake"
	cmake -S tests/install -B "$work/cmake" -DPROGRAM="$program" -DKINDS="$(IFS=';' && echo "$*")" \
		-DCMAKE_PREFIX_PATH="$at" >"$work/log" 2>&1 && cmake --build "$work/cmake" >>"$work/log" 2>&1 ||
		fail "CMake ($*): $(tail -n 20 "$work/log")"
}
needs() { # PROGRAM: does it load libgale?
	readelf -d "$1" | grep -q 'NEEDED.*libgale'
}

# Elsewhere than where it was installed, too: a tree for CMake may be moved.
mv "$at" "$at-moved"
at=$at-moved
cmakes gale static
says 'CMake, shared' "$work/cmake/gale"
says 'CMake, static' "$work/cmake/static"
needs "$work/cmake/gale" || fail "gale::gale is not the shared library"
! needs "$work/cmake/static" || fail "gale::static is not the static library"
sed 's/gale 0.1/gale 1.0/' tests/install/CMakeLists.txt >"$work/CMakeLists.txt"
cmake -S "$work" -B "$work/cmake-next" -DCMAKE_PREFIX_PATH="$at" >"$work/log" 2>&1 &&
	fail "CMake takes this version for 1.0"
mv "$at" "${at%-moved}"
at=${at%-moved}

said=$(build_with_pkg_config "$work/shared") || fail "pkg-config, shared: $said"
says 'pkg-config, shared' env LD_LIBRARY_PATH="$at/lib" "$work/shared"
said=$(LD_LIBRARY_PATH=$at/lib ldd "$work/shared" | sed -n 's/^\t\(lib[a-z]*\)\.so.*/\1/p' | sort | tr '\n' ' ')
[ "$said" = 'libc libgale ' ] || fail "a program that has only memory: needs $said"

# As docs/install.md prints it; where gale is installed, cc looks by itself.
mkdir -p "$work/printed" && cp "$program" "$work/printed/first.c"
count=0
while read -r command; do
	count=$((count + 1))
	rm -f "$work"/printed/{first,a.out}
	said=$(cd "$work/printed" && PKG_CONFIG_PATH=$at/lib/pkgconfig LIBRARY_PATH=$at/lib sh -c "$command" 2>&1) ||
		fail "$command: $said"
	says "$command" env LD_LIBRARY_PATH="$at/lib" "$(ls "$work"/printed/{first,a.out} 2>/dev/null)"
done < <(grep -o 'cc first\.c [^`]*' docs/install.md)
[ "$count" = 2 ] || fail "docs/install.md prints $count commands of cc"

# The parts are found where they were installed, and beside a library that was moved.
opens() { # NAME PATTERN URL: what is said with the library in $at
	said=$(LD_LIBRARY_PATH=$at/lib "$work/opens" "$3" 2>&1)
	# shellcheck disable=SC2254 # a pattern
	case $said in
	$2) ;;
	*) fail "$1: $3: $said" ;;
	esac
}
no_ca='url: option ca: no certificate can be read from the file: No such file or directory'
no_file='cannot open shared object file'
said=$("$at/bin/gale" peek 'rediss://127.0.0.1?ca=/no/such' api k --limit 1 --window 1h 2>&1)
case $said in *"$no_ca"*) ;; *) fail "the command: $said" ;; esac
program=$PWD/tests/install/opens.c build_with_pkg_config "$work/opens" >"$work/log" ||
	fail "opens.c: $(cat "$work/log")"
mv "$at" "$at-moved"
at=$at-moved
opens 'a library that was moved' open 'redis:///no/such'
opens 'a library that was moved' open 'postgres:///db?host=/no/such'
opens 'a library that was moved' "$no_ca" 'rediss://127.0.0.1?ca=/no/such'
rm "$at/lib/libgale-tls.so.0"
opens 'without the part for TLS' \
	"url: rediss:// needs libgale-tls.so.0, and OpenSSL 3; install both: *$no_file*" 'rediss://127.0.0.1?ca=/no/such'
cp "$at/lib/libgale-redis.so.0" "$at/lib/libgale-tls.so.0"
opens 'with another file for TLS' 'url: the libgale-tls.so.0 that was found is of another gale; *' \
	'rediss://127.0.0.1?ca=/no/such'
rm "$at"/lib/libgale-{redis,postgres}.so.0
opens 'without the part for Redis' \
	"url: redis:// needs libgale-redis.so.0, and hiredis; install both: *$no_file*" 'redis:///no/such'
opens 'without the part for PostgreSQL' \
	"url: postgres:// needs libgale-postgres.so.0, and libpq; install both: *$no_file*" 'postgres:///db'
opens 'without parts' open memory:
cc -shared -o "$work/libhiredis.so.0.none" -Wl,-soname,libhiredis.so.0.none -x c /dev/null
cc -shared -o "$at/lib/libgale-redis.so.0" -Wl,--no-as-needed "$work/libhiredis.so.0.none" -x c /dev/null
opens 'with a part, and without hiredis' "*; install both: libhiredis.so.0.none: $no_file*" 'redis:///no/such'
mv "$at" "${at%-moved}"
at=${at%-moved}

# With a policy: one call of two may pass.
cat >"$work/policy.yaml" <<-'END'
	stores: {here: {url: "memory:"}}
	limiters: {api: {rule: fixed_window, limit: 1 per day, store: here}}
	...
END
admits_one() { # NAME PROGRAM
	said=$(printf 'key\nkey\n' | LD_LIBRARY_PATH=$at/lib "$2" "$work/policy.yaml" 2>&1 | tr '\n' ' ')
	[ "$said" = 'yes no ' ] || fail "$1: the program says $said"
}
# shellcheck disable=SC2046 # flags are words
said=$(cc examples/policy.c -o "$work/policy" \
	$(PKG_CONFIG_PATH=$at/lib/pkgconfig pkg-config --cflags --libs gale-policy) 2>&1) ||
	fail "pkg-config, policy: $said"
admits_one 'pkg-config, policy' "$work/policy"
program=$PWD/examples/policy.c cmakes policy
admits_one 'CMake, policy' "$work/cmake/policy"
calls "\$make uninstall PREFIX=$at" >/dev/null

# One kind of library, and no other: what is installed, what links.
calls "\$make install PREFIX=$at OPTIONS=-Ddefault_library=shared" >/dev/null
has "$at" lib/libgale.so
has_not "$at" lib/libgale.a
cmakes gale
calls "\$make uninstall PREFIX=$at" >/dev/null
calls '$make -C . RELEASE=$build-alone install PREFIX='"$at"' \
	OPTIONS="-Dredis=disabled -Dpostgres=disabled -Dpolicy=disabled -Dtools=false -Ddefault_library=static -Doptimization=plain"' >/dev/null
has "$at" lib/libgale.a
has_not "$at" lib/libgale.so lib/libgale.so.0
said=$(build_with_pkg_config "$work/static") || fail "pkg-config, static: $said"
says 'pkg-config, static' "$work/static"
readelf -d "$work/static" | grep -q 'NEEDED.*lib\(gale\|pq\|hiredis\)' && fail "it needs what it was built without"
said=$(cc -static "$program" -I"$at/include" -L"$at/lib" -lgale -o "$work/entirely" 2>&1) ||
	fail "without servers, a program may be static in all: $said"
says 'all static' "$work/entirely"
cmakes gale static
says 'CMake, static alone' "$work/cmake/gale"

wait $guests || fail "subproject: $(tail -n 20 "$work/guests.log")"

[ $bad = 0 ] && echo "all as it should be"
exit $bad
