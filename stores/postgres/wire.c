/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.c -- binary parameters, written in one pass.
 *
 *     gale.run:    wanted, nonce, generation, keys, ask, vals
 *     gale.lends:  the same, but for ask and vals: asks, base, rests, rules, ends
 *     gale.lend:   wanted, generation, keys, asks, base, rule, and four numbers of it
 *     gale.lend_first:  the same, if this node was told of none of the keys
 *     gale.beat:   wanted, nonce, generation, names of groups, names of nodes, ask
 *     gale.claim:  the same, of pools and of tenants
 *
 * ask holds where each job starts in it, counted from 1, and then the jobs; vals holds the
 * values of swaps, as numbers.  Lends from windows, one for each key, go a shorter way, in
 * the order of their keys: a rule is what those that follow each other have in common,
 * the others what they have not.  schema.sql says which number is what.
 *
 * Invariants
 *
 *   POSTGRES-4  What is measured is what is written: a room is taken once for each
 *               batch.
 */
#define _GNU_SOURCE
#include "stores/postgres/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/calendar.h"
#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/postgres/numbers.h"

enum statement {
	ASK_RUN,
	ASK_LEND,
	ASK_LENDS,
	ASK_LEND_FIRST,
	ASK_BEAT,
	ASK_CLAIM,
};

const struct postgres_statement postgres_statements[] = {
	[ASK_RUN] = { "gale_run",
	              "SELECT * FROM gale.run($1, $2, $3, $4, $5, $6)",
	              6,
	              { INT4, INT8, TEXT, BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY } },
	[ASK_LEND] = { "gale_lend",
	               "SELECT * FROM gale.lend($1, $2, $3, $4, $5, $6, $7, $8, $9, "
	               "$10)",
	               10,
	               { INT4, TEXT, BYTEA_ARRAY, INT8_ARRAY, INT8, INT8_ARRAY, INT8,
	                 INT8, INT8, INT8 } },
	[ASK_LENDS] = { "gale_lends",
	                "SELECT * FROM gale.lends($1, $2, $3, $4, $5, $6, $7, $8, $9)",
	                9,
	                { INT4, INT8, TEXT, BYTEA_ARRAY, INT8_ARRAY, INT8, INT8_ARRAY,
	                  INT8_ARRAY, INT8_ARRAY } },
	[ASK_LEND_FIRST] = { "gale_lend_first",
	                     "SELECT * FROM gale.lend_first($1, $2, $3, $4, $5, $6, "
	                     "$7, $8, $9, $10)",
	                     10,
	                     { INT4, TEXT, BYTEA_ARRAY, INT8_ARRAY, INT8, INT8_ARRAY,
	                       INT8, INT8, INT8, INT8 } },
	[ASK_BEAT] = { "gale_beat",
	               "SELECT * FROM gale.beat($1, $2, $3, $4, $5, $6)",
	               6,
	               { INT4, INT8, TEXT, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY } },
	[ASK_CLAIM] = { "gale_claim",
	                "SELECT * FROM gale.claim($1, $2, $3, $4, $5, $6)",
	                6,
	                { INT4, INT8, TEXT, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY } },
};

/* ---- Rooms ----------------------------------------------------------------------- */

void postgres_room_close(struct postgres_room *room)
{
	if (room->bytes)
		memory_give(room->allocator, room->bytes, room->size);
	room->bytes = NULL;
	room->size = 0;
}

bool postgres_room_make(struct postgres_room *room, size_t size)
{
	uint8_t *bytes;

	if (size <= room->size)
		return true;
	bytes = memory_take(room->allocator, size);
	if (!bytes)
		return false;
	postgres_room_close(room);
	room->bytes = bytes;
	room->size = size;
	return true;
}

/* ---- Arrays ---------------------------------------------------------------------- */

