/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.c -- what does an ask of a tenant cost, and how often is the store asked for it?
 *
 * Through tenants.h, against an ask of one limit by name that is answered from credit.  Own now:
 * the seat ticks once in a turn.  What the store had to be asked for is waited for within the row.
 */
#include <gale/tenants.h>

#include <time.h>

#include "bench/bench.h"
#include "bench/crowd.h"

#define TENANTS_MOST 10000

struct question {
	const char *name; /* of the budget */
	int tenants;      /* that are present */
	enum gale_lending lending;
	uint64_t cost; /* of an ask; 0: one unit */
	bool shared;   /* over a store */

	struct gale_tenant *tenant; /* made by prepare: one of them */
};

static struct crowd crowd = CROWD_LENT(1);

static bool asks_for(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost)
{
	return gale_tenant_ask(seat, tenant, cost).verdict == GALE_ALLOW ||
	       gale_tenant_wait(seat, tenant, cost, CROWD_PATIENCE).verdict ==
	           GALE_ALLOW;
}

static bool asks_one(struct gale_seat *seat, struct gale_tenant *tenant)
{
	return asks_for(seat, tenant, 1);
}

/* ---- An ask ---------------------------------------------------------------------- */

static void open_budget(struct question *question, struct gale_seat *seat)
{
	struct gale_budget_config config = { .limit = CROWD_MUCH,
		                             .window_us = GALE_SPAN_MAX_US,
		                             .max_tenants = (uint32_t)question->tenants,
		                             .lending = question->lending };
	struct gale_terms terms = { .weight = 1 };
	struct gale_budget *budget;

	if (question->shared) {
		config.store = crowd.store;
		config.name = question->name;
		config.patience_us = CROWD_PATIENCE;
		terms.name = "tenant";
		terms.guarantee = CROWD_MUCH;
	}
	crowd_must(gale_budget_open(crowd.runtime, &config, &budget));
	for (int i = 0; i < question->tenants; i++) {
		crowd_must(gale_tenant_open(budget, &terms, &question->tenant));
		bench_expect(asks_one(seat, question->tenant), "a first ask");
	}
}

static void prepare(void *arg)
{
	struct question *question = arg;
	struct gale_seat *seat;

	if (question->tenant)
		return;
	crowd_prepare(&crowd);
	crowd_must(gale_join(crowd.runtime, &seat));
	open_budget(question, seat);
	gale_leave(seat);
}

static void run(struct bench *b)
{
	const struct question *question = bench_arg(b);
	uint64_t cost = question->cost > 0 ? question->cost : 1;
	struct gale_seat *seat;

	crowd_must(gale_join(crowd.runtime, &seat));
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(seat);
		while (n-- > 0)
			bench_expect(asks_for(seat, question->tenant, cost),
			             "a verdict");
	}
	gale_leave(seat);
}

/* ---- Holds ------------------------------------------------------------------------ */

static void must_be_allowed(struct gale_answer answer)
{
	bench_expect(answer.verdict == GALE_ALLOW, "a verdict");
}

/* Two units are held, and one of them goes back. */
static void run_hold(struct bench *b)
{
	const struct question *question = bench_arg(b);
	struct gale_tenant_held hold;
	struct gale_seat *seat;

	crowd_must(gale_join(crowd.runtime, &seat));
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(seat);
		while (n-- > 0) {
			must_be_allowed(gale_tenant_hold(seat, question->tenant, 2,
			                                 &hold, CROWD_PATIENCE));
			crowd_must(gale_tenant_commit(seat, &hold, 1));
		}
	}
	gale_leave(seat);
}

/* One hold a turn. */
static void run_grow(struct bench *b)
{
	const struct question *question = bench_arg(b);
	struct gale_tenant_held hold;
	struct gale_seat *seat;

	crowd_must(gale_join(crowd.runtime, &seat));
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(seat);
		must_be_allowed(
		    gale_tenant_hold(seat, question->tenant, 1, &hold, CROWD_PATIENCE));
		while (n-- > 0)
			must_be_allowed(
			    gale_tenant_grow(seat, &hold, 1, CROWD_PATIENCE));
		crowd_must(gale_tenant_commit(seat, &hold, 0));
	}
	gale_leave(seat);
}

