/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lane.c -- lanes, and the gates that the map has them leave by.
 *
 * Threads   The shard's actor, as in lane.h.  Trips that are told may lead to more asks, which
 *           enlist lanes: trips are taken out of all lists first, and told then.
 */
#include "stores/lane.h"

#include "runtime/memory.h"

#define TRIES_MOST 64              /* of a value that others keep changing */
#define REST_NS UINT64_C(10000000) /* of a lane whose node cannot now */

/* ---- Gates ----------------------------------------------------------------------- */

struct line *lanes_line_to(struct lanes *lanes, uint32_t node)
{
	struct gate *gate = &lanes->gates[node];
	struct map *map = lanes->config->map;
	struct wire *wire;

	if (gate->line || !map || lanes->is_closing)
		return gate->line;
	wire = map->ops->wire(map, node);
	if (!wire)
		return NULL;
	gate->line = line_open(lanes->config, lanes->home, wire, node, &lanes->epochs);
	if (gate->line)
		return gate->line;
	wire->ops->free(wire);
	map->ops->drop(map, node);
	return NULL;
}

struct gate *lanes_gate_of(struct lanes *lanes, struct lane *lane)
{
	struct map *map = lanes->config->map;
	uint32_t node = lane->asked;

	if (!map)
		return &lanes->gates[0];
	if (node == MAP_NOWHERE)
		node = map->ops->node(map, lane->bucket);
	return node != MAP_NOWHERE && lanes_line_to(lanes, node) ? &lanes->gates[node]
	                                                         : NULL;
}

static void close_gate(struct lanes *lanes, struct gate *gate)
{
	struct map *map = lanes->config->map;
	uint32_t node = gate->line->node;

	line_close(gate->line);
	gate->line = NULL;
	if (map)
		map->ops->drop(map, node);
}

static bool is_of_use(const struct lanes *lanes, const struct gate *gate)
{
	struct map *map = lanes->config->map;

	return !line_is_idle(gate->line) || !list_is_empty(&gate->lanes) ||
	       map->ops->is_needed(map, gate->line->node);
}

static void close_useless(struct lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->gate_count; i++) {
		struct gate *gate = &lanes->gates[i];

		if (!gate->line || is_of_use(lanes, gate))
			continue;
		lanes_leave_asked(lanes, i);
		close_gate(lanes, gate);
	}
}

/* ---- Where a lane belongs -------------------------------------------------------- */

struct lane *lanes_of_key(struct lanes *lanes, const uint8_t *key, uint32_t key_len)
{
	struct map *map = lanes->config->map;

	return &lanes->all[map ? map->ops->bucket(map, key, key_len) : 0];
}

struct list *lane_first(const struct lane *lane)
{
	struct list *place = list_first(&lane->again);

	return place ? place : list_first(&lane->waiting);
}

bool lane_is_greeted(const struct lane *lane, const struct line *line)
{
	return !line->wire->by_buckets || lane->greeted == line->epoch;
}

/* Its trips cannot go before a generation is told. */
static bool is_held(const struct lane *lane, const struct line *line)
{
	return line->state == LINE_READY && !lane_is_greeted(lane, line) &&
	       lane->asking == line->epoch;
}

void lane_enlist(struct lanes *lanes, struct lane *lane)
{
	struct gate *gate;

	if (list_has(&lane->place))
		list_remove(&lane->place);
	if (!lane_first(lane))
		return;
	if (lane->rests.ns > 0) {
		list_append(&lanes->resting, &lane->place);
		return;
	}
	gate = lanes_gate_of(lanes, lane);
	if (!gate)
		list_append(&lanes->stray, &lane->place);
	else if (!is_held(lane, gate->line))
		list_append(&gate->lanes, &lane->place);
}

void lane_rest(struct lanes *lanes, struct lane *lane, mono now)
{
	if (!lane_first(lane))
		return;
	lane->rests = mono_after(now, REST_NS);
	lane_enlist(lanes, lane);
}

void lanes_wake_rested(struct lanes *lanes, mono now)
{
	struct list *place;

	while ((place = list_first(&lanes->resting))) {
		struct lane *lane = list_item(place, struct lane, place);

		if (!mono_reached(now, lane->rests))
			return;
		lane->rests = (mono){ 0 };
		lane_enlist(lanes, lane);
	}
}

void lanes_leave_asked(struct lanes *lanes, uint32_t node)
{
	for (uint32_t i = 0; i < lanes->count; i++)
		if (lanes->all[i].asked == node) {
			lanes->all[i].asked = MAP_NOWHERE;
			lane_enlist(lanes, &lanes->all[i]);
		}
}

