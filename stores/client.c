/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client.c -- trips, the lanes they wait in, and the gates they leave by.
 *
 * A lane with trips is in one list: its gate's, or that of those that rest, or of those
 * that nobody knows a gate for; or in none, while its generation is asked for.
 */
#include "stores/client.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/list.h"
#include "runtime/memory.h"
#include "stores/line.h"
#include "stores/quarantine.h"

#define TRIES_MOST 64                /* of a value that others keep changing */
#define REST_NS UINT64_C(10000000)   /* of a lane whose node cannot now */
#define SURE_NS UINT64_C(1000000000) /* of a node's generations, since it last told */
#define QUARANTINE_DEFAULT_US UINT64_C(60000000)

struct trip {
	struct list place;    /* waiting, again, or free */
	struct list patience; /* of calls, the first due first */
	struct lane *lane;
	struct store_call *call; /* NULL: it lends, or nobody waits any more */
	bool lends;
	bool alone; /* with others its server could not */
	mono due;   /* of a loan: from then on nobody wants it; 0: never */
	enum lend_verb lend;
	uint64_t seen; /* of a window, in ... */
	uint8_t life;  /* ... this life of the server, of which it has been reminded */
	uint8_t sent_in; /* the life that the job was sent in */
	bool reminds;    /* the job is about what was seen, and not yet to lend */
	struct lend_answer answer; /* true once its swap is done */
	uint32_t tries;
	struct remote_job job;
	struct rule rule;
	uint8_t *bytes; /* what its swap was and becomes */
	size_t byte_count;
	uint8_t key[STORE_KEY_MAX];
};

/* Trips to the keys of one bucket. */
struct lane {
	struct list place; /* see above */
	struct list waiting;
	struct list again; /* these go first, in the order they came back */
	uint8_t bucket;
	mono rests; /* until then; 0: it does not */
	/* A node that gets the next batch, as the one that has the bucket has said;
	 * MAP_NOWHERE: none. */
	uint32_t asked;

	/* What is known of the bucket at the end of a connection. C4 */
	uint64_t greeted; /* its epoch; 0: nothing is known */
	uint64_t doubts;  /* of its gate, when it was asked for */
	uint64_t since_us;
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
	uint64_t asking; /* the epoch of one that it is asked for; 0: none */

	/* The server's life that was last sent to, as a number, and since when. */
	uint8_t life;
	uint64_t life_since_us;
};

/* What leads to a node. */
struct gate {
	struct line *line; /* NULL: nobody wanted to go there yet */
	struct list lanes;
	mono told;       /* when it last told of anything */
	uint64_t doubts; /* how often what it said of generations became doubtful. C4 */
};

struct client {
	struct line_home home; /* first: what becomes of lines is told here */
	struct client_config config;
	mono now; /* of this turn */
	uint32_t trip_count;
	struct list free;
	struct list patience;
	struct list resting; /* lanes, the first to go on first */
	struct list stray;   /* lanes: nobody knows where to */
	bool is_closing;
	uint64_t epochs;  /* connections so far */
	uint64_t changes; /* of the map, that are known here */
	uint32_t lane_count;
	uint32_t gate_count;
	struct lane *lanes;
	struct gate *gates; /* by their node's number */
	uint64_t *words;    /* a desk for values of any length */
	size_t word_count;
};

static void count(const struct client *client, enum client_counter counter, uint64_t by)
{
	client_count(&client->config, counter, by);
}

/* ---- Trips ----------------------------------------------------------------------- */

static struct trip *trip_new(struct client *client)
{
	struct list *place = list_first(&client->free);
	struct trip *trip;

	if (place) {
		list_remove(place);
		return list_item(place, struct trip, place);
	}
	if (client->trip_count == CLIENT_TRIPS_MOST)
		return NULL;
	trip = memory_take(client->config.allocator, sizeof(*trip));
	client->trip_count += trip != NULL;
	return trip;
}

static void drop_bytes(struct client *client, struct trip *trip)
{
	memory_give(client->config.allocator, trip->bytes, trip->byte_count);
	trip->bytes = NULL;
	trip->byte_count = 0;
}

static void trip_free(struct client *client, struct trip *trip)
{
	drop_bytes(client, trip);
	if (list_has(&trip->place))
		list_remove(&trip->place);
	if (list_has(&trip->patience))
		list_remove(&trip->patience);
	list_append(&client->free, &trip->place);
}

