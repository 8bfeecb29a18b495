/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * batches.c -- loads and sends what lanes hold, and hears what came of it.
 *
 * Threads   The shard's actor, as in batches.h.  A batch's trips are in no list while it is
 *           under way; on_over has them again, once.
 */
#include "stores/batches.h"

#include <string.h>

#include "engine/check.h"
#include "stores/course.h"
#include "stores/quarantine.h"

#define SURE_NS UINT64_C(1000000000) /* of a node's generations, since it last told */

/* ---- What came of them ----------------------------------------------------------- */

/* A batch without jobs is over: then it is about the lane's trips, which wait for it. */
static void take_trips(struct batch *batch, struct list *ret_held)
{
	if (batch->count == 0)
		lane_empty(batch->lane, ret_held);
	else
		list_init(ret_held);
	for (size_t i = 0; i < batch->count; i++)
		list_append(ret_held, &batch->trips[i]->place);
}

static void end_batch(struct batches *batches, struct batch *batch,
                      enum store_result result)
{
	struct list held;

	take_trips(batch, &held);
	lane_enlist(batches->lanes, batch->lane);
	trip_tell_all(batches->trips, &held, result);
}

static void send_again(struct batches *batches, struct batch *batch)
{
	struct list held, *place;

	take_trips(batch, &held);
	while ((place = list_first(&held))) {
		struct trip *trip = list_item(place, struct trip, place);

		list_remove(place);
		lane_go_again(batches->lanes, trip);
	}
	lane_enlist(batches->lanes, batch->lane);
}

static void hear(struct batches *batches, struct line *line, struct batch *batch,
                 const struct wire_reply *reply)
{
	batches->lanes->gates[line->node].told = batches->now;
	for (size_t i = 0; i < batch->count; i++)
		course_go_on(batches->lanes, batch->trips[i], &reply->told[i]);
	lane_enlist(batches->lanes, batch->lane);
}

static void hear_generation(struct batches *batches, struct line *line,
                            struct lane *lane, const struct wire_reply *reply)
{
	gale_assert(reply->generation.count <= REMOTE_GENERATION_BYTES);
	lane->greeted = line->epoch;
	batches->lanes->gates[line->node].told = batches->now;
	lane->since_us = reply->since_us;
	lane->generation_count = reply->generation.count;
	memcpy(lane->generation, reply->generation.bytes, lane->generation_count);
	lane_enlist(batches->lanes, lane);
}

/* Some of its keys are here and some there, or the node is not sure of itself: each key is
 * for itself, a little later. */
static void go_later(struct batches *batches, struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		batch->trips[i]->alone = true;
	batch->lane->asked = MAP_NOWHERE;
	lanes_doubt(batches->lanes);
	send_again(batches, batch);
	lane_rest(batches->lanes, batch->lane, batches->now);
}

/* What a node that has lost the bucket said of it is of no more use: it may have it again
 * when others had it meanwhile. */
static void go_elsewhere(struct batches *batches, struct line *line,
                         struct batch *batch, const struct wire_reply *reply)
{
	struct map *map = batches->config->map;
	struct lane *lane = batch->lane;
	bool moved = reply->kind == WIRE_MOVED;
	uint32_t node =
	    moved ? map->ops->moved(map, lane->bucket, line->node, &reply->place)
		  : map->ops->other(map, line->node, &reply->place);

	lane->asked =
	    !moved && node != MAP_NOWHERE && lanes_line_to(batches->lanes, node)
		? node
		: MAP_NOWHERE;
	if (moved) {
		lane->greeted = 0;
		batches->lanes->gates[line->node].doubts++;
		lanes_doubt(batches->lanes);
	}
	send_again(batches, batch);
	if (node == MAP_NOWHERE)
		lane_rest(batches->lanes, lane, batches->now);
}

static void on_replied(struct batches *batches, struct line *line, struct batch *batch,
                       const struct wire_reply *reply)
{
	switch (reply->kind) {
	case WIRE_TOLD:
		if (batch->count == 0)
			hear_generation(batches, line, batch->lane, reply);
		else
			hear(batches, line, batch, reply);
		break;
	case WIRE_AGAIN:
		batch->lane->greeted = 0;
		send_again(batches, batch); /* WIRE-2 */
		break;
	case WIRE_NOT_NOW:
		go_later(batches, batch);
		break;
	case WIRE_MOVED:
	case WIRE_ASK:
		go_elsewhere(batches, line, batch, reply);
		break;
	case WIRE_LATER:
		end_batch(batches, batch, STORE_DOWN);
		break;
	case WIRE_WRONG:
		end_batch(batches, batch, STORE_WRONG);
	}
}

static void on_over(struct line_home *self, struct line *line, struct batch *batch,
                    const struct wire_reply *reply)
{
	struct batches *batches = (struct batches *)self;
	struct lane *lane = batch->lane;

	if (batch->count == 0) {
		if (lane->asking != line->epoch)
			return; /* it has gone elsewhere */
		lane->asking = 0;
	}
	if (reply)
		on_replied(batches, line, batch, reply);
	else
		end_batch(batches, batch,
		          batch->count > 0 ? STORE_LATE : STORE_DOWN); /* CLIENT-2 */
}

static void on_lost(struct line_home *self, struct line *line, bool was_ready)
{
	struct batches *batches = (struct batches *)self;

	lanes_leave_asked(batches->lanes, line->node);
	lanes_doubt(batches->lanes);
	if (!was_ready)
		lanes_tell(batches->lanes, &batches->lanes->gates[line->node].lanes,
		           STORE_DOWN);
}

