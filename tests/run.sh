#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# run.sh [all] [NAME...] -- every test, in every configuration that matters, or in those named.
#
#              by default, in ten minutes            with "all", in an hour or more
#     gcc      all suites that asan does not run     every suite, models at 1,000,000 steps
#     asan     clang: unit, model, fuzz, torture     gcc: every suite but interleave and lint
#     tsan     clang: unit, torture                  unit, stores, tools, alone, torture
#     clang    reads all that asan has not           builds everything: unit, model,
#              compiled, for warnings                interleave, sim, lint
#     release  each benchmark once; installed        unit tests and make prove, too
#     install  make build, install and uninstall, and   Debian packages, the ABI and
#              who finds what is installed              the tarball, too
#     fuzz     (not by default)                      60 seconds of each target, or GALE_FUZZ_SECONDS
#     newer    (not by default)                      hiredis and Valkey, as newer Debians have them
#
# asan is AddressSanitizer and UndefinedBehaviorSanitizer.  tsan, ThreadSanitizer, has what has
# threads: models, simulations and the suite "single" have one, or watch one.  The suite "forks" begins processes
# from a process with threads, which it does not bear.  "plain" is what no sanitizer bears.  clang checks
# -Wthread-safety.
# By default, what comes after gcc is built while its tests of servers wait; benchmarks, of which no
# figure is judged, and what is installed are tried while the sanitizers' tests run; and tests are built
# with -Dbrief=true: they have fewer rounds, seeds and seconds.  So that less is to be built, objects
# have no types and variables for a debugger, and of tests those alone are optimised that take long
# (meson.build).  What is installed goes into an empty prefix, where the README's program must compile
# as printed.  The suite "fuzz" runs each fuzz target once over what was kept for it; the
# configuration, which has a build of its own, looks for more.
#
# Everything happens under build/test, or build/test-all.  A suite without tests and a test that
# was skipped count as failed.  What failed while the machine stood still is run once more, by
# itself, and that is said.  The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
out=build/test
brief=true
if [ "${1-}" = all ]; then
	out=build/test-all
	brief=false
	shift
