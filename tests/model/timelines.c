/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * timelines.c -- the engine against the oracle, on random rules and random clocks.
 *
 *     timelines [--seed N] [--steps N] [--rule NAME] [--store yes]
 *
 * A timeline is one key under one random rule.  Its clock creeps, stands, steps back,
 * leaps over years, and likes the instants next to which something happens: what an
 * answer has just announced, give or take a microsecond.  After every step
 *
 *     engine and oracle agree on every field, and on when the state expires
 *     a denial, a refusal and a look have changed no word                   (RULE-1)
 *     every word and number is below 2^53                                   (RULE-3)
 *     from its expiry on, and not before, the state answers like a fresh one  (RULE-4)
 *     the state is valid, and survives being encoded and decoded           (CODEC-1)
 *
 * With --store yes the embedded store gives each answer too, and must agree; its clock,
 * and so everybody's, then only goes forward, since a store takes an earlier instant as
 * the latest it has seen.
 *
 * A timeline follows from its own seed, which a failure prints: with that seed, it is
 * the first timeline of a run.
 *
 * Limits    RULE-4 is looked at where it can be reached: what would expire after the last
 *           instant, 2^52, never does.
 */
#define _POSIX_C_SOURCE 200809L /* sigaction */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/check.h"
#include "engine/codec.h"
#include "engine/rule.h"
#include "tests/model/oracle.h"
#include "sim/random.h"
#include "runtime/memory.h"
#include "stores/memory.h"

#define CANARY UINT64_C(0xfeedfacecafebeef)
#define NUMBER_END (UINT64_C(1) << 53)
#define MONTH_US (UINT64_C(31) * 86400000000)
#define YEAR_US (UINT64_C(366) * 86400000000)
#define HINTS 8
#define BOOKINGS 16

struct strategy {
	const char *name;
	struct gale_rule (*make)(struct chance *c);
};

/* A place that the pacer gave, and perhaps got back since. */
struct booking {
	struct gale_slot slot;
	uint64_t cost;
};

struct tally {
	uint64_t steps;
	uint64_t allowed;
	uint64_t denied;
	uint64_t cancelled;
	uint64_t forgotten; /* how often RULE-4 was looked at */
};

struct timeline {
	const struct strategy *strategy;
	struct tally *tally;
	uint64_t seed;
	uint64_t step; /* from 1 */
	struct chance chance;

	struct gale_rule config;
	struct rule rule;
	uint64_t *words;
	size_t room; /* and a canary behind it */
	uint64_t *before;
	size_t before_count;
	struct oracle *oracle;

	struct store *store; /* NULL: without */
	struct gale_clock clock;
	uint64_t newest; /* what the store's clock shows */

	/* The call, for whoever has to understand a failure. */
	const char *call;
	uint64_t now;
	uint64_t cost;
	struct gale_slot slot;

	uint64_t hints[HINTS]; /* waits that answers have named, the latest anywhere */
	uint64_t left;         /* units that the last answer offered */
	struct booking bookings[BOOKINGS];
	size_t booking_count;
};

/* ---- failing ------------------------------------------------------------------- */

static void print_rule(const struct gale_rule *r)
{
	printf(
	    "  rule      kind %s, cadence %d, limit %llu, period_us %llu, burst %llu,\n"
	    "            buckets %llu, max_wait_us %llu, anchor_us %llu,\n"
	    "            allowance_permille %u, utc_offset_minutes %d, first_weekday "
	    "%u\n",
	    gale_rule_name(r->kind), (int)r->cadence, (unsigned long long)r->limit,
	    (unsigned long long)r->period_us, (unsigned long long)r->burst,
	    (unsigned long long)r->buckets, (unsigned long long)r->max_wait_us,
	    (unsigned long long)r->anchor_us, r->allowance_permille,
	    r->utc_offset_minutes, r->first_weekday);
}

static void print_words(const char *name, const uint64_t *words, size_t count)
{
	printf("  %-9s", name);
	for (size_t i = 0; i < count; i++)
		printf(" %llu", (unsigned long long)words[i]);
	printf("\n");
}

static void print_answer(const char *who, const struct gale_answer *a)
{
	printf("  %-9s verdict %d, why %d, limit %llu, remaining %llu, reset %llu, "
	       "retry %llu,\n            delay_ns %llu, slot %llu + %llu\n",
	       who, (int)a->verdict, (int)a->why, (unsigned long long)a->limit,
	       (unsigned long long)a->remaining, (unsigned long long)a->reset_after_us,
	       (unsigned long long)a->retry_after_us, (unsigned long long)a->delay_ns,
	       (unsigned long long)a->slot.us, (unsigned long long)a->slot.part);
}

