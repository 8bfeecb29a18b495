/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_timelines.c -- step.lua against the engine, on random timelines.
 *
 * A real server runs the script as it is embedded, but for the line that reads the
 * clock: the time is the nonce, and the test's.  Beside it, sim/server.c does
 * each job with the engine.  After each batch both must have told the same, hold the
 * same bytes, and mean to forget them at the same millisecond; and what was told must be
 * explained as the engine answers.
 *
 *     redis_timelines [--seed N] [--steps N]     prints the seed of what fails
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/calendar.h"
#include "stores/remote.h"
#include "sim/random.h"
#include "tests/support/must.h"
#include "tests/support/redis_server.h"
#include "tests/support/arguments.h"
#include "sim/apart.h"
#include "sim/server.h"

#define KEYS_MOST 6
#define BATCH_MOST 12
#define NODES 20
#define STEPS_MOST 400 /* of one timeline */
#define RULES 13
#define WORDS_MOST (KEPT_MOST / 8)
#define NOW_LEAST (UINT64_C(1) << 51) /* the year 2041: no real clock expires a key */

extern const struct redis_script redis_timeline_script;

/* What has happened. */
struct tally {
	uint64_t steps;
	uint64_t allowed;
	uint64_t denied;
	uint64_t granted;
	uint64_t lent;   /* of it, as one number */
	uint64_t partly; /* less than was wanted */
	uint64_t wide;   /* partly, by numbers that no double holds */
	uint64_t refused;
	uint64_t again;
	uint64_t taken_back;
	uint64_t not_taken;
	uint64_t apart;    /* of leases by nodes whose row is */
	uint64_t ahead;    /* granted of the next window, too */
	uint64_t turned;   /* by that to a window that begins with it */
	uint64_t reserved; /* with what may have been forgotten */
	uint64_t claimed;  /* by nodes that said what they had */
	uint64_t in_vain;  /* of it, without a grant */
	uint64_t swapped;
	uint64_t moved;
	uint64_t waited;
	uint64_t calendar;
	uint64_t dropped;
	uint64_t backward; /* the clock */
};

struct node {
	uint64_t id;
	uint64_t number;
	struct gale_slot tag;
	uint64_t units;
	uint64_t had; /* ahead ... */
	uint64_t had_of;
};

struct key {
	struct rule rule;
	const struct rule *rule_told; /* an equal one, that others may have, too */
	uint8_t name[STORE_KEY_MAX];
	size_t name_count;
	uint8_t bucket;
	struct kept kept;
	struct aparts aparts;
	uint64_t lives_until_ms; /* at the server */
	struct node nodes[NODES];
	uint64_t asking; /* of them: those that ask for leases */
	bool crowded;    /* all ask, for little */
	bool is_strict;  /* none asks: there are only steps */
	/* One in so many lends is of the next window, too; 0: none. */
	uint64_t ahead_in;
	size_t latest; /* node that was lent to */
};

struct timeline {
	uint64_t seed;
	uint64_t step;
	struct chance chance;
	struct redis_talk *talk;
	struct tally *tally;
	uint64_t now;
	struct key keys[KEYS_MOST];
	size_t key_count;

	/* One batch. */
	struct remote_job jobs[BATCH_MOST];
	struct key *job_keys[BATCH_MOST];
	uint8_t buckets[BATCH_MOST];
	struct remote_told told[BATCH_MOST];
	size_t count;
	struct kept before[BATCH_MOST];
	uint64_t desk_words[WORDS_MOST];
	uint8_t desk_bytes[KEPT_MOST];
};

#define expect(t, x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			fail(t, #x, __LINE__);                                         \
	} while (0)

