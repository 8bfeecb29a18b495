/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_processes_test.c -- processes that share a budget over a real Redis and a real PostgreSQL,
 * at random costs, while they change its tenants' terms by lot.
 *
 * Each seed is two budgets on each server, of which each process spends until nothing is left.  In one
 * the terms stay: tenants get by weight.  In the other each process changes them while it asks, until
 * half of the limit is used: a tenant without asks meanwhile finds its guarantee.  The last process
 * comes when the others are at it.  Windows are of a day, so that none turns.
 *
 * In two more the cost of a call is known afterwards: processes hold a bound, let it grow, and commit.  In
 * the second of these no process asks for the last tenant until half of the limit is used.
 *
 * In all but the first, with each odd seed, processes evict by lot: they close a tenant or the whole
 * budget, also under calls that run, and open it again later.  What a tenant has used stays used, and
 * what it had in hand goes back: so the laws are the same as without evictions.
 *
 * In the last kind windows are of two seconds and turn. There calls may cost more than they hold, and
 * processes pause by lot.  It judges the limit of each window alone.
 *
 * A process mostly waits for round trips, and these take long where others have the machine.  So all
 * budgets of one kind run at the same time, each with processes and a board of its own; those of the last
 * kind beside all the others.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/tenants.h>

#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/both_servers.h"
#include "tests/support/length.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define PROCESSES LONG_OR_BRIEF(3, 2)
#define TENANTS 3
#define SHY 0 /* in a budget whose terms change */
#define GUARANTEE 300
#define HEAVY 8 /* the least weight of the others then */
#define LIMIT 3000
#define COST_MOST 3
#define HOLD_MOST 12 /* that a call has */
#define LATE (TENANTS - 1)
#define TURN_US GALE_SECONDS(2)
#define TURN_LIMIT 40
#define TURN_HOLD_MOST 4
#define TURNS 256 /* windows, of those that turn: more than SECONDS have */
#define FULL_TURNS LONG_OR_BRIEF(4, 1) /* that are used up, before it ends */
#define PAUSE_US 3000                  /* at most */
#define EVICT LONG_OR_BRIEF(96, 24)    /* one in so many steps evicts */
#define EVICT_ALL 8                    /* one in so many of these closes the budget */
#define SEEDS LONG_OR_BRIEF(4, 1)
#define SECONDS 240 /* a process that takes so long is ended */
#define WITHIN GALE_SECONDS(10)

/* What all processes of a budget see. */
static struct board {
	pthread_barrier_t all;
	_Atomic uint64_t used[TENANTS];
	uint64_t first; /* the number of the window that was open at the start */
	struct turn {
		_Atomic uint64_t used;
		_Atomic uint64_t over; /* of it: beyond what was held */
	} turns[TURNS];
} * boards;                 /* of all budgets that run; shared */
static struct board *board; /* of this process, or the one that is judged */

enum kind { ASKS, CHANGES, HOLDS, LATE_HOLDS, TURNING };

/* A budget that runs, and its processes. */
struct run {
	int which;
	uint64_t seed;
	enum kind kind;
	struct board *board;
	pid_t children[PROCESSES];
};
#define RUNS (BOTH * SEEDS)

static struct both_servers both;

/* A call that runs; no units: none does. */
struct call {
	struct gale_tenant_held held;
	struct gale_tenant *tenant; /* that it began with */
	uint64_t window;            /* the number of the one that it is of */
};

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_budget *budget;
	struct gale_seat *seat;
	struct gale_tenant *tenants[TENANTS]; /* NULL: it was evicted */
	struct gale_terms terms[TENANTS];
	struct call calls[TENANTS];
	struct chance chance;
	enum kind kind;
	uint64_t seed;
};

static const char *const names[TENANTS] = { "a", "b", "c" };

/* ---- A process ----------------------------------------------------------------------- */

