#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# operate_test.sh GALE PAGE... -- the commands that a page prints behind $ in a block of console
# say what stands behind them, but for numbers.
#
# The server is the test's own, on a socket in a temporary folder, and stands for the page's
# redis://127.0.0.1.  Without redis-server this fails.
set -u
gale=$1
work=$(mktemp -d)
socket=$work/socket
bad=0
server=
trap '[ -n "$server" ] && kill "$server" && wait "$server"; rm -rf "$work"' EXIT

redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$work" \
	--loglevel warning >"$work/log" 2>&1 &
server=$!
for _ in $(seq 200); do
	[ -S "$socket" ] && break
	kill -0 "$server" || break
	sleep 0.05
done
[ -S "$socket" ] || {
	echo "FAIL: redis-server does not start"
	cat "$work/log"
	exit 1
}

# Where the page has redis://127.0.0.1 and its port, this has the socket.
run() { # COMMAND, or one that a filter reads
	case $1 in
	'gale '*) ;;
	*)
		echo "this test runs gale only"
		return
		;;
	esac
	timeout 60 sh -c "'$gale' ${1#gale }" 2>&1 </dev/null |
		sed "s#$socket#127.0.0.1:6379#g"
}
plain() {
	sed -E 's/[0-9]+/N/g'
}

command=
count=0
compare() {
	[ -n "$command" ] || return
	count=$((count + 1))
	run "${command//redis:\/\/127.0.0.1/redis://$socket}" >"$work/said"
	diff <(plain <"$work/wanted") <(plain <"$work/said") >"$work/diff" && return
	echo "FAIL: $command"
	cat "$work/diff"
	bad=1
}

for page in "${@:2}"; do
	inside=
	while IFS= read -r line; do
		case $inside$line in
		'```console') inside=1 ;;
		'1```')
			compare
			command='' inside=''
			;;
		'1$ '*)
			compare
			command=${line#'$ '}
			: >"$work/wanted"
			;;
		1*) printf '%s\n' "$line" >>"$work/wanted" ;;
		esac
	done <"$page"
done
[ "$count" -gt 0 ] || {
	echo "FAIL: there are no commands"
	bad=1
}
exit $bad
