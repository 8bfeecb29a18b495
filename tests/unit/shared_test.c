/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shared_test.c -- a budget that two runtimes share over a store of the process.
 *
 * Each runtime is a node with a clock of its own, which stands still unless the test moves it.  The
 * store keeps the first one's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <gale/tenants.h>

#include "face/face.h"
#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/lines.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)
#define PATIENCE_US GALE_SECONDS(10)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .url = "memory:shared",
	                          .turns = true,
	                          .still = true };

/* ---- Two nodes ----------------------------------------------------------------------- */

#define NODES 2
#define TENANTS 2

struct pair {
	struct house houses[NODES];
	struct gale_budget *budgets[NODES];
	struct gale_tenant *tenants[NODES][TENANTS];
};

static struct gale_budget *open_budget_of(struct house *h,
                                          struct gale_budget_config config)
{
	struct gale_budget *budget;

	config.store = h->store;
	config.name = "api";
	must(gale_budget_open(h->runtime, &config, &budget) == GALE_ERR_OK);
	return budget;
}

static struct gale_budget *open_budget(struct house *h, uint64_t limit,
                                       uint64_t window_us)
{
	return open_budget_of(
	    h, (struct gale_budget_config){ .limit = limit, .window_us = window_us });
}

static struct gale_tenant *open_tenant(struct gale_budget *budget, const char *name,
                                       uint32_t weight)
{
	struct gale_terms terms = { .weight = weight, .name = name };
	struct gale_tenant *tenant;

	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	return tenant;
}

static void open_pair(struct pair *pair, uint64_t limit)
{
	for (int i = 0; i < NODES; i++) {
		house_open(&pair->houses[i], &plan);
		pair->budgets[i] = open_budget(&pair->houses[i], limit, WINDOW_US);
		pair->tenants[i][0] = open_tenant(pair->budgets[i], "big", 4);
		pair->tenants[i][1] = open_tenant(pair->budgets[i], "small", 1);
	}
}

static void close_node(struct pair *pair, int node)
{
	for (int i = 0; i < TENANTS; i++)
		gale_tenant_close(pair->tenants[node][i]);
	gale_budget_close(pair->budgets[node]);
	assert_true(house_close(&pair->houses[node]));
}

/* The store lasts as long as the first one's memory. */
static void close_pair(struct pair *pair)
{
	for (int i = NODES; i-- > 0;)
		close_node(pair, i);
}

static void turn(struct house *h)
{
	(void)gale_turn(h->runtime);
}

static void pass(struct pair *pair, uint64_t us)
{
	for (int i = 0; i < NODES; i++) {
		test_clock_advance(&pair->houses[i].clock, us);
		turn(&pair->houses[i]);
	}
}

/* A window ends, for sure: clocks may run fast or slow. */
static void pass_window(struct pair *pair)
{
	pass(pair, WINDOW_US + WINDOW_US / 200);
}

/* How many of so many asks for cost units are allowed. */
static uint64_t flood(struct pair *pair, int node, int tenant, uint64_t asks,
                      uint64_t cost)
{
	uint64_t allowed = 0;

	while (asks-- > 0)
		allowed +=
		    gale_tenant_wait(pair->houses[node].seat,
		                     pair->tenants[node][tenant], cost, PATIENCE_US)
			.verdict == GALE_ALLOW;
	return allowed;
}

static struct gale_tenant_counts counts_of(struct gale_tenant *tenant)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(tenant, &counts) == GALE_ERR_OK);
	return counts;
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

/* ---- Shares -------------------------------------------------------------------------- */

/* A tenant of two nodes is one tenant: its weight counts once.  T1, T2, T4 */
static void two_nodes_have_one_budget(void **state)
{
	static struct pair pair;
	uint64_t got[TENANTS], quanta = 0, trips = 0;
	(void)state;

	open_pair(&pair, 5000);
	for (int window = 0; window < 5; window++) {
		memset(got, 0, sizeof(got));
		for (int i = 0; i < 3000; i++)
			for (int node = 0; node < NODES; node++) {
				got[0] += flood(&pair, node, 0, 1, 1);
				if (node == 0)
					got[1] += flood(&pair, node, 1, 1, 1);
			}
		assert_in_range(got[0], 3980, 4000);
		assert_in_range(got[1], 995, 1000);
		pass_window(&pair);
	}
	for (int node = 0; node < NODES; node++)
		for (int i = 0; i < TENANTS; i++) {
			struct gale_tenant_counts counts =
			    counts_of(pair.tenants[node][i]);

			quanta += counts.quanta;
			trips += counts.trips;
		}
	print_message("%llu quanta, %llu trips\n", (unsigned long long)quanta,
	              (unsigned long long)trips);
	assert_true(trips * 5 <= quanta * 6);
	close_pair(&pair);
}