static void print_forecast(const char *who, const struct gale_outlook *f)
{
	printf("  %-9s spendable %llu, next %llu, full %llu\n", who,
	       (unsigned long long)f->spendable_now,
	       (unsigned long long)f->next_after_us,
	       (unsigned long long)f->full_after_us);
}

static void print_replay(const struct timeline *t)
{
	printf("  seed %llu, step %llu; again: timelines --seed %llu --rule %s "
	       "--steps %llu%s\n",
	       (unsigned long long)t->seed, (unsigned long long)t->step,
	       (unsigned long long)t->seed, t->strategy->name,
	       (unsigned long long)t->step, t->store ? " --store yes" : "");
}

/* Whatever the two sides said has been printed already. */
_Noreturn static void fail(const struct timeline *t, const char *what)
{
	printf("FAILED: %s: %s\n", t->strategy->name, what);
	print_rule(&t->config);
	printf("  call      %s, now %llu, cost %llu, slot %llu + %llu\n", t->call,
	       (unsigned long long)t->now, (unsigned long long)t->cost,
	       (unsigned long long)t->slot.us, (unsigned long long)t->slot.part);
	print_words("before", t->before, t->before_count);
	print_words("after", t->words, rule_words(&t->rule, t->words));
	print_replay(t);
	exit(1);
}

/*
 * A broken assertion or a crash must be replayable, too.  Not async-signal-safe, and
 * fine because the signal comes from the calculations that the timeline waits for.
 */
static const struct timeline *running;
static const int fatal[] = { SIGABRT, SIGFPE, SIGSEGV };
static struct sigaction fatal_before[sizeof(fatal) / sizeof(fatal[0])];

static void on_fatal(int number)
{
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &fatal_before[i], NULL);
	printf("FAILED: %s: signal %d\n", running->strategy->name, number);
	print_rule(&running->config);
	print_replay(running);
	fflush(stdout);
}

static void watch_fatal(void)
{
	struct sigaction action = { .sa_handler = on_fatal };

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &action, &fatal_before[i]);
}

static void expect(const struct timeline *t, bool holds, const char *what)
{
	if (!holds)
		fail(t, what);
}

static bool answers_equal(const struct gale_answer *a, const struct gale_answer *b)
{
	return a->verdict == b->verdict && a->why == b->why && a->limit == b->limit &&
	       a->remaining == b->remaining && a->reset_after_us == b->reset_after_us &&
	       a->retry_after_us == b->retry_after_us && a->delay_ns == b->delay_ns &&
	       slot_equal(a->slot, b->slot);
}

static bool forecasts_equal(const struct gale_outlook *a, const struct gale_outlook *b)
{
	return a->spendable_now == b->spendable_now &&
	       a->next_after_us == b->next_after_us &&
	       a->full_after_us == b->full_after_us;
}

static void same_answer(const struct timeline *t, const char *what, const char *one,
                        struct gale_answer a, const char *two, struct gale_answer b)
{
	if (answers_equal(&a, &b))
		return;
	print_answer(one, &a);
	print_answer(two, &b);
	fail(t, what);
}

static void same_forecast(const struct timeline *t, const char *what, const char *one,
                          struct gale_outlook a, const char *two, struct gale_outlook b)
{
	if (forecasts_equal(&a, &b))
		return;
	print_forecast(one, &a);
	print_forecast(two, &b);
	fail(t, what);
}

/* ---- random rules -------------------------------------------------------------- */

static struct gale_rule make_fixed_window(struct chance *c)
{
	return gale_fixed_window(chance_size(c, GALE_UNITS_MAX),
	                         chance_size(c, GALE_SPAN_MAX_US));
}

static struct gale_rule make_token_budget(struct chance *c)
{
	return gale_token_budget(chance_size(c, GALE_UNITS_MAX),
	                         chance_size(c, GALE_SPAN_MAX_US));
}

static struct gale_rule make_sliding_window(struct chance *c)
{
	uint64_t period = chance_size(c, GALE_SPAN_MAX_US);
	uint64_t most = period < GALE_BUCKETS_MAX ? period : GALE_BUCKETS_MAX;

	return gale_sliding_window(chance_size(c, GALE_UNITS_MAX), period,
	                           chance_size(c, most));
}

static struct gale_rule make_quota_rolling(struct chance *c)
{
	return gale_quota_rolling(chance_size(c, GALE_UNITS_MAX),
	                          9 + chance_size(c, GALE_SPAN_MAX_US - 9));
}

static struct gale_rule make_sliding_log(struct chance *c)
{
	return gale_sliding_log(chance_size(c, GALE_LOG_LIMIT_MAX),
	                        chance_size(c, GALE_SPAN_MAX_US));
}

/* How many units accrue in a span, but at most GALE_UNITS_MAX. */
static uint64_t units_within(uint64_t span, uint64_t limit, uint64_t period)
{
	uint128 units = (uint128)span * limit / period;

	return units < GALE_UNITS_MAX ? (uint64_t)units : GALE_UNITS_MAX;
}

