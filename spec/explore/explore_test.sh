#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# explore_test.sh EXPLORER -- what the explorer makes of lists that are wrong, of too little
# memory, and of runs that do not come out as they must.
set -u
explorer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# says STATUS TEXT ARG...: the explorer ends so, and says so.
says() {
	local status=$1 text=$2 ended
	shift 2
	"$explorer" "$@" >"$work/said" 2>&1
	ended=$?
	if [ "$ended" != "$status" ] || ! grep -qF -- "$text" "$work/said"; then
		echo "FAILED: $*: ended with $ended, not $status; or did not say: $text"
		cat "$work/said"
		failed=1
	fi
}

# list STATUS TEXT LINE...: the same of a list.
list() {
	local status=$1 text=$2
	shift 2
	printf '%s\n' "$@" >"$work/list"
	says "$status" "$text" "$work/list"
}

good='a leasing : holds'

list 2 'there are no runs in it' '# nothing'
list 2 'list:2: no model is called nothing' "$good" 'b nothing : holds'
list 2 'list:1: model leasing has no constant called colour' 'a leasing colour=3 : holds'
list 2 'limit=many: not a number' 'a leasing limit=many : holds'
list 2 'limit=: not a number' 'a leasing limit= : holds'
list 2 'limit=99999999999999999999: not a number' 'a leasing limit=99999999999999999999 : holds'
list 2 'nodes=9: must be from 1 to 8' 'a leasing nodes=9 : holds'
list 2 'limit: a constant is NAME=NUMBER' 'a leasing limit : holds'
list 2 'a run is NAME MODEL' 'a : holds'
list 2 'no colon: what must come out?' 'a leasing'
list 2 'after the colon: holds or refuted' 'a leasing :'
list 2 'after the colon: holds or refuted' 'a leasing : maybe'
list 2 'loudly: not understood' 'a leasing : holds loudly'
list 2 'states=few: not understood' 'a leasing : holds states=few'
list 2 'states=-1: not understood' 'a leasing : holds states=-1'
list 2 'found=-7: not understood' 'a leasing : holds found=-7'
list 2 'tlc=: not understood' 'a leasing : holds tlc='
list 2 'by=: not understood' 'a once credit=0 : refuted by='
list 2 'what holds is refuted by nothing' 'a leasing : holds by=bound'
list 2 'nodes=3: given twice' 'a leasing nodes=2 nodes=3 : holds'
list 2 'list:2: a: there is a run of that name' "$good" 'a once : holds'
list 2 'the name is too long' "$(printf 'a%.0s' {1..60}) leasing : holds"
list 2 'the line is too long' "$(printf 'a%.0s' {1..500})"
says 2 'No such file' "$work/none"
says 2 '--threads: from 1 to 8, not 0' --threads 0 "$work/list"
says 2 '--memory: from 1 to' --memory much "$work/list"
says 2 'gale_explore [' --loudly
says 2 'gale_explore ['
says 2 'no model is called nothing' --world nothing
says 2 'too long' --world "leasing$(printf ' %.0s' {1..400})nodes=9"

list 1 'cost is above the limit' 'a leasing cost=8 : holds'
printf '%s\n' 'a window nodes=3 limit=5 batch=2 : holds' >"$work/list"
says 1 'a: not enough memory for all states: see --memory' --memory 3 "$work/list"
# A sanitizer's programs cannot even begin in so little.  In the second there is room for some
# of the threads.
(
	ulimit -v 200000
	"$explorer" --models >"$work/said" 2>&1 || exit 0
	says 1 'not enough memory' "$work/list"
	ulimit -v 40000
	says 1 'not enough memory' --memory 4 --threads 8 "$work/list"
	exit $failed
) || failed=1

printf '%s\n' "$good" >"$work/list"
says 0 '1 runs, 0 not as they must be' "$work/list"
says 2 'there is no run called another' "$work/list" a another
says 1 'nothing was explored' --quick "$work/list"
list 1 '8 states, where 9 are expected' 'a leasing : holds states=9'
list 1 '4 was found, where 5 is expected' 'a leasing : holds found=5'
list 1 'this must be refuted, and holds' 'a leasing : refuted'
list 1 'it is refuted, but by something else' 'a once credit=0 : refuted by=ledger'
list 1 'this must hold, and does not' 'a once credit=0 : holds'

# The way to it has as many steps as it must, and begins at the beginning.
grep -q '^    0  the first window begins ' "$work/said" && grep -q '^    3  node . has the answer to 1 ' "$work/said" &&
	! grep -q '^    4 ' "$work/said" || {
	echo 'FAILED: the way to a bad state'
	cat "$work/said"
	failed=1
}

# What is found does not depend on how many look for it.
for threads in 1 2 3; do
	"$explorer" --threads "$threads" --world 'once nodes=2 numbers=2' |
		awk -F'|' '/once/ { print $5, $6, $7, $9 }' >>"$work/counts"
done
[ "$(sort -u "$work/counts")" = ' 12276   67371   20   4 ' ] || {
	echo 'FAILED: counts with one, two and three threads:'
	cat "$work/counts"
	failed=1
}
# What runs all of it, with a TLC that is not there, and with an explorer that fails.
prove=$(dirname "$0")/../prove.py
# A copy has one run.
cp -r "$(dirname "$prove")" "$work/spec"
grep '^carry ' "$(dirname "$prove")/explore/runs.txt" >"$work/spec/explore/runs.txt"
TLA2TOOLS_JAR=$work/none "$work/spec/prove.py" "$explorer" >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'TLA2TOOLS_JAR: there is no' "$work/said" || failed=1
TLA2TOOLS_JAR='' "$prove" false >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'the explorer ended with 1' "$work/said" || failed=1
TLA2TOOLS_JAR='' "$prove" "$explorer" --models >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'nothing was explored' "$work/said" || failed=1
TLA2TOOLS_JAR='' "$prove" "$work/none" >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'the explorer cannot be run: ' "$work/said" || failed=1
# What README.md and expected.txt say is what comes out: here of the one run, of which they do not.
sed -i 's/| 31 | 81 | 10 |/| 31 | 82 | 10 |/' "$work/spec/README.md"
sed -i 's/^Leasing LE1-carry 0 31/Leasing LE1-carry 0 32/; /OL4/d' "$work/spec/expected.txt"
TLA2TOOLS_JAR='' "$work/spec/prove.py" "$explorer" >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'carry: README.md has | 31 | 82 | 10 | 6 | 6 | holds |' "$work/said" &&
	grep -qF 'README.md has a run called carry-three, and there is none' "$work/said" &&
	grep -qF 'carry: 31 states, LE1-carry has 32' "$work/said" &&
	grep -qF 'cfg/OL4-noanswer.cfg: not in expected.txt' "$work/said" || failed=1
echo 'Leasing LE1-carry holds 31' >"$work/spec/expected.txt"
TLA2TOOLS_JAR='' "$work/spec/prove.py" "$explorer" >"$work/said" 2>&1
[ $? = 1 ] && grep -qF 'expected.txt: not MODULE CONFIGURATION STATUS STATES: ' "$work/said" || failed=1
[ "$failed" = 0 ] || cat "$work/said"
exit $failed
