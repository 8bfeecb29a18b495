#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# abi.sh write|compare BUILD [KEPT] -- the libraries of this build folder, against what the last release promises.
#
# packaging/abi/ has the ABI of the last release: the functions and the public types, as abidw writes
# them.  "write" replaces it; the commit of a release does that, and its tag has it.  "compare" fails
# if a program that was linked with that release may not run with these libraries: new functions
# are no change, nor are new fields at the end of a struct that may grow.  BUILD needs debug info.
# KEPT stands for packaging/abi.
set -eu
export LC_ALL=C
top=$(cd "$(dirname "$0")/.." && pwd)
what=$1 build=$2 kept=${3:-$top/packaging/abi}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

written() { # LIBRARY OUT: without what another folder or another edit of a function's line would change
	abidw --suppressions "$kept/private.abignore" --exported-interfaces-only --no-corpus-path \
		--no-comp-dir-path --no-show-locs --out-file "$2" "$1" &&
		grep -q "<function-decl name='gale_" "$2" || {
		echo "$1 has no debug info" >&2
		exit 1
	}
}

# The structs of which the headers say so (docs/install.md, "Versions of the library").
cat "$top"/include/gale/*.h |
	awk '/May grow\. \*\/$/ { near = 1; next }
		near && /^struct/ { print "[suppress_type]\n  name = " $2 "\n  has_data_member_inserted_at = end" }
		{ near = 0 }' >"$work/grow.abignore"
[ -s "$work/grow.abignore" ] || {
	echo "the headers mark no struct that may grow" >&2
	exit 1
}

bad=0
for name in libgale libgale-policy; do
	library=$build/$name.so
	case $what in
	write) written "$library" "$kept/$name.abi" ;;
	compare)
		written "$library" "$work/$name.abi"
		abidiff --suppressions "$work/grow.abignore" --no-added-syms "$kept/$name.abi" "$work/$name.abi" || {
			bad=1
			cat <<-END_OF_ADVICE
				$name.so breaks programs that were linked with the last release (packaging/abi/$name.abi).
				Restore what is reported above; or raise the SONAME, in meson.build (soversion, and the names of the
				parts), stores/, gale.map and debian/, say so in CHANGELOG.md, and run tools/abi.sh write $build.
			END_OF_ADVICE
		}
		;;
	esac
done
exit $bad
