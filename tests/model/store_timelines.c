/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * store_timelines.c -- the embedded store against an oracle for each of its keys.
 *
 *     store_timelines [--seed N] [--steps N]
 *
 * A timeline is one store under a random rule, sometimes with fewer places than keys.
 * Its clock only goes forward; what happens when clocks do not is in the unit tests.
 * The oracles forget nothing: that the store does, when a key has expired, must not show
 * (RULE-4).  After every step
 *
 *     store and oracle agree on the result, and on every field of what is told
 *     a key that still counts is there (STORE-3), whoever asks under other parameters is
 *     refused (STORE-4), and no more keys are held than may be (MEMORY-2)
 *     the store is full only if that many keys may still be there
 *
 * A timeline follows from its own seed, which a failure prints: with that seed, it is
 * the first timeline of a run.
 *
 * Limits    A key whose expiry a cancel moved back may be held for as long as it would
 *           have been without (KEYS-2), so how many are held is known only within bounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rule.h"
#include "engine/slot.h"
#include "stores/memory.h"
#include "tests/model/oracle.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/clock.h"
#include "tests/support/arguments.h"
#include "tests/support/must.h"

#define KEYS_MOST 60 /* fewer than an ask looks at in search of room */
#define BOOKINGS 8
#define HINTS 8
#define STEPS_MOST 2000 /* of one timeline */

/* Of one key and limiter a timeline knows up to three rules: the second differs from
 * the first in what its words mean, the third, for pacers, in patience alone. */
#define RULES 3

struct booking {
	struct gale_slot slot;
	uint64_t cost;
};

struct key {
	uint8_t name[STORE_KEY_MAX];
	uint32_t len;
	struct oracle *oracle;
	size_t rule;        /* that the oracle goes by */
	uint64_t latest_us; /* that it ever was to expire */
	struct booking bookings[BOOKINGS];
	size_t booking_count;
};

struct tally {
	uint64_t steps;
	uint64_t allowed;
	uint64_t denied;
	uint64_t full;
	uint64_t changed;
	uint64_t taken_over; /* by other parameters, after its expiry */
	uint64_t cancelled;
	uint64_t expired;
	uint64_t longest; /* bytes, of one store at once */
};

struct timeline {
	struct tally *tally;
	uint64_t seed;
	uint64_t step;
	struct chance chance;

	struct rule rules[RULES];
	size_t rule_count;
	struct key keys[KEYS_MOST];
	size_t key_count;
	uint64_t max_keys;
	uint64_t hints[HINTS];

	struct test_allocator allocator;
	struct test_clock clock;
	uint64_t now;
	struct store *store;

	/* The call, for whoever has to understand a failure. */
	const char *call;
	struct store_op op;
};

/* ---- Failing --------------------------------------------------------------------- */

static void print_answer(const char *who, const struct gale_answer *a)
{
	printf("  %-7s verdict %d, limit %llu, remaining %llu, reset %llu, retry %llu, "
	       "delay_ns %llu, slot %llu + %llu\n",
	       who, (int)a->verdict, (unsigned long long)a->limit,
	       (unsigned long long)a->remaining, (unsigned long long)a->reset_after_us,
	       (unsigned long long)a->retry_after_us, (unsigned long long)a->delay_ns,
	       (unsigned long long)a->slot.us, (unsigned long long)a->slot.part);
}

static void print_rule(const struct gale_rule *r)
{
	printf(
	    "  rule    %s, cadence %d, limit %llu, period_us %llu, burst %llu, buckets "
	    "%llu, max_wait_us %llu\n",
	    gale_rule_name(r->kind), (int)r->cadence, (unsigned long long)r->limit,
	    (unsigned long long)r->period_us, (unsigned long long)r->burst,
	    (unsigned long long)r->buckets, (unsigned long long)r->max_wait_us);
}

