/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * member.c -- a team that counts for the process that has started it.
 *
 * What is counted goes out as the tally hands it over, window by window; what is seen
 * besides, a few times a second.  When the socket is full, this waits; when its other
 * end is closed, the process ends at once.
 */
#define _GNU_SOURCE
#include "tools/member.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/fleet.h"
#include "tools/record.h"
#include "tools/team.h"

#define NAP_NS 5000000 /* half of the shortest window */
#define SEEN_EVERY_US GALE_MILLIS(100)

struct member {
	struct tally_taker taker; /* first */
	struct node_host host;
	struct fleet_clock clock;
	struct team team;
	struct record_in in;
	struct record_out out;
	uint64_t units; /* handed over */
	uint64_t seen_due_us;
	struct seen told;
};

static struct member *of_host(struct node_host *host)
{
	return (struct member *)((char *)host - offsetof(struct member, host));
}

/* ---- Saying ---------------------------------------------------------------------- */

static void say(struct member *member, enum record_kind kind, uint64_t what,
                uint64_t count)
{
	struct record record = { .kind = kind, .what = what, .count = count };

	record_put(&member->out, &record);
}

/* Without a receiver there is nothing left to do. */
static void flush(struct member *member)
{
	if (!record_flush(&member->out))
		_exit(FLEET_FAILED);
}

static void take(struct tally_taker *self, uint32_t key, struct tally_span span,
                 uint64_t units)
{
	struct member *member = (struct member *)self;
	struct record record = { .kind = RECORD_UNITS,
		                 .what = key,
		                 .first = span.first,
		                 .last = span.last,
		                 .count = units };

	member->units += units;
	record_put(&member->out, &record);
}

static void asked(struct tally_taker *self, uint64_t number, uint64_t units)
{
	struct member *member = (struct member *)self;
	struct record record = { .kind = RECORD_ASKED,
		                 .first = number,
		                 .count = units };

	record_put(&member->out, &record);
}

static void passed(struct tally_taker *self, uint64_t now_us)
{
	struct member *member = (struct member *)self;
	struct record record = { .kind = RECORD_PASSED, .first = now_us };

	record_put(&member->out, &record);
}

/* What has changed since it was last told. */
static void say_seen(struct member *member)
{
	struct seen seen = { 0 };

	team_look(&member->team, &seen);
	for (unsigned i = 0; i < SEEN_COUNT; i++)
		if (seen.counts[i] != member->told.counts[i])
			say(member, RECORD_COUNTER, i, seen.counts[i]);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = histogram_get(&seen.latency_ns, i);

		if (count != histogram_get(&member->told.latency_ns, i))
			say(member, RECORD_BUCKET, i, count);
	}
	member->told = seen;
}

static int fail(struct member *member, const struct sentence *why)
{
	record_put_text(&member->out, why->is);
	say(member, RECORD_FAILED, 0, 0);
	flush(member);
	return FLEET_FAILED;
}

/* ---- Warming up ------------------------------------------------------------------ */

static bool goes_on(struct node_host *host)
{
	(void)host;
	return true; /* else the controller ends us */
}

static void waits(struct node_host *host)
{
	struct member *member = of_host(host);

	say(member, RECORD_WAITS, 0, 0);
	flush(member);
}

/* ---- Listening ------------------------------------------------------------------- */

/* The next order has to be this one. */
static struct record await(struct member *member, enum record_kind kind)
{
	struct record record;

	if (record_get(&member->in, /* wait= */ true, &record) != RECORD_IS ||
	    record.kind != kind)
		_exit(FLEET_FAILED);
	return record;
}

static void listen_for_stop(struct member *member)
{
	struct record record;

	switch (record_get(&member->in, /* wait= */ false, &record)) {
	case RECORD_NOT_YET:
		return;
	case RECORD_IS:
		if (record.kind == RECORD_STOP) {
			team_stop(&member->team, record.first);
			return;
		}
		break;
	case RECORD_END:
	case RECORD_NONSENSE:
		break;
	}
	_exit(FLEET_FAILED);
}

/* ---- The run --------------------------------------------------------------------- */

static void tell(struct member *member)
{
	uint64_t now_us = fleet_clock_us(&member->clock);

	if (now_us >= member->seen_due_us) {
		member->seen_due_us = now_us + SEEN_EVERY_US;
		say_seen(member);
	}
	flush(member);
}

static void count_until(struct member *member, uint64_t stop_us)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	while (!tally_all_gone(&member->team.tally)) {
		listen_for_stop(member);
		tally_fold(&member->team.tally, stop_us);
		tell(member);
		nanosleep(&nap, NULL);
	}
	tally_finish(&member->team.tally, stop_us);
	team_join(&member->team);
	say_seen(member);
	say(member, RECORD_DONE, 0, member->units);
	flush(member);
}

static int run_ready(struct member *member)
{
	struct record begin;
	struct sentence why;

	say(member, RECORD_READY, 0, 0);
	flush(member);
	begin = await(member, RECORD_BEGIN);
	if (!team_begin(&member->team, begin.first, begin.last, &member->taker, &why))
		return fail(member, &why);
	count_until(member, begin.last);
	return FLEET_HELD;
}

static int run_planned(struct member *member, const struct fleet_flags *flags)
{
	struct record said = await(member, RECORD_PLAN);
	struct node_plan plan = { flags, &member->clock, said.first };
	struct sentence why;
	int status;

	fleet_clock_set(&member->clock, said.last);
	if (team_open(&member->team, &plan, (uint32_t)said.what, &why) &&
	    team_warm_up(&member->team, &member->host, &why))
		status = run_ready(member);
	else
		status = fail(member, &why);
	team_close(&member->team);
	return status;
}

/* ---- Starting -------------------------------------------------------------------- */

static bool has_controller(void)
{
	struct stat is;

	return fstat(MEMBER_FD, &is) == 0 && S_ISSOCK(is.st_mode);
}

int member_run(const struct fleet_flags *flags)
{
	struct member *member;
	int status;

	if (!has_controller()) {
		fprintf(stderr, "gale %s: is started by gale fleet --processes\n",
		        MEMBER_COMMAND);
		return FLEET_BAD_USE;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "gale"); /* as ps shows it */
	fcntl(MEMBER_FD, F_SETFD, FD_CLOEXEC);
	member = calloc(1, sizeof(*member));
	if (!member)
		return FLEET_FAILED;
	member->taker = (struct tally_taker){ take, asked, passed };
	member->host = (struct node_host){ goes_on, waits };
	record_in_init(&member->in, MEMBER_FD);
	record_out_init(&member->out, MEMBER_FD);
	status = run_planned(member, flags);
	free(member);
	return status;
}
