#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# exports.sh LIBGALE.SO EXPORTS.TXT -- the library shows exactly what is listed.
set -eu
export LC_ALL=C
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT

# "A" is the name of the version itself, GALE_0.
nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$shown"
[ -s "$shown" ] && diff -u "$2" "$shown"