_Noreturn static void fail(const struct timeline *t, const char *what)
{
	printf("FAILED: %s\n", what);
	print_rule(&t->op.rule->is);
	printf("  call    %s, now %llu, cost %llu; %zu keys, at most %llu\n", t->call,
	       (unsigned long long)t->now, (unsigned long long)t->op.cost, t->key_count,
	       (unsigned long long)t->max_keys);
	printf(
	    "  seed %llu, step %llu; again: store_timelines --seed %llu --steps %llu\n",
	    (unsigned long long)t->seed, (unsigned long long)t->step,
	    (unsigned long long)t->seed, (unsigned long long)t->step);
	exit(1);
}

static void expect(const struct timeline *t, bool holds, const char *what)
{
	if (!holds)
		fail(t, what);
}

static void same_answer(const struct timeline *t, const struct gale_answer *told,
                        struct gale_answer oracle)
{
	if (told->verdict == oracle.verdict && told->why == oracle.why &&
	    told->limit == oracle.limit && told->remaining == oracle.remaining &&
	    told->reset_after_us == oracle.reset_after_us &&
	    told->retry_after_us == oracle.retry_after_us &&
	    told->delay_ns == oracle.delay_ns && slot_equal(told->slot, oracle.slot))
		return;
	print_answer("store", told);
	print_answer("oracle", &oracle);
	fail(t, "store and oracle disagree");
}

static void same_outlook(const struct timeline *t, const struct gale_outlook *told,
                         struct gale_outlook oracle)
{
	if (told->spendable_now == oracle.spendable_now &&
	    told->next_after_us == oracle.next_after_us &&
	    told->full_after_us == oracle.full_after_us)
		return;
	printf("  spendable %llu and %llu, next %llu and %llu, full %llu and %llu\n",
	       (unsigned long long)told->spendable_now,
	       (unsigned long long)oracle.spendable_now,
	       (unsigned long long)told->next_after_us,
	       (unsigned long long)oracle.next_after_us,
	       (unsigned long long)told->full_after_us,
	       (unsigned long long)oracle.full_after_us);
	fail(t, "store and oracle disagree on the outlook");
}

/* ---- Random rules ---------------------------------------------------------------- */

/* Small enough for the oracles' lists, now and then anything. */
static uint64_t some_limit(struct chance *c)
{
	return chance_one_in(c, 8) ? chance_size(c, GALE_UNITS_MAX)
	                           : chance_between(c, 1, 40);
}

static uint64_t some_period(struct chance *c)
{
	return chance_one_in(c, 8) ? chance_size(c, GALE_SPAN_MAX_US)
	                           : chance_size(c, GALE_MINUTES(1));
}

static struct gale_rule some_queue(struct chance *c, struct gale_rule rule)
{
	if (chance_one_in(c, 8))
		return rule;
	rule.max_wait_us = chance_below(c, 20 * (rule.period_us / rule.limit) + 20);
	return rule;
}

static struct gale_rule some_rule(struct chance *c, uint64_t which)
{
	uint64_t limit = some_limit(c), period = some_period(c);
	int32_t offset = (int32_t)chance_below(c, 1681) - 840;

	switch (which % 14) {
	case 0:
		return gale_fixed_window(limit, period);
	case 1:
		return gale_sliding_window(limit, period, chance_between(c, 1, 128));
	case 2:
		return gale_sliding_log(chance_between(c, 1, 300), period);
	case 3:
		return gale_gcra(limit, period, some_limit(c));
	case 4:
		return gale_token_bucket(some_limit(c), limit, period);
	case 5:
		return some_queue(c, gale_leaky_bucket(limit, period, 0));
	case 6:
		return gale_quota_monthly(limit, offset);
	case 7:
		return gale_quota_weekly(limit, offset, (uint32_t)chance_below(c, 7));
	case 8:
		return gale_quota_daily(limit, offset);
	case 9:
		return gale_quota_anchored(limit, period, chance_size(c, period));
	case 10:
		return gale_quota_rolling(limit, period);
	case 11:
		return gale_token_budget(limit, period);
	case 12:
		return some_queue(c, gale_pacer(limit, period, some_limit(c) - 1));
	default:
		return gale_pacer_limit(limit, period, some_limit(c) - 1);
	}
}