/* Rule and key are the asker's, and may be gone before it is back. */
static void pack(struct trip *trip, const struct rule *rule, const uint8_t *key,
                 uint32_t key_len)
{
	trip->rule = *rule;
	memcpy(trip->key, key, key_len);
	trip->tries = 0;
	trip->alone = false;
	trip->seen = 0;
	trip->reminds = false;
	trip->job = (struct remote_job){
		.verb = REMOTE_READ,
		.rule = &trip->rule,
		.key = { trip->key, key_len },
	};
}

static void tell(struct client *client, struct trip *trip, enum store_result result)
{
	struct store_home *home = client->config.home;
	struct lend_answer answer = trip->answer;
	struct store_call *call = trip->call;
	bool lends = trip->lends;

	answer.number = trip->job.ask.number;
	answer.result = result;
	trip_free(client, trip); /* first: what is told may lead to more */
	if (call)
		home->on_done(home, call, result); /* C1 */
	else if (lends)
		home->on_answer(home, &answer);
}

/* Nothing of it was done, as far as the server says.  Its lane is enlisted by who calls. */
static void go_again(struct client *client, struct trip *trip)
{
	if (!trip->call && !trip->lends)
		trip_free(client, trip); /* nobody waits */
	else if (trip->tries++ == TRIES_MOST)
		tell(client, trip, STORE_BUSY);
	else
		list_append(&trip->lane->again, &trip->place);
}

/* ---- Lanes and gates ------------------------------------------------------------- */

static struct list *first_to_go(const struct lane *lane)
{
	struct list *place = list_first(&lane->again);

	return place ? place : list_first(&lane->waiting);
}

/* A line to a node, which is made when it is first needed. */
static struct line *line_to(struct client *client, uint32_t node)
{
	struct gate *gate = &client->gates[node];
	struct map *map = client->config.map;
	struct wire *wire;

	if (gate->line || !map || client->is_closing)
		return gate->line;
	wire = map->ops->wire(map, node);
	if (!wire)
		return NULL;
	gate->line =
	    line_open(&client->config, &client->home, wire, node, &client->epochs);
	if (gate->line)
		return gate->line;
	wire->ops->free(wire);
	map->ops->drop(map, node);
	return NULL;
}

static struct gate *gate_of(struct client *client, struct lane *lane)
{
	struct map *map = client->config.map;
	uint32_t node = lane->asked;

	if (!map)
		return &client->gates[0];
	if (node == MAP_NOWHERE)
		node = map->ops->node(map, lane->bucket);
	return node != MAP_NOWHERE && line_to(client, node) ? &client->gates[node]
	                                                    : NULL;
}

static bool is_greeted(const struct lane *lane, const struct line *line)
{
	return !line->wire->by_buckets || lane->greeted == line->epoch;
}

/* Its trips cannot go before a generation is told. */
static bool is_held(const struct lane *lane, const struct line *line)
{
	return line->state == LINE_READY && !is_greeted(lane, line) &&
	       lane->asking == line->epoch;
}

/* To where it now belongs, if it has trips. */
static void enlist(struct client *client, struct lane *lane)
{
	struct gate *gate;

	if (list_has(&lane->place))
		list_remove(&lane->place);
	if (!first_to_go(lane))
		return;
	if (lane->rests.ns > 0) {
		list_append(&client->resting, &lane->place);
		return;
	}
	gate = gate_of(client, lane);
	if (!gate)
		list_append(&client->stray, &lane->place);
	else if (!is_held(lane, gate->line))
		list_append(&gate->lanes, &lane->place);
}

static void rest(struct client *client, struct lane *lane)
{
	lane->rests = mono_after(client->now, REST_NS);
	enlist(client, lane);
}

static void doubt(struct client *client)
{
	struct map *map = client->config.map;

	if (map)
		map->ops->doubt(map);
}

/* All trips of a lane, out of it. */
static void empty(struct lane *lane, struct list *ret_held)
{
	struct list *place;

	list_init(ret_held);
	while ((place = first_to_go(lane))) {
		list_remove(place);
		list_append(ret_held, place);
	}
}

static void tell_all(struct client *client, struct list *held, enum store_result result)
{
	struct list *place;

	while ((place = list_first(held)))
		tell(client, list_item(place, struct trip, place), result);
}

static void tell_lane(struct client *client, struct lane *lane,
                      enum store_result result)
{
	struct list held;

	empty(lane, &held);
	enlist(client, lane);
	tell_all(client, &held, result);
}

/* Those that wait now; what they are told may lead to more. */
static void tell_lanes(struct client *client, struct list *lanes,
                       enum store_result result)
{
	struct list held, more;
	struct list *place;

