#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# check_test.sh GALE PAGE.md -- what gale check says of files, and its exit status.
set -u
gale=$(realpath "$1") page=$(realpath "$2")
bad=0 rights=
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# says STATUS WORDS ARGUMENT...: the status, and all that is printed.
says() {
	local status=$1 words=$2 said got
	shift 2
	# shellcheck disable=SC2086 # rights are words
	said=$(timeout 30 $rights "$gale" check "$@" 2>&1)
	got=$?
	if [ "$got" != "$status" ] || [ "$said" != "$words" ]; then
		printf 'FAIL: gale check %s: %s, "%s"\n' "$*" "$got" "$said"
		bad=1
	fi
}

# The policies that the page prints, as printed.
awk '/^```yaml$/ { file = "page" ++count ".yaml"; next } /^```$/ { file = "" } file { print >file }' "$page"
[ -s page3.yaml ] || {
	echo "FAIL: $page prints no policies"
	bad=1
}
for file in page*.yaml; do
	says 0 "$file: is a policy" "$file"
done

sed 's/per minute/per fortnight/' page1.yaml >wrong.yaml
says 1 'wrong.yaml:10: limiters.api.limit: "1000 per fortnight" is no rate: write units and a time, such as 100/s or 1000 per 5 min' wrong.yaml
says 1 'none.yaml: there is no such file: look for a typing error in the path' none.yaml
says 1 '.: it is a directory: name the file in it' .
# Broken, half written, and out of reach.
head -n 5 page1.yaml >half.yaml
says 1 'half.yaml:6: yaml: the last line must be "...": without it the file may be only half written' half.yaml
printf 'stores: {a: {url: "mem' >torn.yaml
says 1 'torn.yaml:1: yaml: while scanning a quoted scalar, found unexpected end of stream: look for a quote, a bracket or a space that is missing' torn.yaml
: >empty.yaml
says 1 'empty.yaml:1: yaml: the policy is empty: write what it defines, as in limiters:' empty.yaml
printf 'stores: \0\n...\n' >binary.yaml
says 1 'binary.yaml:1: yaml: a NUL is not allowed: write the policy as text in UTF-8' binary.yaml
cp page1.yaml locked.yaml
chmod 0 locked.yaml
[ "$(id -u)" != 0 ] || rights='setpriv --bounding-set=-dac_override,-dac_read_search'
says 1 'locked.yaml: this process may not read it: give its user the right to, as with chmod' locked.yaml
rights=
says 2 'gale check: it takes the file of a policy, and none is given'
says 2 'gale check: --bogus: unknown; there is only --help' --bogus

# A program's predictor may be there: so this is not wrong.
sed 's/mode: leased/mode: leased\n    lease: {sizing: hedge}/' page1.yaml >hedge.yaml
says 0 'hedge.yaml: is a policy' hedge.yaml

# No server is asked, and none is looked up.
printf 'stores: {s: {url: "redis://no.such.host.invalid"}}\n...\n' >far.yaml
says 0 'far.yaml: is a policy' far.yaml

case $(timeout 30 "$gale" help check) in
'usage: gale check FILE'*'Exit status: 0 '*) ;;
*)
	echo "FAIL: gale help check"
	bad=1
	;;
esac
"$gale" check page1.yaml >/dev/full 2>&1
[ $? = 1 ] || {
	echo "FAIL: what is printed has to arrive"
	bad=1
}
exit $bad
