/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.c -- binary parameters, written in one pass; a result, believed bit by bit.
 *
 *     gale.run:    $1 wanted   $2 nonce   $3 generation   $4 keys   $5 ask   $6 vals
 *                  int4        int8       text            bytea[]   int8[]   int8[]
 *     gale.lend:   $5 numbers  $6 wants   $7 rests        $8 rule, $9 .. $15 too
 *     gale.lends:  the same for several rules             $8 rules, $9 ends
 *
 * ask holds where each job starts in it, counted from 1, and then the jobs; vals holds the
 * values of swaps, as numbers.  Lends from windows, one for each key, go a shorter way, in
 * the order of their keys: rules says what those that follow each other have in common,
 * the others what they have not.  schema.sql says which number is what.
 *
 * Invariants
 *
 *   K1  What is measured is what is written: a room is taken once for each batch.
 *   K2  Each job is answered, under the batch's nonce, with a code that can be meant for
 *       its verb, and a value of whole words.  Of two answers the later counts: the
 *       first was of a try that came to nothing.                             (law L13)
 */
#include "stores/postgres/wire.h"

#include <stdlib.h>
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

static uint8_t *put_big(uint8_t *at, uint64_t number, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, number >>= 8)
		at[i] = (uint8_t)number;
	return at + bytes;
}

static uint64_t get_big(const uint8_t *at, int bytes)
{
	uint64_t number = 0;

	for (int i = 0; i < bytes; i++)
		number = number << 8 | at[i];
	return number;
}

static uint8_t *put_little(uint8_t *at, uint64_t number)
{
	for (int i = 0; i < 8; i++, number >>= 8)
		at[i] = (uint8_t)number;
	return at + 8;
}

static uint64_t get_little(const uint8_t *at)
{
	uint64_t number = 0;

	for (int i = 7; i >= 0; i--)
		number = number << 8 | at[i];
	return number;
}

static uint8_t *put_array_head(uint8_t *at, Oid type, size_t count)
{
	at = put_big(at, 1, 4); /* dimension */
	at = put_big(at, 0, 4); /* nulls */
	at = put_big(at, type, 4);
	at = put_big(at, count, 4);
	return put_big(at, 1, 4); /* is the first index */
}

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
	return put_big(put_big(at, 8, 4), number, 8);
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
	memcpy(put_big(at, key->count, 4), key->bytes, key->count);
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

static void set(struct postgres_call *call, int which, Oid type, const void *from,
                const uint8_t *end)
{
	call->types[which] = type;
	call->values[which] = from;
	call->lengths[which] = (int)(end - (const uint8_t *)from);
	call->formats[which] = POSTGRES_BINARY;
}

/* The first four, which are those of any statement; the keys end there. */
static void set_first(struct postgres_call *call, const struct postgres_batch *batch,
                      const uint8_t *start, const uint8_t *keys, const uint8_t *end)
{
	const uint8_t *text = (const uint8_t *)batch->generation;

	set(call, 0, INT4, start, start + 4);
	set(call, 1, INT8, start + 4, keys);
	set(call, 2, TEXT, text, text + strlen(batch->generation));
	set(call, 3, BYTEA_ARRAY, keys, end);
}

/* Writes what comes before the keys. */
static uint8_t *put_first(uint8_t *at, const struct postgres_batch *batch)
{
	return put_big(put_big(at, POSTGRES_SCHEMA_VERSION, 4), batch->nonce, 8);
}

static bool ask_any(const struct postgres_batch *batch, struct postgres_room *room,
                    struct postgres_call *ret_call)
{
	struct measure sum = measure(batch);
	uint8_t *keys, *jobs, *vals, *end;

	if (!make_room(room, 4 + 8 + 3 * ARRAY_HEAD + sum.keys +
	                         (sum.numbers + sum.vals) * NUMBER))
		return false; /* K1 */
	keys = put_first(room->bytes, batch);
	jobs = put_keys(keys, batch);
	vals = put_jobs(jobs, batch, sum.numbers);
	end = put_vals(vals, batch, sum.vals);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	ret_call->text = "SELECT * FROM gale.run($1, $2, $3, $4, $5, $6)";
	ret_call->count = 6;
	set_first(ret_call, batch, room->bytes, keys, jobs);
	set(ret_call, 4, INT8_ARRAY, jobs, vals);
	set(ret_call, 5, INT8_ARRAY, vals, end);
	return true;
}