static uint8_t *put_array_head(uint8_t *at, Oid type, size_t count)
{
	at = put4(at, 1); /* dimension */
	at = put4(at, 0); /* nulls */
	at = put4(at, type);
	at = put4(at, count);
	return put4(at, 1); /* is the first index */
}

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
	return put8(put4(at, 8), number);
}

/* ---- What a job's numbers are ---------------------------------------------------- */

#define NUMBERS_MOST 18

/* The periods before, at and after this instant meet at these four. */
static void list_periods(const struct gale_rule *quota, uint64_t now, uint64_t *out)
{
	struct period this =
	    quota_period(quota, now < INSTANT_MAX_US ? now : INSTANT_MAX_US);

	out[0] =
	    this.start_us == 0 ? 0 : quota_period(quota, this.start_us - 1).start_us;
	out[1] = this.start_us;
	out[2] = this.end_us;
	out[3] = quota_period(quota, this.end_us).end_us;
}

static void list_rule(const struct rule *rule, uint64_t now, uint64_t out[NUMBERS_MOST])
{
	out[4] = rule->is.limit;
	out[5] = rule->is.period_us;
	if (is_meter(rule)) {
		out[6] = rule->is.burst;
		out[7] = rule->full.us;
		out[8] = rule->full.part;
	}
	if (rule->is.kind == GALE_RULE_QUOTA) {
		out[5] = 0;
		list_periods(&rule->is, now, out + 6);
	}
}

static size_t list_step(const struct remote_job *job, uint64_t out[NUMBERS_MOST])
{
	/* A cost above the burst is denied anyway, and its span may not fit. */
	bool fits = is_meter(job->rule) && job->cost <= job->rule->is.burst;
	struct gale_slot span = fits ? rule_span(job->rule, job->cost) : slot_at(0);

	out[10] = job->cost;
	out[11] = span.us;
	out[12] = span.part;
	return 13;
}

static size_t list_lend(const struct remote_job *job, uint64_t out[NUMBERS_MOST])
{
	out[10] = job->ask.node;
	out[11] = job->ask.number;
	out[12] = job->ask.want;
	out[13] = job->ask.least;
	out[14] = job->ask.spent;
	out[15] = job->ask.ahead;
	out[16] = job->ask.had;
	out[17] = job->ask.had_of;
	return 18;
}

static size_t list_back(const struct remote_job *job, uint64_t out[NUMBERS_MOST])
{
	out[10] = job->ask.node;
	out[11] = job->ask.number;
	out[12] = job->tag.us;
	out[13] = job->tag.part;
	out[14] = job->units;
	return 15;
}

/* The values of a swap are put behind those of the swaps before. */
static size_t list_swap(const struct remote_job *job, size_t *vals,
                        uint64_t out[NUMBERS_MOST])
{
	out[4] = job->expires_us;
	out[5] = *vals + 1;
	out[6] = job->was.count / 8;
	out[7] = out[5] + out[6];
	out[8] = job->becomes.count / 8;
	*vals += out[6] + out[8];
	return 9;
}

/* Returns how many there are; *vals is how many numbers of values come before. */
static size_t list_job(const struct remote_job *job, uint64_t now, size_t *vals,
                       uint64_t out[NUMBERS_MOST])
{
	memset(out, 0, NUMBERS_MOST * sizeof(uint64_t));
	out[0] = (uint64_t)job->verb;
	out[1] = (uint64_t)job->rule->is.kind;
	out[2] = job->rule->fingerprint;
	out[3] = has_patience(job->verb) ? job->not_before_us : 0;
	list_rule(job->rule, now, out);
	switch (job->verb) {
	case REMOTE_STEP:
		gale_assert(remote_can_step(job->rule));
		return list_step(job, out);
	case REMOTE_LEND:
		gale_assert(remote_can_lend(job->rule));
		return list_lend(job, out);
	case REMOTE_BACK:
		gale_assert(remote_can_lend(job->rule));
		return list_back(job, out);
	case REMOTE_SWAP:
		return list_swap(job, vals, out);
	default:
		return 4;
	}
}