static uint64_t lot(uint64_t *seed, uint64_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1;
	return (*seed >> 33) % below;
}

/* Two tenants at two nodes, below their shares, by fits and starts: they are present by their quanta.
 * FUND-4, CLAIM-5 */
static void who_goes_on_spending_makes_a_trip_for_each_quantum(void **state)
{
	uint64_t seed = 1, quanta = 0, trips = 0, asked = 0, got = 0;
	static struct pair pair;
	(void)state;

	open_pair(&pair, 40000);
	for (int ms = 0; ms < 5000; ms++) {
		for (int i = 0; i < NODES * TENANTS; i++) {
			uint64_t asks = lot(&seed, 8) * (lot(&seed, 4) > 0);

			asked += asks;
			got += flood(&pair, i / 2, i % 2, asks, 1);
		}
		pass(&pair, 1000);
	}
	for (int i = 0; i < NODES * TENANTS; i++) {
		struct gale_tenant_counts counts =
		    counts_of(pair.tenants[i / 2][i % 2]);

		quanta += counts.quanta;
		trips += counts.trips;
	}
	print_message("%llu quanta, %llu trips\n", (unsigned long long)quanta,
	              (unsigned long long)trips);
	assert_true(got * 100 >= asked * 99);
	assert_true(trips * 10 <= quanta * 11);
	close_pair(&pair);
}

/* Who is alone has all of it, from any node. */
/* ---- Requests that the store gets ---------------------------------------------------- */

/* Of a window: a claim asks for as much as is used in a sixteenth of it (engine/claim.c). */
#define QUANTA 16
#define MOMENTS 1000 /* of a window */
#define STEADY_SEEDS LONG_OR_BRIEF(64, 8)
#define STEADY_WINDOWS 4

/* A store that counts the claims it is asked for. */
static struct counted {
	struct store store;
	struct store *inner;
	uint64_t claims;
} counted;

static enum store_result counted_run(struct store *self, struct store_op *op,
                                     bool patient)
{
	counted.claims += op->verb == STORE_CLAIM;
	(void)self;
	return store_run(counted.inner, op, patient);
}

static const struct store_ops counted_ops = { .run = counted_run };

/* Both nodes have entered it: all that they ask from now on is counted. */
static void begin_to_count(struct pair *pair)
{
	counted = (struct counted){ .store = { .ops = &counted_ops },
		                    .inner = pair->houses[0].store->inner };
	for (int i = 0; i < NODES; i++)
		pair->houses[i].store->post.client.store = &counted.store;
}

/* Units that a tenant asks for at a node in a window, the same in each. */
struct steady {
	uint64_t demand[NODES][TENANTS];
	uint64_t due[NODES][TENANTS]; /* parts of a unit: MOMENTS are one */
	uint64_t asked, got;
};

static void ask_steadily(struct pair *pair, struct steady *steady, uint64_t windows)
{
	for (uint64_t step = 0; step < windows * MOMENTS; step++) {
		for (int i = 0; i < NODES * TENANTS; i++) {
			uint64_t *due = &steady->due[i / TENANTS][i % TENANTS];

			*due += steady->demand[i / TENANTS][i % TENANTS];
			steady->asked += *due / MOMENTS;
			steady->got +=
			    flood(pair, i / TENANTS, i % TENANTS, *due / MOMENTS, 1);
			*due %= MOMENTS;
		}
		pass(pair, WINDOW_US / MOMENTS);
	}
}

/* How many requests the store gets.  In the first window claims learn what the demand is. */
static uint64_t play_steadily(uint64_t seed)
{
	struct steady steady = { 0 };
	struct chance c = { seed };
	static struct pair pair;

	open_pair(&pair, 100000);
	for (int i = 0; i < NODES * TENANTS; i++)
		steady.demand[i / TENANTS][i % TENANTS] = 100 + chance_log(&c, 8000);
	ask_steadily(&pair, &steady, 1);
	begin_to_count(&pair);
	steady.asked = steady.got = 0;
	ask_steadily(&pair, &steady, STEADY_WINDOWS);
	/* Units end before their window does, as clocks may differ: in one of its thousand moments. */
	assert_true(steady.got * 1000 >= steady.asked * 998);
	assert_true(counted.claims > 0);
	close_pair(&pair);
	return counted.claims;
}

/* The units that were used are so many quanta, however many are granted at a time.  W-18, CLAIM-5 */
static void a_steady_demand_makes_a_request_for_each_quantum(void **state)
{
	uint64_t quanta = STEADY_SEEDS * QUANTA * STEADY_WINDOWS * NODES * TENANTS;
	uint64_t requests = 0;
	(void)state;

	for (uint64_t seed = 0; seed < STEADY_SEEDS; seed++)
		requests += play_steadily(seed);
	print_message("%llu quanta, %llu requests\n", (unsigned long long)quanta,
	              (unsigned long long)requests);
	assert_true(requests * 10 <= quanta * 11);
}

