/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client.c -- asks come in, and turns go round.
 *
 * It owns the four rooms that a trip goes through, and is the one that calls them:
 *
 *     trip.h     what was asked, and for which call
 *     lane.h     where it waits, and by which gate it leaves
 *     course.h   what it does next, once something was told
 *     batches.h  what goes by lines, and what comes back
 *
 * Each knows those above it.
 *
 * Threads   The shard's actor, as in client.h.  An asker that is told from within a call may
 *           ask again at once; it must not turn or close.
 */
#include "stores/client.h"

#include "runtime/memory.h"
#include "stores/batches.h"

#define MAP_OLD_NS UINT64_C(5000000000) /* it is learned again, unless none asks */

struct client {
	struct client_config config;
	struct trips trips;
	struct lanes lanes;
	struct batches batches;
	uint64_t changes; /* of the map, that are known here */
};

/* ---- Asking ---------------------------------------------------------------------- */

static void refuse_overdue(struct client *client, mono now)
{
	struct list *place;

	while ((place = list_first(&client->trips.patience))) {
		struct trip *trip = list_item(place, struct trip, patience);
		struct store_call *call = trip->call;

		if (!mono_reached(now, call->due))
			return;
		trip->call = NULL;
		list_remove(&trip->patience);
		if (list_has(&trip->place)) {
			trip_free(&client->trips, trip); /* it has not gone yet */
			if (!lane_first(trip->lane))
				lane_enlist(&client->lanes, trip->lane);
		}
		store_finish(client->config.home, call, STORE_LATE);
	}
}

static bool is_away(struct client *client, struct lane *lane, mono now)
{
	struct map *map = client->config.map;
	struct gate *gate = lanes_gate_of(&client->lanes, lane);

	return gate ? line_is_away(gate->line, now) : !map->ops->is_learning(map, now);
}

/* NULL: what to say instead. */
static struct trip *trip_for(struct client *client, const uint8_t *key,
                             uint32_t key_len, mono now, enum store_result *ret_result)
{
	struct lane *lane = lanes_of_key(&client->lanes, key, key_len);
	struct trip *trip;

	*ret_result = STORE_DOWN;
	if (is_away(client, lane, now))
		return NULL;
	*ret_result = STORE_BUSY;
	trip = trip_new(&client->trips);
	if (trip)
		trip->lane = lane;
	return trip;
}

/* A server is only sent what it may be. */
static bool is_beat(const struct store_op *op)
{
	return group_settings_valid(&op->beat->settings) &&
	       group_report_valid(&op->beat->report);
}

/* The same of a claim; refused without a server. */
static bool is_refused(struct store_op *op)
{
	if (op->verb == STORE_BEAT && !is_beat(op))
		op->beat->grant = (struct group_grant){ .result = GROUP_WRONG };
	else if (op->verb == STORE_CLAIM && !pool_ask_valid(&op->claim->ask))
		op->claim->answer = (struct pool_answer){ .result = POOL_WRONG };
	else
		return false;
	return true;
}

static bool take_call(struct client *client, struct trip *trip, struct store_call *call)
{
	if (call->op->verb == STORE_CLAIM)
		return trip_claim(&client->trips, trip, call);
	if (call->op->verb == STORE_BEAT)
		return trip_beat(&client->trips, trip, call);
	trip_call(&client->trips, trip, call);
	return true;
}

static uint64_t left_ns(mono due, mono now)
{
	return due.ns > now.ns ? due.ns - now.ns : 0;
}

void client_begin(struct client *client, struct store_call *call, mono now)
{
	struct store_op *op = call->op;
	enum store_result refused;
	struct trip *trip;

	if (is_refused(op)) {
		store_finish(client->config.home, call, STORE_DONE);
		return;
	}
	if (mono_reached(now, call->due)) {
		store_finish(client->config.home, call, STORE_LATE);
		return;
	}
	trip = trip_for(client, op->key, op->key_len, now, &refused);
	if (!trip) {
		store_finish(client->config.home, call, refused);
	} else if (!take_call(client, trip, call)) {
		trip_free(&client->trips, trip);
		store_finish(client->config.home, call, STORE_NO_MEMORY);
	} else {
		trip->patience_ns = left_ns(store_call_until(call), now);
		lane_wait(&client->lanes, trip);
	}
}

static void lend(struct client *client, const struct lend_request *request, mono now)
{
	struct lend_answer refused = { .number = request->ask.number };
	struct trip *trip =
	    trip_for(client, request->key, request->key_len, now, &refused.result);

	if (!trip) {
		client->config.home->on_answer(client->config.home, &refused);
		return;
	}
	trip_lend(trip, request);
	trip->patience_ns = left_ns(request->due, now);
	lane_wait(&client->lanes, trip);
}

