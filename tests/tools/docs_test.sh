#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# docs_test.sh GALE INCLUDE PAGE... -- what pages print is right: each block of C compiles, each URL is good, and
# each command gale sim or gale fleet of a block without a language ends as its page says.
#
# A block of C is the inside of a function, in a program that has the variables and functions below.
# The fleets run for a second.  Their server is the test's own: without redis-server this fails.
set -u
gale=$(realpath "$1") include=$(realpath "$2")
pages=$(realpath "${@:3}")
bad=0
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" && wait "$server"; rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}

# ---- Blocks of C -----------------------------------------------------------------

cat >around.h <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <gale/hold.h>
#include <gale/http.h>
#include <gale/policy.h>

extern struct gale_runtime *runtime;
extern struct gale_store *store;
extern struct gale_seat *seat;
extern struct gale_limiter *limiter, *per_minute, *per_day, *of_user, *of_model;
extern struct gale_budget *budget;
extern struct gale_tenant *tenant, *organisation;
extern struct gale_hold hold;
extern const char *key, *user, *model;
extern size_t key_len, user_len, model_len;
extern uint64_t cost, prompt, max_tokens, within;
extern const uint64_t *costs;
bool query_database(void);
void report_error(void), stream(void), stop_the_stream(void);
int refuse_by(size_t part);
void send_reply(int status, const char *lines, size_t length);
END
# Types and functions that a block defines stand before the function that has the rest of it.
around() { # BLOCK
	echo '#include "around.h"'
	awk -v RS= '/^(static |struct [a-z_]+ \{)/ { print }' "$1"
	printf 'int inside(void);\nint inside(void)\n{\n'
	awk -v RS= '!/^(static |struct [a-z_]+ \{)/ { print }' "$1"
	printf 'return 0;\n}\n'
}
compiles() { # BLOCK
	around "$1" >"$1.c"
	cc -std=gnu11 -Wall -Werror -Wno-unused -fsyntax-only -I . -I "$include" "$1.c" 2>"$1.log"
}

for page in $pages; do
	name=$(basename "$page" .md)
	awk -v name="$name" '/^```c$/ { file = name "." ++count; next } /^```$/ { file = "" } file { print >file }' "$page"
done
blocks=$(find . -name '*.[0-9]' | sort)
[ "$(wc -w <<<"$blocks")" -ge 9 ] || fail "there are few blocks of C: $blocks"
for block in $blocks; do
	compiles "$block" || fail "$block: $(cat "$block.log")"
done

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
	case $command in
	'gale fleet '*) command="$command --seconds 1" ;;
	esac
	# shellcheck disable=SC2086 # a command is words
	timeout 100 "$gale" ${command#gale } >said.log 2>&1 </dev/null
}
expect() { # STATUS COMMAND
	run "$2"
	local status=$?
	[ "$status" = "$1" ] || fail "$2 exits with $status: $(tail -n 20 said.log)"
}

# A page says of which command that the limit is exceeded: its clocks drift too much.
count=0
for page in $pages; do
	while read -r command; do
		count=$((count + 1))
		case $command in
		*' --drift 20000'*) expect 1 "$command" ;;
		*) expect 0 "$command" ;;
		esac
	done < <(awk '/^```/ { plain = !open && $0 == "```"; open = !open; next } plain && /^gale (sim|fleet) /' "$page" |
		sed 's/   *.*//')
done
[ "$count" -ge 7 ] || fail "there are $count commands"

# All of this can fail.
echo 'gale_wait(seat, limiter, key, key_len, 1);' >wrong.1
compiles wrong.1 && fail "C that does not compile is not noticed"
is_good 'redis://127.0.0.1?prefx=a' && fail "a URL that is wrong is not noticed"
exit $bad
