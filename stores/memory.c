/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.c -- stripes of keys, each under a lock of its own.
 *
 * A key's hash, keyed with a secret so that keys that collide cannot be chosen, picks
 * its stripe.  A run locks the stripe, reads the clock, looks the key up, lets the
 * rule work on its words, and unlocks: no lock is held across anything that waits.
 *
 *   run:  lock -> now -> find -> rule_step -> (add | keep) -> expire a few -> unlock
 *
 * A beat of a group goes another way (groups.h): all groups are under one lock.  So does a claim
 * of a pool (pools.h), under the same one.
 *
 * A request to lend goes the same way, patiently, one after the other (loans.c).  Both kinds
 * of steps work on the same words.
 *
 * Threads   Any.
 */
#include "stores/memory.h"

#include <string.h>

#include "engine/check.h"
#include "engine/window.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/lifeline.h"
#include "runtime/lock.h"
#include "runtime/memory.h"
#include "runtime/random.h"
#include "stores/stripe.h"

#define EXPIRE_PER_RUN 4    /* of old keys, for at most one new one */
#define EXPIRE_PER_SWEEP 16 /* of a stripe, under one hold of its lock */
#define STRIPES_PER_SWEEP 4 /* that have something due: a sweep is a part of a turn */
#define COLD_WORDS (2 + GALE_BUCKETS_MAX) /* the longest state of a fresh key */

/* ---- Runs ------------------------------------------------------------------------ */

static struct rule_former former_of(const struct entry *entry)
{
	return (struct rule_former){
		.kind = (enum gale_rule_kind)entry->kind,
		.fingerprint = entry->fingerprint,
		.words = entry->words,
		.count = entry->word_count,
	};
}

static bool is_of(const struct entry *entry, const struct rule *rule)
{
	const struct rule_former former = former_of(entry);

	return rule_reads(rule, &former);
}

static bool forgets_any(const struct key_run *run)
{
	return run->op && run->op->verb == STORE_RESET;
}

/* A value that another rule has written becomes this one's.  Its rows are of the other, and go:
 * units that are out stay spent.                                                  (L15) */
static enum store_result adopt(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	const struct rule *rule = run->rule;

	if (entry->room < rule->words)
		entry = run_grow(run, entry, rule->words);
	if (!entry)
		return STORE_NO_MEMORY;
	memcpy(entry->words, run->converted, rule->words * sizeof(uint64_t));
	entry->rows = 0;
	entry->fingerprint = rule->fingerprint;
	entry->word_count = (uint16_t)rule->words;
	entry->expires_us = rule_expires(rule, entry->words);
	return STORE_DONE;
}

static enum store_result judge(const struct key_run *run) ON(run->stripe->lock)
{
	enum store_result result = store_judge(run->op);

	if (result != STORE_DONE)
		run->stripe->locked.broken++;
	return result;
}

static enum store_result step_fresh(const struct key_run *run) ON(run->stripe->lock)
{
	uint64_t words[COLD_WORDS] = { 0 };
	struct store_op *op = run->op;
	enum store_result result;
	struct entry *entry;

