#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# instructions.sh [BUILD] -- how many instructions does a step take?
#
# Counts are the same on a busy machine.  Each is the difference between N and 2N times
# the same thing, so that what happens once does not count.  Needs valgrind; BUILD is
# what make bench builds (build/bench).
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/bench}/bench/one_step
many=20000

command -v valgrind >/dev/null || {
	echo "valgrind is not installed: apt-get install valgrind"
	exit 2
}
[ -x "$program" ] || {
	echo "$program is not there: make bench"
	exit 2
}

count() { # WHAT TIMES
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
		sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

for what in nothing fixed_window gcra token_bucket ask held named held_denied denied; do
	once=$(count $what $many)
	twice=$(count $what $((2 * many)))
	echo "$what $((twice - once))" | awk -v n="$many" '{ printf "%-14s %6.1f instructions\n", $1, $2 / n }'
done
