#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# replay_test.sh FLEET_SIM -- a seed replays exactly, a plan that cannot be read is
# refused with a sentence, and a run of nothing fails.
set -u
sim=$1
fail() {
	printf '%s\n' "$*"
	exit 1
}

first=$("$sim" --seeds 0-299 --verbose | md5sum)
[ "$first" = "$("$sim" --seeds 0-299 --verbose | md5sum)" ] || fail "the same seeds came out otherwise"

# refused ARGUMENT...: says why, and runs nothing.
refused() {
	local said status
	said=$("$sim" "$@" 2>&1)
	status=$?
	[ "$status" -eq 2 ] && [ -n "$said" ] || fail "$* was not refused: $status, $said"
}
refused --seeds 7
refused --seeds 9-3
refused --seeds 1-2x
refused --set colour=3
refused --set nodes=0
refused --set nodes=513
refused --only 1,x
refused --only 9-3
refused --plan old

"$sim" --seeds 0-0 --set asks=1 --only 7 >/dev/null 2>&1 && fail "nothing was asked, and that was fine"
exit 0