static void open_budget(struct node *node)
{
	bool turns = node->kind == TURNING;
	struct gale_budget_config budget = { .limit = turns ? TURN_LIMIT : LIMIT,
		                             .window_us =
		                                 turns ? TURN_US : GALE_DAYS(1),
		                             .patience_us = WITHIN,
		                             .store = node->store };
	char name[32];

	snprintf(name, sizeof(name), "b%u.%u", (unsigned)node->seed,
	         (unsigned)node->kind);
	budget.name = name;
	must(gale_budget_open(node->runtime, &budget, &node->budget) == GALE_ERR_OK);
}

static void open_node(struct node *node, int which)
{
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = 1 };
	struct gale_config config = { .shards = 1 };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	open_budget(node);
}

/* The same terms in each process, as they follow from the seed.  By weight the shy one's share would
 * be less than its guarantee. */
static void choose_terms(struct node *node)
{
	struct chance chance = { node->seed };
	bool changes = node->kind == CHANGES;

	for (size_t i = 0; i < TENANTS; i++) {
		struct gale_terms terms = { .name = names[i] };

		terms.weight = (uint32_t)chance_between(&chance, 1, 4);
		if (changes)
			terms.weight = i == SHY ? 1 : HEAVY;
		if (changes && i == SHY)
			terms.guarantee = GUARANTEE;
		node->terms[i] = terms;
	}
}

/* Opened again, if it was evicted. */
static struct gale_tenant *tenant_of(struct node *node, size_t i)
{
	if (!node->tenants[i])
		must(gale_tenant_open(node->budget, &node->terms[i],
		                      &node->tenants[i]) == GALE_ERR_OK);
	return node->tenants[i];
}

/* Its call may run on. */
static void evict(struct node *node, size_t i)
{
	if (node->tenants[i])
		gale_tenant_close(node->tenants[i]);
	node->tenants[i] = NULL;
}

static void evict_all(struct node *node)
{
	gale_budget_close(node->budget);
	for (size_t i = 0; i < TENANTS; i++)
		evict(node, i);
}

static bool evicts(const struct node *node)
{
	return node->kind != ASKS && node->seed % 2 == 1;
}

