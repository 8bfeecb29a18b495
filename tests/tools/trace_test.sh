#!/bin/bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# trace_test.sh OPERATE.MD TRACED.c ROOT LIBRARIES -- the command for a tracer that the page prints shows what a
# process leases, and the arguments of that point are those that the page lists.
#
# The process is TRACED.c with the library of this build: both stand for the page's process and path.
# Without bpftrace, root, and a kernel that lets root watch processes, this fails.
set -u
page=$(realpath "$1") traced=$(realpath "$2") root=$(realpath "$3") libraries=$(realpath "$4")
bad=0
work=$(mktemp -d)
process= tracer=
trap 'kill $process $tracer 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() {
	echo "FAIL: $*"
	bad=1
}
library=$libraries/libgale.so

# ---- The process -------------------------------------------------------------------

command -v bpftrace >bpftrace.log || fail "bpftrace is not installed: packages.txt has it, in [trace]"
[ "$(id -u)" = 0 ] || fail "bpftrace needs root: run this test as root"
[ $bad = 0 ] || exit 1
cc -std=c11 -I "$root/include" "$traced" -o traced -L "$libraries" -Wl,-rpath,"$libraries" -lgale >log 2>&1 ||
	fail "$(cat log)"
./traced >said.log &
process=$!
for _ in $(seq 600); do
	[ -s said.log ] && break
	kill -0 "$process" 2>/dev/null || break
	sleep 0.05
done
[ -s said.log ] || fail "the process does not begin"

# ---- A tracer ----------------------------------------------------------------------

# Asks it for what it has until that has the words, and ends it.  SIGUSR1: it prints its maps.
trace() { # WORDS COMMAND
	bash -c "exec ${2/\/usr\/local\/lib\/libgale.so/$library}" >trace.log 2>&1 &
	tracer=$!
	for _ in $(seq 600); do
		kill -0 "$tracer" 2>/dev/null || break
		! grep -q '^Attaching' trace.log || kill -USR1 "$tracer"
		! grep -qE "$1" trace.log || break
		sleep 0.1
	done
	kill -INT "$tracer" 2>/dev/null
	wait "$tracer"
	tracer=
	grep -qE "$1" trace.log
}

command=$(grep '^bpftrace ' "$page")
[ "$(wc -l <<<"$command")" = 1 ] || fail "the page prints not one command: $command"
trace '^@\[api\]:' "${command/-p 4242 /-p $process }" ||
	fail "$command: $(cat trace.log)  (the kernel has to have CONFIG_UPROBES and CONFIG_BPF_EVENTS)"
grep -A1 '^@\[api\]:' trace.log | grep -qE '^[[(][0-9].* [1-9][0-9]* \|@*' || fail "there is no histogram: $(cat trace.log)"

# ---- Its arguments -----------------------------------------------------------------

# As many as the page lists, in that order.  More was asked for than 0, and at most that was granted, in less than a minute.
listed=$(grep -o '^| `gale:lease` .*' "$page" | grep -oE 'name and its length|result|units asked|units granted|time in ns' | tr '\n' ,)
[ "$listed" = 'name and its length,result,units asked,units granted,time in ns,' ] || fail "the page lists $listed"
trace '^lease api 0 [0-9]+ [0-9]+ [0-9]+$' "bpftrace -p $process -e 'usdt:/usr/local/lib/libgale.so:gale:lease {
	printf(\"lease %s %d %d %d %d\\n\", str(arg0, arg1), arg2, arg3, arg4, arg5); }'" || fail "$(cat trace.log)"
awk '$1 == "lease" && NF == 6 { n++; if ($4 <= 0 || $5 <= 0 || $5 > $4 || $6 <= 0 || $6 > 60e9) exit 2 } END { exit !n }' trace.log ||
	fail "arguments are not as listed: $(head -n 5 trace.log)"

# ---- All of this can fail ----------------------------------------------------------

trace '^@\[api\]:' "bpftrace -p $process -e 'usdt:/usr/local/lib/libgale.so:gale:lend { @[str(arg0, arg1)] = hist(arg5); }'" &&
	fail "a point that is not there is not noticed"
exit $bad
