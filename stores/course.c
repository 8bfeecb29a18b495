/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * course.c -- read, swap, again.
 *
 * Threads   The shard's actor, as in course.h.  A trip is this file's while it is in no
 *           list; of those ahead of it, only what their swaps will make is read.
 */
#include "stores/course.h"

#include <stdio.h>
#include <string.h>

static void count(const struct lanes *lanes, enum client_counter counter, uint64_t by)
{
	client_count(lanes->config, counter, by);
}

static bool is_quarantined(const struct trip *trip, enum store_result result)
{
	return trip->lends ? result == STORE_DONE && trip->answer.waits
	                   : result == STORE_QUARANTINE;
}

/* For all shards only the first says so. */
static void note_quarantine(const struct lanes *lanes, const struct trip *trip,
                            const struct remote_told *told)
{
	const struct client_config *config = lanes->config;
	uint64_t left_us = trip->job.not_before_us - told->now_us;
	char text[WIRE_TEXT];

	count(lanes, CLIENT_QUARANTINED, 1);
	if (!notice_begin(config->notice, lanes->now, left_us))
		return;
	snprintf(text, sizeof(text),
	         "the server may have forgotten what it granted: it grants nothing for "
	         "%.1f s, and of longer windows for %.1f s at most",
	         (double)left_us / 1e6, (double)config->quarantine_us / 1e6);
	trouble_tell(config->trouble, GALE_LEVEL_ERROR, text);
}

static void note_result(const struct lanes *lanes, const struct trip *trip,
                        enum store_result result, const struct remote_told *told)
{
	bool done = result == STORE_DONE;

	if (is_quarantined(trip, result))
		note_quarantine(lanes, trip, told);

	count(lanes, CLIENT_CHANGED, result == STORE_CHANGED);
	count(lanes, CLIENT_WRONG, result == STORE_WRONG);
	count(lanes, CLIENT_BROKEN, result == STORE_BROKEN);
	if (!trip->lends)
		count(lanes, CLIENT_STEPS, done && trip->call->op->verb == STORE_STEP);
	else if (trip->lend == LEND)
		count(lanes, CLIENT_LEASES, done && trip->answer.grant.units > 0);
	else
		count(lanes, CLIENT_RETURNS, done && trip->lend == LEND_BACK);
}

/* It is over. */
static void settle(struct lanes *lanes, struct trip *trip, enum store_result result,
                   const struct remote_told *told)
{
	note_result(lanes, trip, result, told);
	trip_tell(lanes->trips, trip, result);
}

/* A desk for what was told, whose bytes the trip takes along. */
static bool have_desk(struct lanes *lanes, struct trip *trip,
                      const struct remote_told *told, struct remote_desk *ret_desk)
{
	size_t was = told->before.count;

	if (!trip_have_room(lanes->trips, trip, was))
		return false;
	if (was > 0)
		memcpy(trip->bytes, told->before.bytes, was);
	*ret_desk =
	    (struct remote_desk){ lanes->trips->words, remote_words(&trip->rule, was),
		                  trip->bytes + was };
	return true;
}

/* ---- A value that was read ------------------------------------------------------- */

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
	trip->answer.life = trip->sent_in;
	trip->answer.waits = told->now_us < trip->job.not_before_us;
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

/* Of many that want to change one key, each goes on from what the one ahead of it makes
 * of the value, so that all of their swaps can succeed.  A trip that is settled without a
 * swap is settled by what was told only: behind others its value is read again. */
static void on_read(struct lanes *lanes, struct trip *trip,
                    const struct remote_told *told)
{
	const struct trip *ahead = ahead_of(trip);
	enum store_result result = STORE_NO_MEMORY;
	struct remote_told found = *told;
	struct remote_desk desk;

	if (ahead && told->code == REMOTE_DONE)
		found.before = ahead->job.becomes;
	if (have_desk(lanes, trip, &found, &desk) &&
	    prepare(trip, &found, &desk, &result))
		lane_go_on(trip);
	else if (ahead && result != STORE_NO_MEMORY)
		lane_go_again(lanes, trip);
	else
		settle(lanes, trip, result, told);
}

static void on_look(struct lanes *lanes, struct trip *trip,
                    const struct remote_told *told)
{
	enum store_result result = STORE_NO_MEMORY;
	struct remote_desk desk;

	if (have_desk(lanes, trip, told, &desk))
		result = remote_explain_look(&trip->job, told, &desk, trip->call->op);
	settle(lanes, trip, result, told);
}

/* ---- Reminders ------------------------------------------------------------------- */

/* The server may not know what this node was told in an earlier life. CLIENT-3 */
void course_start(struct trip *trip)
{
	trip->sent_in = trip->lane->life;
	if (trip->job.verb != REMOTE_LEND || trip->seen == 0 ||
	    trip->life == trip->sent_in)
		return;
	trip->reminds = true;
	trip->job.verb = REMOTE_READ;
	trip->job.seen = trip->seen;
}

static void lend_reminded(struct trip *trip)
{
	trip->reminds = false;
	trip->life = trip->sent_in;
	trip->job.verb = REMOTE_LEND;
	trip->job.seen = 0;
}

/* A value that cannot be reminded need not be, or says so when it is asked to lend. */
static void on_read_to_remind(struct lanes *lanes, struct trip *trip,
                              const struct remote_told *told)
{
	struct remote_told read = *told;
	struct remote_desk desk;

	if (!have_desk(lanes, trip, told, &desk)) {
		trip_tell(lanes->trips, trip, STORE_NO_MEMORY);
		return;
	}
	read.before.bytes = trip->bytes;
	if (!remote_prepare_reminder(&trip->job, &read, &desk))
		lend_reminded(trip);
	lane_go_again(lanes, trip);
}

/* ---- What was told --------------------------------------------------------------- */

static bool is_look(const struct trip *trip)
{
	return trip->call && (trip->call->op->verb == STORE_PEEK ||
	                      trip->call->op->verb == STORE_FORECAST);
}

/* The value that is there now was not told, or the server has forgotten the one that was read:
 * reading it again shows either. */
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
		return trip->answer.result;
	case REMOTE_SWAP:
		return explain_swap(trip, told->code);
	case REMOTE_BEAT:
		return remote_explain_beat(told, trip->call->op->beat);
	case REMOTE_CLAIM:
		return remote_explain_claim(told, trip->call->op->claim);
	default:
		return told->code == REMOTE_DONE ? STORE_DONE : STORE_WRONG;
	}
}

void course_go_on(struct lanes *lanes, struct trip *trip,
                  const struct remote_told *told)
{
	enum remote_verb verb = trip->job.verb;
	enum store_result result;

	if (!trip_is_wanted(trip)) {
		trip_free(lanes->trips, trip); /* it was given up meanwhile */
		return;
	}
	if (is_look(trip)) {
		on_look(lanes, trip, told);
		return;
	}
	if (verb == REMOTE_READ && trip->reminds) {
		on_read_to_remind(lanes, trip, told);
		return;
	}
	if (verb == REMOTE_READ) {
		on_read(lanes, trip, told);
		return;
	}
	result = explain(trip, told);
	if (result == STORE_CHANGED && verb != REMOTE_SWAP) {
		trip->job.verb = REMOTE_READ; /* to be converted, and swapped */
		lane_go_again(lanes, trip);
		return;
	}
	if (trip->reminds && result == STORE_DONE) {
		lend_reminded(trip);
		lane_go_again(lanes, trip);
		return;
	}
	note_result(lanes, trip, result, told);
	if (result == STORE_BUSY)
		lane_go_again(lanes, trip);
	else
		trip_tell(lanes->trips, trip, result);
}