/* Of the tenants from there on. */
static void evict_by_lot(struct node *node, size_t first)
{
	if (!evicts(node) || !chance_one_in(&node->chance, EVICT))
		return;
	if (chance_one_in(&node->chance, EVICT_ALL)) {
		evict_all(node);
		open_budget(node);
	} else {
		evict(node, chance_between(&node->chance, first, TENANTS - 1));
	}
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	evict_all(node);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

/* Of an admission that began and ended in one window, that window: it is none where it lies across a
 * boundary, and may be of either. */
#define NO_WINDOW UINT64_MAX

static uint64_t window_now(void)
{
	return wall_us() / TURN_US - board->first;
}

static struct turn *turn_of(const struct call *call)
{
	must(call->window < TURNS);
	return &board->turns[call->window];
}

/* What is held of a tenant that was evicted goes back all the same, and it owes nothing. */
static void end_call(struct node *node, size_t i, uint64_t cost)
{
	struct call *call = &node->calls[i];
	uint64_t units = call->held.units;
	enum gale_err err = gale_tenant_commit(node->seat, &call->held, cost);

	must(err == (call->tenant == node->tenants[i] ? GALE_ERR_OK : GALE_ERR_TENANT));
	must(call->held.units == 0);
	(void)add_relaxed(&board->used[i], cost);
	if (node->kind != TURNING || call->window == NO_WINDOW)
		return;
	(void)add_relaxed(&turn_of(call)->used, cost);
	if (cost > units)
		(void)add_relaxed(&turn_of(call)->over, cost - units);
}

static struct gale_answer begin_call(struct node *node, size_t i, uint64_t bound)
{
	struct call *call = &node->calls[i];
	uint64_t window = window_now();
	struct gale_answer answer;

	call->tenant = tenant_of(node, i);
	answer = gale_tenant_hold(node->seat, call->tenant, bound, &call->held, WITHIN);
	call->window = window_now() == window ? window : NO_WINDOW;
	return answer;
}

/* A hold that grows in another window has units of both. */
static void grow_call(struct node *node, size_t i, uint64_t more)
{
	struct call *call = &node->calls[i];
	bool grows = gale_tenant_grow(node->seat, &call->held, more, WITHIN).verdict ==
	             GALE_ALLOW;

	if (grows && window_now() != call->window)
		call->window = NO_WINDOW;
}

/* Of a call that is held, the cost is one unit at least. */
static struct gale_answer ask(struct node *node, size_t i, uint64_t cost)
{
	struct gale_answer answer;

	if (node->kind >= HOLDS) {
		answer = begin_call(node, i, cost);
		if (answer.verdict == GALE_ALLOW)
			end_call(node, i, chance_between(&node->chance, 1, cost));
		return answer;
	}
	answer = gale_tenant_wait(node->seat, tenant_of(node, i), cost, WITHIN);
	if (answer.verdict == GALE_ALLOW)
		(void)add_relaxed(&board->used[i], cost);
	return answer;
}

struct first_ask {
	struct node *node;
	size_t tenant;
};

/* By the server, if only that there is nothing left below the cap. */
static bool is_answered(void *arg)
{
	const struct first_ask *first = arg;
	struct gale_answer answer = ask(first->node, first->tenant, 1);

	return !gale_why_is_outage(answer.why) && answer.why != GALE_WHY_QUARANTINE;
}

/* A machine may be slow; SECONDS bounds it. */
static void wait_until(bool (*holds)(void *arg), void *arg)
{
	while (!becomes_true(holds, arg))
		continue;
}

static void be_present(struct node *node)
{
	for (size_t i = 0; i < TENANTS - (node->kind == LATE_HOLDS); i++) {
		struct first_ask first = { node, i };

		wait_until(is_answered, &first);
	}
}

static uint64_t used_by_all(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TENANTS; i++)
		sum += load_relaxed(&board->used[i]);
	return sum;
}

static bool half_is_used(void *arg)
{
	(void)arg;
	return used_by_all() >= LIMIT / 2;
}

static bool some_is_used(void *arg)
{
	(void)arg;
	return used_by_all() >= LIMIT / 6;
}

static void change_terms(struct node *node)
{
	size_t i = chance_between(&node->chance, SHY + 1, TENANTS - 1);
	struct gale_terms *terms = &node->terms[i];

	terms->weight = (uint32_t)chance_between(&node->chance, HEAVY, 3 * HEAVY);
	terms->guarantee = chance_below(&node->chance, LIMIT / 4);
	terms->cap = chance_one_in(&node->chance, 2)
	                 ? 0
	                 : terms->guarantee + chance_between(&node->chance, 1, LIMIT);
	if (terms->cap > LIMIT)
		terms->cap = LIMIT;
	must(gale_tenant_set_terms(tenant_of(node, i), terms) == GALE_ERR_OK);
}

/* Not for the shy one.  All may be held up by their caps until a process changes them: this one does so
 * after sixteen asks, and then asks the server.  So it does not spin on what it remembers. */
static void spend_while_terms_change(struct node *node)
{
	while (!half_is_used(NULL)) {
		size_t i = chance_between(&node->chance, SHY + 1, TENANTS - 1);

		if (chance_one_in(&node->chance, 16))
			change_terms(node);
		evict_by_lot(node, SHY);
		(void)ask(node, i, chance_between(&node->chance, 1, COST_MOST));
	}
}

static void end_calls(struct node *node)
{
	for (size_t i = 0; i < TENANTS; i++)
		if (node->calls[i].held.units > 0)
			end_call(node, i,
			         chance_between(&node->chance, 0,
			                        node->calls[i].held.units));
}