/* ---- A batch --------------------------------------------------------------------- */

/* How many bytes of keys, and how many numbers and values there are. */
struct measure {
	size_t keys;
	size_t numbers;
	size_t vals;
};

static struct measure measure(const struct postgres_batch *batch)
{
	struct measure sum = { 0 };
	uint64_t scratch[NUMBERS_MOST];

	for (size_t i = 0; i < batch->count; i++) {
		const struct remote_job *job = &batch->jobs[i];

		gale_assert(job->key.count > 0);
		gale_assert(job->was.count % 8 == 0 && job->becomes.count % 8 == 0);
		sum.keys += 4 + job->key.count;
		sum.numbers += 1 + list_job(job, batch->now_us, &sum.vals, scratch);
	}
	return sum;
}

static uint8_t *put_key(uint8_t *at, const struct remote_bytes *key)
{
	memcpy(put4(at, key->count), key->bytes, key->count);
	return at + 4 + key->count;
}

static uint8_t *put_keys(uint8_t *at, const struct postgres_batch *batch)
{
	at = put_array_head(at, BYTEA, batch->count);
	for (size_t i = 0; i < batch->count; i++)
		at = put_key(at, &batch->jobs[i].key);
	return at;
}

static uint8_t *put_jobs(uint8_t *at, const struct postgres_batch *batch,
                         size_t numbers)
{
	uint8_t *starts = put_array_head(at, INT8, numbers);
	uint64_t out[NUMBERS_MOST];
	size_t vals = 0, next = batch->count;

	at = starts + batch->count * NUMBER;
	for (size_t i = 0; i < batch->count; i++) {
		size_t count = list_job(&batch->jobs[i], batch->now_us, &vals, out);

		starts = put_number(starts, next + 1);
		for (size_t n = 0; n < count; n++)
			at = put_number(at, out[n]);
		next += count;
	}
	return at;
}

static uint64_t get_little(const uint8_t *at)
{
	uint64_t little;

	memcpy(&little, at, sizeof(little));
	return le64toh(little);
}

static uint8_t *put_value(uint8_t *at, struct remote_bytes value)
{
	for (size_t i = 0; i < value.count; i += 8)
		at = put_number(at, get_little(value.bytes + i));
	return at;
}

static uint8_t *put_vals(uint8_t *at, const struct postgres_batch *batch, size_t vals)
{
	at = put_array_head(at, INT8, vals);
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->jobs[i].verb != REMOTE_SWAP)
			continue;
		at = put_value(at, batch->jobs[i].was);
		at = put_value(at, batch->jobs[i].becomes);
	}
	return at;
}

static void add(struct postgres_call *call, Oid type, const void *from,
                const uint8_t *end)
{
	int which = call->count++;

	gale_assert(which < call->statement->count &&
	            call->statement->types[which] == type);
	call->values[which] = from;
	call->lengths[which] = (int)(end - (const uint8_t *)from);
	call->formats[which] = POSTGRES_BINARY;
}

static void begin(struct postgres_call *call, enum statement statement)
{
	call->statement = &postgres_statements[statement];
	call->count = 0;
}

static uint8_t *add_big(struct postgres_call *call, uint8_t *at, uint64_t number)
{
	uint8_t *end = put8(at, number);

	add(call, INT8, at, end);
	return end;
}

static uint8_t *add_version(struct postgres_call *call, uint8_t *at)
{
	uint8_t *end = put4(at, (uint32_t)postgres_schema_version);

	add(call, INT4, at, end);
	return end;
}

static void add_generation(struct postgres_call *call,
                           const struct postgres_batch *batch)
{
	const uint8_t *text = (const uint8_t *)batch->generation;

	add(call, TEXT, text, text + strlen(batch->generation));
}