/* ---- Lends from windows ---------------------------------------------------------- */

#define RUNS_MOST (1 + REMOTE_BATCH_MOST / 4)
#define RULE_NUMBERS 11
#define TURNS_SLOWLY_US UINT64_C(100000) /* a statement is over before it turns */

/* Jobs of one rule, side by side. */
struct run {
	size_t from;
	size_t end;
	bool is_alike; /* no rests */
};

/* The jobs of a batch, by their keys. */
struct lends {
	const struct remote_job *jobs[REMOTE_BATCH_MOST];
	size_t count;
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

static int compare_jobs(const void *a, const void *b)
{
	const struct remote_job *const *one = a, *const *other = b;

	return compare_keys(&(*one)->key, &(*other)->key);
}

/* False if any is no lend from a window, or two are of one key. */
static bool sort_jobs(const struct postgres_batch *batch, struct lends *lends)
{
	lends->count = batch->count;
	for (size_t i = 0; i < batch->count; i++) {
		if (!is_simple(&batch->jobs[i]))
			return false;
		lends->jobs[i] = &batch->jobs[i];
	}
	qsort(lends->jobs, batch->count, sizeof(lends->jobs[0]), compare_jobs);
	for (size_t i = 1; i < batch->count; i++)
		if (compare_jobs(&lends->jobs[i - 1], &lends->jobs[i]) == 0)
			return false;
	return batch->count > 0;
}

static bool have_in_common(const struct remote_job *a, const struct remote_job *b)
{
	return a->not_before_us == b->not_before_us && a->ask.node == b->ask.node &&
	       (a->rule == b->rule ||
	        (a->rule->fingerprint == b->rule->fingerprint &&
	         memcmp(&a->rule->is, &b->rule->is, sizeof(a->rule->is)) == 0));
}

/* What counts only if not all that is wanted can be had. */
static uint64_t rest_of(const struct remote_job *job)
{
	return job->ask.least * 2 + job->ask.spent;
}

static void look_at_run(const struct lends *lends, struct run *run)
{
	const struct remote_job *const *jobs = lends->jobs;
	uint64_t rest = rest_of(jobs[run->from]);

	run->is_alike = true;
	for (size_t i = run->from; i < run->end; i++)
		run->is_alike &= rest_of(jobs[i]) == rest;
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
			if (!have_in_common(lends->jobs[from], lends->jobs[end]))
				break;
		*run = (struct run){ .from = from, .end = end };
		look_at_run(lends, run);
	}
	return true;
}

static bool find_lends(const struct postgres_batch *batch, struct lends *lends)
{
	return sort_jobs(batch, lends) && find_runs(lends);
}

static uint8_t *put_sorted_keys(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, BYTEA, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_key(at, &lends->jobs[i]->key);
	return at;
}

static uint8_t *put_asked(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, INT8, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_number(at, lends->jobs[i]->ask.number);
	return at;
}

static uint8_t *put_wants(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, INT8, lends->count);
	for (size_t i = 0; i < lends->count; i++)
		at = put_number(at, lends->jobs[i]->ask.want);
	return at;
}

static uint8_t *put_rests(uint8_t *at, const struct lends *lends)
{
	bool are_alike = true;

	for (size_t i = 0; i < lends->run_count; i++)
		are_alike &= lends->runs[i].is_alike;
	at = put_array_head(at, INT8, are_alike ? 0 : lends->count);
	for (size_t i = 0; i < lends->count && !are_alike; i++)
		at = put_number(at, rest_of(lends->jobs[i]));
	return at;
}

static void list_run(const struct lends *lends, const struct run *run, uint64_t now,
                     uint64_t out[NUMBERS_MOST])
{
	const struct remote_job *job = lends->jobs[run->from];

	memset(out, 0, NUMBERS_MOST * sizeof(uint64_t));
	list_rule(job->rule, now, out);
	out[1] = (uint64_t)job->rule->is.kind;
	out[2] = job->rule->fingerprint;
	out[3] = job->not_before_us;
	out[10] = job->ask.node;
	out[11] = rest_of(job);
}

static uint8_t *put_rules(uint8_t *at, const struct lends *lends, uint64_t now)
{
	uint64_t out[NUMBERS_MOST];

	at = put_array_head(at, INT8, lends->run_count * RULE_NUMBERS);
	for (size_t r = 0; r < lends->run_count; r++) {
		list_run(lends, &lends->runs[r], now, out);
		for (size_t i = 1; i <= RULE_NUMBERS; i++)
			at = put_number(at, out[i]);
	}
	return at;
}

