#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# readme-program.sh README.md OUT [GUARDED] -- takes the program out of the README, as printed: its first
# block of C.  GUARDED gets the program with the second block where the README says: before
# gale_runtime_close, with gale/guard.h.  Its query_database prints "queried".
set -eu
readme=$1 out=$2
block() { # NUMBER
	awk -v wanted="$1" '/^```c$/ { inside = ++count == wanted; next } /^```$/ { inside = 0 }
		inside { print; found = 1 } END { exit !found }' "$readme" || {
		echo "$readme has no block of C with the number $1" >&2
		exit 1
	}
}
block 1 >"$out"
[ $# = 3 ] || exit 0
guard=$(block 2)
{
	printf '#include <gale/guard.h>\n#include <stdio.h>\n\n'
	printf 'static bool query_database(void)\n{\n\treturn puts("queried") >= 0;\n}\n\n'
	sed '/gale_runtime_close/,$d' "$out"
	echo "$guard" | sed 's/^./\t&/'
	sed -n '/gale_runtime_close/,$p' "$out"
} >"$3"
