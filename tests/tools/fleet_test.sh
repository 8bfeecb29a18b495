#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# fleet_test.sh GALE -- the command as people and programs use it.
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
	"$gale" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ "$status" = "$wanted" ] && return
	fail "gale $* exits with $status, not $wanted"
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
	run 2 fleet "$@"
	[ -s "$work/out" ] && fail "gale fleet $*: prints to standard output"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "gale fleet $*: not one line"
	grep -q -- "^gale fleet: $flag: .*$words" "$work/err" ||
		fail "gale fleet $*: does not name $flag and $words: $(cat "$work/err")"
}

# ---- The object ----------------------------------------------------------------------

# 20 keys get 100 in 500 ms: so little that every key is asked for more on any machine.
run 0 fleet --seconds 1 --keys 20 --limit 100 --json
[ -s "$work/err" ] && fail "--json: prints to standard error, which is no terminal"
[ "$(wc -l <"$work/out")" = 1 ] || fail "--json: not one line"
holds \
	'set("mode store processes nodes threads keys limit window_us seconds decisions
		decisions_per_second allowed denied ns_per_decision_p50 ns_per_decision_p99 store_calls
		store_calls_per_million leases leases_per_store_call connects failures wrong windows
		admitted_max overshoot undershoot_mean verdict refused clock_disagreements
		clock_step_us".split()) == set(o)' \
	'all(type(v) is int for k, v in o.items()
		if k not in ("mode", "store", "verdict", "seconds", "undershoot_mean",
			"store_calls_per_million", "leases_per_store_call"))' \
	'(o["mode"], o["store"], o["verdict"]) == ("leased", "memory:fleet", "held")' \
	'(o["processes"], o["nodes"], o["threads"], o["keys"]) == (1, 4, 2, 20)' \
	'(o["limit"], o["window_us"]) == (100, 500000)' \
	'o["seconds"] == 1' \
	'o["decisions"] == o["allowed"] + o["denied"]' \
	'0 < o["store_calls"] < o["decisions"] / 10' \
	'o["denied"] > 0 and o["refused"] == 0' \
	'0 < o["ns_per_decision_p50"] <= o["ns_per_decision_p99"]' \
	'1 <= o["windows"] <= 2' \
	'o["allowed"] <= 20 * 100 * 4' \
	'o["admitted_max"] == 100 and o["overshoot"] == 0' \
	'o["undershoot_mean"] == 0' \
	'o["clock_disagreements"] == 0'

# Flags arrive; a window that outlasts the run is not whole, and admits its limit all the
# same, unless it turns just now.
run 0 fleet --nodes=2 --threads=3 --keys=2 --limit=1k --window=24h --seconds=900ms \
	--store=memory:other --mode=strict --json
holds \
	'(o["nodes"], o["threads"], o["keys"], o["limit"]) == (2, 3, 2, 1000)' \
	'(o["window_us"], o["seconds"]) == (86400000000, 0.9)' \
	'o["store"] == "memory:other"' \
	'o["windows"] == 0 and o["undershoot_mean"] == 0' \
	'o["allowed"] in (2000, 4000) and o["admitted_max"] == 1000'

# Each mode keeps the bound; strict asks the store each time.  With a denial in memory a window
# costs so many asks as are under way when it turns, however long it is: so it is long, for
# machines where a second has few decisions.
for mode in strict cached-deny; do
	run 0 fleet --mode $mode --threads 1 --keys 20 --limit 100 --window 1s --seconds 2 --json
	holds '(o["mode"], o["verdict"]) == ("'$mode'", "held")' \
		'o["admitted_max"] == 100 and o["undershoot_mean"] == 0' \
		'o["store_calls"] == o["decisions"] if o["mode"] == "strict" else
			o["store_calls"] < o["decisions"] / 10'
done