static uint8_t *put_ends(uint8_t *at, const struct lends *lends)
{
	at = put_array_head(at, INT8, lends->run_count);
	for (size_t r = 0; r < lends->run_count; r++)
		at = put_number(at, lends->runs[r].end);
	return at;
}

/* Of the value of a window, two words. */
static uint64_t head_of(const struct rule *rule)
{
	return UINT64_C(2) << 32 | (uint64_t)rule->is.kind << 8 | 1;
}

/* $9 to $15, each 8 bytes: what is looked at first. */
static uint8_t *put_rule(uint8_t *at, const struct lends *lends,
                         struct postgres_call *call)
{
	static const int which[] = { 2, 3, 4, 5, 10 };
	uint64_t out[NUMBERS_MOST];

	list_run(lends, &lends->runs[0], 0, out);
	set(call, 8, INT8, at, put_big(at, head_of(lends->jobs[0]->rule), 8));
	for (int i = 0; i < 5; i++) {
		at += 8;
		set(call, 9 + i, INT8, at, put_big(at, out[which[i]], 8));
	}
	at += 8;
	set(call, 14, INT4, at, put_big(at, 0, 4));
	return at + 4;
}

static size_t bytes_of_lends(const struct lends *lends)
{
	size_t sum = 4 + 8 + 6 * ARRAY_HEAD + 6 * 8 + 4 + lends->count * 3 * NUMBER +
	             lends->run_count * (RULE_NUMBERS + 1) * NUMBER;

	for (size_t i = 0; i < lends->count; i++)
		sum += 4 + lends->jobs[i]->key.count;
	return sum;
}

static uint8_t *put_last(uint8_t *at, const struct lends *lends,
                         struct postgres_call *call)
{
	uint8_t *end = put_ends(at, lends);

	if (lends->run_count == 1) {
		call->text =
		    "SELECT * FROM gale.lend($1, $2, $3, $4, $5, $6, $7, $8, $9,"
		    " $10, $11, $12, $13, $14, $15)";
		call->count = 15;
		return put_rule(at, lends, call);
	}
	call->text = "SELECT * FROM gale.lends($1, $2, $3, $4, $5, $6, $7, $8, $9)";
	call->count = 9;
	set(call, 8, INT8_ARRAY, at, end);
	return end;
}

static bool ask_lends(const struct postgres_batch *batch, const struct lends *lends,
                      struct postgres_room *room, struct postgres_call *ret_call)
{
	uint8_t *part[6], *end;

	if (!make_room(room, bytes_of_lends(lends)))
		return false; /* K1 */
	part[0] = put_first(room->bytes, batch);
	part[1] = put_sorted_keys(part[0], lends);
	part[2] = put_asked(part[1], lends);
	part[3] = put_wants(part[2], lends);
	part[4] = put_rests(part[3], lends);
	part[5] = put_rules(part[4], lends, batch->now_us);
	set_first(ret_call, batch, room->bytes, part[0], part[1]);
	for (int i = 1; i < 5; i++)
		set(ret_call, 3 + i, INT8_ARRAY, part[i], part[i + 1]);
	end = put_last(part[5], lends, ret_call);
	gale_assert((size_t)(end - room->bytes) <= room->size);
	return true;
}

bool postgres_ask(const struct postgres_batch *batch, struct postgres_room *room,
                  struct postgres_call *ret_call)
{
	struct lends lends;