	op->answer = rule_step(op->rule, words, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		result = run_add(run, words, /* rows= */ 0, &entry);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

/* RULE-1: then it needs no room. */
static bool will_deny(const struct key_run *run, const struct entry *entry)
{
	return rule_forecast(run->rule, entry->words, run->now, run->op->cost)
	           .spendable_now == 0;
}

/* Only a log needs more room as it goes; it gets half as much again. */
static struct entry *with_room(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	size_t need = rule_words_after_step(run->rule, entry->words);

	if (need <= entry->room || will_deny(run, entry))
		return entry;
	return run_grow(run, entry, need + need / 2);
}

static enum store_result step_known(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;
	enum store_result result;

	entry = with_room(run, entry);
	if (!entry)
		return STORE_NO_MEMORY;
	op->answer = rule_step(op->rule, entry->words, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		entry->expires_us = run_expires(run, entry);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

/* A denial leaves the entry as the other rule has it: what that counts is not forgotten. */
static enum store_result step_converted(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;
	enum store_result result;

	op->answer = rule_step(op->rule, run->converted, run->now, op->cost);
	result = judge(run);
	if (op->answer.verdict == GALE_ALLOW)
		result = adopt(run, entry);
	run->stripe->locked.steps += result == STORE_DONE;
	return result;
}

static enum store_result step(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	if (run->converted)
		return step_converted(run, entry);
	return entry ? step_known(run, entry) : step_fresh(run);
}

static uint64_t *words_of(const struct key_run *run, struct entry *entry)
{
	return run->converted ? run->converted : entry->words;
}

static enum store_result cancel(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	struct store_op *op = run->op;

	if (!entry ||
	    !rule_cancel(op->rule, words_of(run, entry), run->now, op->cost, op->slot))
		return STORE_NOT_BOOKED;
	if (run->converted)
		return adopt(run, entry);
	entry->expires_us = run_expires(run, entry);
	return STORE_DONE;
}

static enum store_result act(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock)
{
	static const uint64_t fresh[COLD_WORDS];
	const uint64_t *words = entry ? words_of(run, entry) : fresh;
	struct store_op *op = run->op;

	switch (op->verb) {
	case STORE_STEP:
		return step(run, entry);
	case STORE_PEEK:
		op->answer = rule_peek(op->rule, words, run->now);
		return judge(run);
	case STORE_FORECAST:
		op->forecast = rule_forecast(op->rule, words, run->now, op->cost);
		return judge(run);
	case STORE_CANCEL:
		return cancel(run, entry);
	case STORE_RESET:
		break;
	case STORE_BEAT:
	case STORE_CLAIM:
		gale_assert(false && "it is of no key");
	}
	if (entry)
		run_drop(run, entry);
	return STORE_DONE;
}

/* ---- One atomic step ------------------------------------------------------------- */

static enum store_result run_on_entry(const struct key_run *run, struct entry *entry,
                                      const struct lend_request *request,
                                      struct lease_grant *ret_grant)
    ON(run->stripe->lock)
{
	return request ? run_lend(run, entry, request, ret_grant) : act(run, entry);
}

/* Another rule has written the entry, and it counts still. STORE-4 */
static enum store_result run_on_other(struct key_run *run, struct entry *entry,
                                      const struct lend_request *request,
                                      struct lease_grant *ret_grant)
    ON(run->stripe->lock)
{
	struct rule_former former = former_of(entry);
	uint64_t ahead = entry_ahead(entry);
	uint64_t words[COLD_WORDS];
	struct window_state with_ahead;
	enum store_result result;

	if (ahead > 0) {
		memcpy(&with_ahead, entry->words, sizeof(with_ahead));
		lease_count_ahead(&with_ahead, entry->fingerprint, ahead, run->now);
		former.words = (const uint64_t *)&with_ahead;
	}

	switch (rule_convert(run->rule, &former, run->now, words)) {
	case RULE_CONVERTED:
		run->converted = words;
		result = run_on_entry(run, entry, request, ret_grant);
		run->converted = NULL; /* the words are this function's */
		return result;
	case RULE_INVALID:
		gale_assert(false && "this store has written them itself");
		return STORE_WRONG;
	case RULE_OTHER:
		break;
	}
	if (!run->rule->restarts) {
		run->stripe->locked.changed++;
		return STORE_CHANGED;
	}
	run->over = entry;
	run->restarted = true;
	return run_on_entry(run, /* entry= */ NULL, request, ret_grant);
}

static enum store_result run_on_key(struct key_run *run,
                                    const struct lend_request *request,
                                    struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	struct entry *entry = keys_find(&run->stripe->locked.keys, &run->name);

	if (entry && is_of(entry, run->rule) && !forgets_any(run))
		run_turn(run, entry);
	if (!entry || is_of(entry, run->rule) || forgets_any(run))
		return run_on_entry(run, entry, request, ret_grant);
	if (request && request->verb == LEND_BACK)
		return STORE_NOT_BOOKED; /* its row is gone, or will be */
	if (entry->expires_us > run->now)
		return run_on_other(run, entry, request, ret_grant);
	run_drop_expired(run, entry);
	return run_on_entry(run, /* entry= */ NULL, request, ret_grant);
}

/* The key first, then those that are due: one that is asked about again is moved on,
 * not dropped and made anew. */
static enum store_result run_locked(struct key_run *run,
                                    const struct lend_request *request,
                                    struct lease_grant *ret_grant) ON(run->stripe->lock)
{
	enum store_result result;

	run->now = stripe_read_clock(run->memory, run->stripe);
	result = run_on_key(run, request, ret_grant);
	if (run->restarted && run->op && run->op->answer.verdict == GALE_ALLOW)
		run->op->answer.why = GALE_WHY_RESTARTED;
	stripe_expire(run->memory, run->stripe, EXPIRE_PER_RUN, EXPIRE_PER_RUN);
	return result;
}

static struct key_run run_on(struct memory_store *memory, const struct rule *rule,
                             const uint8_t *key, uint32_t key_len)
{
	uint64_t hash = memory_hash(memory, key, key_len);

	return (struct key_run){
		.memory = memory,
		.stripe = &memory->stripes[hash >> (64 - STRIPE_BITS)],
		.rule = rule,
		.name = { key, key_len, hash },
	};
}

/* The node's own: CLOCK_BOOTTIME if the host has none. */
static mono instant_of(const struct memory_store *memory)
{
	return memory->clock->boot_ns ? clock_now(memory->clock)
	                              : (mono){ boottime_ns() };
}

static enum store_result beat_locked(struct memory_store *memory, struct store_op *op,
                                     struct group_nudge *ret_nudge)
    ON(memory->beats.lock)
{
	struct groups *groups = memory->beats.locked.groups;

	if (!groups)
		groups = groups_open(memory->allocator, memory->max_keys);
	memory->beats.locked.groups = groups;
	if (!groups)
		return STORE_NO_MEMORY;
	return groups_beat(groups, op->key, op->key_len, op->beat,
	                   memory->clock->now_us(memory->clock), instant_of(memory),
	                   /* forgot_us= */ 0, ret_nudge);
}

static void nudge(struct memory_store *memory, const struct store_op *op,
                  const struct group_nudge *is)
{
	const struct store_nudge nudge = { store_mark(op->key, op->key_len), UINT64_MAX,
		                           *is };

	if (is->whom != 0)
		ears_tell(&memory->ears, &nudge);
}

/* Nodes beat now and then: a caller without patience for one has none at all. */
static enum store_result beat(struct memory_store *memory, struct store_op *op,
                              bool patient)
{
	struct group_nudge is = { 0 };
	enum store_result result;

	if (patient)
		lock_take(&memory->beats.lock);
	else if (!lock_try(&memory->beats.lock))
		return STORE_BUSY;
	result = beat_locked(memory, op, &is);
	lock_drop(&memory->beats.lock);
	nudge(memory, op, &is);
	return result;
}

static enum store_result claim_locked(struct memory_store *memory, struct store_op *op)
    ON(memory->beats.lock)
{
	struct pools *pools = memory->beats.locked.pools;

	if (!pools)
		pools = pools_open(memory->allocator, memory->max_keys);
	memory->beats.locked.pools = pools;
	if (!pools)
		return STORE_NO_MEMORY;
	return pools_claim(pools, op->key, op->key_len, op->claim,
	                   memory->clock->now_us(memory->clock), instant_of(memory),
	                   /* not_before_us= */ 0);
}

static enum store_result claim(struct memory_store *memory, struct store_op *op,
                               bool patient)
{
	enum store_result result;

	if (patient)
		lock_take(&memory->beats.lock);
	else if (!lock_try(&memory->beats.lock))
		return STORE_BUSY;
	result = claim_locked(memory, op);
	lock_drop(&memory->beats.lock);
	return result;
}

static enum store_result run_key(struct memory_store *memory, struct store_op *op,
                                 bool patient)
{
	struct key_run run = run_on(memory, op->rule, op->key, op->key_len);
	enum store_result result;

	run.op = op;
	if (patient)
		lock_take(&run.stripe->lock);
	else if (!lock_try(&run.stripe->lock))
		return STORE_BUSY;
	result = run_locked(&run, /* request= */ NULL, /* ret_grant= */ NULL);
	lock_drop(&run.stripe->lock);
	return result;
}

static enum store_result memory_run(struct store *self, struct store_op *op,
                                    bool patient)
{
	struct memory_store *memory = (struct memory_store *)self;

	switch (op->verb) {
	case STORE_BEAT:
		return beat(memory, op, patient);
	case STORE_CLAIM:
		return claim(memory, op, patient);
	default:
		return run_key(memory, op, patient);
	}
}

/* The answer is given outside the lock, so that it may ask for more. */
static void memory_lend(const struct store_client *client,
                        const struct lend_request *requests, size_t count)
{
	struct memory_store *memory = (struct memory_store *)client->store;

	for (size_t i = 0; i < count; i++) {
		const struct lend_request *request = &requests[i];
		struct lend_answer answer = { .number = request->ask.number };
		struct key_run run =
		    run_on(memory, request->rule, request->key, request->key_len);

		lock_take(&run.stripe->lock);
		answer.result = run_locked(&run, request, &answer.grant);
		answer.restarted = run.restarted;
		lock_drop(&run.stripe->lock);
		client->home->on_answer(client->home, &answer);
	}
}

/* ---- Sweeping and counting ------------------------------------------------------- */

/* True: something was due. */
static bool sweep_stripe(struct memory_store *memory, struct stripe *stripe)
{
	bool due;

	lock_take(&stripe->lock);
	stripe_read_clock(memory, stripe);
	due = stripe_next_due(stripe) <= stripe->locked.newest_us;
	stripe_expire(memory, stripe, EXPIRE_PER_SWEEP, EXPIRE_PER_SWEEP);
	lock_drop(&stripe->lock);
	return due;
}

/* A few, from where the last sweep has ended; true when nothing was due in any. */
static bool sweep_stripes(struct memory_store *memory)
{
	uint64_t first = load_relaxed(&memory->swept), due = 0, i;

	for (i = 0; i < STRIPES && due < STRIPES_PER_SWEEP; i++)
		due += sweep_stripe(memory, &memory->stripes[(first + i) % STRIPES]);
	store_relaxed(&memory->swept, first + i);
	return due == 0;
}

static bool sweep_groups_and_pools(struct memory_store *memory)
{
	mono at = instant_of(memory);
	struct groups *groups;
	struct pools *pools;
	bool done;

	lock_take(&memory->beats.lock);
	groups = memory->beats.locked.groups;
	pools = memory->beats.locked.pools;
	done = !groups || groups_sweep(groups, at);
	done = (!pools || pools_sweep(pools, at)) && done;
	lock_drop(&memory->beats.lock);
	return done;
}

static bool memory_sweep(struct store *self)
{
	struct memory_store *memory = (struct memory_store *)self;
	bool done = sweep_groups_and_pools(memory);

	return sweep_stripes(memory) && done;
}

static void add_stats(struct stripe *stripe, struct gale_counts *sum)
{
	lock_take(&stripe->lock);
	sum->keys += stripe->locked.keys.count;
	sum->steps += stripe->locked.steps;
	sum->full += stripe->locked.full;
	sum->memory += stripe->locked.no_memory;
	sum->changed += stripe->locked.changed;
	sum->broken += stripe->locked.broken;
	sum->expired += stripe->locked.expired;
	sum->leases += stripe->locked.leases;
	sum->returns += stripe->locked.returns;
	lock_drop(&stripe->lock);
}

static void memory_stats(struct store *self, struct gale_counts *ret_stats)
{
	struct memory_store *memory = (struct memory_store *)self;

	*ret_stats = (struct gale_counts){ 0 };
	for (int i = 0; i < STRIPES; i++)
		add_stats(&memory->stripes[i], ret_stats);
}

/* ---- Opening and closing --------------------------------------------------------- */

/*
 * The stores that have names.  In a child made by fork() this reads as zero: an open
 * lock and no stores, so that the child starts with stores of its own, and does not
 * wait for a lock that a thread of its parent held.  Here it starts as zero, too.
 */
static union {
	alignas(LIFELINE_PAGE) uint8_t pages[LIFELINE_PAGE];
	struct {
		struct lock lock;
		struct {
			struct memory_store *first;
		} locked;
	} is;
} registry;

static void memory_free(struct memory_store *memory)
{
	struct gale_allocator *allocator = memory->allocator;

	for (int i = 0; i < STRIPES; i++) {
		struct stripe *stripe = &memory->stripes[i];

		lock_take(&stripe->lock);
		gale_audit(keys_valid(&stripe->locked.keys));
		gale_audit(keys_valid(&stripe->locked.rows));
		keys_close(&stripe->locked.keys, allocator);
		keys_close(&stripe->locked.rows, allocator);
		lock_drop(&stripe->lock);
		lock_destroy(&stripe->lock);
	}
	lock_take(&memory->beats.lock);
	groups_close(memory->beats.locked.groups);
	pools_close(memory->beats.locked.pools);
	lock_drop(&memory->beats.lock);
	lock_destroy(&memory->beats.lock);
	ears_close(&memory->ears);
	memory_give_lines(allocator, memory, sizeof(*memory));
}

/* True for the last one; the store is then out of the registry. */
static bool release(struct memory_store *memory) ON(registry.is.lock)
{
	struct memory_store **at = &registry.is.locked.first;

	if (--memory->openers > 0)
		return false;
	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next; /* MEMORY-4 */
	return true;
}

static void memory_close(struct store *self)
{
	struct memory_store *memory = (struct memory_store *)self;
	bool last = true;

	if (memory->name[0] != '\0') {
		lock_take(&registry.is.lock);
		last = release(memory);
		lock_drop(&registry.is.lock);
	}
	if (last)
		memory_free(memory);
}

static struct store_ear *memory_listen(struct store *self, struct watch watch)
{
	return ear_open(&((struct memory_store *)self)->ears, watch);
}

static const struct store_ops memory_ops = {
	.run = memory_run,
	.lend = memory_lend,
	.listen = memory_listen,
	.hear = ear_hear,
	.unlisten = ear_close,
	.sweep = memory_sweep,
	.stats = memory_stats,
	.close = memory_close,
};

static struct memory_store *memory_new(const struct memory_config *config)
{
	struct memory_store *memory =
	    memory_take_lines(config->allocator, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->store.ops = &memory_ops;
	memory->store.lends_ahead = true;
	memory->allocator = config->allocator;
	boot_clock_init(&memory->boot);
	memory->clock = config->clock ? config->clock : &memory->boot.clock;
	memory->max_keys = config->max_keys;
	memory->openers = 1;
	strcpy(memory->name, config->name);
	lock_init(&memory->beats.lock);
	ears_open(&memory->ears, config->allocator);
	for (int i = 0; i < STRIPES; i++) {
		lock_init(&memory->stripes[i].lock);
		store_relaxed(&memory->stripes[i].earliest_us, UINT64_MAX);
	}
	if (random_fill(memory->secret, sizeof(memory->secret)))
		return memory;
	memory_free(memory);
	return NULL;
}

static struct memory_store *find_named(const char *name) ON(registry.is.lock)
{
	struct memory_store *at = registry.is.locked.first;

	while (at && strcmp(at->name, name) != 0)
		at = at->next;
	return at;
}

static struct memory_store *open_named(const struct memory_config *config)
    ON(registry.is.lock)
{
	struct memory_store *memory = find_named(config->name);

	if (memory) {
		memory->openers++;
		return memory;
	}
	memory = memory_new(config);
	if (memory) {
		memory->next = registry.is.locked.first;
		registry.is.locked.first = memory; /* MEMORY-4 */
	}
	return memory;
}

struct store *memory_open(const struct memory_config *config)
{
	struct memory_store *memory;

	gale_assert(strlen(config->name) <= GALE_NAME_MAX);
	gale_assert(config->max_keys > 0);
	if (config->name[0] == '\0')
		return (struct store *)memory_new(config);
	if (!lifeline_cover(registry.pages, sizeof(registry.pages)))
		return NULL;
	lock_take(&registry.is.lock);
	memory = open_named(config);
	lock_drop(&registry.is.lock);
	return (struct store *)memory;
}
