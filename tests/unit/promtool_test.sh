#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# promtool_test.sh PROMTOOL METRICS_TEST -- Prometheus reads the text, and has nothing to say.
# It does complain of a text that lacks a help.
set -eu
promtool=$1 metrics_test=$2
text=$(mktemp)
trap 'rm -f "$text"' EXIT

"$metrics_test" --text >"$text"
[ "$(grep -c '^# HELP ' "$text")" -gt 60 ]
complaints=$("$promtool" check metrics <"$text" 2>&1) || {
	echo "promtool: $complaints"
	exit 1
}
[ -z "$complaints" ] || {
	echo "promtool: $complaints"
	exit 1
}
if grep -v '^# HELP gale_requests_total ' "$text" | "$promtool" check metrics >/dev/null 2>&1; then
	echo 'promtool accepts anything'
	exit 1
fi