static struct gale_rule make_gcra(struct chance *c)
{
	uint64_t limit = chance_size(c, GALE_UNITS_MAX);
	uint64_t period = chance_size(c, GALE_SPAN_MAX_US);
	uint64_t most = units_within(GALE_SPAN_MAX_US, limit, period);

	return gale_gcra(limit, period, chance_size(c, most));
}

static struct gale_rule make_token_bucket(struct chance *c)
{
	uint64_t refill = chance_size(c, GALE_UNITS_MAX);
	uint64_t period = chance_size(c, GALE_SPAN_MAX_US);
	uint64_t most = units_within(GALE_SPAN_MAX_US, refill, period);

	return gale_token_bucket(chance_size(c, most), refill, period);
}

static int32_t random_offset(struct chance *c)
{
	switch (chance_below(c, 4)) {
	case 0:
		return 0;
	case 1:
		return chance_one_in(c, 2) ? -840 : 840;
	default:
		return (int32_t)chance_below(c, 1681) - 840;
	}
}

static struct gale_rule make_quota_monthly(struct chance *c)
{
	return gale_quota_monthly(chance_size(c, GALE_UNITS_MAX), random_offset(c));
}

static struct gale_rule make_quota_weekly(struct chance *c)
{
	return gale_quota_weekly(chance_size(c, GALE_UNITS_MAX), random_offset(c),
	                         (uint32_t)chance_below(c, 7));
}

static struct gale_rule make_quota_daily(struct chance *c)
{
	return gale_quota_daily(chance_size(c, GALE_UNITS_MAX), random_offset(c));
}

static struct gale_rule make_quota_anchored(struct chance *c)
{
	return gale_quota_anchored(chance_size(c, GALE_UNITS_MAX),
	                           chance_size(c, GALE_SPAN_MAX_US),
	                           chance_size(c, INSTANT_MAX_US + 1) - 1);
}

/* From not at all to the longest, with a liking for a few units' time. */
static uint64_t random_wait(struct chance *c, const struct gale_rule *rule)
{
	switch (chance_below(c, 4)) {
	case 0:
		return 0;
	case 1:
		return chance_size(c, GALE_SPAN_MAX_US);
	default:
		return chance_below(c, 20 * (rule->period_us / rule->limit) + 20);
	}
}

static struct gale_rule make_leaky_bucket(struct chance *c)
{
	struct gale_rule rule = gale_leaky_bucket(
	    chance_size(c, GALE_UNITS_MAX), chance_size(c, GALE_PACE_PERIOD_MAX_US), 0);

	rule.max_wait_us = random_wait(c, &rule);
	return rule;
}

static struct gale_rule random_pacer(struct chance *c, uint32_t permille)
{
	uint64_t rate = chance_size(c, GALE_UNITS_MAX);
	uint64_t period = chance_size(c, GALE_PACE_PERIOD_MAX_US);
	uint64_t span = GALE_SPAN_MAX_US / 1000 * permille; /* earned back in 2^50 */
	uint64_t most = units_within(span, rate, period);
	struct gale_rule rule = gale_pacer(rate, period, chance_size(c, most + 1) - 1);

	rule.allowance_permille = permille;
	if (chance_one_in(c, 4))
		return rule; /* with the wait it comes with */
	rule.max_wait_us = random_wait(c, &rule);
	return rule;
}

static struct gale_rule make_pacer(struct chance *c)
{
	return random_pacer(
	    c, chance_one_in(c, 2) ? 500 : (uint32_t)chance_between(c, 1, 1000));
}

static struct gale_rule make_pacer_limit(struct chance *c)
{
	uint64_t rate = chance_size(c, GALE_UNITS_MAX);
	uint64_t period = chance_size(c, GALE_PACE_PERIOD_MAX_US);
	uint64_t most = units_within(GALE_SPAN_MAX_US, rate, period);

	return gale_pacer_limit(rate, period, chance_size(c, most + 1) - 1);
}

/* Both by turns, on one state: see shares_state. */
static struct gale_rule make_pacer_shared(struct chance *c)
{
	return random_pacer(c, 500);
}

static const struct strategy strategies[] = {
	{ "fixed_window", make_fixed_window },
	{ "sliding_window", make_sliding_window },
	{ "sliding_log", make_sliding_log },
	{ "gcra", make_gcra },
	{ "token_bucket", make_token_bucket },
	{ "leaky_bucket", make_leaky_bucket },
	{ "quota_monthly", make_quota_monthly },
	{ "quota_weekly", make_quota_weekly },
	{ "quota_daily", make_quota_daily },
	{ "quota_anchored", make_quota_anchored },
	{ "quota_rolling", make_quota_rolling },
	{ "token_budget", make_token_budget },
	{ "pacer", make_pacer },
	{ "pacer_limit", make_pacer_limit },
	{ "pacer_shared", make_pacer_shared },
};

