/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * store.c -- what does a step cost in the embedded store?
 *
 * The floor of a row hashes the key, takes a lock, reads the clock, finds the key and
 * takes a unit.  Rows with a given clock, which costs next to nothing, and a floor that
 * reads none show what is left without it.
 */
#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/memory.h"
#include "stores/memory.h"

#define MUCH (UINT64_C(1) << 50)
#define START GALE_DAYS(20700) /* 2026 */
#define MAX_KEYS (UINT64_C(1) << 30)

/* A clock that advances when it is read; for rows of one thread. */
struct given_clock {
	struct gale_clock clock;
	uint64_t now_us;
	uint64_t tick_us;
};

static uint64_t given_clock_now(struct gale_clock *self)
{
	struct given_clock *given = (struct given_clock *)self;

	return given->now_us += given->tick_us;
}

/* A store and its keys.  Rows that name the same one share it, and it lives on. */
struct crowd {
	uint64_t count; /* of keys */
	struct gale_rule (*rule_of)(void);
	uint64_t used;             /* units of each key, before */
	enum gale_verdict verdict; /* of every step that is timed */
	uint64_t tick_us;          /* 0: the store's own clock */

	/* Made by prepare. */
	struct rule rule;
	struct given_clock clock;
	struct store *store;
	uint64_t next; /* id, for keys that take turns */
};

static struct store *open_store(struct gale_clock *clock)
{
	struct memory_config config = {
		.name = "",
		.max_keys = MAX_KEYS,
		.allocator = memory_default(),
		.clock = clock,
	};
	struct store *store = memory_open(&config);

	bench_expect(store != NULL, "opening a store");
	return store;
}

static struct store *open_store_of(struct crowd *crowd)
{
	crowd->clock = (struct given_clock){ { .now_us = given_clock_now },
		                             START,
		                             crowd->tick_us };
	return open_store(crowd->tick_us > 0 ? &crowd->clock.clock : NULL);
}

static void compile(const struct gale_rule *config, struct rule *ret_rule)
{
	bench_expect(rule_compile(config, ret_rule) == GALE_ERR_OK, "a rule");
}

static enum store_result step(struct store *store, const struct rule *rule, uint64_t id,
                              uint64_t cost, bool patient,
                              enum gale_verdict *ret_verdict)
{
	struct key key = key_of(id);
	enum store_result result;
	struct store_op op; /* clearing all of it takes as long as a step */

	op.verb = STORE_STEP;
	op.key = (const uint8_t *)&key;
	op.key_len = sizeof(key);
	op.rule = rule;
	op.cost = cost;
	op.answer.verdict = GALE_PENDING;
	result = store_run(store, &op, patient);
	*ret_verdict = op.answer.verdict;
	return result;
}

/* One that has to be done, and to be answered so. */
static void must_step(struct crowd *crowd, uint64_t id, uint64_t cost,
                      enum gale_verdict wanted)
{
	enum gale_verdict verdict;
	enum store_result result =
	    step(crowd->store, &crowd->rule, id, cost, /* patient= */ true, &verdict);

	bench_expect(result == STORE_DONE && verdict == wanted, "a step in a store");
}

static void prepare(void *arg)
{
	struct crowd *crowd = arg;
	struct gale_rule config = crowd->rule_of();

	if (crowd->store)
		return;
	compile(&config, &crowd->rule);
	crowd->tick_us *= crowd->count / keys_in(crowd->count);
	crowd->count = keys_in(crowd->count);
	crowd->store = open_store_of(crowd);
	for (uint64_t id = 0; id < crowd->count && crowd->used > 0; id++)
		must_step(crowd, id, crowd->used, GALE_ALLOW);
}

/* ---- Runs ------------------------------------------------------------------------ */

static void patient(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			must_step(crowd, pick(&picker), 1, crowd->verdict);
}

/* As a seat's own thread does it: what is busy goes to a shard, which is not timed. */
static void impatient(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);
	uint64_t busy = 0;

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			enum gale_verdict verdict;

			busy += step(crowd->store, &crowd->rule, pick(&picker), 1,
			             /* patient= */ false, &verdict) == STORE_BUSY;
		}
	bench_count(b, "busy", busy);
}

static void in_turn(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);

	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			must_step(crowd, crowd->next++ % crowd->count, 1,
			          crowd->verdict);
}

/* Into a store that was empty before. */
static void new_keys(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct crowd fresh = *crowd;
	uint64_t id = 0;

	fresh.store = open_store(NULL);
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			must_step(&fresh, id++, 1, crowd->verdict);
	fresh.store->ops->close(fresh.store);
}

/* ---- Rules ----------------------------------------------------------------------- */

