#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# fleet_still_test.sh GALE -- a fleet on a machine that stands still.
#
# Its processes are all stopped for longer than anybody waits for one that gives no answer; they
# then end by themselves, and have admitted no more than the limit.  So does a fleet that shares a
# budget.  The server is the test's own.
set -u
gale=$1
still=20 # seconds: the fleet waits for 15, and a thread of it for 10
work=$(mktemp -d)
socket=$work/socket
server=
fleet=
tenants=

fail() {
	echo "FAIL: $*"
	cat "$work"/{out,err,tenants}
	exit 1
}

# tell SIGNAL: to both fleets and their processes, which are groups of their own.
tell() {
	kill "-$1" -- "-$fleet" && kill "-$1" -- "-$tenants"
}

clean_up() {
	[ -n "$tenants" ] && tell KILL 2>/dev/null
	[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server"
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$work" >"$work/server" 2>&1 &
server=$!
for _ in $(seq 200); do
	[ -S "$socket" ] && break
	sleep 0.05
done
[ -S "$socket" ] || fail "redis-server does not start: $(cat "$work/server")"

setsid "$gale" fleet --store "redis://$socket" --processes 2 --nodes 1 --threads 2 --seconds 4 \
	--window 500ms --keys 20 --limit 100 --json >"$work/out" 2>"$work/err" </dev/null &
fleet=$!
# It goes on for some windows afterwards.
setsid "$gale" fleet --store "redis://$socket" --processes 2 --tenants big=2,small=1 --seconds $((still + 5)) \
	--limit 1000 --json >"$work/tenants" 2>"$work/err" </dev/null &
tenants=$!

# Amid both runs: each key was lent from, and of the budget there are the pool and claims.
lent='return #redis.call("KEYS", "*fleet-*")'
for _ in $(seq 400); do
	[ "$(redis-cli -s "$socket" eval "$lent" 0)" = 22 ] && break
	sleep 0.05
done
[ "$(redis-cli -s "$socket" eval "$lent" 0)" = 22 ] || fail "it does not begin"
tell STOP || fail "there is no fleet"
sleep "$still"
tell CONT
wait "$fleet"
status=$?
[ "$status" = 0 ] || fail "exits with $status"
grep -q '"verdict": "held"' "$work/out" || fail "more than the limit was admitted"
wait "$tenants"
status=$?
# Its shares may be uneven, which is 1: it lost time.
[ "$status" -le 1 ] || fail "the fleet that shares a budget exits with $status"
python3 -c '
import json, sys
o = json.load(sys.stdin)
sys.exit(not (o["windows"] > 0 and 0 < o["admitted_max"] <= o["limit"] == 1000))' <"$work/tenants" ||
	fail "a window of the budget admitted more than its limit, or nothing"