/* A call that holds at most so much, and costs at most so many times what it holds. */
static void step_call(struct node *node, size_t i, uint64_t most, uint64_t times)
{
	struct chance *c = &node->chance;
	struct gale_tenant_held *held = &node->calls[i].held;

	if (held->units == 0)
		(void)begin_call(node, i, chance_between(c, 1, most));
	else if (chance_one_in(c, 3) && held->units < most &&
	         node->calls[i].tenant == node->tenants[i])
		grow_call(node, i, chance_between(c, 1, most - held->units));
	else
		end_call(node, i, chance_between(c, 0, times * held->units));
}

/* A call of each tenant runs at most; of all together, less than a quarter of the limit.  The rest of a
 * hold goes back into what this process has in hand. */
static void spend_by_holds(struct node *node)
{
	while (used_by_all() < LIMIT / 4 * 3) {
		bool is_late = node->kind == LATE_HOLDS && !half_is_used(NULL);

		evict_by_lot(node, 0);
		step_call(node, chance_below(&node->chance, TENANTS - is_late),
		          HOLD_MOST, 1);
	}
	end_calls(node);
}

static bool is_used_up(const struct turn *turn)
{
	return load_relaxed(&turn->used) - load_relaxed(&turn->over) >= TURN_LIMIT / 2;
}

static uint64_t full_turns(void)
{
	uint64_t now = window_now(), full = 0;

	for (uint64_t i = 0; i < now; i++)
		full += is_used_up(&board->turns[i]);
	return full;
}

static void spend_turn_by_turn(struct node *node)
{
	while (full_turns() < FULL_TURNS) {
		evict_by_lot(node, 0);
		step_call(node, chance_below(&node->chance, TENANTS), TURN_HOLD_MOST,
		          2);
		if (chance_one_in(&node->chance, 8))
			nap(chance_below(&node->chance, PAUSE_US));
	}
	end_calls(node);
}

static bool is_spent(const struct gale_answer *answer)
{
	return answer->verdict == GALE_DENY &&
	       (answer->why == GALE_WHY_SPENT || answer->why == GALE_WHY_OTHERS);
}

/* Of the tenants from there on, until none gets one more unit. */
static void spend_all(struct node *node, size_t first)
{
	bool spent;

	do {
		spent = true;
		for (size_t i = first; i < TENANTS; i++) {
			struct gale_answer answer;

			(void)ask(node, i, chance_between(&node->chance, 1, COST_MOST));
			answer = ask(node, i, 1);
			spent = spent && is_spent(&answer);
		}
	} while (!spent);
}

/* A change, even to the same terms, makes this process forget what it was refused. */
static void set_terms(struct node *node, size_t i)
{
	must(gale_tenant_set_terms(tenant_of(node, i), &node->terms[i]) == GALE_ERR_OK);
}

static void calm_terms(struct node *node)
{
	for (size_t i = SHY + 1; i < TENANTS; i++) {
		node->terms[i].cap = node->terms[i].guarantee = 0;
		set_terms(node, i);
	}
}

static void spend_all_anew(struct node *node)
{
	for (size_t i = 0; i < TENANTS; i++)
		set_terms(node, i);
	spend_all(node, 0);
}

static void wait_for_all(void)
{
	(void)pthread_barrier_wait(&board->all);
}

/* Process by process the server hears of the calm terms, and what it refuses meanwhile may be reserved
 * for guarantees that are no more.  When all were refused under calm terms, it has heard of them from
 * each process, and no ask with others is on its way (CLAIM-3).  What was refused is asked for again. */
static void spend_under_calm_terms(struct node *node)
{
	for (int i = 0; i < 2; i++) {
		calm_terms(node);
		spend_all(node, SHY + 1);
		wait_for_all();
	}
}

/* T2: of its guarantee all is there, whatever the others have asked for.  On a machine with much else to
 * do a round trip may take longer than an ask waits for it; then it is asked again. */
