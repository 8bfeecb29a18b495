/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * line.c -- connects, waits, gives up, pauses, connects.
 *
 * The jobs of a batch lie side by side, since a wire wants them so; batches are over in
 * their order, and so the places of their jobs go round.
 */
#include "stores/line.h"

#include <stdio.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"

#define OPENING_NS UINT64_C(1000000000) /* for a connection to be ready */
#define REPLY_NS (WIRE_PATIENCE_MS * UINT64_C(1000000))
#define RETRY_NS UINT64_C(10000000) /* of a batch that there was no memory for */
#define PAUSE_FIRST_NS 10000000     /* 10 ms, doubled ... */
#define PAUSE_DOUBLINGS 5           /* ... up to 320 ms, and half of it by lot */

/* ---- Batches --------------------------------------------------------------------- */

static struct batch *batch_at(struct line *line, uint64_t nonce)
{
	return &line->batches[nonce % LINE_BATCHES_MOST];
}

bool line_is_idle(const struct line *line)
{
	return line->done == line->nonce;
}

static struct batch *oldest(struct line *line)
{
	return line_is_idle(line) ? NULL : batch_at(line, line->done + 1);
}

/* Where a whole batch of jobs has room without going round. */
static size_t next_place(const struct line *line)
{
	size_t at = line->jobs_next % LINE_JOBS_MOST;

	if (at + REMOTE_BATCH_MOST <= LINE_JOBS_MOST)
		return line->jobs_next;
	return line->jobs_next + (LINE_JOBS_MOST - at);
}

struct batch *line_load(struct line *line)
{
	struct batch *batch = batch_at(line, line->nonce + 1);
	size_t place = next_place(line), at = place % LINE_JOBS_MOST;

	line->is_full = line->nonce - line->done == LINE_BATCHES_MOST ||
	                place + REMOTE_BATCH_MOST - line->jobs_done > LINE_JOBS_MOST;
	if (line->is_full)
		return NULL;
	*batch = (struct batch){ .nonce = line->nonce + 1,
		                 .first = place,
		                 .room = flow_room(&line->flow),
		                 .jobs = &line->jobs[at],
		                 .trips = &line->trips[at] };
	return batch;
}

static uint64_t guess_us(const struct line *line)
{
	int64_t guess = (int64_t)(line->now_ns / 1000) + line->ahead_us;

	return line->knows_clock && guess > 0 ? (uint64_t)guess : 0;
}

bool line_send(struct line *line, struct batch *batch, struct remote_batch *sent,
               mono now)
{
	sent->nonce = batch->nonce;
	sent->jobs = batch->jobs;
	sent->count = batch->count;
	sent->guess_us = guess_us(line);
	sent->told_us = line->told_us;
	line->is_full = !line->wire->ops->send(line->wire, sent);
	if (line->is_full)
		return false;
	batch->sent = now;
	batch->due = mono_after(now, REPLY_NS);
	batch->is_alone = flow_sent(&line->flow, batch->count);
	line->nonce++;
	line->jobs_next = batch->first + batch->count;
	return true;
}

/* LINE-5 */
static void note_flow(struct line *line, const struct batch *batch, bool is_told)
{
	const struct flow_reply reply = {
		.jobs = batch->count,
		.took_ns = line->now_ns - batch->sent.ns,
		.patience_ns =
		    batch->waiting > 0 ? batch->patience_ns / batch->waiting : 0,
		.was_alone = batch->is_alone,
	};

	if (is_told && batch->count > 0)
		flow_heard(&line->flow, &reply);
	else
		flow_lost(&line->flow, batch->count);
}

static void end_batch(struct line *line, struct batch *batch,
                      const struct wire_reply *reply)
{
	note_flow(line, batch, reply && reply->kind == WIRE_TOLD);
	line->done++;
	line->jobs_done =
	    line_is_idle(line) ? line->jobs_next : batch->first + batch->count;
	line->home->on_over(line->home, line, batch, reply); /* LINE-1 */
}

/* Its clock was read while the reply was on its way: this is late by that, at most. */
static void note_clock(struct line *line, const struct wire_reply *reply)
{
	if (reply->kind != WIRE_TOLD || reply->count == 0)
		return;
	line->ahead_us =
	    (int64_t)reply->told[0].now_us - (int64_t)(line->now_ns / 1000);
	line->knows_clock = true;
	line->told_us = reply->told[0].now_us;
}