/* One that can be compiled. */
static struct rule good_rule(struct chance *c, uint64_t which)
{
	struct gale_rule config;
	struct rule rule;

	do
		config = some_rule(c, which);
	while (rule_compile(&config, &rule) != GALE_ERR_OK);
	return rule;
}

static void add_patient(struct timeline *t)
{
	struct gale_rule config = t->rules[0].is;
	struct rule *rule = &t->rules[t->rule_count];

	config.max_wait_us = chance_below(&t->chance, 2 * config.max_wait_us + 2);
	if (rule_compile(&config, rule) == GALE_ERR_OK)
		t->rule_count++;
}

static void choose_rules(struct timeline *t)
{
	uint64_t which = t->seed;

	t->rules[0] = good_rule(&t->chance, which);
	t->rules[1] = good_rule(&t->chance, which + chance_below(&t->chance, 2));
	t->rule_count = t->rules[1].fingerprint != t->rules[0].fingerprint ? 2 : 1;
	if (t->rules[0].is.kind == GALE_RULE_PACER && t->rule_count == 2)
		add_patient(t);
}

/* ---- Random calls ---------------------------------------------------------------- */

static uint64_t span_of(const struct timeline *t)
{
	return t->rules[0].is.period_us > 0 ? t->rules[0].is.period_us : GALE_DAYS(1);
}

static uint64_t forward(struct timeline *t)
{
	struct chance *c = &t->chance;
	uint64_t span = span_of(t);

	switch (chance_below(c, 16)) {
	case 0:
		return chance_below(c, 4 * (span / t->rules[0].is.limit) + 4);
	case 1:
		return chance_below(c, span / 16 + 2);
	case 2:
		return chance_one_in(c, 4) ? chance_below(c, 2 * span) : 1;
	case 3:
		return chance_one_in(c, 64) ? chance_size(c, GALE_DAYS(4000)) : 0;
	case 4:
	case 5: /* what was announced, and the microseconds around it */
		span = t->hints[chance_below(c, HINTS)] + chance_below(c, 3);
		return span > 0 ? span - 1 : 0;
	default:
		return 0;
	}
}

static void move_clock(struct timeline *t)
{
	uint64_t by = forward(t);

	t->now = by < INSTANT_MAX_US - t->now ? t->now + by : INSTANT_MAX_US;
	test_clock_set(&t->clock, t->now);
}

static uint64_t some_cost(struct timeline *t)
{
	struct chance *c = &t->chance;
	uint64_t most = t->rules[0].capacity;
	uint64_t cost;

	switch (chance_below(c, 8)) {
	case 0:
		cost = chance_between(c, 1, most / 4 + 1);
		break;
	case 1:
		cost = most + chance_below(c, 3) - 1;
		break;
	case 2:
		cost = chance_one_in(c, 8) ? chance_size(c, GALE_UNITS_MAX) : 2;
		break;
	default:
		cost = 1;
		break;
	}
	return cost >= 1 && cost <= GALE_UNITS_MAX ? cost : 1;
}

static void hint(struct timeline *t, uint64_t wait_us)
{
	if (wait_us <= GALE_SPAN_MAX_US)
		t->hints[chance_below(&t->chance, HINTS)] = wait_us;
}

/* ---- What the oracles say -------------------------------------------------------- */

/* It still counts, so it must be there (STORE-3). */
static bool is_live(const struct timeline *t, const struct key *key)
{
	return oracle_expires(key->oracle) > t->now;
}

/* It may be there. */
static bool may_be_held(const struct timeline *t, const struct key *key)
{
	return key->latest_us > t->now;
}

static void count_keys(const struct timeline *t, uint64_t *ret_least,
                       uint64_t *ret_most)
{
	*ret_least = *ret_most = 0;
	for (size_t i = 0; i < t->key_count; i++) {
		*ret_least += is_live(t, &t->keys[i]);
		*ret_most += may_be_held(t, &t->keys[i]);
	}
}