#define STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))

/* ---- random clocks and costs --------------------------------------------------- */

static uint64_t later(uint64_t now, uint64_t by)
{
	return now > UINT64_MAX - by ? UINT64_MAX : now + by;
}

static uint64_t earlier(uint64_t now, uint64_t by)
{
	return now < by ? 0 : now - by;
}

/* About how long this rule thinks. */
static uint64_t span_of_rule(const struct gale_rule *rule)
{
	return rule->period_us > 0 ? rule->period_us : MONTH_US;
}

static uint64_t first_now(struct timeline *t)
{
	static const uint64_t leap_days_s[] = { 68169600, 951782400, 4107542400 };
	struct chance *c = &t->chance;

	switch (chance_below(c, 8)) {
	case 0:
		return 0;
	case 1:
		return chance_size(c, span_of_rule(&t->config));
	case 2:
		return earlier(INSTANT_MAX_US,
		               chance_below(c, span_of_rule(&t->config)));
	case 3:
		return GALE_SECONDS(leap_days_s[chance_below(c, 3)]) +
		       chance_below(c, GALE_DAYS(1));
	case 4:
		return chance_log(c, INSTANT_MAX_US);
	default:
		return chance_below(c, INSTANT_MAX_US);
	}
}

/* Leaps that a sane clock never makes. */
static uint64_t wild_now(struct timeline *t)
{
	struct chance *c = &t->chance;

	switch (chance_below(c, 6)) {
	case 0:
		return later(t->now, chance_size(c, 20 * YEAR_US));
	case 1:
	case 2:
		return earlier(t->now, chance_size(c, 20 * YEAR_US));
	case 3:
		return INSTANT_MAX_US - 1 + chance_below(c, 3);
	case 4:
		return chance_one_in(c, 2) ? UINT64_MAX : chance_below(c, 3);
	default:
		return chance_below(c, INSTANT_MAX_US);
	}
}

static uint64_t next_now(struct timeline *t)
{
	struct chance *c = &t->chance;
	uint64_t span = span_of_rule(&t->config);
	uint64_t unit = span / t->config.limit + 2;
	uint64_t hint = t->hints[chance_below(c, HINTS)];

	switch (chance_below(c, 16)) {
	case 0:
	case 1:
	case 2:
		return t->now;
	case 3:
	case 4:
		return later(t->now, 1 + chance_below(c, 4 * unit));
	case 5:
	case 6:
		return later(t->now, chance_below(c, span / 16 + 2));
	case 7:
		return later(t->now, chance_below(c, span / 4 * 5 + 2));
	case 8:
		return earlier(t->now, chance_size(c, span));
	case 9:
		return earlier(t->now, 1 + chance_below(c, 4 * unit));
	case 10:
		return chance_one_in(c, 12) ? wild_now(t) : later(t->now, 1);
	default: /* what was announced, and the microseconds around it */
		return earlier(later(t->now, hint + chance_below(c, 3)), 1);
	}
}

/* What a fresh key may have at once, in a way. */
static uint64_t rule_most(const struct gale_rule *rule)
{
	return rule->burst > 0 ? rule->burst : rule->limit;
}

static uint64_t random_extreme_cost(struct timeline *t)
{
	struct chance *c = &t->chance;
	const struct gale_rule *rule = &t->config;

	switch (chance_below(c, 4)) {
	case 0: /* what a fresh key may have, or just not */
		return rule_most(rule) + chance_below(c, 3) - 1;
	case 1: /* 2^50 microseconds' worth, or just not */
		return units_within(GALE_SPAN_MAX_US, rule->limit, span_of_rule(rule)) +
		       chance_below(c, 3) - 1;
	case 2:
		return GALE_UNITS_MAX - chance_below(c, 2);
	default:
		return chance_size(c, GALE_UNITS_MAX);
	}
}

static uint64_t random_cost(struct timeline *t)
{
	struct chance *c = &t->chance;
	uint64_t most = rule_most(&t->config);
	uint64_t cost;

	switch (chance_below(c, 16)) {
	case 0:
	case 1:
	case 2:
		cost = 1;
		break;
	case 3:
	case 4:
	case 5:
		cost = chance_between(c, 1, most / 20 + 1);
		break;
	case 6:
	case 7:
		cost = chance_between(c, 1, most / 4 + 1);
		break;
	case 8:
		cost = chance_between(c, 1, most);
		break;
	case 9:
	case 10:
		cost = chance_log(c, most);
		break;
	case 11:
		cost = random_extreme_cost(t);
		break;
	default: /* all that is left, or just not, or some of it */
		cost = t->left / chance_between(c, 1, 3) + chance_below(c, 3) - 1;
		break;
	}
	return cost >= 1 && cost <= GALE_UNITS_MAX ? cost : 1;
}

