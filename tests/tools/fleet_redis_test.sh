#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# fleet_redis_test.sh GALE bound|ends|guards -- a fleet of processes on a real Redis server: what
# it admits, which needs the processors; how it begins and ends, which does not; or its guards.
#
# The server is the test's own, on a socket in a temporary folder and on no port.  Without
# redis-server this fails.
set -u
gale=$1
work=$(mktemp -d)
socket=$work/socket
url=redis://$socket
bad=0
server=

fail() {
	echo "FAIL: $*"
	bad=1
}

stop_server() {
	[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
	server=
}

trap '[ -n "${fleet-}" ] && kill "$fleet" 2>/dev/null; stop_server; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

start_server() {
	redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$work" \
		--loglevel warning >"$work/server" 2>&1 &
	server=$!
	for _ in $(seq 200); do
		kill -0 "$server" 2>/dev/null || break
		[ -S "$socket" ] && return
		sleep 0.05
	done
	echo "FAIL: redis-server does not start"
	cat "$work/server"
	exit 1
}

# run STATUS ARGUMENT...: expects this exit status; output goes to $work/out and err.
run() {
	local wanted=$1 status
	shift
	timeout 100 "$gale" fleet "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ "$status" = "$wanted" ] && return
	fail "gale fleet $* exits with $status, not $wanted"
	head -n 20 "$work/out" "$work/err"
}

# holds PYTHON...: each is true of the object o in $work/out.
holds() {
	python3 - "$work/out" "$@" <<-'END' || fail "the object is not as it should be"
		import json, sys
		text = open(sys.argv[1]).read()
		o = json.loads(text)
		wrong = [c for c in sys.argv[2:] if not eval(" ".join(c.split()))]
		for c in wrong:
		    print("not so:", c)
		if wrong:
		    print(text)
		sys.exit(bool(wrong))
	END
}

says() {
	grep -q -- "$1" "$work/err" || fail "does not say \"$1\": $(cat "$work/err")"
}

# Of this test's own fleets: the processes know the socket by its name.
members() {
	pgrep -f "fleet-worker .*$socket"
}

# Nobody is left, soon.
expect_nobody() {
	for _ in $(seq 100); do
		members >/dev/null || return
		sleep 0.05
	done
	fail "$1: processes are left: $(members | tr '\n' ' ')"
}

# begin_run ARGUMENT...: in the background, until its processes are there.
begin_run() {
	"$gale" fleet --nodes 1 --threads 1 --keys 10 --limit 100 --seconds 1h --json \
		--store "$url" "$@" >"$work/out" 2>"$work/err" </dev/null &
	fleet=$!
	for _ in $(seq 200); do
		[ "$(members | wc -l)" = 2 ] && break
		sleep 0.05
	done
	[ "$(members | wc -l)" = 2 ] || fail "the processes do not start"
	sleep 1
}

ends_with() {
	local status
	wait "$fleet"
	status=$?
	[ "$status" = "$1" ] || fail "$2: exits with $status: $(cat "$work/err")"
}

# ---- The bound -----------------------------------------------------------------------

bound() {
	# A server that has just been started grants nothing until the window turns.  The limit is
	# so small that every key is asked for more on any machine.  A lease that comes too late is lost,
	# and is of the whole limit at most; who asked is refused.
	start_server
	run 0 --store "$url" --processes 4 --nodes 1 --threads 2 --seconds 2 --window 250ms \
		--keys 20 --limit 100 --json
	holds '(o["processes"], o["nodes"], o["store"]) == (4, 1, "'"$url"'")' \
		'o["verdict"] == "held" and o["overshoot"] == 0 and o["admitted_max"] == 100' \
		'o["windows"] >= 5 and o["undershoot_mean"] * o["windows"] * 20 <= o["refused"] + 1e-6' \
		'o["clock_disagreements"] == 0 and o["clock_step_us"] == 0' \
		'o["allowed"] <= 20 * 100 * 9 and o["decisions"] == o["allowed"] + o["denied"]' \
		'0 < o["store_calls"] < o["decisions"] / 10 and o["leases"] > 0' \
		'o["store_calls_per_million"] > 0 and o["leases_per_store_call"] > 0' \
		'o["decisions_per_second"] == int(o["decisions"] / o["seconds"])' \
		'o["connects"] == 4 and o["failures"] == 0 and o["wrong"] == 0' \
		'0 < o["ns_per_decision_p50"] <= o["ns_per_decision_p99"]'
	expect_nobody "after a run"

	# The store decides each, and says when its window ends: by our clock, too.  What is left over is
	# at most what it let through too late for anybody to wait: 100 ms, which a busy machine can take.
	for mode in strict cached-deny; do
		run 0 --store "$url" --processes 2 --nodes 2 --threads 1 --seconds 1 --keys 10 \
			--limit 20 --mode $mode --json
		holds '(o["mode"], o["verdict"]) == ("'$mode'", "held")' \
			'o["admitted_max"] == 20 and o["undershoot_mean"] <= 0.1' \
			'o["undershoot_mean"] * o["windows"] * 10 * 20 <= o["refused"] + 1e-6' \
			'o["clock_disagreements"] == 0 and o["connects"] == 4'
	done

	# One process needs no controller; short windows make strays.
	run 0 --store "$url" --seconds 1 --keys 5 --limit 50 --json
	holds '(o["processes"], o["verdict"]) == (1, "held")' 'o["admitted_max"] == 50'
	run 0 --store "$url" --processes 2 --seconds 1 --keys 3 --limit 20 --window 10ms --json
	holds 'o["overshoot"] == 0 and o["clock_disagreements"] == 0 and o["windows"] >= 90'

	# What each process was asked for is added up.  A busy machine may serve less than the bar.
	"$gale" fleet --store "$url" --processes 2 --nodes 4 --threads 1 --keys 4 --limit 500 \
		--seconds 5 --demand 80% --moving --json >"$work/out" 2>"$work/err" </dev/null
	holds 'o["overshoot"] == 0 and 0 < o["served"] <= o["owed"] == o["asked"]' \
		'o["asked"] <= 1600 * o["asked_windows"] and o["clock_disagreements"] == 0' \
		'o["asked"] > 800 * o["asked_windows"]'

	# Tenants of two regions: what the far one asks for it gets, as whoever asks near the server needs
	# less than there is.  A busy machine may serve less than the bar.
	"$gale" fleet --store "$url" --tenants big=4:30,small=1:10 --processes 4 --nodes 1 --regions 2 \
		--link-ms 20 --seconds 6 --json >"$work/out" 2>"$work/err" </dev/null
	holds 'o["verdict"] != "overshot" and (o["regions"], o["processes"]) == (2, 4)' \
		'o["admitted_max"] <= o["limit"] and o["windows"] >= 2' \
		'[t["ideal"] for t in o["tenants"]] == [3000 * o["windows"], 1000 * o["windows"]]' \
		'all(sum(t["in_regions"]) == t["used"] for t in o["tenants"])' \
		'all(2 * t["in_regions"][1] >= 0.8 * t["ideal"] for t in o["tenants"])'

	# For people.
	run 0 --store "$url" --processes 2 --nodes 1 --seconds 2 --keys 20 --limit 100
	grep -q '^HELD: no key got more than 100 in any window of 500ms$' "$work/out" ||
		fail "no verdict"
	grep -q '^ *store calls .* per million decisions$' "$work/out" || fail "no store calls"
	grep -q '^ *leases .* per store call$' "$work/out" || fail "no leases"
	grep -q '^ *connections .* failures: 0; answers not believed: 0$' "$work/out" ||
		fail "no connections"
	grep -q '^ *1\.[0-9] s .*decisions/s' "$work/out" || fail "no line of progress after a second"

	# A server that loses keys admits too much, and that is seen: nobody else remembers what a
	# strict fleet was allowed.
	forget='for _, k in ipairs(redis.call("KEYS", "*fleet-*")) do redis.call("DEL", k) end'
	(while sleep 0.2; do redis-cli -s "$socket" eval "$forget" 0; done >/dev/null 2>&1) &
	forgetter=$!
	run 1 --store "$url" --processes 2 --nodes 1 --seconds 3 --keys 5 --limit 20 --window 1s \
		--mode strict --json
	kill "$forgetter"
	wait "$forgetter" 2>/dev/null
	holds 'o["verdict"] == "overshot" and o["overshoot"] >= 20' \
		'o["admitted_max"] == 20 + o["overshoot"] and o["clock_disagreements"] == 0'

}

# ---- Beginnings ----------------------------------------------------------------------

ends() {
	# It does not answer yet: an error, and no hang.
	run 3 --store "$url" --processes 2 --nodes 1 --seconds 1
	says 'process [12]: --store: no answer for 5 seconds.*cannot connect'
	expect_nobody "without a server"

	start_server
	# Emptied in the first half of a window of four seconds, it is waited for.
	while [ $(($(date +%s) % 4)) -ge 2 ]; do sleep 0.1; done
	redis-cli -s "$socket" flushall >/dev/null || fail "redis-cli"
	run 0 --store "$url" --processes 2 --nodes 1 --seconds 1 --keys 5 --limit 50 --window 4s --json
	says 'grants nothing until the window turns'
	[ "$(wc -l <"$work/err")" = 1 ] || fail "says it more than once"
	holds 'o["verdict"] == "held" and o["allowed"] == 5 * 47'

# ---- Ends ----------------------------------------------------------------------------

	begin_run --processes 2
	kill -TERM $fleet
	ends_with 0 "an interrupted run"
	holds '0 < o["seconds"] < 60 and o["verdict"] == "held" and o["allowed"] > 0'
	expect_nobody "after an interrupt"

	begin_run --processes 2
	kill -KILL "$(members | head -n 1)"
	ends_with 3 "a run one of whose processes was killed"
	says 'process [12] was ended by signal 9'
	[ -s "$work/out" ] && fail "a broken run prints a report"
	expect_nobody "after one was killed"

	begin_run --processes 2
	disown "$fleet"
	kill -KILL "$fleet"
	expect_nobody "after the controller was killed"

	# The server goes away, and nobody waits for it: the limit holds, and it is said why.
	begin_run --processes 2
	stop_server
	sleep 1
	kill -INT $fleet
	ends_with 0 "a run whose server went away"
	holds 'o["refused"] > 0 and o["failures"] > 0 and o["verdict"] == "held"'
	expect_nobody "after the server went away"
}

# ---- Guards --------------------------------------------------------------------------

# begin_guards: a fleet that has begun to call.
begin_guards() {
	"$gale" fleet --guard --processes 2 --nodes 1 --limit 12 --seconds 60 --store "$url" \
		>"$work/out" 2>"$work/err" </dev/null &
	fleet=$!
	for _ in $(seq 600); do
		grep -q ' = [0-9]* of ' "$work/out" && return
		sleep 0.05
	done
	fail "the guards do not begin: $(cat "$work/out" "$work/err")"
}

# Of the fleet's children, those of that name.
children() {
	pgrep -P "$fleet" -x "$1"
}

# Processes that share a budget: each tenant has its share of the whole fleet, and no window more.
tenants() {
	run 0 --tenants big=4,mid=2,small=1 --processes 2 --limit 5k --seconds 6 --json --store "$url"
	holds \
		'(o["verdict"], o["limit"], o["processes"]) == ("held", 5000, 2)' \
		'o["admitted_max"] <= 5000 and o["windows"] >= 3' \
		'[t["name"] for t in o["tenants"]] == ["big", "mid", "small"]' \
		'all(t["used"] >= 0.95 * t["ideal"] for t in o["tenants"])'
}

guards() {
	start_server
	"$gale" store init "$url" >"$work/out" 2>&1 || fail "the server cannot be prepared"
	run 0 --guard --processes 2 --nodes 2 --limit 12 --places 4 --law fixed --seconds 2 --json \
		--store "$url"
	holds \
		'(o["processes"], o["nodes"], o["limit"], o["verdict"]) == (2, 2, 12, "held")' \
		'o["in_flight_worst"] <= 12 and o["overshoot"] == 0' \
		'o["refused_by"]["share"] > 0 and o["done"] > 0'
	tenants

	begin_guards
	kill -KILL "$(children gale | head -n 1)"
	ends_with 3 "guards one of whose processes was killed"
	says 'process [12] has died'

	begin_guards
	kill -KILL "$(children gale-backend)"
	ends_with 3 "guards whose backend was killed"
	says 'the backend'
}

case $2 in
bound | ends | guards) "$2" ;;
*) fail "there is no $2" ;;
esac
exit $bad