# Windows so short that threads sleep through several: strays, and still exact.
run 0 fleet --nodes 4 --threads 8 --keys 3 --limit 20 --window 10ms --seconds 500ms --json
holds 'o["overshoot"] == 0 and o["clock_disagreements"] == 0 and o["windows"] >= 48'

# More keys than are ever used at once, and a limit that nobody reaches.
run 0 fleet --keys 100k --limit 9007199254740991 --window 24h --seconds 200ms --json
holds 'o["denied"] == 0 and o["limit"] == 2**53 - 1'

# ---- A demand ------------------------------------------------------------------------

# Evenly in time, and no more: 80 % of 4 keys' limits of 500, in 10 windows.  Which part of that a
# machine serves that stands still now and then is its own affair: 0 or 1, and the object says why.
demand() {
	"$gale" fleet --keys 4 --limit 500 --window 500ms --seconds 5 --demand 80% --json "$@" \
		>"$work/out" 2>"$work/err" </dev/null
	local status=$?
	holds "$status == (0 if o['verdict'] == 'held' else 1)" \
		'o["demand_percent"] == 80 and o["overshoot"] == 0' \
		'3 <= o["asked_windows"] <= o["windows"] - 5 <= 5' \
		'0 < o["owed"] <= o["asked"] <= 1700 * o["asked_windows"]' \
		'0.5 * o["owed"] <= o["served"] <= o["owed"]' \
		'abs(o["served_mean"] - o["served"] / o["owed"]) < 1e-6' \
		'0 < o["served_worst"] <= o["served_mean"] + 1e-6' \
		'(o["verdict"] == "held") ==
			(o["served_mean"] >= 0.99 and o["served_worst"] >= 0.95 and
			o["asked"] >= 0.9 * 1600 * (o["windows"] - 5) and o["clock_disagreements"] == 0)'
}
demand --nodes 2 --threads 1
holds 'o["moving"] == 0'
demand --nodes 16 --threads 2 --moving
holds 'o["moving"] == 1'

# For people: live, and at the end.
"$gale" fleet --keys 4 --limit 500 --window 500ms --seconds 5 --demand 80% --moving \
	>"$work/out" 2>"$work/err" </dev/null
grep -q '; nodes learn$' "$work/out" || fail "does not say that nodes learn"
grep -q '; asked [0-9,]*, served [0-9.]* %, worst window [0-9.]* %$' "$work/out" ||
	fail "does not show live what is served"
grep -q '^  asked  *[0-9,]*  [0-9.]* % of the limits in . windows; wanted: 80 %, moving' "$work/out" ||
	fail "does not say what was asked for"
grep -q '^  served  *[0-9,]*  [0-9.]* % of what was owed; worst window: ' "$work/out" ||
	fail "does not say what was served"

# ---- For people ----------------------------------------------------------------------

# A line a second, as soon as somebody lets it have a processor; a window so long that a machine
# that stands still leaves time to ask.
run 0 fleet --threads 1 --seconds 2 --keys 20 --limit 100 --window 1s
grep -q '^ *1\.[0-9] s .*decisions/s.*p50.*p99.*store calls' "$work/out" ||
	fail "no line of progress after a second"
grep -q '^  *2  *2,000  *0\.000 %  *0  *100$' "$work/out" ||
	fail "no undershoot and overshoot of a window"
grep -q '^HELD: no key got more than 100 in any window of 1s$' "$work/out" ||
	fail "no verdict"
grep -q $'\033' "$work/out" && fail "moves a cursor where there is none"

# On a terminal the lines are drawn in place.
if command -v script >/dev/null; then
	TERM=xterm script -qec "'$gale' fleet --seconds 600ms --keys 20 --limit 100" /dev/null \
		>"$work/out" </dev/null || fail "fails on a terminal"
	grep -q $'\033\\[[0-9]*A' "$work/out" || fail "does not draw in place"
	grep -q 'progress.*\[####*\] *0.6 of 0.6 s' "$work/out" || fail "no progress bar"
	grep -q 'HELD' "$work/out" || fail "no verdict on a terminal"