/* A place that was given, perhaps moved a little or gone; or anything at all. */
static struct booking random_booking(struct timeline *t)
{
	struct chance *c = &t->chance;
	struct booking b = { { chance_size(c, GALE_UNITS_MAX),
		               chance_below(c, t->config.limit) },
		             random_cost(t) };

	if (t->booking_count == 0 || chance_one_in(c, 16))
		return b;
	b = t->bookings[chance_below(c, t->booking_count)];
	switch (chance_below(c, 32)) {
	case 0:
		b.slot.us += chance_below(c, 3) - 1;
		break;
	case 1:
		b.slot.part += chance_below(c, 3) - 1;
		break;
	case 2:
		b.cost = b.cost > 1 ? b.cost - 1 : 2;
		break;
	case 3:
		b.cost = b.cost < GALE_UNITS_MAX ? b.cost + 1 : 1;
		break;
	case 4:
		b.cost = random_cost(t);
		break;
	case 5:
		b.slot.us = UINT64_MAX - chance_below(c, 3);
		break;
	case 6:
		b.slot.part = t->config.limit + chance_below(c, 2);
		break;
	case 7:
		b.slot.part = chance_next(c);
		break;
	default:
		break;
	}
	return b;
}

static void remember_wait(struct timeline *t, uint64_t wait)
{
	if (wait <= GALE_SPAN_MAX_US)
		t->hints[chance_below(&t->chance, HINTS)] = wait;
}

static void remember_answer(struct timeline *t, const struct gale_answer *a)
{
	t->left = a->remaining;
	remember_wait(t, a->reset_after_us);
	remember_wait(t, a->retry_after_us);
	remember_wait(t, a->delay_ns / 1000);
}

static void remember_booking(struct timeline *t, const struct gale_answer *a)
{
	size_t i = t->booking_count < BOOKINGS ? t->booking_count++
	                                       : chance_below(&t->chance, BOOKINGS);

	t->bookings[i] = (struct booking){ a->slot, t->cost };
}

/* ---- what holds after every step ----------------------------------------------- */

static bool small(uint64_t n)
{
	return n < NUMBER_END;
}

static void check_answer(const struct timeline *t, const struct gale_answer *a)
{
	expect(t, small(a->limit) && small(a->remaining) && small(a->reset_after_us),
	       "a number in the answer is 2^53 or more (RULE-3)");
	expect(t, small(a->retry_after_us) || a->retry_after_us == GALE_NEVER,
	       "the retry is 2^53 or more (RULE-3)");
	/* Nanoseconds have no room below 2^53 for the longest waits. */
	expect(t, a->delay_ns <= t->config.max_wait_us * 1000,
	       "the delay is longer than the longest wait");
	expect(t, small(a->slot.us) && small(a->slot.part),
	       "the slot has a number of 2^53 or more (RULE-3)");
	expect(t, (a->verdict == GALE_ALLOW) == (a->retry_after_us == 0),
	       "retry is 0 exactly when allowed");
}

static void check_unchanged(const struct timeline *t, const char *what)
{
	expect(t,
	       rule_words(&t->rule, t->words) == t->before_count &&
	           memcmp(t->words, t->before, t->before_count * 8) == 0,
	       what);
}

static void check_codec(const struct timeline *t, size_t count)
{
	size_t bytes = state_bytes(count);
	uint8_t *coded = malloc(bytes);
	uint64_t *decoded = malloc(count * 8);

	gale_assert(coded != NULL && decoded != NULL);
	expect(t, state_encode(&t->rule, t->words, coded) == bytes,
	       "state_encode wrote another number of bytes than state_bytes says");
	expect(t, state_decode(&t->rule, coded, bytes, decoded, count) == STATE_OK,
	       "state_decode refuses what state_encode wrote");
	expect(t, memcmp(decoded, t->words, count * 8) == 0,
	       "state_decode returned other words than were encoded");
	free(coded);
	free(decoded);
}

static void check_state(const struct timeline *t)
{
	size_t count = rule_words(&t->rule, t->words);
	uint64_t engine = rule_expires(&t->rule, t->words);
	uint64_t oracle = oracle_expires(t->oracle);

	expect(t, t->words[t->room] == CANARY && count <= t->room,
	       "more words than rule_words_after_step announced");
	for (size_t i = 0; i < count; i++)
		expect(t, small(t->words[i]), "a word is 2^53 or more (RULE-3)");
	expect(t, rule_valid(&t->rule, t->words, count), "the state is not rule_valid");
	if (engine != oracle) {
		printf("  expires   engine %llu, oracle %llu\n",
		       (unsigned long long)engine, (unsigned long long)oracle);
		fail(t, "engine and oracle disagree on the expiry");
	}
	check_codec(t, count);
}