/* LINE-3 */
static void be_well(struct line *line)
{
	mono now = { line->now_ns };

	if (line->failures > 0)
		trouble_over(line->config->trouble, line->wire->where, now);
	line->failures = 0;
}

/* WIRE-1 */
static void on_reply(struct wire_home *home, const struct wire_reply *reply)
{
	struct line *line = (struct line *)home;
	struct batch *batch = oldest(line);

	if (!batch || batch->nonce != reply->nonce ||
	    (reply->kind == WIRE_TOLD && reply->count != batch->count)) {
		line->broken = true; /* what is under way is then not known */
		client_count(line->config, CLIENT_WRONG, 1);
		return;
	}
	note_clock(line, reply);
	line->broken |= reply->kind == WIRE_LATER || reply->kind == WIRE_WRONG;
	client_count(line->config, CLIENT_WRONG, reply->kind == WIRE_WRONG);
	client_count(line->config, CLIENT_ROUND_TRIPS,
	             reply->kind == WIRE_TOLD && batch->count > 0);
	if (reply->kind == WIRE_TOLD && batch->count > 0)
		be_well(line);
	end_batch(line, batch, reply);
}

static void on_nudge(struct wire_home *home, const struct store_nudge *nudge)
{
	const struct line *line = (const struct line *)home;

	if (line->config->home->nudges)
		store_put_nudge(line->config->home->nudges, nudge);
}

/* ---- The connection -------------------------------------------------------------- */

static uint64_t pause_ns(struct line *line)
{
	uint32_t doublings =
	    line->failures < PAUSE_DOUBLINGS ? line->failures : PAUSE_DOUBLINGS;
	uint64_t pause = (uint64_t)PAUSE_FIRST_NS << doublings;

	line->lot = line->lot * UINT64_C(6364136223846793005) + 1442695040888963407;
	return pause + pause * (line->lot >> 33) / (UINT64_C(1) << 32);
}

bool line_is_away(const struct line *line, mono now)
{
	return line->state == LINE_AWAY && !mono_reached(now, line->state_due);
}

/* A server may close a connection that is not in use: nothing is lost by that. */
static enum gale_level level_of_loss(const struct line *line)
{
	bool was_idle = line->state == LINE_READY && line_is_idle(line);

	return was_idle && line->failures == 0 ? GALE_LEVEL_INFO : GALE_LEVEL_ERROR;
}

static void lose(struct line *line, mono now)
{
	enum gale_level level = level_of_loss(line);
	bool was_ready = line->state == LINE_READY;
	struct batch *batch;

	line->wire->ops->hang_up(line->wire);
	line->state = LINE_AWAY;
	line->state_due =
	    mono_after(now, was_ready && line->failures == 0 ? 0 : pause_ns(line));
	line->failures++;
	line->broken = false;
	client_count(line->config, CLIENT_FAILURES, 1);
	trouble_say(line->config->trouble, line->wire->where, level, line->wire->text,
	            now);
	while ((batch = oldest(line)))
		end_batch(line, batch, NULL);
	line->home->on_lost(line->home, line, was_ready);
}

/* With what was in its way, if that is known. */
static void say_no_connection(struct wire *wire)
{
	char why[WIRE_TEXT] = "";

	if (wire->text[0] != '\0')
		memcpy(why, wire->text, sizeof(why));
	else if (wire->waits_for)
		snprintf(why, sizeof(why), "%s", wire->waits_for);
	snprintf(wire->text, WIRE_TEXT, "no connection within a second%s%.200s",
	         why[0] ? ": " : "", why);
}

static bool is_overdue(struct line *line, mono now)
{
	struct batch *batch = oldest(line);

	if (line->state == LINE_OPENING && mono_reached(now, line->state_due)) {
		say_no_connection(line->wire);
		return true;
	}
	if (!batch || !mono_reached(now, batch->due))
		return false;
	snprintf(line->wire->text, WIRE_TEXT, "no reply within a second");
	return true;
}

