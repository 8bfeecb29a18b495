#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# selftest.sh LINT ROOT -- shows that a lint fails on what it is there for.
#
# Copies the tree, plants one fault after the other, and expects a failure that names it.
set -u
lint=$1
root=$2
here=$root/tests/lint
# In memory, if that can be: what is made and removed so often is slow on a disk.
copy=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$copy"' EXIT
bad=0

# expect_failure WORDS COMMAND...: it fails, and says these words (patterns of grep, one a line).
expect_failure() {
	local words=$1 said pattern
	shift
	if said=$("$@" 2>&1); then
		echo "not noticed: $words"
		bad=1
		return
	fi
	while read -r pattern; do
		grep -q -- "$pattern" <<<"$said" || {
			printf 'fails, but not for "%s":\n%s\n' "$pattern" "$said"
			bad=1
		}
	done <<<"$words"
}

# fresh: the tree as it is, without faults; no lint reads the corpus, which is half of it.
fresh() {
	rm -rf "${copy:?}"/*
	(cd "$root" && tar cf - --exclude=./build --exclude=./.git --exclude=./tests/fuzz/corpus . .clang-format) |
		tar xf - -C "$copy"
	mkdir -p "$copy"/{engine,runtime,stores,shards,face,tests/unit}
}
plant() { # FILE: adds standard input to it
	cat >>"$copy/$1"
}

# archive: compiles standard input as what an engine would be.
archive() {
	gcc -x c -c -o "$copy/fault.o" - && ar rcs "$copy/fault.a" "$copy/fault.o"
}

fresh
case $lint in
format)
	find "$copy" -name '*.[ch]' -delete # each takes a while
	echo 'int  planted( void ) { return 0 ; }' | plant engine/planted.c
	expect_failure 'engine/planted.c' "$here/format.sh" "$copy"
	;;
functions)
	{
		printf 'void planted(void)\n{\n'
		yes '	planted();' | head -71
		echo '}'
	} | plant engine/planted.c
	expect_failure 'engine/planted.c:2: 71 lines' "$here/functions.py" "$copy"
	;;
heads)
	printf '/*\n * planted.c -- a fault.\n */\n' | plant shards/planted.c
	expect_failure 'shards/planted.c: its head' "$here/heads.py" "$copy"
	;;
mutants)
	sed -i 's|credit_dies(word).ns > now.ns|now.ns < credit_dies(word).ns|' "$copy/engine/credit.h"
	expect_failure 'engine/credit.h: credit lives a tick longer' "$here/mutants.py" "$copy"
	;;
labels)
	labels=$here/labels.py
	printf '/*\n * planted.c -- a fault.\n *\n * Invariants  LEASE-2  All is well.\n */\n' | plant shards/planted.c
	expect_failure 'LEASE-2 is declared in engine/lease.h and in shards/planted.c' "$labels" "$copy"
	fresh
	wanted=
	for label in LEASE-''99 L''99 W-''99 B''7; do
		echo "/* Or else all is lost. $label */" | plant shards/planted.c
		wanted+="shards/planted.c:.: nothing declares $label"$'\n'
	done
	echo 'static const char *of = "the predecessor, W-''98";' | plant shards/planted.c
	wanted+="shards/planted.c:5: nothing declares W-"98$'\n'
	echo '\* As in W-''97.' | plant spec/planted.tla
	expect_failure "${wanted}spec/planted.tla:1: nothing declares W-"97 "$labels" "$copy"
	# Not there any more: a case, a mutant, a file, a case that docs name, the test of a row.  Then rows: no case of that
	# file; only the file, which has cases; no test; no column for tests.
	fresh
	sed -i 's/drift_is_taken_off/drift_is_added/' "$copy/tests/unit/mono_test.c"
	sed -i "s/'no quarantine'/'nothing'/" "$copy/tests/sim/mutants.sh"
	rm "$copy/shards/recall.c"
	sed -i 's/a_server_is_away_for_long/a_server_is_away/' "$copy/tests/stores/redis_weather_test.c"
	sed -i 's/`mutants.sh`: no allowance for drift/none/' "$copy/docs/failures.md"
	sed -Ei -e 's/^(\| W-1 .*: )r1_clocks_that_differ_do_not_matter/\1world_ends/' \
		-e 's/^(\| W-2 .*`): r2_a_reply_after_the_boundary_does_not_count_twice/\1/' \
		-e 's/^(\| F-23 .*\|) `bad_stores_test.c`.*/\1 `stores\/store.h` |/' \
		-e 's/^\| pitfall \| what it is \| shown by/| pitfall | what it is | where/' "$copy/spec/laws.md"
	row() { grep -n "^| $1 |" "$copy/spec/laws.md" | cut -d: -f1; }
	expect_failure "spec/laws.md:.*: mono_test.c has no drift_is_taken_off
		spec/laws.md:.*: mutants.sh has no no quarantine
		spec/laws.md:.*: there is no shards/recall.c
		docs/failures.md:.*: redis_weather_test.c has no a_server_is_away_for_long
		docs/failures.md:.*: the row names no test
		spec/laws.md:$(row W-1): requirements_test.c has no world_ends
		spec/laws.md:$(row W-2): the row names no test
		spec/laws.md:$(row F-23): the row names no test
		spec/laws.md:$(row HIREDIS-2): no column of the table says what shows it" "$labels" "$copy"
	;;
