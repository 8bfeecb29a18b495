/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * conformance_test.c -- one script, four stores, the same answers.
 *
 * Ten thousand steps of all rules, drawn from a seed, on the embedded store, Redis,
 * PostgreSQL and a Redis Cluster at once, through gale.h.  The rules are so slow that the time a run takes
 * changes no verdict and no count; waits may differ by as long as that.
 *
 * Then a crowd: two hundred threads at once, each with a seat, at a limit of fifty.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "tests/model/random.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"
#include "tests/support/rules.h"

#define YEARS GALE_DAYS(3650)
#define QUEUE GALE_DAYS(100) /* pacers cannot be slower */
#define STEPS 10000
#define STORES 4
#define RULES 12
#define KEYS 4
#define CROWD 200
#define APART_US GALE_MINUTES(5) /* how long a run may take, and more */
#define PATIENCE GALE_SECONDS(10)

struct site {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	struct gale_limiter *limiters[RULES];
	struct gale_answer booked[RULES][KEYS]; /* the latest, of pacers */
};

static struct redis_server redis;
static struct redis_cluster cluster;
static struct postgres_server *postgres;
static char urls[STORES][256];

/* ---- Sites ----------------------------------------------------------------------- */

static struct gale_rule slow_rule(int which)
{
	const struct gale_rule rules[RULES] = {
		gale_fixed_window(50, YEARS),
		gale_sliding_window(50, YEARS, 10),
		gale_sliding_log(50, YEARS),
		gale_gcra(50, YEARS, 20),
		gale_token_bucket(30, 50, YEARS),
		gale_leaky_bucket(50, QUEUE, QUEUE),
		gale_quota_anchored(50, YEARS, 12345678),
		gale_quota_rolling(50, YEARS),
		gale_token_budget(50, YEARS),
		gale_pacer(50, QUEUE, 20),
		gale_pacer_limit(50, QUEUE, 20),
		gale_gcra(GALE_UNITS_MAX / 4, YEARS, GALE_UNITS_MAX / 4),
	};

	return rules[which];
}

static void open_site(struct site *site, const char *url)
{
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };

	memset(site, 0, sizeof(*site));
	assert_int_equal(gale_runtime_open(NULL, &site->runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(site->runtime, &store, &site->store),
	                 GALE_ERR_OK);
	assert_int_equal(gale_join(site->runtime, &site->seat), GALE_ERR_OK);
}

static struct gale_limiter *limiter_of(struct site *site, const char *name,
                                       struct gale_rule rule)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = GALE_STRICT,
		.store = site->store,
		.lease = { .patience_us = PATIENCE },
	};
	struct gale_limiter *limiter;

	assert_int_equal(gale_limiter_open(site->runtime, &config, &limiter),
	                 GALE_ERR_OK);
	return limiter;
}

static void close_site(struct site *site)
{
	for (int i = 0; i < RULES; i++)
		gale_limiter_close(site->limiters[i]);
	gale_leave(site->seat);
	gale_store_close(site->store);
	gale_runtime_close(site->runtime);
}

/* A server knows when it was started to the second: it grants nothing before that. */
static void settle(struct site *site)
{
	struct gale_limiter *soon =
	    limiter_of(site, "soon", gale_fixed_window(1000000, YEARS));

	while (gale_wait(site->seat, soon, "k", 1, 1, PATIENCE).verdict != GALE_ALLOW)
		continue;
	gale_limiter_close(soon);
}

/* ---- The script ------------------------------------------------------------------ */

static bool is_near(uint64_t a, uint64_t b)
{
	return a > b ? a - b <= APART_US : b - a <= APART_US;
}

static void assert_same(const struct gale_answer *a, const struct gale_answer *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->why, b->why);
	assert_int_equal(a->limit, b->limit);
	assert_int_equal(a->remaining, b->remaining);
	assert_true(is_near(a->reset_after_us, b->reset_after_us));
	assert_true(is_near(a->retry_after_us, b->retry_after_us));
	assert_true(is_near(a->delay_ns / 1000, b->delay_ns / 1000));
}

struct step {
	unsigned verb;
	int rule;
	int key;
	uint64_t cost;
};

static struct step draw(struct chance *c)
{
	return (struct step){
		.verb = (unsigned)chance_below(c, 16),
		.rule = (int)chance_below(c, RULES),
		.key = (int)chance_below(c, KEYS),
		.cost = 1 + chance_below(c, chance_one_in(c, 20) ? 60 : 6),
	};
}

static struct gale_answer take(struct site *site, const struct step *step)
{
	char key[2] = { 'k', (char)('0' + step->key) };
	struct gale_answer answer = gale_wait(site->seat, site->limiters[step->rule],
	                                      key, 2, step->cost, PATIENCE);

	if (answer.slot.us > 0)
		site->booked[step->rule][step->key] = answer;
	return answer;
}

static enum gale_err give_back(struct site *site, const struct step *step)
{
	char key[2] = { 'k', (char)('0' + step->key) };

	return gale_cancel(site->seat, site->limiters[step->rule], key, 2, step->cost,
	                   PATIENCE, &site->booked[step->rule][step->key]);
}

