#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# docs_test.sh brief|long GALE BUILD PAGE... -- what pages print is right: each URL is good, and each command gale sim or gale
# fleet, in a block without a language or in a line, ends as its page says.  docs_programs_test.sh runs the blocks of C.
# In the long form, the programs in BUILD that pages name print their tables, and the page's own table is one of them.
#
# The fleets run for a second, or four.  Their server is the test's own: without redis-server this fails.
set -u
length=$1
gale=$(realpath "$2") build=$(realpath "$3")
pages=$(realpath "${@:4}")
bad=0
pictures=$(dirname "$(realpath "$4")")
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" && wait "$server"; rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}

# ---- URLs ------------------------------------------------------------------------

is_good() { # URL: gale check asks no server
	printf 'stores:\n  it:\n    url: "%s"\n...\n' "$1" >url.yaml
	"$gale" check url.yaml >url.log 2>&1
}
urls=$(cat $pages | awk '/^```/ { open = !open } open && /^(redis|postgres)[a-z+]*:/')
[ "$(wc -l <<<"$urls")" -ge 3 ] || fail "there are few URLs: $urls"
for url in $urls; do
	is_good "$url" || fail "$url: $(cat url.log)"
done

# ---- Commands --------------------------------------------------------------------

redis-server --port 0 --unixsocket "$work/socket" --save '' --appendonly no --dir "$work" >redis.log 2>&1 &
server=$!
for _ in $(seq 200); do
	[ -S socket ] && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.05
done
[ -S socket ] || fail "redis-server does not start: $(cat redis.log)"

run() { # COMMAND: with this gale and this server
	local command=${1/redis:\/\/127.0.0.1/redis://$work/socket}
	command=${command/ URL/ redis://$work/socket}
	case $command in
	*' --demand '*) ;; # it ends by itself
	'gale fleet --tenants '*) command="$command --seconds 4" ;; # the least
	'gale fleet '*) command="$command --seconds 1" ;;
	esac
	# shellcheck disable=SC2086 # a command is words
	timeout 200 "$gale" ${command#gale } >said.log 2>&1 </dev/null
}
expect() { # STATUS COMMAND
	run "$2"
	local status=$?
	[ "$status" = "$1" ] || fail "$2 exits with $status: $(tail -n 20 said.log)"
}

# Whether each tenant has its share depends on the processors that this machine has to spare; the bound does not.
expect_bound() { # COMMAND
	run "$1"
	case $?,$(tail -n 1 said.log) in
	'0,verdict held' | '1,verdict short') ;;
	*) fail "$1: $(tail -n 20 said.log)" ;;
	esac
}

# The picture beside the page is the one that its command draws, at least by the same gnuplot on the same machine.
expect_plot() { # COMMAND
	rm -f -- *.svg
	expect 0 "$1"
	for drawn in *.svg; do
		[ -s "$drawn" ] || fail "$1 draws nothing"
		[ "$(uname -m)" = x86_64 ] && [ "$(grep Produced "$drawn")" = "$(grep Produced "$pictures/$drawn")" ] || continue
		cmp "$drawn" "$pictures/$drawn" >&2 || fail "$1 draws another $drawn"
	done
}

# One that a line breaks off is not found.
commands_of() { # PAGE
	awk '/^```/ { plain = !open && $0 == "```"; open = !open; next } plain && /^gale (sim|fleet) /' "$1" | sed 's/   *.*//'
	grep -oE '`gale (sim|fleet) -[^`]+`' "$1" | tr -d '`'
}
# A page says of which command that the limit is exceeded: its clocks drift too much.
count=0
for page in $pages; do
	while read -r command; do
		count=$((count + 1))
		case $length-$command in
		*' --drift 20000'*) expect 1 "$command" ;;
		*' --plots .') expect_plot "$command" ;;
		# These take a processor for long: sim_test runs parts of the one, fleet_served_test the other.
		'brief-gale sim --guard' | 'brief-gale fleet '*' --demand '*) ;;
		*'-gale fleet --tenants '*) expect_bound "$command" ;;
		*) expect 0 "$command" ;;
		esac
	done < <(commands_of "$page")
done
[ "$count" -ge 17 ] || fail "there are $count commands"

# ---- Tables ----------------------------------------------------------------------

# They are of the simulator, and the same each time.
tabulate() { # COMMAND OUTPUT
	# shellcheck disable=SC2086 # a command is words
	timeout 500 "$build"/${1#build/dev/} >"$2" 2>&1 || fail "$1 exits with $?: $(tail -n 5 "$2")"
	[ "$(grep -c '^|--' "$2")" -ge 2 ] || fail "$1 prints no tables: $(head -n 5 "$2")"
}
of_page() { # PAGE: the table that sizing_test prints, too
	awk '/^\| sizing \| early/ { inside = 1 } /^$/ { inside = 0 } inside' "$1"
}
of_limit() { # OUTPUT: the demand is the limit
	awk '/^Demand:/ { inside = $2 == 100 } inside && /^\|/' "$1"
}
tables=0
for page in $pages; do
	while read -r command; do
		tables=$((tables + 1))
		[ "$length" = long ] || continue
		tabulate "$command" table
		[[ $command != */sizing_test* ]] || diff <(of_page "$page") <(of_limit table) >table.diff ||
			fail "the table of $command is another one: $(cat table.diff)"
	done < <(grep -oE '`build/dev/[a-z_/]+ --table`' "$page" | tr -d '`')
done
[ "$tables" = 2 ] || fail "there are $tables commands that print tables"

# All of this can fail.
is_good 'redis://127.0.0.1?prefx=a' && fail "a URL that is wrong is not noticed"
exit $bad
