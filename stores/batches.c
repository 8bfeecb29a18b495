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

#define PULSE_NS UINT64_C(1000000000)      /* since it last told, while none asks */
#define GREET_AGAIN_NS UINT64_C(100000000) /* of a bucket that could not be greeted */

/* ---- Lives ----------------------------------------------------------------------- */

/* When what is known at the end of this line began. */
static uint64_t since_of(const struct line *line, const struct lane *lane)
{
	return line->wire->by_buckets ? lane->since_us : line->wire->since_us;
}

/* A life has a number of this client's own; 0 is none. */
static void note_life(struct batches *batches, const struct line *line,
                      struct lane *lane)
{
	uint64_t since_us = since_of(line, lane);

	if (lane->life > 0 && lane->life_since_us == since_us)
		return;
	if (lane->life > 0)
		batches->trips->lives++;
	lane->life_since_us = since_us;
	if (++lane->life == 0)
		lane->life = 1;
}

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

static bool is_as_known(const struct lane *lane, const struct wire_reply *reply)
{
	return lane->generation_count == reply->generation.count &&
	       memcmp(lane->generation, reply->generation.bytes,
	              lane->generation_count) == 0;
}

/* One bucket is no longer as it was there: the others are greeted again, too. */
static void greet_again(struct batches *batches, const struct line *line)
{
	struct lanes *lanes = batches->lanes;

	for (uint32_t i = 0; i < lanes->count; i++)
		if (lanes->all[i].greeted == line->epoch)
			lanes->all[i].greeted = 0;
	lanes_greet_all(lanes);
}

static void hear_generation(struct batches *batches, struct line *line,
                            struct lane *lane, const struct wire_reply *reply)
{
	gale_assert(reply->generation.count <= REMOTE_GENERATION_BYTES);
	batches->lanes->gates[line->node].told = batches->now;
	if (!line->wire->by_buckets)
		return; /* the wire knows it */
	if (lane->greeted == line->epoch && !is_as_known(lane, reply))
		greet_again(batches, line);
	lane->greeted = line->epoch;
	lane->is_to_be_greeted = false;
	lane->since_us = reply->since_us;
	note_life(batches, line, lane);
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

/* A node's word about a bucket is of no use once it has lost it: it may have it again
 * when others had it meanwhile. */
static void go_elsewhere(struct batches *batches, struct line *line,
                         struct batch *batch, const struct wire_reply *reply)
{
	struct map *map = batches->config->map;
	struct lane *lane = batch->lane;
	bool moved = reply->kind == WIRE_MOVED;
	uint32_t node;

	if (!moved && !lane_first(lane) && batch->count == 0)
		return; /* the next batch is told so, and goes there once */
	node = moved ? map->ops->moved(map, lane->bucket, line->node, &reply->place)
	             : map->ops->other(map, line->node, &reply->place);