void lanes_greet_all(struct lanes *lanes)
{
	lanes->is_any_to_be_greeted = true;
	for (uint32_t i = 0; i < lanes->count; i++) {
		struct lane *lane = &lanes->all[i];

		if (lane->generation_count > 0 && !lane->is_to_be_greeted)
			lane->greeting_due = (mono){ 0 };
		lane->is_to_be_greeted |= lane->generation_count > 0;
	}
}

void lanes_doubt(struct lanes *lanes)
{
	struct map *map = lanes->config->map;

	if (map)
		map->ops->doubt(map);
}

void lanes_follow(struct lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->count; i++)
		lane_enlist(lanes, &lanes->all[i]);
	lanes_greet_all(lanes);
	lanes_tell(lanes, &lanes->stray, STORE_DOWN);
	close_useless(lanes);
}

/* ---- Trips in and out ------------------------------------------------------------ */

void lane_wait(struct lanes *lanes, struct trip *trip)
{
	struct lane *lane = trip->lane;
	bool is_first = !lane_first(lane);

	list_append(&lane->waiting, &trip->place);
	if (is_first)
		lane_enlist(lanes, lane);
}

static void give_up(struct lanes *lanes, struct trip *trip)
{
	client_count(lanes->config, CLIENT_CONTENDED, 1);
	trip_tell(lanes->trips, trip, STORE_BUSY);
}

void lane_go_again(struct lanes *lanes, struct trip *trip)
{
	trip->job.is_first = false;
	if (!trip_is_wanted(trip))
		trip_free(lanes->trips, trip);
	else if (trip->tries++ == TRIES_MOST)
		give_up(lanes, trip);
	else
		lane_go_on(trip);
}

void lane_go_on(struct trip *trip)
{
	list_append(&trip->lane->again, &trip->place);
}

void lane_empty(struct lane *lane, struct list *ret_held)
{
	struct list *place;

	list_init(ret_held);
	while ((place = lane_first(lane))) {
		list_remove(place);
		list_append(ret_held, place);
	}
}

static void tell_lane(struct lanes *lanes, struct lane *lane, enum store_result result)
{
	struct list held;

	lane_empty(lane, &held);
	lane_enlist(lanes, lane);
	trip_tell_all(lanes->trips, &held, result);
}

void lanes_tell(struct lanes *lanes, struct list *list, enum store_result result)
{
	struct list held, more;
	struct list *place;

	list_init(&held);
	while ((place = list_first(list))) {
		struct lane *lane = list_item(place, struct lane, place);

		lane_empty(lane, &more);
		list_remove(&lane->place);
		while ((place = list_first(&more))) {
			list_remove(place);
			list_append(&held, place);
		}
	}
	trip_tell_all(lanes->trips, &held, result);
}

/* ---- Opening and closing --------------------------------------------------------- */

static void init_all(struct lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->count; i++) {
		struct lane *lane = &lanes->all[i];

		list_init(&lane->waiting);
		list_init(&lane->again);
		lane->bucket = (uint8_t)i;
		lane->asked = MAP_NOWHERE;
	}
	for (uint32_t i = 0; i < lanes->gate_count; i++)
		list_init(&lanes->gates[i].lanes);
}

static bool furnish(struct lanes *lanes)
{
	const struct client_config *config = lanes->config;
	bool many = config->map != NULL;

	lanes->count = many ? MAP_BUCKETS : 1;
	lanes->gate_count = many ? MAP_NODES_MOST : 1;
	lanes->all = memory_take(config->allocator, lanes->count * sizeof(struct lane));
	lanes->gates =
	    memory_take(config->allocator, lanes->gate_count * sizeof(struct gate));
	if (!lanes->all || !lanes->gates)
		return false;
	init_all(lanes);
	if (!many)
		lanes->gates[0].line =
		    line_open(config, lanes->home, config->wire, 0, &lanes->epochs);
	return many || lanes->gates[0].line;
}

bool lanes_init(struct lanes *lanes, const struct client_config *config,
                struct trips *trips, struct line_home *home)
{
	*lanes = (struct lanes){ .config = config, .trips = trips, .home = home };
	list_init(&lanes->resting);
	list_init(&lanes->stray);
	return furnish(lanes);
}

void lanes_free(struct lanes *lanes)
{
	struct gale_allocator *allocator = lanes->config->allocator;

	memory_give(allocator, lanes->all, lanes->count * sizeof(struct lane));
	memory_give(allocator, lanes->gates, lanes->gate_count * sizeof(struct gate));
}

void lanes_close(struct lanes *lanes, enum store_result result)
{
	lanes->is_closing = true;
	for (uint32_t i = 0; i < lanes->gate_count; i++)
		if (lanes->gates[i].line)
			close_gate(lanes, &lanes->gates[i]);
	for (uint32_t i = 0; i < lanes->count; i++)
		tell_lane(lanes, &lanes->all[i], result); /* CLIENT-1 */
}
