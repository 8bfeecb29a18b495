/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_script_test.c -- what PostgreSQL makes of values is what the engine makes.
 *
 *     postgres_script_test [SEED]
 *
 * Random timelines: one rule each, a few keys, batches of any jobs.  The server's clock
 * is the test's, so time stands still, jumps and runs back.  Beside the server stands
 * the pattern, sim/server.c.  After each batch
 *
 *     every job's code, and the value it found, are those of the pattern
 *     every key's row in the table is what the pattern keeps, to the bit
 *     every answer that is explained is what the engine says of the pattern's value
 *
 * A timeline follows from its seed, which a failure prints.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "engine/calendar.h"
#include "sim/random.h"
#include "tests/support/must.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"
#include "sim/apart.h"
#include "sim/server.h"

#define KEYS 5
#define NODES 20
#define BATCHES 24
#define TIMELINES 120 /* of rules that the server steps */
#define SWAPPERS 24   /* of others */
#define CROWDS 20     /* timelines of nodes that lease windows, and give back */
#define CROWD_BATCHES 80
#define AHEADS 40   /* timelines of windows whose units are lent ahead */
#define LOG_MOST 60 /* so that logs get full */
#define WORDS 512

static struct postgres_server *server;
static uint64_t first_seed = 1;

/* What a node was told last of a key. */
struct dealing {
	uint64_t number;
	uint64_t units;
	struct gale_slot tag;
	uint64_t had; /* ahead ... */
	uint64_t had_of;
};

struct key {
	uint8_t name[40];
	size_t length;
	struct kept kept;
	struct aparts aparts;
	/* Within its window the short way does not make it expire earlier than it did. */
	bool is_kept_longer;
	struct dealing nodes[NODES + 1];
};

static struct timeline {
	struct line line;
	struct chance chance;
	struct rule rule;
	bool is_known;   /* something has been asked */
	bool is_tight;   /* few nodes, few units, and time hardly moves */
	bool is_crowded; /* few units of many, and time hardly moves */
	uint64_t
	    ahead_in; /* one in so many lends is of the next window, too; 0: none */
	uint64_t seed;
	uint64_t now;
	struct key keys[KEYS];
	struct remote_job jobs[REMOTE_BATCH_MOST];
	struct remote_told told[REMOTE_BATCH_MOST];
	struct key *of[REMOTE_BATCH_MOST];
	size_t count;
	struct {
		uint64_t words[WORDS];
		uint8_t bytes[WORDS * 8];
		struct remote_desk desk;
	} desks[REMOTE_BATCH_MOST];
} t;

static struct {
	uint64_t steps, allowed, granted, taken_back, moved, swapped, waits, calendar;
	uint64_t again, looks;
	uint64_t lent, windows; /* the short way, with rows of others and without */
	uint64_t first, not_first;
	uint64_t apart;    /* leases of nodes whose row is */
	uint64_t ahead;    /* granted of the next window, too */
	uint64_t turned;   /* by that to a window that begins with it */
	uint64_t reserved; /* with what may have been forgotten */
	uint64_t claimed;  /* by nodes that said what they had */
	uint64_t in_vain;  /* of it, without a grant */
} tally;