static void who_is_alone_has_all(void **state)
{
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	assert_int_equal(flood(&pair, 0, 1, 300, 1), 300);
	assert_int_equal(flood(&pair, 1, 1, 1000, 1) + flood(&pair, 0, 1, 1000, 1),
	                 700);
	is_told(
	    gale_tenant_wait(pair.houses[1].seat, pair.tenants[1][1], 1, PATIENCE_US),
	    GALE_DENY, GALE_WHY_SPENT);
	is_told(gale_tenant_ask(pair.houses[1].seat, pair.tenants[1][1], 1001),
	        GALE_DENY, GALE_WHY_TOO_MUCH);
	pass_window(&pair);
	assert_int_equal(flood(&pair, 1, 1, 2000, 1), 1000);
	close_pair(&pair);
}

#define GUARANTEE 60
#define STEPS 70 /* in a window: ten come when nothing of the guarantee is left */

/* At both nodes the others ask for all there is, all the time.  Who asks again within its guarantee is
 * admitted, each time.  T2 */
static void a_guarantee_is_there_each_time(void **state)
{
	const struct gale_terms terms[TENANTS] = {
		{ .weight = 1000000, .name = "big" },
		{ .guarantee = GUARANTEE, .weight = 1, .name = "small" },
	};
	static struct pair pair;
	(void)state;

	open_pair(&pair, 2000);
	for (int i = 0; i < NODES * TENANTS; i++)
		assert_int_equal(
		    gale_tenant_set_terms(pair.tenants[i / 2][i % 2], &terms[i % 2]),
		    GALE_ERR_OK);
	for (int window = 0; window < 3; window++) {
		for (int step = 0; step < GUARANTEE; step++) {
			assert_int_equal(flood(&pair, step % NODES, 1, 1, 1), 1);
			for (int node = 0; node < NODES; node++)
				(void)flood(&pair, node, 0, 300, 1);
			pass(&pair, WINDOW_US / STEPS);
		}
		pass_window(&pair);
	}
	close_pair(&pair);
}

/* ---- What goes back ------------------------------------------------------------------- */

/* Units that lie idle at one node are there for the others.  L6 */
static void idle_units_go_back(void **state)
{
	static struct pair pair;
	uint64_t left;
	(void)state;

	open_pair(&pair, 1000);
	assert_int_equal(flood(&pair, 0, 0, 100, 1), 100);
	left = counts_of(pair.tenants[0][0]).ahead;
	assert_true(left > 0);
	assert_int_equal(flood(&pair, 1, 0, 2000, 1), 900 - left);
	for (int i = 0; i < 6; i++)
		pass(&pair, WINDOW_US / 16);
	assert_int_equal(counts_of(pair.tenants[0][0]).ahead, 0);
	assert_int_equal(flood(&pair, 1, 0, 2000, 1), left);
	close_pair(&pair);
}

/* A tenant that is closed gives back what it has not used, and no more. */
static void what_is_closed_gives_back(void **state)
{
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	assert_int_equal(flood(&pair, 1, 0, 100, 1), 100);
	close_node(&pair, 1);
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 900);
	close_node(&pair, 0);
}

/* No unit is used in the window after its own, whatever the node's clock says.  W-4 */
static void no_unit_reaches_into_the_next_window(void **state)
{
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	pass(&pair, WINDOW_US - 1000 - HOUSE_NOW % WINDOW_US);
	assert_int_equal(flood(&pair, 0, 0, 10, 1), 10);
	assert_true(counts_of(pair.tenants[0][0]).ahead > 0);
	pass(&pair, 1000);
	is_told(gale_tenant_ask(pair.houses[0].seat, pair.tenants[0][0], 1), GALE_DENY,
	        GALE_WHY_LATE);
	pass(&pair, WINDOW_US / 200);
	assert_int_equal(flood(&pair, 1, 0, 2000, 1) + flood(&pair, 0, 0, 2000, 1),
	                 1000);
	close_pair(&pair);
}

/* ---- Asks ----------------------------------------------------------------------------- */

/* An ask that finds nothing in hand is answered later, or is denied and found later. */
static void an_ask_may_wait_or_not(void **state)
{
	static struct pair pair;
	struct gale_completion completion;
	struct gale_seat *seat;
	int tag;
	(void)state;

	open_pair(&pair, 1000);
	seat = pair.houses[0].seat;
	is_told(gale_tenant_send(seat, pair.tenants[0][0], 5, &tag), GALE_PENDING,
	        GALE_WHY_ASKED);
	assert_int_equal(gale_seat_completions(seat, &completion, 1), 0);
	turn(&pair.houses[0]);
	assert_int_equal(gale_seat_completions(seat, &completion, 1), 1);
	assert_ptr_equal(completion.tag, &tag);
	is_told(completion.answer, GALE_ALLOW, GALE_WHY_OWN);
	is_told(gale_tenant_ask(seat, pair.tenants[0][1], 5), GALE_DENY, GALE_WHY_LATE);
	turn(&pair.houses[0]);
	is_told(gale_tenant_ask(seat, pair.tenants[0][1], 5), GALE_ALLOW, GALE_WHY_OWN);
	close_pair(&pair);
}

