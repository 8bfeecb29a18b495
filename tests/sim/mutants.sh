#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
#
# mutants.sh [SEEDS [PART/PARTS]] -- faults planted one at a time, each of which the simulator
# must find within SEEDS seeds (1000), or, where no law is broken but a promise is, its
# requirements.
#
# The committed tree is built apart, under build/mutants-PART.  A mutant is a line that is
# replaced; one whose line is not found, or that does not compile, counts as not caught.
# PART/PARTS plants a part of them, so that more machines can share the work: 1/2 the first,
# the third and so on.
# Rows of scripts and of the schema need redis-server and PostgreSQL.
# Prints a table; ends with failure if one is not caught.
set -u
cd "$(dirname "$0")/../.." || exit 1
seeds=${1:-1000}
part=${2:-1/1}
parts=${part#*/}
part=${part%/*}
out=$PWD/build/mutants-$part
rm -rf "$out"
mkdir -p "$out/source"
git archive HEAD | tar -x -C "$out/source" || exit 1
cd "$out/source" || exit 1
meson setup "$out/build" >"$out/log" 2>&1 || { tail -n 20 "$out/log"; exit 1; }
missed=0
planted=0

# The tests that judge a mutant, by the last word of its row.
declare -A tests=(
	[sim]=tests/sim/fleet_sim
	[changes]=tests/sim/fleet_sim
	[guards]=tests/sim/guard_sim
	[ponds]=tests/sim/pond_sim
	[brooks]=tests/sim/brook_sim
	[promises]=$(echo tests/sim/{requirements,units,bad_stores,bad_hosts}_test)
	[groups]=$(echo tests/unit/{group,group_falls,group_limit,member,fleet}_test)
	[learns]=$(echo tests/unit/{estimate,fleet_learns}_test)
	[leases]=$(echo tests/unit/{lease,lend_ahead,memory_lend,value,borrow,overdue,ahead,sizer,mono}_test)
	[serves]=tests/sim/service_test
	[tenants]=$(echo tests/unit/{escrow,escrow_crowd,escrow_tree,tenants,tenant_holds,tenant_holds_lot}_test)
	[pools]=$(echo tests/unit/{pool,pools,claim,shared,shared_holds,regions,fund,fund_told,alone}_test)
	[holds]=$(echo tests/unit/{hold,holds,whole}_test)
	[enters]=tests/unit/guard_test
	[redis-values]=tests/stores/redis_timelines
	[redis-beats]=tests/stores/redis_beats_test
	[redis-claims]=tests/stores/redis_claims_test
	[postgres-values]=tests/stores/postgres_script_test
	[postgres-beats]=tests/stores/postgres_beats_test
	[postgres-claims]=tests/stores/postgres_claims_test
	[alones]=tests/stores/tenants_servers_test
	[closes]=tests/interleave/interleave_test
	[funds]=tests/interleave/interleave_test
	[owes]=tests/interleave/interleave_test
	[tills]=tests/interleave/interleave_test
)

# Builds the tests of a judge, and nothing else.
build() { # JUDGE
	# shellcheck disable=SC2086 # tests are words
	ninja -C "$out/build" ${tests[$1]} >"$out/log" 2>&1
}

run() { # TEST ARGUMENT...
	timeout 1800 "$out/build/$1" "${@:2}" || exit
}

# Runs what must fail; its last words are in said.  What does not end is ended after 100
# seconds of a processor, or half an hour.
judge() ( # JUDGE
	ulimit -t 100
	case $1 in
	sim | guards | ponds | brooks) run "${tests[$1]}" --seeds "0-$((seeds - 1))" ;;
	changes) run "${tests[$1]}" --changes --seeds "0-$((10 * seeds - 1))" ;;
	funds)
		for program in 'ask, claim' 'ask, give up' till 'till, close' 'hold, close' 'spend, close'; do
			run "${tests[$1]}" --program "$program"
		done
		;;
	tills)
		for program in 'hold, hold' 'hold, recall' 'commit, recall' 'commit, commit' 'commit, deny' 'commit, turn' 'commit, close tenant' 'end, close tenant'; do
			run "${tests[$1]}" --program "$program"
		done
		;;
	owes) run "${tests[$1]}" --program 'lend, take' ;;
	closes)
		for program in lower keep enter; do
			run "${tests[$1]}" --program "close, $program"
		done
		;;
	*)
		for test in ${tests[$1]}; do
			run "$test"
		done
		;;
	esac >"$out/said" 2>&1
)

# mutant FILE WHAT OLD NEW [JUDGE]: OLD, a part of one line, becomes NEW.
mutant() {
	local file=$1 what=$2 judge=${5-sim} found
	[ $((planted++ % parts)) = $((part - 1)) ] || return
	cp "$file" "$out/kept"
	OLD=$3 NEW=$4 python3 - "$file" <<'END' || found='its line is not there'
import os, sys
path, old, new = sys.argv[1], os.environ["OLD"], os.environ["NEW"]
text = open(path).read()
if text.count(old) != 1:
    sys.exit(1)
open(path, "w").write(text.replace(old, new))
END
	if [ -z "${found-}" ]; then
		if ! build "$judge"; then
			found='does not compile'
		elif { judge "$judge"; } 2>/dev/null; then
			found='not caught'
		else
			found=
		fi
	fi
	cp "$out/kept" "$file"
	[ -n "$found" ] && missed=$((missed + 1))
	[ -z "$found" ] && found=$(grep -m1 -E '^seed|aborted|FAILED|does not hold|threads at once' "$out/said")
	printf '| `%s` | %s | %s |\n' "$file" "$what" "${found:-it does not end}"
}

for judge in "${!tests[@]}"; do
	build "$judge" && judge "$judge" && continue
	echo "what is committed does not pass"
	tail -n 20 "$out/log" "$out/said"
	exit 1
done
printf '| where | what | found |\n|---|---|---|\n'

mutant engine/credit.h 'credit lives a tick longer' \
	'credit_dies(word).ns > now.ns' 'credit_dies(word).ns + CREDIT_TICK_NS > now.ns'
mutant engine/clock.h 'no allowance for the drift of the store (CLOCK-3)' \
	'UINT64_C(2000000) * drift_ppm + slow - 1' 'UINT64_C(1000000) * drift_ppm + slow - 1' leases
mutant engine/clock.h 'no allowance for drift' \
	'mono_after(sent, us / 1000 * (1000000 - drift_ppm)' 'mono_after(sent, us / 1000 * (1000000 + 0 * drift_ppm)'
mutant engine/lease.c 'all or nothing is lent' \
	'uint64_t units = smaller(ask->want, left);' 'uint64_t units = ask->want + 0 * left;'
mutant engine/lease.c 'a return twice is counted twice' \
	'	row->out -= units;' '	row->number = 0;'
mutant engine/ledger.c 'units of another crowd go back' \
	'	    ledger->apart.tag.us != ledger_crowd_of(ledger, node))' '	    ledger_crowd_of(ledger, node) == 0)' leases
mutant engine/ledger.c 'the crowd does not count who has some' \
	'moved(crowd->granted, row_has_some(before), row_has_some(after))' 'moved(crowd->granted, row_has_some(before) && row_has_some(after), false)' leases
mutant engine/lease.c 'more goes back than is used' \
	'	if (units > state->used)' '	if (units > state->used + GALE_UNITS_MAX)' leases
mutant engine/ledger.c 'a ninth row takes the place of another' \
	'ledger_rows(ledger) >= LEASE_ROWS - 1;' 'ledger_rows(ledger) > LEASE_ROWS;' leases
mutant engine/lease.c 'a window begins without what was lent ahead' \
	'		ahead = ahead_of(rule, words, ledger);' '		ahead = 0 * ahead_of(rule, words, ledger);' leases
mutant engine/lease.c 'what a node had counts in any window' \
	'row->tag.us != tag.us || tag.us != ask->had_of)' 'row->tag.us != tag.us)' leases
mutant engine/lease.c 'a node says what it had with every ask' \
	'had = row ? 0 : claim(' 'had = claim(' leases
mutant engine/lease.c 'a node whose row was dropped says again what it had' \
	'ledger_is_apart(ledger, row) && row->out == 0)' 'ledger_is_apart(ledger, row) && row->out > GALE_UNITS_MAX)' leases
mutant engine/lease.c 'more than a sixteenth is lent ahead' \
	'return rule->is.limit / LEASE_AHEAD_PARTS;' 'return rule->is.limit / LEASE_AHEAD_PARTS * 2;' leases
mutant engine/lease.c 'a key is not kept for what was lent ahead' \
	'	if (ahead_of(rule, words, ledger) > 0)' '	if (ahead_of(rule, words, ledger) > GALE_UNITS_MAX)' leases
mutant engine/lease.c 'nothing is reserved for what was forgotten' \
	'return from > 0 && start >= from &&' 'return from > 0 && start > GALE_UNITS_MAX &&' leases
mutant engine/lease.c 'units ahead do not count under another period' \
	'(struct window_state){ former->start_us + period_us, 0 };' '(struct window_state){ former->start_us, 0 };' leases
mutant stores/loans.c 'rows apart have no bound' \
	'? memory->max_keys * ROWS_PER_KEY' '? memory->max_keys * ROWS_PER_KEY * 1000' leases
mutant shards/grant.c 'a lease counts from when the answer came' \
	'mono_until(errand->sent, (lasting)' 'mono_until(now.ns > 0 ? now : errand->sent, (lasting)'
mutant shards/grant.c 'an answer is taken for the next ask' \
	'!errand->purse || errand->number != answer->number' '!errand->purse || errand->number == 0'
mutant engine/credit.h 'dead units come to life' \
	'!credit_lives(word, now) || credit_units(word) == 0' 'credit_units(word) == 0 && credit_lives(word, now)'
mutant shards/purse.c 'what is given back is kept, too' \
	'credit_living(swap_relaxed(&purse->credit, 0), now)' 'credit_living(load_relaxed(&purse->credit), now)'
mutant shards/purse.c 'what was taken out of a cell stays there, too' \
	'store_release(&cell->state, CELL_TAKEN);' 'store_release(&cell->state, CELL_OPEN);'
mutant shards/purse.c 'what is cut off for a seat stays with all' \
	'swap_if_relaxed(&purse->credit, &word, word - slice)' 'swap_if_relaxed(&purse->credit, &word, word - cost)'
mutant shards/turn.c 'patience has no end' \
	'if (!mono_reached(now, ask->due))' 'if (now.ns > 0)'
mutant shards/turn.c 'what comes after patience is lost' \
	'if (!mono_reached(now, due) && may_be_overdue(lessor))' 'if (now.ns == 0 && may_be_overdue(lessor) && due.ns > 0)' leases
mutant shards/grant.c 'what a meter lent late counts from when it came (LESSOR-4)' \
	'return mono_earlier(now, mono_after(errand->sent' 'return mono_later(now, mono_after(errand->sent' leases
mutant shards/grant.c 'a block that comes late stays booked' \
	'if (grant->units > 0 && is_placed(purse->lender, grant)) {' 'if (grant->units > GALE_UNITS_MAX && is_placed(purse->lender, grant)) {' leases
mutant shards/turn.c 'what comes after patience is waited for without end' \
	'return mono_earlier(window_ends, mono_after(now, OVERDUE_NS));' 'return mono_later(window_ends, mono_after(now, OVERDUE_NS));' leases
mutant shards/turn.c 'all keys may be overdue (LESSOR-8)' \
	'(purses < ERRANDS ? purses : ERRANDS) / OVERDUE_PARTS' 'ERRANDS / OVERDUE_PARTS + 0 * purses' leases
mutant shards/lessor.c 'a key that is overdue is waited for (LESSOR-8)' \
	'|| is_overdue(lessor, purse)' '|| (is_overdue(lessor, purse) && now.ns == 0)' leases
mutant shards/grant.c 'what comes after patience is a sign of health (L11)' \
	'if (in_time) /*' 'if (in_time || now.ns > 0) /*' leases
mutant runtime/mailbox.c 'an actor takes its mail once only' \
	'	box->own.head = ticket + 1;' ''
mutant stores/quarantine.c 'no quarantine' \
	'if (since_us == 0)' 'if (since_us != 1)'
mutant shards/purses.c 'a key is evicted while it is asked about (W-5)' \
	'errand == ERRAND_NONE && purse_kill' 'errand != UINT16_MAX && purse_kill' promises
mutant shards/grant.c 'nobody remembers a denial (W-13)' \
	'	purse_deny(purse, orders->until,' \
	'	purse_deny(purse, (mono){ 0 * orders->until.ns },' promises
mutant shards/purse.h 'a denial of a dear call is one of a cheap call (W-16)' \
	'LIKELY(cost > credit_units(word))' 'LIKELY(cost > 0 * word)' promises
mutant stores/batches.c 'a batch is sent as if nothing had been forgotten' \
	'trip->job.not_before_us = not_before(batches, line, trip);' 'trip->job.not_before_us = 0 * not_before(batches, line, trip);'
mutant stores/batches.c 'what was not replied to has been done' \
	'batch->count > 0 ? STORE_LATE : STORE_DOWN' 'batch->count > 0 ? STORE_DONE : STORE_DOWN'
mutant stores/memory.c 'who changes a rate begins anew (L15)' \
	'run->converted = words;' \
	'run->over = entry; return run_on_entry(run, NULL, request, ret_grant);' changes
mutant stores/memory.c 'what was spent is counted at the new rate (L15)' \
	'memcpy(entry->words, run->converted, rule->words * sizeof(uint64_t));' '' changes
mutant shards/change.c 'units of the old rate stay in hand (L15)' \
	'if ((!alike || terms' 'if (!alike) alike = true; else if ((!alike || terms' promises
mutant shards/grant.c 'a node takes more than its books allow (LESSOR-4)' \
	'grant->units = room;' '' promises
mutant engine/borrow.c 'who got some is not asked for again (BORROW-4)' \
	'if ((grant->others == 0 && !may_tell) || terms->carry_over) {' 'if (grant->units > 0 || (grant->others == 0 && !may_tell) || terms->carry_over) {' leases
mutant engine/borrow.c 'who has something says nothing more of it (BORROW-4)' \
	'terms->has_windows && !answer->spent && grant->holders > 1;' 'terms->has_windows && answer->spent && false;' leases
mutant engine/lease.c 'units ahead are with no node until one says so (LEASE-9)' \
	'others += row->out > 0; /* with nodes that have not asked yet */' 'others += 0;' promises
mutant engine/lease.c 'who gives back has no more (LEASE-9)' \
	'row->granted = keeps && row->out > 0; /* LEASE-9 */' 'row->granted = 0;' promises
mutant engine/lease.c 'who says what it had has none of it (LEASE-9)' \
	'now_first.granted = had; /* LEASE-9 */' 'now_first.granted = 0;' leases
mutant shards/errand.c 'what a hold keeps will not come back (LEASE-9)' \
	'need->held == 0 && !keeps && ' 'need->held == 0 && (keeps || !keeps) && ' promises
mutant shards/grant.c 'an answer that is dead serves nobody from what it brings ahead' \
	'serve(errand, now); /* from units ahead: they live */' '' promises
mutant engine/borrow.c 'who asks again takes what is too little (BORROW-1)' \
	'need->least > 0 ? need->least : need->denied' 'need->least + 0 * need->denied' leases
mutant engine/borrow.c 'what is idle stays (BORROW-2)' \
	'++self->idle < smaller(most, IDLE_LOOKS_MOST)' 'most > 0' leases
mutant engine/borrow.c 'units go back between two of a few calls (BORROW-7)' \
	'self->is_patient = true; /* BORROW-7 */' 'self->is_patient = false;' leases
mutant engine/borrow.c 'demand that comes back keeps what it leaves (BORROW-7)' \
	'ask->want <= FEW_CALLS * need->least' 'ask->want > 0' leases
mutant engine/borrow.c 'who keeps idle units keeps them where others lack some (BORROW-7)' \
	'self->is_patient = false; /* BORROW-7 */' '' leases
mutant shards/ahead.c 'books begin without what was lent ahead (AHEAD-3)' \
	'purse->taken += lent; /* AHEAD-3 */' '' leases
mutant shards/ahead.c 'units ahead live a window longer (AHEAD-1)' \
	'grant->lasts_us + link->own.window_us };' 'grant->lasts_us + 2 * link->own.window_us };' leases
mutant shards/ahead.c 'no allowance for drift in what lives for two windows (AHEAD-1)' \
	'mono_until(errand->sent, both, ppm)' 'mono_until(errand->sent, both, 0 * ppm)' leases
mutant shards/ahead.c 'what is set aside is spent before an answer (AHEAD-2)' \
	'units = credit_living(swap_relaxed(&ahead->word, 0), now);' 'units = credit_living(load_relaxed(&ahead->word), now);' leases
mutant shards/ahead.c 'more than a sixteenth is believed (AHEAD-3)' \
	'link->own.rule.capacity / LEASE_AHEAD_PARTS;' 'link->own.rule.capacity / LEASE_AHEAD_PARTS * 2;' leases
mutant shards/grant.c 'what is lent ahead is not in the books of its own window (AHEAD-3)' \
	'errand->purse->taken + ahead;' 'errand->purse->taken;' leases
mutant shards/grant.c 'a window begins with all of its limit, beside what was lent ahead of it (AHEAD-3)' \
	'next ? ahead :' 'next ? 0 :' leases
mutant shards/ahead.c 'more goes back than the store knows to be out (L6)' \
	'ahead->unsaid = lent > grant->had ? lent - grant->had : 0;' '' leases
mutant shards/ahead.c 'windows are lent ahead that may begin within a quarantine (L12)' \
	'quarantine_us > 0 && link->own.window_us > quarantine_us / 2' 'quarantine_us > GALE_UNITS_MAX' leases
mutant engine/borrow.c 'units ahead do not last while clocks differ (BORROW-6)' \
	'2 * drift_us' '0 * drift_us' leases
mutant engine/borrow.c 'idle units ahead go back before the store knows whose they are' \
	'may_ask(sight, BORROW_CLAIM)' 'BORROW_GIVE_BACK' leases
mutant engine/sizer_learned.c 'a node that does not know what it needs takes what it may need (SIZER-8)' \
	'return outlook.differs && view->holders > 1 &&' 'return outlook.differs && view->holders > GALE_UNITS_MAX &&' leases
mutant engine/sizer_learned.c 'who was alone takes what others need (SIZER-9)' \
	'learned->tight > 0 && (view->holders > 1 || varies(learned, outlook))' 'learned->tight > 0 && (view->holders > 1 || (varies(learned, outlook) && false))' leases
mutant engine/sizer_learned.c 'what a fleet leaves at the end of a window is too little (SIZER-10)' \
	'part_left(told); /* SIZER-10 */' '(1 + 0 * part_left(told));' leases
mutant engine/borrow.c 'an ask ahead is worth nothing (BORROW-8)' \
	'sight->turned ? 0 : spent' '0 * spent' leases
mutant shards/look.c 'an ask ahead is made for less than a look takes (BORROW-8)' \
	'lessor_need(lessor, purse, now) > orders.worth' 'lessor_need(lessor, purse, now) > 0 * orders.worth' serves
mutant shards/errand.c 'a first ask knows nothing of the window that is just over (SIZER-9)' \
	'purse->ends.ns > 0 && mono_reached(now, purse->ends)' 'purse->ends.ns == 1 + now.ns' serves
mutant engine/borrow.c 'nodes of a large fleet ask too late for what went back (BORROW-4)' \
	'larger(BORROW_HOPERS, terms->capacity / BORROW_WORTH)' 'larger(BORROW_HOPERS, terms->capacity / GALE_UNITS_MAX)' leases
mutant engine/borrow.c 'terms before these deny (BORROW-3)' \
	'!answer->waits && !answer->changed' '!answer->waits' leases
mutant shards/change.c 'books of a larger burst are closed by a smaller one (L15)' \
	'keep_books(link, now);' '(void)keep_books;' promises
mutant face/limiter.c 'nodes keep the old limit (L15)' \
	'add_release(&lender->changes, 1)' 'add_release(&lender->changes, 0)' changes

mutant engine/group.c 'a sum is not kept (GROUP-1)' \
	'group->reserved += group_reserve(member);' 'group->reserved += member->share;' groups
mutant engine/group.c 'what others have is not taken off (GROUP-2)' \
	'share = smaller(share, less(group->limit, group->reserved));' 'share = smaller(share, group->limit);' groups
mutant engine/group.c 'when L falls, a node keeps its part (GROUP-14)' \
	'share = smaller(share, less(group->limit, group->reserved));' \
	'share = smaller(share, larger(less(group->limit, group->reserved), smaller(target, report->held)));' groups
mutant engine/group.c 'L falls before the shares (GROUP-15)' \
	'group->limit = larger(group->limit, group->parted);' 'group->limit = group->parted;' groups
mutant engine/group.c 'shares do not fall before L (GROUP-15)' \
	'uint64_t gives = less(group->reserved + self->share, group->parted);' \
	'uint64_t gives = less(group->reserved + self->share, group->limit);' groups
mutant engine/group.c 'a small rise waits for nothing (GROUP-16)' \
	'return has_just_fallen(group) && to <= group->highest &&' \
	'return members == 0 && has_just_fallen(group) && to <= group->highest &&' groups
mutant engine/group.c 'a rise above what was parted waits (GROUP-16)' \
	'return has_just_fallen(group) && to <= group->highest &&' 'return has_just_fallen(group) &&' groups
mutant engine/group.c 'a rise waits while members have no slot (GROUP-16)' \
	'members <= group->parted;' 'members > 0;' groups
mutant engine/group.c 'what is not confirmed is not reserved (GROUP-3)' \
	'larger(applied ? 0 : self->high, report->held)' 'larger(applied ? 0 : 0, report->held)' groups
mutant engine/group.c 'what a node has lowered by itself is not free (GROUP-13)' \
	'larger(applied ? 0 : self->high, report->held)' 'larger(applied ? self->share : self->high, report->held)' groups
mutant engine/member.c 'a nudge lowers a share that has just risen' \
	'!mono_reached(now, member->held_until))' 'now.ns == 0)' groups
mutant coordinator/fleet.c 'a lowered share is reported and not in force (GROUP-13)' \
	'if (news == MEMBER_APPLY)' 'if (news == MEMBER_LEFT)' groups
mutant engine/group.c 'what is in flight is not reserved' \
	'self->in_flight = report->in_flight;' 'self->in_flight = 0;' groups
mutant engine/group.c 'leases end too early (GROUP-4)' \
	'return member->beat <= group->over;' 'return member->beat <= group->over + (group->over > 0);' groups
mutant engine/group.c 'an old report is read (GROUP-5)' \
	'report->seq <= self->seq' 'report->seq == 0' groups
mutant engine/group.c 'an earlier state of a machine is told the share of the later one (GROUP-5)' \
	'return report->seq == self->seq ?' 'return report->seq <= self->seq ?' groups
mutant engine/group.c 'a namesake takes over at once (GROUP-6)' \
	'if (is_namesake && !group_expired(group, self))' 'if (is_namesake && group->members == 0)' groups
mutant engine/group.c 'there is no quiet time (GROUP-7)' \
	'share = smaller(share, report->held);' 'share = smaller(share, group->limit);' groups
mutant engine/group.c 'who leaves is gone at once (GROUP-8)' \
	'if (report->leaves && report->in_flight == 0)' 'if (report->leaves)' groups
mutant engine/group.c 'a proof of another life is believed (GROUP-10)' \
	'if (report->life == group->life && report' 'if (report->life != 1 && report' groups
mutant engine/group.c 'an old copy goes on with the life that it was in (GROUP-10)' \
	'if (forgot || is_new ||' 'if (is_new ||' groups
mutant engine/group.c 'a longer lease of a node that is refused does not count (GROUP-10)' \
	'return lease_us > group->lasts_us &&' 'return lease_us > WORD_MAX &&' groups
mutant engine/member.c 'a proof makes no allowance for drift (MEMBER-8)' \
	'us * member->terms.drift_ppm / 1000 + 1' '1' groups
mutant engine/member.c 'a proof counts from the asking (MEMBER-8)' \
	'(struct member_anchor){ beat, now }' '(struct member_anchor){ beat, member->sent }' groups
mutant engine/group.c 'a number that was not given out is believed (GROUP-10)' \
	'report->over <= group->beats)' 'report->over <= WORD_MAX)' groups
mutant engine/group.c 'a number is given out twice (GROUP-10)' \
	'group->beats++; /* GROUP-10 */' 'group->beats += is_new; /* GROUP-10 */' groups
mutant engine/group.c 'a later beat does not count (GROUP-4)' \
	'self->beat = group->beats;' 'self->beat = self->beat > 0 ? self->beat : group->beats;' groups
mutant engine/group.c 'nudges have no pause (GROUP-12)' \
	'group->now_us - last_us >= pause_us;' 'group->now_us - last_us + pause_us >= pause_us;' groups
mutant engine/member.c 'early beats have no pause (MEMBER-7)' \
	'uint64_t ahead_ns = AT_ONCE * member' 'uint64_t ahead_ns = 1000 * AT_ONCE * member' groups
mutant engine/member.c 'numbers of another life are proofs (MEMBER-8)' \
	'if (grant->life != member->past.life)' 'if (member->past.life == 0)' groups
mutant engine/group.c 'a new share has the generation of the one before' \
	'self->generation = group->generation;' 'self->generation = self->generation > 0 ? self->generation : group->generation;' groups
mutant engine/member.c 'an answer to any beat is heard (MEMBER-1)' \
	'if (!member->under_way || seq != member->seq || !is_believable(member, grant))' \
	'if (seq == 0 || !is_believable(member, grant))' groups
mutant engine/member.c 'the fence does not fall (MEMBER-2)' \
	'return !member->is_fenced && mono_reached(now, member->fence);' 'return !member->is_fenced && now.ns == 0 && mono_reached(now, member->fence);' groups
mutant engine/member.c 'no allowance for drift (MEMBER-2)' \
	'mono_until((mono){ 0 }, (lasting){ terms->lease_us }, terms->drift_ppm);' 'mono_until((mono){ 0 }, (lasting){ terms->lease_us }, 0 * terms->drift_ppm);' groups
mutant engine/member.c 'no time to abort (MEMBER-2)' \
	'end.ns > terms->abort_ns ? end.ns - terms->abort_ns : 0' 'end.ns > terms->abort_ns ? end.ns : 0' groups
mutant engine/member.c 'a lease counts from the answer (MEMBER-2)' \
	'until.ns = member->sent.ns + lasts_ns(&member->terms);' 'until.ns = now.ns + lasts_ns(&member->terms);' groups
mutant engine/member.c 'a beat that is lost ends the share (MEMBER-3)' \
	'member->under_way = false; /* MEMBER-3 */' 'member->under_way = false, member->share = 0;' groups
mutant engine/member.c 'a report names the grant before (MEMBER-4)' \
	'.generation = member->generation,' '.generation = member->generation - 1,' groups
mutant engine/member.c 'a report says nothing of what is held' \
	'member->is_fenced ? facts->local : member->share,' 'facts->local,' groups
mutant engine/member.c 'a grant is applied when its lease is over (MEMBER-5)' \
	'if (mono_reached(now, until)) /* MEMBER-5 */' 'if (now.ns == 0)' groups
mutant engine/member.c 'what was under way when the fence fell is heard (MEMBER-6)' \
	'member->under_way = false; /* MEMBER-6 */' '' groups
mutant engine/member.c 'a fence that is overdue is overlooked (MEMBER-6)' \
	'if (must_fence(member, now)) /* the timer is late */' 'if (must_fence(member, now) && now.ns == 0)' groups
mutant engine/member.c 'who leaves keeps its share' \
	'share = member->leaves ? 0 : (uint32_t)grant->share;' 'share = (uint32_t)grant->share;' groups
mutant coordinator/turnstile.c 'a ceiling is lowered, and who gave the last slot back is told the contrary (TURNSTILE-4)' \
	'return ceiling.most < slots_most(was) &&' 'return ceiling.most < slots_most(was) && !' closes
mutant coordinator/turnstile.c 'a cell that is to keep less gives the last slot back, and nobody is told (TURNSTILE-4)' \
	'return turnstile_call_back(turnstile, less).last;' 'return turnstile_call_back(turnstile, less).count > UINT32_MAX - 1;' closes

mutant engine/group.c 'a group that was dropped gives all away (GROUP-11)' \
	'if (group->generation == 0 && report->generation > 0 &&' 'if (group->generation > 0 && report->generation == 0 &&' groups
mutant coordinator/fleet.c 'a seat has no fence of its own (FLEET-2)' \
	'store_relaxed(&guard->turnstile.fence_ns, fence_ns);' 'store_relaxed(&guard->turnstile.fence_ns, fence_ns > 0 ? UINT64_MAX : 0);' guards
mutant coordinator/fleet.c 'a guard that is closed leaves with its calls in flight (FLEET-3)' \
	'.in_flight = in_flight,' '.in_flight = fleet->membership.member.leaves ? 0 : in_flight,' guards
mutant coordinator/fleet.c 'a guard that leaves lets calls in after its report (FLEET-5)' \
	'put_in_force(guard); /* FLEET-5 */' 'guard->leaves = true;' groups
mutant face/guard.c 'the coordinator is woken while calls enter a guard that is closed (FLEET-5)' \
	'if (turnstile_close(&guard->guard.turnstile))' 'if ((coordinator_wake(&guardhouse_of(runtime)->coordinator), turnstile_close(&guard->guard.turnstile)))' enters
mutant coordinator/fleet.c 'a host is not told that its runtime ends under calls (FLEET-6)' \
	'guard->ops->fenced(guard); /* FLEET-6 */' '(void)guard;' groups
mutant coordinator/coordinator.c 'a runtime that is closed does not leave' \
	'	leave_all(coordinator, clock_now(coordinator->clock));' '	(void)leave_all;' guards

mutant engine/estimate.c 'a limit leaves its floor and its ceiling (ESTIMATE-1)' \
	'estimate->limit = estimate_clamp(estimate, estimate->limit);' '' learns
mutant engine/estimate.c 'a probe ends with enough answers alone (ESTIMATE-4)' \
	'if (window->now_ns >= estimate->phase_ends_ns ||' 'if (window->now_ns == 0 ||' learns
mutant engine/estimate.c 'a probe that is alone is as long as in a fleet' \
	': at_least(rtt_of(estimate), DRAIN_LEAST_NS);' ': planned_ns(estimate);' learns
mutant engine/estimate.c 'what is idle is used (ESTIMATE-2)' \
	'in_flight_peak >= in_force;' 'in_flight_peak >= 0 * in_force;' learns
mutant engine/estimate.c 'a node that has had no answer has a say (ESTIMATE-6)' \
	'return tells_limit(estimate) && estimate->base.answers > 0' 'return tells_limit(estimate)' learns
mutant engine/estimate.c 'a node that has had no answer begins with its start (ESTIMATE-6)' \
	'if (tells_limit(estimate) && estimate->base.answers == 0)' 'if (false)' learns
mutant engine/estimate.c 'a call that is kept out for ever raises nothing (ESTIMATE-7)' \
	'	if (is_empty && estimate->set.law != ESTIMATE_FIXED && slots > estimate->limit)' '	if (is_empty && slots == UINT64_MAX)' learns
mutant engine/estimate.c 'a call that is kept out raises a limit that others use (ESTIMATE-7)' \
	'	if (is_empty && estimate->set.law != ESTIMATE_FIXED && slots > estimate->limit)' '	if ((is_empty || slots > 0) && estimate->set.law != ESTIMATE_FIXED && slots > estimate->limit)' learns
mutant coordinator/turnstile.c 'a call that a new guard lets in is too wide (ESTIMATE-7)' \
	'	return count > 1 && count > turnstile->wide_least &&' '	return count > 1 &&' groups
mutant engine/estimate.c 'long probes of a fleet overlap' \
	'if (number % each == 0)' 'if (number % each < each)' learns
mutant engine/estimate_knee.c 'a limit grows though nothing was refused (ESTIMATE-2)' \
	'if (!knee->limited) { /* ESTIMATE-2 */' 'if (!knee->limited && knee->rate == 0) { /* ESTIMATE-2 */' learns
mutant engine/estimate_knee.c 'failures do not lower a limit (ESTIMATE-3)' \
	'estimate->limit -= estimate->limit / 8;' 'estimate->limit -= 0;' learns
mutant engine/estimate_knee.c 'a probe does not measure a round trip' \
	'knee->knee_ns = (knee->knee_ns + rtt) / 2;' 'knee->knee_ns += 0 * rtt;' learns
mutant engine/estimate_knee.c 'a node whose slots are full reports all' \
	'return x < busy ? x : busy;' 'return x > UINT64_MAX - 1 ? x : busy;' learns
mutant engine/estimate_base.c 'late answers do not lower a limit' \
	'estimate->limit = estimate->limit * 9 / 10;' 'estimate->limit += 0;' learns
mutant engine/estimate_base.c 'a limit grows though it is not used (ESTIMATE-2, ESTIMATE-5)' \
	'if (next < limit ||' 'if (next != limit ||' learns
mutant coordinator/fleet.c 'nothing is busy (H6)' \
	'.busy = estimate.knee_ns > 0 ? estimate.busy' '.busy = estimate.knee_ns > 0 ? 0' learns
mutant coordinator/fleet.c 'each node probes when it likes (H6)' \
	'plan_probe(guard, &membership->member.told, now);' '(void)plan_probe;' learns

mutant engine/escrow.c 'who is removed takes along what it has used (ESCROW-1)' \
	'escrow->absent += used_of(escrow, tenant); /* ESCROW-1 */' 'escrow->used -= used_of(escrow, tenant);' tenants
mutant engine/escrow.c 'nothing is reserved for others (ESCROW-2)' \
	'if (tenant->used + cost <= share)' 'if (tenant->used + cost <= share + escrow->set.limit)' tenants
mutant engine/escrow.c 'a share counts twice for who borrows (W-29)' \
	'most = escrow->set.limit + greater(share, tenant->used);' 'most = escrow->set.limit + 2 * greater(share, tenant->used) - tenant->used;' tenants
mutant engine/escrow.c 'who has stopped asking stays present (ESCROW-3)' \
	'leaves_us(escrow, first) <= escrow->now_us' 'leaves_us(escrow, first) < first->asked_us' tenants
mutant engine/escrow.c 'nothing is repaid (ESCROW-4)' \
	'tenant->repaid = tenant->owed;' 'tenant->repaid = 0;' tenants
mutant engine/escrow.c 'who has waited longest is not first (ESCROW-4)' \
	'(!other || tenant->owed_since < other->owed_since);' '!other;' tenants
mutant engine/escrow.c 'who was not there is owed a share' \
	'|| tenant->came_us > escrow->window)' '|| tenant->came_us > escrow->now_us)' tenants
mutant engine/escrow.c 'who comes back has what it has missed (T4)' \
	'	if (tenant->refused == 0 || tenant->came_us > escrow->window)' '	if (tenant->came_us > escrow->window) return due - lesser(due, tenant->spent); else if (tenant->refused == 0)' tenants
mutant engine/escrow.c 'a tenant that owes units is admitted (ESCROW-5)' \
	'if (tenant->debt > 0) /* ESCROW-5 */' 'if (tenant->debt > GALE_UNITS_MAX)' tenants
mutant engine/escrow.c 'a window that is over is debited (ESCROW-5)' \
	'if (window != escrow->window || tenant->window != window)' 'if (window > escrow->window)' tenants
mutant engine/escrow.c 'a user that owes units has what its node keeps (ESCROW-5)' \
	'is_own = cost <= remaining && !owes(escrow, number);' 'is_own = cost <= remaining && (owes(escrow, number) || true);' tenants
mutant engine/escrow.c 'a node owes units, and one below it has its share of the rest (TREE-6)' \
	'if (escrow->tenants[number].debt > 0)' 'if (!escrow->tenants[number].below && escrow->tenants[number].debt > 0)' tenants
mutant face/escrowed.c 'a purse stays that has too little for common asks (TENANT-10)' \
	'	return cost > most_ahead(load_relaxed(&tenant->till.share)) &&' '	return cost > 0 &&' tenants
mutant face/escrowed.c 'a purse of the window before stays (TENANT-10)' \
	'tenant->locked.window == tenant->locked.family->escrow.window &&' 'tenant->locked.window > 0 &&' tenants
mutant face/escrowed.c 'a dear ask is denied for what its own purse has (TENANT-10)' \
	'return is_own;' 'return is_own || true;' tenants
mutant face/escrowed.c 'a dear ask leaves purses that are above fallen shares (TENANT-10)' \
	'(void)have_fallen(tenant, falls);' '(void)falls;' tenants
mutant face/escrowed.c 'what a hold does not need is lost (TENANT-7)' \
	'escrow_give(&family->escrow, tenant->locked.number, back, window);' '(void)back;' tenants
mutant face/escrowed.c 'the hold of a tenant that was closed gives back to the next one (TENANT-7)' \
	'return tenant->locked.family->handles[tenant->locked.number] != tenant;' 'return !tenant->locked.family->handles[tenant->locked.number];' tenants
mutant face/escrowed.c 'the hold of a user gives nothing back when its organisation was closed (TENANT-7)' \
	'	if (highest)' '	if (highest && back > GALE_UNITS_MAX)' tenants
mutant coordinator/till.h 'what goes back without a lock ends no denial' \
	'			if (load_relaxed(&till->denied) != 0)' '			if (load_relaxed(&till->denied) == 1)' tills
mutant coordinator/till.h 'a hold gives back into a window that is over (TILL-2)' \
	'	while (LIKELY(credit_is_like(word, window)) &&' '	while (LIKELY(word != 0) && LIKELY(window != 0) &&' tenants
mutant coordinator/till.h 'a hold gives back where nothing looks any more (TILL-2)' \
	'	while (LIKELY(credit_is_like(word, window)) &&' '	while (LIKELY(word == 0 || credit_is_like(word, window)) &&' tills
mutant face/escrowed.c 'what went back without a lock is given twice (TENANT-8)' \
	'		word = swap_relaxed(&tenant->till.back, 0);' '		word = load_relaxed(&tenant->till.back);' tills
mutant face/escrowed.c 'who has more than its share keeps what its holds give back (TENANT-8)' \
	'	close_back(tenant); /* TENANT-8 */' '	(void)0;' tenants
mutant face/tenant_hold.c 'units of the window before go back (TENANT-7)' \
	'		back = units.units;' '		(void)0;' tenants
mutant face/tenant_hold.c 'a hold that grows alone gives nothing of the pool back (TENANT-7)' \
	'	else if (!more->alone)' '	else' alones
mutant face/tenant_hold.c 'a tenant that is closed is gone under its holds (TENANT-9)' \
	'is_held = !is_settled(tenant);' 'is_held = false;' tenants
mutant face/tenant_hold.c 'a tenant stays whose last hold ends as it is closed (TENANT-9)' \
	'		drop_settled(runtime);' '		(void)drop_settled;' tills
mutant face/tenant_hold.c 'who closes a tenant makes nobody pass a fence (TENANT-9)' \
	'	grace_pass(&runtime->grace); /* entered */' '	(void)0;' tills
mutant engine/escrow.c 'a share is kept though the level has moved' \
	'if (tenant->level != escrow->level) {' 'if (tenant->level == 0) {' tenants
mutant engine/escrow_level.c 'a level is lowered below what was used' \
	'escrow->pool >= (uint128)escrow->floor * escrow->slopes &&' 'escrow->floor < UINT64_MAX &&' tenants
mutant engine/escrow_level.c 'a cap that is reached leaves nothing to others' \
	'sum.of_share += its.of_share;' 'sum.of_share += 0 * its.of_share;' tenants
mutant face/escrowed.c 'a purse outlives its window (TENANT-1)' \
	'uint64_t end_us = window + budget->window_us - 1;' 'uint64_t end_us = window + 2 * budget->window_us - 1;' tenants
mutant face/escrowed.c 'a purse keeps more than the share is (TENANT-2)' \
	'if (excess == 0 || tenant->locked' 'if (excess <= UINT64_MAX || tenant->locked' tenants
mutant face/escrowed.c 'each purse that is taken back has the level found anew' \
	'	escrow_give(escrow, tenant->locked.number, units, escrow->window);' '	escrow_give(escrow, tenant->locked.number, units, escrow->window); (void)escrow_share(escrow, tenant->locked.number);' tenants
mutant engine/escrow.c 'purses fall to the shares alone, and so with each tenant that comes' \
	'known_share_of(escrow, tenant) / 2' 'known_share_of(escrow, tenant)' tenants
mutant face/escrowed.c 'who lives from its purse is absent (TENANT-3)' \
	'if (units < tenant->locked.seen) {' 'if (units > tenant->locked.seen) {' tenants
mutant face/escrowed.c 'a denial is remembered until the window turns (TENANT-4)' \
	'uint64_t ns = tenant->budget->remember_ns;' 'uint64_t ns = UINT64_C(1000000000);' tenants
mutant engine/escrow.c 'what a node keeps is not used by it (TREE-1)' \
	'escrow->kept -= kept;' 'kept += 0;' tenants
mutant engine/escrow.c 'those below a node may use the limit (TREE-2)' \
	'return greater(share_of(escrow, node), node->used);' 'return escrow->set.limit + greater(0 * share_of(escrow, node), node->used);' tenants
mutant engine/escrow.c 'a node keeps nothing for guarantees below it (TREE-3)' \
	'if (escrow->kept < escrow->promised)' 'if (escrow->kept > escrow->promised)' tenants
mutant engine/escrow.c 'a node keeps units for who is absent (TREE-4)' \
	'if (escrow->kept <= escrow->promised)' 'if (escrow->kept <= UINT64_MAX)' tenants
mutant engine/escrow.c 'a node is absent though something below it asks (TREE-4)' \
	'be_seen(escrow->above, escrow->place, now_us);' 'go_on(escrow->above, now_us);' tenants
mutant engine/escrow.c 'a node is owed nothing of what those below left (TREE-5)' \
	'for (; escrow && more > 0; number' 'for (; escrow && more > 0; more = 0, number' tenants
mutant engine/escrow.c 'what a node owes is not paid (TREE-6)' \
	'	pay_for_node(escrow);' '	if (0) pay_for_node(escrow);' tenants
mutant engine/escrow.c 'what a node owes is paid from what it keeps for guarantees (TREE-6)' \
	'	keep(escrow);' '	pay_for_node(escrow); keep(escrow);' tenants
mutant face/escrowed.c 'those below a tenant that owes have units ahead (TREE-6)' \
	'escrowed_empty_all(tenant->locked.below); /* TREE-6 */' '(void)0;' tenants
mutant face/escrowed.c 'a tenant is absent though one below it lives from its purse (TREE-4)' \
	'return escrow_anybody(&tenant->locked.below->escrow);' 'return false;' tenants
mutant face/tenants.c 'a purse is left to those below one that is closed (TENANT-5)' \
	'escrowed_empty_all(below);' '(void)0;' tenants

mutant engine/pool.c 'what was given back of another window counts (POOL-4)' \
	'	if (ask->window != pool->window)' '	if (ask->window > pool->window)' pools
mutant engine/pool.c 'an ask that comes twice grants twice (POOL-1)' \
	'return minus(had + wanted, claim->granted);' 'return minus(had + wanted, 0 * claim->granted + had);' pools
mutant engine/pool.c 'nothing is kept for other tenants (POOL-2)' \
	'return lesser(most, minus(shares->rest, part->others));' 'return lesser(ask->cap, shares->rest + 0 * most);' pools
mutant engine/pool.c 'who has stopped asking is never absent (POOL-3)' \
	'return leaves_us(pool, ask, tenant) > pool->now_us; /* POOL-3 */' 'return leaves_us(pool, ask, tenant) > 0;' pools
mutant engine/pool.c 'a store that forgot grants (POOL-5)' \
	'if (not_before_us > pool->now_us) {' 'if (not_before_us > pool->now_us + POOL_TIME_MAX_US) {' pools
mutant engine/pool.c 'windows of two lengths overlap' \
	'return start < pool->window + pool->period_us;' 'return start < pool->window;' pools
mutant engine/pool.c 'who comes first in a window has the pool (POOL-6)' \
	'|| left_to(pool) > 0))' '|| left_to(pool) > pool->period_us))' pools
mutant engine/pool.c 'a node that lends sooner is not refused (POOL-6)' \
	'pool->release_us == ask->release_us &&' '' pools
mutant engine/pool.c 'a node that protects for longer is not refused (POOL-6)' \
	'pool->protect_us == ask->protect_us;' 'true;' pools
mutant engine/pool.c 'who is refused waits for the windows of the others' \
	'return lesser(left_to(pool), ask->period_us);' 'return left_to(pool);' pools
mutant coordinator/fund_turn.c 'the log names another setting' \
	'if (ask->release_us != answer->release_us)' 'if (ask->release_us == answer->release_us)' pools
mutant engine/claim.c 'units live until the window ends by a clock that is fast (CLAIM-1)' \
	'claim->end = same ? mono_later(claim->end, end) : end; /* CLAIM-1 */' 'claim->end = same ? claim->turns : turns; (void)end;' pools
mutant coordinator/stake.c 'a debt is paid last (CLAIM-8)' \
	'	claim_pay(claim, now); /* CLAIM-8 */' '' pools
mutant coordinator/stake.c 'what a hold does not need goes back into the next window (FUND-12)' \
	'if (claim->window == held->window)' 'if (claim->window >= held->window)' pools
mutant coordinator/stake.c 'a stake leaves before its holds (FUND-12)' \
	'return stake->locked.holds > 0 &&' 'return stake->locked.holds > 9 &&' pools
mutant engine/claim.c 'units of the window before stay in hand (CLAIM-2)' \
	'claim->granted = claim->back = claim->taken = 0;' 'claim->back = 0;' pools
mutant engine/claim.c 'idle units do not go back (FUND-3, CLAIM-5)' \
	'units > 2 * kept)' 'units > 2 * kept + GALE_UNITS_MAX)' pools
mutant engine/claim.c 'a node asks when nothing is left (CLAIM-5)' \
	'look.asks = look.moved >= WORTH' 'look.asks = look.moved > GALE_UNITS_MAX' pools
mutant engine/claim.c 'units that come back are looked for near the end alone (CLAIM-9)' \
	'pause_us = 2 * present_us(claim);' 'pause_us = rest_us;' pools
mutant engine/claim.c 'a tenant that lacks its guarantee is absent when units come back (CLAIM-9)' \
	'if (!lacks_guarantee(claim, answer))' 'if (!lacks_guarantee(claim, answer) || again)' pools
mutant engine/claim.c 'what a tenant tells the pool puts off its next ask (CLAIM-9)' \
	'claim->retry = again ? retry : mono_earlier(claim->retry, retry);' 'claim->retry = retry;' pools
mutant coordinator/fund_turn.c 'units that are left end no denial of another tenant (CLAIM-9)' \
	'if (answer->free > 0)' 'if (answer->free > GALE_UNITS_MAX)' pools
mutant engine/claim.c 'what is asked for again goes back first (CLAIM-5)' \
	'keep_ns = greater(KEEP * tick_ns, 2 * ahead_ns);' 'keep_ns = KEEP * tick_ns;' pools
mutant engine/alone.c 'a window of a fast clock is too short (ALONE-2)' \
	'ns += ns * 2 * drift_ppm / DRIFT + 1; /* ALONE-2 */' 'ns += 0 * drift_ppm;' pools
mutant engine/alone.c 'who has used all has some again (ALONE-1)' \
	'return taken < alone->units ? alone->units - taken : 0; /* ALONE-1 */' 'return alone->units + 0 * taken;' pools
mutant coordinator/fund_turn.c 'a refusal is taken for an outage (FUND-8)' \
	'fund->locked.cut_off = GALE_WHY_RULE; /* FUND-8 */' '(void)fund->locked.cut_off;' pools
mutant coordinator/fund_turn.c 'a call is late though another was answered since (FUND-8)' \
	'claim.sent.ns < fund->locked.answered.ns)' 'claim.sent.ns > now.ns)' pools
mutant coordinator/stake.c 'a call that failed an hour ago is an outage (FUND-8)' \
	'CALLS * fund->patience_ns' 'UINT64_MAX + 0 * CALLS' pools
mutant coordinator/stake.c 'who opens a tenant again has all alone again (FUND-9)' \
	'if (is_of(&alones[i], stake))' 'if (0 && is_of(&alones[i], stake))' pools
mutant coordinator/fund_turn.c 'a lost answer to a larger limit is not believed (FUND-5)' \
	'greater(stake->locked.claim.most, stake->claim_op.ask.limit)' 'stake->claim_op.ask.limit' pools
mutant coordinator/stake.c 'who has given up is served (FUND-10)' \
	'	waits = wait->waits;' '	waits = wait->waits && stake->locked.leaves;' pools
mutant coordinator/fund_turn.c 'more is asked for though those that wanted it have gone (FUND-7)' \
	'stake->locked.ahead = false; /* by then it may have stopped */' '' pools
mutant engine/claim.c 'new terms end a refusal that was not by terms (CLAIM-6)' \
	'claim->shut = true;' 'claim->refused = 1;' pools
mutant engine/claim.c 'a quantum is half of what is used meanwhile (CLAIM-5)' \
	'claim->size = next_size(claim, wants, now);' 'claim->size = next_size(claim, wants, now) / 2;' pools
mutant engine/claim.c 'a grant of this moment shrinks the next quantum' \
	'return lesser(claim->size, most);' 'most = 0;' pools
mutant coordinator/fund_turn.c 'a tenant that lacks nothing is not told of (FUND-4)' \
	'now.ns - claim->sent.ns >= release_ns / 2)' 'now.ns < claim->sent.ns + 0 * release_ns)' pools
mutant coordinator/fund_turn.c 'a tenant is told of once more for each quantum' \
	'now.ns - claim->sent.ns >= release_ns / 2)' 'now.ns - claim->sent.ns >= release_ns / 4)' pools
mutant coordinator/fund_turn.c 'nobody asks ahead (FUND-7)' \
	'*ret_least = stake->locked.ahead && !over; /* FUND-7 */' '*ret_least = 0 * (stake->locked.ahead && !over);' pools
mutant engine/claim.c 'a refusal lasts longer than the pool says' \
	'pause_us = lesser(pause_us, answer->retry_us);' 'pause_us = lesser(pause_us, UINT64_MAX);' pools
mutant engine/claim.c 'who got the last units asks for more (CLAIM-7)' \
	'answer->free == 0 || answer->used >= answer->share)' 'answer->free == 0)' pools
mutant engine/claim.h 'what comes back counts as used at the next look (CLAIM-5)' \
	'		claim->seen = claim->taken;' '		(void)0;' pools
mutant stores/pools.c 'a pool that lasts long hides those behind it' \
	'struct list *place = pools->hand;' 'struct list *place = i == 0 ? &pools->all : pools->hand;' pools
mutant face/seat.c 'what a seat that has left was told is used (FUND-10)' \
	'fund_undo(&pending->tenant->stake, &pending->wait);' '(void)fund_undo;' pools
mutant face/seat.c 'a seat that has left goes on waiting (FUND-10)' \
	'		give_up_all(seat);' '		(void)give_up_all;' pools
mutant coordinator/fund_turn.c 'each answer tells of another limit' \
	'	fund->limit_said = mine;' '	fund->limit_said = 0 * mine;' pools
mutant coordinator/fund_turn.c 'guarantees above the limit are said each time' \
	'guarantees <= fund->guarantees_said)' 'guarantees <= 0 * fund->guarantees_said)' pools
mutant coordinator/fund.c 'new terms wait until something lacks (FUND-11)' \
	'	stake->locked.tells = true;' '	stake->locked.tells = false;' pools
mutant engine/pool.c 'guarantees of the absent count, too' \
	'if (!is_present(pool, ask, tenant) && i != self)' 'shares->guarantees += is_present(pool, ask, tenant) ? 0 : tenant->guarantee; if (!is_present(pool, ask, tenant) && i != self)' pools
mutant coordinator/fund_turn.c 'terms of before are taken for those of another node' \
	'are_same(&theirs, &stake->asked_with)' 'are_same(&theirs, &mine)' pools
mutant coordinator/due.h 'a turn that somebody wants is forgotten (DUE-1)' \
	'while (word != 0 && !swap_if_relaxed' 'while (!swap_if_relaxed' funds
mutant coordinator/stake.c 'an ask that waits wakes nobody (DUE-1)' \
	'wakes = said != FUND_DENIED && !stake' 'wakes = said == FUND_DENIED && !stake' funds
mutant coordinator/stake.c 'a stake that leaves is not told of its last hold (FUND-12)' \
	'wakes = stake->locked.leaves || (' 'wakes = (' funds
mutant coordinator/fund_turn.c 'an ask that came during a call waits for another (DUE-1)' \
	'fund->due = mono_earlier(fund->due, now);' '(void)now;' funds
mutant coordinator/stake.c 'what is taken from a till meanwhile is there again (FUND-1)' \
	'credit_units(swap_relaxed(&stake->till->purse, 0)));' 'credit_units(load_relaxed(&stake->till->purse)));' funds
mutant coordinator/stake.c 'an ask that was served gives up, too (FUND-10)' \
	'	waits = wait->waits;' '	waits = true;' funds
mutant engine/alone.c 'a window of a node begins with each ask (ALONE-1)' \
	'	if (mono_reached(now, alone->end)) {' '	if (alone->taken > 0 || mono_reached(now, alone->end)) {' ponds
mutant engine/alone.c 'a window of a node ends before that of the store (ALONE-2)' \
	'ns += ns * 2 * drift_ppm / DRIFT + 1; /* ALONE-2 */' 'ns = ns / 2 + 0 * drift_ppm;' ponds
mutant engine/pool.c 'what goes back is counted with each ask (POOL-4)' \
	'	claim->back += units;' '' ponds
mutant engine/claim.c 'units last from when the answer came (CLAIM-1)' \
	'mono_until(claim->sent, (lasting)' 'mono_until(now.ns > 0 ? now : claim->sent, (lasting)' ponds
mutant engine/claim.c 'drift is not taken off (CLAIM-1)' \
	'(lasting){ answer->left_us }, claim->drift_ppm)' '(lasting){ answer->left_us }, 0 * claim->drift_ppm)' ponds
mutant engine/claim.c 'an answer is added to what was granted (CLAIM-3)' \
	'claim->granted = answer->granted;' 'claim->granted += answer->granted;' ponds
mutant engine/claim.h 'a debt is paid by no units (CLAIM-8)' \
	'	claim->debt -= units;' '	claim->debt -= units; claim->taken -= units;' ponds
mutant engine/claim.h 'no debt is paid (CLAIM-8)' \
	'	if (units > claim->debt)' '	if (units > 0) units = 0; if (units > claim->debt)' ponds
mutant engine/claim.h 'a hold gives back more than it has' \
	'	claim->taken -= units;' '	claim->taken -= units + (claim->taken > units);' ponds

mutant engine/whole.h 'the last part that refuses is told (WHOLE-2)' \
	'return part->verdict == GALE_ALLOW && part->remaining < whole->remaining;' 'return part->verdict == GALE_DENY || part->remaining < whole->remaining;' holds
mutant engine/hold.h 'units of the window before go back (HOLD-2)' \
	'held->past += credit_units(held->word);' 'held->past += 0;' holds
mutant engine/hold.h 'a window that is over is debited (HOLD-2)' \
	'return (struct hold_end){ 0 }; /* HOLD-2 */' 'return (struct hold_end){ .over = cost > units ? cost - units : 0 };' holds
mutant face/hold.c 'a hold that grows after a reset is of before it (HOLD-2)' \
	'	held_keep_voids(held, voids);' '	(void)held_keep_voids;' holds
mutant face/hold.c 'units of before a reset go back with those of after it (HOLD-2)' \
	'		hold_lose(&grown);' '		(void)hold_lose;' holds
mutant face/hold.c 'a hold that grows straight after a reset is of before it (HOLD-2)' \
	'	    !LIKELY(voids == held_voids(held))) {' '	    false) {' holds
mutant face/hold.c 'units of the window before, and of before a reset, leave a hold no room' \
	'		hold_lose(&rest);' '		(void)hold_lose;' holds
mutant face/hold.c 'units of the window before leave a hold no room' \
	'	if (!credit_lives(rest.word, seat_look(growth->trial.seat)) ||' '	if (' holds
mutant face/hold.c 'units of before a reset leave a hold no room' \
	'	    kept_is_before(held_voids(held), kept_voids(purse_of(held))))' '	    false)' holds
mutant shards/kept.c 'another rule ends what is owed under a hold (KEPT-4)' \
	'	return since / 2 <= (dues & DUES_CHANGES) / DUES_CHANGE; /* KEPT-4 */' '	return since / 2 == 0;' holds
mutant shards/kept.c 'a reset is taken for another rule (KEPT-4)' \
	'	return since / 2 <= (dues & DUES_CHANGES) / DUES_CHANGE; /* KEPT-4 */' '	return since > 0;' holds
mutant shards/kept.c 'a debt of before lasts longer than a period of the rule (KEPT-4)' \
	'		more = shortened(kept.purse, more, now);' '		(void)shortened;' holds
mutant shards/change.c 'a debt lasts longer than a period of another rule (KEPT-4)' \
	'			kept_shorten_debt(purse, now);' '			(void)now;' holds
mutant shards/purses.c 'a reset leaves a debt' \
	'	void_all(purse, word + DUES_VOID, purse_debt(purse));' '	void_all(purse, word + DUES_VOID, NULL);' holds
mutant shards/purses.c 'another rule ends a debt (KEPT-4)' \
	'	void_all(purse, word + DUES_VOID, NULL);' '	void_all(purse, word + DUES_VOID, purse_debt(purse));' holds
mutant shards/purses.c 'a reset leaves the count of other rules (KEPT-4)' \
	'	uint32_t word = load_relaxed(purse_dues(purse)) & ~DUES_CHANGES;' '	uint32_t word = load_relaxed(purse_dues(purse));' holds
mutant shards/kept.h 'what goes back pays no debt (KEPT-3)' \
	'put -= units - kept_pay_first(kept.purse, put, clock); /* KEPT-3 */' '(void)kept_pay_first;' holds
mutant shards/kept.h 'units go back over a reset (KEPT-2)' \
	'return voids != (kept.voids & ~UINT64_C(1));' 'return (voids | kept.voids) == UINT64_MAX;' holds
mutant shards/kept.h 'what goes back is kept, too (KEPT-1)' \
	'	kept->word -= units;' '	kept_put(*kept, units, books, clock);' holds
mutant shards/kept.c 'what a call cost beyond is not owed (HOLD-3)' \
	'swap_if_relaxed(debt, &owed, debt_with(owed, more, now));' '(owed + 0 * debt_with(owed, more, now)) == owed;' holds
mutant shards/kept.c 'a call takes what is lent before a debt has it (KEPT-3)' \
	'units = kept_pay_first(purse, credit_until(ends, units), clock); /* lent */' '' owes
mutant face/whole.c 'what a refused call has kept is lost (WHOLE-1)' \
	'seat_give_back(seat, parts[i].limiter, kept[i]);' 'seat_let_go(kept[i]);' holds
mutant face/straight.h 'what another part has taken is lost (WHOLE-1)' \
	'		straight_put_back(seat, straight_kept(&parts[i], now), holds);' '		(void)seat, (void)holds, (void)straight_kept(&parts[i], now);' holds
mutant face/straight.c 'what a refused call has pinned stays pinned (PURSE-3)' \
	'	if (pinned)' '	if (pinned && kept.purse == NULL)' holds
mutant face/hold.c 'a hold is settled twice' \
	'	hold->count = 0;' '	hold->count = count;' holds

# Calls that several limits must admit, and streams that hold units, by lot.
mutant face/whole.c 'what a refused call has kept is lost' \
	'seat_give_back(seat, parts[i].limiter, kept[i]);' 'seat_let_go(kept[i]);' brooks
mutant face/whole.c 'a call that one limit refuses keeps what others gave it' \
	'			seat_give_back(seat, parts[i].limiter, kept[i]);' '			if (i == binding) seat_give_back(seat, parts[i].limiter, kept[i]);' brooks
mutant face/straight.h 'what the parts before have taken is lost' \
	'		straight_put_back(seat, straight_kept(&parts[i], now), holds);' '		(void)seat, (void)holds, (void)straight_kept(&parts[i], now);' brooks
mutant engine/whole.h 'a limit that refuses is passed over' \
	'return part->verdict < whole->verdict;' 'return part->verdict > whole->verdict;' brooks
mutant engine/hold.h 'units of the window before go back into the next (HOLD-2)' \
	'return (struct hold_end){ .back = hold_smaller(units - cost,' 'return (struct hold_end){ .back = hold_smaller(units - cost, UINT64_MAX + 0 *' brooks
mutant engine/hold.h 'a cost beyond is debited to no window (HOLD-3)' \
	'return (struct hold_end){ .over = cost - units }; /* HOLD-3 */' 'return (struct hold_end){ 0 };' brooks
mutant engine/hold.h 'what a hold has of the window before is forgotten' \
	'held->past += credit_units(held->word);' 'held->past += 0;' brooks
mutant face/hold.c 'a hold is settled twice' \
	'	hold->count = 0;' '	hold->count = count;' brooks
mutant face/hold.c 'a hold grows past what was granted' \
	'grown.word = credit_more(grown.word, credit_units(taken));' 'grown.word = credit_more(grown.word, credit_units(taken) + 1);' brooks
mutant face/hold.c 'what was taken to grow is not held' \
	'grown.word = credit_more(grown.word, credit_units(taken));' 'grown.word = credit_more(grown.word, credit_units(taken) / 2);' brooks
mutant face/hold.c 'a hold that may not grow keeps what it took' \
	'			seat_give_back(trial->seat, trial->parts[i].limiter,' '			if (i == trial->count) seat_give_back(trial->seat, trial->parts[i].limiter,' brooks
mutant face/hold.c 'what is held and not used does not go back' \
	'	if (end.back == 0) {' '	if (end.back < UINT64_MAX) {' brooks
mutant face/hold.c 'a cost beyond is owed by no purse' \
	'	if (end.over > 0 && open) {' '	if (end.over > 0 && !open) {' brooks
mutant shards/kept.c 'what a call cost beyond is not owed' \
	'swap_if_relaxed(debt, &owed, debt_with(owed, more, now));' '(owed + 0 * debt_with(owed, more, now)) == owed;' brooks
mutant shards/kept.h 'what goes back is kept, too' \
	'	kept->word -= units;' '	kept_put(*kept, units, books, clock);' brooks

# Tenants' calls and streams, by lot.
mutant coordinator/stake.c 'what a hold does not need goes back into the next window (FUND-12)' \
	'if (claim->window == held->window)' 'if (claim->window >= held->window)' brooks
mutant coordinator/stake.c 'a debt is paid last (CLAIM-8)' \
	'	claim_pay(claim, now); /* CLAIM-8 */' '' brooks
mutant face/tenant_hold.c 'what a call cost beyond is not owed' \
	'uint64_t over = is_open && cost > hold->units ? cost - hold->units : 0;' 'uint64_t over = 0 * is_open;' brooks

# What servers do, beside the engine's own words for it.
mutant stores/postgres/schema.sql 'a lend takes more than is left' \
	'AND had.used + (u.x & 68719476735) <= "limit"' 'AND had.used <= "limit"' postgres-values
mutant stores/postgres/schema.sql 'a lend forgets what its node has out' \
	'"out" = (u.x & 68719476735) + CASE WHEN had.start_us <> first THEN 0' '"out" = (u.x & 68719476735) + CASE WHEN had.start_us <> 0 THEN 0' postgres-values
mutant stores/postgres/schema.sql 'a lend that comes twice lends twice (LEASE-2)' \
	'AND CASE WHEN had.node = whose THEN had.number < base + (u.x >> 36 & 1048575)' 'AND CASE WHEN had.node = whose THEN had.number <= base + (u.x >> 36 & 1048575)' postgres-values
mutant stores/postgres/schema.sql 'a lend ahead drops the rows of other nodes' \
	"words = nullif(after[10:], '{}')" 'words = NULL' postgres-values
mutant stores/postgres/schema.sql 'the least of a lend ahead is not heard' \
	'rest[1] / 2, rest[1] % 2] || rest[3:5] AS ask' '0, rest[1] % 2] || rest[3:5] AS ask' postgres-values
mutant stores/postgres/schema.sql 'who gives back has no more (LEASE-9)' \
	'THEN ask[at + 13] ELSE 0 END; -- LEASE-9' 'THEN 0 ELSE 0 END;' postgres-values
mutant stores/postgres/schema.sql 'who says what it had has none of it (LEASE-9)' \
	'got := had; -- LEASE-9' 'got := 0;' postgres-values
mutant stores/postgres/schema.sql 'a node is believed to have more than was lent ahead (LEASE-8)' \
	'had := least(ask[at + 16], words[its + 3]); -- LEASE-8' 'had := ask[at + 16];' postgres-values
mutant stores/postgres/schema.sql 'a window begins without what was lent ahead (LEASE-7)' \
	'used := words[its + 1] - 1;' 'used := 0;' postgres-values
mutant stores/postgres/schema.sql 'a key with units ahead lives for one window' \
	'IF lent = 0 AND more > 0 THEN' 'IF lent = 0 AND more > 0 AND its IS NOT NULL THEN' postgres-values
mutant stores/postgres/schema.sql 'a share that is granted is not reserved' \
	'm.high := greatest(m.high, share);' 'm.high := m.high;' postgres-beats
mutant stores/postgres/schema.sql 'a group that may have been forgotten is not quiet' \
	'g.quiet := CASE WHEN is_quiet THEN g.beats ELSE 0 END;' 'g.quiet := 0;' postgres-beats
mutant stores/postgres/schema.sql 'in a quiet time a node is granted more than it holds' \
	'RETURN CASE WHEN g.over < g.quiet THEN least(share, held) ELSE share END;' 'RETURN share;' postgres-beats
mutant stores/postgres/schema.sql 'the ceiling falls with the shares (GROUP-15)' \
	'	g.limit := greatest(g.limit, g.parted);' '	g.limit := g.parted;' postgres-beats
mutant stores/postgres/schema.sql 'what a node held under another epoch is forgotten' \
	'IF ask[at + 2] = g.epoch AND ask[at + 3] = m.generation AND m.generation > 0 THEN' 'IF ask[at + 3] = m.generation AND m.generation > 0 THEN' postgres-beats
mutant stores/postgres/schema.sql 'units of a claim go back twice' \
	'units := least(greatest(least(ask[at + 14], granted) - back, 0), t.used);' 'units := least(least(ask[at + 14], granted), t.used);' postgres-claims
mutant stores/postgres/schema.sql 'a claim is granted what its tenant has used' \
	'	spare := greatest(spare - t.used, 0);' '	spare := greatest(spare, 0);' postgres-claims
mutant stores/postgres/schema.sql 'a node that lends sooner is not refused (POOL-6)' \
	' AND p.release_us = ask[at + 4] AND p.protect_us' ' AND p.protect_us' postgres-claims
mutant stores/postgres/schema.sql 'who comes first in a window has the pool (POOL-6)' \
	'p.now_us < p.window_us + 2 * p.period_us THEN' 'p.now_us < p.window_us + p.period_us THEN' postgres-claims
mutant stores/postgres/schema.sql 'a claim is told of in another window' \
	'IF ask[at + 10] = p.window_us THEN -- hear' 'IF ask[at + 10] <= p.window_us THEN -- hear' postgres-claims
mutant stores/redis/beat.lua 'a share that is granted is not reserved' \
	'		high = max(high, granted)' '		high = max(high, 0)' redis-beats
mutant stores/redis/beat.lua 'in a quiet time a node is granted more than it holds' \
	'if over < quiet then granted = min(granted, held) end' '' redis-beats
mutant stores/redis/beat.lua 'a node of the same name is let in while its lease runs' \
	'elseif is_namesake and over < last_beat then' 'elseif is_namesake and over < 0 then' redis-beats
mutant stores/redis/beat.lua 'the ceiling falls with the shares (GROUP-15)' \
	'			limit = max(limit, parted)' '			limit = parted' redis-beats
mutant stores/redis/claim.lua 'units of a claim go back twice' \
	'units = min(minus(min(back, granted), given), self[5])' 'units = min(min(back, granted), self[5])' redis-claims
mutant stores/redis/claim.lua 'a claim is granted what its tenant has used' \
	'minus(rest, others)), self[5])' 'minus(rest, others)), 0)' redis-claims
mutant stores/redis/claim.lua 'a node that lends sooner is not refused (POOL-6)' \
	'length == period and releases == release and' 'length == period and' redis-claims
mutant stores/redis/claim.lua 'who comes first in a window has the pool (POOL-6)' \
	'local left_to = window + 2 * length - instant' 'local left_to = window + length - instant' redis-claims
mutant stores/redis/claim.lua 'a pool of before is garbled' \
	'if is_pool and #bytes == 48 then' 'if is_pool and #bytes == 47 then' redis-claims
mutant stores/redis/claim.lua 'a pool that may have been forgotten is not quiet' \
	'	if not_before > instant then' '	if not_before > LATEST then' redis-claims
mutant stores/redis/step.lua 'a lend that comes twice lends twice (LEASE-2)' \
	'if number > last and used > 0 and becomes <= limit then' 'if number >= last and used > 0 and becomes <= limit then' redis-values
mutant stores/redis/step.lua 'a node is believed to have more than was lent ahead (LEASE-8)' \
	'had_of == start and min(had, unsaid) or 0 -- LEASE-8' 'had_of == start and had or 0' redis-values
mutant stores/redis/step.lua 'a window begins without what was lent ahead (LEASE-7)' \
	'				used = sum - 1' '				used = 0' redis-values
mutant stores/redis/step.lua 'units of another window go back (LEASE-3)' \
	'if not has or tag ~= of or of_part > 1 or -- LEASE-3' 'if not has or of_part > 1 or' redis-values
mutant stores/redis/step.lua 'who gives back has no more (LEASE-9)' \
	'local some = units < has and of_part or 0 -- it may have, all the same: LEASE-9' 'local some = 0' redis-values
mutant stores/redis/step.lua 'who says what it had has none of it (LEASE-9)' \
	'and spent == 0 then got = had end -- LEASE-9' 'and spent == 0 then got = 0 end' redis-values
mutant stores/redis/step.lua 'a lend takes all or nothing' \
	'		if units > limit - used then units = limit - used end' '		if units > limit - used then units = 0 end' redis-values

[ "$missed" -eq 0 ]