static bool ask_any(const struct postgres_batch *batch, struct postgres_room *room,
                    struct postgres_call *ret_call)
{
	struct measure sum = measure(batch);
	uint8_t *keys, *jobs, *vals, *end;

	if (!postgres_room_make(room, 4 + 8 + 3 * ARRAY_HEAD + sum.keys +
	                                  (sum.numbers + sum.vals) * NUMBER))
		return false; /* POSTGRES-4 */
	begin(ret_call, ASK_RUN);
	keys = add_big(ret_call, add_version(ret_call, room->bytes), batch->nonce);
	jobs = put_keys(keys, batch);
	vals = put_jobs(jobs, batch, sum.numbers);
	end = put_vals(vals, batch, sum.vals);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	add_generation(ret_call, batch);
	add(ret_call, BYTEA_ARRAY, keys, jobs);
	add(ret_call, INT8_ARRAY, jobs, vals);
	add(ret_call, INT8_ARRAY, vals, end);
	return true;
}

/* ---- Lends from windows ---------------------------------------------------------- */

#define RUNS_MOST (1 + REMOTE_BATCH_MOST / 4)
#define RULE_NUMBERS 11
#define PLACE_BIT 56  /* of what an ask is, its number in the batch from there on ... */
#define NUMBER_BIT 36 /* ... and that of the request, less the base */
#define WANT_MOST ((UINT64_C(1) << NUMBER_BIT) - 1)
#define TURNS_SLOWLY_US                                                                \
	UINT64_C(100000) /* or units would mostly be dead when they come */

/* Jobs of one rule, side by side. */
struct run {
	size_t from;
	size_t end;
	bool is_alike; /* no rests */
};

struct lend {
	uint64_t lead; /* of the key, the first bytes that not all have in common */
	const struct remote_job *job;
};

/* The jobs of a batch, by their keys. */
struct lends {
	struct lend jobs[REMOTE_BATCH_MOST];
	size_t count;
	uint64_t base; /* the least number of a request */
	bool is_ahead; /* one of them has to do with units ahead */
	struct run runs[RUNS_MOST];
	size_t run_count;
};

static bool is_simple(const struct remote_job *job)
{
	const struct gale_rule *rule = &job->rule->is;

	return job->verb == REMOTE_LEND && (rule->kind == GALE_RULE_QUOTA ||
	                                    (rule->kind == GALE_RULE_FIXED_WINDOW &&
	                                     rule->period_us >= TURNS_SLOWLY_US));
}

static int compare_keys(const struct remote_bytes *a, const struct remote_bytes *b)
{
	size_t count = a->count < b->count ? a->count : b->count;
	int order = memcmp(a->bytes, b->bytes, count);

	return order != 0 ? order : (a->count > b->count) - (a->count < b->count);
}

/* How many bytes all keys begin with. */
static size_t shared_by_all(const struct postgres_batch *batch)
{
	const struct remote_bytes *first = &batch->jobs[0].key;
	size_t shared = first->count;

	for (size_t i = 1; i < batch->count; i++) {
		const struct remote_bytes *key = &batch->jobs[i].key;

		shared = key->count < shared ? key->count : shared;
		while (memcmp(key->bytes, first->bytes, shared) != 0)
			shared--;
	}
	return shared;
}

static struct lend lend_of(const struct remote_job *job, size_t shared)
{
	size_t more = job->key.count - shared;
	uint8_t lead[8] = { 0 };

	memcpy(lead, job->key.bytes + shared, more < 8 ? more : 8);
	return (struct lend){ get8(lead), job };
}

static int compare_lends(const struct lend *a, const struct lend *b)
{
	if (a->lead != b->lead)
		return a->lead < b->lead ? -1 : 1;
	return compare_keys(&a->job->key, &b->job->key);
}

