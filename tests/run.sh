#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# run.sh [NAME...] -- every test, in every configuration that matters.
#
#     gcc          debugging build, every suite, the model at full length
#     clang        the same under -Wthread-safety: unit, model, interleave, sim, lint
#     asan         gcc, AddressSanitizer and UndefinedBehaviorSanitizer
#     tsan         clang, ThreadSanitizer: what has threads; models, simulations and the suite
#                  "single" have one
#     release      what users get: unit tests, each benchmark once, then installed into an
#                  empty prefix, where the README's program must compile as printed
#     install      make build, install and uninstall, and who finds what is installed
#     fuzz         each fuzz target for GALE_FUZZ_SECONDS (30)
#
# Everything happens under build/test.  A suite without tests and a test that was skipped
# count as failed.  What failed while the machine stood still is run once more, by itself, and
# that is said.  The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
out=build/test
mkdir -p "$out"
: >"$out/results" # one line per test: pass or fail, then where to look
: >"$out/standstills"
# No child of this shell: bash's wait now and then waits for a child that is no job, too.
(tests/standstill.py "$out/standstills" $$ &)
trap 'exit 130' INT TERM

export ASAN_OPTIONS=detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

say() {
	printf '%s\n' "$*"
}
record() { # pass|fail NAME [WHERE]
	printf '%s\t%s\t%s\n' "$@" >>"$out/results"
}
count() { # pass|fail [NAME]: how many were recorded, of those whose names begin so
	awk -F'\t' -v what="$1" -v name="${2-}" \
		'$1 == what && index($2, name) == 1 { n++ } END { print n + 0 }' "$out/results"
}
report() { # NAME SINCE: one line about the tests whose names begin so
	printf '   %-22s %4d passed %4d failed %5d s\n' \
		"$1" "$(count pass "$1 ")" "$(count fail "$1 ")" $((SECONDS - $2))
}

# What the logs of failures say of why: of a long run's output, the end is what remains.
whys() {
	local log
	awk -F'\t' '$1 == "fail" { sub(/^[A-Z]+, /, "", $3); print $3 }' "$out/results" | sort -u |
		while read -r log; do
			[ -f "$log" ] || continue
			say "-- $log"
			grep -aE '^\[ *(ERROR|LINE|FAILED) *\]|^[^ ]+\.c:[0-9]+|ERROR: |WARNING: |SUMMARY: |runtime error' "$log" |
				tail -n 40
		done
}

# try NAME COMMAND...: one test; its output goes to a log, and is shown if it fails.
try() {
	local name=$1 log
	log=$out/log/${1//[ \/]/-}.txt
	shift
	mkdir -p "$out/log"
	if "$@" >"$log" 2>&1; then
		record pass "$name"
		return 0
	fi
	record fail "$name" "$log"
	say "-- $name failed: $*"
	tail -n 40 "$log"
	return 1
}

# build NAME COMPILER OPTION...: into build/test/NAME.
build() {
	local name=$1 cc=$2 dir=$out/$1 log=$out/$1.build.txt again=
	shift 2
	say "== $name: building ($cc $*)"
	[ -f "$dir/build.ninja" ] && again=--reconfigure
	if CC=$cc meson setup "$dir" $again "$@" >"$log" 2>&1 && ninja -C "$dir" >>"$log" 2>&1; then
		return 0
	fi
	record fail "$name build" "$log"
	say "-- $name does not build:"
	grep -E -A5 'error|ERROR|FAILED' "$log" | head -n 60
	return 1
}

# A kernel that takes 3 ms to begin a process and to end it, as where it is itself a guest's guest,
# has no processor left for servers that wait.
begins_slowly() {
	local since=${EPOCHREALTIME/[.,]/} i
	for ((i = 0; i < 100; i++)); do /bin/true; done
	[ $((${EPOCHREALTIME/[.,]/} - since)) -gt 300000 ]
}

# How many tests of a suite at a time: those that talk to servers mostly wait, but not as
# long when each step of theirs takes ten times as long.
together() { # NAME SUITE[+SUITE...]
	case $1-$2 in
	*-stores*) if begins_slowly; then echo 2 && return; fi ;;
	esac
	case $1-$2 in
	tsan-stores*) echo 3 ;;
	asan-stores*) echo 4 ;;
	*-stores*) echo 6 ;;
	*) nproc ;;
	esac
}

# mesons NAME LOG WHICH...: runs these tests of build/test/NAME.
mesons() {
	local log=$out/$1/meson-logs/$2 but=()
	[ "$1" = tsan ] && but=(--no-suite single)
	rm -f "$log.json"
	meson test -C "$out/$1" --no-rebuild --logbase "$2" --timeout-multiplier 3 --print-errorlogs \
		"${but[@]}" "${@:3}" >"$log.out" 2>&1
}

