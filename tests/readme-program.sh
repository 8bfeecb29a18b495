#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# readme-program.sh README.md OUT -- takes the program out of the README, as printed: the
# block of C that follows the line <!-- program -->.
set -eu
awk '/^<!-- program -->$/ { near = 1; next }
	near && /^```c$/ { inside = 1; near = 0; next }
	/^```$/ { inside = 0 }
	inside' "$1" >"$2"
[ -s "$2" ] || {
	echo "$1 has no block of C after <!-- program -->"
	exit 1
}