fi

# An interrupt ends the run early, with a report, once the command catches it.
catches_term() { # PID
	local caught
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
	((0x$caught >> 14 & 1))
}
"$gale" fleet --seconds 1h --keys 20 --limit 100 --json >"$work/out" &
until catches_term $!; do
	sleep 0.1
done
sleep 1
kill -TERM $!
wait $! || fail "an interrupted run exits with $?"
holds '0 < o["seconds"] < 60 and o["verdict"] == "held"'

# ---- Words and help ------------------------------------------------------------------

run 0 version
grep -q '^gale [0-9]*\.[0-9]*\.[0-9]*$' "$work/out" || fail "no version"

# helps WORDS ARGUMENT...: exits with 0, prints that to standard output, and nothing else.
helps() {
	local words=$1
	shift
	run 0 "$@"
	grep -q -- "$words" "$work/out" || fail "gale $*: does not print $words"
	[ -s "$work/err" ] && fail "gale $*: prints to standard error"
}
helps '^usage: gale COMMAND' help
helps '^usage: gale COMMAND' --help
helps '^usage: gale COMMAND' help --help
helps '^usage: gale COMMAND' help help
for words in '' '--help' '-h'; do
	helps '^usage: gale version' ${words:+version $words} ${words:-help version}
	helps '^usage: gale fleet' ${words:+fleet $words} ${words:-help fleet}
	helps '^usage: gale sim' ${words:+sim $words} ${words:-help sim}
	helps '^usage: gale store init .*ROLE' ${words:+store $words} ${words:-help store}
	helps '^Makes a store ready' ${words:+store init $words} ${words:-help store init}
	helps '^Runs random steps' ${words:+store check $words} ${words:-help store check}
done
helps '^Makes a store ready' store init memory: --for me --help

# What a flag is for begins in one column.
for command in fleet sim 'store init' 'store check'; do
	run 0 $command --help
	grep -E '^  --' "$work/out" | awk '
		!match($0, /  +[^ ]/) || !match(substr($0, 3), /  +[^ ]/) { print "no columns: " $0; next }
		{ at = RSTART + RLENGTH; if (!first) first = at; if (at != first) print "elsewhere: " $0 }
	' >"$work/columns"
	[ -s "$work/columns" ] && fail "gale $command --help: $(cat "$work/columns")"
	grep -q '^  --help .*print this$' "$work/out" || fail "gale $command --help: not of itself"
done

# says WORDS ARGUMENT...: exits with 2, and one line says these.
says() {
	local words=$1
	shift
	run 2 "$@"
	[ -s "$work/out" ] && fail "gale $*: prints to standard output"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "gale $*: not one line"
	grep -q -- "$words" "$work/err" || fail "gale $*: does not say $words: $(cat "$work/err")"
}
says '^gale: bogus: unknown; there are check, fleet, sim, store, doctor, peek, forecast, watch, reset, version, help$' bogus
says '^gale: bogus: unknown' help bogus
says '^gale version: --x: unknown; there is only --help$' version --x
says '^gale version: x: unknown' version x
says '^gale store: peek: unknown; there are init, check' store peek
says '^gale store init: it takes the URL of a store, and none is given$' store init
says '^gale store init: --bogus: unknown; there are --for --help$' store init memory: --bogus
says '^gale store init: extra: a word too many' store init memory: extra
says '^gale store init: the URL of a store is given twice' store init memory: redis://:secret@h
grep -q secret "$work/err" && fail "a password is shown"
says '^gale store init: --for: needs a value' store init memory: --for
says '^gale store init: --for: for postgres:// only$' store init memory: --for me
says '^gale store check: it takes the URL of a store' store check
says '^gale store check: --bogus: unknown; there are --steps --seed --help$' \
	store check memory: --bogus