/* ---- RULE-4 ---------------------------------------------------------------------- */

static uint64_t *copy_words(const struct rule *rule, const uint64_t *words,
                            size_t spare)
{
	size_t count = rule_words(rule, words);
	uint64_t *copy = calloc(count + spare, 8);

	gale_assert(copy != NULL);
	memcpy(copy, words, count * 8);
	return copy;
}

static void same_when_asked(struct timeline *t, uint64_t *aged, uint64_t *fresh,
                            uint64_t now, uint64_t cost)
{
	static const char what[] =
	    "an expired state does not answer like a fresh one (RULE-4)";
	struct booking b = random_booking(t);

	same_answer(t, what, "expired", rule_peek(&t->rule, aged, now), "fresh",
	            rule_peek(&t->rule, fresh, now));
	same_forecast(t, what, "expired", rule_forecast(&t->rule, aged, now, cost),
	              "fresh", rule_forecast(&t->rule, fresh, now, cost));
	if (t->rule.is.kind == GALE_RULE_PACER && chance_one_in(&t->chance, 4))
		expect(t,
		       rule_cancel(&t->rule, aged, now, b.cost, b.slot) ==
		           rule_cancel(&t->rule, fresh, now, b.cost, b.slot),
		       what);
	same_answer(t, what, "expired", rule_step(&t->rule, aged, now, cost), "fresh",
	            rule_step(&t->rule, fresh, now, cost));
}

/* Right before it expires, a state is still worth remembering. */
static void check_not_before(const struct timeline *t, const uint64_t *fresh,
                             uint64_t expires)
{
	struct gale_answer aged = rule_peek(&t->rule, t->words, expires - 1);
	struct gale_answer new = rule_peek(&t->rule, fresh, expires - 1);

	expect(t, !answers_equal(&aged, &new),
	       "the state answers like a fresh one before it expires (RULE-4)");
}

static void check_forgetting(struct timeline *t)
{
	uint64_t now = rule_expires(&t->rule, t->words);
	size_t spare = 2 * 4; /* a log grows by two words a step */
	uint64_t *aged = copy_words(&t->rule, t->words, spare);
	uint64_t *fresh = calloc(t->rule.words + spare, 8);

	gale_assert(fresh != NULL);
	if (now <= INSTANT_MAX_US) {
		if (now > 0)
			check_not_before(t, fresh, now);
		if (chance_one_in(&t->chance, 2))
			now += chance_size(&t->chance, GALE_SPAN_MAX_US);
		for (int i = 0; i < 4; i++) {
			same_when_asked(t, aged, fresh, now, random_cost(t));
			now += chance_below(&t->chance, span_of_rule(&t->config) + 1);
		}
		t->tally->forgotten++;
	}
	free(aged);
	free(fresh);
}

/* ---- the store ----------------------------------------------------------------- */

static uint64_t read_newest(struct gale_clock *self)
{
	return ((struct timeline *)((char *)self - offsetof(struct timeline, clock)))
	    ->newest;
}

static void store_open(struct timeline *t)
{
	struct memory_config config = {
		.name = "",
		.max_keys = 1,
		.allocator = memory_default(),
		.clock = &t->clock,
	};

	t->clock.now_us = read_newest;
	t->store = memory_open(&config);
	gale_assert(t->store != NULL);
}

static enum store_result put_to_store(struct timeline *t, struct store_op *op)
{
	*op = (struct store_op){
		.verb = op->verb,
		.key = (const uint8_t *)"key",
		.key_len = 3,
		.rule = &t->rule,
		.cost = t->cost,
		.slot = t->slot,
	};
	return store_run(t->store, op, /* patient= */ true);
}

static struct store_op ask_store(struct timeline *t, enum store_verb verb)
{
	struct store_op op = { .verb = verb };

	expect(t, put_to_store(t, &op) == STORE_DONE, "the store did not answer");
	return op;
}

static bool store_cancels(struct timeline *t)
{
	struct store_op op = { .verb = STORE_CANCEL };
	enum store_result result = put_to_store(t, &op);

	expect(t, result == STORE_DONE || result == STORE_NOT_BOOKED,
	       "the store did not answer");
	return result == STORE_DONE;
}

/* ---- the steps of a timeline --------------------------------------------------- */

static void make_room(struct timeline *t, size_t room)
{
	if (room > t->room) {
		t->words = realloc(t->words, (room + 1) * 8);
		t->before = realloc(t->before, room * 8);
		gale_assert(t->words != NULL && t->before != NULL);
		t->room = room;
	}
	t->words[t->room] = CANARY;
}

static void remember_words(struct timeline *t)
{
	t->before_count = rule_words(&t->rule, t->words);
	memcpy(t->before, t->words, t->before_count * 8);
}

