/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flow.c -- a room that follows how late replies are, in proportion.
 *
 * In a round, which is when all that was under way is heard of, the room changes by the half of
 * what replies are too early or too late by, as a part of the goal.  So it neither swings nor
 * takes long: from a quarter of a batch to sixteen batches in a dozen rounds.
 */
#include "engine/flow.h"

#define PATIENCE_PARTS 4 /* one of them in the server's queue, and one always here */
#define FIRST_PARTS 4    /* of a batch: one of them goes before anything is known */

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static uint64_t most_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t room_of(const struct flow *flow)
{
	return flow->room > 0 ? flow->room : most_of(flow->batch / FIRST_PARTS, 1);
}

uint64_t flow_room(const struct flow *flow)
{
	uint64_t room = room_of(flow);
	uint64_t together = least(flow->batch, room / 2);
	uint64_t left = room > flow->under_way ? room - flow->under_way : 0;

	return left >= together ? least(left, flow->batch) : 0; /* FLOW-4 */
}

/* As TCP has it, which waits so long for an acknowledgement (RFC 6298).  And thrice the mean: where
 * all replies take as long, a second batch under way doubles that at once, and a server stands still
 * now and then.  Jobs that are sent under overload have waited for as long as they may. */
uint64_t flow_need(const struct flow *flow, uint64_t others, uint64_t patience_ns)
{
	uint64_t always = patience_ns / PATIENCE_PARTS;
	uint64_t beyond = most_of(4 * flow->spread_ns, 2 * flow->mean_ns);

	if (flow->mean_ns > patience_ns && flow->under_way + others > 0)
		return flow->mean_ns; /* FLOW-3 */
	return least(flow->mean_ns + beyond, patience_ns - always);
}

bool flow_sent(struct flow *flow, uint64_t jobs)
{
	bool is_alone = flow->under_way == 0 && jobs == 1;

	flow->under_way += jobs;
	return is_alone;
}

static void note_time(struct flow *flow, uint64_t took_ns)
{
	uint64_t off_ns;

	if (flow->mean_ns == 0) {
		flow->mean_ns = took_ns;
		flow->spread_ns = took_ns / 2;
		return;
	}
	off_ns =
	    took_ns > flow->mean_ns ? took_ns - flow->mean_ns : flow->mean_ns - took_ns;
	flow->spread_ns += off_ns / 4 - flow->spread_ns / 4;
	flow->mean_ns += took_ns / 8 - flow->mean_ns / 8;
}

/* A job that goes alone does not wait behind others of this line, though it may behind those of
 * other clients.  One that met with a standstill must not set the goal for long: under load none
 * goes alone. */
static void note_alone(struct flow *flow, const struct flow_reply *reply)
{
	if (reply->was_alone) {
		flow->alone_ns = least(flow->last_alone_ns, reply->took_ns);
		flow->last_alone_ns = reply->took_ns;
	} else {
		flow->alone_ns = least(flow->alone_ns, reply->took_ns);
	}
}

/* Jobs of the room that a reply is worth: half of its jobs, by how far it is off. */
static uint64_t worth(const struct flow_reply *reply, uint64_t off_ns, uint64_t goal_ns)
{
	uint64_t thousandths = least(off_ns, goal_ns) * 1000 / goal_ns;

	return (reply->jobs * thousandths + 1999) / 2000;
}

static void set_room(struct flow *flow, const struct flow_reply *reply, bool is_used)
{
	uint64_t goal_ns =
	    most_of(flow->alone_ns + reply->patience_ns / PATIENCE_PARTS, 1);
	uint64_t room = room_of(flow), by;

	if (reply->took_ns > goal_ns) {
		by = worth(reply, reply->took_ns - goal_ns, goal_ns);
		flow->room = room > by ? room - by : 1;
	} else if (is_used) {
		by = worth(reply, goal_ns - reply->took_ns, goal_ns);
		flow->room = least(room + by, flow->most);
	}
}

void flow_heard(struct flow *flow, const struct flow_reply *reply)
{
	bool is_used = flow->under_way >= room_of(flow) / 2; /* FLOW-2 */

	flow_lost(flow, reply->jobs);
	note_time(flow, reply->took_ns);
	note_alone(flow, reply);
	if (reply->patience_ns > 0)
		set_room(flow, reply, is_used);
}

void flow_lost(struct flow *flow, uint64_t jobs)
{
	flow->under_way -= jobs;
}

bool flow_valid(const struct flow *flow)
{
	return flow->room <= flow->most &&
	       (flow->under_way > 0 || flow_room(flow) > 0); /* FLOW-1 */
}