/* Between two windows nothing is asked, and the clock stands still: the ask gives up.  FUND-10 */
static void who_gives_up_uses_nothing(void **state)
{
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	pass(&pair, WINDOW_US - 1000 - HOUSE_NOW % WINDOW_US);
	assert_int_equal(flood(&pair, 0, 0, 10, 1), 10);
	pass(&pair, 1000);
	is_told(
	    gale_tenant_wait(pair.houses[0].seat, pair.tenants[0][0], 700, PATIENCE_US),
	    GALE_DENY, GALE_WHY_LATE);
	pass(&pair, WINDOW_US / 200);
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 1000);
	close_pair(&pair);
}

/* Neither an ask that waits, nor one that was allowed and not fetched, uses anything.  FUND-10 */
static void a_seat_that_leaves_uses_nothing(void **state)
{
	static struct pair pair;
	struct gale_seat *seat;
	(void)state;

	open_pair(&pair, 1000);
	must(gale_join(pair.houses[0].runtime, &seat) == GALE_ERR_OK);
	is_told(gale_tenant_send(seat, pair.tenants[0][0], 700, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	gale_leave(seat);
	turn(&pair.houses[0]);
	assert_int_equal(counts_of(pair.tenants[0][0]).used, 0);
	must(gale_join(pair.houses[0].runtime, &seat) == GALE_ERR_OK);
	is_told(gale_tenant_send(seat, pair.tenants[0][0], 700, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	turn(&pair.houses[0]);
	assert_int_equal(counts_of(pair.tenants[0][0]).used, 700);
	gale_leave(seat);
	assert_int_equal(counts_of(pair.tenants[0][0]).used, 0);
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 1000);
	close_pair(&pair);
}

/* Those that wait are told when the tenant is closed, and a seat may leave before. */
static void who_waits_is_told_of_the_end(void **state)
{
	static struct pair pair;
	struct gale_completion completion;
	struct gale_seat *seat;
	(void)state;

	open_pair(&pair, 1000);
	seat = pair.houses[0].seat;
	is_told(gale_tenant_send(seat, pair.tenants[0][0], 5, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	gale_tenant_close(pair.tenants[0][0]);
	assert_int_equal(gale_seat_completions(seat, &completion, 1), 1);
	is_told(completion.answer, GALE_DENY, GALE_WHY_CLOSED);
	is_told(gale_tenant_send(seat, pair.tenants[0][1], 5, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	gale_budget_close(pair.budgets[0]);
	is_told(gale_tenant_wait(seat, pair.tenants[0][1], 5, PATIENCE_US), GALE_DENY,
	        GALE_WHY_CLOSED);
	gale_tenant_close(pair.tenants[0][1]);
	close_node(&pair, 1);
	assert_true(house_close(&pair.houses[0]));
}

/* ---- Terms ---------------------------------------------------------------------------- */

static void terms_change_for_all_nodes(void **state)
{
	struct gale_terms terms = { .weight = 1, .cap = 100, .name = "big" };
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	assert_int_equal(flood(&pair, 0, 0, 1, 1) + flood(&pair, 0, 1, 1, 1), 2);
	assert_int_equal(gale_tenant_set_terms(pair.tenants[0][0], &terms),
	                 GALE_ERR_OK);
	assert_int_equal(flood(&pair, 0, 0, 1000, 1), 99);
	assert_int_equal(flood(&pair, 1, 1, 2000, 1), 899);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(gale_budget_set_limit(pair.budgets[i], 2000),
		                 GALE_ERR_OK);
	assert_int_equal(flood(&pair, 1, 1, 2000, 1), 1000);
	close_pair(&pair);
}

/* POOL-6: the log names the setting. */
static void is_refused(struct house *h, struct lines *lines,
                       struct gale_budget_config config, const char *setting)
{
	struct gale_budget *budget = open_budget_of(h, config);
	struct gale_tenant *tenant = open_tenant(budget, "other", 1);
	char line[128];

	snprintf(line, sizeof(line),
	         "error: budget api: other nodes have another %s: all need the same "
	         "window_us, release_us and protect_us",
	         setting);
	assert_false(lines_have(lines, line));
	is_told(gale_tenant_wait(h->seat, tenant, 1, PATIENCE_US), GALE_DENY,
	        GALE_WHY_CHANGED);
	assert_true(lines_have(lines, line));
	gale_tenant_close(tenant);
	gale_budget_close(budget);
}

/* L15: what nodes disagree about is said, and refused where they cannot both be served. */
static void nodes_that_disagree_are_told(void **state)
{
	struct house_plan with_lines = plan;
	struct lines lines;
	static struct pair pair;
	(void)state;

	lines_open(&lines);
	with_lines.log = &lines.log;
	house_open(&pair.houses[0], &plan);
	house_open(&pair.houses[1], &with_lines);
	pair.budgets[0] = open_budget(&pair.houses[0], 1000, WINDOW_US);
	pair.tenants[0][0] = open_tenant(pair.budgets[0], "big", 4);
	pair.budgets[1] = open_budget(&pair.houses[1], 500, WINDOW_US);
	pair.tenants[1][0] = open_tenant(pair.budgets[1], "big", 3);
	assert_int_equal(flood(&pair, 0, 0, 100, 1), 100);
	assert_int_equal(flood(&pair, 1, 0, 100, 1), 100);
	assert_true(
	    lines_have(&lines, "another node has the limit 1000, and this one 500"));
	assert_true(lines_have(&lines, "tenant big: another node has weight 4, "
	                               "guarantee 0, no cap, and this one weight 3"));
	is_refused(
	    &pair.houses[1], &lines,
	    (struct gale_budget_config){ .limit = 1000, .window_us = WINDOW_US / 2 },
	    "window_us");
	is_refused(&pair.houses[1], &lines,
	           (struct gale_budget_config){
		       .limit = 1000, .window_us = WINDOW_US, .release_us = WINDOW_US },
	           "release_us");
	is_refused(&pair.houses[1], &lines,
	           (struct gale_budget_config){
		       .limit = 1000, .window_us = WINDOW_US, .protect_us = 1 },
	           "protect_us");
	for (int i = NODES; i-- > 0;) {
		gale_tenant_close(pair.tenants[i][0]);
		gale_budget_close(pair.budgets[i]);
		assert_true(house_close(&pair.houses[i]));
	}
}

/* T2: gold's guarantee is there after a pause that its process allows, though another process would
 * lend it sooner.  That process is let in when gold's has not asked for a whole window; gold's is then
 * refused. */
static void another_release_takes_no_guarantee(void **state)
{
	struct gale_budget_config config = { .limit = 1000,
		                             .window_us = WINDOW_US,
		                             .release_us = GALE_NEVER };
	struct gale_terms gold = { .weight = 1, .guarantee = 500, .name = "gold" };
	static struct pair pair;
	struct gale_answer answer;
	(void)state;

	for (int i = 0; i < NODES; i++) {
		house_open(&pair.houses[i], &plan);
		pair.budgets[i] = open_budget_of(&pair.houses[i], config);
		config.release_us = GALE_MILLIS(20);
	}
	must(gale_tenant_open(pair.budgets[0], &gold, &pair.tenants[0][0]) ==
	     GALE_ERR_OK);
	pair.tenants[1][1] = open_tenant(pair.budgets[1], "silver", 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(flood(&pair, 0, 0, 1, 1), 1);
		pass(&pair, WINDOW_US / 2);
		answer = gale_tenant_wait(pair.houses[1].seat, pair.tenants[1][1], 1,
		                          PATIENCE_US);
		is_told(answer, GALE_DENY, GALE_WHY_CHANGED);
		assert_in_range(answer.retry_after_us, 1, WINDOW_US);
		assert_int_equal(flood(&pair, 0, 0, 600, 1), 600);
		pass_window(&pair);
	}
	assert_int_equal(flood(&pair, 0, 0, 1, 1), 1);
	for (int i = 0; i < 2; i++) {
		pass_window(&pair);
		assert_int_equal(flood(&pair, 1, 1, 1, 1), i);
	}
	is_told(
	    gale_tenant_wait(pair.houses[0].seat, pair.tenants[0][0], 1, PATIENCE_US),
	    GALE_DENY, GALE_WHY_CHANGED);
	for (int i = NODES; i-- > 0;) {
		gale_tenant_close(pair.tenants[i][i]);
		gale_budget_close(pair.budgets[i]);
		assert_true(house_close(&pair.houses[i]));
	}
}

/* A denial by the store is remembered for release_us at most.  Units that another node leaves
 * meanwhile by terms that ask for less are there by then, though that node does not ask.  FUND-11 */
static void a_guarantee_that_is_lowered_is_found_in_time(void **state)
{
	struct gale_terms small = { .weight = 1, .guarantee = 900, .name = "small" };
	static struct pair pair;
	struct gale_answer answer;
	uint64_t trips;
	(void)state;

	open_pair(&pair, 1000);
	must(gale_tenant_set_terms(pair.tenants[1][1], &small) == GALE_ERR_OK);
	assert_int_equal(flood(&pair, 1, 1, 1, 1), 1);
	assert_int_equal(flood(&pair, 0, 0, 200, 1), 80);
	small.guarantee = 0;
	must(gale_tenant_set_terms(pair.tenants[1][1], &small) == GALE_ERR_OK);
	turn(&pair.houses[1]);
	trips = counts_of(pair.tenants[0][0]).trips;
	answer =
	    gale_tenant_wait(pair.houses[0].seat, pair.tenants[0][0], 1, PATIENCE_US);
	is_told(answer, GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(counts_of(pair.tenants[0][0]).trips, trips);
	assert_in_range(answer.retry_after_us, 1, WINDOW_US / 8);
	pass(&pair, WINDOW_US / 8);
	assert_in_range(flood(&pair, 0, 0, 2000, 1), 800 - 80 - 1, 800 - 80);
	close_pair(&pair);
}

struct page {
	struct gale_sink sink;
	size_t length;
	char text[65536];
};

static bool write_page(struct gale_sink *self, const char *text, size_t bytes)
{
	struct page *page = (struct page *)self;

	must(page->length + bytes < sizeof(page->text));
	memcpy(page->text + page->length, text, bytes);
	page->length += bytes;
	return true;
}

static bool page_has(const struct house *h, const char *line)
{
	static struct page page;

	page = (struct page){ .sink = { write_page } };
	must(gale_metrics_write(h->runtime, &page.sink) == GALE_ERR_OK);
	return strstr(page.text, line) != NULL;
}

/* A node knows the guarantees of its own tenants alone.  T1 */
static void guarantees_of_several_nodes_are_told(void **state)
{
	struct gale_terms big = { .weight = 3, .guarantee = 600, .name = "big" },
			  small = { .weight = 1, .guarantee = 500, .name = "small" };
	struct house_plan with_lines = plan;
	struct lines lines;
	static struct pair pair;
	(void)state;

	lines_open(&lines);
	with_lines.log = &lines.log;
	house_open(&pair.houses[0], &plan);
	house_open(&pair.houses[1], &with_lines);
	for (int i = 0; i < NODES; i++)
		pair.budgets[i] = open_budget(&pair.houses[i], 1000, WINDOW_US);
	must(gale_tenant_open(pair.budgets[0], &big, &pair.tenants[0][0]) ==
	     GALE_ERR_OK);
	must(gale_tenant_open(pair.budgets[1], &small, &pair.tenants[1][1]) ==
	     GALE_ERR_OK);
	assert_int_equal(flood(&pair, 0, 0, 1, 1), 1);
	assert_int_equal(flood(&pair, 1, 1, 2000, 1), 400);
	assert_true(lines_have(
	    &lines, "warning: budget api: tenants of all nodes have guarantees of 1100 "
		    "together, and the limit is 1000: not all can be kept"));
	assert_true(
	    page_has(&pair.houses[1], "\ngale_budget_guarantees{budget=\"api\"} 1100"));
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 599);
	big.guarantee = 500;
	assert_int_equal(gale_tenant_set_terms(pair.tenants[0][0], &big), GALE_ERR_OK);
	pass_window(&pair);
	assert_int_equal(flood(&pair, 0, 0, 1, 1), 1);
	assert_int_equal(flood(&pair, 1, 1, 2000, 1), 500);
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 499);
	for (int i = NODES; i-- > 0;) {
		gale_tenant_close(pair.tenants[i][i]);
		gale_budget_close(pair.budgets[i]);
		assert_true(house_close(&pair.houses[i]));
	}
}

static void what_cannot_be_shared_is_refused(void **state)
{
	struct gale_budget_config config = { .limit = 10, .window_us = WINDOW_US };
	struct gale_terms terms = { .weight = 1 };
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct house h, other;
	(void)state;

	house_open(&h, &plan);
	house_open(&other, &plan);
	config.store = other.store;
	config.name = "api";
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget), GALE_ERR_STORE);
	config.store = h.store;
	config.name = NULL;
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget), GALE_ERR_NAME);
	config.name = "";
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget), GALE_ERR_NAME);
	config.name = "api";
	config.max_tenants = 257;
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget),
	                 GALE_ERR_TENANTS);
	config.max_tenants = 1;
	config.lending = GALE_PARTED;
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget),
	                 GALE_ERR_LENDING);
	config.lending = GALE_LENT;
	assert_int_equal(gale_budget_open(h.runtime, &config, &budget), GALE_ERR_OK);
	assert_int_equal(gale_tenant_open(budget, &terms, &tenant), GALE_ERR_NAME);
	terms.name = "big";
	assert_int_equal(gale_tenant_open(budget, &terms, &tenant), GALE_ERR_OK);
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	assert_true(house_close(&other));
	assert_true(house_close(&h));
}

