#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# man_test.sh GALE OPERATE_TEST PAGE... -- each command has a man page, in which groff finds no fault,
# and which says all that --help says; the examples in the pages say what is printed below them.
set -u
gale=$(realpath "$1") operate_test=$(realpath "$2")
pages=$(realpath "${@:3}")
bad=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}
faults_of() { # PAGE: what groff says of it
	groff -man -Tascii -ww -z "$1" 2>&1
}
words() {
	tr -s '[:space:]' '\n' | sort -u
}
lacks() { # PAGE COMMAND...: words of the help that are not in the page
	comm -23 <("$gale" "${@:2}" --help | words) \
		<(groff -man -Tascii -P-cbou -rHY=0 -rLL=999n "$1" | words) | grep -vx 'usage:\|Exit\|status:'
}
page_of() { # COMMAND
	case $1 in
	--help | version) name=gale ;;
	forecast | watch | reset) name=gale-peek ;;
	*) name=gale-$1 ;;
	esac
	tr ' ' '\n' <<<"$pages" | grep "/$name\.1$"
}

for page in $pages; do
	said=$(faults_of "$page")
	[ -z "$said" ] || fail "$page: $said"
done

commands=$("$gale" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -vx 'version\|help')
[ "$(wc -w <<<"$commands")" -ge 9 ] || fail "gale help is not understood: $commands"
while read -r command; do
	page=$(page_of "${command%% *}")
	[ -f "$page" ] || {
		fail "there is no page of gale $command"
		continue
	}
	said=$(lacks "$page" $command)
	[ -z "$said" ] || fail "${page##*/} lacks of gale $command: $said"
done <<END
--help
$commands
fleet --guard
sim --guard
store init
store check
END

# What is typed, and what comes of it; an example without $ is the policy that the next one reads.
unroff='s/^\\&//; s/\\-/-/g; s/\\(aq/'"'"'/g; s/\\(ga/`/g; s/\\(ha/^/g; s/\\(ti/~/g; s/\\e/\\/g'
examples_of() { # PAGE...: as blocks of console in Markdown
	awk '/^\.RS 4$/ { getline; print "```console"; inside = 1; next }
		/^\.fi$/ && inside { print "```"; inside = 0 } inside' "$@" | sed "$unroff"
}
examples_of $pages >examples.md
awk '/^```console$/ { getline; if ($0 == "stores:") file = 1 } /^```$/ { file = 0 } file' examples.md >policy.yaml
[ -s policy.yaml ] || fail "there is no policy among the examples"
for page in $pages; do
	grep -q '^\$ gale ' "$page" || fail "$page has no example"
done
"$operate_test" "$gale" examples.md || bad=1

# All of this can fail.
page=$(page_of peek)
sed 's/^\.TP$/.TQX/' "$page" >broken.1
[ -n "$(faults_of broken.1)" ] || fail "groff accepts anything"
grep -v 'first' "$page" >short.1
[ "$(lacks short.1 peek | tr '\n' ' ')" = '--first-weekday DAY ' ] || fail "a flag that is not there is not missed: $(lacks short.1 peek)"
examples_of "$page" | sed 's/100 units/100 pieces/' >wrong.md
"$operate_test" "$gale" wrong.md >/dev/null && fail "an example that is wrong is not noticed"
exit $bad
