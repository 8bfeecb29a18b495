#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# parser.sh ARCHIVE -- of hiredis nothing is used but its reader: no connection, no callback
# and no format string of its own (H2, H7, H8, H11, H12, H14 and H17 of the pitfalls).  Read
# off the symbols that the archive needs.
set -eu
export LC_ALL=C

needed=$(nm -u "$1" | awk 'NF == 2 { print $2 }' | sort -u)
echo "$needed" | grep -q '^redisReader' || {
	echo "$1 reads nothing by hiredis"
	exit 1
}
bad=$(echo "$needed" | grep -E '^(redis(Async|[A-Z])|freeReplyObject|sds)' |
	grep -v '^redisReader' || true)
for symbol in $bad; do
	echo "of hiredis only the reader is used, but $1 needs $symbol"
done
[ -z "$bad" ]