fi
mkdir -p "$out" build/test
rm -f "$out"/*.built
: >"$out/results" # one line per test: pass or fail, then where to look
: >"$out/standstills"
# The first test that starts a PostgreSQL keeps here what initdb made, for all others.
export GALE_TEST_CLUSTER=$top/$out/cluster.tar
rm -f "$GALE_TEST_CLUSTER"*
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

# build NAME SUITES COMPILER OPTION...: into $out/NAME, what these suites need, or everything if
# there are none.  What beneath has built is not built again.
build() {
	local name=$1 suites=$2 cc=$3 dir=$out/$1 log=$out/$1.build.txt again='' linker=gold
	shift 3
	[ "$name" = release ] && linker=bfd # as users have it
	if [ -f "$dir.built" ]; then
		[ "$(cat "$dir.built")" = 0 ]
		return
	fi
	say "== $name: building ($cc $*)"
	[ -f "$dir/build.ninja" ] && again=--reconfigure
	if CC=$cc CC_LD=$linker meson setup "$dir" $again -Dbrief=$brief "$@" >"$log" 2>&1 &&
		ninjas "$dir" "$suites" >>"$log" 2>&1; then
		echo 0 >"$dir.built"
		return 0
	fi
	echo 1 >"$dir.built"
	record fail "$name build" "$log"
	say "-- $name does not build:"
	grep -E -A5 'error|ERROR|FAILED' "$log" | head -n 60
	return 1
}

ninjas() { # FOLDER SUITES
	local targets=()
	if [ -n "$2" ]; then
		# shellcheck disable=SC2086 # suites are words
		mapfile -t targets < <(tests/targets.py "$1" $2)
		[ ${#targets[@]} -gt 0 ] || return
	fi
	ninja -C "$1" "${targets[@]}"
}

# beneath NAME...: builds what these configurations need later, with the time of the processors that is left
# while the tests of servers wait.
beneath() {
	local name
	$brief || return 0
	chrt --idle --pid 0 "$BASHPID" || renice -n 19 "$BASHPID"
	for name; do
		case $name in
		clang) read_clang ;;
		install) ;; # it builds where it installs
		*) "build_$name" ;;
		esac
	done
}

# aside NAME...: begins those of release and install that are named, with less of the processors: they
# mostly wait.
aside_is=
aside() {
	local name some=()
	$brief && [ -z "$aside_is" ] || return 0
	for name; do
		case $name in release | install) some+=("$name") ;; esac
	done
	[ ${#some[@]} -gt 0 ] || return 0
	(
		renice -n 5 "$BASHPID" >/dev/null
		for name in "${some[@]}"; do "test_$name"; done
	) &
	aside_is=$!
}
joined() { # NAME: waits until it is over, if it was begun aside; else false
	case $1 in release | install) ;; *) return 1 ;; esac
	[ -n "$aside_is" ] && wait "$aside_is"
	[ -n "$aside_is" ]
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
	*) echo $(($(nproc) + 1)) ;; # some of them wait, too
	esac
}

# mesons NAME LOG WHICH...: runs these tests of build/test/NAME.
mesons() {
	local log=$out/$1/meson-logs/$2 but=()
	[ "$1" = tsan ] && but=(--no-suite single --no-suite forks)
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

build_gcc() {
	if $brief; then
		build gcc 'plain interleave sim spec stores tools alone lint' gcc -Dmodel_steps=50000 -Doptimization=0 -Dc_args=-g0
	else
		build gcc '' gcc -Dmodel_steps=1000000
	fi
}
test_gcc() { # NAME...: what comes after it
	local builds
	build_gcc || return
	if $brief; then
		suites gcc plain+interleave+sim+spec+lint
	else
		suites gcc unit+model+fuzz+interleave+sim+spec torture lint
	fi
	beneath "$@" &
	builds=$!
	suites gcc stores+tools
	wait "$builds"
	suites gcc alone
}

build_clang() {
	build clang '' clang
}
# Not what clang has compiled for asan, in this run.
clang_reads() {
	local has=() again=
	[ "$(cat "$out/asan.built" 2>/dev/null)" != 0 ] || has=("$out/asan")
	[ -f "$out/clang/build.ninja" ] && again=--reconfigure
	CC=clang meson setup "$out/clang" $again -Dbrief=true &&
		tests/syntax.py "$out/clang" "${has[@]}"
}
read_clang() { # once in a run
	[ -f "$out/clang.built" ] && return
	say "== clang: reading"
	try "clang build" clang_reads
	echo $? >"$out/clang.built"
}
test_clang() {
	if $brief; then
		read_clang
	else
		build_clang && suites clang unit+model+fuzz+interleave+sim lint
	fi
}

# What clang builds for sanitizers has lines to tell of, and no more.
light() { # LEVEL
	if $brief; then
		echo -Doptimization="$1" -Dc_args=-gline-tables-only
	fi
}

# gcc takes more than twice as long for these sanitizers.  Libraries may leave their symbols to
# the program: no b_lundef.
build_asan() {
	if $brief; then
		# shellcheck disable=SC2046 # options are words
		build asan 'unit model fuzz torture' clang -Db_sanitize=address,undefined -Db_lundef=false $(light 0)
	else
		build asan '' gcc -Db_sanitize=address,undefined
	fi
}
test_asan() { # NAME...: what comes after it
	local which=(unit+model+fuzz+torture)
	$brief || which=(unit+model+fuzz+sim+spec stores+tools alone torture)
	build_asan || return
	aside "$@"
	suites asan "${which[@]}"
}

build_tsan() {
	# shellcheck disable=SC2046 # options are words
	build tsan "$($brief && echo 'unit torture but single')" clang -Db_sanitize=thread -Db_lundef=false $(light 0)
}
test_tsan() { # NAME...: what comes after it
	local which=(unit+torture)
	$brief || which=(unit stores+tools alone torture)
	build_tsan || return
	aside "$@"
	suites tsan "${which[@]}"
}

build_release() {
	local tests=true
	$brief && tests=false
	build release '' gcc --buildtype=release -Doptimization=2 -Dbench=true -Dtests=$tests -Ddefault_library=both \
		--prefix="$top/$out/prefix" --libdir=lib
}
test_release() {
	local which=(bench)
	$brief || which=(unit bench)
	build_release || return
	$brief || try "release prove" spec/prove.py "$out/release/spec/gale_explore"
	suites release "${which[@]}" && installed
}

# program NAME COMPILER LANGUAGE FLAG...: compiles the README's program, and runs it.
program() {
	local name=$1 cc=$2 language=$3 standard=()
	shift 3
	# C++ knows initializers by name since 2020, and warns of the fields that they leave out.
	[ "$language" = c ] || standard=(-std=c++20 -Wno-missing-field-initializers)
	# shellcheck disable=SC2046 # flags are words
	"$cc" "${standard[@]}" -x "$language" -Wall -Wextra -Wpedantic -Werror "$out/readme.txt" -x none \
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
	if $brief && [ -f "$out/release/build.ninja" ]; then
		try "install install_test" tests/install/install_test.sh "$out/install" "$out/release"
	else
		try "install install_test" tests/install/install_test.sh "$out/install"
	fi
	$brief || try "install debian_test" tests/install/debian_test.sh "$out/debian"
	$brief || try "install dist_test" tests/install/dist_test.py "$out/dist"
	report install "$since"
}

# New inputs and crashes go to the build folder; a person moves what is worth keeping
# into tests/fuzz/corpus.
fuzz_one() {
	local target=$1 seconds=$2 work=$out/fuzz/work/$1
	mkdir -p "$work/corpus"
	timeout -k 10 $((seconds + 120)) "$out/fuzz/tests/fuzz/${target}_fuzz" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$work/" "$work/corpus" "tests/fuzz/corpus/$target"
}
# As OSS-Fuzz builds them: each target reads its corpus once.
oss_fuzz() {
	local work=$top/$out/oss-fuzz target
	rm -rf "$work"
	mkdir -p "$work/out"
	CC=clang CXX=clang++ CFLAGS='-O1 -fsanitize=address,undefined' WORK=$work OUT=$work/out \
		LIB_FUZZING_ENGINE=-fsanitize=fuzzer tests/fuzz/oss-fuzz/build.sh || return
	for target in "$work"/out/*_fuzz; do
		unzip -q "${target}_seed_corpus.zip" -d "$target.corpus" &&
			"$target" -runs=0 "$target.corpus" || return
	done
	[ "$(find "$work/out" -maxdepth 1 -name '*_fuzz' | wc -l)" = "$(find tests/fuzz -name '*_fuzz.c' | wc -l)" ]
}
build_fuzz() {
	# shellcheck disable=SC2046 # options are words
	build fuzz '' clang -Dfuzz=true -Dtools=false -Ddefault_library=static -Db_sanitize=address,undefined \
		-Db_lundef=false $(light 0)
}
test_fuzz() {
	local since=$SECONDS source target seconds=${GALE_FUZZ_SECONDS:-60}
	build_fuzz || return
	for source in tests/fuzz/*_fuzz.c; do
		target=$(basename "$source" _fuzz.c)
		try "fuzz $target" fuzz_one "$target" "$seconds" &
		# Two at a time.
		[ "$(jobs -rp | wc -l)" -ge 2 ] && wait -n
	done
	wait
	try "fuzz oss-fuzz" oss_fuzz
	report fuzz "$since"
}

test_newer() {
	local since=$SECONDS
	say "== newer: building"
	try "newer hiredis-and-valkey" tests/newer.sh "$out/newer"
	report newer "$since"
}

# ---- The run -------------------------------------------------------------------------

if [ $# = 0 ]; then
	set -- gcc asan tsan clang release install
	$brief || set -- "$@" fuzz newer
fi
for name; do
	declare -F "test_$name" >/dev/null || {
		say "no configuration is called $name"
		exit 2
	}
done
while [ $# -gt 0 ]; do
	name=$1
	shift
	joined "$name" || "test_$name" "$@"
done

passed=$(count pass)
failed=$(count fail)
say "== $((SECONDS / 60)) min $((SECONDS % 60)) s"
awk '{ s += $2 - $1 } END { if (NR) print "a processor stood still " NR " times, for " s " s in all" }' \
	"$out/standstills"
command -v valkey-server >/dev/null ||
	say "without valkey-server, which Debian 12 has in its backports: conformance_valkey_test was not run; \
make test ARGS=newer fetches it"
whys
awk -F'\t' '$1 == "fail" { print "failed: " $2 "  (" $3 ")" }' "$out/results"
say "$passed passed, $failed failed" | tee build/test/summary
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