/* False if there is one of the same key. */
static bool put_in_order(struct lends *lends, struct lend lend)
{
	size_t at = lends->count++;
	int order = 1;

	for (; at > 0; at--) {
		order = compare_lends(&lend, &lends->jobs[at - 1]);
		if (order >= 0)
			break;
		lends->jobs[at] = lends->jobs[at - 1];
	}
	lends->jobs[at] = lend;
	return at == 0 || order > 0;
}

/* False if any is no lend from a window, or two are of one key. */
static bool sort_jobs(const struct postgres_batch *batch, struct lends *lends)
{
	size_t shared;

	lends->count = 0;
	for (size_t i = 0; i < batch->count; i++)
		if (!is_simple(&batch->jobs[i]))
			return false;
	shared = batch->count > 0 ? shared_by_all(batch) : 0;
	for (size_t i = 0; i < batch->count; i++)
		if (!put_in_order(lends, lend_of(&batch->jobs[i], shared)))
			return false;
	return batch->count > 0;
}

static bool have_in_common(const struct remote_job *a, const struct remote_job *b)
{
	return a->not_before_us == b->not_before_us && a->ask.node == b->ask.node &&
	       remote_same_rule(a->rule, b->rule);
}

/* The numbers that count only if not all that is wanted can be had. */
static uint64_t rest_of(const struct remote_job *job)
{
	return job->ask.least * 2 + job->ask.spent;
}

static void look_at_run(const struct lends *lends, struct run *run)
{
	uint64_t rest = rest_of(lends->jobs[run->from].job);

	run->is_alike = true;
	for (size_t i = run->from; i < run->end; i++)
		run->is_alike &= rest_of(lends->jobs[i].job) == rest;
}

/* False if there are too many, for so few jobs each. */
static bool find_runs(struct lends *lends)
{
	lends->run_count = 0;
	for (size_t from = 0, end; from < lends->count; from = end) {
		struct run *run = &lends->runs[lends->run_count];

		if (lends->run_count++ == 1 + lends->count / 4)
			return false;
		for (end = from + 1; end < lends->count; end++)
			if (!have_in_common(lends->jobs[from].job,
			                    lends->jobs[end].job))
				break;
		*run = (struct run){ .from = from, .end = end };
		look_at_run(lends, run);
	}
	return true;
}

/* False if there is one for which an ask of asks has too few bits.  A lend that has to do with
 * units ahead wants more than its limit there. */
static bool find_base(struct lends *lends)
{
	uint64_t most = 0, wanted = 0;

	lends->is_ahead = false;
	lends->base = UINT64_MAX;
	for (size_t i = 0; i < lends->count; i++) {
		const struct remote_job *job = lends->jobs[i].job;
		const struct lease_ask *ask = &job->ask;
		bool is_ahead = remote_lends_ahead(job);

		lends->base = ask->number < lends->base ? ask->number : lends->base;
		most = ask->number > most ? ask->number : most;
		wanted |= is_ahead ? job->rule->is.limit + 1 : ask->want;
		lends->is_ahead |= is_ahead;
	}
	return most - lends->base < UINT64_C(1) << (PLACE_BIT - NUMBER_BIT) &&
	       wanted <= WANT_MOST;
}

static bool find_lends(const struct postgres_batch *batch, struct lends *lends)
{
	return sort_jobs(batch, lends) && find_base(lends) && find_runs(lends);
}

static uint8_t *put_sorted_keys(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, BYTEA, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_key(at, &lends->jobs[i].job->key);
	return at;
}

static uint64_t ask_of(const struct lends *lends, size_t i)
{
	const struct remote_job *job = lends->jobs[i].job;
	uint64_t want = remote_lends_ahead(job) ? WANT_MOST : job->ask.want;

	return (i + 1) << PLACE_BIT | (job->ask.number - lends->base) << NUMBER_BIT |
	       want;
}

static uint8_t *put_asks(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, INT8, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_number(at, ask_of(lends, i));
	return at;
}

