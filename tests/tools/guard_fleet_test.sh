#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# guard_fleet_test.sh GALE -- gale fleet --guard as people and programs use it.
set -u
gale=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

fail() {
	echo "FAIL: $*"
	bad=1
}

# run STATUS ARGUMENT...: expects this exit status; output goes to $work/out and err.
run() {
	local wanted=$1 status
	shift
	timeout 100 "$gale" fleet --guard "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ "$status" = "$wanted" ] && return
	fail "gale fleet --guard $* exits with $status, not $wanted"
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

# refuses FLAG WORDS ARGUMENT...: exits with 2, and one line names the flag and the words.
refuses() {
	local flag=$1 words=$2
	shift 2
	run 2 "$@"
	[ -s "$work/out" ] && fail "$*: prints to standard output"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$*: not one line"
	grep -q -- "^gale fleet.*: $flag: .*$words" "$work/err" ||
		fail "$*: does not name $flag and $words: $(cat "$work/err")"
}

# Twice as many calls as pass: some are refused, and what entered is what the backend saw.
run 0 --store none --law fixed --limit 8 --places 4 --takes 20ms --seconds 2 --json
[ -s "$work/err" ] && fail "--json: prints to standard error"
[ "$(wc -l <"$work/out")" = 1 ] || fail "--json: not one line"
holds \
	'set("law backend store processes nodes limit places takes_us seconds calls entered done
		aborted refused refused_by done_per_second call_ms_mean cuts fences backend_begun
		in_flight_worst overshoot verdict".split()) == set(o)' \
	'(o["law"], o["backend"], o["store"], o["verdict"]) == ("fixed", "halves", "none", "held")' \
	'(o["processes"], o["nodes"], o["limit"], o["places"]) == (1, 4, 8, 4)' \
	'o["seconds"] >= 2 and o["calls"] > 0' \
	'o["calls"] == o["entered"] + o["refused"]' \
	'o["entered"] == o["done"] + o["aborted"] == o["backend_begun"]' \
	'sum(o["refused_by"].values()) == o["refused"] > 0' \
	'set(k for k, v in o["refused_by"].items() if v) <= {"ceiling", "class"}' \
	'o["call_ms_mean"] >= 20' \
	'1 <= o["in_flight_worst"] <= 8 and o["overshoot"] == 0' \
	'o["cuts"] == 0 and o["fences"] == 0'

# Processes share nothing but the backend; when it ends no call, the guards fill up and refuse.
run 0 --store none --processes 2 --nodes 2 --limit 16 --backend stops --seconds 2 --law aimd --json
holds \
	'(o["processes"], o["nodes"], o["law"], o["backend"]) == (2, 2, "aimd", "stops")' \
	'o["refused"] > 0 and o["done"] > 0' \
	'o["entered"] == o["backend_begun"]' \
	'o["in_flight_worst"] <= 16'

# A latency that bends: sixteen calls at four places take ten times as long as one.  Where they
# only waited for places, they took four times as long at the most.
run 0 --store none --law fixed --limit 16 --places 4 --takes 20ms --backend bends --seconds 3 --json
holds \
	'o["backend"] == "bends" and o["done"] > 0' \
	'o["entered"] == o["done"] + o["aborted"] == o["backend_begun"]' \
	'o["in_flight_worst"] == 16' \
	'o["call_ms_mean"] > 85'

# Nodes that share a store share the limit.
run 0 --law fixed --limit 12 --places 4 --seconds 2 --json
holds \
	'(o["store"], o["limit"], o["verdict"]) == ("memory:fleet", 12, "held")' \
	'o["refused_by"]["share"] > 0 and o["done"] > 0' \
	'o["entered"] == o["backend_begun"]' \
	'o["in_flight_worst"] <= 12'
run 0 --limit 12 --seconds 2
grep -q ' = [0-9]* of [0-9]' "$work/out" || fail "no line with shares: $(cat "$work/out")"

# For people: what it is, a line a second, each part of the script, and what came of it.
run 0 --store none --seconds 3 --nodes 2
for words in '^2 nodes in 1 process, law knee, at most 64 calls' 'each guard is on its own' \
	'^-- the backend has half' '^ *1\.[0-9] s .* = [0-9]' '^held: at most [0-9]' '^  done '; do
	grep -q -- "$words" "$work/out" || fail "no line with \"$words\": $(cat "$work/out")"
done

# An interrupt ends it early, with a report.
"$gale" fleet --guard --seconds 10m >"$work/out" 2>"$work/err" </dev/null &
fleet=$!
for _ in $(seq 600); do
	grep -q ' = [0-9]' "$work/out" && break
	sleep 0.05
done
kill -TERM "$fleet"
wait "$fleet" || fail "interrupted, it exits with $?: $(cat "$work/err")"
grep -q '^held: at most' "$work/out" || fail "interrupted, it has no report"

refuses --law 'knee, fixed' --law vegas
refuses --nodes 'at most 256' --nodes 64 --processes 5
refuses --limit 'less than one for each' --limit 3 --store none
refuses --processes 'one process' --processes 2
refuses --keys unknown --keys 7
refuses --store 'redis://' --store gopher://somewhere
run 0 --help
grep -q -- '--places N' "$work/out" || fail "--help does not list the flags"

exit $bad
