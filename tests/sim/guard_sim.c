/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_sim.c -- fleets of guards drawn by lot, each from its seed (seeds.h), and everything that
 * can befall them.
 *
 *     guard_sim --seeds 0-999                 as many wards
 *     guard_sim --seeds 7-7 --verbose         one, and everything that happens in it
 *
 * sim/ward.h says what must hold.  Most wards have fixed limits, so that the limit is known to
 * a slot; in the others the first group learns its limit.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/ward_script.h"
#include "tests/sim/seeds.h"

#define WARDS_MANY 100 /* in which all that can happen does */

/* ---- Drawing --------------------------------------------------------------------- */

static uint32_t one_in(struct chance *c, uint32_t often, uint32_t each)
{
	return chance_one_in(c, often) ? each : 0;
}

static void draw_times(struct chance *c, struct ward_plan *plan)
{
	static const uint32_t leases[] = { 40, 100, 400, 1000, 2000, 4000 };
	uint64_t lease_us = GALE_MILLIS(leases[chance_below(c, 6)]);

	plan->lease_us = lease_us;
	plan->beat_us = lease_us / chance_between(c, 2, 8);
	plan->abort_us = chance_between(c, 1, lease_us / 4);
	/* The fence must leave the time for a beat. */
	if (2 * plan->beat_us + plan->abort_us + lease_us / 4 > lease_us)
		plan->beat_us = lease_us / 4;
	plan->drift_ppm = chance_one_in(c, 4) ? 10000 : 0;
	plan->rate_ppm = chance_one_in(c, 4) ? 0 : plan->drift_ppm ? 9000 : 400;
	plan->offset_us = chance_one_in(c, 4) ? 0 : GALE_HOURS(1);
}

static void draw_net(struct chance *c, struct ward_plan *plan)
{
	const uint64_t means[] = { 0, plan->lease_us / 1000, plan->lease_us / 100,
		                   plan->lease_us / 20, plan->lease_us / 4 };

	plan->parcels = chance_one_in(c, 2);
	plan->net.mean_us = means[chance_below(c, 5)];
	plan->net.lost_percent = chance_one_in(c, 2) ? 10 : 0;
	plan->net.doubled_percent = chance_one_in(c, 2) ? 20 : 0;
}

static uint32_t draw_ceiling(struct chance *c)
{
	return chance_one_in(c, 6) ? (uint32_t)chance_between(c, 50, 300)
	                           : (uint32_t)chance_log(c, 40);
}

static void draw_fleet(struct chance *c, struct ward_plan *plan)
{
	static const uint32_t nodes[] = { 1, 2, 2, 3, 3, 3, 4, 8 };

	plan->nodes = nodes[chance_below(c, 8)];
	plan->groups = chance_one_in(c, 3) ? (uint32_t)chance_between(c, 2, 3) : 1;
	plan->seats = (uint32_t)chance_between(c, 1, WARD_SEATS);
	plan->ceiling = draw_ceiling(c);
	plan->law = chance_one_in(c, 4) ? (uint32_t)chance_below(c, 4) : GALE_FIXED;
	plan->parts = chance_one_in(c, 3) ? GALE_BY_WEIGHT : GALE_BY_DEMAND;
	plan->of_estimates = chance_one_in(c, 2) ? GALE_LEAST : GALE_MEDIAN;
	plan->weight_most = chance_one_in(c, 2) ? 1 : 8;
	plan->named = chance_one_in(c, 2);
	plan->ticks = chance_one_in(c, 2);
	plan->alone = chance_one_in(c, 6);
	if (plan->nodes < 2)
		return;
	plan->twins = chance_one_in(c, 8);
	plan->disagrees = chance_one_in(c, 8);
	plan->observes = chance_one_in(c, 6);
}

static void draw_faults(struct chance *c, struct ward_script *script)
{
	script->crash_each = one_in(c, 2, 150);
	script->shut_each = one_in(c, 3, 200);
	script->stop_each = one_in(c, 2, 80);
	script->hold_each = one_in(c, 2, 80);
	script->cut_each = one_in(c, 3, 80);
	script->reopen_each = one_in(c, 3, 100);
	script->copy_each = 20;
	script->fail_each = one_in(c, 3, 150);
	script->flush_each = one_in(c, 4, 200);
	script->back_each = one_in(c, 2, 30);
	script->forward_each = one_in(c, 2, 30);
	script->forge_each = one_in(c, 3, 10);
}

