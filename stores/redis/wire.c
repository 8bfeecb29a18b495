/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.c -- jobs as the arguments of step.lua, of beat.lua, and of claim.lua.
 *
 * A job is one argument: a letter, then numbers as doubles (step.lua reads all of them
 * at once, with no text to be parsed); lends like the one before are one argument together:
 *
 *     s  step of a window    b  step of a budget       S  step of a meter
 *     l  lend from a window  g  give back to a window  L, G  the same, of a meter
 *     a  the same as l, with units ahead: how many are wanted, how many it had, and of which window
 *     m  lends from windows to the node of the lend before, by its rule, of keys that no
 *        job before is of: the number of each, then what each wants; the least and
 *        whether all is spent are the lend's
 *     n  the same, and then the least of each, and whether all is spent
 *     r  read                x  swap                   d  drop
 *
 * A beat is three arguments: its numbers, as doubles, the node's name, and the channel of its
 * group's nudges.
 *
 * A claim is two: its numbers, as doubles, and the tenant's name.
 *
 * Room for the whole command is made first; what is written then cannot fail.
 */
#define _GNU_SOURCE
#include "stores/redis/wire.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "engine/calendar.h"
#include "engine/check.h"
#include "runtime/memory.h"

#define FIRST_ROOM 4096
#define LENGTH_MOST 24 /* $, digits, two line ends */
#define PACKED_MOST 192
#define WINDOW_NUMBERS 11          /* of a job: its rule's, its verb's, or nothing */
#define TOO_LONG_US INSTANT_MAX_US /* a span that no meter has room for */

/* ---- Texts ----------------------------------------------------------------------- */

void redis_text_free(struct redis_text *text)
{
	memory_give(text->allocator, text->bytes, text->room);
	*text = (struct redis_text){ .allocator = text->allocator };
}

void redis_text_cut(struct redis_text *text, size_t count)
{
	gale_assert(count <= text->count);
	text->count -= count;
	if (text->count > 0 && count > 0)
		memmove(text->bytes, text->bytes + count, text->count);
}

static bool make_room(struct redis_text *text, size_t more)
{
	size_t room = text->room > 0 ? text->room : FIRST_ROOM;
	uint8_t *bytes;

	if (more <= text->room - text->count)
		return true;
	while (room - text->count < more)
		room *= 2;
	bytes = memory_take(text->allocator, room);
	if (!bytes)
		return false;
	if (text->count > 0)
		memcpy(bytes, text->bytes, text->count);
	memory_give(text->allocator, text->bytes, text->room);
	text->bytes = bytes;
	text->room = room;
	return true;
}

static void put(struct redis_text *text, const void *bytes, size_t count)
{
	gale_assert(count <= text->room - text->count);
	if (count > 0)
		memcpy(text->bytes + text->count, bytes, count);
	text->count += count;
}

/* By hand: each word has its length before it, and snprintf was half of what a call of one
 * job takes to write and to read. */
size_t redis_decimal(char *out, uint64_t number)
{
	char digits[REDIS_DECIMAL_MOST];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	memcpy(out, digits + first, sizeof(digits) - first);
	return sizeof(digits) - first;
}

static void put_length(struct redis_text *text, char kind, size_t count)
{
	char line[LENGTH_MOST] = { kind };
	size_t end = 1 + redis_decimal(line + 1, count);

	memcpy(line + end, "\r\n", 2);
	put(text, line, end + 2);
}

static void put_word(struct redis_text *text, const void *bytes, size_t count)
{
	put_length(text, '$', count);
	put(text, bytes, count);
	put(text, "\r\n", 2);
}

static void put_number(struct redis_text *text, uint64_t number)
{
	char word[REDIS_DECIMAL_MOST];

	put_word(text, word, redis_decimal(word, number));
}

bool redis_put_words(struct redis_text *text, const struct remote_bytes *words,
                     size_t count)
{
	size_t most = LENGTH_MOST;

	for (size_t i = 0; i < count; i++)
		most += words[i].count + LENGTH_MOST + 2;
	if (!make_room(text, most))
		return false;
	put_length(text, '*', count);
	for (size_t i = 0; i < count; i++)
		put_word(text, words[i].bytes, words[i].count);
	return true;
}

static struct remote_bytes word_of(const char *text, size_t count)
{
	return (struct remote_bytes){ (const uint8_t *)text, count };
}

