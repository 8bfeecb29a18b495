#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# sim_test.sh GALE [memory] -- gale sim as people use it: runs that hold, one that must not,
# the command that does it again, and what is refused.  With "memory", also what happens
# without enough of it (a sanitizer needs too much itself).
set -u
gale=$1
memory=${2-}
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
	"$gale" sim "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ "$status" = "$wanted" ] && return
	fail "gale sim $* exits with $status, not $wanted"
	head -n 20 "$work/out" "$work/err"
}

# says WORDS: in what was printed.
says() {
	grep -q -E -- "$1" "$work/out" || { fail "no \"$1\" in:"; head -n 20 "$work/out"; }
}

# refuses FLAG WORDS ARGUMENT...: exits with 2, and one line names the flag and the words.
refuses() {
	local flag=$1 words=$2
	shift 2
	run 2 "$@"
	[ -s "$work/out" ] && fail "gale sim $*: prints to standard output"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "gale sim $*: not one line"
	grep -q -- "^gale sim: $flag: .*$words" "$work/err" ||
		fail "gale sim $*: does not name $flag and $words: $(cat "$work/err")"
}

# ---- Runs that hold ------------------------------------------------------------------

short="--seeds 0-2 --limit 50 --duration 3s"

run 0 $short
[ "$(grep -c '^seed [0-2]: over-admission 0; used [0-9.]* %.*round trips a window; 0 faults$' "$work/out")" = 3 ] ||
	fail "not a line for each run"
says '^HELD: 3 runs, [1-9][0-9]* asks; worst over-admission 0; used (9[0-9]|100)[.][0-9] %'
[ -s "$work/err" ] && fail "prints to standard error"
run 0 $short --demand 200 # of the limit, which is all that can be served
says 'used (9[0-9]|100)[.][0-9] % .asked for [12][0-9][0-9] %, served (9[0-9]|100)[.][0-9] %.;'
run 0 $short --demand 50
says 'used [45][0-9][.][0-9] % .asked for [45][0-9] %, served (9[0-9]|100)[.][0-9] %.;'

# Each option arrives.
while read -r words flags; do
	run 0 $short $flags
	says "^HELD: .*over-admission 0; .*$words"
done <<-'END'
	round --rule gcra
	round --rule token_bucket --burst 5
	round --rule pacer --max-wait 200ms
	round --rule pacer --max-wait 0
	used.100.0 --mode strict
	used.100.0 --mode cached-deny
	round --sizing fixed --batch 7
	round --sizing eoq --order-cost 50 --strand-penalty 2
	round --sizing fixed --batch 7 --carry-over
	round --patience 50ms
	round --drift-allowed 2000 --drift 2000
	round --nodes 32 --shards 2
	round --keys 20
	asked.for.[45].. --demand 500
	asked.for.199 --arrivals steady
	round --arrivals bursts
	round --cost 1:90,5:9,49
	round --window 500ms
	round --delay 20ms
	lost --lost 10
	doubled --doubled 10
	round --offset 9h --drift 500
	crashes --crash 500ms
	pauses --pause 500ms
	partitions --partition 500ms
	fail-overs --fail-over 500ms
	fail-overs --fail-over 500ms --mode strict
	fail-overs --fail-over 500ms --mode cached-deny --lost 5
	lost.*doubled.*crashes.*pauses.*partitions --lost 5 --doubled 5 --crash 1s --pause 1s --partition 1s --offset 1h --drift 500 --cost 1:9,3:1
	lost.*crashes.*pauses.*partitions.*fail-overs --lost 5 --crash 1s --pause 1s --partition 1s --fail-over 1s --offset 1h --drift 500 --cost 1:9,3:1
END

# What no word of credit holds is asked of the store each time.
run 0 --seeds 0 --window 24h --duration 24h --limit 9007199254740991 --cost 9007199254740

