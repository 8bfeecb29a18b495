#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# docs_programs_test.sh GALE WORLD.c ROOT LIBRARIES PAGE... -- each block of C that a page prints is compiled
# as printed, runs, and does what the page says.
#
# A block is the inside of a function; WORLD.c and its header have what stands around it.
# policy.yaml is the first block of YAML of policy.md.  Its server is the test's own, on a socket in a
# temporary folder, and stands for the page's redis://127.0.0.1.  Without redis-server this fails.
set -u
gale=$(realpath "$1") world=$(realpath "$2") root=$(realpath "$3") libraries=$(realpath "$4")
pages=$(realpath "${@:5}")
bad=0
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" && wait "$server"; rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}
compile() { # FLAG...
	cc -std=gnu11 -Wall -Werror -Wno-unused -I "$root" -I "$root/include" "$@" >log 2>&1
}
# Types and functions that a block defines stand before the function that has the rest of it.
around() { # BLOCK
	echo '#include "tests/tools/docs_world.h"'
	awk -v RS= '/^(static |struct [a-z_]+ \{)/ { print }' "$1"
	printf 'int %s(void);\nint %s(void)\n{\nBEFORE_%s\n' "$1" "$1" "$1"
	awk -v RS= '!/^(static |struct [a-z_]+ \{)/ { print }' "$1"
	printf 'AFTER_%s\nreturn 0;\n}\n' "$1"
}
compile_block() { # BLOCK
	around "$1" >"$1.c"
	compile -c "$1.c" -o "$1.o"
}
run_blocks() { # BLOCK...
	compile -D "BLOCKS=$(printf 'BLOCK(%s) ' "$@")" "$world" "${@/%/.o}" -o world \
		-L "$libraries" -Wl,-rpath,"$libraries" -lgale -lgale-policy &&
		timeout 100 ./world "$@" >log 2>&1
}

# ---- The blocks --------------------------------------------------------------------

for page in $pages; do
	name=$(basename "$page" .md)
	awk -v name="$name" '/^```c$/ { file = name "_" ++count; next } /^```$/ { file = "" } file { print >file }' "$page"
	[ "$name" != policy ] || awk '/^```/ { inside = $0 == "```yaml" && !count++; next } inside' "$page" |
		sed "s#redis://127.0.0.1#redis://$work/socket#" >policy.yaml
done
blocks=$(find . -name '*_[0-9]' -printf '%f\n' | sort)
[ "$(wc -w <<<"$blocks")" -ge 11 ] || fail "there are few blocks of C: $blocks"

redis-server --port 0 --unixsocket "$work/socket" --save '' --appendonly no --dir "$work" >redis.log 2>&1 &
server=$!
for _ in $(seq 200); do
	[ -S socket ] && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.05
done
[ -S socket ] || fail "redis-server does not start: $(cat redis.log)"
"$gale" store init "redis://$work/socket" >log 2>&1 || fail "gale store init: $(cat log)"

for block in $blocks; do
	compile_block "$block" || fail "$block: $(cat log)"
done
# shellcheck disable=SC2086 # names are words
run_blocks $blocks || fail "$(cat log)"

# ---- All of this can fail ----------------------------------------------------------

sed -i 's/200, GALE_MINUTES/201, GALE_MINUTES/' changing_1
compile_block changing_1 && ! run_blocks changing_1 && grep -q 'not so: .*limit == 200' log ||
	fail "a block that does not do what its page says is not noticed"
sed -i 's/gale_wait(seat, /gale_wait(/' http_1
compile_block http_1 && fail "C that does not compile is not noticed"
exit $bad