	gale_assert(batch->count <= REMOTE_BATCH_MOST);
	if (find_lends(batch, &lends))
		return ask_lends(batch, &lends, room, ret_call);
	return ask_any(batch, room, ret_call);
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

/* JOB is a job's number and its code.  Of job 0: A the nonce, B the time of what follows,
 * WORDS where the window of leases that follow starts, OTHER the generation if that is
 * another one.  Of others: A and B the head and the fingerprint of what was there, WORDS its
 * words; of LENT what is used of the window and what is out, WORDS the rows behind the
 * first. */
enum column {
	JOB,
	A,
	B,
	WORDS,
	OTHER,
	COLUMNS,
};

static const Oid column_types[COLUMNS] = { INT4, INT8, INT8, INT8_ARRAY, TEXT };

#define LENT (REMOTE_GARBLED + 1)
#define CODE_BITS 7 /* a code stands above so many of a job's number */

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

static size_t length_of(const PGresult *result, int row, enum column column)
{
	if (PQgetisnull(result, row, (int)column))
		return 0;
	return (size_t)PQgetlength(result, row, (int)column);
}

static const uint8_t *bytes_of(const PGresult *result, int row, enum column column)
{
	return (const uint8_t *)PQgetvalue(result, row, (int)column);
}

/* A number of 4 or 8 bytes, at most so large. */
static bool number_of(const PGresult *result, int row, enum column column,
                      uint64_t most, uint64_t *ret_number)
{
	int bytes = column_types[column] == INT8 ? 8 : 4;
	uint64_t number;

	if (length_of(result, row, column) != (size_t)bytes)
		return false;
	number = get_big(bytes_of(result, row, column), bytes);
	if (number > most)
		return false;
	*ret_number = number;
	return true;
}

/* A row of job 0: what is it of, and from when? */
static bool is_ours(const PGresult *result, int row, const struct postgres_batch *batch,
                    uint64_t *ret_now)
{
	uint64_t nonce;

	return number_of(result, row, A, UINT64_MAX, &nonce) && nonce == batch->nonce &&
	       number_of(result, row, B, INSTANT_MAX_US, ret_now) && *ret_now > 0;
}

static enum postgres_result read_generation(const PGresult *result,
                                            char ret[REMOTE_GENERATION_BYTES + 1])
{
	int last = PQntuples(result) - 1;
	size_t length = length_of(result, last, OTHER);
	const uint8_t *text = bytes_of(result, last, OTHER);

	if (length == 0 || length > REMOTE_GENERATION_BYTES || memchr(text, 0, length))
		return POSTGRES_WRONG;
	memcpy(ret, text, length);
	ret[length] = 0;
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

/* How many words the array has, if it is one of that many numbers. */
static bool count_words(const PGresult *result, int row, size_t *ret_count)
{
	size_t length = length_of(result, row, WORDS);
	const uint8_t *at = bytes_of(result, row, WORDS);

	if (length < ARRAY_HEAD || get_big(at, 4) != 1 || get_big(at + 4, 4) != 0 ||
	    get_big(at + 8, 4) != INT8)
		return false;
	*ret_count = get_big(at + 12, 4);
	return length == ARRAY_HEAD + *ret_count * NUMBER;
}

/* Puts the array's words there, if it is one. */
static bool read_words(const PGresult *result, int row, uint8_t **to)
{
	const uint8_t *from = bytes_of(result, row, WORDS) + ARRAY_HEAD;
	size_t count;

	if (!count_words(result, row, &count))
		return false;
	for (size_t i = 0; i < count; i++, from += NUMBER) {
		if (get_big(from, 4) != 8)
			return false;
		*to = put_little(*to, get_big(from + 4, 8));
	}
	return true;
}

/* The value as it was, put to where there is place for it; no bytes if none. */
static bool read_before(const PGresult *result, int row, uint8_t **to)
{
	uint64_t head, fingerprint;

	if (PQgetisnull(result, row, WORDS))
		return true;
	if (!number_of(result, row, A, UINT64_MAX, &head) ||
	    !number_of(result, row, B, UINT64_MAX, &fingerprint))
		return false;
	*to = put_little(put_little(*to, head), fingerprint);
	return read_words(result, row, to);
}

/* What a batch's result is read into. */
struct reader {
	const struct postgres_batch *batch;
	struct remote_told *told;
	struct lends lends;
	bool is_lends;
	uint64_t now; /* of the rows that follow; 0: none was told */
	uint64_t
	    start;   /* of the window that they are lent from; INSTANT_MAX_US: none */
	size_t left; /* jobs of which nothing has been told */
	uint8_t *at;
};

/* The value as the lend has left it, which says the same of its number (lease.h, D2). */
static bool read_lent(struct reader *reader, const PGresult *result, int row,
                      const struct remote_job *job)
{
	uint64_t used, out;
	uint8_t *at = reader->at;

	if (reader->start == INSTANT_MAX_US ||
	    !number_of(result, row, A, GALE_UNITS_MAX, &used) ||
	    !number_of(result, row, B, GALE_UNITS_MAX, &out))
		return false;
	at = put_little(put_little(at, head_of(job->rule)), job->rule->fingerprint);
	at = put_little(put_little(at, reader->start), used);
	at = put_little(put_little(at, job->ask.node), job->ask.number);
	at = put_little(put_little(at, job->ask.want), out);
	reader->at = put_little(put_little(at, reader->start), 0);
	return PQgetisnull(result, row, WORDS) || read_words(result, row, &reader->at);
}

static const struct remote_job *job_of(const struct reader *reader, uint64_t number)
{
	return reader->is_lends ? reader->lends.jobs[number - 1]
	                        : &reader->batch->jobs[number - 1];
}

static enum remote_code read_value(struct reader *reader, const PGresult *result,
                                   int row, const struct remote_job *job, uint64_t code,
                                   struct remote_bytes *ret_before)
{
	uint8_t *start = reader->at;
	bool good = code == LENT ? read_lent(reader, result, row, job)
	                         : read_before(result, row, &reader->at);

	*ret_before = (struct remote_bytes){ 0 };
	if (!good)
		return REMOTE_GARBLED; /* whoever wrote that, it is no value */
	if (reader->at > start)
		*ret_before =
		    (struct remote_bytes){ start, (size_t)(reader->at - start) };
	return code == LENT ? REMOTE_DONE : (enum remote_code)code;
}

static bool read_job(struct reader *reader, const PGresult *result, int row,
                     uint64_t number, uint64_t code)
{
	const struct remote_job *job = job_of(reader, number);
	struct remote_told *told = &reader->told[job - reader->batch->jobs];

	if (reader->now == 0 ||
	    (code == LENT ? !reader->is_lends : !is_possible(job, code)))
		return false;
	reader->left -= told->now_us == 0;
	told->now_us = reader->now;
	told->code = read_value(reader, result, row, job, code, &told->before);
	return told->code != REMOTE_GARBLED || is_possible(job, REMOTE_GARBLED);
}

/* A row of job 0: of what those that follow are. */
static bool read_first(struct reader *reader, const PGresult *result, int row)
{
	const uint8_t *words = bytes_of(result, row, WORDS) + ARRAY_HEAD;
	size_t count;

	reader->start = INSTANT_MAX_US;
	if (!PQgetisnull(result, row, WORDS) && count_words(result, row, &count) &&
	    count > 0)
		reader->start = get_big(words + 4, 8);
	return reader->start <= INSTANT_MAX_US &&
	       is_ours(result, row, reader->batch, &reader->now);
}

static bool read_row(struct reader *reader, const PGresult *result, int row)
{
	uint64_t job, number;

	if (PQgetisnull(result, row, JOB))
		return true; /* it has only been made ready */
	if (!number_of(result, row, JOB, (LENT + 1) << CODE_BITS, &job))
		return false;
	number = job & ((1 << CODE_BITS) - 1);
	if (job == 0)
		return read_first(reader, result, row);
	return number >= 1 && number <= reader->batch->count &&
	       read_job(reader, result, row, number, job >> CODE_BITS);
}

/* Bytes in an array's words are fewer than what they came in. */
static size_t room_for(const PGresult *result)
{
	size_t sum = 0;

	for (int row = 0; row < PQntuples(result); row++)
		sum += 10 * 8 + length_of(result, row, WORDS);
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
	reader.is_lends = find_lends(batch, &reader.lends);
	reader.at = room->bytes;
	memset(told, 0, batch->count * sizeof(*told));
	for (int row = 0; row < PQntuples(result); row++)
		if (!read_row(&reader, result, row))
			return POSTGRES_WRONG;
	return reader.left == 0 && reader.now > 0 ? POSTGRES_TOLD : POSTGRES_WRONG;
}

static bool is_other_generation(const PGresult *result,
                                const struct postgres_batch *batch)
{
	int last = PQntuples(result) - 1;
	uint64_t now, job;

	return last >= 0 && is_ours(result, last, batch, &now) &&
	       number_of(result, last, JOB, 0, &job) &&
	       !PQgetisnull(result, last, OTHER);
}

enum postgres_result postgres_told(const PGresult *result,
                                   const struct postgres_batch *batch,
                                   struct postgres_room *room,
                                   struct remote_told *ret_told,
                                   char ret_generation[REMOTE_GENERATION_BYTES + 1])
{
	if (!result)
		return POSTGRES_NO_MEMORY;
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		return postgres_error(PQresultErrorField(result, PG_DIAG_SQLSTATE));
	if (PQresultStatus(result) != PGRES_TUPLES_OK || !has_columns(result))
		return POSTGRES_WRONG;
	if (is_other_generation(result, batch))
		return read_generation(result, ret_generation);
	return read_rows(result, batch, room, ret_told);
}
