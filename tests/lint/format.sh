#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# format.sh ROOT -- .clang-format decides; "make format" obeys.
set -eu
cd "$1"

# git knows which files are ours; without it, all outside of build/ are.
files=$(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cc' 2>/dev/null ||
	find . -path ./build -prune -o -name '*.[ch]' -print -o -name '*.cc' -print)
[ -n "$files" ] || {
	echo "no C files found"
	exit 1
}
printf '%s\n' "$files" | xargs clang-format-14 --dry-run -Werror