#define agree(x)                                                                       \
	do {                                                                           \
		if (!(x)) {                                                            \
			print_error(                                                   \
			    "seed %" PRIu64 ", now %" PRIu64 ", rule %s: %s\n",        \
			    t.seed, t.now, gale_rule_name(t.rule.is.kind), #x);        \
			fail();                                                        \
		}                                                                      \
	} while (0)

/* ---- Chance ---------------------------------------------------------------------- */

static uint64_t a_limit(void)
{
	return chance_one_in(&t.chance, 3) ? chance_size(&t.chance, GALE_UNITS_MAX)
	                                   : chance_between(&t.chance, 1, 100);
}

static uint64_t a_period(uint64_t most)
{
	return chance_one_in(&t.chance, 3) ? chance_size(&t.chance, most)
	                                   : chance_between(&t.chance, 1, 1000000);
}

static int32_t an_offset(void)
{
	return (int32_t)chance_below(&t.chance, 1681) - 840;
}

static struct gale_rule a_quota(void)
{
	switch (chance_below(&t.chance, 4)) {
	case 0:
		return gale_quota_monthly(a_limit(), an_offset());
	case 1:
		return gale_quota_weekly(a_limit(), an_offset(),
		                         (uint32_t)chance_below(&t.chance, 7));
	case 2:
		return gale_quota_daily(a_limit(), an_offset());
	default:
		return gale_quota_anchored(a_limit(), a_period(GALE_SPAN_MAX_US),
		                           chance_below(&t.chance, INSTANT_MAX_US));
	}
}

static struct gale_rule a_stepped_rule(void)
{
	switch (chance_below(&t.chance, 6)) {
	case 0:
		return a_quota();
	case 1:
		return gale_token_budget(a_limit(), a_period(GALE_SPAN_MAX_US));
	case 2:
		return gale_token_bucket(a_limit(), a_limit(),
		                         a_period(GALE_SPAN_MAX_US));
	case 3:
	case 4:
		return gale_gcra(a_limit(), a_period(GALE_SPAN_MAX_US), a_limit());
	default:
		return gale_fixed_window(a_limit(), a_period(GALE_SPAN_MAX_US));
	}
}

static struct gale_rule a_swapped_rule(void)
{
	switch (chance_below(&t.chance, 4)) {
	case 0:
		return gale_sliding_window(a_limit(), a_period(GALE_SPAN_MAX_US),
		                           chance_between(&t.chance, 1, 128));
	case 1:
		return gale_sliding_log(chance_between(&t.chance, 1, LOG_MOST),
		                        a_period(GALE_SPAN_MAX_US));
	case 2:
		return gale_leaky_bucket(chance_between(&t.chance, 1, 1000),
		                         a_period(GALE_SECONDS(100)), GALE_SECONDS(60));
	default:
		return gale_pacer(chance_between(&t.chance, 1, 1000),
		                  a_period(GALE_SECONDS(100)),
		                  chance_below(&t.chance, 20));
	}
}

/* A cost or a wish: often what may just pass, sometimes anything. */
static uint64_t some_units(void)
{
	uint64_t most = t.rule.capacity < 16 ? 16 : t.rule.capacity;

	if (t.is_tight)
		return chance_between(&t.chance, 1, 3);
	if (t.is_crowded && !chance_one_in(&t.chance, 8))
		return chance_between(&t.chance, 1, most / 128 + 1);
	switch (chance_below(&t.chance, 6)) {
	case 0:
		return chance_size(&t.chance, chance_one_in(&t.chance, 20)
		                                  ? GALE_UNITS_MAX
		                                  : UINT32_MAX);
	case 1:
		return chance_between(&t.chance, 1, 3);
	default:
		return chance_between(&t.chance, 1, most / 8 + 1);
	}
}

static uint64_t longest_span(void)
{
	uint64_t span = rule_window_us(&t.rule);

	return span < 4 ? 4 : span;
}

/* To where a period ends, or just before. */
static void move_to_edge(void)
{
	uint64_t period = t.rule.is.period_us;

	if (t.rule.is.kind == GALE_RULE_QUOTA)
		t.now = quota_period(&t.rule.is, t.now).end_us;
	else
		t.now += period - t.now % period;
	t.now -= chance_below(&t.chance, 2);
}

static void move_clock(void)
{
	uint64_t span = longest_span();

	if ((t.is_tight || t.is_crowded) && !chance_one_in(&t.chance, 8))
		return;
	switch (chance_below(&t.chance, 13)) {
	case 5:
		move_to_edge();
		break;
	case 0:
		t.now += chance_below(&t.chance, 3 * span);
		break;
	case 1:
		t.now -= chance_below(&t.chance, t.now < span ? t.now : span);
		break;
	case 2:
	case 3:
	case 4:
		break;
	default:
		t.now += chance_below(&t.chance, span / 16 + 2);
	}
	if (t.now > INSTANT_MAX_US)
		t.now = INSTANT_MAX_US;
	if (t.now == 0)
		t.now = 1;
}

static uint64_t a_start(void)
{
	switch (chance_below(&t.chance, 6)) {
	case 0:
		return chance_size(&t.chance, INSTANT_MAX_US);
	case 1:
		return INSTANT_MAX_US - chance_below(&t.chance, 1000);
	default:
		return GALE_DAYS(20000) + chance_below(&t.chance, GALE_DAYS(2000));
	}
}

/* ---- Jobs ------------------------------------------------------------------------ */

static uint64_t a_number(const struct dealing *dealing)
{
	uint64_t number = dealing->number;

	switch (chance_below(&t.chance, 8)) {
	case 0:
		break;
	case 1:
		number -= chance_below(&t.chance, 3);
		break;
	case 2:
		number += chance_log(&t.chance, chance_one_in(&t.chance, 1000)
		                                    ? GALE_UNITS_MAX / 2
		                                    : 1000);
		break;
	default:
		number++;
	}
	if (number >= 1 && number <= GALE_UNITS_MAX)
		return number;
	return chance_one_in(&t.chance, 1000) ? GALE_UNITS_MAX : 1;
}

/* Of which nothing is there. */
static void free_keys(void)
{
	for (size_t i = 0; i < KEYS; i++)
		aparts_free(&t.keys[i].aparts);
}

static void make_keys(void)
{
	free_keys();
	t.is_known = false;
	for (size_t i = 0; i < KEYS; i++) {
		struct key *key = &t.keys[i];

		memset(key, 0, sizeof(*key));
		for (size_t b = 0; b < sizeof(key->name); b++)
			key->name[b] = (uint8_t)chance_next(&t.chance);
		key->length = chance_between(&t.chance, 8, sizeof(key->name));
	}
}

/* The units that it was told it has, or about as many. */
static void ask_ahead(const struct dealing *dealing, struct lease_ask *ask)
{
	uint64_t most = t.rule.is.limit / LEASE_AHEAD_PARTS;

	if (chance_one_in(&t.chance, t.ahead_in))
		ask->ahead = chance_below(&t.chance, most + 2);
	ask->had = dealing->had;
	ask->had_of = dealing->had_of;
	if (chance_one_in(&t.chance, 12))
		ask->had = chance_size(&t.chance, most + 2);
	if (chance_one_in(&t.chance, 24))
		ask->had_of = dealing->tag.us;
	if (ask->had > 0 && chance_one_in(&t.chance, 6))
		ask->least = ask->want = t.rule.is.limit; /* mostly in vain */
}

static void make_lend(struct remote_job *job, const struct dealing *dealing)
{
	job->ask.number = a_number(dealing);
	job->ask.want = some_units();
	job->ask.spent = chance_one_in(&t.chance, 3);
	job->ask.least = chance_one_in(&t.chance, 2)
	                     ? 1
	                     : chance_between(&t.chance, 1, job->ask.want);
	if (t.ahead_in > 0)
		ask_ahead(dealing, &job->ask);
}

static void make_back(struct remote_job *job, const struct dealing *dealing)
{
	job->ask.number = a_number(dealing);
	job->tag = dealing->tag;
	job->units = chance_one_in(&t.chance, 2)
	                 ? dealing->units
	                 : chance_between(&t.chance, 0, dealing->units);
	if (chance_one_in(&t.chance, 8))
		job->units += chance_log(&t.chance, 1000);
	if (chance_one_in(&t.chance, 10))
		job->tag.us += chance_below(&t.chance, 3) - 1;
	if (chance_one_in(&t.chance, 20))
		job->tag.part++;
	if (job->tag.us > GALE_UNITS_MAX)
		job->tag.us = 0;
}

static enum remote_verb a_verb(void)
{
	switch (chance_below(&t.chance, 16)) {
	case 0:
		return REMOTE_READ;
	case 1:
		return chance_one_in(&t.chance, 4) ? REMOTE_DROP : REMOTE_READ;
	case 2:
	case 3:
	case 4:
	case 5:
		return REMOTE_STEP;
	case 6:
	case 7:
	case 8:
	case 9:
		return remote_can_lend(&t.rule) ? REMOTE_BACK : REMOTE_STEP;
	default:
		return remote_can_lend(&t.rule) ? REMOTE_LEND : REMOTE_STEP;
	}
}

/* As the client does. */
static void date(struct remote_job *job, uint64_t not_before_us)
{
	job->not_before_us = not_before_us;
	job->reserve_from_us = lease_has_ahead(job->rule) ? not_before_us : 0;
}

/* About now, or of the last windows. */
static uint64_t a_date(void)
{
	uint64_t back = 3 * longest_span();

	if (!lease_has_ahead(&t.rule) || chance_one_in(&t.chance, 3))
		return t.now + chance_below(&t.chance, 3) - 1;
	return t.now - chance_below(&t.chance, back < t.now ? back : t.now);
}

static struct remote_job *add_job(enum remote_verb verb, struct key *key)
{
	struct remote_job *job = &t.jobs[t.count];

	*job = (struct remote_job){
		.verb = verb,
		.key = { key->name, key->length },
		.rule = &t.rule,
	};
	if (chance_one_in(&t.chance, 16))
		date(job, a_date());
	t.of[t.count++] = key;
	return job;
}

static uint64_t who_has_some(const struct key *key, uint64_t node)
{
	for (uint64_t i = 0; i < NODES; i++) {
		uint64_t next = (node + i) % NODES + 1;

		if (key->nodes[next].units > 0)
			return next;
	}
	return node;
}

static void make_job(void)
{
	struct key *key = &t.keys[chance_below(&t.chance, KEYS)];
	struct remote_job *job = add_job(a_verb(), key);
	const struct dealing *dealing;

	job->ask.node = chance_between(&t.chance, 1, t.is_tight ? 2 : NODES);
	if (job->verb == REMOTE_BACK && !chance_one_in(&t.chance, 8))
		job->ask.node = who_has_some(key, job->ask.node);
	dealing = &key->nodes[job->ask.node];
	if (job->verb == REMOTE_STEP)
		job->cost = some_units();
	if (job->verb == REMOTE_LEND)
		make_lend(job, dealing);
	if (job->verb == REMOTE_BACK)
		make_back(job, dealing);
}

/* What can go the short way: a lend for each of some keys, of one node but for one job in so
 * many; that they are the first may be wrong. */
static void make_lends(uint64_t of_others)
{
	uint64_t node = chance_between(&t.chance, 1, t.is_tight ? 2 : NODES);
	size_t first = chance_below(&t.chance, KEYS);
	size_t count = chance_between(&t.chance, 1, KEYS);
	bool are_first = chance_one_in(&t.chance, t.is_known ? 4 : 1);
	bool are_dated = chance_one_in(&t.chance, 8);
	uint64_t since = a_date();

	for (size_t i = 0; i < count; i++) {
		struct key *key = &t.keys[(first + i) % KEYS];
		struct remote_job *job = add_job(REMOTE_LEND, key);

		job->is_first = are_first;
		if (are_dated)
			date(job, since);
		job->ask.node = node;
		if (chance_one_in(&t.chance, of_others))
			job->ask.node = chance_between(&t.chance, 1, NODES);
		make_lend(job, &key->nodes[job->ask.node]);
		job->ask.spent = chance_one_in(&t.chance, 24);
	}
}

/* ---- Agreement ------------------------------------------------------------------- */

static bool same_bytes(struct remote_bytes a, struct remote_bytes b)
{
	return a.count == b.count &&
	       (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

static bool same_answer(const struct gale_answer *a, const struct gale_answer *b)
{
	return a->verdict == b->verdict && a->limit == b->limit &&
	       a->remaining == b->remaining && a->reset_after_us == b->reset_after_us &&
	       a->retry_after_us == b->retry_after_us && a->delay_ns == b->delay_ns;
}

static bool same_grant(const struct lease_grant *a, const struct lease_grant *b)
{
	return a->units == b->units && a->tag.us == b->tag.us &&
	       a->tag.part == b->tag.part && a->lasts_us == b->lasts_us &&
	       a->left == b->left && a->retry_us == b->retry_us &&
	       a->holders == b->holders && a->others == b->others &&
	       a->delay_ns == b->delay_ns && a->ahead == b->ahead && a->had == b->had;
}

/* The pattern's value, as words. */
static void load(const struct kept *kept, uint64_t *words, struct value *ret_value)
{
	*ret_value = (struct value){ .words = words, .room = WORDS };
	agree(value_decode(&t.rule, kept->bytes, kept->count, ret_value) == STATE_OK);
}

static void agree_on_step(size_t i, struct value *value)
{
	struct store_op op = { .verb = STORE_STEP };
	struct gale_answer engine;

	agree(remote_explain_step(&t.jobs[i], &t.told[i], &op) == STORE_DONE);
	engine = rule_step(&t.rule, value->words, t.now, t.jobs[i].cost);
	agree(same_answer(&op.answer, &engine));
	tally.allowed += engine.verdict == GALE_ALLOW;
}

/* How many units of the window were lent ahead of it, and no node has said to have them. */
static uint64_t unsaid(const struct ledger *ledger)
{
	size_t row = 0;

	while (row < LEASE_ROWS && ledger->rows[row].node != LEASE_AHEAD)
		row++;
	return row < LEASE_ROWS ? ledger->rows[row].out : 0;
}

static void agree_on_lend(size_t i, struct value *value)
{
	const struct remote_job *job = &t.jobs[i];
	struct dealing *dealing = &t.of[i]->nodes[job->ask.node];
	uint64_t before = unsaid(&value->ledger);
	struct lend_answer told;
	struct lease_grant engine;

	remote_explain_lend(job, &t.told[i], &told);
	engine = lease_step(&t.rule, value->words, &value->ledger, t.now, &job->ask);
	agree(told.result == STORE_DONE && same_grant(&told.grant, &engine));
	tally.claimed += unsaid(&value->ledger) < before;
	tally.in_vain += unsaid(&value->ledger) < before && engine.units == 0;
	if (engine.units == 0)
		return;
	tally.granted++;
	tally.again += job->ask.number <= dealing->number;
	tally.ahead += engine.ahead > 0;
	dealing->number = job->ask.number;
	dealing->units = engine.units + engine.had;
	dealing->tag = engine.tag;
	if (engine.ahead > 0) {
		dealing->had = engine.ahead;
		dealing->had_of = engine.tag.us + t.rule.is.period_us;
	}
}

static void agree_on_back(size_t i, struct value *value)
{
	const struct remote_job *job = &t.jobs[i];
	struct dealing *dealing = &t.of[i]->nodes[job->ask.node];
	struct lend_answer told;
	bool taken =
	    lease_give_back(&t.rule, value->words, &value->ledger, t.now, job->ask.node,
	                    job->ask.number, job->tag, job->units);

	remote_explain_lend(job, &t.told[i], &told);
	agree(told.result == (taken ? STORE_DONE : STORE_NOT_BOOKED));
	tally.taken_back += taken;
	if (!taken)
		return;
	dealing->number = job->ask.number;
	dealing->units -= dealing->units < job->units ? dealing->units : job->units;
}

static void agree_on_look(size_t i, struct value *value)
{
	const struct remote_desk desk = { t.desks[i].words, WORDS, t.desks[i].bytes };
	struct store_op op = { .verb = STORE_PEEK, .cost = some_units() };
	struct gale_answer answer = rule_peek(&t.rule, value->words, t.now);
	struct gale_outlook engine =
	    rule_forecast(&t.rule, value->words, t.now, op.cost);

	agree(remote_explain_look(&t.jobs[i], &t.told[i], &desk, &op) == STORE_DONE);
	agree(same_answer(&op.answer, &answer));
	op.verb = STORE_FORECAST;
	agree(remote_explain_look(&t.jobs[i], &t.told[i], &desk, &op) == STORE_DONE);
	agree(op.forecast.spendable_now == engine.spendable_now &&
	      op.forecast.next_after_us == engine.next_after_us &&
	      op.forecast.full_after_us == engine.full_after_us);
	tally.looks++;
}

static void turn(struct value *value, uint64_t reserve_from_us)
{
	uint64_t sum = ledger_ahead(&value->ledger, value->words[0]);

	if (!lease_turn(&t.rule, value->words, &value->ledger, t.now, reserve_from_us))
		return;
	tally.turned += value->words[1] == sum;
	tally.reserved += value->words[1] != sum;
}

static void agree_on_answer(size_t i, const struct kept *before)
{
	static uint64_t words[WORDS];
	struct value value;

	load(before, words, &value);
	server_put_apart(&t.jobs[i], t.now, before, &value);
	tally.apart += value.ledger.apart.node != 0;
	turn(&value, t.jobs[i].reserve_from_us);
	if (t.jobs[i].verb == REMOTE_STEP)
		agree_on_step(i, &value);
	else if (t.jobs[i].verb == REMOTE_LEND)
		agree_on_lend(i, &value);
	else if (t.jobs[i].verb == REMOTE_BACK)
		agree_on_back(i, &value);
	else if (t.jobs[i].verb == REMOTE_READ && t.jobs[i].not_before_us <= t.now)
		agree_on_look(i, &value);
}

/* Nothing changes, and nothing is explained: the periods that were sent were others. */
static bool is_out_of_calendar(size_t i)
{
	if (t.told[i].code != REMOTE_CALENDAR)
		return false;
	agree(t.rule.is.kind == GALE_RULE_QUOTA);
	tally.calendar++;
	return true;
}

#define GRANTED_AT (16 + (2 + 2) * 8) /* of a window's value, in its first row */
#define OUT_AT (GRANTED_AT + 8)

/* Of a lend what it left may be told, too: the same request finds its answer in that.  What
 * the node had out before it does not say. */
static bool is_as_left(const struct remote_told *told, const struct kept *after)
{
	struct kept left = *after;

	if (left.count > OUT_AT)
		memcpy(left.bytes + OUT_AT, left.bytes + GRANTED_AT, 8);
	return same_bytes(told->before,
	                  (struct remote_bytes){ left.bytes, left.count });
}

static void agree_on_value(const struct remote_job *job, const struct remote_told *told,
                           const struct remote_told *pattern, const struct kept *after)
{
	bool is_same = same_bytes(told->before, pattern->before);

	agree(is_same || (job->verb == REMOTE_LEND && is_as_left(told, after)));
	tally.lent += !is_same;
}

/* Or how its window was left, if no other row is there. */
static void agree_on_window(const struct remote_job *job,
                            const struct window_state *left, const struct kept *after)
{
	static uint64_t words[WORDS];
	struct value value;

	load(after, words, &value);
	agree(job->verb == REMOTE_LEND && ledger_rows(&value.ledger) == 1);
	agree(words[0] == left->start_us && words[1] == left->used);
	agree(value.ledger.rows[0].granted == job->ask.want);
	tally.windows++;
}

static void agree_on_job(size_t i)
{
	static const struct kept nothing;
	static struct kept before, after;
	struct key *key = t.of[i];
	const struct remote_told *told = &t.told[i];
	struct remote_told pattern;

	tally.steps++;
	agree(told->now_us == t.now);
	if (is_out_of_calendar(i))
		return;
	key->kept.apart = aparts_find(&key->aparts, t.jobs[i].ask.node);
	before = key->kept.expires_us > t.now ? key->kept : nothing;
	pattern = server_serve_and_keep(&t.jobs[i], t.now, &before, &after);
	aparts_keep(&key->aparts, &after.apart);
	if (told->code == REMOTE_LENT) {
		agree(pattern.code == REMOTE_DONE);
		agree_on_window(&t.jobs[i], &told->lent, &after);
	} else {
		agree(told->code == pattern.code);
		agree_on_value(&t.jobs[i], told, &pattern, &after);
	}
	tally.waits += told->code == REMOTE_WAITS;
	tally.moved += told->code == REMOTE_MOVED;
	tally.swapped += told->code == REMOTE_DONE && t.jobs[i].verb == REMOTE_SWAP;
	if (told->code == REMOTE_DONE || told->code == REMOTE_LENT)
		agree_on_answer(i, &before);
	if (memcmp(&after, &before, sizeof(after)) != 0 &&
	    before.count + after.count > 0)
		key->kept = after;
}

static uint64_t next_number(const char **at)
{
	char *end;
	uint64_t number = (uint64_t)strtoll(*at, &end, 10);

	*at = *end == 0 ? end : end + 1; /* a comma, a brace, a bar */
	return number;
}

static size_t put_words(const char *text, uint8_t *out)
{
	size_t count = 0;

	while (*text != 0) {
		uint64_t word = next_number(&text);

		for (int i = 0; i < 8; i++)
			out[count++] = (uint8_t)(word >> (8 * i));
	}
	return count;
}

static void name_of(const struct key *key, char *out)
{
	for (size_t i = 0; i < key->length; i++)
		sprintf(out + 2 * i, "%02x", key->name[i]);
}

/* The row, as "expires_us,head,fingerprint,words". */
static const char *row_of(const struct key *key)
{
	char sql[512], name[2 * sizeof(key->name) + 1];

	name_of(key, name);
	snprintf(sql, sizeof(sql),
	         "SELECT coalesce((SELECT concat_ws(',', expires_us, head, fingerprint,"
	         " CASE WHEN node > 0 THEN concat_ws(',', start_us, used, node, number,"
	         " granted, \"out\", start_us, 0) END, array_to_string(words, ','))"
	         " FROM gale.keys WHERE key = '\\x%s'), '0')",
	         name);
	return postgres_line_text(&t.line, sql);
}

static void agree_on_row(struct key *key)
{
	static uint8_t bytes[KEPT_MOST];
	const char *row = row_of(key);
	uint64_t expires = next_number(&row);

	if (key->kept.count == 0 || key->kept.expires_us == 0) {
		agree(expires <= t.now); /* and what it was stays until it is swept */
		return;
	}
	if (key->is_kept_longer && expires == INSTANT_MAX_US)
		key->kept.expires_us = expires;
	else
		key->is_kept_longer = false;
	agree(expires == key->kept.expires_us);
	agree(same_bytes((struct remote_bytes){ bytes, put_words(row, bytes) },
	                 (struct remote_bytes){ key->kept.bytes, key->kept.count }));
}

/* ---- Timelines ------------------------------------------------------------------- */

/* What expires later than it need has to be told from what counts. RULE-4 */
static void keep_longer(struct key *key)
{
	char sql[192], name[2 * sizeof(key->name) + 1];

	if (key->kept.count == 0 || key->kept.expires_us == 0 ||
	    key->kept.expires_us >= INSTANT_MAX_US)
		return;
	key->kept.expires_us = INSTANT_MAX_US;
	key->is_kept_longer = true;
	name_of(key, name);
	snprintf(sql, sizeof(sql),
	         "UPDATE gale.keys SET expires_us = %" PRIu64 " WHERE key = '\\x%s'",
	         INSTANT_MAX_US, name);
	postgres_line_do(&t.line, sql);
}

/* About now, or some periods before: which the server may know better. */
static uint64_t an_estimate(void)
{
	uint64_t estimate = t.now;

	if (chance_one_in(&t.chance, 8))
		return t.now + chance_below(&t.chance, 4 * longest_span());
	if (t.rule.is.kind == GALE_RULE_QUOTA)
		for (uint64_t i = chance_below(&t.chance, 3); i > 0 && estimate > 0;
		     i--)
			estimate = quota_period(&t.rule.is, estimate - 1).start_us;
	return estimate;
}

static void send(void)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, t.now);
	postgres_line_do(&t.line, sql);
	t.line.now_us = an_estimate();
	if (chance_one_in(&t.chance, 3))
		keep_longer(&t.keys[chance_below(&t.chance, KEYS)]);
	agree(postgres_line_call(&t.line, t.jobs, t.count, t.told) == POSTGRES_TOLD);
	tally.first += t.line.order.were_first;
	tally.not_first += t.line.order.is_first && !t.line.order.were_first;
	t.is_known = true;
	for (size_t i = 0; i < t.count; i++)
		agree_on_job(i);
	for (size_t i = 0; i < KEYS; i++)
		agree_on_row(&t.keys[i]);
}

static struct gale_rule a_window(void)
{
	return gale_fixed_window(chance_between(&t.chance, 100, 1000),
	                         chance_size(&t.chance, GALE_HOURS(1)));
}

static void open_timeline(uint64_t seed, struct gale_rule (*a_rule)(void))
{
	t.seed = seed;
	t.chance.state = seed;
	t.now = a_start();
	t.is_tight = chance_one_in(&t.chance, 4);
	t.is_crowded = !t.is_tight && chance_one_in(&t.chance, 4);
	t.ahead_in = 0;
	while (rule_compile(
		   (const struct gale_rule[]){ t.is_crowded ? a_window() : a_rule() },
		   &t.rule) != GALE_ERR_OK)
		;
	make_keys();
	if (lease_has_ahead(&t.rule) && !chance_one_in(&t.chance, 3))
		t.ahead_in = chance_one_in(&t.chance, 2) ? 2 : 20;
}

static void stepped_timeline(uint64_t seed)
{
	open_timeline(seed, a_stepped_rule);
	for (int batch = 0; batch < BATCHES; batch++) {
		size_t count = chance_one_in(&t.chance, 8)
		                   ? REMOTE_BATCH_MOST
		                   : chance_between(&t.chance, 1, 20);

		move_clock();
		t.count = 0;
		if (chance_one_in(&t.chance, t.is_crowded ? 64 : 8))
			make_keys();
		if (remote_can_lend(&t.rule) && !chance_one_in(&t.chance, 3))
			make_lends(t.is_crowded ? 2 : 24);
		else
			while (t.count < count)
				make_job();
		send();
	}
}

/* Many nodes of few keys, whose leases go the short way as long as they can. */
static void crowd_timeline(uint64_t seed)
{
	open_timeline(seed, a_window);
	t.is_tight = false;
	t.is_crowded = true;
	for (int batch = 0; batch < CROWD_BATCHES; batch++) {
		move_clock();
		t.count = 0;
		if (chance_one_in(&t.chance, 4))
			while (t.count < KEYS)
				make_job();
		else
			make_lends(24);
		send();
	}
}

/* Few nodes or many, whose leases are of the next window, too. */
static void ahead_timeline(uint64_t seed)
{
	open_timeline(seed, a_window);
	t.ahead_in = chance_one_in(&t.chance, 2) ? 2 : 20;
	for (int batch = 0; batch < CROWD_BATCHES; batch++) {
		move_clock();
		t.count = 0;
		if (chance_one_in(&t.chance, 64))
			make_keys();
		if (chance_one_in(&t.chance, 3))
			while (t.count < KEYS)
				make_job();
		else
			make_lends(24);
		send();
	}
}

static struct remote_told read_again[REMOTE_BATCH_MOST];
static uint8_t read_bytes[REMOTE_BATCH_MOST][WORDS * 8];

/* What was read stays, while the line is used again. */
static void keep_told(void)
{
	for (size_t i = 0; i < t.count; i++) {
		struct remote_bytes *before = &read_again[i].before;

		read_again[i] = t.told[i];
		must(before->count <= sizeof(read_bytes[i]));
		if (before->count > 0)
			memcpy(read_bytes[i], before->bytes, before->count);
		before->bytes = read_bytes[i];
	}
}

static bool prepare_loan(struct remote_job *job, size_t i,
                         const struct remote_desk *desk)
{
	struct dealing *dealing;
	struct lend_answer answer;
	bool gives = chance_one_in(&t.chance, 2);

	job->ask.node = chance_between(&t.chance, 1, NODES);
	dealing = &t.of[i]->nodes[job->ask.node];
	if (gives)
		make_back(job, dealing);
	else
		make_lend(job, dealing);
	if (!remote_prepare_loan(job, &read_again[i], desk, gives ? LEND_BACK : LEND,
	                         &answer))
		return false;
	*dealing = (struct dealing){ .number = job->ask.number,
		                     .units = answer.grant.units,
		                     .tag = answer.grant.tag };
	return true;
}

static bool prepare_step(struct remote_job *job, size_t i,
                         const struct remote_desk *desk)
{
	struct store_op op = { .verb = STORE_STEP, .cost = some_units() };
	enum store_result result;

	return remote_prepare_swap(job, &read_again[i], desk, &op, &result);
}

/* Those of the jobs read that become swaps, the same key sometimes twice. */
static void make_swaps(void)
{
	size_t read = t.count, count = 0;

	for (size_t i = 0; i < read; i++) {
		struct remote_job job = t.jobs[i];
		struct remote_desk desk = { t.desks[i].words, WORDS, t.desks[i].bytes };
		bool lends = lease_possible(&t.rule) && chance_one_in(&t.chance, 2);

		if (t.told[i].code != REMOTE_DONE || job.not_before_us > t.now)
			continue;
		if (lends ? prepare_loan(&job, i, &desk)
		          : prepare_step(&job, i, &desk)) {
			t.of[count] = t.of[i];
			t.jobs[count++] = job;
		}
	}
	t.count = count;
}

static void swapped_timeline(uint64_t seed)
{
	open_timeline(seed, a_swapped_rule);
	for (int batch = 0; batch < BATCHES; batch++) {
		move_clock();
		t.count = 0;
		while (t.count < 12)
			add_job(REMOTE_READ, &t.keys[chance_below(&t.chance, KEYS)]);
		send();
		keep_told();
		make_swaps();
		if (chance_one_in(&t.chance, 4))
			move_clock();
		if (t.count > 0)
			send();
	}
}

/* ---- Tests ----------------------------------------------------------------------- */

static int start(void **state)
{
	(void)state;
	server = postgres_server_start();
	postgres_line_open(&t.line, postgres_server_address(server));
	postgres_line_install(&t.line);
	postgres_line_do(
	    &t.line,
	    "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint LANGUAGE sql"
	    " VOLATILE AS $$SELECT current_setting('gale.test_now')::bigint$$");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	free_keys();
	postgres_line_close(&t.line);
	postgres_server_stop(server);
	return 0;
}

static void what_the_server_steps_is_what_the_engine_steps(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < TIMELINES; i++)
		stepped_timeline(first_seed + i);
	print_message(
	    "%" PRIu64 " steps: %" PRIu64 " allowed, %" PRIu64 " granted, %" PRIu64
	    " of them again, %" PRIu64 " the short way with others, %" PRIu64
	    " without, %" PRIu64 " taken back, %" PRIu64 " looks, %" PRIu64
	    " waits, %" PRIu64 " out of the calendar\n",
	    tally.steps, tally.allowed, tally.granted, tally.again, tally.lent,
	    tally.windows, tally.taken_back, tally.looks, tally.waits, tally.calendar);
	assert_true(tally.steps >= 10000);
	assert_true(tally.allowed > 500 && tally.granted > 500);
	assert_true(tally.lent > 100 && tally.windows > 50);
	assert_true(tally.taken_back > 200 && tally.again > 50 && tally.looks > 200);
	assert_true(tally.waits > 20);
	print_message("%" PRIu64 " of rows apart\n", tally.apart);
	assert_true(tally.apart > 50);
	print_message("%" PRIu64 " batches put in, %" PRIu64 " in vain\n", tally.first,
	              tally.not_first);
	assert_true(tally.first > 20 && tally.not_first > 20);
}