static void do_step(struct timeline *t)
{
	struct gale_answer engine;

	t->call = "step";
	make_room(t, rule_words_after_step(&t->rule, t->words));
	engine = rule_step(&t->rule, t->words, t->now, t->cost);
	same_answer(t, "engine and oracle disagree", "engine", engine, "oracle",
	            oracle_step(t->oracle, t->now, t->cost));
	if (t->store)
		same_answer(t, "engine and store disagree", "engine", engine, "store",
		            ask_store(t, STORE_STEP).answer);
	check_answer(t, &engine);
	if (engine.verdict == GALE_DENY)
		check_unchanged(t, "a denial has changed the words (RULE-1)");
	if (engine.verdict == GALE_ALLOW && (engine.slot.us | engine.slot.part) != 0)
		remember_booking(t, &engine);
	t->tally->allowed += engine.verdict == GALE_ALLOW;
	t->tally->denied += engine.verdict == GALE_DENY;
	remember_answer(t, &engine);
}

static void do_peek(struct timeline *t)
{
	struct gale_answer engine = rule_peek(&t->rule, t->words, t->now);

	t->call = "peek";
	same_answer(t, "engine and oracle disagree", "engine", engine, "oracle",
	            oracle_peek(t->oracle, t->now));
	if (t->store)
		same_answer(t, "engine and store disagree", "engine", engine, "store",
		            ask_store(t, STORE_PEEK).answer);
	check_answer(t, &engine);
	check_unchanged(t, "a peek has changed the words");
	remember_answer(t, &engine);
}

static void do_forecast(struct timeline *t)
{
	struct gale_outlook engine = rule_forecast(&t->rule, t->words, t->now, t->cost);

	t->call = "forecast";
	same_forecast(t, "engine and oracle disagree", "engine", engine, "oracle",
	              oracle_forecast(t->oracle, t->now, t->cost));
	if (t->store)
		same_forecast(t, "engine and store disagree", "engine", engine, "store",
		              ask_store(t, STORE_FORECAST).forecast);
	expect(t,
	       small(engine.spendable_now) && small(engine.next_after_us) &&
	           small(engine.full_after_us),
	       "a number in the forecast is 2^53 or more (RULE-3)");
	check_unchanged(t, "a forecast has changed the words");
	remember_wait(t, engine.next_after_us);
	remember_wait(t, engine.full_after_us);
}

/* With a store, time only goes forward. */
static void set_now(struct timeline *t, uint64_t now)
{
	t->now = t->store && now < t->newest ? t->newest : now;
	t->newest = t->now;
}

static void do_cancel(struct timeline *t)
{
	struct booking b = random_booking(t);
	bool engine, oracle;

	t->call = "cancel";
	t->slot = b.slot;
	t->cost = b.cost;
	if (chance_one_in(&t->chance, 2)) /* few places lie ahead of the next instant */
		set_now(t, earlier(b.slot.us, chance_below(&t->chance, 2)));
	engine = rule_cancel(&t->rule, t->words, t->now, b.cost, b.slot);
	oracle = oracle_cancel(t->oracle, t->now, b.cost, b.slot);
	if (engine != oracle) {
		printf("  cancel    engine %d, oracle %d\n", engine, oracle);
		fail(t, "engine and oracle disagree");
	}
	if (t->store && engine != store_cancels(t))
		fail(t, "engine and store disagree about a cancel");
	if (!engine)
		check_unchanged(t, "a refused cancel has changed the words");
	t->tally->cancelled += engine;
}

static void do_something(struct timeline *t)
{
	bool pacer = t->config.kind == GALE_RULE_PACER;
	uint64_t dice = chance_below(&t->chance, 16);

	t->slot = (struct gale_slot){ 0 };
	set_now(t, next_now(t));
	t->cost = random_cost(t);
	remember_words(t);
	if (dice < 2)
		do_peek(t);
	else if (dice < 4)
		do_forecast(t);
	else if (dice < 8 && pacer)
		do_cancel(t);
	else
		do_step(t);
	check_state(t);
	if (chance_one_in(&t->chance, 16)) {
		remember_words(t);
		t->call = "forget";
		check_forgetting(t);
	}
}

/* ---- timelines ----------------------------------------------------------------- */

static void compile(struct timeline *t)
{
	enum gale_err err = rule_compile(&t->config, &t->rule);

	if (err != GALE_ERR_OK) {
		printf("FAILED: %s: a good rule is refused: %s\n", t->strategy->name,
		       gale_err_text(err));
		print_rule(&t->config);
		print_replay(t);
		exit(1);
	}
}

static bool shares_state(const struct timeline *t)
{
	return t->strategy->make == make_pacer_shared;
}

