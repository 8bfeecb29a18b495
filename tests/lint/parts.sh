#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# parts.sh LIBGALE PART ... -- libgale needs the C library alone (libatomic and the like would be more);
# a part shows nothing but its table, and has no variable but the pointer to gale_panic (PART-2).
set -eu
export LC_ALL=C

bad=0
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
[ "$needed" = 'libc.so.6 ' ] || {
	echo "$1 needs $needed"
	bad=1
}
shift
for part; do
	# Some linkers show where a file's data ends.
	shown=$(nm -D --defined-only "$part" | awk '$3 !~ /^(__bss_start|_edata|_end)$/ { print $3 }' | tr '\n' ' ')
	[ "$shown" = 'gale_part ' ] || {
		echo "$part shows $shown"
		bad=1
	}
	own=$(nm "$part" | awk 'NF == 3 && $2 ~ /[bBC]/ && $3 !~ /^(host_panic|completed\.0)$/ { print $3 }' | tr '\n' ' ')
	[ -z "$own" ] || {
		echo "$part has variables of its own: $own"
		bad=1
	}
done
exit $bad