says '^gale store check: --steps: it takes a whole number from 1 .*, not "x"$' \
	store check memory: --steps x
says '^gale store check: --steps: it takes' store check memory: --steps 0
says '^gale store check: extra: a word too many' store check memory: extra

# Each command takes the URLs that the library takes, and says of others what it says.
for command in 'store init' 'store check' 'fleet --store'; do
	says ': url: option prefx is not known; there are db, prefix' $command 'redis://h?prefx=a'
	says ': url: port 99999 is not from 1 to 65535$' $command redis://h:99999
	says ': url: it begins with none of memory:' $command mysql://h
	says ': url: option ca is for TLS: rediss://' $command 'redis://h?ca=a'
	says ': url: a cluster has no database but 0; leave the number out$' $command redis+cluster://h/1
	says ': url: libpq says: invalid URI query parameter: "x"' $command 'postgres://h/d?x=1'
done

# A server that may not be asked, and one that is not there: each command says why, and what to do.
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/locked"
chmod 0 "$work/locked"
[ "$(id -u)" = 0 ] && rights='setpriv --bounding-set=-dac_override,-dac_read_search' || rights=
cannot_ask() { # STATUS WORDS ARGUMENT...
	local wanted=$1 words=$2 status
	shift 2
	# shellcheck disable=SC2086 # rights are words
	timeout 60 $rights "$gale" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ "$status" = "$wanted" ] && grep -q -- "$words" "$work/out" "$work/err" && grep -qE 'gale doctor URL|start the server' "$work/out" "$work/err" ||
		fail "gale $*: exits with $status: $(cat "$work/out" "$work/err")"
}
for place in "/$work/locked=Permission denied" '127.0.0.1:1=Connection refused'; do
	url=redis://${place%=*}
	why=${place#*=}
	cannot_ask 1 "cannot connect to .*: $why" store init "$url"
	cannot_ask 3 "cannot connect to .*: $why" doctor "$url"
	cannot_ask 1 "it grants nothing .*: cannot connect: $why" store check "$url" --steps 10
	cannot_ask 3 "cannot connect: $why" peek "$url" api k --limit 3 --window 1m --within 1s
done
cannot_ask 3 "no answer for 5 seconds .*cannot connect: $why" fleet --seconds 1 --store "$url"

run 0 fleet --help
for flag in processes nodes threads keys limit window demand moving mode store seconds json help; do
	grep -q -- "^  --$flag " "$work/out" || fail "--help does not tell about --$flag"
done
grep -q 'undershoot .*mean' "$work/out" || fail "--help does not explain undershoot"
run 2
grep -q '^usage: gale COMMAND' "$work/err" || fail "does not say how it is used"
"$gale" fleet --seconds 100ms --json >/dev/full 2>"$work/err"
[ $? = 3 ] || fail "nobody hears that the disk is full"

# ---- Bad flags -----------------------------------------------------------------------

refuses --nodes 'from 1 to 64' --nodes 0
refuses --nodes 'from 1 to 64' --nodes 65
refuses --nodes 'from 1 to 64' --nodes -1
refuses --nodes 'needs a value' --json --nodes
refuses --threads 'from 1 to 256' --threads two
refuses --threads 'at most 1024' --nodes 64 --threads 17
refuses --keys 'from 1 to 1M' --keys 1.5
refuses --keys 'from 1 to 1M' --keys 2M
refuses --limit 'from 1 to 9007199254740991' --limit 0
refuses --limit 'from 1 to 9007199254740991' --limit 9007199254740992
refuses --limit 'from 1 to 9007199254740991' --limit 18446744073709551617
refuses --limit 'from 1 to 9007199254740991' --limit 18446744073710M
refuses --window 'from 10ms to 24h' --window 0s
refuses --window 'unit' --window 5
refuses --window 'from 10ms to 24h' --window 99999999999999999999h
refuses --seconds '100ms to 24h' --seconds 0
refuses --seconds '100ms to 24h' --seconds 25h
refuses --mode 'strict' --mode lent
refuses --mode 'strict' --mode ''
refuses --store 'memory:NAME' --store memory:
refuses --store 'redis://HOST' --store 127.0.0.1:6379
refuses --processes 'from 1 to 64' --processes 0
refuses --processes 'from 1 to 64' --processes 65
refuses --processes 'each would have its own' --processes 2
refuses --processes 'each would have its own' --processes 2 --store memory:fleet
refuses --keys 'at most 4000000 in all' --processes 5 --keys 1M --store redis://127.0.0.1
refuses --json 'no value' --json=yes
refuses --demand 'from 1 to 1000, and %' --demand 80
refuses --moving 'none is given' --moving
refuses --seconds 'at least 8 windows' --demand 80% --seconds 1
refuses --colour '--nodes' --colour red
refuses fast '--nodes' fast

# One budget for tenants, by weight or by what they ask for.
refuses_tenants() {
	local words=$1
	shift
	run 2 fleet "$@"
	grep -q -- "^gale fleet --tenants: .*$words" "$work/err" || fail "$*: does not say $words"
}
run 0 fleet --tenants big=4,mid=2:5,small=1 --seconds 5 --json
holds \
	'(o["verdict"], o["processes"], o["nodes"], o["limit"]) == ("held", 1, 2, 10000)' \
	'o["admitted_max"] <= 10000 and o["windows"] >= 2' \
	'[(t["name"], t["weight"]) for t in o["tenants"]] == [("big", 4), ("mid", 2), ("small", 1)]' \
	'o["tenants"][1]["ideal"] == 500 * o["windows"]' \
	'all(t["used"] >= 0.95 * t["ideal"] for t in o["tenants"])'
run 0 fleet --tenants=a=1 --seconds 4
grep -q '^verdict held' "$work/out" || fail "no verdict: $(cat "$work/out")"
refuses_tenants 'NAME=WEIGHT' --tenants big
refuses_tenants 'NAME=WEIGHT' --tenants a=1,a=2
refuses_tenants 'NAME=WEIGHT' --tenants a=0
refuses_tenants 'four windows' --tenants a=1 --seconds 3
refuses_tenants 'one process' --tenants a=1 --processes 2
refuses_tenants 'process of its own' --tenants a=1 --regions 2
refuses_tenants 'redis://HOST:PORT alone' --tenants a=1 --processes 2 --regions 2 --store postgres://h/d
refuses_tenants 'ten round trips' --tenants a=1 --processes 2 --regions 2 --store redis://h --link-ms 200
for store in memory: memory nothing; do # of a store each, or none
	refuses_tenants 'memory:NAME, for the nodes of one process' --tenants a=1 --store "$store"
done

# A server that is not there: that is said long before it is given up.
"$gale" fleet --tenants a=1 --store "redis://$work/none" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
for _ in {1..600}; do
	grep -q 'not all tenants have got units' "$work/err" && break
	sleep 0.1
done
kill -INT "$pid" && wait "$pid" && fail "a fleet without a server ends well"
grep -q "units from redis://$work/none yet" "$work/err" || fail "a server that is not there: $(cat "$work/err")"
run 0 fleet --tenants --help
grep -q -- '--window DURATION' "$work/out" || fail "--help does not list the flags"

# What the library makes of a URL, and processes that nobody has started.
refuses --store 'url: redis:// needs a host' --store redis://
refuses --store 'url: option prefx is not known; there are db,' --store 'redis://h?prefx=a'
refuses --store 'url: it begins with none of memory:' --store magic://localhost
refuses --store 'url: option ca is empty' --store 'rediss://localhost?ca=' --processes 2
run 2 fleet-worker --nodes 1
grep -q 'started by gale fleet --processes' "$work/err" || fail "fleet-worker runs by itself"
refuses --no?de '--nodes' $'--no\nde'

exit $bad