bool redis_put_script(struct redis_text *text, const struct redis_script *script)
{
	const struct remote_bytes words[] = {
		word_of("SCRIPT", 6),
		word_of("LOAD", 4),
		word_of(script->text, script->count),
	};

	return redis_put_words(text, words, 3);
}

/* ---- Keys ------------------------------------------------------------------------ */

/* <prefix>{bNN} */
static size_t key_head(uint8_t *out, const char *prefix, uint8_t bucket)
{
	static const char digits[] = "0123456789abcdef";
	size_t count = strlen(prefix);
	const char tag[] = { '{', 'b', digits[bucket >> 4], digits[bucket & 15], '}' };

	gale_assert(count <= REDIS_PREFIX_MAX);
	memcpy(out, prefix, count);
	memcpy(out + count, tag, sizeof(tag));
	return count + sizeof(tag);
}

/* Behind its head, which is there. */
static size_t key_tail(uint8_t *out, size_t head, const char *kind,
                       struct remote_bytes key)
{
	size_t count = strlen(kind);

	gale_assert(key.count <= STORE_KEY_MAX);
	memcpy(out + head, kind, count);
	head += count;
	out[head++] = ':';
	if (key.count > 0)
		memcpy(out + head, key.bytes, key.count);
	return head + key.count;
}

size_t redis_key(uint8_t *out, const char *prefix, uint8_t bucket,
                 struct remote_bytes key)
{
	return key_tail(out, key_head(out, prefix, bucket), "", key);
}

size_t redis_group_key(uint8_t *out, const char *prefix, uint8_t bucket,
                       const char *kind, struct remote_bytes name)
{
	return key_tail(out, key_head(out, prefix, bucket), kind, name);
}

size_t redis_generation_key(uint8_t *out, const char *prefix, uint8_t bucket)
{
	static const char name[] = "generation";
	size_t count = key_head(out, prefix, bucket);

	memcpy(out + count, name, sizeof(name) - 1);
	return count + sizeof(name) - 1;
}

/* ---- Jobs ------------------------------------------------------------------------ */

struct packed {
	uint8_t bytes[PACKED_MOST];
	size_t count;
};

static void pack_letter(struct packed *packed, char letter)
{
	packed->bytes[packed->count++] = (uint8_t)letter;
}

static void pack_number(struct packed *packed, uint64_t number)
{
	double exact = (double)number;
	uint64_t bits;

	gale_assert(number <= GALE_UNITS_MAX);
	gale_assert(packed->count + sizeof(bits) <= PACKED_MOST);
	memcpy(&bits, &exact, sizeof(bits));
	bits = htole64(bits);
	memcpy(packed->bytes + packed->count, &bits, sizeof(bits));
	packed->count += sizeof(bits);
}

