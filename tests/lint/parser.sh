#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# parser.sh ARCHIVE -- of hiredis nothing is used but its reader: no connection, no callback
# and no format string of its own (HIREDIS-2, 7, 8, 11, 12, 14 and 17).  Read
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