static void a_crowd_leases_the_short_way_what_the_engine_lends(void **state)
{
	uint64_t apart = tally.apart, granted = tally.granted;

	(void)state;
	for (uint64_t i = 0; i < CROWDS; i++)
		crowd_timeline(first_seed + TIMELINES + SWAPPERS + i);
	apart = tally.apart - apart;
	granted = tally.granted - granted;
	print_message("%" PRIu64 " granted, %" PRIu64 " of rows apart\n", granted,
	              apart);
	assert_true(granted > 1000 && apart > 300);
}

static void what_is_lent_ahead_is_what_the_engine_lends(void **state)
{
	uint64_t steps = tally.steps;

	(void)state;
	for (uint64_t i = 0; i < AHEADS; i++)
		ahead_timeline(first_seed + TIMELINES + SWAPPERS + CROWDS + i);
	print_message("%" PRIu64 " steps: %" PRIu64 " ahead, %" PRIu64
	              " turned with it, %" PRIu64 " with a reserve, %" PRIu64
	              " claimed, %" PRIu64 " of them in vain\n",
	              tally.steps - steps, tally.ahead, tally.turned, tally.reserved,
	              tally.claimed, tally.in_vain);
	assert_true(tally.ahead > 500 && tally.turned > 200 && tally.reserved > 100);
	assert_true(tally.claimed > 100 && tally.in_vain > 10);
}

static void what_is_swapped_is_what_was_sent_or_nothing(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < SWAPPERS; i++)
		swapped_timeline(first_seed + TIMELINES + i); /* other keys */
	print_message("%" PRIu64 " swapped, %" PRIu64 " moved\n", tally.swapped,
	              tally.moved);
	assert_true(tally.swapped > 500 && tally.moved > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_server_steps_is_what_the_engine_steps),
		cmocka_unit_test(a_crowd_leases_the_short_way_what_the_engine_lends),
		cmocka_unit_test(what_is_lent_ahead_is_what_the_engine_lends),
		cmocka_unit_test(what_is_swapped_is_what_was_sent_or_nothing),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, start, stop);
}