static bool finds_its_guarantee(struct node *node)
{
	uint64_t got = load_relaxed(&board->used[SHY]);

	while (got < GUARANTEE) {
		struct gale_answer answer = ask(node, SHY, 1);

		got += answer.verdict == GALE_ALLOW;
		if (answer.verdict == GALE_ALLOW || gale_why_is_outage(answer.why))
			continue;
		print_error("%d of its %d units, then %s\n", (int)got, GUARANTEE,
		            gale_why_name(answer.why));
		return false;
	}
	return true;
}

/* T3: what evicted tenants had in hand is on its way to the server, and is refused until it is there.
 * If it is lost, this process is ended.  What is there twice is found when the rest has come. */
static void spend_what_comes_back(struct node *node)
{
	while (used_by_all() < LIMIT - TENANTS)
		spend_all_anew(node);
	wait_for_all();
	spend_all_anew(node);
}

static bool spend(struct node *node, unsigned who)
{
	bool holds = true;

	be_present(node);
	if (node->kind == HOLDS || node->kind == LATE_HOLDS)
		spend_by_holds(node);
	if (node->kind == CHANGES) {
		spend_while_terms_change(node);
		wait_for_all();
		spend_under_calm_terms(node);
		holds = who != 0 || finds_its_guarantee(node);
		wait_for_all();
	}
	spend_all(node, 0);
	if (evicts(node))
		spend_what_comes_back(node);
	return holds;
}

static int live(int which, uint64_t seed, enum kind kind, unsigned who)
{
	struct node node = { .chance = { seed * PROCESSES + who },
		             .kind = kind,
		             .seed = seed };
	bool holds = true;

	alarm(SECONDS);
	if (who == PROCESSES - 1 && kind != TURNING)
		wait_until(some_is_used, NULL);
	open_node(&node, which);
	choose_terms(&node);
	if (kind == TURNING)
		spend_turn_by_turn(&node);
	else
		holds = spend(&node, who);
	wait_for_all(); /* what is given back, nobody gets any more */
	close_node(&node);
	return holds ? 0 : 1;
}

/* ---- All of them --------------------------------------------------------------------- */

static void start(struct run *run)
{
	board = run->board;
	for (size_t i = 0; i < TENANTS; i++)
		store_relaxed(&board->used[i], 0);
	memset(board->turns, 0, sizeof(board->turns));
	board->first = wall_us() / TURN_US;
	for (unsigned who = 0; who < PROCESSES; who++) {
		run->children[who] = fork();
		must(run->children[who] >= 0);
		if (run->children[who] == 0)
			_exit(live(run->which, run->seed, run->kind, who));
	}
}

/* False: a process did not find what it must, or did not end in time. */
static bool ends_well(const struct run *run)
{
	bool well = true;

	for (unsigned who = 0; who < PROCESSES; who++) {
		int status;

		must(waitpid(run->children[who], &status, 0) == run->children[who]);
		if (status == 0)
			continue;
		print_error("server %d, seed %d, process %u: wait status %#x\n",
		            run->which, (int)run->seed, who, (unsigned)status);
		well = false;
	}
	return well;
}

/* T1, T3 */
static void check_limit(const struct run *run)
{
	if (used_by_all() > LIMIT || used_by_all() < LIMIT - TENANTS)
		fail_msg("server %d, seed %d: %d of %d were used", run->which,
		         (int)run->seed, (int)used_by_all(), LIMIT);
}

static void start_all(struct run runs[RUNS], struct board *first, enum kind kind)
{
	for (size_t i = 0; i < RUNS; i++) {
		runs[i] = (struct run){ .which = (int)(i % BOTH),
			                .seed = i / BOTH + 1,
			                .kind = kind,
			                .board = &first[i] };
		start(&runs[i]);
	}
}

/* No process is left behind, whatever is found. */
static void end_all(struct run runs[RUNS], void (*judge)(const struct run *run))
{
	bool well[RUNS];

	for (size_t i = 0; i < RUNS; i++)
		well[i] = ends_well(&runs[i]);
	for (size_t i = 0; i < RUNS; i++) {
		board = runs[i].board;
		assert_true(well[i]);
		judge(&runs[i]);
	}
}