/* From a third of the limit to four times it. */
static void draw_demand(struct chance *c, struct ward_script *script)
{
	uint64_t lease_us = script->plan.lease_us, want, each_us, leases;

	script->calls_most =
	    chance_one_in(c, 2) ? 1 : (uint32_t)chance_between(c, 2, 8);
	script->slots_most = chance_one_in(c, 3) ? 4 : 1;
	script->long_each =
	    chance_one_in(c, 3) ? 0 : (uint32_t)chance_between(c, 2, 30);
	script->sheds = chance_one_in(c, 3);
	want = (script->plan.ceiling * chance_between(c, 1, 12) + 2) / 3;
	each_us =
	    lease_us / 16 + (script->long_each ? 2 * lease_us / script->long_each : 0);
	script->gap_us = each_us * ((script->calls_most + 1) / 2) / want + 1;
	leases = chance_between(c, 8, 40);
	script->steps = leases * lease_us / script->gap_us + 1;
	if (script->steps > 2500)
		script->steps = 2500;
}

static void draw(const struct seeds *seeds, uint64_t seed, void *ret_plan)
{
	struct ward_script *script = ret_plan;
	struct chance c = { seed };

	(void)seeds;
	*script = (struct ward_script){ .plan.seed = seed };
	draw_times(&c, &script->plan);
	draw_net(&c, &script->plan);
	draw_fleet(&c, &script->plan);
	draw_faults(&c, script);
	draw_demand(&c, script);
}

/* ---- Telling --------------------------------------------------------------------- */

static struct {
	uint64_t wards, events, us, steps, entries, refusals, aborts, fences, beats,
	    nudges, lost, doubled, cut, crashes, restarts, stops, holds, partitions,
	    shuts, reopened, fail_overs, flushes, settings;
} tally;

static void add(const struct ward *ward, uint64_t steps)
{
	tally.wards++;
	tally.events += ward->agenda.happened;
	tally.us += ward->agenda.now_us - WARD_START;
	tally.steps += steps;
	tally.entries += ward->entries;
	tally.refusals += ward->refusals;
	tally.aborts += ward->aborts;
	tally.fences += ward->fences;
	tally.beats += ward->beats;
	tally.nudges += ward->nudges;
	tally.lost += ward->net.lost;
	tally.doubled += ward->net.doubled;
	tally.cut += ward->net.cut;
	tally.crashes += ward->crashes;
	tally.restarts += ward->restarts;
	tally.stops += ward->stops;
	tally.holds += ward->holds;
	tally.partitions += ward->partitions;
	tally.shuts += ward->shuts;
	tally.reopened += ward->reopened;
	tally.fail_overs += ward->fail_overs;
	tally.flushes += ward->flushes;
	tally.settings += ward->settings;
}

static void tell(void)
{
	printf("%" PRIu64 " wards, %" PRIu64 " minutes, %" PRIu64 " events, %" PRIu64
	       " steps\n%" PRIu64 " calls: %" PRIu64 " let in, %" PRIu64
	       " aborted; %" PRIu64 " reports, %" PRIu64 " nudges, %" PRIu64
	       " fences\n%" PRIu64 " messages lost, %" PRIu64 " doubled, %" PRIu64
	       " crashes, %" PRIu64 " restarts, %" PRIu64 " stops, %" PRIu64
	       " holds, %" PRIu64 " partitions, %" PRIu64 " closed in order, %" PRIu64
	       " guards closed\n%" PRIu64 " fail-overs, %" PRIu64 " flushes, %" PRIu64
	       " clocks set\n",
	       tally.wards, tally.us / GALE_MINUTES(1), tally.events, tally.steps,
	       tally.entries + tally.refusals, tally.entries, tally.aborts, tally.beats,
	       tally.nudges, tally.fences, tally.lost, tally.doubled, tally.crashes,
	       tally.restarts, tally.stops, tally.holds, tally.partitions, tally.shuts,
	       tally.reopened, tally.fail_overs, tally.flushes, tally.settings);
}

static void describe(const void *plan)
{
	const struct ward_script *script = plan;
	const struct ward_plan *it = &script->plan;

	printf("law %u, ceiling %u, parts %u; %u nodes, %u groups, %u seats; lease "
	       "%" PRIu64 ", beat %" PRIu64 ", abort %" PRIu64
	       " us; drift %u, rate %u\n"
	       "%s, delay %" PRIu64 ", lost %u %%, doubled %u %%; %" PRIu64
	       " steps, gap %" PRIu64 " us%s%s%s%s%s%s\n",
	       it->law, it->ceiling, it->parts, it->nodes, it->groups, it->seats,
	       it->lease_us, it->beat_us, it->abort_us, it->drift_ppm, it->rate_ppm,
	       it->parcels ? "parcels" : "streams", it->net.mean_us,
	       it->net.lost_percent, it->net.doubled_percent, script->steps,
	       script->gap_us, it->named ? ", named" : "", it->twins ? ", twins" : "",
	       it->disagrees ? ", disagrees" : "", it->observes ? ", observes" : "",
	       it->alone ? ", alone" : "", it->ticks ? ", ticks" : "");
}

/* ---- One ward -------------------------------------------------------------------- */

