/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_processes_test.c -- processes that share a budget over a real Redis and a real PostgreSQL,
 * at random costs, while they change its tenants' terms by lot.
 *
 * Each seed is two budgets, of which each process spends until nothing is left.  In one the terms
 * stay: tenants get by weight.  In the other each process changes them while it asks, until half of
 * the limit is used: a tenant that nobody asks for meanwhile finds its guarantee.  The last process
 * comes when the others are at it.  Windows are of a day, so that none turns.
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
#include "tests/support/must.h"

#define PROCESSES LONG_OR_BRIEF(3, 2)
#define TENANTS 3
#define SHY 0 /* in a budget whose terms change */
#define GUARANTEE 300
#define HEAVY 8 /* the least weight of the others then */
#define LIMIT 3000
#define COST_MOST 3
#define SEEDS LONG_OR_BRIEF(4, 1)
#define SECONDS 240 /* a process that takes so long is ended */
#define WITHIN GALE_SECONDS(10)

/* What all processes see. */
static struct board {
	pthread_barrier_t all;
	_Atomic uint64_t used[TENANTS];
} * board;

static struct both_servers both;

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_budget *budget;
	struct gale_seat *seat;
	struct gale_tenant *tenants[TENANTS];
	struct gale_terms terms[TENANTS];
	struct chance chance;
};

static const char *const names[TENANTS] = { "a", "b", "c" };

/* ---- A process ----------------------------------------------------------------------- */

static void open_budget(struct node *node, int which, uint64_t seed, bool changes)
{
	struct gale_budget_config budget = { .limit = LIMIT,
		                             .window_us = GALE_DAYS(1),
		                             .patience_us = WITHIN };
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = 1 };
	struct gale_config config = { .shards = 1 };
	char name[32];

	snprintf(name, sizeof(name), "b%u%s", (unsigned)seed, changes ? "c" : "");
	budget.name = name;
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	budget.store = node->store;
	must(gale_budget_open(node->runtime, &budget, &node->budget) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

/* The same terms in each process, as they follow from the seed.  By weight the shy one's share would
 * be less than its guarantee. */
static void open_tenants(struct node *node, uint64_t seed, bool changes)
{
	struct chance chance = { seed };

	for (size_t i = 0; i < TENANTS; i++) {
		struct gale_terms terms = { .name = names[i] };

		terms.weight = (uint32_t)chance_between(&chance, 1, 4);
		if (changes)
			terms.weight = i == SHY ? 1 : HEAVY;
		if (changes && i == SHY)
			terms.guarantee = GUARANTEE;
		node->terms[i] = terms;
		must(gale_tenant_open(node->budget, &node->terms[i],
		                      &node->tenants[i]) == GALE_ERR_OK);
	}
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	for (size_t i = 0; i < TENANTS; i++)
		gale_tenant_close(node->tenants[i]);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static struct gale_answer ask(struct node *node, size_t i, uint64_t cost)
{
	struct gale_answer answer =
	    gale_tenant_wait(node->seat, node->tenants[i], cost, WITHIN);

	if (answer.verdict == GALE_ALLOW)
		(void)add_relaxed(&board->used[i], cost);
	else
		(void)usleep(1000); /* leaves the processor to the servers */
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
	for (size_t i = 0; i < TENANTS; i++) {
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
	must(gale_tenant_set_terms(node->tenants[i], terms) == GALE_ERR_OK);
}

/* Not for the shy one.  All may be held up by their caps for a while. */
static void spend_while_terms_change(struct node *node)
{
	while (!half_is_used(NULL)) {
		size_t i = chance_between(&node->chance, SHY + 1, TENANTS - 1);

		if (chance_one_in(&node->chance, 16))
			change_terms(node);
		(void)ask(node, i, chance_between(&node->chance, 1, COST_MOST));
	}
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

static void calm_terms(struct node *node)
{
	for (size_t i = SHY + 1; i < TENANTS; i++) {
		node->terms[i].cap = node->terms[i].guarantee = 0;
		must(gale_tenant_set_terms(node->tenants[i], &node->terms[i]) ==
		     GALE_ERR_OK);
	}
}

static void wait_for_all(void)
{
	(void)pthread_barrier_wait(&board->all);
}

/* T2: of its guarantee all is there, whatever the others have asked for. */
static bool finds_its_guarantee(struct node *node)
{
	uint64_t got = load_relaxed(&board->used[SHY]);

	while (got < GUARANTEE && ask(node, SHY, 1).verdict == GALE_ALLOW)
		got++;
	return got == GUARANTEE;
}

static int live(int which, uint64_t seed, bool changes, unsigned who)
{
	struct node node = { .chance = { seed * PROCESSES + who } };
	bool holds = true;

	alarm(SECONDS);
	if (who == PROCESSES - 1)
		wait_until(some_is_used, NULL);
	open_budget(&node, which, seed, changes);
	open_tenants(&node, seed, changes);
	be_present(&node);
	if (changes) {
		spend_while_terms_change(&node);
		wait_for_all();
		calm_terms(&node);
		spend_all(&node, SHY + 1);
		wait_for_all();
		holds = who != 0 || finds_its_guarantee(&node);
		wait_for_all();
	}
	spend_all(&node, 0);
	wait_for_all(); /* what is given back, nobody gets any more */
	close_node(&node);
	return holds ? 0 : 1;
}

/* ---- All of them --------------------------------------------------------------------- */

static void run_all(int which, uint64_t seed, bool changes)
{
	pid_t children[PROCESSES];

	for (size_t i = 0; i < TENANTS; i++)
		store_relaxed(&board->used[i], 0);
	for (unsigned who = 0; who < PROCESSES; who++) {
		children[who] = fork();
		must(children[who] >= 0);
		if (children[who] == 0)
			_exit(live(which, seed, changes, who));
	}
	for (unsigned who = 0; who < PROCESSES; who++) {
		int status;

		must(waitpid(children[who], &status, 0) == children[who]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	/* T1, T3 */
	assert_in_range(used_by_all(), LIMIT - TENANTS, LIMIT);
}

/* T4, and of the smallest to the largest for its weight 0.99. */
static void check_weights(uint64_t seed)
{
	struct chance chance = { seed };
	double least = LIMIT, most = 0, dearest = 0;

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
	for (int which = 0; which < BOTH; which++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			run_all(which, seed, /* changes= */ false);
			check_weights(seed);
		}
}

static void terms_that_processes_change_hold(void **state)
{
	(void)state;
	for (int which = 0; which < BOTH; which++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			run_all(which, seed, /* changes= */ true);
}

static void open_board(void)
{
	pthread_barrierattr_t shared;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
	             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(board != MAP_FAILED);
	must(pthread_barrierattr_init(&shared) == 0);
	must(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
	must(pthread_barrier_init(&board->all, &shared, PROCESSES) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_of_processes_get_by_weight),
		cmocka_unit_test(terms_that_processes_change_hold),
	};
	int failed;

	open_board();
	both_servers_start(&both);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	both_servers_stop(&both);
	return failed;
}