headers)
	echo 'static inline int *planted(void *it) { return it; }' | plant include/gale/http.h
	echo 'planted;' | plant include/gale/guard.h
	expect_failure 'include/gale/http.h is no c++
		include/gale/guard.h is no c$' "$here/headers.sh" "$copy"
	;;
layering)
	echo '#include "runtime/lock.h"' | plant engine/planted.c
	echo '#include "sim/world.h"' | plant face/planted.c
	echo '#include <time.h>' | plant engine/planted.h
	echo '#include "stores/memory.h"' | plant shards/planted.c
	echo '#include "planted.h"' | plant stores/planted.c
	expect_failure 'engine/ may not include runtime/lock.h
		face/ may not include sim/world.h
		engine/ may not include time.h
		shards/ may not include stores/memory.h
		write the path from the root' "$here/layering.py" "$copy"
	;;
links)
	echo '[a test](../tests/unit/planted_test.c)' | plant docs/words.md
	expect_failure 'docs/words.md:.*: there is no ../tests/unit/planted_test.c' "$here/links.py" "$copy"
	fresh
	echo '[a word](words.md#planted)' | plant docs/flow.md
	expect_failure 'docs/flow.md:.*: no heading is words.md#planted' "$here/links.py" "$copy"
	fresh
	printf '%0141d\n' 0 | plant spec/decisions/0001-integers-and-exact-parts.md
	expect_failure 'spec/decisions/0001-.*: over 140 columns' "$here/links.py" "$copy"
	;;
listed)
	echo 'int planted;' | plant tests/unit/planted_test.c
	expect_failure 'tests/unit/planted_test.c: no meson.build' "$here/listed.py" "$copy"
	;;
mention_errors)
	sed -i 's/GALE_ERR_COST\b/GALE_ERR_OTHER/g' "$copy"/tests/*/*.[ch]
	expect_failure 'no test mentions GALE_ERR_COST' "$here/mentions.py" errors "$copy"
	;;
mention_invariants)
	sed -i 's/\bRULE-4\b/RULE_4/g' "$copy"/tests/*/*.[ch]
	expect_failure 'no test mentions RULE-4' "$here/mentions.py" invariants "$copy"
	;;
