/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * beats.c -- how long is a server busy with a beat, and how does that grow with the group?
 *
 * A group has 10, 1,000 or 10,000 members.  They beat one after the other, each in a call of its
 * own, which is the dearest way: a node that has many groups has them beat in one call.  Before
 * each beat the member's demand, what it has in flight and its estimate are drawn anew, so that
 * shares and estimates move.  Two laws: the sum, as guards have it, and the median, which also
 * keeps estimates in order.
 *
 *     Redis        by its own count of the microseconds that EVALSHA took (INFO commandstats): the
 *                  median of means of WINDOW beats, as others use the processor, too
 *     PostgreSQL   the processor time of the session's process over the beats: all of the call,
 *                  and its commit
 *
 * Threads   One.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/busy.h"
#include "bench/servers.h"
#include "runtime/clock.h"
#include "sim/random.h"

#define SIZES 3
#define CREWS (2 * SIZES) /* of each law, of each size */
#define MEMBERS_MOST 10000
#define BEATS 4000 /* that are timed, of a group */
#define BEATS_SMOKE 40
#define WINDOW 20    /* beats of which Redis tells the mean */
#define AT_ONCE 20   /* beats of a call, as a group is made */
#define SLOTS_EACH 8 /* of the limit */
#define LEASE_US GALE_MINUTES(30)
#define PATIENCE_NS UINT64_C(60000000000)
#define PROCESSES 3
#define BAR_US 100

struct member {
	char name[32];
	uint64_t seq;
	struct group_grant granted;
};

static struct asker asker; /* at the server that is measured */

/* A group, and the members that beat in it. */
struct crew {
	struct chance chance;
	uint64_t law;
	uint64_t count; /* of members */
	uint64_t next;
	uint64_t
	    life; /* of the group's numbers, and its first: what all of them say is over, */
	uint64_t over; /* so that the group waits for no lease, and ends none */
	char name[32];
	struct member members[MEMBERS_MOST];
};

/* ---- Beats ----------------------------------------------------------------------- */

static size_t beats_timed(void)
{
	return bench_is_smoke() ? BEATS_SMOKE : BEATS;
}

static struct group_settings settings_of(const struct crew *crew)
{
	return (struct group_settings){
		.law = crew->law,
		.parts = GROUP_BY_DEMAND,
		.start = crew->count * SLOTS_EACH,
		.floor = crew->count,
		.ceiling = crew->count * SLOTS_EACH,
		.lease_us = LEASE_US,
		.hold_us = LEASE_US / 2,
		.rotate_us = 10 * LEASE_US,
		.probe_us = crew->law == GROUP_SUM ? LEASE_US / 4 : 0,
	};
}

static struct store_beat next_beat(struct crew *crew)
{
	struct member *member = &crew->members[crew->next++ % crew->count];
	struct chance *c = &crew->chance;
	uint64_t share = member->granted.share;

	return (struct store_beat){
		.node = (const uint8_t *)member->name,
		.node_len = (uint32_t)strlen(member->name),
		.settings = settings_of(crew),
		.report = {
			.incarnation = 1,
			.seq = ++member->seq,
			.life = crew->life,
			.over = crew->over,
			.epoch = member->granted.epoch,
			.generation = member->granted.generation,
			.held = share,
			.in_flight = chance_below(c, share + 1),
			.weight = 1,
			.demand = chance_below(c, 2 * SLOTS_EACH),
			.busy = chance_below(c, 2 * SLOTS_EACH * GROUP_BUSY_ONE),
			.estimate = crew->count * chance_between(c, 1, 2 * SLOTS_EACH),
			.limited = chance_one_in(c, 8),
		},
	};
}

/* Those that come next. */
static void beat(struct crew *crew, unsigned count)
{
	struct store_beat beats[TOGETHER];
	uint64_t first = crew->next;

	for (unsigned i = 0; i < count; i++)
		beats[i] = next_beat(crew);
	asker_beat(&asker, crew->name, beats, count);
	for (unsigned i = 0; i < count; i++)
		crew->members[(first + i) % crew->count].granted = beats[i].grant;
}

static uint64_t slots_granted(const struct crew *crew)
{
	uint64_t slots = 0;

	for (uint64_t i = 0; i < crew->count; i++)
		slots += crew->members[i].granted.share;
	return slots;
}