	list_init(&held);
	while ((place = list_first(lanes))) {
		struct lane *lane = list_item(place, struct lane, place);

		empty(lane, &more);
		list_remove(&lane->place);
		while ((place = list_first(&more))) {
			list_remove(place);
			list_append(&held, place);
		}
	}
	tell_all(client, &held, result);
}

/* ---- What was told --------------------------------------------------------------- */

static bool have_words(struct client *client, size_t room)
{
	struct gale_allocator *allocator = client->config.allocator;
	uint64_t *words;

	if (room <= client->word_count)
		return true;
	words = memory_take(allocator, room * sizeof(*words));
	if (!words)
		return false;
	memory_give(allocator, client->words, client->word_count * sizeof(*words));
	client->words = words;
	client->word_count = room;
	return true;
}

/* A desk for what was told, whose bytes the trip takes along. */
static bool have_desk(struct client *client, struct trip *trip,
                      const struct remote_told *told, struct remote_desk *ret_desk)
{
	size_t was = told->before.count, room = remote_words(&trip->rule, was);

	drop_bytes(client, trip);
	trip->byte_count = was + remote_bytes_most(&trip->rule, was);
	trip->bytes = memory_take(client->config.allocator, trip->byte_count);
	if (!trip->bytes)
		trip->byte_count = 0;
	if (!trip->bytes || !have_words(client, room))
		return false;
	if (was > 0)
		memcpy(trip->bytes, told->before.bytes, was);
	*ret_desk = (struct remote_desk){ client->words, room, trip->bytes + was };
	return true;
}

static bool prepare(struct trip *trip, const struct remote_told *told,
                    const struct remote_desk *desk, enum store_result *ret_result)
{
	struct remote_told read = *told;
	bool swaps;

	read.before.bytes = trip->bytes;
	if (!trip->lends)
		return remote_prepare_swap(&trip->job, &read, desk, trip->call->op,
		                           ret_result);
	swaps = remote_prepare_loan(&trip->job, &read, desk, trip->lend, &trip->answer);
	*ret_result = trip->answer.result;
	return swaps;
}

static bool is_of_same_key(const struct trip *one, const struct trip *other)
{
	return one->job.key.count == other->job.key.count &&
	       memcmp(one->key, other->key, one->job.key.count) == 0;
}

/* The trip that will have changed the key when this one gets there; NULL: none. */
static const struct trip *ahead_of(const struct trip *trip)
{
	const struct list *again = &trip->lane->again, *at = again->before;

	for (int i = 0; i < REMOTE_BATCH_MOST && at != again; i++) {
		const struct trip *other = list_item(at, struct trip, place);

		if (is_of_same_key(other, trip) &&
		    (other->job.verb == REMOTE_SWAP || other->job.verb == REMOTE_DROP))
			return other;
		at = at->before;
	}
	return NULL;
}

static void note_result(struct client *client, const struct trip *trip,
                        enum store_result result)
{
	bool done = result == STORE_DONE;

	count(client, CLIENT_CHANGED, result == STORE_CHANGED);
	count(client, CLIENT_WRONG, result == STORE_WRONG);
	if (!trip->lends)
		count(client, CLIENT_STEPS, done && trip->call->op->verb == STORE_STEP);
	else if (trip->lend == LEND)
		count(client, CLIENT_LEASES, done && trip->answer.grant.units > 0);
	else
		count(client, CLIENT_RETURNS, done && trip->lend == LEND_BACK);
}

/* Of many that want to change one key, each goes on from what the one ahead of it makes
 * of the value, so that all of their swaps can succeed.  What is settled without a swap
 * is settled by what was told only: behind others it is read again. */
static void on_read(struct client *client, struct trip *trip,
                    const struct remote_told *told)
{
	const struct trip *ahead = ahead_of(trip);
	enum store_result result = STORE_NO_MEMORY;
	struct remote_told found = *told;
	struct remote_desk desk;

	if (ahead && told->code == REMOTE_DONE)
		found.before = ahead->job.becomes;
	if (have_desk(client, trip, &found, &desk) &&
	    (prepare(trip, &found, &desk, &result) ||
	     (ahead && result != STORE_NO_MEMORY))) {
		go_again(client, trip);
		return;
	}
	note_result(client, trip, result);
	tell(client, trip, result);
}

static void lend_reminded(struct trip *trip)
{
	trip->reminds = false;
	trip->life = trip->sent_in;
	trip->job.verb = REMOTE_LEND;
	trip->job.seen = 0;
}

