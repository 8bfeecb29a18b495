/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trip.c -- trips are taken from a list of free ones, and told once.
 *
 * Threads   The shard's actor, as in trip.h.  A trip is freed before its asker is told of
 *           it: the asker may ask at once, and get the same one.
 */
#include "stores/trip.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"

/* ---- Memory ---------------------------------------------------------------------- */

void trips_init(struct trips *trips, const struct client_config *config)
{
	*trips = (struct trips){ .config = config };
	list_init(&trips->free);
	list_init(&trips->patience);
}

void trips_free(struct trips *trips)
{
	struct gale_allocator *allocator = trips->config->allocator;
	struct list *place;

	while ((place = list_first(&trips->free))) {
		list_remove(place);
		memory_give(allocator, list_item(place, struct trip, place),
		            sizeof(struct trip));
		trips->count--;
	}
	gale_assert(trips->count == 0);
	memory_give(allocator, trips->words, trips->word_count * sizeof(uint64_t));
}

struct trip *trip_new(struct trips *trips)
{
	struct list *place = list_first(&trips->free);
	struct trip *trip;

	if (place) {
		list_remove(place);
		trips->used++;
		return list_item(place, struct trip, place);
	}
	if (trips->count == CLIENT_TRIPS_MOST)
		return NULL;
	trip = memory_take(trips->config->allocator, sizeof(*trip));
	trips->count += trip != NULL;
	trips->used += trip != NULL;
	return trip;
}

static void drop_bytes(struct trips *trips, struct trip *trip)
{
	memory_give(trips->config->allocator, trip->bytes, trip->byte_count);
	trip->bytes = NULL;
	trip->byte_count = 0;
}

void trip_free(struct trips *trips, struct trip *trip)
{
	drop_bytes(trips, trip);
	if (list_has(&trip->place))
		list_remove(&trip->place);
	if (list_has(&trip->patience))
		list_remove(&trip->patience);
	list_append(&trips->free, &trip->place);
	trips->used--;
}

static bool have_words(struct trips *trips, size_t room)
{
	struct gale_allocator *allocator = trips->config->allocator;
	uint64_t *words;

	if (room <= trips->word_count)
		return true;
	words = memory_take(allocator, room * sizeof(*words));
	if (!words)
		return false;
	memory_give(allocator, trips->words, trips->word_count * sizeof(*words));
	trips->words = words;
	trips->word_count = room;
	return true;
}

bool trip_have_room(struct trips *trips, struct trip *trip, size_t was)
{
	drop_bytes(trips, trip);
	trip->byte_count = was + remote_bytes_most(&trip->rule, was);
	trip->bytes = memory_take(trips->config->allocator, trip->byte_count);
	if (!trip->bytes)
		trip->byte_count = 0;
	return trip->bytes && have_words(trips, remote_words(&trip->rule, was));
}

/* ---- What it is for -------------------------------------------------------------- */

/* Rule and key are the asker's, and may be gone before it is back. */
static void pack(struct trip *trip, const uint8_t *key, uint32_t key_len)
{
	memcpy(trip->key, key, key_len);
	trip->tries = 0;
	trip->alone = false;
	trip->seen = 0;
	trip->reminds = false;
	trip->job = (struct remote_job){
		.verb = REMOTE_READ,
		.key = { trip->key, key_len },
	};
}

static void pack_rule(struct trip *trip, const struct rule *rule)
{
	trip->rule = *rule;
	trip->job.rule = &trip->rule;
}

static void list_by_due(struct trips *trips, struct trip *trip)
{
	struct list *at = &trips->patience;

	while (at->before != &trips->patience &&
	       list_item(at->before, struct trip, patience)->call->due.ns >
	           trip->call->due.ns)
		at = at->before;
	list_append(at, &trip->patience);
}