static void renew_oracle(struct timeline *t, struct key *key, size_t rule)
{
	oracle_free(key->oracle);
	key->oracle = oracle_new(&t->rules[rule].is);
	key->rule = rule;
	key->booking_count = 0;
}

/* Pacers that differ in nothing but how long they wait. */
static bool is_patience(const struct timeline *t, size_t a, size_t b)
{
	return rule_first_fingerprint(&t->rules[a].is) ==
	       rule_first_fingerprint(&t->rules[b].is);
}

static bool same_meaning(const struct timeline *t, size_t a, size_t b)
{
	return t->rules[a].is.kind == t->rules[b].is.kind && is_patience(t, a, b);
}

static void remember(struct timeline *t, struct key *key)
{
	uint64_t expires = oracle_expires(key->oracle);

	if (key->latest_us < expires)
		key->latest_us = expires;
	hint(t, expires - (expires < t->now ? expires : t->now));
}

/* ---- Calls, on both -------------------------------------------------------------- */

static enum store_result call(struct timeline *t, const struct key *key,
                              enum store_verb verb, const char *name, size_t rule,
                              uint64_t cost, struct gale_slot slot)
{
	t->call = name;
	t->op = (struct store_op){
		.verb = verb,
		.key = key->name,
		.key_len = key->len,
		.rule = &t->rules[rule],
		.cost = cost,
		.slot = slot,
	};
	return store_run(t->store, &t->op, chance_one_in(&t->chance, 2));
}

/* Makes the oracle one of this rule; false, and refused by both, if the key lives under
 * other parameters. */
static bool turn_to(struct timeline *t, struct key *key, size_t rule,
                    enum store_result result)
{
	if (key->rule == rule) {
		expect(t, result != STORE_CHANGED, "the same rule is another");
	} else if (same_meaning(t, key->rule, rule)) {
		oracle_use(key->oracle, &t->rules[rule].is);
		key->rule = rule;
	} else if (is_live(t, key)) {
		expect(t, result == STORE_CHANGED,
		       "words of other parameters were read (STORE-4)");
		t->tally->changed++;
		return false;
	} else {
		renew_oracle(t, key, rule);
		key->latest_us = 0;
		t->tally->taken_over++;
	}
	expect(t, result != STORE_CHANGED, "an expired key is in the way");
	return true;
}

static void expect_full(struct timeline *t, const struct key *key)
{
	struct oracle *fresh = oracle_new(&t->op.rule->is);
	struct gale_answer answer = oracle_step(fresh, t->now, t->op.cost);
	uint64_t least, most;

	count_keys(t, &least, &most);
	most -= may_be_held(t, key);
	expect(t, !is_live(t, key), "a key that is there finds no room");
	expect(t, answer.verdict == GALE_ALLOW, "a denial needs no room");
	expect(t, most >= t->max_keys, "full, though an expired key could make room");
	oracle_free(fresh);
	t->tally->full++;
}

static void book(struct timeline *t, struct key *key)
{
	size_t i = key->booking_count < BOOKINGS ? key->booking_count++
	                                         : chance_below(&t->chance, BOOKINGS);

	key->bookings[i] = (struct booking){ t->op.answer.slot, t->op.cost };
}

static void step(struct timeline *t, struct key *key, size_t rule)
{
	uint64_t cost = some_cost(t), least, most;
	enum store_result result =
	    call(t, key, STORE_STEP, "step", rule, cost, (struct gale_slot){ 0 });

	if (!turn_to(t, key, rule, result))
		return;
	if (result == STORE_FULL) {
		expect_full(t, key);
		return;
	}
	expect(t, result == STORE_DONE, "a step was not done");
	same_answer(t, &t->op.answer, oracle_step(key->oracle, t->now, cost));
	hint(t, t->op.answer.retry_after_us);
	if (t->op.answer.verdict == GALE_DENY) {
		t->tally->denied++;
		return;
	}
	t->tally->allowed++;
	remember(t, key);
	if (t->op.answer.slot.us > 0)
		book(t, key);
	count_keys(t, &least, &most);
	expect(t, least <= t->max_keys, "more keys live than may (MEMORY-2)");
}

