#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# instructions.sh [BUILD] -- how many instructions does a step take?
#
# Counts are the same on a busy machine.  Each is the difference between N and 2N times
# the same thing, so that what happens once does not count.  Needs valgrind; BUILD is
# what make bench builds (build/bench).
#
# Of the HTTP server the thread that serves is counted, without the kernel: with a limit
# for each of 1,000 keys, and without.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/bench}/bench
program=$build/one_step
many=20000

command -v valgrind >/dev/null || {
	echo "valgrind is not installed: apt-get install valgrind"
	exit 2
}
[ -x "$program" ] || {
	echo "$program is not there: make bench"
	exit 2
}

count() { # WHAT TIMES [TENANTS]
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 |
		sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

say() { # WHAT [TENANTS]
	what=$1
	shift
	once=$(count "$what" $many "$@")
	twice=$(count "$what" $((2 * many)) "$@")
	echo "$((twice - once))" | awk -v what="$what${1:+, $1 tenants}" -v n="$many" \
		'{ printf "%-30s %6.1f instructions\n", what, $1 / n }'
}

for what in nothing fixed_window gcra token_bucket ask held named hot many held_denied denied guard \
	refused tenant_denied tenant_shared tenant_hold tenant_grow all_of hold hold_two grow; do
	say $what
done
for tenants in 1 100 10000; do
	say tenant $tenants
	say tenant_beyond $tenants
	say tenant_lent $tenants
done

folder=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -r "$folder"' EXIT

serve() { # LIMIT DEEP REQUESTS
	valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$folder/out" \
		"$build/../examples/httpd" --port 0 --threads 1 --limit "$1" >"$folder/said" 2>/dev/null &
	server=$!
	while ! grep -qs port "$folder/said"; do sleep 0.1; done
	"$build/gale_http" --send "$(sed 's/.* //' "$folder/said")" "$2" 1000 "$3" >/dev/null
	kill -TERM $server
	wait $server
	server=
	# Of all threads the one that serves has done the most.
	sed -n 's/^totals: //p' "$folder"/out-?? | sort -n | tail -n 1
	rm "$folder"/out-??
}

for deep in 1 16; do
	for limit in 0/s 1000000000/h; do
		once=$(serve $limit $deep $many)
		twice=$(serve $limit $deep $((2 * many)))
		case $limit in 0/s) limit=without ;; *) limit=with ;; esac
		echo "$((twice - once))" | awk -v what="httpd, $deep deep, $limit asks" -v n="$many" \
			'{ printf "%-38s %6.1f instructions\n", what, $1 / n }'
	done
done
