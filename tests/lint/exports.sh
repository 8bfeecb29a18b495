#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# exports.sh EXPORTS.TXT LIBRARY ... -- each library shows exactly what is listed, and so does the list
# of symbols of a Debian package.
set -eu
export LC_ALL=C
list=$1
shift
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT

# "A" is the name of the version itself, GALE_0.
names() {
	case $1 in
	*.symbols) sed -n 's/^ \(gale_[a-z0-9_]*\)@GALE_0 .*/x T \1/p' "$1" ;;
	*.a) nm --extern-only --defined-only "$1" ;;
	*) nm -D --defined-only "$1" ;;
	esac | awk 'NF == 3 && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

for library; do
	names "$library" >"$shown"
	[ -s "$shown" ] && diff -u "$list" "$shown"
done