	lane->asked =
	    !moved && node != MAP_NOWHERE && lanes_line_to(batches->lanes, node)
		? node
		: MAP_NOWHERE;
	if (moved) {
		lane->greeted = 0;
		lanes_doubt(batches->lanes);
		lanes_greet_all(batches->lanes);
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
		greet_again(batches, line);
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
		lane->greeting_due = mono_after(batches->now, GREET_AGAIN_NS);
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
	lanes_greet_all(batches->lanes);
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

static uint64_t not_before(const struct batches *batches, const struct line *line,
                           const struct trip *trip)
{
	if (trip->reminds)
		return 0; /* nothing is granted by that */
	return quarantine_until(&trip->rule, since_of(line, trip->lane),
	                        batches->config->quarantine_us); /* CLIENT-3 */
}

/* The first window after a quarantine may have been lent ahead of it.  LEASE-7 */
static uint64_t reserve_from(const struct batches *batches, const struct trip *trip)
{
	bool ahead = batches->config->lends_ahead && lease_has_ahead(&trip->rule);

	return ahead ? trip->job.not_before_us : 0;
}

/* When the store may have forgotten last is the group's to judge; what a pool granted then is over
 * with its window. */
static void date(const struct batches *batches, const struct line *line,
                 struct trip *trip)
{
	if (trip->job.verb == REMOTE_BEAT) {
		trip->job.forgot_us = since_of(line, trip->lane);
	} else if (trip->job.verb == REMOTE_CLAIM) {
		trip->job.not_before_us = quarantine_of_windows(
		    trip->job.claim->ask.period_us, since_of(line, trip->lane),
		    batches->config->quarantine_us);
	} else {
		trip->job.not_before_us = not_before(batches, line, trip);
		trip->job.reserve_from_us = reserve_from(batches, trip);
	}
}

/* Jobs of another kind are another call. */
static enum remote_verb kind_of(enum remote_verb verb)
{
	return verb == REMOTE_BEAT || verb == REMOTE_CLAIM ? verb : REMOTE_STEP;
}

/* Units that it would be lent could not be spent any more. */
static bool is_in_vain(const struct batches *batches, const struct trip *trip)
{
	return trip->lends && trip->due.ns > 0 && mono_reached(batches->now, trip->due);
}

/* The units that it takes are lost when its caller is gone. */
static bool is_of_key(const struct trip *trip)
{
	return trip->call && kind_of(trip->job.verb) == REMOTE_STEP;
}

/* A key's call that would be done when its caller is gone.  CLIENT-6 */
static bool is_too_late(const struct batches *batches, const struct line *line,
                        const struct batch *batch, const struct trip *trip)
{
	uint64_t need_ns = flow_need(&line->flow, batch->count, trip->patience_ns);

	return is_of_key(trip) && mono_reached(mono_after(batches->now, need_ns),
	                                       store_call_until(trip->call));
}

/* Not begun, and nothing has changed: what to say of it; STORE_DONE: it is sent.  That a caller
 * had gone before it came here says nothing of the server. */
static enum store_result refusal(const struct batches *batches, const struct line *line,
                                 const struct batch *batch, const struct trip *trip)
{
	if (is_in_vain(batches, trip))
		return STORE_LATE;
	if (!is_too_late(batches, line, batch, trip))
		return STORE_DONE;
	client_count(batches->config, CLIENT_OVERLOADED, trip->patience_ns > 0);
	return STORE_BUSY;
}

static void note_patience(struct batch *batch, const struct trip *trip)
{
	batch->patience_ns += trip->patience_ns;
	batch->waiting += trip->patience_ns > 0;
}

static bool has_room(const struct batch *batch, const struct trip *trip)
{
	if (is_of_key(trip) && batch->count >= batch->room)
		return false; /* LINE-5 */
	if (batch->count == 0)
		return true;
	return batch->count < REMOTE_BATCH_MOST && !trip->alone &&
	       !batch->trips[0]->alone &&
	       kind_of(trip->job.verb) == kind_of(batch->jobs[0].verb);
}

static void load(struct batches *batches, const struct line *line, struct batch *batch)
{
	struct list *place;
	enum store_result refused;

	note_life(batches, line, batch->lane);
	while ((place = lane_first(batch->lane))) {
		struct trip *trip = list_item(place, struct trip, place);

		refused = refusal(batches, line, batch, trip);
		if (refused != STORE_DONE) {
			list_remove(place);
			trip_tell(batches->trips, trip, refused);
			continue;
		}
		if (!has_room(batch, trip))
			return;
		list_remove(place);
		note_patience(batch, trip);
		batches->asked = batches->now;
		course_start(trip);
		date(batches, line, trip);
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
	if (batch->count == 0) {
		line->is_full = lane_first(lane) != NULL;
		return !line->is_full; /* all in vain */
	}
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
	return true;
}

static bool send_lane(struct batches *batches, struct line *line, struct lane *lane)
{
	return lane_is_greeted(lane, line) ? send_batch(batches, line, lane)
	                                   : ask_generation(batches, line, lane);
}

/* A lane's next batch waits until all others have had theirs. */
bool batches_send(struct batches *batches, struct gate *gate)
{
	struct line *line = gate->line;
	struct list *place;
	bool sent = false;

	line->is_full = false;
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

/* ---- While nothing is asked ------------------------------------------------------ */

/* True: it was sent.  *ret_due: when to look again, if nothing is heard of before. */
static bool greet(struct batches *batches, struct lane *lane, mono *ret_due)
{
	struct gate *gate;

	if (!mono_reached(batches->now, lane->greeting_due)) {
		*ret_due = lane->greeting_due;
		return false;
	}
	gate = lanes_gate_of(batches->lanes, lane);
	if (!gate)
		return false;
	gate->line->is_kept = true;
	if (gate->line->state != LINE_READY || lane->asking == gate->line->epoch)
		return false;
	if (lane_is_greeted(lane, gate->line)) {
		lane->is_to_be_greeted = false;
		return false;
	}
	return ask_generation(batches, gate->line, lane);
}

/* Buckets that were used before. */
static bool greet_lanes(struct batches *batches, mono *ret_due)
{
	struct lanes *lanes = batches->lanes;
	bool sent = false, any = false;

	for (uint32_t i = 0; i < lanes->count && lanes->is_any_to_be_greeted; i++) {
		struct lane *lane = &lanes->all[i];
		mono due = { UINT64_MAX };

		if (!lane->is_to_be_greeted)
			continue;
		sent |= greet(batches, lane, &due);
		any |= lane->is_to_be_greeted;
		*ret_due = mono_earlier(*ret_due, due);
	}
	lanes->is_any_to_be_greeted = any;
	return sent;
}

bool batches_sleep(const struct batches *batches)
{
	uint64_t awake_ns = batches->config->quarantine_us * 1000;

	return batches->asked.ns == 0 ||
	       mono_reached(batches->now, mono_after(batches->asked, awake_ns));
}

/* Any that is known at the end of the line. */
static struct lane *lane_at(struct lanes *lanes, const struct line *line)
{
	for (uint32_t i = 0; i < lanes->count; i++)
		if (lane_is_greeted(&lanes->all[i], line))
			return &lanes->all[i];
	return NULL;
}

static bool pulse(struct batches *batches, struct gate *gate, mono *ret_due)
{
	struct line *line = gate->line;
	mono due = mono_after(gate->told, PULSE_NS);
	struct lane *lane;

	if (line->state != LINE_READY || !line->wire->has_pulses || !line_is_idle(line))
		return false;
	if (!mono_reached(batches->now, due)) {
		*ret_due = mono_earlier(*ret_due, due);
		return false;
	}
	lane = lane_at(batches->lanes, line);
	return lane && ask_generation(batches, line, lane);
}

bool batches_greet(struct batches *batches, mono *ret_due)
{
	struct lanes *lanes = batches->lanes;
	bool sent = greet_lanes(batches, ret_due);

	for (uint32_t i = 0; i < lanes->gate_count && !batches_sleep(batches); i++)
		if (lanes->gates[i].line)
			sent |= pulse(batches, &lanes->gates[i], ret_due);
	return sent;
}