void batches_init(struct batches *batches, const struct client_config *config,
                  struct trips *trips, struct lanes *lanes)
{
	*batches = (struct batches){
		.home = { .on_over = on_over, .on_lost = on_lost },
		.config = config,
		.trips = trips,
		.lanes = lanes,
	};
}

/* ---- Sending --------------------------------------------------------------------- */

/* When what is known at the end of this line began. */
static uint64_t since_of(const struct line *line, const struct lane *lane)
{
	return line->wire->by_buckets ? lane->since_us : line->wire->since_us;
}

static uint64_t not_before(const struct batches *batches, const struct line *line,
                           const struct trip *trip)
{
	if (trip->reminds)
		return 0; /* nothing is granted by that */
	return quarantine_until(&trip->rule, since_of(line, trip->lane),
	                        batches->config->quarantine_us); /* CLIENT-3 */
}

/* What it would be lent, nobody could spend. */
static bool is_in_vain(const struct batches *batches, const struct trip *trip)
{
	return trip->lends && trip->due.ns > 0 && mono_reached(batches->now, trip->due);
}

static bool has_room(const struct batch *batch, const struct trip *trip)
{
	if (batch->count == 0)
		return true;
	return batch->count < REMOTE_BATCH_MOST && !trip->alone &&
	       !batch->trips[0]->alone;
}

/* A life has a number of this client's own; 0 is none. */
static void note_life(const struct line *line, struct lane *lane)
{
	uint64_t since_us = since_of(line, lane);

	if (lane->life > 0 && lane->life_since_us == since_us)
		return;
	lane->life_since_us = since_us;
	if (++lane->life == 0)
		lane->life = 1;
}

static void load(struct batches *batches, const struct line *line, struct batch *batch)
{
	struct list *place;

	note_life(line, batch->lane);
	while ((place = lane_first(batch->lane))) {
		struct trip *trip = list_item(place, struct trip, place);

		if (!has_room(batch, trip))
			return;
		list_remove(place);
		if (is_in_vain(batches, trip)) {
			trip_tell(batches->trips, trip, STORE_LATE);
			continue;
		}
		course_start(trip);
		trip->job.not_before_us = not_before(batches, line, trip);
		batch->jobs[batch->count] = trip->job;
		batch->trips[batch->count++] = trip;
	}
}

static void unload(struct batch *batch)
{
	for (size_t i = batch->count; i-- > 0;)
		list_append(batch->lane->again.next, &batch->trips[i]->place);
}

static bool send(struct batches *batches, struct line *line, struct batch *batch)
{
	struct lane *lane = batch->lane;
	struct remote_batch sent = {
		.bucket = lane->bucket,
		.asking = lane->asked == line->node,
		.generation = { (const uint8_t *)lane->generation,
		                lane->generation_count },
	};

	return line_send(line, batch, &sent, batches->now);
}

static bool send_batch(struct batches *batches, struct line *line, struct lane *lane)
{
	struct batch *batch = line_load(line);

	if (!batch)
		return false;
	batch->lane = lane;
	load(batches, line, batch);
	if (batch->count == 0)
		return true; /* all in vain */
	if (!send(batches, line, batch)) {
		unload(batch);
		return false;
	}
	lane->asked = MAP_NOWHERE; /* once: whose the bucket is may change */
	return true;
}

static bool ask_generation(struct batches *batches, struct line *line,
                           struct lane *lane)
{
	struct batch *batch = line_load(line);

	if (!batch)
		return false;
	batch->lane = lane;
	if (!send(batches, line, batch))
		return false;
	lane->asking = line->epoch;
	lane->doubts = batches->lanes->gates[line->node].doubts;
	return true;
}

static bool is_sure(const struct batches *batches, const struct lane *lane,
                    const struct line *line)
{
	return !line->wire->by_buckets ||
	       lane->doubts == batches->lanes->gates[line->node].doubts;
}

/* Who has been silent may have been replaced meanwhile, and be in office again. */
static void doubt_silence(struct batches *batches, struct gate *gate)
{
	if (!mono_reached(batches->now, mono_after(gate->told, SURE_NS)))
		return;
	gate->told = batches->now;
	gate->doubts++;
}

/* The one that is known may be asked for again without waiting for it: if it is another
 * by then, nothing of the batch is done. */
static bool send_lane(struct batches *batches, struct line *line, struct lane *lane)
{
	bool sent = true;

	if (!lane_is_greeted(lane, line) || !is_sure(batches, lane, line))
		sent = ask_generation(batches, line, lane);
	if (sent && lane_is_greeted(lane, line))
		sent = send_batch(batches, line, lane);
	return sent;
}

/* A lane's next batch waits until all others have had theirs. */
bool batches_send(struct batches *batches, struct gate *gate)
{
	struct line *line = gate->line;
	struct list *place;
	bool sent = false;

	line->is_full = false;
	doubt_silence(batches, gate);
	for (int i = 0; i < LINE_BATCHES_MOST; i++) {
		struct lane *lane;

		if (line->state != LINE_READY || !(place = list_first(&gate->lanes)))
			return sent;
		lane = list_item(place, struct lane, place);
		if (!send_lane(batches, line, lane))
			return sent;
		lane_enlist(batches->lanes, lane);
		sent = true;
	}
	return sent;
}