/* What cannot be reminded need not be, or says so when it is asked to lend. */
static void on_read_to_remind(struct client *client, struct trip *trip,
                              const struct remote_told *told)
{
	struct remote_told read = *told;
	struct remote_desk desk;

	if (!have_desk(client, trip, told, &desk)) {
		tell(client, trip, STORE_NO_MEMORY);
		return;
	}
	read.before.bytes = trip->bytes;
	if (!remote_prepare_reminder(&trip->job, &read, &desk))
		lend_reminded(trip);
	go_again(client, trip);
}

static void on_look(struct client *client, struct trip *trip,
                    const struct remote_told *told)
{
	enum store_result result = STORE_NO_MEMORY;
	struct remote_desk desk;

	if (have_desk(client, trip, told, &desk))
		result = remote_explain_look(&trip->job, told, &desk, trip->call->op);
	note_result(client, trip, result);
	tell(client, trip, result);
}

static bool is_look(const struct trip *trip)
{
	return trip->call && (trip->call->op->verb == STORE_PEEK ||
	                      trip->call->op->verb == STORE_FORECAST);
}

/* What it is now was not told, or the server has forgotten what was read: both are found
 * out by reading it again. */
static enum store_result explain_swap(struct trip *trip, enum remote_code code)
{
	if (code == REMOTE_DONE)
		return STORE_DONE;
	if (code != REMOTE_MOVED && code != REMOTE_WAITS)
		return STORE_WRONG;
	trip->job.verb = REMOTE_READ;
	return STORE_BUSY;
}

static enum store_result explain(struct trip *trip, const struct remote_told *told)
{
	switch (trip->job.verb) {
	case REMOTE_STEP:
		return remote_explain_step(&trip->job, told, trip->call->op);
	case REMOTE_LEND:
	case REMOTE_BACK:
		remote_explain_lend(&trip->job, told, &trip->answer);
		trip->answer.life = trip->sent_in;
		trip->answer.waits = told->code == REMOTE_WAITS;
		return trip->answer.result;
	case REMOTE_SWAP:
		return explain_swap(trip, told->code);
	default:
		return told->code == REMOTE_DONE ? STORE_DONE : STORE_WRONG;
	}
}

static void on_told(struct client *client, struct trip *trip,
                    const struct remote_told *told)
{
	enum remote_verb verb = trip->job.verb;
	enum store_result result;

	if (!trip->call && !trip->lends) {
		trip_free(client, trip); /* it was given up meanwhile */
		return;
	}
	if (is_look(trip)) {
		on_look(client, trip, told);
		return;
	}
	if (verb == REMOTE_READ && trip->reminds) {
		on_read_to_remind(client, trip, told);
		return;
	}
	if (verb == REMOTE_READ) {
		on_read(client, trip, told);
		return;
	}
	result = explain(trip, told);
	if (trip->reminds && result == STORE_DONE) {
		lend_reminded(trip);
		go_again(client, trip);
		return;
	}
	note_result(client, trip, result);
	if (result == STORE_BUSY)
		go_again(client, trip);
	else
		tell(client, trip, result);
}

/* ---- Batches --------------------------------------------------------------------- */

/* A batch without jobs is over: then it is about the lane's trips, which wait for it. */
static void take_trips(struct batch *batch, struct list *ret_held)
{
	if (batch->count == 0)
		empty(batch->lane, ret_held);
	else
		list_init(ret_held);
	for (size_t i = 0; i < batch->count; i++)
		list_append(ret_held, &batch->trips[i]->place);
}

static void end_batch(struct client *client, struct batch *batch,
                      enum store_result result)
{
	struct list held;

	take_trips(batch, &held);
	enlist(client, batch->lane);
	tell_all(client, &held, result);
}

static void send_again(struct client *client, struct batch *batch)
{
	struct list held, *place;

	take_trips(batch, &held);
	while ((place = list_first(&held))) {
		struct trip *trip = list_item(place, struct trip, place);

		list_remove(place);
		go_again(client, trip);
	}
	enlist(client, batch->lane);
}

static void hear(struct client *client, struct line *line, struct batch *batch,
                 const struct wire_reply *reply)
{
	client->gates[line->node].told = client->now;
	for (size_t i = 0; i < batch->count; i++)
		on_told(client, batch->trips[i], &reply->told[i]);
	enlist(client, batch->lane);
}

static void hear_generation(struct client *client, struct line *line, struct lane *lane,
                            const struct wire_reply *reply)
{
	gale_assert(reply->generation.count <= REMOTE_GENERATION_BYTES);
	lane->greeted = line->epoch;
	client->gates[line->node].told = client->now;
	lane->since_us = reply->since_us;
	lane->generation_count = reply->generation.count;
	memcpy(lane->generation, reply->generation.bytes, lane->generation_count);
	enlist(client, lane);
}