#define REST_AHEAD 5 /* numbers of each, where one has to do with units ahead */

/* How many numbers there are to put. */
static size_t count_rests(const struct lends *lends)
{
	bool are_alike = true;

	if (lends->is_ahead)
		return lends->count * REST_AHEAD;
	for (size_t i = 0; i < lends->run_count; i++)
		are_alike &= lends->runs[i].is_alike;
	return are_alike ? 0 : lends->count;
}

static uint8_t *put_rests(uint8_t *at, const struct lends *lends, size_t count)
{
	for (size_t i = 0; count > 0 && i < lends->count; i++) {
		const struct remote_job *job = lends->jobs[i].job;

		at = put_number(at, rest_of(job));
		if (!lends->is_ahead)
			continue;
		at = put_number(at, job->ask.want);
		at = put_number(at, job->ask.ahead);
		at = put_number(at, job->ask.had);
		at = put_number(at, job->ask.had_of);
	}
	return at;
}

static uint8_t *put_rule(uint8_t *at, const struct lends *lends, const struct run *run,
                         uint64_t now)
{
	const struct remote_job *job = lends->jobs[run->from].job;
	uint64_t out[NUMBERS_MOST] = { 0 };

	list_rule(job->rule, now, out);
	out[1] = (uint64_t)job->rule->is.kind;
	out[2] = job->rule->fingerprint;
	out[3] = job->not_before_us;
	out[10] = job->ask.node;
	out[11] = rest_of(job);
	for (size_t i = 1; i <= RULE_NUMBERS; i++)
		at = put_number(at, out[i]);
	return at;
}

static size_t bytes_of_lends(const struct lends *lends)
{
	size_t sum = 4 + 5 * ARRAY_HEAD + 5 * 8 + (lends->count + 1) * NUMBER +
	             count_rests(lends) * NUMBER +
	             lends->run_count * (RULE_NUMBERS + 1) * NUMBER;

	for (size_t i = 0; i < lends->count; i++)
		sum += 4 + lends->jobs[i].job->key.count;
	return sum;
}

/* What each job is. */
static uint8_t *add_jobs(struct postgres_call *call, uint8_t *at,
                         const struct lends *lends)
{
	uint8_t *asks = put_sorted_keys(at, lends);
	uint8_t *end = put_asks(asks, lends);

	add(call, BYTEA_ARRAY, at, asks);
	add(call, INT8_ARRAY, asks, end);
	return add_big(call, end, lends->base);
}

static uint8_t *ask_run(struct postgres_call *call, uint8_t *at,
                        const struct postgres_batch *batch, const struct lends *lends)
{
	const struct remote_job *job = lends->jobs[0].job;
	size_t rests = count_rests(lends);
	uint8_t *rule, *end;

	begin(call, batch->order->is_first ? ASK_LEND_FIRST : ASK_LEND);
	at = add_version(call, at);
	add_generation(call, batch);
	rule = add_jobs(call, at, lends);
	end = put_array_head(rule, INT8, RULE_NUMBERS + 1 + rests);
	end = put_rule(end, lends, &lends->runs[0], batch->now_us);
	end = put_rests(put_number(end, batch->nonce), lends, rests);
	add(call, INT8_ARRAY, rule, end);
	end = add_big(call, end, head_of(job->rule));
	end = add_big(call, end, job->rule->fingerprint);
	end = add_big(call, end, job->rule->is.limit);
	return add_big(call, end, job->ask.node);
}

