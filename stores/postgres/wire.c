/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.c -- binary parameters, written in one pass; a result, believed bit by bit.
 *
 *     gale.run:    wanted, nonce, generation, keys, ask, vals
 *     gale.lends:  the same, but for ask and vals: asks, base, rests, rules, ends
 *     gale.lend:   wanted, generation, keys, asks, base, rule, and four numbers of it
 *
 * ask holds where each job starts in it, counted from 1, and then the jobs; vals holds the
 * values of swaps, as numbers.  Lends from windows, one for each key, go a shorter way, in
 * the order of their keys: a rule is what those that follow each other have in common,
 * the others what they have not.  schema.sql says which number is what.
 *
 * Invariants
 *
 *   K1  What is measured is what is written: a room is taken once for each batch.
 *   K2  Each job is answered, under the batch's nonce, with a code that can be meant for
 *       its verb, and a value of whole words.  Of two answers the later counts: the
 *       first was of a try that came to nothing.                             (law L13)
 */
#define _GNU_SOURCE
#include "stores/postgres/wire.h"

#include <endian.h>
#include <limits.h>
#include <string.h>

#include "engine/calendar.h"
#include "engine/check.h"
#include "runtime/memory.h"

#define INT4 23
#define INT8 20
#define TEXT 25
#define BYTEA 17
#define BYTEA_ARRAY 1001
#define INT8_ARRAY 1016

enum statement {
	ASK_RUN,
	ASK_LEND,
	ASK_LENDS,
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
};

#define ARRAY_HEAD 20 /* dimensions, nulls, type, count, first index */
#define NUMBER 12     /* of an int8[]: its length and itself */

/* ---- Rooms ----------------------------------------------------------------------- */

void postgres_room_close(struct postgres_room *room)
{
	if (room->bytes)
		memory_give(room->allocator, room->bytes, room->size);
	room->bytes = NULL;
	room->size = 0;
}

/* What was in it is gone. */
static bool make_room(struct postgres_room *room, size_t size)
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

/* ---- Numbers --------------------------------------------------------------------- */

static uint8_t *put4(uint8_t *at, size_t number)
{
	uint32_t big = htobe32((uint32_t)number);

	memcpy(at, &big, sizeof(big));
	return at + sizeof(big);
}

static uint8_t *put8(uint8_t *at, uint64_t number)
{
	uint64_t big = htobe64(number);

	memcpy(at, &big, sizeof(big));
	return at + sizeof(big);
}

static uint32_t get4(const uint8_t *at)
{
	uint32_t big;

	memcpy(&big, at, sizeof(big));
	return be32toh(big);
}

static uint64_t get8(const uint8_t *at)
{
	uint64_t big;

	memcpy(&big, at, sizeof(big));
	return be64toh(big);
}

static uint8_t *put_little(uint8_t *at, uint64_t number)
{
	uint64_t little = htole64(number);

	memcpy(at, &little, sizeof(little));
	return at + sizeof(little);
}

static uint64_t get_little(const uint8_t *at)
{
	uint64_t little;

	memcpy(&little, at, sizeof(little));
	return le64toh(little);
}

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

#define NUMBERS_MOST 15

static bool is_meter(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_GCRA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUCKET;
}

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
	return 15;
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