/* Some of its keys are here and some there, or the node is not sure of itself: each key is
 * for itself, a little later. */
static void go_later(struct client *client, struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		batch->trips[i]->alone = true;
	batch->lane->asked = MAP_NOWHERE;
	doubt(client);
	send_again(client, batch);
	rest(client, batch->lane);
}

/* What a node that has lost the bucket said of it is of no more use: it may have it again
 * when others had it meanwhile. */
static void go_elsewhere(struct client *client, struct line *line, struct batch *batch,
                         const struct wire_reply *reply)
{
	struct map *map = client->config.map;
	struct lane *lane = batch->lane;
	bool moved = reply->kind == WIRE_MOVED;
	uint32_t node =
	    moved ? map->ops->moved(map, lane->bucket, line->node, &reply->place)
		  : map->ops->other(map, line->node, &reply->place);

	lane->asked =
	    !moved && node != MAP_NOWHERE && line_to(client, node) ? node : MAP_NOWHERE;
	if (moved) {
		lane->greeted = 0;
		client->gates[line->node].doubts++;
		doubt(client);
	}
	send_again(client, batch);
	if (node == MAP_NOWHERE)
		rest(client, lane);
}

static void on_replied(struct client *client, struct line *line, struct batch *batch,
                       const struct wire_reply *reply)
{
	switch (reply->kind) {
	case WIRE_TOLD:
		if (batch->count == 0)
			hear_generation(client, line, batch->lane, reply);
		else
			hear(client, line, batch, reply);
		break;
	case WIRE_AGAIN:
		batch->lane->greeted = 0;
		send_again(client, batch); /* B2 */
		break;
	case WIRE_NOT_NOW:
		go_later(client, batch);
		break;
	case WIRE_MOVED:
	case WIRE_ASK:
		go_elsewhere(client, line, batch, reply);
		break;
	case WIRE_LATER:
		end_batch(client, batch, STORE_DOWN);
		break;
	case WIRE_WRONG:
		end_batch(client, batch, STORE_WRONG);
	}
}

static void on_over(struct line_home *self, struct line *line, struct batch *batch,
                    const struct wire_reply *reply)
{
	struct client *client = (struct client *)self;
	struct lane *lane = batch->lane;

	if (batch->count == 0) {
		if (lane->asking != line->epoch)
			return; /* it has gone elsewhere */
		lane->asking = 0;
	}
	if (reply)
		on_replied(client, line, batch, reply);
	else
		end_batch(client, batch,
		          batch->count > 0 ? STORE_LATE : STORE_DOWN); /* C2 */
}

/* Who was sent there by others goes back to where the bucket is. */
static void leave_asked(struct client *client, uint32_t node)
{
	for (uint32_t i = 0; i < client->lane_count; i++)
		if (client->lanes[i].asked == node) {
			client->lanes[i].asked = MAP_NOWHERE;
			enlist(client, &client->lanes[i]);
		}
}

static void on_lost(struct line_home *self, struct line *line, bool was_ready)
{
	struct client *client = (struct client *)self;

	leave_asked(client, line->node);
	doubt(client);
	if (!was_ready)
		tell_lanes(client, &client->gates[line->node].lanes, STORE_DOWN);
}

/* ---- Sending --------------------------------------------------------------------- */

/* When what is known at the end of this line began. */
static uint64_t since_of(const struct line *line, const struct lane *lane)
{
	return line->wire->by_buckets ? lane->since_us : line->wire->since_us;
}

static uint64_t not_before(const struct client *client, const struct line *line,
                           const struct trip *trip)
{
	uint64_t most = client->config.quarantine_us;
	if (trip->reminds)
		return 0; /* nothing is granted by that */
	return quarantine_until(&trip->rule, since_of(line, trip->lane),
	                        most ? most : QUARANTINE_DEFAULT_US); /* C3 */
}