/* ---- Names that come and go ----------------------------------------------------------- */

#define NAMES 1000
#define KNOWN 256 /* tenants, at the store */

/* In a window, each of a thousand names asks once; some units are left for each that is known.  The
 * store keeps 256, and the others are refused and told so, until another window.  T1 */
static uint64_t come_and_go(struct pair *pair, uint64_t *ret_full)
{
	uint64_t got = 0;

	*ret_full = 0;
	for (int i = 0; i < NAMES; i++) {
		int node = i % NODES;
		char name[16];
		struct gale_tenant *tenant;
		struct gale_answer answer;

		snprintf(name, sizeof(name), "n%d", i);
		tenant = open_tenant(pair->budgets[node], name, 1);
		answer =
		    gale_tenant_wait(pair->houses[node].seat, tenant, 1, PATIENCE_US);
		got += answer.verdict == GALE_ALLOW;
		*ret_full += answer.why == GALE_WHY_FULL;
		gale_tenant_close(tenant);
	}
	return got;
}

static void names_by_the_thousand_get_no_more_than_the_limit(void **state)
{
	static struct pair pair;
	uint64_t full, bytes;
	(void)state;

	open_pair(&pair, 4 * NAMES);
	assert_int_equal(come_and_go(&pair, &full), KNOWN);
	assert_int_equal(full, NAMES - KNOWN);
	bytes = pair.houses[0].allocator.bytes;
	for (int window = 0; window < 6; window++) {
		pass_window(&pair);
		assert_in_range(come_and_go(&pair, &full), 1, KNOWN);
	}
	assert_in_range(pair.houses[0].allocator.most, bytes, 2 * bytes);
	close_pair(&pair);
	open_pair(&pair, 10);
	assert_int_equal(come_and_go(&pair, &full), 10);
	close_pair(&pair);
}