static void run_all(enum kind kind, void (*judge)(const struct run *run))
{
	struct run runs[RUNS];

	start_all(runs, boards, kind);
	end_all(runs, judge);
}

/* T4, and of the smallest to the largest for its weight 0.99. */
static void check_weights(const struct run *run)
{
	struct chance chance = { run->seed };
	double least = LIMIT, most = 0, dearest = 0;

	check_limit(run);
	for (size_t i = 0; i < TENANTS; i++) {
		uint64_t weight = chance_between(&chance, 1, 4);
		double part = (double)load_relaxed(&board->used[i]) / (double)weight;

		least = part < least ? part : least;
		most = part > most ? part : most;
		dearest += (double)COST_MOST / (double)weight;
	}
	assert_true(most - least <= dearest);
	assert_true(least >= 0.99 * most);
}

static void tenants_of_processes_get_by_weight(void **state)
{
	(void)state;
	run_all(ASKS, check_weights);
}

/* The guarantee is what a process looks for itself. */
static void terms_that_processes_change_hold(void **state)
{
	(void)state;
	run_all(CHANGES, check_limit);
}

/* T4: what is known afterwards is as fair. */
static void costs_that_are_known_afterwards_are_fair(void **state)
{
	(void)state;
	run_all(HOLDS, check_weights);
}

/* Of what it has missed nothing is made up for. */
static void check_late(const struct run *run)
{
	struct chance chance = { run->seed };
	double parts[TENANTS], weights[TENANTS];

	check_limit(run);
	for (size_t i = 0; i < TENANTS; i++) {
		weights[i] = (double)chance_between(&chance, 1, 4);
		parts[i] = (double)load_relaxed(&board->used[i]) / weights[i];
	}
	for (size_t i = 0; i < LATE; i++)
		assert_true(parts[LATE] <= parts[i] + HOLD_MOST / weights[LATE] +
		                               HOLD_MOST / weights[i]);
}

static void who_comes_late_gains_nothing_by_it(void **state)
{
	(void)state;
	run_all(LATE_HOLDS, check_late);
}

/* T1: beyond the limit, only what calls have cost beyond their holds. */
static void check_turns(const struct run *run)
{
	for (uint64_t i = 0; i < TURNS; i++) {
		uint64_t used = load_relaxed(&board->turns[i].used);
		uint64_t over = load_relaxed(&board->turns[i].over);

		if (used > TURN_LIMIT + over)
			fail_msg("server %d, seed %d, window %d: %d of %d and %d",
			         run->which, (int)run->seed, (int)i, (int)used,
			         TURN_LIMIT, (int)over);
	}
}

/* It takes some windows of time, so it runs beside all other cases. */
static struct run turning[RUNS];

static void no_window_has_more_though_tenants_are_evicted(void **state)
{
	(void)state;
	end_all(turning, check_turns);
}

static void open_boards(void)
{
	pthread_barrierattr_t shared;

	boards = mmap(NULL, 2 * RUNS * sizeof(*boards), PROT_READ | PROT_WRITE,
	              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(boards != MAP_FAILED);
	must(pthread_barrierattr_init(&shared) == 0);
	must(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
	for (size_t i = 0; i < 2 * RUNS; i++)
		must(pthread_barrier_init(&boards[i].all, &shared, PROCESSES) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_of_processes_get_by_weight),
		cmocka_unit_test(terms_that_processes_change_hold),
		cmocka_unit_test(costs_that_are_known_afterwards_are_fair),
		cmocka_unit_test(who_comes_late_gains_nothing_by_it),
		cmocka_unit_test(no_window_has_more_though_tenants_are_evicted),
	};
	int failed;

	open_boards();
	both_servers_start(&both);
	start_all(turning, &boards[RUNS], TURNING);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	both_servers_stop(&both);
	return failed;
}