/* The same key under the other rule that its state serves. */
static void change_rule(struct timeline *t)
{
	uint64_t fingerprint = t->rule.fingerprint;
	struct gale_rule *r = &t->config;

	r->max_wait_us = r->max_wait_us == 0 ? GALE_SPAN_MAX_US : 0;
	t->call = "change rule";
	compile(t);
	expect(t, t->rule.fingerprint == fingerprint,
	       "a pacer that waits and one that does not do not share their state");
	oracle_use(t->oracle, r);
}

static void timeline_open(struct timeline *t)
{
	t->config = t->strategy->make(&t->chance);
	compile(t);
	make_room(t, t->rule.words);
	memset(t->words, 0, t->rule.words * 8);
	t->oracle = oracle_new(&t->config);
	t->call = "open";
	set_now(t, first_now(t));
	check_state(t);
}

static void timeline_close(struct timeline *t)
{
	if (t->store)
		t->store->ops->close(t->store);
	oracle_free(t->oracle);
	free(t->words);
	free(t->before);
}

static bool with_store;

/* Runs one timeline of at most so many steps; returns the seed of the next. */
static uint64_t run_timeline(const struct strategy *strategy, uint64_t seed,
                             uint64_t most, struct tally *tally)
{
	struct timeline t = {
		.strategy = strategy, .tally = tally, .seed = seed, .step = 1
	};
	uint64_t length;

	t.chance.state = seed;
	running = &t;
	if (with_store)
		store_open(&t);
	timeline_open(&t);
	length = chance_one_in(&t.chance, 64) ? chance_between(&t.chance, 1, 3000)
	                                      : chance_between(&t.chance, 1, 200);
	for (t.step = 1; t.step <= length && t.step <= most; t.step++) {
		if (shares_state(&t) && chance_one_in(&t.chance, 8))
			change_rule(&t);
		do_something(&t);
		tally->steps++;
	}
	timeline_close(&t);
	return chance_next(&t.chance);
}

static double seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* A run that cannot fail proves nothing. */
static bool tells_something(const struct strategy *strategy, const struct tally *tally)
{
	if (tally->allowed > 0 && tally->denied > 0)
		return true;
	printf("FAILED: %s: nothing was %s\n", strategy->name,
	       tally->allowed > 0 ? "denied" : "allowed");
	return false;
}

static bool run_strategy(const struct strategy *strategy, uint64_t seed, uint64_t steps,
                         struct tally *total)
{
	struct tally tally = { 0 };
	double began = seconds();

	while (tally.steps < steps)
		seed = run_timeline(strategy, seed, steps - tally.steps, &tally);
	printf("%-15s %9llu steps, %9llu allowed, %9llu denied, %7llu cancelled, "
	       "%7llu forgotten, %5.1f s\n",
	       strategy->name, (unsigned long long)tally.steps,
	       (unsigned long long)tally.allowed, (unsigned long long)tally.denied,
	       (unsigned long long)tally.cancelled, (unsigned long long)tally.forgotten,
	       seconds() - began);
	fflush(stdout);
	total->steps += tally.steps;
	total->allowed += tally.allowed;
	total->denied += tally.denied;
	total->cancelled += tally.cancelled;
	total->forgotten += tally.forgotten;
	return tells_something(strategy, &tally);
}

static int run(const char *only, uint64_t seed, uint64_t steps)
{
	struct tally total = { 0 };
	bool good = true;

	for (size_t i = 0; i < STRATEGIES; i++)
		if (only == NULL || strcmp(only, strategies[i].name) == 0)
			good &= run_strategy(&strategies[i], seed, steps, &total);
	printf("%-15s %9llu steps, %9llu allowed, %9llu denied\n", "total",
	       (unsigned long long)total.steps, (unsigned long long)total.allowed,
	       (unsigned long long)total.denied);
	if (total.steps == 0)
		printf("FAILED: no steps were made\n");
	return good && total.steps > 0 ? 0 : 1;
}

static bool number(const char *text, uint64_t *ret)
{
	char *end;

	*ret = strtoull(text, &end, 10);
	return *text != '\0' && *end == '\0';
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	uint64_t steps = 1000000;
	const char *only = NULL;
	bool good = argc % 2 == 1;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			good &= number(argv[i + 1], &seed);
		else if (strcmp(argv[i], "--steps") == 0)
			good &= number(argv[i + 1], &steps);
		else if (strcmp(argv[i], "--store") == 0)
			good &= with_store = strcmp(argv[i + 1], "yes") == 0;
		else if (strcmp(argv[i], "--rule") == 0)
			only = argv[i + 1];
		else
			good = false;
	}
	if (!good) {
		fprintf(stderr, "timelines [--seed N] [--steps N] [--rule NAME] "
		                "[--store yes]\n");
		return 2;
	}
	watch_fatal();
	return run(only, seed, steps);
}