static bool has_patience(enum remote_verb verb)
{
	return verb == REMOTE_STEP || verb == REMOTE_LEND || verb == REMOTE_SWAP;
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
	uint8_t *end = put4(at, POSTGRES_SCHEMA_VERSION);

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

	if (!make_room(room, 4 + 8 + 3 * ARRAY_HEAD + sum.keys +
	                         (sum.numbers + sum.vals) * NUMBER))
		return false; /* K1 */
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
#define TURNS_SLOWLY_US UINT64_C(100000) /* a statement is over before it turns */

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

/* What counts only if not all that is wanted can be had. */
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

/* False if there is one for which an ask of asks has too few bits. */
static bool find_base(struct lends *lends)
{
	uint64_t most = 0, wanted = 0;

	lends->base = UINT64_MAX;
	for (size_t i = 0; i < lends->count; i++) {
		const struct lease_ask *ask = &lends->jobs[i].job->ask;

		lends->base = ask->number < lends->base ? ask->number : lends->base;
		most = ask->number > most ? ask->number : most;
		wanted |= ask->want;
	}
	return most - lends->base < UINT64_C(1) << (PLACE_BIT - NUMBER_BIT) &&
	       wanted < UINT64_C(1) << NUMBER_BIT;
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
	const struct lease_ask *ask = &lends->jobs[i].job->ask;

	return (i + 1) << PLACE_BIT | (ask->number - lends->base) << NUMBER_BIT |
	       ask->want;
}

static uint8_t *put_asks(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, INT8, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_number(at, ask_of(lends, i));
	return at;
}

/* How many there are to put. */
static size_t count_rests(const struct lends *lends)
{
	bool are_alike = true;

	for (size_t i = 0; i < lends->run_count; i++)
		are_alike &= lends->runs[i].is_alike;
	return are_alike ? 0 : lends->count;
}

static uint8_t *put_rests(uint8_t *at, const struct lends *lends, size_t count)
{
	for (size_t i = 0; i < count; i++)
		at = put_number(at, rest_of(lends->jobs[i].job));
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

/* Of a value that can be stepped there, as many words as such a rule has. */
static uint64_t head_of(const struct rule *rule)
{
	uint64_t words = is_meter(rule) ? 3 : 2;

	return words << 32 | (uint64_t)rule->is.kind << 8 | 1;
}

static size_t bytes_of_lends(const struct lends *lends)
{
	size_t sum = 4 + 5 * ARRAY_HEAD + 5 * 8 + (lends->count * 2 + 1) * NUMBER +
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

	begin(call, ASK_LEND);
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

	if (!make_room(room, bytes_of_lends(lends)))
		return false; /* K1 */
	end = lends->run_count == 1 ? ask_run(ret_call, room->bytes, batch, lends)
	                            : ask_runs(ret_call, room->bytes, batch, lends);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	return true;
}

static void note_order(const struct postgres_batch *batch, const struct lends *lends)
{
	batch->order->is_short = true;
	for (size_t i = 0; i < lends->count; i++)
		batch->order->jobs[i] = (uint8_t)(lends->jobs[i].job - batch->jobs);
}

bool postgres_ask(const struct postgres_batch *batch, struct postgres_room *room,
                  struct postgres_call *ret_call)
{
	struct lends lends;

	gale_assert(batch->count <= REMOTE_BATCH_MOST);
	batch->order->is_short = false;
	if (!find_lends(batch, &lends))
		return ask_any(batch, room, ret_call);
	note_order(batch, &lends);
	return ask_lends(batch, &lends, room, ret_call);
}

/* ---- Errors ---------------------------------------------------------------------- */

static const struct {
	const char *begins;
	enum postgres_result means;
} errors[] = {
	{ "GL001", POSTGRES_OLDER },
	{ "GL002", POSTGRES_NEWER },
	{ "3F000", POSTGRES_MISSING }, /* no such schema */
	{ "42883", POSTGRES_MISSING }, /* no such function */
	{ "42P01", POSTGRES_MISSING }, /* no such table */
	{ "25006", POSTGRES_READ_ONLY },
	{ "26000", POSTGRES_UNNAMED },
	{ "55P03", POSTGRES_TIMED_OUT }, /* a lock */
	{ "57014", POSTGRES_TIMED_OUT }, /* cancelled: the statement took too long */
	{ "40001", POSTGRES_DEADLOCK },  /* not in order with others */
	{ "40P01", POSTGRES_DEADLOCK },
	{ "40", POSTGRES_LOST },
	{ "53", POSTGRES_LATER },   /* connections, memory, disk */
	{ "57P", POSTGRES_LATER },  /* shut down, crashed, cannot connect now */
	{ "08", POSTGRES_LOST },    /* the connection, or a pool's to the server */
	{ "28", POSTGRES_REFUSED }, /* who is it? */
	{ "42501", POSTGRES_REFUSED },
	{ "3D000", POSTGRES_REFUSED }, /* no such database */
};

enum postgres_result postgres_error(const char *sqlstate)
{
	if (!sqlstate)
		return POSTGRES_LOST;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strncmp(sqlstate, errors[i].begins, strlen(errors[i].begins)) == 0)
			return errors[i].means;
	return POSTGRES_FAILED;
}

/* ---- Answers --------------------------------------------------------------------- */

/* JOB is a job's number, its code, and of REMOTE_LENT what is used of the window.  Of job 0 WORDS are
 * the nonce, the time of what follows, and where the window of leases that follow starts; of
 * OTHER the letters of the generation instead.  Of others: what was there, or the rows behind
 * the first of what was lent from. */
enum column {
	JOB,
	WORDS,
	COLUMNS,
};

static const Oid column_types[COLUMNS] = { INT8, INT8_ARRAY };

#define CODE_BITS 7 /* a code stands above so many of a job's number */
#define USED_BITS 10
#define OTHER (1 << CODE_BITS) /* of job 0 */
#define CODES (1 << (USED_BITS - CODE_BITS))

static bool has_columns(const PGresult *result)
{
	if (PQnfields(result) != COLUMNS)
		return false;
	for (int i = 0; i < COLUMNS; i++)
		if (PQftype(result, i) != column_types[i] ||
		    PQfformat(result, i) != POSTGRES_BINARY)
			return false;
	return true;
}

static bool read_number(const PGresult *result, int row, uint64_t *ret_number)
{
	if (PQgetlength(result, row, JOB) != 8)
		return false;
	*ret_number = get8((const uint8_t *)PQgetvalue(result, row, JOB));
	return true;
}

struct words {
	const uint8_t *at; /* the first one's length */
	size_t count;
};

static uint64_t word_of(const struct words *words, size_t i)
{
	return get8(words->at + i * NUMBER + 4);
}

/* If it is an array of numbers, and nothing else. */
static bool read_words(const PGresult *result, int row, struct words *ret_words)
{
	const uint8_t *at = (const uint8_t *)PQgetvalue(result, row, WORDS);
	size_t length = (size_t)PQgetlength(result, row, WORDS), count;

	if (length < ARRAY_HEAD || get4(at) != 1 || get4(at + 4) != 0 ||
	    get4(at + 8) != INT8)
		return false;
	count = get4(at + 12);
	at += ARRAY_HEAD;
	if (length != ARRAY_HEAD + count * NUMBER)
		return false;
	for (size_t i = 0; i < count; i++)
		if (get4(at + i * NUMBER) != 8)
			return false;
	*ret_words = (struct words){ at, count };
	return true;
}

/* A row of job 0: what is it of, and from when? */
static bool read_first(const PGresult *result, int row,
                       const struct postgres_batch *batch, struct words *ret_words)
{
	return read_words(result, row, ret_words) && ret_words->count >= 2 &&
	       word_of(ret_words, 0) == batch->nonce && word_of(ret_words, 1) > 0 &&
	       word_of(ret_words, 1) <= INSTANT_MAX_US;
}

static enum postgres_result read_generation(const struct words *words,
                                            char ret[REMOTE_GENERATION_BYTES + 1])
{
	char text[REMOTE_GENERATION_BYTES + 1] = "";
	size_t length = words->count - 2;

	if (length == 0 || length > REMOTE_GENERATION_BYTES)
		return POSTGRES_WRONG;
	for (size_t i = 0; i < length; i++) {
		uint64_t letter = word_of(words, i + 2);

		if (letter == 0 || letter > SCHAR_MAX)
			return POSTGRES_WRONG;
		text[i] = (char)letter;
	}
	memcpy(ret, text, sizeof(text));
	return POSTGRES_OTHER_GENERATION;
}

/* Can the code be meant?  A server that says otherwise is not ours. */
static bool is_possible(const struct remote_job *job, uint64_t code)
{
	switch (code) {
	case REMOTE_MOVED:
		return job->verb == REMOTE_SWAP;
	case REMOTE_WAITS:
		return has_patience(job->verb);
	case REMOTE_CALENDAR:
		return job->rule->is.kind == GALE_RULE_QUOTA &&
		       job->verb <= REMOTE_BACK;
	case REMOTE_CHANGED:
	case REMOTE_GARBLED:
		return job->verb != REMOTE_DROP;
	default:
		return code == REMOTE_DONE;
	}
}

/* What a batch's result is read into. */
struct reader {
	const struct postgres_batch *batch;
	struct remote_told *told;
	uint64_t now; /* of the rows that follow; 0: none was told */
	uint64_t
	    start;   /* of the window that they are lent from; INSTANT_MAX_US: none */
	size_t left; /* jobs of which nothing has been told */
	uint8_t *at;
};

static uint8_t *put_head(uint8_t *at, const struct rule *rule)
{
	return put_little(put_little(at, head_of(rule)), rule->fingerprint);
}

/* The array's words; false if it is none. */
static bool copy_words(struct reader *reader, const PGresult *result, int row)
{
	struct words words;

	if (!read_words(result, row, &words))
		return false;
	for (size_t i = 0; i < words.count; i++)
		reader->at = put_little(reader->at, word_of(&words, i));
	return true;
}

/* With rows of others it is a value. */
static bool read_lent(struct reader *reader, const PGresult *result, int row,
                      const struct remote_job *job, struct remote_told *told)
{
	if (reader->start == INSTANT_MAX_US || told->lent.used > GALE_UNITS_MAX)
		return false;
	told->lent.start_us = reader->start;
	if (PQgetisnull(result, row, WORDS))
		return true;
	told->code = REMOTE_DONE;
	if (!window_valid(job->rule, &told->lent))
		return false;
	value_encode_lent(job->rule, &job->ask, &told->lent, reader->at);
	reader->at += VALUE_LENT_BYTES;
	return copy_words(reader, result, row);
}

/* The value as it was; no bytes if none. */
static bool read_before(struct reader *reader, const PGresult *result, int row,
                        const struct remote_job *job)
{
	if (PQgetisnull(result, row, WORDS))
		return true;
	if (job->verb <= REMOTE_BACK)
		reader->at = put_head(reader->at, job->rule);
	return copy_words(reader, result, row);
}

static bool read_value(struct reader *reader, const PGresult *result, int row,
                       const struct remote_job *job, struct remote_told *told)
{
	uint8_t *start = reader->at;
	bool good = told->code == REMOTE_LENT
	                ? read_lent(reader, result, row, job, told)
	                : read_before(reader, result, row, job);

	if (!good) {
		told->code = REMOTE_GARBLED; /* whoever wrote that, it is no value */
		reader->at = start;
		return is_possible(job, REMOTE_GARBLED);
	}
	told->before.bytes = start;
	told->before.count = (size_t)(reader->at - start);
	return true;
}

static bool is_ours(const struct reader *reader, const struct remote_job *job,
                    uint64_t code, uint64_t coded)
{
	if (code == REMOTE_LENT)
		return reader->batch->order->is_short;
	return coded >> USED_BITS == 0 && is_possible(job, code);
}

static bool read_job(struct reader *reader, const PGresult *result, int row,
                     size_t number, uint64_t coded)
{
	const struct postgres_batch *batch = reader->batch;
	size_t which =
	    batch->order->is_short ? batch->order->jobs[number - 1] : number - 1;
	uint64_t code = coded >> CODE_BITS & (CODES - 1);
	struct remote_told *told = &reader->told[which];

	if (reader->now == 0 || !is_ours(reader, &batch->jobs[which], code, coded))
		return false;
	reader->left -= told->now_us == 0;
	*told = (struct remote_told){ .code = (enum remote_code)code,
		                      .now_us = reader->now,
		                      .lent = { .used = coded >> USED_BITS } };
	return read_value(reader, result, row, &batch->jobs[which], told);
}

static bool read_time(struct reader *reader, const PGresult *result, int row)
{
	struct words words;

	if (!read_first(result, row, reader->batch, &words))
		return false;
	reader->now = word_of(&words, 1);
	reader->start = words.count > 2 ? word_of(&words, 2) : INSTANT_MAX_US;
	return reader->start <= INSTANT_MAX_US;
}

static bool read_row(struct reader *reader, const PGresult *result, int row)
{
	uint64_t coded;
	size_t number;

	if (PQgetisnull(result, row, JOB))
		return true; /* it has only been made ready */
	if (!read_number(result, row, &coded))
		return false;
	if (coded == 0)
		return read_time(reader, result, row);
	number = coded & ((1 << CODE_BITS) - 1);
	return number >= 1 && number <= reader->batch->count &&
	       read_job(reader, result, row, number, coded);
}

/* Bytes in an array's words are fewer than what they came in. */
static size_t room_for(const PGresult *result)
{
	size_t sum = 0;

	for (int row = 0; row < PQntuples(result); row++)
		sum += 10 * 8 + (size_t)PQgetlength(result, row, WORDS);
	return sum;
}

static enum postgres_result read_rows(const PGresult *result,
                                      const struct postgres_batch *batch,
                                      struct postgres_room *room,
                                      struct remote_told *told)
{
	struct reader reader = { .batch = batch,
		                 .told = told,
		                 .start = INSTANT_MAX_US,
		                 .left = batch->count };

	if (!make_room(room, room_for(result)))
		return POSTGRES_NO_MEMORY;
	reader.at = room->bytes;
	memset(told, 0, batch->count * sizeof(*told));
	for (int row = 0; row < PQntuples(result); row++)
		if (!read_row(&reader, result, row))
			return POSTGRES_WRONG;
	return reader.left == 0 && reader.now > 0 ? POSTGRES_TOLD : POSTGRES_WRONG;
}

/* The last row may say that it is another. */
static bool is_other_generation(const PGresult *result,
                                const struct postgres_batch *batch,
                                struct words *ret_words)
{
	int last = PQntuples(result) - 1;
	uint64_t coded;

	return last >= 0 && read_number(result, last, &coded) && coded == OTHER &&
	       read_first(result, last, batch, ret_words);
}

enum postgres_result postgres_told(const PGresult *result,
                                   const struct postgres_batch *batch,
                                   struct postgres_room *room,
                                   struct remote_told *ret_told,
                                   char ret_generation[REMOTE_GENERATION_BYTES + 1])
{
	struct words words;

	if (!result)
		return POSTGRES_NO_MEMORY;
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		return postgres_error(PQresultErrorField(result, PG_DIAG_SQLSTATE));
	if (PQresultStatus(result) != PGRES_TUPLES_OK || !has_columns(result))
		return POSTGRES_WRONG;
	if (is_other_generation(result, batch, &words))
		return read_generation(&words, ret_generation);
	return read_rows(result, batch, room, ret_told);
}