/* ---- Threads -------------------------------------------------------------------------- */

#define THREADS 4
#define ASKS 4000
#define LIMIT 3000

struct asker {
	struct gale_runtime *runtime;
	struct gale_tenant *tenant;
	uint64_t allowed;
};

static void *ask_and_ask(void *argument)
{
	struct asker *asker = argument;
	struct gale_seat *seat;

	must(gale_join(asker->runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < ASKS; i++)
		asker->allowed +=
		    gale_tenant_wait(seat, asker->tenant, 1, PATIENCE_US).verdict ==
		    GALE_ALLOW;
	gale_leave(seat);
	return NULL;
}

/* All is in one window of the store, whose clock stands still.  T1 */
static void threads_of_two_nodes_get_what_there_is(void **state)
{
	struct house_plan threads_plan = plan;
	struct asker askers[THREADS];
	pthread_t threads[THREADS];
	static struct pair pair;
	uint64_t all = 0;
	(void)state;

	plan.turns = false;
	open_pair(&pair, LIMIT);
	plan = threads_plan;
	for (int i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ pair.houses[i % NODES].runtime,
			                    pair.tenants[i % NODES][i / NODES], 0 };
		must(pthread_create(&threads[i], NULL, ask_and_ask, &askers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		must(pthread_join(threads[i], NULL) == 0);
		all += askers[i].allowed;
	}
	assert_in_range(all, LIMIT * 95 / 100, LIMIT);
	close_pair(&pair);
}

static void a_tenant_of_a_shared_budget_has_no_tenants(void **state)
{
	struct gale_terms terms = { .weight = 1, .name = "below" };
	struct gale_tenant *tenant;
	struct pair pair;

	(void)state;
	open_pair(&pair, 100);
	terms.parent = pair.tenants[0][0];
	assert_int_equal(gale_tenant_open(pair.budgets[0], &terms, &tenant),
	                 GALE_ERR_PARENT_STORE);
	close_pair(&pair);
}

/* ---- A seat that leaves with an answer ------------------------------------------------ */

static struct gale_seat *seat_with_units(struct pair *pair, uint64_t units)
{
	struct gale_seat *seat;

	must(gale_join(pair->houses[0].runtime, &seat) == GALE_ERR_OK);
	is_told(gale_tenant_send(seat, pair->tenants[0][0], units, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	turn(&pair->houses[0]);
	return seat;
}

/* The tenant itself, and another at another node.  FUND-3, FUND-10 */
static void what_was_not_fetched_is_there_for_all(void **state)
{
	static struct pair pair;
	struct gale_seat *seat;
	(void)state;

	open_pair(&pair, 1000);
	seat = seat_with_units(&pair, 1000);
	is_told(
	    gale_tenant_wait(pair.houses[0].seat, pair.tenants[0][0], 1, PATIENCE_US),
	    GALE_DENY, GALE_WHY_SPENT);
	gale_leave(seat);
	is_told(gale_tenant_ask(pair.houses[0].seat, pair.tenants[0][0], 1), GALE_ALLOW,
	        GALE_WHY_OWN);
	for (int i = 0; i < 10; i++)
		pass(&pair, WINDOW_US / 50);
	assert_int_equal(flood(&pair, 1, 1, 100, 1), 100);
	close_pair(&pair);
}

static void counts_of_units_never_fall(void **state)
{
	static struct pair pair;
	struct gale_seat *seat;
	uint64_t before;
	(void)state;

	open_pair(&pair, 1000);
	seat = seat_with_units(&pair, 700);
	before = counts_of(pair.tenants[0][0]).allowed;
	gale_leave(seat);
	assert_in_range(counts_of(pair.tenants[0][0]).allowed, before, 700);
	close_pair(&pair);
}

/* ---- Threads that look -------------------------------------------------------------- */

#define HANDLES 500

static bool swallow(struct gale_sink *sink, const char *text, size_t length)
{
	(void)sink;
	(void)text;
	(void)length;
	return true;
}

struct opener {
	struct gale_budget *budget;
	_Atomic bool done;
};

static void *open_and_close(void *arg)
{
	struct opener *opener = arg;

	for (int i = 0; i < HANDLES; i++)
		gale_tenant_close(open_tenant(opener->budget, "x", 1));
	store_release(&opener->done, true);
	return NULL;
}

static void metrics_see_no_tenant_that_is_not_open_yet(void **state)
{
	static struct pair pair;
	struct gale_sink sink = { swallow };
	struct opener opener = { 0 };
	pthread_t thread;
	(void)state;

	open_pair(&pair, 1000);
	opener.budget = pair.budgets[0];
	must(pthread_create(&thread, NULL, open_and_close, &opener) == 0);
	while (!load_acquire(&opener.done)) {
		must(gale_metrics_write(pair.houses[0].runtime, &sink) == GALE_ERR_OK);
		turn(&pair.houses[0]);
	}
	must(pthread_join(thread, NULL) == 0);
	close_pair(&pair);
}

/* ---- A fork --------------------------------------------------------------------------- */

static int asks_in_child(void *arg)
{
	const struct pair *pair = arg;
	struct gale_answer answer =
	    gale_tenant_wait(pair->houses[0].seat, pair->tenants[0][0], 1, PATIENCE_US);

	return answer.verdict == GALE_DENY && answer.why == GALE_WHY_FORKED ? 0 : 1;
}

/* Also of what its parent was lent. */
static void a_child_is_refused_and_uses_nothing(void **state)
{
	static struct pair pair;
	(void)state;

	open_pair(&pair, 1000);
	assert_int_equal(flood(&pair, 0, 0, 2, 1), 2);
	assert_true(counts_of(pair.tenants[0][0]).ahead > 0);
	assert_int_equal(child_run(asks_in_child, &pair), 0);
	assert_int_equal(flood(&pair, 0, 0, 2000, 1), 998);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_of_a_shared_budget_has_no_tenants),
		cmocka_unit_test(two_nodes_have_one_budget),
		cmocka_unit_test(who_goes_on_spending_makes_a_trip_for_each_quantum),
		cmocka_unit_test(a_steady_demand_makes_a_request_for_each_quantum),
		cmocka_unit_test(who_is_alone_has_all),
		cmocka_unit_test(a_guarantee_is_there_each_time),
		cmocka_unit_test(idle_units_go_back),
		cmocka_unit_test(what_is_closed_gives_back),
		cmocka_unit_test(no_unit_reaches_into_the_next_window),
		cmocka_unit_test(an_ask_may_wait_or_not),
		cmocka_unit_test(who_gives_up_uses_nothing),
		cmocka_unit_test(a_seat_that_leaves_uses_nothing),
		cmocka_unit_test(who_waits_is_told_of_the_end),
		cmocka_unit_test(terms_change_for_all_nodes),
		cmocka_unit_test(nodes_that_disagree_are_told),
		cmocka_unit_test(another_release_takes_no_guarantee),
		cmocka_unit_test(guarantees_of_several_nodes_are_told),
		cmocka_unit_test(a_guarantee_that_is_lowered_is_found_in_time),
		cmocka_unit_test(what_cannot_be_shared_is_refused),
		cmocka_unit_test(names_by_the_thousand_get_no_more_than_the_limit),
		cmocka_unit_test(threads_of_two_nodes_get_what_there_is),
		cmocka_unit_test(what_was_not_fetched_is_there_for_all),
		cmocka_unit_test(counts_of_units_never_fall),
		cmocka_unit_test(metrics_see_no_tenant_that_is_not_open_yet),
		cmocka_unit_test(a_child_is_refused_and_uses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