static void assert_same_looks(struct site *sites, const struct step *step)
{
	char key[2] = { 'k', (char)('0' + step->key) };
	struct gale_outlook outlooks[STORES];
	struct gale_answer peeks[STORES];

	for (int i = 0; i < STORES; i++) {
		struct gale_limiter *limiter = sites[i].limiters[step->rule];

		assert_int_equal(
		    gale_peek(sites[i].seat, limiter, key, 2, PATIENCE, &peeks[i]),
		    GALE_ERR_OK);
		assert_int_equal(gale_forecast(sites[i].seat, limiter, key, 2,
		                               step->cost, PATIENCE, &outlooks[i]),
		                 GALE_ERR_OK);
		assert_same(&peeks[0], &peeks[i]);
		assert_int_equal(outlooks[0].spendable_now, outlooks[i].spendable_now);
		assert_true(
		    is_near(outlooks[0].next_after_us, outlooks[i].next_after_us));
		assert_true(
		    is_near(outlooks[0].full_after_us, outlooks[i].full_after_us));
	}
}

static void run_step(struct site *sites, const struct step *step, unsigned *tally)
{
	char key[2] = { 'k', (char)('0' + step->key) };
	struct gale_answer answers[STORES];
	enum gale_err errs[STORES];

	if (step->verb == 0) {
		assert_same_looks(sites, step);
		return;
	}
	for (int i = 0; i < STORES; i++) {
		if (step->verb == 1) {
			errs[i] = give_back(&sites[i], step);
			assert_int_equal(errs[0], errs[i]);
		} else if (step->verb == 2) {
			errs[i] =
			    gale_reset(sites[i].seat, sites[i].limiters[step->rule],
			               key, 2, PATIENCE);
			assert_int_equal(errs[i], GALE_ERR_OK);
		} else {
			answers[i] = take(&sites[i], step);
			assert_same(&answers[0], &answers[i]);
		}
	}
	if (step->verb > 2)
		tally[answers[0].verdict == GALE_ALLOW]++;
	else if (step->verb == 1)
		tally[2] += errs[0] == GALE_ERR_OK;
}

static void one_script_has_the_same_answers_everywhere(void **state)
{
	struct chance chance = { 20 };
	struct site sites[STORES];
	unsigned tally[3] = { 0 };

	(void)state;
	for (int i = 0; i < STORES; i++) {
		open_site(&sites[i], urls[i]);
		settle(&sites[i]);
		for (int r = 0; r < RULES; r++) {
			char name[8];

			snprintf(name, sizeof(name), "r%d", r);
			sites[i].limiters[r] =
			    limiter_of(&sites[i], name, slow_rule(r));
		}
	}
	for (int i = 0; i < STEPS; i++) {
		struct step step = draw(&chance);

		run_step(sites, &step, tally);
	}
	assert_in_range(tally[0], STEPS / 10, STEPS); /* denied */
	assert_in_range(tally[1], STEPS / 10, STEPS); /* allowed */
	assert_in_range(tally[2], 5, STEPS);          /* given back */
	for (int i = 0; i < STORES; i++)
		close_site(&sites[i]);
}

/* ---- The crowd ------------------------------------------------------------------- */

struct crowd {
	struct site site;
	struct gale_limiter *limiter;
	_Atomic unsigned allowed;
	_Atomic unsigned denied;
};

static void come(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct gale_answer answer;
	struct gale_seat *seat;

	(void)who;
	must(gale_join(crowd->site.runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, crowd->limiter, "k", 1, 1, PATIENCE);
	must(answer.why == GALE_WHY_RULE);
	atomic_fetch_add(
	    answer.verdict == GALE_ALLOW ? &crowd->allowed : &crowd->denied, 1);
	gale_leave(seat);
}

static void two_hundred_at_a_limit_of_fifty_admit_fifty(void **state)
{
	(void)state;
	for (int i = 0; i < STORES; i++)
		for (unsigned r = 0; r < FIFTY_RULES; r++) {
			struct named_rule rule = fifty_rule(r);
			struct crowd crowd = { .allowed = 0 };

			open_site(&crowd.site, urls[i]);
			crowd.limiter = limiter_of(&crowd.site, rule.name, rule.rule);
			crew_run(CROWD, come, &crowd);
			assert_int_equal(crowd.allowed, FIFTY);
			assert_int_equal(crowd.denied, CROWD - FIFTY);
			gale_limiter_close(crowd.limiter);
			close_site(&crowd.site);
		}
}

/* What libpq is told is host=... port=... and so on: options of a URL, too. */
static void find_url(const char *address)
{
	char *at = urls[2] + snprintf(urls[2], sizeof(urls[2]), "postgres:///?");

	strcpy(at, address);
	for (; *at != '\0'; at++)
		if (*at == ' ')
			*at = '&';
}

static int start_servers(void **state)
{
	(void)state;
	redis_server_start(&redis, NULL);
	postgres = postgres_server_start(/* syncs= */ false);
	strcpy(urls[0], "memory:");
	snprintf(urls[1], sizeof(urls[1]), "redis://%s", redis.socket);
	find_url(postgres_server_address(postgres));
	redis_cluster_start(&cluster);
	snprintf(urls[3], sizeof(urls[3]), "redis+cluster://127.0.0.1:%.7s",
	         cluster.ports[0]);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	postgres_server_stop(postgres);
	redis_server_stop(&redis);
	redis_cluster_stop(&cluster);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_script_has_the_same_answers_everywhere),
		cmocka_unit_test(two_hundred_at_a_limit_of_fifty_admit_fifty),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
