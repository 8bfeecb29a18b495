#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# install.sh check|finish|remove PREFIX LIBDIR DESTDIR -- what make install and uninstall do
# beside what meson does.
#
#     check    may this user install there?  If not, a sentence says what to do
#     finish   the loader learns of the library; or the user of what it takes to find it
#     remove   everything that was installed, and folders of it that are empty then;
#              tests/install/install_test.sh holds the list to what meson installs
set -eu
what=$1 prefix=$2 libdir=$3 destdir=$4
root=$destdir$prefix
lib=$root/$libdir

may_write() { # FOLDER, which need not be there
	nearest=$1
	while [ ! -e "$nearest" ]; do
		nearest=$(dirname "$nearest")
	done
	[ -d "$nearest" ] && [ -w "$nearest" ]
}

check() {
	case $prefix in
	/*) ;;
	*)
		echo "PREFIX is $prefix, and has to begin with /: make $1 PREFIX=\$PWD/$prefix" >&2
		exit 1
		;;
	esac
	for folder in bin include "$libdir" share; do
		may_write "$root/$folder" && continue
		echo "You may not write to $root/$folder: run this as root (sudo make $1), or with" \
			"a folder of yours: make $1 PREFIX=\$HOME/.local" >&2
		exit 1
	done
}

# The loader's cache is the machine's: it is brought up to date when the library is, too.
tell_loader() {
	if [ -z "$destdir" ] && [ "$(id -u)" = 0 ]; then
		PATH=$PATH:/usr/sbin:/sbin ldconfig
	fi
}

case $what in
check)
	check install
	;;
finish)
	tell_loader
	case $prefix in
	/usr | /usr/local) ;;
	*) [ -n "$destdir" ] || cat <<END
== installed under $prefix, where neither compilers nor the loader look by themselves:
   export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib PATH=$root/bin:\$PATH
END
	;;
	esac
	;;
remove)
	check uninstall
	for page in gale gale-check gale-doctor gale-fleet gale-forecast gale-peek gale-reset gale-sim gale-store gale-watch; do
		rm -f "$root/share/man/man1/$page.1"
	done
	rm -f "$root"/share/man/man3/gale.3 "$root"/share/man/man3/gale_*.3
	rm -f "$root/bin/gale" "$lib/pkgconfig/gale.pc" \
		"$lib/libgale.a" "$lib/libgale.so" "$lib"/libgale.so.* "$lib"/libgale-redis.so.* "$lib"/libgale-postgres.so.* "$lib"/libgale-tls.so.* \
		"$lib/pkgconfig/gale-policy.pc" "$lib/libgale-policy.a" "$lib/libgale-policy.so" \
		"$lib"/libgale-policy.so.*
	rm -rf "$root/include/gale" "$lib/cmake/gale"
	# Those of others have something in them.  bin, lib, include and share/man are not ours: Debian makes them.
	for folder in "$lib/pkgconfig" "$lib/cmake" "$root/share/man/man1" "$root/share/man/man3"; do
		rmdir "$folder" 2>/dev/null || :
	done
	tell_loader
	;;
esac
