#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# headers.sh ROOT -- each public header compiles by itself, as C11 and as C++11.
#
# The headers of libuv and liburing are no C11 without the functions of POSIX: gale/uv.h and
# gale/uring.h are read as gnu11.
set -u
root=$1
bad=0
count=0

# compiles LANGUAGE STANDARD HEADER
compiles() {
	printf '#include <gale/%s>\nint none;\n' "$3" |
		gcc -x "$1" -std="$2" -Wall -Wextra -Wpedantic -Werror -I "$root/include" \
			-fsyntax-only - || {
		echo "include/gale/$3 is no $1"
		bad=1
	}
}

for path in "$root"/include/gale/*.h; do
	count=$((count + 1))
	case $path in
	*/uv.h | */uring.h) compiles c gnu11 "$(basename "$path")" ;;
	*) compiles c c11 "$(basename "$path")" ;;
	esac
	compiles c++ c++11 "$(basename "$path")"
done
echo "$count headers"
[ "$bad" = 0 ] && [ "$count" -gt 0 ]