# suites NAME SUITE[+SUITE...]...: runs these suites of build/test/NAME; those that a plus joins
# at the same time.
suites() {
	local name=$1 suite log since which again
	shift
	for suite; do
		since=$SECONDS
		log=$out/$name/meson-logs/$suite
		read -ra which <<<"${suite//+/ }"
		mesons "$name" "$suite" --num-processes "$(together "$name" "$suite")" "${which[@]/#/--suite=}"
		tests/tally.py "$name $suite" "$log" "$out/standstills" >"$log.tally"
		grep -v '^again' "$log.tally" >>"$out/results"
		mapfile -t again < <(sed -n 's/^again\t//p' "$log.tally")
		if [ ${#again[@]} -gt 0 ]; then
			say "-- once more, as the machine stood still: ${again[*]}"
			tail -n 80 "$log.out"
			log=$log-again
			mesons "$name" "$suite-again" --num-processes 1 "${again[@]}"
			tests/tally.py "$name $suite" "$log" >>"$out/results"
		fi
		report "$name $suite" "$since"
		if grep -q "^fail	$name $suite " "$out/results"; then
			tail -n 80 "$log.out"
		fi
	done
}

# ---- Configurations ------------------------------------------------------------------

test_gcc() {
	build gcc gcc -Dmodel_steps=1000000 && suites gcc unit+model+interleave+sim+spec stores+tools torture lint
}
test_clang() {
	build clang clang && suites clang unit+model+interleave+sim lint
}
test_asan() {
	build asan gcc -Db_sanitize=address,undefined && suites asan unit+model+sim+spec stores+tools torture
}
test_tsan() {
	# Libraries may leave the sanitizer's symbols to the program: no b_lundef.
	build tsan clang -Db_sanitize=thread -Db_lundef=false && suites tsan unit stores+tools torture
}
test_release() {
	build release gcc --buildtype=release -Doptimization=2 -Dbench=true --prefix="$top/$out/prefix" --libdir=lib &&
		suites release unit bench && installed
}

# program NAME COMPILER LANGUAGE FLAG...: compiles the README's program, and runs it.
program() {
	local name=$1 cc=$2 language=$3
	shift 3
	# shellcheck disable=SC2046 # flags are words
	"$cc" -x "$language" -Wall -Wextra -Wpedantic -Werror "$out/readme.txt" -x none \
		$(pkg-config "$@" --cflags --libs gale | sed "s/-lgale/$library/") \
		-o "$out/readme" || return
	LD_LIBRARY_PATH=$out/prefix/lib timeout 20 "$out/readme"
}
installed() {
	local since=$SECONDS cc
	rm -rf "$out/prefix"
	export PKG_CONFIG_PATH=$top/$out/prefix/lib/pkgconfig
	try "prefix meson-install" meson install -C "$out/release" --no-rebuild &&
		try "prefix version" test "$(pkg-config --modversion gale)" = "$(version)" &&
		try "prefix sim" "$out/prefix/bin/gale" sim --seeds 0-9 --lost 5 &&
		try "prefix readme" tests/readme-program.sh README.md "$out/readme.txt" &&
		for cc in 'gcc c' 'clang c' 'g++ c++'; do
			# shellcheck disable=SC2086 # two words
			library=-lgale try "prefix shared ${cc% *}" program readme $cc
			# shellcheck disable=SC2086
			library=-l:libgale.a try "prefix static ${cc% *}" program readme $cc --static
		done
	report prefix "$since"
}
version() {
	sed -n "s/^  version: '\(.*\)',.*/\1/p" meson.build
}

test_install() {
	local since=$SECONDS
	say "== install: building"
	try "install install_test" tests/install/install_test.sh "$out/install"
	report install "$since"
}

# New inputs and crashes go to the build folder; a person moves what is worth keeping
# into tests/fuzz/corpus.
fuzz_one() {
	local target=$1 seconds=${GALE_FUZZ_SECONDS:-30} work=$out/fuzz/work/$1
	mkdir -p "$work/corpus"
	timeout -k 10 $((seconds + 120)) "$out/fuzz/tests/fuzz/${target}_fuzz" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$work/" "$work/corpus" "tests/fuzz/corpus/$target"
}
test_fuzz() {
	local since=$SECONDS source target
	build fuzz clang -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false || return
	for source in tests/fuzz/*_fuzz.c; do
		target=$(basename "$source" _fuzz.c)
		try "fuzz $target" fuzz_one "$target" &
		# Two at a time.
		[ "$(jobs -rp | wc -l)" -ge 2 ] && wait -n
	done
	wait
	report fuzz "$since"
}

# ---- The run -------------------------------------------------------------------------

[ $# -gt 0 ] || set -- gcc clang asan tsan release install fuzz
for name; do
	declare -F "test_$name" >/dev/null || {
		say "no configuration is called $name"
		exit 2
	}
	"test_$name"
done

passed=$(count pass)
failed=$(count fail)
say "== $((SECONDS / 60)) min $((SECONDS % 60)) s"
awk '{ s += $2 - $1 } END { if (NR) print "a processor stood still " NR " times, for " s " s in all" }' \
	"$out/standstills"
whys
awk -F'\t' '$1 == "fail" { print "failed: " $2 "  (" $3 ")" }' "$out/results"
say "$passed passed, $failed failed" | tee "$out/summary"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
