#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# readme_test.sh README.md TAKE INCLUDE LIBRARIES -- the README's program does what its comments say, as
# printed; and so it does with the lines that guard a backend.  TAKE is readme-program.sh.
set -u
readme=$(realpath "$1") take=$(realpath "$2") include=$(realpath "$3") libraries=$(realpath "$4")
bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}
prints() { # PROGRAM.c WANTED: what it prints, in one line
	# shellcheck disable=SC2015 # the program runs only if it was compiled
	cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror -I "$include" "$1" -o program \
		-L "$libraries" -Wl,-rpath,"$libraries" -lgale >log 2>&1 &&
		said=$(timeout 60 ./program 2>>log | tr '\n' ' ') && [ "$said" = "$2 " ]
}
five='may pass may pass may pass denied denied'

"$take" "$readme" first.c guarded.c || exit 1
prints first.c "$five" || fail "the program prints ${said-nothing}: $(cat log)"
prints guarded.c "$five queried" || fail "with a guard it prints ${said-nothing}: $(cat log)"

# All of this can fail.
sed 's/entry.verdict == GALE_ALLOW/entry.verdict == GALE_DENY/' guarded.c >wrong.c
prints wrong.c "$five queried" && fail "a backend that is not called is not noticed"
sed 's/gale_wait(/gale_weight(/' first.c >wrong.c
prints wrong.c "$five" && fail "a program that does not compile is not noticed"
sed '/^```c$/d' "$readme" >empty.md
"$take" empty.md wrong.c 2>log && fail "a README without a program is not noticed"
exit $bad
