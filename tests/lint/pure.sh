#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# pure.sh ARCHIVE -- the engine needs nothing from outside: no clock, no memory, no
# thread, no I/O.  Read off its symbols, so that no macro or header can hide a call.
set -eu
export LC_ALL=C
known=$(mktemp)
trap 'rm -f "$known"' EXIT

# What it defines itself, the panic, what compilers call for a struct copy, and libgcc's
# arithmetic on 128 bits.
{
	nm --defined-only "$1" | awk 'NF == 3 { print $3 }'
	printf '%s\n' gale_panic memcpy memset memmove memcmp bcmp
	printf '%s\n' __udivti3 __umodti3 __udivmodti4 __divti3 __modti3 __divmodti4 __multi3
	echo _GLOBAL_OFFSET_TABLE_
} | sort -u >"$known"
[ "$(nm --defined-only "$1" | grep -c ' T ')" -gt 0 ] || {
	echo "$1 defines no functions"
	exit 1
}

bad=$(nm -u "$1" | awk 'NF == 2 { print $2 }' | sort -u | comm -23 - "$known")
for symbol in $bad; do
	echo "engine/ is pure, but needs $symbol"
done

# A variable would be memory between two calls.
state=$(nm --defined-only "$1" | awk '$2 ~ /^[bBcCdDsS]$/ && $3 !~ /^__/ { print $3 }')
for symbol in $state; do
	echo "engine/ is pure, but keeps the variable $symbol"
done
[ -z "$bad$state" ]