_Noreturn static void fail(const struct timeline *t, const char *what, int line)
{
	printf("FAILED: redis_timelines.c:%d: %s\nreplay: --seed %" PRIu64
	       " --steps %" PRIu64 "\n",
	       line, what, t->seed, t->step);
	for (size_t i = 0; i < t->count; i++)
		printf("  job %zu: verb %d of kind %d, limit %" PRIu64
		       " period %" PRIu64 " burst %" PRIu64 "\n",
		       i, (int)t->jobs[i].verb, (int)t->jobs[i].rule->is.kind,
		       t->jobs[i].rule->is.limit, t->jobs[i].rule->is.period_us,
		       t->jobs[i].rule->is.burst);
	exit(1);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- Random worlds --------------------------------------------------------------- */

static uint64_t some_limit(struct chance *c)
{
	return chance_one_in(c, 2) ? chance_size(c, GALE_UNITS_MAX)
	                           : chance_between(c, 1, 40);
}

static uint64_t some_period(struct chance *c)
{
	return chance_one_in(c, 3) ? chance_size(c, GALE_SPAN_MAX_US)
	                           : chance_size(c, GALE_MINUTES(1));
}

static struct gale_rule some_queue(struct chance *c, struct gale_rule rule)
{
	rule.max_wait_us = chance_below(c, 20 * (rule.period_us / rule.limit) + 20);
	return rule;
}

static struct gale_rule some_quota(struct chance *c, uint64_t limit, uint64_t period)
{
	int32_t offset = (int32_t)chance_below(c, 1681) - 840;

	switch (chance_below(c, 4)) {
	case 0:
		return gale_quota_monthly(limit, offset);
	case 1:
		return gale_quota_weekly(limit, offset, (uint32_t)chance_below(c, 7));
	case 2:
		return gale_quota_daily(limit, offset);
	default:
		return gale_quota_anchored(limit, period, chance_size(c, period));
	}
}

static uint64_t some_wide(struct chance *c, uint64_t max)
{
	if (chance_one_in(c, 3))
		return UINT64_C(1) << chance_below(c, 51);
	return chance_log(c, max);
}

/* Any sizes, or such that the products of three of them are wide. */
static struct gale_rule some_meter(struct chance *c)
{
	uint64_t limit = some_limit(c), period = some_period(c), burst = some_limit(c);

	if (chance_one_in(c, 2)) {
		limit = some_wide(c, GALE_UNITS_MAX);
		period = some_wide(c, GALE_SPAN_MAX_US);
		burst = chance_between(c, 1, limit);
	}
	return chance_one_in(c, 2) ? gale_token_bucket(burst, limit, period)
	                           : gale_gcra(limit, period, burst);
}

static struct gale_rule some_rule(struct chance *c, uint64_t which)
{
	uint64_t limit = some_limit(c), period = some_period(c);

	switch (which) {
	case 0:
		return gale_sliding_window(limit, period, chance_between(c, 1, 128));
	case 1:
		return gale_sliding_log(chance_between(c, 1, 300), period);
	case 2:
		return some_queue(c, gale_pacer(limit, period, some_limit(c) - 1));
	case 3:
		return gale_token_budget(limit, period);
	case 4:
	case 5:
		return gale_fixed_window(limit, period);
	case 6:
	case 7:
	case 8:
		return some_quota(c, limit, period);
	default:
		return some_meter(c);
	}
}

/* One that can be compiled. */
static struct rule good_rule(struct chance *c)
{
	uint64_t which = chance_below(c, RULES);
	struct gale_rule config;
	struct rule rule;

	do
		config = some_rule(c, which);
	while (rule_compile(&config, &rule) != GALE_ERR_OK);
	return rule;
}

/* One of which units are lent ahead. */
static struct rule rule_with_ahead(struct chance *c)
{
	struct gale_rule config = gale_fixed_window(
	    chance_between(c, LEASE_AHEAD_PARTS, 4000), some_period(c));
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

/* Any bytes, with the number of the key in them. */
static void make_key(struct timeline *t, size_t number)
{
	struct key *key = &t->keys[number];

	*key = (struct key){ .rule = good_rule(&t->chance), .rule_told = &key->rule };
	if (number == 0 && chance_one_in(&t->chance, 2))
		key->rule = rule_with_ahead(&t->chance);
	if (number > 0 && chance_one_in(&t->chance, 2)) {
		key->rule = t->keys[number - 1].rule;
		key->rule_told = t->keys[number - 1].rule_told;
	}
	key->name_count = chance_between(&t->chance, 1, STORE_KEY_MAX);
	for (size_t i = 0; i < key->name_count; i++)
		key->name[i] = (uint8_t)chance_next(&t->chance);
	key->name[0] = (uint8_t)number;
	key->bucket = (uint8_t)chance_next(&t->chance);
	key->crowded = chance_one_in(&t->chance, 2);
	key->is_strict = !key->crowded && chance_one_in(&t->chance, 2);
	if (lease_has_ahead(&key->rule) && !chance_one_in(&t->chance, 3))
		key->ahead_in = chance_one_in(&t->chance, 2) ? 2 : 20;
	key->asking = !key->crowded && chance_one_in(&t->chance, 2) ? 1 : NODES;
	for (uint64_t i = 0; i < NODES; i++)
		key->nodes[i].id =
		    chance_one_in(&t->chance, 8) ? LEASE_NODE_MAX - i : i + 1;
}

static uint64_t some_now(struct chance *c)
{
	if (chance_one_in(c, 8))
		return INSTANT_MAX_US - chance_size(c, GALE_DAYS(10));
	return chance_between(c, NOW_LEAST, INSTANT_MAX_US);
}

static uint64_t forward(struct timeline *t, const struct rule *rule)
{
	struct chance *c = &t->chance;
	uint64_t span = rule_window_us(rule);

	switch (chance_below(c, 12)) {
	case 0:
		return chance_below(c, 4 * (span / rule->is.limit) + 4);
	case 1:
		return chance_below(c, span / 16 + 2);
	case 2:
		return chance_one_in(c, 4) ? chance_below(c, 2 * span) : 1;
	case 3:
		return chance_below(c, 3);
	case 4:
		return chance_one_in(c, 2) ? span - t->now % span : 0;
	default:
		return 0;
	}
}

static void move_clock(struct timeline *t)
{
	const struct key *key = &t->keys[chance_below(&t->chance, t->key_count)];
	uint64_t by = forward(t, &key->rule);

	if (chance_one_in(&t->chance, 2))
		return;
	if (chance_one_in(&t->chance, 6)) {
		t->now = by < t->now - NOW_LEAST ? t->now - by : NOW_LEAST;
		t->tally->backward += by > 0;
	} else {
		t->now = by < INSTANT_MAX_US - t->now ? t->now + by : INSTANT_MAX_US;
	}
}

/* ---- Jobs ------------------------------------------------------------------------ */

static uint64_t some_cost(struct chance *c, const struct rule *rule)
{
	uint64_t most = rule->capacity;
	uint64_t cost;

	switch (chance_below(c, 6)) {
	case 0:
		cost = chance_between(c, 1, most / 4 + 1);
		break;
	case 1:
		cost = most + chance_below(c, 3) - 1;
		break;
	case 2:
		cost = chance_size(c, GALE_UNITS_MAX);
		break;
	case 3:
		cost = chance_size(c, most);
		break;
	default:
		cost = 1;
		break;
	}
	return cost >= 1 && cost <= GALE_UNITS_MAX ? cost : 1;
}

/* As the client does. */
static void date(struct remote_job *job, uint64_t not_before_us)
{
	job->not_before_us = not_before_us;
	job->reserve_from_us = lease_has_ahead(job->rule) ? not_before_us : 0;
}

/* Around now, or of the last windows. */
static uint64_t some_date(struct timeline *t, const struct rule *rule)
{
	if (chance_one_in(&t->chance, 3))
		return t->now + chance_below(&t->chance, 4) - 1;
	return t->now -
	       chance_below(&t->chance, smaller(3 * rule_window_us(rule), t->now));
}

static struct remote_job *add_job(struct timeline *t, struct key *key,
                                  enum remote_verb verb)
{
	struct remote_job *job = &t->jobs[t->count];

	*job = (struct remote_job){
		.verb = verb,
		.key = { key->name, key->name_count },
		.rule = key->rule_told,
	};
	t->job_keys[t->count] = key;
	t->buckets[t->count] = key->bucket;
	t->count++;
	if (verb != REMOTE_READ && chance_one_in(&t->chance, 16))
		date(job, some_date(t, &key->rule));
	return job;
}

static uint64_t next_number(struct chance *c, struct node *node)
{
	switch (chance_below(c, 12)) {
	case 0:
		return chance_between(c, 1, node->number + 1); /* again, or old */
	case 1:
		return node->number > 0 ? node->number : 1;
	case 2:
		return chance_one_in(c, 64) ? GALE_UNITS_MAX : node->number + 1;
	default:
		return node->number + 1;
	}
}

static uint64_t at_most(uint64_t number)
{
	return number < GALE_UNITS_MAX ? number : GALE_UNITS_MAX;
}

/* The units that it was told it has, or about as many. */
static void ask_ahead(struct timeline *t, const struct key *key,
                      const struct node *node, struct lease_ask *ask)
{
	struct chance *c = &t->chance;
	uint64_t most = key->rule.is.limit / LEASE_AHEAD_PARTS;

	if (chance_one_in(c, key->ahead_in))
		ask->ahead = chance_below(c, most + 2);
	ask->had = node->had;
	ask->had_of = node->had_of;
	if (chance_one_in(c, 12))
		ask->had = chance_size(c, most + 2);
	if (chance_one_in(c, 24))
		ask->had_of = key->nodes[chance_below(c, NODES)].had_of;
	if (chance_one_in(c, 24))
		ask->had_of = node->tag.us;
	if (ask->had > 0 && chance_one_in(c, 6))
		ask->least = ask->want = key->rule.is.limit; /* mostly in vain */
}

static void add_lend(struct timeline *t, struct key *key)
{
	struct chance *c = &t->chance;
	size_t which = !key->crowded && chance_one_in(c, 2)
	                   ? key->latest
	                   : chance_below(c, key->asking);
	struct node *node = &key->nodes[which];
	struct remote_job *job = add_job(t, key, REMOTE_LEND);

	job->ask.node = node->id;
	job->ask.number = at_most(next_number(c, node));
	job->ask.want = some_cost(c, &key->rule);
	if ((key->crowded || key->ahead_in > 0) && !chance_one_in(c, 8))
		job->ask.want = chance_between(c, 1, key->rule.capacity / 64 + 1);
	job->ask.least = chance_one_in(c, 3) ? chance_size(c, job->ask.want) : 1;
	job->ask.spent = chance_one_in(c, 3);
	if (key->ahead_in > 0)
		ask_ahead(t, key, node, &job->ask);
}

static struct gale_slot some_tag(struct chance *c, const struct key *key,
                                 const struct node *node)
{
	struct gale_slot tag = node->tag;

	if (chance_one_in(c, 12))
		tag = key->nodes[chance_below(c, NODES)].tag;
	if (chance_one_in(c, 24))
		tag.us++;
	if (chance_one_in(c, 24))
		tag.part = chance_below(c, key->rule.is.limit);
	if (tag.part == 0 && chance_one_in(c, 3))
		tag.part = LEASE_KEEPS;
	return tag;
}

static void add_back(struct timeline *t, struct key *key)
{
	struct chance *c = &t->chance;
	struct node *node = &key->nodes[key->latest];
	struct remote_job *job;

	if (key->crowded || chance_one_in(c, 3))
		node = &key->nodes[chance_below(c, NODES)];
	job = add_job(t, key, REMOTE_BACK);
	job->ask.node = node->id;
	job->ask.number = at_most(next_number(c, node));
	job->tag = some_tag(c, key, node);
	job->units = chance_one_in(c, 8) ? some_cost(c, &key->rule)
	                                 : at_most(chance_size(c, node->units + 1));
	if (node->units > 0 && chance_one_in(c, 6))
		job->units = node->units;
}

static bool may_lend(const struct key *key)
{
	return remote_can_lend(&key->rule) && !key->is_strict;
}

static void add_some_job(struct timeline *t)
{
	struct chance *c = &t->chance;
	struct key *key = &t->keys[chance_log(c, t->key_count) - 1];

	if (chance_one_in(c, 40))
		add_job(t, key, REMOTE_DROP);
	else if (!remote_can_step(&key->rule) || chance_one_in(c, 12))
		add_job(t, key, REMOTE_READ);
	else if (may_lend(key) && chance_one_in(c, 2))
		add_lend(t, key);
	else if (may_lend(key) && chance_one_in(c, 2))
		add_back(t, key);
	else
		add_job(t, key, REMOTE_STEP)->cost = some_cost(c, &key->rule);
}

/* Mostly of rules that are the same, as a limiter's are. */
static void add_lends(struct timeline *t)
{
	uint64_t early =
	    chance_one_in(&t->chance, 4) ? some_date(t, &t->keys[0].rule) : 0;

	for (size_t i = 0; i < t->key_count; i++)
		if (may_lend(&t->keys[i]))
			add_lend(t, &t->keys[i]);
	for (size_t i = 0; i < t->count; i++)
		date(&t->jobs[i], early);
}

/* ---- The server, and the engine beside it ---------------------------------------- */

static void put_call(struct timeline *t)
{
	const struct redis_call call = {
		.script = &redis_timeline_script,
		.prefix = "test:",
		.generation = { (const uint8_t *)"one", 3 },
		.nonce = t->now,
		.sure_until_us = GALE_UNITS_MAX,
		.now_us = t->now,
		.jobs = t->jobs,
		.buckets = t->buckets,
		.count = t->count,
	};

	expect(t, redis_put_call(&t->talk->text, &call));
}

static redisReply *hear_told(struct timeline *t)
{
	struct redis_said said;
	redisReply *reply = redis_talk_hear(t->talk);

	redis_read_reply(reply, t->now, t->jobs, t->count, t->told, &said);
	if (said.word != REDIS_TOLD)
		printf("said %d: %s\n", (int)said.word, said.text);
	expect(t, said.word == REDIS_TOLD);
	return reply;
}

/* Sends the batch; the reply must be freed when what it told has been looked at. */
static redisReply *call(struct timeline *t)
{
	put_call(t);
	redis_talk_send(t->talk);
	return hear_told(t);
}

static void ask_for_value(struct timeline *t, const struct key *key)
{
	uint8_t name[REDIS_KEY_MAX];
	struct remote_bytes words[2] = { { (const uint8_t *)"GET", 3 }, { name, 0 } };

	words[1].count = redis_key(name, "test:", key->bucket,
	                           (struct remote_bytes){ key->name, key->name_count });
	expect(t, redis_put_words(&t->talk->text, words, 2));
	words[0] = (struct remote_bytes){ (const uint8_t *)"PEXPIRETIME", 11 };
	expect(t, redis_put_words(&t->talk->text, words, 2));
	words[0] = (struct remote_bytes){ (const uint8_t *)"HLEN", 4 };
	words[1].count =
	    redis_group_key(name, "test:", key->bucket, "rows",
	                    (struct remote_bytes){ key->name, key->name_count });
	expect(t, redis_put_words(&t->talk->text, words, 2));
}

/* The same, and asks for what it leaves of each key, all in one trip: the test's time is that of
 * the trips.  expect_same_value() hears of the keys in the order of the jobs. */
static redisReply *call_and_ask(struct timeline *t)
{
	put_call(t);
	for (size_t i = 0; i < t->count; i++)
		ask_for_value(t, t->job_keys[i]);
	redis_talk_send(t->talk);
	return hear_told(t);
}

/* A value as the server keeps it; it stays there until the next. */
static struct remote_bytes folded(const struct rule *rule, struct remote_bytes value)
{
	static uint8_t bytes[KEPT_MOST];

	if (value.count == 0)
		return value;
	return (struct remote_bytes){ bytes, value_fold(rule, value.bytes, value.count,
		                                        bytes) };
}

static bool same_bytes(struct remote_bytes a, struct remote_bytes b)
{
	return a.count == b.count &&
	       (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

/* Has the clock gone back so far that the value's month is not among those sent? */
static bool is_out_of_months(struct timeline *t, const struct remote_job *job,
                             const struct kept *kept)
{
	uint64_t words[4];
	struct value value = { .words = words, .room = 4 };
	struct period month;

	if (job->rule->is.cadence != GALE_MONTHLY || kept->count == 0)
		return false;
	expect(t,
	       value_decode(job->rule, kept->bytes, kept->count, &value) == STATE_OK);
	month = quota_period(&job->rule->is, t->now);
	return words[0] >= quota_period(&job->rule->is, month.end_us).end_us;
}

/* What is told as one number is how the window was left, and its only row is the one that was
 * lent. */
static bool is_as_left(const struct timeline *t, size_t i, const struct kept *after)
{
	const struct window_state *lent = &t->told[i].lent;
	uint64_t words[4];
	struct value value = { .words = words, .room = 4 };

	return t->jobs[i].verb == REMOTE_LEND && t->told[i].before.count == 0 &&
	       value_decode(t->jobs[i].rule, after->bytes, after->count, &value) ==
	           STATE_OK &&
	       words[0] == lent->start_us && words[1] == lent->used &&
	       ledger_rows(&value.ledger) == 1 &&
	       value.ledger.rows[0].node == t->jobs[i].ask.node &&
	       value.ledger.rows[0].granted == t->jobs[i].ask.want;
}

static bool has_windows(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_FIXED_WINDOW ||
	       rule->is.kind == GALE_RULE_QUOTA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUDGET;
}

/* Longer than it counts, by as much as step.lua says; within a window, since that began. */
static void note_life(struct timeline *t, size_t i)
{
	struct key *key = t->job_keys[i];
	const struct kept *before = &t->before[i], *after = &key->kept;
	double expires = (double)after->expires_us;
	double until = (expires + 4000000) / 1000;
	uint64_t words[4];
	struct value value = { .words = words, .room = 4 };

	if (same_bytes((struct remote_bytes){ before->bytes, before->count },
	               (struct remote_bytes){ after->bytes, after->count }))
		return;
	if (has_windows(&key->rule) && t->jobs[i].verb != REMOTE_SWAP &&
	    before->count > 0 && before->expires_us == after->expires_us) {
		expect(t, value_decode(t->jobs[i].rule, before->bytes, before->count,
		                       &value) == STATE_OK);
		if (words[1] > 0)
			return;
	}
	key->lives_until_ms = (uint64_t)until;
	key->lives_until_ms += until > (double)key->lives_until_ms;
}

/* The hash of rows is gone, or never was, as the crowd was made by a swap: so nobody makes it
 * anew. */
static bool is_lost(struct timeline *t, size_t i)
{
	const struct key *key = t->job_keys[i];
	const struct kept *before = &t->before[i];
	uint64_t words[4];
	struct value value = { .words = words, .room = 4 };
	const struct lease_row *crowd = &value.ledger.rows[LEASE_ROWS - 1];

	if (key->kept.apart.node == 0 || key->kept.crowd_begins ||
	    key->aparts.count > 0)
		return false;
	expect(t, value_decode(t->jobs[i].rule, before->bytes, before->count, &value) ==
	              STATE_OK);
	return crowd->node == LEASE_CROWD && crowd->out > 0;
}

/* The engine does the same; t->before has what the value was before each job. */
static void expect_same_told(struct timeline *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct kept *kept = &t->job_keys[i]->kept;
		struct remote_told told;

		kept->apart = aparts_find(&t->job_keys[i]->aparts, t->jobs[i].ask.node);
		t->before[i] = *kept;
		if (t->told[i].code == REMOTE_CALENDAR) {
			expect(t, is_out_of_months(t, &t->jobs[i], kept));
			t->tally->calendar++;
			continue;
		}
		told = server_serve(&t->jobs[i], t->now, &t->before[i], kept);
		if (!is_lost(t, i))
			aparts_keep_of(&t->job_keys[i]->aparts, kept);
		expect(t, told.now_us == t->told[i].now_us);
		if (t->told[i].code == REMOTE_LENT) {
			expect(t, told.code == REMOTE_DONE);
			expect(t, is_as_left(t, i, kept));
			t->tally->lent++;
		} else {
			expect(t, told.code == t->told[i].code);
			expect(t, same_bytes(folded(t->jobs[i].rule, told.before),
			                     t->told[i].before));
		}
		note_life(t, i);
		t->tally->waited += told.code == REMOTE_WAITS;
		t->tally->dropped += t->jobs[i].verb == REMOTE_DROP;
	}
}

static void expect_same_value(struct timeline *t, const struct key *key)
{
	redisReply *value, *expires, *rows;

	value = redis_talk_hear(t->talk);
	expires = redis_talk_hear(t->talk);
	rows = redis_talk_hear(t->talk);
	expect(t, (uint64_t)rows->integer == key->aparts.count);
	if (key->kept.count == 0) {
		expect(t, value->type == REDIS_REPLY_NIL);
	} else {
		expect(t, value->type == REDIS_REPLY_STRING);
		expect(t, same_bytes(folded(&key->rule,
		                            (struct remote_bytes){ key->kept.bytes,
		                                                   key->kept.count }),
		                     (struct remote_bytes){ (const uint8_t *)value->str,
		                                            value->len }));
		expect(t, expires->type == REDIS_REPLY_INTEGER);
		expect(t, (uint64_t)expires->integer == key->lives_until_ms);
	}
	redis_reply_free(value);
	redis_reply_free(expires);
	redis_reply_free(rows);
}

/* Has the server forgotten what may be forgotten?  Some of it. */
static void forget(struct timeline *t, struct key *key)
{
	if (key->kept.count == 0 || key->kept.expires_us > t->now ||
	    !chance_one_in(&t->chance, 2))
		return;
	t->count = 0;
	add_job(t, key, REMOTE_DROP);
	redis_reply_free(call(t));
	key->kept.count = 0;
}

/* ---- Explained ------------------------------------------------------------------- */

static struct value decoded(struct timeline *t, size_t i, uint64_t *words)
{
	struct value value = { .words = words, .room = WORDS_MOST };
	uint64_t sum;

	expect(t, value_decode(t->jobs[i].rule, t->before[i].bytes, t->before[i].count,
	                       &value) == STATE_OK);
	server_put_apart(&t->jobs[i], t->now, &t->before[i], &value);
	t->tally->apart += value.ledger.apart.node != 0;
	if (t->told[i].code == REMOTE_WAITS)
		return value;
	sum = ledger_ahead(&value.ledger, words[0]);
	if (lease_turn(t->jobs[i].rule, words, &value.ledger, t->now,
	               t->jobs[i].reserve_from_us)) {
		t->tally->turned += words[1] == sum;
		t->tally->reserved += words[1] != sum;
	}
	return value;
}

static void explain_step(struct timeline *t, size_t i)
{
	static uint64_t words[WORDS_MOST];
	struct store_op op = { .verb = STORE_STEP };
	struct gale_answer answer;
	enum store_result result;

	decoded(t, i, words);
	result = remote_explain_step(&t->jobs[i], &t->told[i], &op);
	expect(t, result == (op.answer.why == GALE_WHY_QUARANTINE ? STORE_QUARANTINE
	                                                          : STORE_DONE));
	answer = rule_step(t->jobs[i].rule, words, t->now, t->jobs[i].cost);
	if (t->told[i].code == REMOTE_WAITS)
		expect(t, op.answer.verdict == GALE_DENY);
	else
		expect(t, memcmp(&op.answer, &answer, sizeof(answer)) == 0);
	t->tally->allowed += op.answer.verdict == GALE_ALLOW;
	t->tally->denied += op.answer.verdict == GALE_DENY;
}

static void explain_look(struct timeline *t, size_t i)
{
	static uint64_t words[WORDS_MOST];
	const struct rule *rule = t->jobs[i].rule;
	struct remote_desk desk = { t->desk_words, WORDS_MOST, t->desk_bytes };
	struct store_op op = { .verb = STORE_PEEK };
	struct gale_answer peeked;
	struct gale_outlook outlook;

	decoded(t, i, words);
	expect(t,
	       remote_explain_look(&t->jobs[i], &t->told[i], &desk, &op) == STORE_DONE);
	peeked = rule_peek(rule, words, t->now);
	expect(t, memcmp(&op.answer, &peeked, sizeof(peeked)) == 0);
	op.verb = STORE_FORECAST;
	op.cost = some_cost(&t->chance, rule);
	expect(t,
	       remote_explain_look(&t->jobs[i], &t->told[i], &desk, &op) == STORE_DONE);
	outlook = rule_forecast(rule, words, t->now, op.cost);
	expect(t, memcmp(&op.forecast, &outlook, sizeof(outlook)) == 0);
}

static struct node *node_of(struct key *key, uint64_t id)
{
	struct node *node = key->nodes;

	while (node->id != id)
		node++;
	return node;
}

static bool is_wide(const struct rule *rule)
{
	return rule->is.burst > 0 &&
	       rule->full.us / 4 > GALE_UNITS_MAX / rule->is.limit;
}

static void tally_grant(struct timeline *t, size_t i, const struct lease_grant *grant,
                        bool changed)
{
	bool partly = grant->units > 0 && grant->units < t->jobs[i].ask.want;

	t->tally->granted += grant->units > 0;
	t->tally->refused += grant->units == 0;
	t->tally->partly += partly;
	t->tally->wide += partly && is_wide(t->jobs[i].rule);
	t->tally->again += !changed && grant->units > 0;
	t->tally->ahead += changed && grant->ahead > 0;
}

/* How many units of the window were lent ahead of it, and no node has said to have them. */
static uint64_t unsaid(const struct ledger *ledger)
{
	for (size_t i = 0; i < LEASE_ROWS; i++)
		if (ledger->rows[i].node == LEASE_AHEAD)
			return ledger->rows[i].out;
	return 0;
}

static void explain_lend(struct timeline *t, size_t i)
{
	static uint64_t words[WORDS_MOST];
	const struct remote_job *job = &t->jobs[i];
	struct node *node = node_of(t->job_keys[i], job->ask.node);
	struct value value = decoded(t, i, words);
	struct lend_answer answer;
	struct lease_grant grant;
	struct ledger before = value.ledger;

	remote_explain_lend(job, &t->told[i], &answer);
	expect(t, answer.result == STORE_DONE && answer.number == job->ask.number);
	grant = lease_step(job->rule, words, &value.ledger, t->now, &job->ask);
	if (t->told[i].code != REMOTE_WAITS)
		expect(t, memcmp(&answer.grant, &grant, sizeof(grant)) == 0);
	tally_grant(t, i, &answer.grant,
	            memcmp(&before, &value.ledger, sizeof(before)) != 0);
	t->tally->claimed += unsaid(&value.ledger) < unsaid(&before);
	if (answer.grant.units == 0) {
		t->tally->in_vain += unsaid(&value.ledger) < unsaid(&before);
		return;
	}
	if (answer.grant.ahead > 0) {
		node->had = answer.grant.ahead;
		node->had_of = answer.grant.tag.us + job->rule->is.period_us;
	}
	if (node->number < job->ask.number)
		node->number = job->ask.number;
	t->job_keys[i]->latest = (size_t)(node - t->job_keys[i]->nodes);
	node->tag = answer.grant.tag;
	node->units = answer.grant.units;
	if (lease_has_ahead(job->rule))
		node->units =
		    lease_status(job->rule, words, &value.ledger, t->now, node->id)
			.units;
}

static void explain_back(struct timeline *t, size_t i)
{
	static uint64_t words[WORDS_MOST];
	const struct remote_job *job = &t->jobs[i];
	struct node *node = node_of(t->job_keys[i], job->ask.node);
	struct value value = decoded(t, i, words);
	struct lend_answer answer;
	bool taken =
	    lease_give_back(job->rule, words, &value.ledger, t->now, job->ask.node,
	                    job->ask.number, job->tag, job->units);

	remote_explain_lend(job, &t->told[i], &answer);
	expect(t, answer.result == (taken ? STORE_DONE : STORE_NOT_BOOKED));
	t->tally->taken_back += taken;
	t->tally->not_taken += !taken;
	if (taken && node->number < job->ask.number)
		node->number = job->ask.number;
}

static void explain(struct timeline *t, size_t i)
{
	struct remote_desk desk = { t->desk_words, WORDS_MOST, t->desk_bytes };
	struct store_op op;

	if (t->told[i].code == REMOTE_CALENDAR) {
		expect(t, remote_explain_look(&t->jobs[i], &t->told[i], &desk, &op) ==
		              STORE_BUSY);
		return;
	}
	switch (t->jobs[i].verb) {
	case REMOTE_STEP:
		explain_step(t, i);
		break;
	case REMOTE_LEND:
		explain_lend(t, i);
		break;
	case REMOTE_BACK:
		explain_back(t, i);
		break;
	case REMOTE_READ:
		explain_look(t, i);
		break;
	default:
		break;
	}
}

/* ---- Batches and swaps ----------------------------------------------------------- */

static void batch(struct timeline *t)
{
	uint64_t count = chance_log(&t->chance, BATCH_MOST);
	redisReply *reply;

	t->count = 0;
	if (chance_one_in(&t->chance, 3))
		add_lends(t);
	while (t->count < count)
		add_some_job(t);
	reply = call_and_ask(t);
	expect_same_told(t);
	for (size_t i = 0; i < t->count; i++)
		explain(t, i);
	for (size_t i = 0; i < t->count; i++)
		expect_same_value(t, t->job_keys[i]);
	redis_reply_free(reply);
}

/* Between the read and the swap, somebody else may have been at the key. */
static void disturb(struct timeline *t, struct key *key)
{
	struct remote_job job = t->jobs[0];

	if (!chance_one_in(&t->chance, 8))
		return;
	t->count = 0;
	add_job(t, key, REMOTE_DROP);
	redis_reply_free(call(t));
	key->kept.count = 0;
	t->jobs[0] = job;
	t->count = 1;
}

/* What it was is said as the server told it, or as the engine has it. */
static redisReply *call_swap(struct timeline *t)
{
	struct remote_job *job = &t->jobs[0];
	struct remote_bytes was = job->was;
	redisReply *reply;

	if (chance_one_in(&t->chance, 2))
		job->was = folded(job->rule, was);
	reply = call_and_ask(t);
	job->was = was;
	return reply;
}

static void swap(struct timeline *t, struct key *key)
{
	redisReply *reply;

	t->now += chance_below(&t->chance, 3);
	disturb(t, key);
	if (t->now > INSTANT_MAX_US)
		t->now = INSTANT_MAX_US;
	reply = call_swap(t);
	expect_same_told(t);
	t->tally->swapped += t->told[0].code == REMOTE_DONE;
	t->tally->moved += t->told[0].code == REMOTE_MOVED;
	redis_reply_free(reply);
	expect_same_value(t, key);
}

static bool prepare(struct timeline *t, struct key *key)
{
	struct remote_desk desk = { t->desk_words, WORDS_MOST, t->desk_bytes };
	struct store_op op = { .verb = STORE_STEP,
		               .cost = some_cost(&t->chance, &key->rule) };
	struct node *node = &key->nodes[chance_below(&t->chance, NODES)];
	struct remote_job *job = &t->jobs[0];
	enum store_result result;
	struct lend_answer answer;

	if (!lease_possible(&key->rule) || chance_one_in(&t->chance, 2))
		return remote_prepare_swap(job, &t->told[0], &desk, &op, &result);
	job->ask = (struct lease_ask){
		.node = node->id,
		.number = at_most(next_number(&t->chance, node)),
		.want = op.cost,
		.least = 1,
	};
	if (key->ahead_in > 0)
		ask_ahead(t, key, node, &job->ask);
	if (node->number < job->ask.number)
		node->number = job->ask.number;
	return remote_prepare_loan(job, &t->told[0], &desk, LEND, &answer);
}

/* What is read is stepped here and swapped, of any rule. */
static void read_and_swap(struct timeline *t)
{
	struct key *key = &t->keys[chance_below(&t->chance, t->key_count)];
	struct remote_job *job;
	redisReply *reply;

	t->count = 0;
	job = add_job(t, key, REMOTE_READ);
	if (chance_one_in(&t->chance, 4))
		date(job, t->now - chance_below(
				       &t->chance,
				       smaller(rule_window_us(&key->rule), t->now)));
	reply = call(t);
	expect_same_told(t);
	explain_look(t, 0);
	if (prepare(t, key)) {
		struct kept was = key->kept;

		t->jobs[0].was = (struct remote_bytes){ was.bytes, was.count };
		swap(t, key);
	}
	redis_reply_free(reply);
}

/* ---- Timelines ------------------------------------------------------------------- */

static void run_timeline(struct redis_talk *talk, uint64_t seed, uint64_t steps,
                         struct tally *tally)
{
	static struct timeline t;

	memset(&t, 0, sizeof(t));
	t.seed = seed;
	t.chance.state = seed;
	t.talk = talk;
	t.tally = tally;
	redis_talk_do(talk, "FLUSHALL");
	redis_talk_do(talk, "SET test:{b00}generation one");
	t.key_count = chance_between(&t.chance, 1, KEYS_MOST);
	for (size_t i = 0; i < t.key_count; i++)
		make_key(&t, i);
	t.now = some_now(&t.chance);
	for (t.step = 1; t.step <= steps; t.step++) {
		move_clock(&t);
		forget(&t, &t.keys[chance_below(&t.chance, t.key_count)]);
		if (chance_one_in(&t.chance, 4))
			read_and_swap(&t);
		else
			batch(&t);
		tally->steps += t.count;
	}
	for (size_t i = 0; i < t.key_count; i++)
		aparts_free(&t.keys[i].aparts);
}

static bool tells_something(const struct tally *tally)
{
	return tally->allowed && tally->denied && tally->granted && tally->lent &&
	       tally->partly && tally->wide && tally->refused && tally->again &&
	       tally->taken_back && tally->apart > 20 && tally->not_taken &&
	       tally->ahead && tally->turned && tally->reserved && tally->claimed &&
	       tally->in_vain && tally->swapped && tally->moved && tally->waited &&
	       tally->dropped && tally->backward;
}

static void print(const struct tally *tally)
{
	printf("%" PRIu64 " jobs: %" PRIu64 " allowed, %" PRIu64 " denied, %" PRIu64
	       " granted (%" PRIu64 " as one number, %" PRIu64 " partly, %" PRIu64
	       " wide), %" PRIu64 " refused, %" PRIu64 " again, %" PRIu64
	       " taken back, %" PRIu64 " not, %" PRIu64 " of rows apart, %" PRIu64
	       " ahead, %" PRIu64 " turned with it, %" PRIu64
	       " with a reserve, %" PRIu64 " claimed (%" PRIu64 " in vain), %" PRIu64
	       " swapped, %" PRIu64 " moved, %" PRIu64 " waited, %" PRIu64
	       " without a month, %" PRIu64 " dropped, %" PRIu64
	       " steps of the clock back\n",
	       tally->steps, tally->allowed, tally->denied, tally->granted, tally->lent,
	       tally->partly, tally->wide, tally->refused, tally->again,
	       tally->taken_back, tally->not_taken, tally->apart, tally->ahead,
	       tally->turned, tally->reserved, tally->claimed, tally->in_vain,
	       tally->swapped, tally->moved, tally->waited, tally->calendar,
	       tally->dropped, tally->backward);
}

static int run(uint64_t seed, uint64_t steps)
{
	struct tally tally = { 0 };
	struct redis_server server;
	struct redis_talk talk;

	redis_server_start(&server, NULL);
	redis_talk_open(&talk, &server);
	must(redis_put_script(&talk.text, &redis_timeline_script));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
	while (tally.steps < steps)
		run_timeline(&talk, seed++, STEPS_MOST, &tally);
	redis_talk_close(&talk);
	redis_server_stop(&server);
	print(&tally);
	if (steps < 10000 || tells_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, steps = 200000;
	const struct argument arguments[] = {
		{ "--seed", &seed },
		{ "--steps", &steps },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	return run(seed, steps);
}