/* All are members, and most of the limit is granted. */
static void settle(struct crew *crew)
{
	unsigned together = crew->count < AT_ONCE ? (unsigned)crew->count : AT_ONCE;
	uint64_t deadline_ns = patience_now_ns() + PATIENCE_NS;

	beat(crew, 1);
	crew->life = crew->members[0].granted.life;
	crew->over = crew->members[0].granted.beat;
	while (slots_granted(crew) < crew->count * SLOTS_EACH / 2 &&
	       patience_now_ns() < deadline_ns)
		for (uint64_t done = 0; done < crew->count; done += together)
			beat(crew, together);
	bench_expect(slots_granted(crew) >= crew->count * SLOTS_EACH / 2,
	             "shares are granted");
}

/* The one of that number. */
static void open_crew(struct crew *crew, size_t number)
{
	static const uint64_t laws[] = { GROUP_SUM, GROUP_MEDIAN },
			      counts[SIZES] = { 10, 1000, MEMBERS_MOST },
			      counts_smoke[SIZES] = { 10, 20, 100 };

	*crew = (struct crew){
		.chance = { number + 1 },
		.law = laws[number / SIZES],
		.count = (bench_is_smoke() ? counts_smoke : counts)[number % SIZES],
	};
	snprintf(crew->name, sizeof(crew->name), "crew %zu", number);
	for (uint64_t i = 0; i < crew->count; i++)
		snprintf(crew->members[i].name, sizeof(crew->members[i].name),
		         "node-%" PRIu64, i);
	settle(crew);
}

/* ---- Servers --------------------------------------------------------------------- */

/* What is measured at a server. */
struct site {
	struct server_kind *(*start)(void);
	/* How long the server is busy with a beat of each, in us. */
	void (*time)(struct crew *crews, double *ret_us);
	void (*stop)(void);
};

static void beat_once(void *arg)
{
	beat(arg, 1);
}

/* Groups take turns, so that all of them meet the same machine. */
static void time_at_redis(struct crew *crews, double *ret_us)
{
	static double us[CREWS][BEATS / WINDOW];
	size_t windows = beats_timed() / WINDOW;

	for (size_t i = 0; i < CREWS; i++)
		open_crew(&crews[i], i);
	for (size_t at = 0; at < windows; at++)
		for (size_t i = 0; i < CREWS; i++)
			us[i][at] = busy_redis_us(beat_once, &crews[i], WINDOW);
	for (size_t i = 0; i < CREWS; i++)
		ret_us[i] = busy_median(us[i], windows);
}

/* One group after the other: the session's time is of all that it does. */
static void time_at_postgres(struct crew *crews, double *ret_us)
{
	size_t count = beats_timed();

	for (size_t i = 0; i < CREWS; i++) {
		uint64_t began;

		open_crew(&crews[i], i);
		began = busy_postgres_ns();
		for (size_t at = 0; at < count; at++)
			beat(&crews[i], 1);
		ret_us[i] = (double)(busy_postgres_ns() - began) / 1000 / (double)count;
	}
}

static struct site redis_site = { .start = busy_redis_start,
	                          .time = time_at_redis,
	                          .stop = busy_redis_stop };
static struct site postgres_site = { .start = busy_postgres_start,
	                             .time = time_at_postgres,
	                             .stop = busy_postgres_stop };

/* ---- Rows ------------------------------------------------------------------------ */

static void measure(void *arg, double *ret_us)
{
	static struct crew crews[CREWS];
	struct site *site = arg;

	asker_open(&asker, site->start(), 1);
	site->time(crews, ret_us);
	site->stop();
}

#define NAMES(server)                                                                  \
	{                                                                              \
		"beats/" server ", 10 members", "beats/" server ", 1,000 members",     \
		    "beats/" server ", 10,000 members",                                \
		    "beats/" server ", median of 10 members",                          \
		    "beats/" server ", median of 1,000 members",                       \
		    "beats/" server ", median of 10,000 members"                       \
	}

static void add(struct site *site, const char *const names[CREWS], const double *bars)
{
	bench_add_figures(&(struct bench_figures){ .names = names,
	                                           .count = CREWS,
	                                           .unit = "us",
	                                           .bars = bars,
	                                           .measure = measure,
	                                           .arg = site,
	                                           .processes = PROCESSES });
}

void ask_beats(void)
{
	static const char *const at_redis[] = NAMES("Redis");
	static const char *const at_postgres[] = NAMES("PostgreSQL");
	static const double bars[CREWS] = { BAR_US, BAR_US, BAR_US,
		                            BAR_US, BAR_US, BAR_US };

	add(&redis_site, at_redis, bars);
	add(&postgres_site, at_postgres, NULL);
}
