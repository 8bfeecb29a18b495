/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* next_window.c -- by the time of day, which the server's is. */
#include "tests/support/next_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lease.h"
#include "stores/quarantine.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define TRIES_MOST 5
#define WITHIN GALE_MILLIS(200)
#define PAUSE GALE_MILLIS(5)

static void wait_for_window(const struct next_window *plan)
{
	nap(plan->length_us - wall_us() % plan->length_us);
}

/* Until it is used up, or over; and not a unit more than there are. */
static unsigned takes(const struct next_window *plan)
{
	uint64_t window = wall_us() / plan->length_us;
	unsigned count = 0;

	while (wall_us() / plan->length_us == window) {
		struct gale_answer answer = node_wait(plan->node, plan->key, WITHIN);

		count += answer.verdict == GALE_ALLOW;
		if (answer.why == GALE_WHY_SPENT || answer.why == GALE_WHY_RULE) {
			if (answer.verdict == GALE_DENY)
				break;
		} else if (answer.verdict == GALE_DENY) {
			nap(PAUSE);
		}
	}
	must(count <= plan->limit); /* L1, L12 */
	return count;
}

/* Was it known in time that no window is open any more that was open when it forgot? */
static bool was_in_time(const struct next_window *plan, uint64_t window)
{
	return plan->since_us(plan->arg) + QUARANTINE_SKEW_US <
	       (window + 1) * plan->length_us;
}

uint64_t next_window_most(uint64_t limit)
{
	return limit - limit / LEASE_AHEAD_PARTS;
}

unsigned next_window_gives(const struct next_window *plan)
{
	unsigned count = 0;

	for (int i = 0; i < TRIES_MOST; i++) {
		uint64_t window;

		wait_for_window(plan);
		window = wall_us() / plan->length_us;
		if (takes(plan) < plan->limit)
			continue; /* it was in quarantine, or stood still */
		plan->befall(plan->arg);
		if (wall_us() / plan->length_us != window)
			continue;
		wait_for_window(plan);
		count = takes(plan);
		if (count == next_window_most(plan->limit) || was_in_time(plan, window))
			break;
	}
	return count;
}

uint64_t next_window_since(const struct redis_server *server, unsigned bucket)
{
	struct redis_talk talk;
	char command[48];
	const char *since;
	redisReply *reply;
	uint64_t since_us = 0;

	snprintf(command, sizeof(command), "GET gale:{b%02x}generation", bucket);
	redis_talk_open(&talk, server);
	reply = redis_talk_say(&talk, command);
	since = reply->type == REDIS_REPLY_STRING ? strchr(reply->str, ':') : NULL;
	if (since)
		since_us = strtoull(since + 1, NULL, 10);
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return since_us;
}