/* What it would be lent, nobody could spend. */
static bool is_in_vain(const struct client *client, const struct trip *trip)
{
	return trip->lends && trip->due.ns > 0 && mono_reached(client->now, trip->due);
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

/* What this node was told in an earlier life, the server may not know. C3 */
static void remind_first(struct trip *trip)
{
	trip->sent_in = trip->lane->life;
	if (trip->job.verb != REMOTE_LEND || trip->seen == 0 ||
	    trip->life == trip->sent_in)
		return;
	trip->reminds = true;
	trip->job.verb = REMOTE_READ;
	trip->job.seen = trip->seen;
}

static void load(struct client *client, const struct line *line, struct batch *batch)
{
	struct list *place;

	note_life(line, batch->lane);
	while ((place = first_to_go(batch->lane))) {
		struct trip *trip = list_item(place, struct trip, place);

		if (!has_room(batch, trip))
			return;
		list_remove(place);
		if (is_in_vain(client, trip)) {
			tell(client, trip, STORE_LATE);
			continue;
		}
		remind_first(trip);
		trip->job.not_before_us = not_before(client, line, trip);
		batch->jobs[batch->count] = trip->job;
		batch->trips[batch->count++] = trip;
	}
}

static void unload(struct batch *batch)
{
	for (size_t i = batch->count; i-- > 0;)
		list_append(batch->lane->again.next, &batch->trips[i]->place);
}

static bool send(struct client *client, struct line *line, struct batch *batch)
{
	struct lane *lane = batch->lane;
	struct remote_batch sent = {
		.bucket = lane->bucket,
		.asking = lane->asked == line->node,
		.generation = { (const uint8_t *)lane->generation,
		                lane->generation_count },
	};

	return line_send(line, batch, &sent, client->now);
}

static bool send_batch(struct client *client, struct line *line, struct lane *lane)
{
	struct batch *batch = line_load(line);

	if (!batch)
		return false;
	batch->lane = lane;
	load(client, line, batch);
	if (batch->count == 0)
		return true; /* all in vain */
	if (!send(client, line, batch)) {
		unload(batch);
		return false;
	}
	lane->asked = MAP_NOWHERE; /* once: whose the bucket is may change */
	return true;
}

static bool ask_generation(struct client *client, struct line *line, struct lane *lane)
{
	struct batch *batch = line_load(line);

	if (!batch)
		return false;
	batch->lane = lane;
	if (!send(client, line, batch))
		return false;
	lane->asking = line->epoch;
	lane->doubts = client->gates[line->node].doubts;
	return true;
}

static bool is_sure(const struct client *client, const struct lane *lane,
                    const struct line *line)
{
	return !line->wire->by_buckets ||
	       lane->doubts == client->gates[line->node].doubts;
}

/* Who has been silent may have been replaced meanwhile, and be in office again. */
static void doubt_silence(struct client *client, struct gate *gate)
{
	if (!mono_reached(client->now, mono_after(gate->told, SURE_NS)))
		return;
	gate->told = client->now;
	gate->doubts++;
}

/* The one that is known may be asked for again without waiting for it: if it is another
 * by then, nothing of the batch is done. */
static bool send_lane(struct client *client, struct line *line, struct lane *lane)
{
	bool sent = true;

	if (!is_greeted(lane, line) || !is_sure(client, lane, line))
		sent = ask_generation(client, line, lane);
	if (sent && is_greeted(lane, line))
		sent = send_batch(client, line, lane);
	return sent;
}

/* A lane's next batch waits until all others have had theirs. */
static bool send_at(struct client *client, struct gate *gate)
{
	struct line *line = gate->line;
	struct list *place;
	bool sent = false;

	line->is_full = false;
	doubt_silence(client, gate);
	for (int i = 0; i < LINE_BATCHES_MOST; i++) {
		struct lane *lane;

		if (line->state != LINE_READY || !(place = list_first(&gate->lanes)))
			return sent;
		lane = list_item(place, struct lane, place);
		if (!send_lane(client, line, lane))
			return sent;
		enlist(client, lane);
		sent = true;
	}
	return sent;
}

/* ---- Asking ---------------------------------------------------------------------- */

static void refuse_overdue(struct client *client, mono now)
{
	struct list *place;

	while ((place = list_first(&client->patience))) {
		struct trip *trip = list_item(place, struct trip, patience);
		struct store_call *call = trip->call;

		if (!mono_reached(now, call->due))
			return;
		trip->call = NULL;
		list_remove(&trip->patience);
		if (list_has(&trip->place)) {
			trip_free(client, trip); /* it has not gone yet */
			if (!first_to_go(trip->lane))
				enlist(client, trip->lane);
		}
		client->config.home->on_done(client->config.home, call, STORE_LATE);
	}
}

static void list_by_due(struct client *client, struct trip *trip)
{
	struct list *at = &client->patience;

	while (at->before != &client->patience &&
	       list_item(at->before, struct trip, patience)->call->due.ns >
	           trip->call->due.ns)
		at = at->before;
	list_append(at, &trip->patience);
}

static struct lane *lane_of(struct client *client, const uint8_t *key, uint32_t key_len)
{
	struct map *map = client->config.map;

	return &client->lanes[map ? map->ops->bucket(map, key, key_len) : 0];
}

static bool is_away(struct client *client, struct lane *lane, mono now)
{
	struct map *map = client->config.map;
	struct gate *gate = gate_of(client, lane);

	return gate ? line_is_away(gate->line, now) : !map->ops->is_learning(map, now);
}

/* NULL: what to say instead. */
static struct trip *trip_for(struct client *client, const uint8_t *key,
                             uint32_t key_len, mono now, enum store_result *ret_result)
{
	struct lane *lane = lane_of(client, key, key_len);
	struct trip *trip;

	*ret_result = STORE_DOWN;
	if (is_away(client, lane, now))
		return NULL;
	*ret_result = STORE_BUSY;
	trip = trip_new(client);
	if (trip)
		trip->lane = lane;
	return trip;
}

static void wait_for_turn(struct client *client, struct trip *trip)
{
	struct lane *lane = trip->lane;
	bool is_first = !first_to_go(lane);

	list_append(&lane->waiting, &trip->place);
	if (is_first)
		enlist(client, lane);
}

void client_begin(struct client *client, struct store_call *call, mono now)
{
	const struct store_op *op = call->op;
	enum store_result refused;
	struct trip *trip = trip_for(client, op->key, op->key_len, now, &refused);

	if (!trip) {
		client->config.home->on_done(client->config.home, call, refused);
		return;
	}
	pack(trip, op->rule, op->key, op->key_len);
	trip->call = call;
	trip->lends = false;
	trip->job.cost = op->cost;
	if (op->verb == STORE_STEP && remote_can_step(op->rule))
		trip->job.verb = REMOTE_STEP;
	else if (op->verb == STORE_RESET)
		trip->job.verb = REMOTE_DROP;
	list_by_due(client, trip);
	wait_for_turn(client, trip);
}

static enum remote_verb job_of(const struct lend_request *request)
{
	if (request->verb == LEND_STATUS || !remote_can_lend(request->rule))
		return REMOTE_READ;
	return request->verb == LEND ? REMOTE_LEND : REMOTE_BACK;
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
	pack(trip, request->rule, request->key, request->key_len);
	trip->call = NULL;
	trip->lends = true;
	trip->due = request->due;
	trip->lend = request->verb;
	trip->seen = request->seen;
	trip->life = request->life;
	trip->job.seen_in = request->seen_in;
	trip->answer = (struct lend_answer){ 0 };
	trip->job.verb = job_of(request);
	trip->job.ask = request->ask;
	trip->job.tag = request->tag;
	trip->job.units = request->units;
	wait_for_turn(client, trip);
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
	struct list *impatient = list_first(&client->patience);
	struct list *tired = list_first(&client->resting);

	if (impatient)
		due = mono_earlier(
		    due, list_item(impatient, struct trip, patience)->call->due);
	if (tired)
		due = mono_earlier(due, list_item(tired, struct lane, place)->rests);
	for (uint32_t i = 0; i < client->gate_count; i++) {
		const struct gate *gate = &client->gates[i];

		if (gate->line)
			due = mono_earlier(
			    due, line_due(gate->line, !list_is_empty(&gate->lanes)));
	}
	return due;
}

static void turn_lines(struct client *client)
{
	for (uint32_t i = 0; i < client->gate_count; i++) {
		struct gate *gate = &client->gates[i];

		if (gate->line)
			line_turn(gate->line, !list_is_empty(&gate->lanes),
			          client->now);
	}
}

static void flush_lines(struct client *client)
{
	for (uint32_t i = 0; i < client->gate_count; i++)
		if (client->gates[i].line)
			line_flush(client->gates[i].line, client->now);
}

static bool send_waiting(struct client *client)
{
	bool sent = false;

	for (uint32_t i = 0; i < client->gate_count; i++)
		if (client->gates[i].line)
			sent |= send_at(client, &client->gates[i]);
	return sent;
}

static void wake_rested(struct client *client)
{
	struct list *place;

	while ((place = list_first(&client->resting))) {
		struct lane *lane = list_item(place, struct lane, place);

		if (!mono_reached(client->now, lane->rests))
			return;
		lane->rests = (mono){ 0 };
		enlist(client, lane);
	}
}

/* ---- The map --------------------------------------------------------------------- */

static void close_gate(struct client *client, struct gate *gate)
{
	struct map *map = client->config.map;
	uint32_t node = gate->line->node;

	line_close(gate->line);
	gate->line = NULL;
	if (map)
		map->ops->drop(map, node);
}

static bool is_of_use(const struct client *client, const struct gate *gate)
{
	struct map *map = client->config.map;

	return !line_is_idle(gate->line) || !list_is_empty(&gate->lanes) ||
	       map->ops->is_needed(map, gate->line->node);
}

static void close_useless(struct client *client)
{
	for (uint32_t i = 0; i < client->gate_count; i++) {
		struct gate *gate = &client->gates[i];

		if (!gate->line || is_of_use(client, gate))
			continue;
		leave_asked(client, i);
		close_gate(client, gate);
	}
}

/* It was learned, or could not be: everybody looks where he belongs now. */
static void follow(struct client *client)
{
	struct map *map = client->config.map;

	client->changes = map->changes;
	client_say(&client->config, map->text);
	count(client, CLIENT_FAILURES, map->text[0] != '\0');
	for (uint32_t i = 0; i < client->lane_count; i++)
		enlist(client, &client->lanes[i]);
	tell_lanes(client, &client->stray, STORE_DOWN);
	close_useless(client);
}

static mono turn_map(struct client *client)
{
	struct map *map = client->config.map;
	mono due = { UINT64_MAX };

	if (map) {
		if (!list_is_empty(&client->stray))
			doubt(client);
		due = map->ops->turn(map, client->now);
		if (client->changes != map->changes)
			follow(client);
	}
	return due;
}

mono client_turn(struct client *client, mono now)
{
	mono due;

	client->now = now;
	refuse_overdue(client, now);
	due = turn_map(client);
	wake_rested(client);
	turn_lines(client);
	if (send_waiting(client))
		flush_lines(client);
	return due_of(client, due);
}

/* ---- Opening and closing --------------------------------------------------------- */

static void init_lanes(struct client *client)
{
	for (uint32_t i = 0; i < client->lane_count; i++) {
		struct lane *lane = &client->lanes[i];

		list_init(&lane->waiting);
		list_init(&lane->again);
		lane->bucket = (uint8_t)i;
		lane->asked = MAP_NOWHERE;
	}
	for (uint32_t i = 0; i < client->gate_count; i++)
		list_init(&client->gates[i].lanes);
}

static void client_free(struct client *client)
{
	struct gale_allocator *allocator = client->config.allocator;

	memory_give(allocator, client->lanes, client->lane_count * sizeof(struct lane));
	memory_give(allocator, client->gates, client->gate_count * sizeof(struct gate));
	memory_give(allocator, client->words, client->word_count * sizeof(uint64_t));
	memory_give(allocator, client, sizeof(*client));
}

static bool furnish(struct client *client)
{
	struct gale_allocator *allocator = client->config.allocator;
	bool many = client->config.map != NULL;

	client->lane_count = many ? MAP_BUCKETS : 1;
	client->gate_count = many ? MAP_NODES_MOST : 1;
	client->lanes =
	    memory_take(allocator, client->lane_count * sizeof(struct lane));
	client->gates =
	    memory_take(allocator, client->gate_count * sizeof(struct gate));
	if (!client->lanes || !client->gates)
		return false;
	init_lanes(client);
	if (!many)
		client->gates[0].line =
		    line_open(&client->config, &client->home, client->config.wire, 0,
		              &client->epochs);
	return many || client->gates[0].line;
}

struct client *client_open(const struct client_config *config)
{
	struct client *client = memory_take(config->allocator, sizeof(*client));

	if (!client)
		return NULL;
	client->home.on_over = on_over;
	client->home.on_lost = on_lost;
	client->config = *config;
	list_init(&client->free);
	list_init(&client->patience);
	list_init(&client->resting);
	list_init(&client->stray);
	if (furnish(client))
		return client;
	client_free(client);
	return NULL;
}

static void free_trips(struct client *client)
{
	struct list *place;

	while ((place = list_first(&client->free))) {
		list_remove(place);
		memory_give(client->config.allocator,
		            list_item(place, struct trip, place), sizeof(struct trip));
		client->trip_count--;
	}
	gale_assert(client->trip_count == 0);
}

void client_close(struct client *client)
{
	struct map *map = client->config.map;

	client->is_closing = true;
	for (uint32_t i = 0; i < client->gate_count; i++)
		if (client->gates[i].line)
			close_gate(client, &client->gates[i]);
	for (uint32_t i = 0; i < client->lane_count; i++)
		tell_lane(client, &client->lanes[i], STORE_LATE); /* C1 */
	if (map)
		map->ops->free(map);
	free_trips(client);
	client_free(client);
}