void trip_call(struct trips *trips, struct trip *trip, struct store_call *call)
{
	const struct store_op *op = call->op;

	pack(trip, op->key, op->key_len);
	pack_rule(trip, op->rule);
	trip->call = call;
	trip->lends = false;
	trip->job.cost = op->cost;
	if (op->verb == STORE_STEP && remote_can_step(op->rule))
		trip->job.verb = REMOTE_STEP;
	else if (op->verb == STORE_RESET)
		trip->job.verb = REMOTE_DROP;
	list_by_due(trips, trip);
}

/* What the asker may drop. */
struct beat_kept {
	struct store_beat beat;
	uint8_t node[STORE_NODE_MAX];
};

bool trip_beat(struct trips *trips, struct trip *trip, struct store_call *call)
{
	const struct store_op *op = call->op;
	struct beat_kept *kept = memory_take(trips->config->allocator, sizeof(*kept));

	if (!kept)
		return false;
	gale_assert(op->beat->node_len <= STORE_NODE_MAX);
	trip->bytes = (uint8_t *)kept;
	trip->byte_count = sizeof(*kept);
	kept->beat = *op->beat;
	kept->beat.node = kept->node;
	memcpy(kept->node, op->beat->node, op->beat->node_len);
	pack(trip, op->key, op->key_len);
	trip->call = call;
	trip->lends = false;
	trip->job.verb = REMOTE_BEAT;
	trip->job.beat = &kept->beat;
	list_by_due(trips, trip);
	return true;
}

/* The same. */
struct claim_kept {
	struct store_claim claim;
	uint8_t tenant[STORE_TENANT_MAX];
};

bool trip_claim(struct trips *trips, struct trip *trip, struct store_call *call)
{
	const struct store_op *op = call->op;
	struct claim_kept *kept = memory_take(trips->config->allocator, sizeof(*kept));

	if (!kept)
		return false;
	gale_assert(op->claim->tenant_len <= STORE_TENANT_MAX);
	trip->bytes = (uint8_t *)kept;
	trip->byte_count = sizeof(*kept);
	kept->claim = *op->claim;
	kept->claim.tenant = kept->tenant;
	memcpy(kept->tenant, op->claim->tenant, op->claim->tenant_len);
	pack(trip, op->key, op->key_len);
	trip->call = call;
	trip->lends = false;
	trip->job.verb = REMOTE_CLAIM;
	trip->job.claim = &kept->claim;
	list_by_due(trips, trip);
	return true;
}

static enum remote_verb job_of(const struct lend_request *request)
{
	if (request->verb == LEND_STATUS || !remote_can_lend(request->rule))
		return REMOTE_READ;
	return request->verb == LEND ? REMOTE_LEND : REMOTE_BACK;
}

void trip_lend(struct trip *trip, const struct lend_request *request)
{
	pack(trip, request->key, request->key_len);
	pack_rule(trip, request->rule);
	trip->call = NULL;
	trip->lends = true;
	trip->due = request->due;
	trip->lend = request->verb;
	trip->seen = request->seen;
	trip->life = request->life;
	trip->job.seen_in = request->seen_in;
	trip->answer = (struct lend_answer){ 0 };
	trip->job.verb = job_of(request);
	trip->job.is_first = request->seen == 0 && request->seen_in == 0;
	trip->job.ask = request->ask;
	trip->job.tag = request->tag;
	trip->job.units = request->units;
}

/* ---- Telling --------------------------------------------------------------------- */

void trip_tell(struct trips *trips, struct trip *trip, enum store_result result)
{
	struct store_home *home = trips->config->home;
	struct lend_answer answer = trip->answer;
	struct store_call *call = trip->call;
	bool lends = trip->lends;

	answer.number = trip->job.ask.number;
	answer.result = result;
	answer.lives = trips->lives;
	trip_free(trips, trip); /* first: what is told may lead to more */
	if (call)
		store_finish(home, call, result); /* CLIENT-1 */
	else if (lends)
		home->on_answer(home, &answer);
}

void trip_tell_all(struct trips *trips, struct list *held, enum store_result result)
{
	struct list *place;

	while ((place = list_first(held)))
		trip_tell(trips, list_item(place, struct trip, place), result);
}
