/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* client.c -- trips, batches, and a connection that comes and goes. */
#include "stores/client.h"

#include <stdio.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/list.h"
#include "runtime/memory.h"
#include "stores/quarantine.h"

#define BATCHES_MOST 16                 /* under way at a time */
#define TRIES_MOST 64                   /* of a value that others keep changing */
#define OPENING_NS UINT64_C(1000000000) /* for a connection to be ready */
#define REPLY_NS UINT64_C(1000000000)   /* for a batch to be told */
#define PAUSE_FIRST_NS 10000000         /* 10 ms, doubled ... */
#define PAUSE_DOUBLINGS 5               /* ... up to 320 ms, and half of it by lot */
#define QUARANTINE_DEFAULT_US UINT64_C(60000000)

struct trip {
	struct list place;       /* waiting, again, or free */
	struct list patience;    /* of calls, the first due first */
	struct store_call *call; /* NULL: it lends, or nobody waits any more */
	bool lends;
	mono due; /* of a loan: from then on nobody wants it; 0: never */
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

struct batch {
	uint64_t nonce;
	mono due;
	size_t count;
	struct trip *trips[REMOTE_BATCH_MOST];
	struct remote_job jobs[REMOTE_BATCH_MOST];
};

enum connection {
	LINE_AWAY, /* no connection */
	LINE_OPENING,
	LINE_READY,
};

struct client {
	struct wire_home home; /* first: replies come here */
	struct client_config config;
	enum connection state;
	bool broken;    /* a reply was such that the connection must go */
	mono state_due; /* away: when to try again; opening: when it takes too long */
	uint32_t failures;
	uint64_t lot;
	uint64_t now_ns;   /* of this turn */
	uint64_t since_us; /* the generation's that was last sent to, and its number */
	uint8_t life;
	int64_t ahead_us; /* the server's clock, of this node's */
	bool knows_clock;
	uint32_t trip_count;
	struct list free;
	struct list waiting;
	struct list again; /* these go first, in the order they came back */
	struct list patience;
	uint64_t nonce; /* of the latest batch */
	uint64_t done;  /* batches that are over: the oldest under way is the next */
	struct batch batches[BATCHES_MOST];
	uint64_t *words; /* a desk for values of any length */
	size_t word_count;
};

static void count(struct client *client, enum client_counter counter, uint64_t by)
{
	_Atomic uint64_t *at = &client->config.counters[counter];

	store_relaxed(at, load_relaxed(at) + by);
}

static void say(const struct client *client, const char *text)
{
	if (client->config.say && text[0] != '\0')
		client->config.say(client->config.sayer, text);
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

/* Nothing of it was done, as far as the server says. */
static void go_again(struct client *client, struct trip *trip)
{
	if (!trip->call && !trip->lends)
		trip_free(client, trip); /* nobody waits */
	else if (trip->tries++ == TRIES_MOST)
		tell(client, trip, STORE_BUSY);
	else
		list_append(&client->again, &trip->place);
}

static bool is_any_waiting(const struct client *client)
{
	return !list_is_empty(&client->again) || !list_is_empty(&client->waiting);
}

static struct list *first_to_go(const struct client *client)
{
	struct list *place = list_first(&client->again);

	return place ? place : list_first(&client->waiting);
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
static const struct trip *ahead_of(const struct client *client, const struct trip *trip)
{
	const struct list *at = client->again.before;

	for (int i = 0; i < REMOTE_BATCH_MOST && at != &client->again; i++) {
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
	const struct trip *ahead = ahead_of(client, trip);
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

static struct batch *batch_at(struct client *client, uint64_t nonce)
{
	return &client->batches[nonce % BATCHES_MOST];
}

static struct batch *oldest(struct client *client)
{
	return client->done < client->nonce ? batch_at(client, client->done + 1) : NULL;
}

/* Its clock was read while the reply was on its way: this is late by that, at most. */
static void note_clock(struct client *client, const struct wire_reply *reply)
{
	if (reply->kind != WIRE_TOLD || reply->count == 0)
		return;
	client->ahead_us =
	    (int64_t)reply->told[0].now_us - (int64_t)(client->now_ns / 1000);
	client->knows_clock = true;
}

static void end_batch(struct client *client, struct batch *batch,
                      enum store_result result)
{
	client->done++;
	for (size_t i = 0; i < batch->count; i++)
		tell(client, batch->trips[i], result);
}

static void send_again(struct client *client, struct batch *batch)
{
	client->done++;
	for (size_t i = 0; i < batch->count; i++)
		go_again(client, batch->trips[i]);
}

static void hear(struct client *client, struct batch *batch,
                 const struct wire_reply *reply)
{
	client->done++;
	count(client, CLIENT_ROUND_TRIPS, 1);
	for (size_t i = 0; i < batch->count; i++)
		on_told(client, batch->trips[i], &reply->told[i]);
}

/* B1 */
static void on_reply(struct wire_home *home, const struct wire_reply *reply)
{
	struct client *client = (struct client *)home;
	struct batch *batch = oldest(client);

	if (!batch || batch->nonce != reply->nonce ||
	    (reply->kind == WIRE_TOLD && reply->count != batch->count)) {
		client->broken = true; /* what is under way is then not known */
		count(client, CLIENT_WRONG, 1);
		return;
	}
	note_clock(client, reply);
	switch (reply->kind) {
	case WIRE_TOLD:
		hear(client, batch, reply);
		break;
	case WIRE_AGAIN:
		send_again(client, batch); /* B2 */
		break;
	case WIRE_LATER:
		client->broken = true;
		end_batch(client, batch, STORE_DOWN);
		break;
	case WIRE_WRONG:
		client->broken = true;
		count(client, CLIENT_WRONG, 1);
		end_batch(client, batch, STORE_WRONG);
	}
}

/* ---- The connection -------------------------------------------------------------- */

static uint64_t pause_ns(struct client *client)
{
	uint32_t doublings =
	    client->failures < PAUSE_DOUBLINGS ? client->failures : PAUSE_DOUBLINGS;
	uint64_t pause = (uint64_t)PAUSE_FIRST_NS << doublings;

	client->lot = client->lot * UINT64_C(6364136223846793005) + 1442695040888963407;
	return pause + pause * (client->lot >> 33) / (UINT64_C(1) << 32);
}

static void tell_waiting(struct client *client, enum store_result result)
{
	struct list held;
	struct list *place;

	list_init(&held);
	while ((place = first_to_go(client))) {
		list_remove(place);
		list_append(&held, place);
	}
	while ((place = list_first(&held)))
		tell(client, list_item(place, struct trip, place), result);
}

/* Whether what is under way was done is not known. C2 */
static void lose(struct client *client, mono now)
{
	bool was_ready = client->state == LINE_READY;
	struct batch *batch;

	client->config.wire->ops->hang_up(client->config.wire);
	client->state = LINE_AWAY;
	client->state_due =
	    mono_after(now, was_ready && client->failures == 0 ? 0 : pause_ns(client));
	client->failures++;
	client->broken = false;
	count(client, CLIENT_FAILURES, 1);
	say(client, client->config.wire->text);
	while ((batch = oldest(client)))
		end_batch(client, batch, STORE_LATE);
	if (!was_ready)
		tell_waiting(client, STORE_DOWN);
}

static bool is_overdue(struct client *client, mono now)
{
	struct batch *batch = oldest(client);

	if (client->state == LINE_OPENING && mono_reached(now, client->state_due)) {
		snprintf(client->config.wire->text, WIRE_TEXT,
		         "no connection within a second");
		return true;
	}
	if (!batch || !mono_reached(now, batch->due))
		return false;
	snprintf(client->config.wire->text, WIRE_TEXT, "no reply within a second");
	return true;
}

static void enter(struct client *client, enum wire_state state, mono now)
{
	if (state == WIRE_READY && client->state == LINE_OPENING) {
		client->state = LINE_READY;
		client->failures = 0;
		count(client, CLIENT_CONNECTS, 1);
		say(client, client->config.wire->text);
	} else if (state == WIRE_OPENING && client->state == LINE_READY) {
		client->state = LINE_OPENING;
		client->state_due = mono_after(now, OPENING_NS);
	}
}

static void turn_wire(struct client *client, mono now)
{
	struct wire *wire = client->config.wire;
	enum wire_state state;

	if (client->state == LINE_AWAY) {
		if (!is_any_waiting(client) || !mono_reached(now, client->state_due))
			return;
		wire->text[0] = '\0';
		wire->ops->connect(wire, now);
		client->state = LINE_OPENING;
		client->state_due = mono_after(now, OPENING_NS);
	}
	state = wire->ops->turn(wire, now);
	if (state == WIRE_BROKEN || client->broken || is_overdue(client, now))
		lose(client, now);
	else
		enter(client, state, now);
}

/* ---- Sending --------------------------------------------------------------------- */

static uint64_t guess_us(const struct client *client)
{
	int64_t guess = (int64_t)(client->now_ns / 1000) + client->ahead_us;

	return client->knows_clock && guess > 0 ? (uint64_t)guess : 0;
}

static uint64_t not_before(const struct client *client, const struct trip *trip)
{
	uint64_t most = client->config.quarantine_us;

	if (trip->reminds)
		return 0; /* nothing is granted by that */
	return quarantine_until(&trip->rule, client->config.wire->since_us,
	                        most ? most : QUARANTINE_DEFAULT_US); /* C3 */
}

/* What it would be lent, nobody could spend. */
static bool is_in_vain(const struct client *client, const struct trip *trip)
{
	return trip->lends && trip->due.ns > 0 &&
	       mono_reached((mono){ client->now_ns }, trip->due);
}

static void note_life(struct client *client)
{
	if (client->since_us == client->config.wire->since_us)
		return;
	client->since_us = client->config.wire->since_us;
	if (++client->life == 0)
		client->life = 1;
}

/* What this node was told in an earlier life, the server may not know. C3 */
static void remind_first(const struct client *client, struct trip *trip)
{
	trip->sent_in = client->life;
	if (trip->job.verb != REMOTE_LEND || trip->seen == 0 ||
	    trip->life == client->life)
		return;
	trip->reminds = true;
	trip->job.verb = REMOTE_READ;
	trip->job.seen = trip->seen;
}

static size_t load(struct client *client, struct batch *batch)
{
	struct list *place;

	batch->count = 0;
	note_life(client);
	while (batch->count < REMOTE_BATCH_MOST && (place = first_to_go(client))) {
		struct trip *trip = list_item(place, struct trip, place);

		list_remove(place);
		if (is_in_vain(client, trip)) {
			tell(client, trip, STORE_LATE);
			continue;
		}
		remind_first(client, trip);
		trip->job.not_before_us = not_before(client, trip);
		batch->jobs[batch->count] = trip->job;
		batch->trips[batch->count++] = trip;
	}
	return batch->count;
}

static void unload(struct client *client, struct batch *batch)
{
	for (size_t i = batch->count; i-- > 0;)
		list_append(client->again.next, &batch->trips[i]->place);
}

static bool send_batch(struct client *client, mono now)
{
	struct wire *wire = client->config.wire;
	struct batch *batch = batch_at(client, client->nonce + 1);
	struct remote_batch sent = {
		.nonce = client->nonce + 1,
		.jobs = batch->jobs,
		.count = load(client, batch),
		.guess_us = guess_us(client),
	};

	if (sent.count == 0 || !wire->ops->send(wire, &sent)) {
		unload(client, batch);
		return false;
	}
	batch->nonce = ++client->nonce;
	batch->due = mono_after(now, REPLY_NS);
	return true;
}

static bool send_waiting(struct client *client, mono now)
{
	bool sent = false;

	while (client->state == LINE_READY && is_any_waiting(client) &&
	       client->nonce - client->done < BATCHES_MOST && send_batch(client, now))
		sent = true;
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
		if (list_has(&trip->place))
			trip_free(client, trip); /* it has not gone yet */
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

static bool is_away(const struct client *client, mono now)
{
	return client->state == LINE_AWAY && !mono_reached(now, client->state_due);
}

void client_begin(struct client *client, struct store_call *call, mono now)
{
	struct trip *trip = is_away(client, now) ? NULL : trip_new(client);
	const struct store_op *op = call->op;

	if (!trip) {
		client->config.home->on_done(client->config.home, call,
		                             is_away(client, now) ? STORE_DOWN
		                                                  : STORE_BUSY);
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
	list_append(&client->waiting, &trip->place);
	list_by_due(client, trip);
}

static enum remote_verb job_of(const struct lend_request *request)
{
	if (request->verb == LEND_STATUS || !remote_can_lend(request->rule))
		return REMOTE_READ;
	return request->verb == LEND ? REMOTE_LEND : REMOTE_BACK;
}

static void lend(struct client *client, const struct lend_request *request, mono now)
{
	struct trip *trip = is_away(client, now) ? NULL : trip_new(client);
	struct lend_answer refused = {
		.number = request->ask.number,
		.result = is_away(client, now) ? STORE_DOWN : STORE_BUSY,
	};

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
	list_append(&client->waiting, &trip->place);
}

void client_lend(struct client *client, const struct lend_request *requests,
                 size_t count, mono now)
{
	for (size_t i = 0; i < count; i++)
		lend(client, &requests[i], now);
}

/* ---- Turns ----------------------------------------------------------------------- */

static mono due_of(struct client *client)
{
	struct list *impatient = list_first(&client->patience);
	struct batch *batch = oldest(client);
	mono due = { UINT64_MAX };

	if (impatient)
		due = list_item(impatient, struct trip, patience)->call->due;
	if (batch)
		due = mono_earlier(due, batch->due);
	if (client->state == LINE_OPENING ||
	    (client->state == LINE_AWAY && is_any_waiting(client)))
		due = mono_earlier(due, client->state_due);
	return due;
}

mono client_turn(struct client *client, mono now)
{
	client->now_ns = now.ns;
	refuse_overdue(client, now);
	turn_wire(client, now);
	if (send_waiting(client, now))
		turn_wire(client, now);
	return due_of(client);
}

struct client *client_open(const struct client_config *config)
{
	struct client *client = memory_take(config->allocator, sizeof(*client));

	if (!client)
		return NULL;
	client->home.on_reply = on_reply;
	client->config = *config;
	client->config.wire->home = &client->home;
	client->lot = config->seed;
	client->life = 1;
	list_init(&client->free);
	list_init(&client->waiting);
	list_init(&client->again);
	list_init(&client->patience);
	return client;
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
	struct gale_allocator *allocator = client->config.allocator;
	struct batch *batch;

	client->config.wire->ops->free(client->config.wire);
	while ((batch = oldest(client)))
		end_batch(client, batch, STORE_LATE);
	tell_waiting(client, STORE_LATE); /* C1 */
	free_trips(client);
	memory_give(allocator, client->words, client->word_count * sizeof(uint64_t));
	memory_give(allocator, client, sizeof(*client));
}