/* ---- Round trips ----------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define SHARERS 4

/* Tenants that ask within their guarantees as fast as one thread can, for some windows. */
static void share_for(double length, struct gale_seat *seat,
                      struct gale_tenant *tenants[SHARERS])
{
	for (double end = seconds() + length; seconds() < end;) {
		gale_tick(seat);
		for (int i = 0; i < 1000 * SHARERS; i++)
			bench_expect(asks_one(seat, tenants[i % SHARERS]), "a verdict");
	}
}

static double trips_of_a_quantum(void *arg)
{
	static const char *const names[SHARERS] = { "a", "b", "c", "d" };
	struct gale_budget_config config = { .limit = CROWD_MUCH,
		                             .window_us = GALE_SECONDS(1),
		                             .name = "quanta",
		                             .patience_us = CROWD_PATIENCE };
	struct gale_terms terms = { .weight = 1, .guarantee = CROWD_MUCH / SHARERS };
	struct gale_tenant *tenants[SHARERS];
	uint64_t quanta = 0, trips = 0;
	struct gale_budget *budget;
	struct gale_seat *seat;

	(void)arg;
	crowd_open(&crowd);
	config.store = crowd.store;
	crowd_must(gale_budget_open(crowd.runtime, &config, &budget));
	crowd_must(gale_join(crowd.runtime, &seat));
	for (int i = 0; i < SHARERS; i++) {
		terms.name = names[i];
		crowd_must(gale_tenant_open(budget, &terms, &tenants[i]));
	}
	share_for(bench_is_smoke() ? 0.1 : 5, seat, tenants);
	for (int i = 0; i < SHARERS; i++) {
		struct gale_tenant_counts counts;

		crowd_must(gale_tenant_stats(tenants[i], &counts));
		quanta += counts.quanta;
		trips += counts.trips;
	}
	return (double)trips / (double)quanta;
}

/* ---- The rows -------------------------------------------------------------------- */

static struct question one = { .name = "one", .tenants = 1 };
static struct question hundred = { .name = "hundred", .tenants = 100 };
static struct question all = { .name = "all", .tenants = TENANTS_MOST };
static struct question one_parted = { .tenants = 1, .lending = GALE_PARTED };
static struct question all_parted = { .tenants = TENANTS_MOST, .lending = GALE_PARTED };
/* More than a purse can have, of a share that has more than all asks need. */
static struct question one_lent = { .tenants = 1, .cost = 1 << 20 };
static struct question shared = { .name = "shared", .tenants = 1, .shared = true };

static void row_of(const char *name, void (*runs)(struct bench *),
                   struct question *question, double bar)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = runs,
	                               .prepare = prepare,
	                               .arg = question,
	                               .floor = "leases/1 key, own now",
	                               .bar = bar });
}

static void row(const char *name, struct question *question, double bar)
{
	row_of(name, run, question, bar);
}

void ask_tenants(void)
{
	row("tenants/one of 1, own now", &one, 1.3);
	row("tenants/one of 100, own now", &hundred, 1.3);
	row("tenants/one of 10,000, own now", &all, 1.3);
	row("tenants/one of 1, beyond its purse, own now", &one_parted, 4);
	row("tenants/one of 10,000, beyond its purse, own now", &all_parted, 4);
	row("tenants/one of 1, lent, beyond any purse, own now", &one_lent, 4);
	row("tenants/shared over a store, own now", &shared, 1.3);
	row_of("tenants/hold and commit, own now", run_hold, &one, 2);
	row_of("tenants/grow, own now", run_grow, &one, 1.3);
	bench_add_figure(&(struct bench_figure){ .name = "tenants/shared over a store",
	                                         .unit = "round trips a quantum",
	                                         .measure = trips_of_a_quantum,
	                                         .bar = 1.1 });
}