static void look(struct timeline *t, struct key *key, size_t rule)
{
	uint64_t cost = some_cost(t);
	bool peek = chance_one_in(&t->chance, 2);
	enum store_result result =
	    call(t, key, peek ? STORE_PEEK : STORE_FORECAST, peek ? "peek" : "forecast",
	         rule, cost, (struct gale_slot){ 0 });

	if (!turn_to(t, key, rule, result))
		return;
	expect(t, result == STORE_DONE, "a look was not done");
	if (peek)
		same_answer(t, &t->op.answer, oracle_peek(key->oracle, t->now));
	else
		same_outlook(t, &t->op.forecast,
		             oracle_forecast(key->oracle, t->now, cost));
}

static void cancel(struct timeline *t, struct key *key)
{
	struct booking b = { { chance_size(&t->chance, GALE_UNITS_MAX), 0 }, 1 };
	enum store_result result;
	bool given_back;

	if (key->booking_count > 0)
		b = key->bookings[chance_below(&t->chance, key->booking_count)];
	result = call(t, key, STORE_CANCEL, "cancel", key->rule, b.cost, b.slot);
	given_back = oracle_cancel(key->oracle, t->now, b.cost, b.slot);
	expect(t, result == (given_back ? STORE_DONE : STORE_NOT_BOOKED),
	       "store and oracle disagree on a place");
	t->tally->cancelled += given_back;
}

static void reset(struct timeline *t, struct key *key, size_t rule)
{
	enum store_result result =
	    call(t, key, STORE_RESET, "reset", rule, 1, (struct gale_slot){ 0 });

	expect(t, result == STORE_DONE, "a reset was not done");
	renew_oracle(t, key, rule);
	key->latest_us = 0;
}

static struct gale_counts counts_of(const struct timeline *t)
{
	struct gale_counts counts;

	t->store->ops->stats(t->store, &counts);
	return counts;
}

static void sweep(struct timeline *t)
{
	uint64_t least, most;
	struct gale_counts counts;

	t->call = "sweep";
	while (!t->store->ops->sweep(t->store))
		continue;
	counts = counts_of(t);
	count_keys(t, &least, &most);
	expect(t, counts.keys >= least, "a key that counts was dropped (STORE-3)");
	expect(t, counts.keys <= most, "an expired key was kept");
	expect(t, counts.keys <= t->max_keys,
	       "more keys are held than may be (MEMORY-2)");
}

/* The same kind under other parameters: the oracle knows nothing of that. */
static bool is_converted(const struct timeline *t, size_t a, size_t b)
{
	return a != b && t->rules[a].is.kind == t->rules[b].is.kind &&
	       t->rules[a].is.kind != GALE_RULE_CUSTOM && !is_patience(t, a, b);
}

static void act(struct timeline *t)
{
	/* Some are asked for often. */
	struct key *key = &t->keys[chance_log(&t->chance, t->key_count) - 1];
	size_t rule = chance_one_in(&t->chance, 8)
	                  ? chance_below(&t->chance, t->rule_count)
	                  : key->rule;

	if (is_converted(t, key->rule, rule))
		rule = key->rule; /* tests/unit/change_test.c */
	switch (chance_below(&t->chance, 32)) {
	case 0:
		sweep(t);
		break;
	case 1:
		reset(t, key, rule);
		break;
	case 2:
	case 3:
	case 4:
		cancel(t, key);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		look(t, key, rule);
		break;
	default:
		step(t, key, rule);
		break;
	}
}

/* ---- Timelines ------------------------------------------------------------------- */