ordering)
	pair() {
		printf '/*\n * planted.c -- a fault.\n *\n * Ordering\n *\n'
		printf ' *   planted  %s\n */\n' 'a stores it with release  ->  b loads it with acquire'
	}
	{
		pair
		echo 'void a(void) { store_release(&word, 1); } /* planted */'
	} | plant runtime/planted.c
	expect_failure "pair 'planted' has 1 ends" "$here/ordering.py" "$copy"
	echo 'void c(void) { store_release(&word, 2); } /* planted */' | plant face/planted.c
	expect_failure "pair 'planted' has no acquire" "$here/ordering.py" "$copy"
	pair | plant stores/planted.c
	expect_failure "pair 'planted' is also declared" "$here/ordering.py" "$copy"
	fresh
	echo 'int b(void) { return load_acquire(&word); } /* unheard_of */' | plant shards/planted.c
	echo 'int b(void) { return load_acquire(&word); }' | plant stores/planted.c
	echo 'int b(void) { return atomic_load(&word); }' | plant face/planted.c
	expect_failure 'shards/planted.c:.*which pair is this
		stores/planted.c:.*which pair is this
		say it in the words of' "$here/ordering.py" "$copy"
	;;
roles)
	echo '#define ON(x)' >"$copy/off"
	sed -i 's/^#define ON(x) .*/#define ON(x)/' "$copy/runtime/role.h"
	expect_failure '' "$here/roles.sh" "$copy"
	fresh
	sed -i 's/^#define OF(x) .*/#define OF(x)/' "$copy/runtime/role.h"
	expect_failure 'clang accepts FAULT_FIELD' "$here/roles.sh" "$copy"
	;;
pure)
	archive <<<'#include <stdlib.h>
	void *planted(void); void *planted(void) { return malloc(1); }'
	expect_failure 'needs malloc' "$here/pure.sh" "$copy/fault.a"
	archive <<<'static int planted; int count(void); int count(void) { return ++planted; }'
	expect_failure 'keeps the variable planted' "$here/pure.sh" "$copy/fault.a"
	: >"$copy/empty.s"
	gcc -c -o "$copy/fault.o" "$copy/empty.s" && rm "$copy/fault.a" && ar rcs "$copy/fault.a" "$copy/fault.o"
	expect_failure 'defines no functions' "$here/pure.sh" "$copy/fault.a"
	;;
parser)
	archive <<<'void redisReaderFree(void *); int redisAsyncCommand(void *); int planted(void *);
	int planted(void *it) { redisReaderFree(it); return redisAsyncCommand(it); }'
	expect_failure 'needs redisAsyncCommand' "$here/parser.sh" "$copy/fault.a"
	archive <<<'int planted; '
	expect_failure 'reads nothing by hiredis' "$here/parser.sh" "$copy/fault.a"
	;;
exports)
	gcc -x c -shared -fPIC -o "$copy/fault.so" - <<<'int gale_planted(void); int gale_planted(void) { return 0; }'
	expect_failure '+gale_planted' "$here/exports.sh" "$here/exports.txt" "$copy/fault.so"
	expect_failure '-gale_ask$' "$here/exports.sh" "$here/exports.txt" "$copy/fault.so"
	;;
parts)
	gcc -x c -shared -fPIC -Wl,--no-as-needed -lm -o "$copy/fault.so" - <<<'int planted; static int kept; int *find(void); int *find(void) { return &kept; }'
	expect_failure 'fault.so needs libm.so.6' "$here/parts.sh" "$copy/fault.so"
	expect_failure 'fault.so shows find planted' "$here/parts.sh" "$copy/fault.so" "$copy/fault.so"
	expect_failure 'has variables of its own: kept' "$here/parts.sh" "$copy/fault.so" "$copy/fault.so"
	;;
words)
	wanted=
	for room in include/gale coordinator engine face policy runtime shards sim stores stores/redis; do
		echo 'struct planted_thing {' | plant $room/planted.h
		wanted+="^$room/planted.h: docs/words.md explains no word of planted_thing"$'\n'
	done
	echo '| purse | Another. | |' | plant docs/words.md
	echo '| allocator | Another. | |' | plant docs/words.md
	expect_failure "${wanted}docs/words.md explains purse twice
		docs/words.md explains allocator twice" "$here/words.py" "$copy"
	rm "$copy"/face/*.h
	expect_failure 'face/ has no structs' "$here/words.py" "$copy"
	;;
*)
	echo "no fault is planted for $lint"
	bad=1
	;;
esac
exit $bad