#define EVEN_BURST 1000000000

static struct gale_rule plenty(void)
{
	return gale_fixed_window(MUCH, GALE_SPAN_MAX_US);
}

static struct gale_rule exhausted(void)
{
	return gale_fixed_window(1, GALE_SPAN_MAX_US);
}

/* With half of its burst in use, a key lives for an hour. */
static struct gale_rule even(void)
{
	return gale_gcra(EVEN_BURST, GALE_HOURS(2), EVEN_BURST);
}

/* A key is as good as new two microseconds after its only unit was taken. */
static struct gale_rule fleeting(void)
{
	return gale_gcra(1, GALE_MICROS(2), 1);
}

/* A key lives for half a second: of a million that take turns, one each microsecond,
 * every one is as good as new when its turn comes. */
static struct gale_rule turning(void)
{
	return gale_gcra(1, GALE_MILLIS(500), 1);
}

/* ---- The rows -------------------------------------------------------------------- */

#define ONE 1
#define THOUSAND 1000
#define MILLION 1000000
#define ALLOWED .verdict = GALE_ALLOW
#define DENIED .verdict = GALE_DENY

static struct crowd hot = { ONE, plenty, 1, ALLOWED };
static struct crowd hot_given = { ONE, plenty, 1, ALLOWED, .tick_us = 1 };
static struct crowd hot_denied = { ONE, exhausted, 1, DENIED };
static struct crowd hot_gcra = { ONE, even, EVEN_BURST / 2, ALLOWED };
static struct crowd hot_fleeting = { ONE, fleeting, 0, ALLOWED, .tick_us = 4 };
static struct crowd thousand = { THOUSAND, plenty, 1, ALLOWED };
static struct crowd million = { MILLION, plenty, 1, ALLOWED };
static struct crowd million_given = { MILLION, plenty, 1, ALLOWED, .tick_us = 1 };
static struct crowd million_denied = { MILLION, exhausted, 1, DENIED };
static struct crowd million_gcra = { MILLION, even, EVEN_BURST / 2, ALLOWED };
static struct crowd million_turning = { MILLION, turning, 1, ALLOWED, .tick_us = 1 };

static void row(const char *name, void (*run)(struct bench *), struct crowd *crowd,
                int threads, const char *floor)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare,
	                               .arg = crowd,
	                               .threads = threads,
	                               .floor = floor });
}

/* The floors that read a clock are for the rows with the store's own. */
static void add_small(void)
{
	const char *given = "floors/lock, probe, 1 key";
	const char *one = "floors/lock, clock, probe, 1 key";
	const char *one_by_two = "floors/lock, clock, probe, 1 key, two threads";
	const char *many = "floors/lock, clock, probe, 1,000 keys";
	const char *many_by_two = "floors/lock, clock, probe, 1,000 keys, two threads";

	row("store/1 key", patient, &hot, 1, one);
	row("store/1 key, given clock", patient, &hot_given, 1, given);
	row("store/1 key, deny", patient, &hot_denied, 1, one);
	row("store/1 key, gcra", patient, &hot_gcra, 1, one);
	row("store/1 key, two threads", patient, &hot, 2, one_by_two);
	row("store/1 key, two threads that do not wait", impatient, &hot, 2,
	    one_by_two);
	row("store/1,000 keys", patient, &thousand, 1, many);
	row("store/1,000 keys, two threads", patient, &thousand, 2, many_by_two);
}

static void add_large(void)
{
	const char *given = "floors/lock, probe, 1,000,000 keys";
	const char *many = "floors/lock, clock, probe, 1,000,000 keys";
	const char *many_by_two =
	    "floors/lock, clock, probe, 1,000,000 keys, two threads";

	row("store/1,000,000 keys", patient, &million, 1, many);
	row("store/1,000,000 keys, given clock", patient, &million_given, 1, given);
	row("store/1,000,000 keys, deny", patient, &million_denied, 1, many);
	row("store/1,000,000 keys, gcra", patient, &million_gcra, 1, many);
	row("store/1,000,000 keys, two threads", patient, &million, 2, many_by_two);
}

static void add_new(void)
{
	const char *floor = "floors/new key";

	bench_add(&(struct bench_row){ .name = "store/new key, up to 1,000,000",
	                               .run = new_keys,
	                               .prepare = prepare,
	                               .arg = &hot,
	                               .operations = MILLION,
	                               .floor = floor });
	row("store/new key each time, 1 key, given clock", in_turn, &hot_fleeting, 1,
	    floor);
	row("store/new key each time, 500,000 live, given clock", in_turn,
	    &million_turning, 1, floor);
}

void ask_store(void)
{
	add_small();
	add_large();
	add_new();
}