static void enter(struct line *line, enum wire_state state, mono now)
{
	if (state == WIRE_READY && line->state == LINE_OPENING) {
		line->state = LINE_READY;
		client_count(line->config, CLIENT_CONNECTS, !line->was_ready);
		trouble_say(line->config->trouble, line->wire->where,
		            GALE_LEVEL_WARNING, line->wire->text, now);
		line->wire->text[0] = '\0'; /* once */
		line->was_ready = line->is_kept = true;
	} else if (state == WIRE_OPENING && line->state == LINE_READY) {
		line->state = LINE_OPENING;
		line->state_due = mono_after(now, OPENING_NS);
	}
}

static void begin(struct line *line, mono now)
{
	line->wire->text[0] = '\0';
	line->wire->waits_for = NULL;
	line->wire->ops->connect(line->wire, now);
	line->epoch = ++*line->epochs;
	line->was_ready = false;
	line->told_us = 0;
	line->state = LINE_OPENING;
	line->state_due = mono_after(now, OPENING_NS);
}

static void note_state(struct line *line, enum wire_state state, mono now)
{
	if (state == WIRE_BROKEN || line->broken || is_overdue(line, now))
		lose(line, now);
	else
		enter(line, state, now);
}

void line_flush(struct line *line, mono now)
{
	const struct wire_ops *ops = line->wire->ops;

	if (line->state == LINE_READY && ops->flush)
		note_state(line, ops->flush(line->wire), now);
	else if (line->state == LINE_READY)
		note_state(line, ops->turn(line->wire, now), now);
}

static bool may_begin(const struct line *line, bool is_wanted)
{
	return is_wanted || line->is_kept; /* LINE-4 */
}

void line_turn(struct line *line, bool is_wanted, mono now)
{
	line->now_ns = now.ns;
	if (line->state == LINE_AWAY) {
		if (!may_begin(line, is_wanted) || !mono_reached(now, line->state_due))
			return;
		begin(line, now);
	}
	note_state(line, line->wire->ops->turn(line->wire, now), now);
}

/* A batch that could not be sent goes when more is heard; or a little later, if there is nothing to
 * be heard: then it was for want of memory. */
static mono send_due(const struct line *line)
{
	mono now = { line->now_ns };

	if (!line->is_full)
		return now; /* what came of the replies just now */
	return line_is_idle(line) ? mono_after(now, RETRY_NS) : (mono){ UINT64_MAX };
}

static mono wire_due(const struct line *line)
{
	bool is_busy = line->state == LINE_OPENING || !line_is_idle(line);

	return is_busy && line->wire->due.ns > 0 ? line->wire->due
	                                         : (mono){ UINT64_MAX };
}

mono line_due(const struct line *line, bool is_wanted)
{
	mono due = wire_due(line);

	if (!line_is_idle(line))
		due = mono_earlier(
		    due, line->batches[(line->done + 1) % LINE_BATCHES_MOST].due);
	if (line->state == LINE_OPENING ||
	    (line->state == LINE_AWAY && may_begin(line, is_wanted)))
		due = mono_earlier(due, line->state_due);
	if (line->state == LINE_READY && is_wanted)
		due = mono_earlier(due, send_due(line));
	return due;
}

struct line *line_open(const struct client_config *config, struct line_home *home,
                       struct wire *wire, uint32_t node, uint64_t *epochs)
{
	struct line *line = memory_take(config->allocator, sizeof(*line));

	if (!line)
		return NULL;
	line->is.on_reply = on_reply;
	line->is.on_nudge = on_nudge;
	line->home = home;
	line->config = config;
	line->wire = wire;
	line->wire->home = &line->is;
	line->wire->hears = config->home->nudges != NULL;
	line->node = node;
	line->lot = config->seed + node;
	line->epochs = epochs;
	line->flow =
	    (struct flow){ .most = LINE_JOBS_MOST, .batch = REMOTE_BATCH_MOST };
	return line;
}

void line_close(struct line *line)
{
	struct batch *batch;

	while ((batch = oldest(line)))
		end_batch(line, batch, NULL); /* its home may look at the wire */
	line->wire->ops->free(line->wire);
	memory_give(line->config->allocator, line, sizeof(*line));
}