# Hours pass in no time.
run 0 --seeds 0 --window 24h --duration 48h --limit 1k
says 'used (9[0-9]|100)'

# A seed is a run; another is another.
run 0 $short --lost 10 --verbose
cp "$work/out" "$work/first"
run 0 $short --lost 10 --verbose
cmp -s "$work/out" "$work/first" || fail "the same seeds came out otherwise"
says '^ *[0-9]* the store: key 0, node [0-3] is lent'
[ "$(grep -c '^seed' "$work/out")" = "$(grep '^seed' "$work/out" | sort -u -k3 | wc -l)" ] ||
	fail "all seeds are the same run"

# ---- One that must not ---------------------------------------------------------------

# Clocks that are worse than the limiter was told; told so, it holds.
planted="--seeds 0-4 --window 100ms --limit 40 --duration 60s --demand 400 --arrivals bursts
	--sizing fixed --batch 40 --drift 20000"
run 0 $planted --drift-allowed 20000
run 1 $planted
says '^BROKEN: 5 runs.*worst over-admission [1-9]'
says '^seed [0-4]: BROKEN: '
says '^made smaller in [0-9]* runs; replay: gale sim .* --seeds [0-4] --only [-,0-9]* --verbose$'

# The command does it again, with fewer asks, and can be made no smaller.
replay=$(grep -m1 -o 'replay: gale sim .*' "$work/out")
run 1 ${replay#replay: gale sim }
says '^seed [0-4]: over-admission [1-9]'
asks=$(sed -n 's/^BROKEN: 1 runs, \([0-9]*\) asks.*/\1/p' "$work/out")
[ "${asks:-99999}" -lt 1000 ] || fail "$asks asks are left"
grep -q -F "$replay" "$work/out" || fail "the replay does not lead to itself: $replay"

# ---- What proves nothing -------------------------------------------------------------

run 1 $short --only 900000
grep -q '^gale sim: seed 0: nothing was asked' "$work/err" || fail "a run of nothing goes unnoticed"
run 1 --seeds 0 --limit 1 --demand 1 --duration 1s --arrivals steady
grep -q '^gale sim: seed 0: nothing was asked' "$work/err" || fail "no demand goes unnoticed"
grep -q HELD "$work/out" && fail "what was not asked has held"
run 1 --seeds 0 --limit 1 --cost 2 --duration 2s
grep -q '^gale sim: nothing was admitted' "$work/err" || fail "a run that denies all goes unnoticed"
grep -q HELD "$work/out" && fail "what was not admitted has held"
"$gale" sim $short >/dev/full 2>"$work/err"
[ $? = 3 ] || fail "nobody hears that the disk is full"
if [ -n "$memory" ]; then
	(
		ulimit -v 100000
		"$gale" sim --seeds 0 --limit 90k --duration 5s 2>"$work/err" >"$work/out"
		[ $? = 3 ]
	) || fail "nobody hears that there is no memory"
	grep -q 'no memory' "$work/err" || fail "does not say that there is no memory"
fi

# ---- Bad flags -----------------------------------------------------------------------

run 0 --help
for flag in rule limit window mode sizing batch nodes demand cost delay lost doubled offset \
	drift crash pause partition fail-over seeds duration only verbose; do
	grep -q -- "^  --$flag " "$work/out" || fail "--help does not tell about --$flag"
done
"$gale" help | grep -q '^  sim ' || fail "gale help does not tell about it"

refuses --rule 'gcra' --rule sliding_log
refuses --limit 'from 1 to 9007199254740991' --limit 0
refuses --limit 'not "ten"' --limit ten
refuses --window 'unit' --window 5
refuses --window 'from 1ms to 24h' --window 25h
refuses --mode 'strict' --mode loose
refuses --sizing 'eoq' --sizing guessed
refuses --sizing 'leased' --sizing eoq --mode strict
refuses --batch 'fixed' --batch 10
refuses --batch 'from 1' --sizing fixed
refuses --order-cost 'eoq' --order-cost 5
refuses --carry-over 'fixed' --carry-over
refuses --carry-over 'no value' --carry-over=yes
refuses --burst 'has none' --burst 10
refuses --patience 'from 1us' --patience 0s
refuses --drift-allowed 'from 1 to 100k' --drift-allowed 1M
refuses --nodes 'from 1 to 512' --nodes 513
refuses --keys 'from 1 to 20' --keys 21
refuses --demand 'from 1 to 100k' --demand 0
refuses --demand 'more than 1000000 asks' --limit 1M
refuses --arrivals 'bursts' --arrivals never
refuses --cost '1:90,5:10' --cost 0
refuses --cost '1:90,5:10' --cost 1:0
refuses --cost '1:90,5:10' --cost 1,,2
refuses --cost '1:90,5:10' --cost 1:-1
refuses --cost '1:90,5:10' --cost 1:+1
refuses --cost '1:90,5:10' --cost 99999999999999999999
refuses --cost 'up to 8' --cost 1,2,3,4,5,6,7,8,9
refuses --rule 'cost 1' --rule pacer --cost 2
refuses --duration 'no whole --window' --duration 1s --window 2s
refuses --lost 'percent' --lost 101
refuses --doubled 'percent' --doubled -1
refuses --offset 'up to 9h' --offset 10h
refuses --drift 'up to 500k' --drift 1M
refuses --crash 'up to 24h' --crash often
refuses --fail-over 'an hour' --fail-over 1s --window 2h --duration 4h
refuses --doubled 'fails over' --fail-over 1s --doubled 1
refuses --fail-over 'pacer' --rule pacer --fail-over 1s
refuses --seeds 'two with a dash' --seeds 9-3
refuses --seeds 'two with a dash' --seeds 1-2x
refuses --seeds 'two with a dash' --seeds 0x10
refuses --seeds 'two with a dash' --seeds -3
refuses --seeds 'two with a dash' --seeds 99999999999999999999
refuses --seeds 'two with a dash' --seeds ''
refuses --seeds 'needs a value' --seeds
refuses --only '3,17-20' --only 1,x
refuses --only '3,17-20' --only 9-3
refuses --only '3,17-20' --only '5, 7'
refuses --only '3,17-20' --only -18446744073709551614
refuses --only '3,17-20' --only 99999999999999999999
refuses lease 'out of its range' --sizing eoq --strand-penalty 1 # the library's own words
refuses --plan '--seeds' --plan old

# Laws of a ceiling: a table, lines of JSON, plots, and what is refused.  The first scenario is the one with
# the most calls by far.
run 0 --guard --law knee --scenario breakwater --seeds 1
says '^goodput/p99 ms +knee$'
says '^breakwater +(0\.[89]|1\.0)'
run 0 --guard --scenario constant --seeds 1 --json
[ "$(grep -c '"scenario": "constant"' "$work/out")" = 11 ] || fail "not eleven laws"
says '"law": "knee", "goodput": (0\.9|1\.0)'
run 0 --guard --law envoy --scenario constant --seeds 1-2 --drawn --json
run 0 --guard --law knee --scenario constant --seeds 1 --plots "$work"
head -c 500 "$work/constant.svg" | grep -q '<svg' || fail "no plot"
PATH=$work run 3 --guard --law knee --scenario constant --seeds 1 --plots "$work"
grep -q 'gnuplot is not installed' "$work/err" || fail "nothing is said of gnuplot"
refuses --law 'none of that name' --guard --law old
refuses --scenario 'none of that name' --guard --scenario old
refuses --plots 'no such folder' --guard --plots "$work/none"
refuses --seeds 'up to 1000' --guard --seeds 0-1000
run 0 --guard --help
says '^Scenarios:'

# Tenants of one budget: a table, an object, a plot, faults, clocks that are worse than was told.
run 0 --tenants big=4,mid=2,small=1
says '^big +4 +[0-9]+ +[0-9]+ +(0[.]99|1[.]0)'
says 'most in one (99[0-9][0-9]|10000) of 10000 +utilisation (0[.]99|1[.]0)'
says '^verdict held$'
run 0 --tenants big=4,small=1:30 --pause big --windows 12 --json
python3 - "$work/out" <<-'END' || fail "not what each tenant got"
	import json, sys
	told = json.load(open(sys.argv[1]))
	assert told["verdict"] == "held" and told["admitted_max"] <= told["limit"], told
	big, small = told["tenants"]
	assert big["name"] == "big" and big["weight"] == 4 and small["weight"] == 1, told
	assert 0.95 * big["ideal"] <= big["used"] <= 1.2 * big["ideal"], big
	assert 0.95 * small["ideal"] <= small["used"] <= 1.05 * small["ideal"], small
END
run 0 --tenants a=3,b=1 --lost 10 --doubled 10 --crash 3s --forget 6s --drift 400 --cost 5 --seeds 0-9
says '[1-9][0-9]* lost, [1-9][0-9]* doubled, [1-9][0-9]* crashes, [1-9][0-9]* times forgotten'
cp "$work/out" "$work/first"
run 0 --tenants a=3,b=1 --lost 10 --doubled 10 --crash 3s --forget 6s --drift 400 --cost 5 --seeds 0-9
cmp -s "$work/out" "$work/first" || fail "the same seeds came out otherwise"
run 1 --tenants big=1:100 --drift 100k --windows 40 --seeds 0-9
says '^verdict overshot$'
grep -q '^gale sim: seed [0-9]: window [0-9]*: more was spent than the limit$' "$work/err" ||
	fail "nothing is said of the seed"
run 0 --tenants big=1:100 --drift 100k --drift-allowed 100k --windows 40 --seeds 0-9
run 1 --tenants a=1 --lost 100
says '^verdict unproven$'
run 0 --tenants a=3,b=1 --plots "$work"
head -c 500 "$work/tenants.svg" | grep -q '<svg' || fail "no plot of tenants"
refuses --tenants 'NAME=WEIGHT' --tenants a
refuses --pause 'no tenant' --tenants a=1,b=1 --pause c
refuses --pause 'no tenant' --tenants a=1 --pause a
refuses --plots 'no such folder' --tenants a=1 --plots "$work/none"
refuses --windows 'from 3' --tenants a=1 --windows 2
refuses --tenants 'a quote' --tenants "a'b=1"
run 0 --tenants --help
says '^Exit status:'

# Regions: each tenant has what it would have without them, within a thousandth; what it uses where adds up.
while read -r flags; do
	run 0 --tenants big=4,mid=2,small=1 --limit 100k --json $flags
	python3 - "$work/out" <<-'END' || fail "gale sim --tenants $flags: not what tenants have in regions"
		import json, sys
		told = json.load(open(sys.argv[1]))
		assert told["verdict"] == "held" and told["admitted_max"] <= told["limit"], told
		tenants = told["tenants"]
		assert all(abs(it["used"] - it["ideal"]) <= 0.001 * it["ideal"] for it in tenants), told
		assert all(len(it["in_regions"]) == told["regions"] and sum(it["in_regions"]) == it["used"] for it in tenants), told
		big, mid = (it["in_regions"] for it in tenants[:2])
		assert told["regions"] == 1 or big[0] > big[1] and mid[1] > mid[0], told
	END
done <<-'END'
	--regions 1
	--regions 2 --pause big
	--regions 2 --link-ms 0
	--regions 3 --nodes 6 --link-ms 10
	--regions 5 --nodes 5 --link-ms 5 --home 90
END
run 0 --tenants a=3,b=1 --regions 2 --plots "$work"
head -c 500 "$work/regions.svg" | grep -q '<svg' || fail "no plot of regions"
says 'worst  in regions$'
refuses --regions 'a node of its own' --tenants a=1 --regions 5
refuses --regions 'from 1 to 8' --tenants a=1 --regions 9
refuses --link-ms 'ten round trips' --tenants a=1 --regions 2 --link-ms 101
refuses --home 'from 0 to 100' --tenants a=1 --regions 2 --home 101

# Several limits: no window above its limit, and nothing is used by calls that one of them refuses.  What the hour
# refuses leaves the minute whole.
run 0 --limits minute=10k/1m,hour=60k/1h --json
python3 - "$work/out" <<-'END' || fail "not what several limits admit"
	import json, sys
	told = json.load(open(sys.argv[1]))
	minute, hour = told["limits"]
	assert told["verdict"] == "held" and told["admitted"] > 100, told
	assert minute["committed"] == hour["committed"] and hour["committed"] + hour["left"] == 60000, told
	assert minute["most"] <= 10000 and minute["excess"] == hour["excess"] == 0, told
	assert minute["refused"] > 50 and hour["refused"] > 100 and minute["left"] == 10000, told
	assert told["refused"] == minute["refused"] + hour["refused"], told
END
run 0 --limits minute=10k/1m,hour=60k/1h --nodes 4 --seeds 0-4
says '^verdict held$'

# Holds: a window commits its limit, and what holds that ran had cost beyond what they held.
holds="--holds --windows 6 --calls 90"
run 0 --limits minute=10k/1m $holds --json
python3 - "$work/out" <<-'END' || fail "not what holds commit"
	import json, sys
	told = json.load(open(sys.argv[1]))
	minute, = told["limits"]
	assert told["verdict"] == "held", told
	assert 10000 < minute["most"] <= 10000 + minute["excess"], minute
	assert told["broken"] > 0 and told["stopped"] > 0 and minute["refused"] > 0, told
END
run 0 $holds --late 0 --json # what is not late costs no more than was held
python3 - "$work/out" <<-'END' || fail "holds that cost no more pass the limit"
	import json, sys
	minute, = json.load(open(sys.argv[1]))["limits"]
	assert minute["most"] <= 10000 and minute["excess"] == 0, minute
END
run 0 $holds --send 200 --seeds 0-2
says 'late [1-9]'
cp "$work/out" "$work/first"
run 0 $holds --send 200 --seeds 0-2
cmp -s "$work/out" "$work/first" || fail "the same seeds came out otherwise"
run 0 --holds --plots "$work"
head -c 500 "$work/holds.svg" | grep -q '<svg' || fail "no plot of holds"
run 0 --limits a=10k/1m,b=20k/1h --plots "$work"
head -c 500 "$work/limits.svg" | grep -q '<svg' || fail "no plot of limits"
PATH=$work run 3 --holds --plots "$work"
grep -q 'gnuplot is not installed' "$work/err" || fail "nothing is said of gnuplot"
run 1 --limits a=1/1m --cost 1000 --windows 2 --calls 1
says '^verdict unproven$'
refuses --limits 'the shortest window first' --limits a=1/1h,b=1/1m
refuses --limits 'NAME=UNITS/WINDOW' --limits a=1
refuses --limits 'NAME=UNITS/WINDOW' --limits a=0/1m
refuses --limits 'a name of its own' --limits a=1/1m,a=2/1h
refuses --limits 'up to 4' --limits a=1/1m,b=1/1m,c=1/1m,d=1/1m,e=1/1m
refuses --limits 'from 1s' --limits a=1/10ms
refuses --limits 'NAME=UNITS/WINDOW' --limits "a'b=1/1m"
refuses --hold 'more than a limit' --limits a=100/1m --holds
refuses --calls 'too many streams' --holds --calls 10k
refuses --windows 'from 2' --holds --windows 1
refuses --plots 'no such folder' --holds --plots "$work/none"
run 0 --limits --help
says '^Exit status:'

exit $bad
