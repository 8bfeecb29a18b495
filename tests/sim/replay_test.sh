#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# replay_test.sh FLEET_SIM -- a seed replays exactly, also what was made smaller, by the line that
# is printed; a plan that cannot be read is refused with a sentence, and a run of nothing fails.
set -u
sim=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	printf '%s\n' "$*"
	exit 1
}

first=$("$sim" --seeds 0-299 --verbose | md5sum)
[ "$first" = "$("$sim" --seeds 0-299 --verbose | md5sum)" ] || fail "the same seeds came out otherwise"

# Clocks that are worse than limiters allow for: some worlds fail, and are made smaller.
said=$("$sim" --seeds 0-12 --set rate_ppm=20000) && fail "nothing went wrong"
smaller=$(printf '%s\n' "$said" | grep -c '^after [0-9]* runs: .')
[ "$smaller" -ge 2 ] || fail "nothing was made smaller: $said"
printf '%s\n' "$said" | sed -n 's/^after [0-9]* runs: //p' >"$work/smaller"
printf '%s\n' "$said" | sed -n 's/^replay: //p' | while read -r line; do
	$line | sed -n 's/^seed [0-9]*: //p'
done >"$work/again"
cmp -s "$work/smaller" "$work/again" || fail "the replay is of something else: $(diff "$work/smaller" "$work/again")"

# What is interrupted says where it was, and with which flags; it may take a while to begin.
for seconds in 1 5 20; do
	"$sim" --seeds 0-99999999 --set nodes=2 >"$work/said" &
	sleep "$seconds"
	kill $!
	wait $! && fail "whoever is interrupted has not failed"
	[ -s "$work/said" ] && break
done
grep -q -- "^aborted; replay: $sim --seeds [0-9]*-[0-9]* --set nodes=2 --verbose$" "$work/said" ||
	fail "nobody knows what was interrupted: $(cat "$work/said")"

# refused ARGUMENT...: says why, and runs nothing.
refused() {
	local said status
	said=$("$sim" "$@" 2>&1)
	status=$?
	[ "$status" -eq 2 ] && [ -n "$said" ] || fail "$* was not refused: $status, $said"
}
refused --seeds 7-
refused --seeds 9-3
refused --seeds 0--5
refused --seeds +5-6
refused --seeds ' 5-6'
refused --seeds 0-99999999999999999999
refused --seeds 1-2x
refused --set colour=3
refused --set nodes=0
refused --set nodes=513
refused --set nodes=
refused --set nodes=-18446744073709551614
refused --set node_keys=4000000000
refused --only 1,x
refused --only '5, 7'
refused --only 9-3
refused --plan old

"$sim" --seeds 0-0 --set asks=1 --only 7 >/dev/null 2>&1 && fail "nothing was asked, and that was fine"
"$sim" --seeds 0-9 --set fail_each=1 >/dev/null || fail "a store that is no server has failed over"
exit 0
