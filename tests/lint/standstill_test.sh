#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# standstill_test.sh ROOT -- what run.sh is told of its tests, and of a machine that stood still.
set -u
root=$1
work=$(mktemp -d)
watcher=
watched=
trap 'kill -KILL $watcher $watched 2>/dev/null; rm -rf "$work"' EXIT
bad=0

# expect WORDS...: tally.py says these lines, a tab being a space; its other arguments are "$@".
expect() {
	local wanted=$1 said
	shift
	said=$("$root/tests/tally.py" "$@" | tr '\t' ' ')
	[ "$said" = "$wanted" ] && return
	printf 'expected:\n%s\nnot:\n%s\n' "$wanted" "$said"
	bad=1
}

cat >"$work/log.json" <<'END'
{"name": "gale:unit / good", "result": "OK", "starttime": 1000.0, "duration": 5.0}
{"name": "gale:unit / bad", "result": "FAIL", "starttime": 1000.0, "duration": 5.0}
{"name": "gale:unit / skipped", "result": "SKIP", "starttime": 1010.0, "duration": 5.0}
END
fails="pass x good 
fail x bad FAIL, $work/log.txt
fail x skipped SKIP, $work/log.txt"
expect "$fails" x "$work/log"
printf '900.0 1000.0\n1005.0 1010.0\n' >"$work/beside"
expect "$fails" x "$work/log" "$work/beside"
printf '1004.9 1009.0\n' >"$work/amid"
expect "pass x good 
again bad
fail x skipped SKIP, $work/log.txt" x "$work/log" "$work/amid"
expect "fail x (no tests ran) $work/none.txt" x "$work/none"

# It writes down that it was stopped, and for how long, and ends with whom it was told to.
sleep 600 &
watched=$!
"$root/tests/standstill.py" "$work/seen" $watched &
watcher=$!
for _ in $(seq 200); do
	[ -e "$work/seen" ] && break
	sleep 0.05
done
sleep 0.2
kill -STOP "$watcher"
sleep 1
kill -CONT "$watcher"
for _ in $(seq 200); do
	awk '$2 - $1 > 0.9 { n++ } END { exit !n }' "$work/seen" && break
	sleep 0.05
done
awk '$2 - $1 > 0.9 { n++ } END { exit !n }' "$work/seen" || {
	echo "a second in which it was stopped is not seen"
	bad=1
}
kill "$watched"
for _ in $(seq 200); do
	kill -0 "$watcher" 2>/dev/null || exit $bad
	sleep 0.05
done
echo "it goes on after its process has ended"
exit 1