static const char *play(const struct seeds *seeds, const void *plan,
                        const struct choice *choice, bool verbose, bool first,
                        uint64_t *ret_asks)
{
	static struct ward ward;
	const struct ward_script *script = plan;

	(void)seeds;
	ward_open(&ward, &script->plan, verbose);
	*ret_asks = ward_script_play(script, choice, &ward);
	if (first)
		add(&ward, *ret_asks);
	(void)ward_close(&ward);
	return ward.fault;
}

static const struct shrink_field fields[] = {
#define FIELD(name, member, least, most)                                               \
	{                                                                              \
		name, offsetof(struct ward_script, member),                            \
		    sizeof(((struct ward_script *)0)->member), least, most             \
	}
	FIELD("steps", steps, 0, SCRIPT_ASKS_MOST),
	FIELD("crash_each", crash_each, 0, UINT32_MAX),
	FIELD("shut_each", shut_each, 0, UINT32_MAX),
	FIELD("stop_each", stop_each, 0, UINT32_MAX),
	FIELD("hold_each", hold_each, 0, UINT32_MAX),
	FIELD("cut_each", cut_each, 0, UINT32_MAX),
	FIELD("reopen_each", reopen_each, 0, UINT32_MAX),
	FIELD("fail_each", fail_each, 0, UINT32_MAX),
	FIELD("flush_each", flush_each, 0, UINT32_MAX),
	FIELD("back_each", back_each, 0, UINT32_MAX),
	FIELD("forward_each", forward_each, 0, UINT32_MAX),
	FIELD("forge_each", forge_each, 0, UINT32_MAX),
	FIELD("long_each", long_each, 0, UINT32_MAX),
	FIELD("lost", plan.net.lost_percent, 0, 100),
	FIELD("doubled", plan.net.doubled_percent, 0, 100),
	FIELD("delay_us", plan.net.mean_us, 0, UINT32_MAX),
	FIELD("nodes", plan.nodes, 1, WARD_NODES),
	FIELD("groups", plan.groups, 1, WARD_GROUPS),
	FIELD("seats", plan.seats, 1, WARD_SEATS),
	FIELD("ceiling", plan.ceiling, 1, 1000),
	FIELD("parts", plan.parts, 0, 1),
	FIELD("weight_most", plan.weight_most, 1, 1000),
	FIELD("slots_most", slots_most, 1, 1000),
	FIELD("calls_most", calls_most, 1, 1000),
	FIELD("sheds", sheds, 0, 1),
	FIELD("rate_ppm", plan.rate_ppm, 0, 100000),
	FIELD("offset_us", plan.offset_us, 0, UINT32_MAX),
	FIELD("parcels", plan.parcels, 0, 1),
	FIELD("named", plan.named, 0, 1),
	FIELD("twins", plan.twins, 0, 1),
	FIELD("disagrees", plan.disagrees, 0, 1),
	FIELD("observes", plan.observes, 0, 1),
	FIELD("alone", plan.alone, 0, 1),
	FIELD("ticks", plan.ticks, 0, 1),
};

/* ---- What happens ---------------------------------------------------------------- */

static const struct {
	const char *what;
	const uint64_t *count;
} needed[] = {
	{ "refusal", &tally.refusals },
	{ "abort", &tally.aborts },
	{ "fence", &tally.fences },
	{ "nudge", &tally.nudges },
	{ "lost message", &tally.lost },
	{ "doubled message", &tally.doubled },
	{ "connection cut", &tally.cut },
	{ "crash", &tally.crashes },
	{ "restart", &tally.restarts },
	{ "stop", &tally.stops },
	{ "hold", &tally.holds },
	{ "partition", &tally.partitions },
	{ "node closed in order", &tally.shuts },
	{ "guard closed", &tally.reopened },
	{ "fail-over", &tally.fail_overs },
	{ "flush", &tally.flushes },
	{ "clock set", &tally.settings },
};

/* What never happens proves nothing. */
static bool has_happened(void)
{
	bool all = tally.entries > 0;

	if (!all)
		fprintf(stderr, "nothing was let in\n");
	if (tally.wards < WARDS_MANY)
		return all;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (*needed[i].count == 0) {
			fprintf(stderr, "not one %s\n", needed[i].what);
			all = false;
		}
	return all;
}

int main(int argc, char **argv)
{
	static struct seeds seeds = {
		.fields = fields,
		.field_count = sizeof(fields) / sizeof(fields[0]),
		.plan_bytes = sizeof(struct ward_script),
		.draw = draw,
		.play = play,
		.describe = describe,
		.last = 999,
	};
	uint64_t failed;

	if (!seeds_read(&seeds, argc, argv))
		return 2;
	failed = seeds_play(&seeds);
	tell();
	return !has_happened() || failed > 0;
}
