#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# probes.sh OPERATE.MD LIBRARY -- the library has the points that the page lists, and the page has
# those that the library has.  A point counts once, however often it was inlined.
set -eu
export LC_ALL=C
page=$1 library=$2
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

sed -n 's/^| `gale:\([a-z_]*\)` .*/\1/p' "$page" | sort -u >"$work/listed"
readelf -n "$library" | awk '/Provider: gale$/ { ours = 1 } / Name: / && ours { print $2; ours = 0 }' |
	sort -u >"$work/there"
[ -s "$work/listed" ] && diff -u "$work/listed" "$work/there"
