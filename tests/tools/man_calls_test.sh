#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# man_calls_test.sh PAGES INCLUDE LIBRARIES EXPORTS... -- each call of the library has a man page, in which
# groff finds no fault; the program in each page is compiled as it is printed, and prints what the page says.
set -u
pages=$(realpath "$1") include=$(realpath "$2") libraries=$(realpath "$3")
exports=$(realpath "${@:4}")
bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}
# PAGE: what groff says of it, and mandoc where it is installed.  Pages have no date, so that they are the same
# whenever they are built.
faults_of() {
	groff -man -Tutf8 -ww -z "$1" 2>&1
	! command -v mandoc >/dev/null || mandoc -Tlint -W warning "$1" 2>&1 | grep -v ': missing date, '
}
printed() { # PAGE: as a reader sees it
	groff -man -Tascii -P-cbou "$1"
}
program_of() { # PAGE, printed
	awk '/^[A-Z]/ || /^       The program prints$/ { inside = 0 } inside { sub(/^           /, ""); print } /^EXAMPLES$/ { inside = 1 }' "$1"
}
output_of() { # PAGE, printed
	awk '/^[A-Z]/ { inside = 0 } inside && NF { sub(/^           /, ""); print } /^       The program prints$/ { inside = 1 }' "$1"
}
links_of() { # PROGRAM.c: what it has to be linked with, by the headers that it includes
	local -A needs=([policy]='-lgale-policy' [uv]='-luv' [ev]='-lev' [event]='-levent_core' [uring]='-luring')
	local header
	while read -r header; do
		echo "${needs[$header]:-}"
	done < <(sed -n 's|^#include <gale/\(.*\)\.h>$|\1|p' "$1")
	echo -lgale
}
run() { # NAME: compiles NAME.c, and runs it
	# shellcheck disable=SC2046 # flags are words
	cc -std=gnu11 -Wall -Wextra -Werror -I "$include" "$1.c" -o "$1" -pthread \
		-L "$libraries" -Wl,-rpath,"$libraries" $(links_of "$1.c") >"$1.log" 2>&1 || return
	timeout 60 "./$1" >"$1.said" 2>>"$1.log"
}
try() { # NAME PRINTED: is what the page says true?
	program_of "$2" >"$1.c"
	run "$1" || return
	output_of "$2" >"$1.wanted"
	[ ! -s "$1.wanted" ] || diff "$1.wanted" "$1.said" >>"$1.log"
}

count=0
for page in "$pages"/*.3; do
	name=$(basename "$page" .3)
	! grep -q '^\.so' "$page" || continue
	count=$((count + 1))
	said=$(faults_of "$page")
	[ -z "$said" ] || fail "$page: $said"
	printed "$page" >"$name.txt"
	try "$name" "$name.txt" || fail "the example of $name: $(cat "$name.log")"
done
[ "$count" -ge 20 ] || {
	echo "FAIL: there are $count pages"
	exit 1
}

# Nothing is left out: each call, and each error in the page of a call that returns it.
for name in $(cat $exports); do
	[ -f "$pages/$name.3" ] || fail "there is no page of $name"
done
while read -r link; do
	[ -f "$pages/../$link" ] || fail "$link is linked to and not there"
done < <(sed -n 's/^\.so //p' "$pages"/*.3)
for error in $(grep -oE '\bX\([A-Z_]+, [1-9]' "$include/gale/errors.h" | sed 's/X(//; s/,.*//'); do
	grep -l "^\\\\fBGALE_ERR_$error\\\\fR" "$pages"/*.3 | grep -qv gale_err_text || fail "no call returns GALE_ERR_$error"
done

# All of this can fail.
sed 's/^\.TP$/.TQX/' "$pages/gale_ask.3" >broken.3
[ -n "$(faults_of broken.3)" ] || fail "groff accepts anything"
sed 's/may pass: 2/may pass: 3/' gale_ask.txt >wrong.txt
try wrong wrong.txt && fail "an output that is wrong is not noticed"
sed 's/gale_tick(seat)/gale_tock(seat)/' gale_ask.txt >wrong.txt
try wrong wrong.txt && fail "a program that does not compile is not noticed"
exit $bad