/* Bytes of any value and length; no two alike, and some the beginning of others. */
static void name_key(struct timeline *t, struct key *key, size_t number)
{
	key->len = (uint32_t)(chance_one_in(&t->chance, 4)
	                          ? chance_between(&t->chance, 1, STORE_KEY_MAX)
	                          : 1 + number % 4);
	memset(key->name, 0, sizeof(key->name));
	key->name[0] = (uint8_t)(number / 4 * 4 % 60);
	key->name[key->len - 1] = (uint8_t)(key->len > 1 ? number : number / 4 * 4);
}

static bool name_is_taken(const struct timeline *t, const struct key *key)
{
	for (size_t i = 0; i < t->key_count; i++)
		if (t->keys[i].len == key->len &&
		    memcmp(t->keys[i].name, key->name, key->len) == 0)
			return true;
	return false;
}

static void make_keys(struct timeline *t)
{
	uint64_t count = chance_between(&t->chance, 1, KEYS_MOST);

	for (size_t number = 0; number < count; number++) {
		struct key *key = &t->keys[t->key_count];

		name_key(t, key, number);
		if (name_is_taken(t, key))
			continue;
		key->oracle = oracle_new(&t->rules[0].is);
		t->key_count++;
	}
	t->max_keys = chance_one_in(&t->chance, 2)
	                  ? KEYS_MOST
	                  : chance_between(&t->chance, 1, t->key_count);
}

static void open_store(struct timeline *t)
{
	struct memory_config config = { .name = "",
		                        .max_keys = t->max_keys,
		                        .allocator = &t->allocator.allocator,
		                        .clock = &t->clock.clock };

	test_allocator_init(&t->allocator);
	t->now = chance_one_in(&t->chance, 8)
	             ? INSTANT_MAX_US - chance_size(&t->chance, GALE_DAYS(10))
	             : chance_below(&t->chance, INSTANT_MAX_US);
	test_clock_init(&t->clock, t->now);
	t->store = memory_open(&config);
	must(t->store);
}

static void close_timeline(struct timeline *t)
{
	t->tally->expired += counts_of(t).expired;
	if (t->tally->longest < t->allocator.most)
		t->tally->longest = t->allocator.most;
	t->store->ops->close(t->store);
	expect(t, test_allocator_is_balanced(&t->allocator), "memory is missing");
	for (size_t i = 0; i < t->key_count; i++)
		oracle_free(t->keys[i].oracle);
}

/* Returns the seed of the next. */
static uint64_t run_timeline(uint64_t seed, uint64_t steps, struct tally *tally)
{
	static struct timeline t;

	t = (struct timeline){ .tally = tally, .seed = seed, .chance = { seed } };
	choose_rules(&t);
	make_keys(&t);
	open_store(&t);
	steps = steps < STEPS_MOST ? steps : STEPS_MOST;
	for (t.step = 1; t.step <= steps; t.step++) {
		move_clock(&t);
		act(&t);
		tally->steps++;
	}
	close_timeline(&t);
	return seed + 1;
}

/* A long run in which one of these never happened has shown less than it says. */
static bool tells_something(const struct tally *tally)
{
	return tally->allowed && tally->denied && tally->full && tally->changed &&
	       tally->taken_over && tally->cancelled && tally->expired;
}

static int run(uint64_t seed, uint64_t steps)
{
	struct tally tally = { 0 };

	while (tally.steps < steps)
		seed = run_timeline(seed, steps - tally.steps, &tally);
	printf("%llu steps: %llu allowed, %llu denied, %llu full, %llu changed, %llu "
	       "taken "
	       "over, %llu cancelled; %llu keys expired; %llu bytes at most\n",
	       (unsigned long long)tally.steps, (unsigned long long)tally.allowed,
	       (unsigned long long)tally.denied, (unsigned long long)tally.full,
	       (unsigned long long)tally.changed, (unsigned long long)tally.taken_over,
	       (unsigned long long)tally.cancelled, (unsigned long long)tally.expired,
	       (unsigned long long)tally.longest);
	if (steps < 14 * STEPS_MOST || tells_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, steps = 1000000;
	const struct argument arguments[] = {
		{ "--seed", &seed },
		{ "--steps", &steps },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	return run(seed, steps);
}