void client_lend(struct client *client, const struct lend_request *requests,
                 size_t count, mono now)
{
	for (size_t i = 0; i < count; i++)
		lend(client, &requests[i], now);
}

/* ---- Turns ----------------------------------------------------------------------- */

static mono due_of(struct client *client, mono due)
{
	struct list *impatient = list_first(&client->trips.patience);
	struct list *tired = list_first(&client->lanes.resting);

	if (impatient)
		due = mono_earlier(
		    due, list_item(impatient, struct trip, patience)->call->due);
	if (tired)
		due = mono_earlier(due, list_item(tired, struct lane, place)->rests);
	for (uint32_t i = 0; i < client->lanes.gate_count; i++) {
		const struct gate *gate = &client->lanes.gates[i];

		if (gate->line)
			due = mono_earlier(
			    due, line_due(gate->line, !list_is_empty(&gate->lanes)));
	}
	return due;
}

static void turn_lines(struct client *client)
{
	for (uint32_t i = 0; i < client->lanes.gate_count; i++) {
		struct gate *gate = &client->lanes.gates[i];

		if (gate->line)
			line_turn(gate->line, !list_is_empty(&gate->lanes),
			          client->batches.now);
	}
}

static void flush_lines(struct client *client)
{
	for (uint32_t i = 0; i < client->lanes.gate_count; i++)
		if (client->lanes.gates[i].line)
			line_flush(client->lanes.gates[i].line, client->batches.now);
}

static bool send_waiting(struct client *client)
{
	bool sent = false;

	for (uint32_t i = 0; i < client->lanes.gate_count; i++)
		if (client->lanes.gates[i].line)
			sent |= batches_send(&client->batches, &client->lanes.gates[i]);
	return sent;
}

/* It was learned, or could not be: each lane looks where it belongs now. */
static void follow(struct client *client)
{
	struct map *map = client->config.map;

	client->changes = map->changes;
	client_count(&client->config, CLIENT_FAILURES, map->text[0] != '\0');
	if (map->text[0] != '\0')
		trouble_say(client->config.trouble, "", GALE_LEVEL_ERROR, map->text,
		            client->batches.now);
	else
		trouble_over(client->config.trouble, "", client->batches.now);
	lanes_follow(&client->lanes);
}

/* A bucket may move while no key of it is asked for. CLIENT-5.  *ret_due: when that is to be
 * looked at next, if it is not now. */
static bool is_map_old(const struct client *client, mono *ret_due)
{
	const struct map *map = client->config.map;
	mono due = mono_after(map->tried, MAP_OLD_NS);

	if (map->tried.ns == 0 || batches_sleep(&client->batches))
		return false;
	if (mono_reached(client->batches.now, due))
		return true;
	*ret_due = due;
	return false;
}

static mono turn_map(struct client *client)
{
	struct map *map = client->config.map;
	mono due = { UINT64_MAX };

	if (map) {
		if (!list_is_empty(&client->lanes.stray) || is_map_old(client, &due))
			lanes_doubt(&client->lanes);
		due = mono_earlier(due, map->ops->turn(map, client->batches.now));
		if (client->changes != map->changes)
			follow(client);
	}
	return due;
}

static mono turn_notice(struct client *client)
{
	mono due;

	if (notice_turn(client->config.notice, client->batches.now, &due))
		trouble_tell(client->config.trouble, GALE_LEVEL_INFO,
		             "the quarantine is over: the server grants units again");
	return due;
}

mono client_turn(struct client *client, mono now)
{
	bool sent;
	mono due;

	client->batches.now = client->lanes.now = now;
	due = turn_map(client);
	lanes_wake_rested(&client->lanes, now);
	turn_lines(client);
	sent = send_waiting(client);
	refuse_overdue(client,
	               now); /* last: what has come is told, though we are late */
	if (batches_greet(&client->batches, &due) || sent)
		flush_lines(client);
	return due_of(client, mono_earlier(due, turn_notice(client)));
}

bool client_is_idle(const struct client *client)
{
	return client->trips.used == 0;
}

/* ---- Opening and closing --------------------------------------------------------- */

static void client_free(struct client *client)
{
	lanes_free(&client->lanes);
	trips_free(&client->trips);
	memory_give(client->config.allocator, client, sizeof(*client));
}

struct client *client_open(const struct client_config *config)
{
	struct client *client = memory_take(config->allocator, sizeof(*client));

	if (!client)
		return NULL;
	client->config = *config;
	trips_init(&client->trips, &client->config);
	batches_init(&client->batches, &client->config, &client->trips, &client->lanes);
	if (lanes_init(&client->lanes, &client->config, &client->trips,
	               &client->batches.home))
		return client;
	client_free(client);
	return NULL;
}

void client_close(struct client *client)
{
	struct map *map = client->config.map;

	lanes_close(&client->lanes, STORE_LATE);
	if (map)
		map->ops->free(map);
	client_free(client);
}