static void pack_slot(struct packed *packed, struct gale_slot slot)
{
	pack_number(packed, slot.us);
	pack_number(packed, slot.part);
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

/* The head of each value under this rule, as two numbers. */
static void pack_head(struct packed *packed, const struct rule *rule)
{
	static const uint64_t fresh[VALUE_WORDS_MOST];
	uint8_t bytes[VALUE_SHORT_MOST];

	state_encode(rule, fresh, bytes);
	pack_number(packed, word_at(bytes));
	pack_number(packed, word_at(bytes + 8));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* An instant after all instants is after all that come. */
static uint64_t instant(uint64_t us)
{
	return smaller(us, GALE_UNITS_MAX);
}

static void pack_period(struct packed *packed, struct period period)
{
	pack_number(packed, period.start_us);
	pack_number(packed, period.end_us);
}

/* The one that it probably is, the next, and the one before. */
static void pack_months(struct packed *packed, const struct rule *rule, uint64_t now_us)
{
	struct period now = quota_period(&rule->is, smaller(now_us, INSTANT_MAX_US));
	struct period next = now, before = now;

	if (now.end_us <= INSTANT_MAX_US)
		next = quota_period(&rule->is, now.end_us);
	if (now.start_us > 0)
		before = quota_period(&rule->is, now.start_us - 1);
	pack_period(packed, now);
	pack_period(packed, next);
	pack_period(packed, before);
}

static bool is_meter(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_GCRA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUCKET;
}

/* Where one of the windows starts, all of which are as long. */
static uint64_t first_start(const struct rule *rule)
{
	if (rule->is.kind != GALE_RULE_QUOTA)
		return 0;
	return quota_period(&rule->is, 0).end_us % rule_window_us(rule);
}

/* Nothing is granted by what is given back: that does not wait. */
static uint64_t not_before(const struct remote_job *job)
{
	return job->verb == REMOTE_BACK ? 0 : instant(job->not_before_us);
}

static void pack_window(struct packed *packed, const struct remote_job *job)
{
	const struct rule *rule = job->rule;
	bool months = rule->is.cadence == GALE_MONTHLY;

	pack_head(packed, rule);
	pack_number(packed, not_before(job));
	pack_number(packed, rule->is.limit);
	pack_number(packed, months ? 0 : rule_window_us(rule));
	pack_number(packed, months ? 0 : first_start(rule));
}

/* All jobs of windows are as long, so that the script reads them in one go. */
static void pack_rest_of_window(struct packed *packed, const struct rule *rule,
                                uint64_t now_us)
{
	while (packed->count < 1 + WINDOW_NUMBERS * sizeof(double))
		pack_number(packed, 0);
	if (rule->is.cadence == GALE_MONTHLY)
		pack_months(packed, rule, now_us);
}

static void pack_meter(struct packed *packed, const struct remote_job *job)
{
	pack_head(packed, job->rule);
	pack_number(packed, not_before(job));
	pack_number(packed, job->rule->is.limit);
	pack_number(packed, job->rule->is.period_us);
	pack_slot(packed, job->rule->full);
	pack_number(packed, job->rule->is.kind == GALE_RULE_TOKEN_BUCKET);
}

/* More than the burst takes longer than any meter has room for. */
static void pack_span(struct packed *packed, const struct rule *rule, uint64_t units)
{
	if (units > rule->is.burst)
		pack_slot(packed, slot_at(TOO_LONG_US));
	else
		pack_slot(packed, rule_span(rule, units));
}

static void pack_step(struct packed *packed, const struct remote_job *job,
                      uint64_t now_us)
{
	bool budget = job->rule->is.kind == GALE_RULE_TOKEN_BUDGET;

	gale_assert(remote_can_step(job->rule));
	if (is_meter(job->rule)) {
		pack_letter(packed, 'S');
		pack_meter(packed, job);
		pack_span(packed, job->rule, job->cost);
		return;
	}
	pack_letter(packed, budget ? 'b' : 's');
	pack_window(packed, job);
	pack_number(packed, job->cost);
	pack_rest_of_window(packed, job->rule, now_us);
}

#define ASK_NUMBERS 4

static uint64_t ask_number(const struct lease_ask *ask, size_t n)
{
	const uint64_t numbers[ASK_NUMBERS] = { ask->number, ask->want, ask->least,
		                                ask->spent };

	return numbers[n];
}

static void pack_ask(struct packed *packed, const struct remote_job *job)
{
	for (size_t n = 0; n < ASK_NUMBERS; n++)
		pack_number(packed, ask_number(&job->ask, n));
}

static void pack_lend_window(struct packed *packed, const struct remote_job *job,
                             uint64_t now_us)
{
	bool ahead = remote_lends_ahead(job);

	pack_letter(packed, ahead ? 'a' : 'l');
	pack_window(packed, job);
	pack_number(packed, job->ask.node);
	pack_ask(packed, job);
	pack_rest_of_window(packed, job->rule, now_us);
	if (!ahead)
		return;
	pack_number(packed, job->ask.ahead);
	pack_number(packed, job->ask.had);
	pack_number(packed, job->ask.had_of);
}

/* It never has more than the burst, so no more need be wanted. */
static void pack_lend_meter(struct packed *packed, const struct remote_job *job)
{
	uint64_t want = smaller(job->ask.want, job->rule->is.burst);

	pack_letter(packed, 'L');
	pack_meter(packed, job);
	pack_span(packed, job->rule, want);
	pack_number(packed, job->ask.node);
	pack_number(packed, job->ask.number);
	pack_number(packed, want);
	pack_number(packed, job->ask.least);
}

static void pack_back_window(struct packed *packed, const struct remote_job *job,
                             uint64_t now_us)
{
	pack_letter(packed, 'g');
	pack_window(packed, job);
	pack_number(packed, job->ask.node);
	pack_number(packed, job->ask.number);
	pack_number(packed, job->units);
	pack_slot(packed, job->tag);
	pack_rest_of_window(packed, job->rule, now_us);
}

/* No node has more than the burst out. */
static void pack_back_meter(struct packed *packed, const struct remote_job *job)
{
	uint64_t units = smaller(job->units, job->rule->is.burst);

	pack_letter(packed, 'G');
	pack_meter(packed, job);
	pack_span(packed, job->rule, units);
	pack_number(packed, job->ask.node);
	pack_number(packed, job->ask.number);
	pack_number(packed, units);
	pack_slot(packed, job->tag);
}

static void pack_read(struct packed *packed, const struct remote_job *job)
{
	pack_letter(packed, 'r');
	pack_number(packed, remote_value_most(job->rule));
}

/* What it was and what it becomes follow. */
static void pack_swap(struct packed *packed, const struct remote_job *job,
                      size_t was_count)
{
	pack_letter(packed, 'x');
	pack_number(packed, instant(job->not_before_us));
	pack_number(packed, instant(job->expires_us));
	pack_number(packed, was_count);
}

static void pack_lend(struct packed *packed, const struct remote_job *job,
                      uint64_t now_us)
{
	gale_assert(remote_can_lend(job->rule));
	if (is_meter(job->rule))
		pack_lend_meter(packed, job);
	else
		pack_lend_window(packed, job, now_us);
}

static void pack_back(struct packed *packed, const struct remote_job *job,
                      uint64_t now_us)
{
	gale_assert(remote_can_lend(job->rule));
	if (is_meter(job->rule))
		pack_back_meter(packed, job);
	else
		pack_back_window(packed, job, now_us);
}

/* was_count: how many bytes follow of what a swap's value was. */
static void pack(struct packed *packed, const struct remote_job *job, size_t was_count,
                 uint64_t now_us)
{
	switch (job->verb) {
	case REMOTE_STEP:
		pack_step(packed, job, now_us);
		break;
	case REMOTE_LEND:
		pack_lend(packed, job, now_us);
		break;
	case REMOTE_BACK:
		pack_back(packed, job, now_us);
		break;
	case REMOTE_READ:
		pack_read(packed, job);
		break;
	case REMOTE_SWAP:
		pack_swap(packed, job, was_count);
		break;
	case REMOTE_DROP:
		pack_letter(packed, 'd');
		break;
	case REMOTE_BEAT:
	case REMOTE_CLAIM:
		gale_assert(false && "it is another call's");
	}
}

/* Others may follow it. */
static bool lends_from_window(const struct remote_job *job)
{
	return job->verb == REMOTE_LEND && remote_lends_windows(job->rule) &&
	       job->rule->is.cadence != GALE_MONTHLY && !remote_lends_ahead(job);
}

/* A lend like the one before but for its key, and what it asks for. */
static bool follows(const struct remote_job *job, const struct remote_job *before)
{
	return lends_from_window(job) && lends_from_window(before) &&
	       job->ask.node == before->ask.node &&
	       remote_same_rule(job->rule, before->rule) &&
	       job->not_before_us == before->not_before_us;
}

/* Which jobs came before in a call, by what the last bytes of their keys make of a small
 * number: of each such number the latest one, and before each the one before.  Places from
 * 1; 0: none. */
struct met {
	uint8_t latest[256];
	uint8_t before[REMOTE_BATCH_MOST + 1];
};

static_assert(REMOTE_BATCH_MOST <= UINT8_MAX, "a place");

static uint8_t digest(struct remote_bytes key)
{
	uint64_t word = 0;
	size_t count = key.count < sizeof(word) ? key.count : sizeof(word);

	if (count > 0)
		memcpy(&word, key.bytes + key.count - count, count);
	return (uint8_t)((word + key.count) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static bool is_same(struct remote_bytes a, struct remote_bytes b)
{
	return a.count == b.count &&
	       (a.count == 0 || memcmp(a.bytes, b.bytes, a.count) == 0);
}

/* Is it the first job of its key?  Asked of each job once, in their order. */
static bool is_first(struct met *met, const struct remote_job *jobs, size_t i)
{
	uint8_t *latest = &met->latest[digest(jobs[i].key)];
	bool first = true;

	for (uint8_t j = *latest; j > 0 && first; j = met->before[j])
		first = !is_same(jobs[j - 1].key, jobs[i].key);
	met->before[i + 1] = *latest;
	*latest = (uint8_t)(i + 1);
	return first;
}

/* A value of a swap, as it is kept. */
static struct remote_bytes kept(const struct remote_job *job, struct remote_bytes value,
                                uint8_t room[VALUE_FOLDED_MOST])
{
	if (job->verb != REMOTE_SWAP)
		return (struct remote_bytes){ 0 };
	if (!value_can_fold(job->rule) || value.count == 0)
		return value;
	return (struct remote_bytes){ room, value_fold(job->rule, value.bytes,
		                                       value.count, room) };
}

static void put_job(struct redis_text *text, const struct remote_job *job,
                    uint64_t now_us)
{
	uint8_t rooms[2][VALUE_FOLDED_MOST];
	struct remote_bytes was = kept(job, job->was, rooms[0]);
	struct remote_bytes becomes = kept(job, job->becomes, rooms[1]);
	struct packed packed = { .count = 0 };

	pack(&packed, job, was.count, now_us);
	put_length(text, '$', packed.count + was.count + becomes.count);
	put(text, packed.bytes, packed.count);
	put(text, was.bytes, was.count);
	put(text, becomes.bytes, becomes.count);
	put(text, "\r\n", 2);
}

/* ---- Batches --------------------------------------------------------------------- */

static size_t call_most(const struct redis_call *call)
{
	size_t most = 9 * LENGTH_MOST + sizeof(call->script->sha1) + REDIS_KEY_MAX +
	              call->generation.count;

	for (size_t i = 0; i < call->count; i++)
		most += 3 * LENGTH_MOST + 2 * REDIS_KEY_MAX + PACKED_MOST +
		        call->jobs[i].was.count + call->jobs[i].becomes.count;
	return most;
}

/* Its script may touch the rows apart of the key. */
static bool has_rows(const struct remote_job *job)
{
	return (job->verb == REMOTE_LEND || job->verb == REMOTE_BACK) &&
	       !is_meter(job->rule);
}

static size_t count_rows(const struct redis_call *call)
{
	size_t count = 0;

	for (size_t i = 0; i < call->count; i++)
		count += has_rows(&call->jobs[i]);
	return count;
}

static void put_keys_of_rows(struct redis_text *text, const struct redis_call *call)
{
	uint8_t key[REDIS_KEY_MAX];

	for (size_t i = 0; i < call->count; i++)
		if (has_rows(&call->jobs[i]))
			put_word(text, key,
			         redis_group_key(key, call->prefix, call->buckets[i],
			                         REDIS_ROWS, call->jobs[i].key));
}

/* A call's keys are mostly of one bucket: their head stays where it is. */
static void put_keys(struct redis_text *text, const struct redis_call *call,
                     size_t rows)
{
	uint8_t key[REDIS_KEY_MAX], bucket = call->generation_bucket;
	size_t head = key_head(key, call->prefix, bucket);

	put_number(text, 1 + call->count + rows);
	put_word(text, key, redis_generation_key(key, call->prefix, bucket));
	for (size_t i = 0; i < call->count; i++) {
		if (call->buckets[i] != bucket)
			head = key_head(key, call->prefix, call->buckets[i]);
		bucket = call->buckets[i];
		put_word(text, key, key_tail(key, head, "", call->jobs[i].key));
	}
	put_keys_of_rows(text, call);
}

/* Which jobs follow the one before, and how many arguments all of them are. */
struct plan {
	bool follows[REMOTE_BATCH_MOST];
	size_t arguments;
};

static void make_plan(const struct redis_call *call, struct plan *ret_plan)
{
	const struct remote_job *jobs = call->jobs;
	struct met met = { .latest = { 0 } };
	bool after = false;

	ret_plan->arguments = 0;
	for (size_t i = 0; i < call->count; i++) {
		bool first = is_first(&met, jobs, i);
		bool now = first && i > 0 && follows(&jobs[i], &jobs[i - 1]);

		ret_plan->arguments += !(now && after);
		ret_plan->follows[i] = after = now;
	}
}

/* How many follow one another from the first on. */
static size_t followers(const struct redis_call *call, const struct plan *plan,
                        size_t first)
{
	size_t count = 1;

	while (first + count < call->count && plan->follows[first + count])
		count++;
	return count;
}

static bool need_the_same(const struct remote_job *jobs, size_t count,
                          const struct lease_ask *as)
{
	for (size_t i = 0; i < count; i++)
		if (jobs[i].ask.least != as->least || jobs[i].ask.spent != as->spent)
			return false;
	return true;
}

/* The n-th number of each of the jobs. */
static void put_asks(struct redis_text *text, const struct remote_job *jobs,
                     size_t count, size_t n)
{
	for (size_t i = 0; i < count; i++) {
		struct packed packed = { .count = 0 };

		pack_number(&packed, ask_number(&jobs[i].ask, n));
		put(text, packed.bytes, packed.count);
	}
}

/* They follow the job before. */
static void put_followers(struct redis_text *text, const struct remote_job *jobs,
                          size_t count)
{
	bool same = need_the_same(jobs, count, &jobs[-1].ask);
	size_t numbers = same ? 2 : ASK_NUMBERS;

	put_length(text, '$', 1 + count * numbers * sizeof(double));
	put(text, same ? "m" : "n", 1);
	for (size_t n = 0; n < numbers; n++)
		put_asks(text, jobs, count, n);
	put(text, "\r\n", 2);
}

static void put_jobs(struct redis_text *text, const struct redis_call *call,
                     const struct plan *plan)
{
	for (size_t i = 0, count; i < call->count; i += count) {
		count = plan->follows[i] ? followers(call, plan, i) : 1;
		if (plan->follows[i])
			put_followers(text, &call->jobs[i], count);
		else
			put_job(text, &call->jobs[i], call->now_us);
	}
}

/* ---- Beats and claims ------------------------------------------------------------- */

/* A kind of value that a script of its own works on: the kinds of its keys, and how each job is
 * written, in so many arguments. */
struct apart {
	const char *kinds[3];
	size_t keys;
	size_t arguments;
	void (*put)(struct redis_text *text, const struct redis_call *call,
	            const struct remote_job *job);
};

#define BEAT_NUMBERS (1 + GROUP_SETTINGS_WORDS + GROUP_REPORT_WORDS)
#define CLAIM_NUMBERS (2 + POOL_ASK_WORDS)
#define APART_WORDS_MOST 6 /* of a job: keys and arguments */

static_assert(PACKED_MOST >= BEAT_NUMBERS * sizeof(double) &&
                  PACKED_MOST >= CLAIM_NUMBERS * sizeof(double),
              "a job is packed at once");

static size_t apart_most(const struct redis_call *call)
{
	size_t most = 9 * LENGTH_MOST + sizeof(call->script->sha1) + REDIS_KEY_MAX +
	              call->generation.count;

	return most +
	       call->count * (APART_WORDS_MOST * LENGTH_MOST + 3 * REDIS_KEY_MAX +
	                      PACKED_MOST + STORE_NODE_MAX + REDIS_CHANNEL_MAX);
}

static void put_keys_apart(struct redis_text *text, const struct redis_call *call,
                           const struct apart *apart)
{
	uint8_t key[REDIS_KEY_MAX];

	put_number(text, apart->keys * call->count + 1);
	put_word(text, key,
	         redis_generation_key(key, call->prefix, call->generation_bucket));
	for (size_t i = 0; i < call->count; i++)
		for (size_t kind = 0; kind < apart->keys; kind++)
			put_word(text, key,
			         redis_group_key(key, call->prefix, call->buckets[i],
			                         apart->kinds[kind],
			                         call->jobs[i].key));
}

static void pack_words(struct packed *packed, const void *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		pack_number(packed, word);
	}
}

static void put_beat(struct redis_text *text, const struct redis_call *call,
                     const struct remote_job *job)
{
	const struct store_beat *beat = job->beat;
	struct packed packed = { .count = 0 };
	uint8_t channel[REDIS_CHANNEL_MAX];

	gale_assert(job->verb == REMOTE_BEAT && beat->node_len <= STORE_NODE_MAX);
	pack_number(&packed, job->forgot_us);
	pack_words(&packed, &beat->settings, GROUP_SETTINGS_WORDS);
	pack_words(&packed, &beat->report, GROUP_REPORT_WORDS);
	put_word(text, packed.bytes, packed.count);
	put_word(text, beat->node, beat->node_len);
	put_word(text, channel,
	         redis_channel(channel, call->prefix,
	                       store_mark(job->key.bytes, job->key.count)));
}

static void put_claim(struct redis_text *text, const struct redis_call *call,
                      const struct remote_job *job)
{
	const struct store_claim *claim = job->claim;
	struct packed packed = { .count = 0 };

	(void)call;
	gale_assert(job->verb == REMOTE_CLAIM && claim->tenant_len <= STORE_TENANT_MAX);
	pack_number(&packed, job->not_before_us);
	pack_number(&packed, claim->node);
	pack_words(&packed, &claim->ask, POOL_ASK_WORDS);
	put_word(text, packed.bytes, packed.count);
	put_word(text, claim->tenant, claim->tenant_len);
}

static const struct apart beats = {
	{ REDIS_GROUP, REDIS_LEASES, REDIS_ESTIMATES }, 3, 3, put_beat
};
static const struct apart claims = { { REDIS_POOL, REDIS_CLAIMS }, 2, 2, put_claim };

static bool put_apart(struct redis_text *text, const struct redis_call *call,
                      const struct apart *apart)
{
	if (!make_room(text, apart_most(call)))
		return false;
	put_length(text, '*', 7 + (apart->keys + apart->arguments) * call->count);
	put_word(text, "EVALSHA", 7);
	put_word(text, call->script->sha1, 40);
	put_keys_apart(text, call, apart);
	put_number(text, call->nonce);
	put_word(text, call->generation.bytes, call->generation.count);
	put_number(text, call->sure_until_us);
	for (size_t i = 0; i < call->count; i++)
		apart->put(text, call, &call->jobs[i]);
	return true;
}

size_t redis_channel(uint8_t *out, const char *prefix, uint64_t mark)
{
	char text[REDIS_CHANNEL_MAX + 1];
	int count = snprintf(text, sizeof(text), "%snudges:%02x", prefix,
	                     (unsigned)(mark % REDIS_CHANNELS));

	memcpy(out, text, (size_t)count);
	return (size_t)count;
}

static bool read_word(const uint8_t *bytes, uint64_t most, uint64_t *ret_word)
{
	double number;

	memcpy(&number, bytes, sizeof(number));
	if (!(number >= 0 && number <= (double)most))
		return false;
	*ret_word = (uint64_t)number;
	return true;
}

/* Its words, and the group's key: behind its tag stands the kind, a colon, and the name. */
bool redis_read_nudge(const uint8_t *bytes, size_t count, struct store_nudge *ret_nudge)
{
	static const char kind[] = "}" REDIS_GROUP ":";
	const size_t words = GROUP_NUDGE_WORDS * sizeof(double);
	struct group_nudge *is = &ret_nudge->is;
	const uint8_t *tail;

	if (count < words || !read_word(bytes, GROUP_GIVE | GROUP_TAKE, &is->whom) ||
	    !read_word(bytes + 8, GROUP_SLOTS_MAX, &is->slots) ||
	    !read_word(bytes + 16, GALE_UNITS_MAX, &is->weights))
		return false;
	tail = memchr(bytes + words, '}', count - words);
	if (!tail || (size_t)(bytes + count - tail) < sizeof(kind) - 1 ||
	    memcmp(tail, kind, sizeof(kind) - 1) != 0)
		return false;
	tail += sizeof(kind) - 1;
	ret_nudge->mark = store_mark(tail, (size_t)(bytes + count - tail));
	ret_nudge->bits = UINT64_MAX;
	return true;
}

/* Some servers take no more in one command (ElastiCache Serverless). */
static_assert(REDIS_WORDS_MOST <= 3999, "a call's words, keys among them");

bool redis_put_call(struct redis_text *text, const struct redis_call *call)
{
	size_t words, rows = count_rows(call);
	struct plan plan;

	gale_assert(call->count >= 1 && call->count <= REMOTE_BATCH_MOST);
	gale_assert(call->generation.count <= REMOTE_GENERATION_BYTES);
	if (call->jobs[0].verb == REMOTE_BEAT)
		return put_apart(text, call, &beats);
	if (call->jobs[0].verb == REMOTE_CLAIM)
		return put_apart(text, call, &claims);
	if (!make_room(text, call_most(call)))
		return false;
	make_plan(call, &plan);
	words = 7 + call->count + rows + plan.arguments;
	gale_assert(words <= REDIS_WORDS_MOST);
	put_length(text, '*', words);
	put_word(text, "EVALSHA", 7);
	put_word(text, call->script->sha1, 40);
	put_keys(text, call, rows);
	put_number(text, call->nonce);
	put_word(text, call->generation.bytes, call->generation.count);
	put_number(text, call->sure_until_us);
	put_jobs(text, call, &plan);
	return true;
}