static uint8_t *ask_runs(struct postgres_call *call, uint8_t *at,
                         const struct postgres_batch *batch, const struct lends *lends)
{
	size_t rests = count_rests(lends);
	uint8_t *rules, *ends, *end;

	begin(call, ASK_LENDS);
	at = add_big(call, add_version(call, at), batch->nonce);
	add_generation(call, batch);
	at = add_jobs(call, at, lends);
	rules = put_rests(put_array_head(at, INT8, rests), lends, rests);
	ends = put_array_head(rules, INT8, lends->run_count * RULE_NUMBERS);
	for (size_t i = 0; i < lends->run_count; i++)
		ends = put_rule(ends, lends, &lends->runs[i], batch->now_us);
	end = put_array_head(ends, INT8, lends->run_count);
	for (size_t i = 0; i < lends->run_count; i++)
		end = put_number(end, lends->runs[i].end);
	add(call, INT8_ARRAY, at, rules);
	add(call, INT8_ARRAY, rules, ends);
	add(call, INT8_ARRAY, ends, end);
	return end;
}

static bool ask_lends(const struct postgres_batch *batch, const struct lends *lends,
                      struct postgres_room *room, struct postgres_call *ret_call)
{
	uint8_t *end;

	if (!postgres_room_make(room, bytes_of_lends(lends)))
		return false; /* POSTGRES-4 */
	end = lends->run_count == 1 ? ask_run(ret_call, room->bytes, batch, lends)
	                            : ask_runs(ret_call, room->bytes, batch, lends);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	return true;
}

/* Does the window begin with what may have been lent ahead of it, and forgotten?  LEASE-7 */
static bool is_reserved(const struct remote_job *job, uint64_t now)
{
	uint64_t from = job->reserve_from_us, start;

	if (from == 0)
		return false;
	start = now - now % job->rule->is.period_us;
	return start >= from && start - from < job->rule->is.period_us;
}

/* Nothing is known of any of the keys, and no lend wants more than there can be. */
static bool are_first(const struct lends *lends, uint64_t now)
{
	bool are = lends->run_count == 1 && !lends->is_ahead;

	for (size_t i = 0; i < lends->count; i++) {
		const struct remote_job *job = lends->jobs[i].job;

		are &= job->is_first && job->ask.want <= job->rule->is.limit &&
		       !is_reserved(job, now);
	}
	return are;
}

static void note_order(const struct postgres_batch *batch, const struct lends *lends)
{
	batch->order->is_short = true;
	batch->order->is_first = batch->takes_first && are_first(lends, batch->now_us);
	for (size_t i = 0; i < lends->count; i++)
		batch->order->jobs[i] = (uint8_t)(lends->jobs[i].job - batch->jobs);
}

/* ---- Beats and claims ------------------------------------------------------------- */

#define BEAT_NUMBERS (1 + GROUP_SETTINGS_WORDS + GROUP_REPORT_WORDS)
#define CLAIM_NUMBERS (2 + POOL_ASK_WORDS)

/* A job has a second name beside its key's: a node's, or a tenant's. */
static struct remote_bytes second_name(const struct remote_job *job)
{
	return job->verb == REMOTE_BEAT
	           ? (struct remote_bytes){ job->beat->node, job->beat->node_len }
	           : (struct remote_bytes){ job->claim->tenant,
		                            job->claim->tenant_len };
}

static uint8_t *put_seconds(uint8_t *at, const struct postgres_batch *batch)
{
	at = put_array_head(at, BYTEA, batch->count);
	for (size_t i = 0; i < batch->count; i++) {
		struct remote_bytes name = second_name(&batch->jobs[i]);

		at = put_key(at, &name);
	}
	return at;
}

static uint8_t *put_words(uint8_t *at, const void *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		at = put_number(at, word);
	}
	return at;
}

static uint8_t *put_beat(uint8_t *at, const struct remote_job *job)
{
	at = put_number(at, job->forgot_us);
	at = put_words(at, &job->beat->settings, GROUP_SETTINGS_WORDS);
	return put_words(at, &job->beat->report, GROUP_REPORT_WORDS);
}

static uint8_t *put_claim(uint8_t *at, const struct remote_job *job)
{
	at = put_number(put_number(at, job->not_before_us), job->claim->node);
	return put_words(at, &job->claim->ask, POOL_ASK_WORDS);
}

static uint8_t *put_apart(uint8_t *at, const struct postgres_batch *batch, bool beats,
                          size_t numbers)
{
	at = put_array_head(at, INT8, batch->count * numbers);
	for (size_t i = 0; i < batch->count; i++)
		at = beats ? put_beat(at, &batch->jobs[i])
		           : put_claim(at, &batch->jobs[i]);
	return at;
}

static size_t bytes_apart(const struct postgres_batch *batch, size_t numbers)
{
	size_t sum = 4 + 8 + 3 * ARRAY_HEAD;

	for (size_t i = 0; i < batch->count; i++)
		sum += 4 + batch->jobs[i].key.count + 4 +
		       second_name(&batch->jobs[i]).count + numbers * NUMBER;
	return sum;
}

static bool ask_apart(const struct postgres_batch *batch, struct postgres_room *room,
                      struct postgres_call *ret_call)
{
	bool beats = batch->jobs[0].verb == REMOTE_BEAT;
	size_t numbers = beats ? BEAT_NUMBERS : CLAIM_NUMBERS;
	uint8_t *names, *seconds, *asks, *end;

	if (!postgres_room_make(room, bytes_apart(batch, numbers)))
		return false; /* POSTGRES-4 */
	begin(ret_call, beats ? ASK_BEAT : ASK_CLAIM);
	names = add_big(ret_call, add_version(ret_call, room->bytes), batch->nonce);
	seconds = put_keys(names, batch);
	asks = put_seconds(seconds, batch);
	end = put_apart(asks, batch, beats, numbers);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	add_generation(ret_call, batch);
	add(ret_call, BYTEA_ARRAY, names, seconds);
	add(ret_call, BYTEA_ARRAY, seconds, asks);
	add(ret_call, INT8_ARRAY, asks, end);
	return true;
}

static bool is_apart(const struct postgres_batch *batch)
{
	return batch->count > 0 && (batch->jobs[0].verb == REMOTE_BEAT ||
	                            batch->jobs[0].verb == REMOTE_CLAIM);
}

bool postgres_ask(const struct postgres_batch *batch, struct postgres_room *room,
                  struct postgres_call *ret_call)
{
	struct lends lends;

	gale_assert(batch->count <= REMOTE_BATCH_MOST);
	*batch->order = (struct postgres_order){ 0 };
	if (is_apart(batch))
		return ask_apart(batch, room, ret_call);
	if (!find_lends(batch, &lends))
		return ask_any(batch, room, ret_call);
	note_order(batch, &lends);
	return ask_lends(batch, &lends, room, ret_call);
}

/* ---- Nudges ---------------------------------------------------------------------- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns where the name ends; NULL: it is too long. */
static const char *read_name(const char *hex, uint64_t *ret_mark)
{
	uint8_t name[STORE_KEY_MAX];
	size_t count = 0;

	while (count < sizeof(name) && digit_of(hex[0]) >= 0 && digit_of(hex[1]) >= 0) {
		name[count++] = (uint8_t)(digit_of(hex[0]) << 4 | digit_of(hex[1]));
		hex += 2;
	}
	*ret_mark = store_mark(name, count);
	return *hex == ' ' ? hex : NULL;
}

bool postgres_read_nudge(const char *text, struct store_nudge *ret_nudge)
{
	struct group_nudge *is = &ret_nudge->is;
	const char *rest = read_name(text, &ret_nudge->mark);
	int end = 0;

	ret_nudge->bits = UINT64_MAX;
	return rest &&
	       sscanf(rest, " %1" SCNu64 " %7" SCNu64 " %16" SCNu64 "%n", &is->whom,
	              &is->slots, &is->weights, &end) == 3 &&
	       rest[end] == '\0' && is->whom <= (GROUP_GIVE | GROUP_TAKE) &&
	       is->slots <= GROUP_SLOTS_MAX;
}
