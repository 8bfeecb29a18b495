/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scenes.c -- the scenes, and the oracle.
 *
 * A load of 1 is what the servers can do.  Unless a scene says otherwise: 16 servers, a mean
 * of 10 ms, an objective of 100 ms, a guard that starts at 20.
 */
#include "sim/scenes.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* ---- Plans -------------------------------------------------------------------------- */

struct shape {
	uint32_t servers;
	uint64_t mean_ns;
	double load;        /* times what is described */
	uint64_t objective; /* percent of the one that is described */
};

static struct shape shape_of(uint64_t lot, uint64_t mean_ns)
{
	struct shape shape = { 16, mean_ns, 1, 100 };
	struct chance chance = { lot };

	if (lot == 0)
		return shape;
	shape.servers = (uint32_t)chance_between(&chance, 6, 48);
	shape.mean_ns = mean_ns * chance_between(&chance, 50, 300) / 100;
	shape.load = (double)chance_between(&chance, 90, 125) / 100;
	shape.objective = chance_between(&chance, 60, 200);
	return shape;
}

static double rate_of(const struct shape *shape, double load)
{
	return load * shape->servers / ((double)shape->mean_ns / 1e9);
}

static void base(struct queue_plan *plan, const struct shape *shape, uint64_t mean_ns)
{
	*plan = (struct queue_plan){
		.servers = shape->servers,
		.service = SERVICE_CONSTANT,
		.slo_ns = 100 * MS * shape->mean_ns / mean_ns * shape->objective / 100,
		.timeout_ns = SECOND,
		.tick_ns = 100 * MS,
		.nodes = 1,
	};
}

/* A phase from where the last one ended. */
static struct queue_phase *phase(struct queue_plan *plan, const struct shape *shape,
                                 double load, uint64_t lasts_ns)
{
	struct queue_phase *p = &plan->phases[plan->phase_count++];

	*p = (struct queue_phase){
		.begins_ns = plan->ends_ns,
		.arrivals = rate_of(shape, load),
		.mean_ns = shape->mean_ns,
	};
	plan->ends_ns += lasts_ns;
	return p;
}

static void plan_spike(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 0.5, 10 * SECOND);
	phase(plan, &s, 1.4 * s.load, 2 * SECOND);
	phase(plan, &s, 1.4 * s.load, 18 * SECOND);
	phase(plan, &s, 0.5, 10 * SECOND);
}

static void plan_exponential(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	phase(plan, &s, 2 * s.load, 5 * SECOND);
	phase(plan, &s, 2 * s.load, 25 * SECOND);
}

static void plan_mixed(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_BIMODAL;
	plan->slo_ns *= 3;
	phase(plan, &s, 1.5 * s.load, 5 * SECOND);
	phase(plan, &s, 1.5 * s.load, 35 * SECOND);
}

static void plan_micro(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 25000);

	base(plan, &s, 25000);
	plan->slo_ns = MS * s.objective;
	phase(plan, &s, 1, 10 * SECOND)->arrivals = 10000;
}

static void plan_slower(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 1.4 * s.load, 10 * SECOND);
	phase(plan, &s, 1.4 * s.load, 6 * SECOND)->mean_ns *= 2;
	phase(plan, &s, 1.4 * s.load, 24 * SECOND)->mean_ns *= 2;
	phase(plan, &s, 1.4 * s.load, 10 * SECOND);
}

static void plan_drift(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 1.4 * s.load, 10 * SECOND);
	phase(plan, &s, 1.4 * s.load, 300 * SECOND)->mean_end_ns = 2 * s.mean_ns;
}

static void plan_contention(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	plan->contention = s.servers;
	phase(plan, &s, 2 * s.load, 5 * SECOND);
	phase(plan, &s, 2 * s.load, 35 * SECOND);
}

static void plan_constant(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 1.2 * s.load, 5 * SECOND);
	phase(plan, &s, 1.2 * s.load, 25 * SECOND);
}

static void plan_calm(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	phase(plan, &s, 0.7, 30 * SECOND);
}

/* Breakwater's: work of 10 us. */
static void plan_breakwater(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10000);

	base(plan, &s, 10000);
	plan->service = SERVICE_EXPONENTIAL;
	plan->slo_ns = 20 * s.mean_ns * s.objective / 100;
	plan->tick_ns = MS;
	phase(plan, &s, 0.5, 100 * MS);
	phase(plan, &s, 1.4 * s.load, 20 * MS);
	phase(plan, &s, 1.4 * s.load, 180 * MS);
}

static void plan_outage(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 1.2 * s.load, 10 * SECOND);
	phase(plan, &s, 1.2 * s.load, 30 * SECOND)->mode = MODE_HANGS;
	phase(plan, &s, 1.2 * s.load, 2 * SECOND);
	phase(plan, &s, 1.2 * s.load, 10 * SECOND);
}

static void plan_fast_failures(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	phase(plan, &s, 1.2 * s.load, 10 * SECOND);
	phase(plan, &s, 1.2 * s.load, 10 * SECOND)->mode = MODE_FAILS;
	phase(plan, &s, 1.2 * s.load, SECOND);
	phase(plan, &s, 1.2 * s.load, 9 * SECOND);
}

static void plan_incident(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->slo_ns *= 10;
	plan->tick_ns = SECOND;
	phase(plan, &s, 0.8, 20 * SECOND);
	phase(plan, &s, 0.8, 20 * SECOND)->mean_ns *= 10;
	phase(plan, &s, 0.8, 1180 * SECOND)->mean_ns *= 10;
}

static void plan_ramp(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	plan->settings.start = 4;
	phase(plan, &s, 0.001, 2 * SECOND);
	phase(plan, &s, 1, 10 * s.mean_ns + 300 * MS);
	phase(plan, &s, 1, 10 * SECOND);
}

static struct shape base_of_nodes(struct queue_plan *plan, uint64_t lot, uint32_t nodes)
{
	struct shape s = shape_of(lot, 10 * MS);

	/* Not less than half a server for each node, as where nothing is drawn. */
	if (s.servers < nodes / 2)
		s.servers = nodes / 2;
	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	plan->nodes = nodes;
	plan->fleet = &fleet_of_nodes;
	return s;
}

static void plan_nodes(struct queue_plan *plan, uint64_t lot, uint32_t nodes)
{
	struct shape s = base_of_nodes(plan, lot, nodes);

	phase(plan, &s, 1.5 * s.load, 10 * SECOND);
	phase(plan, &s, 1.5 * s.load, 30 * SECOND);
	phase(plan, &s, 1.5 * s.load, 30 * SECOND)->mean_ns *= 2;
	phase(plan, &s, 1.5 * s.load, 20 * SECOND);
}

static void plan_fleet_2(struct queue_plan *plan, uint64_t lot)
{
	plan_nodes(plan, lot, 2);
}

static void plan_fleet_3(struct queue_plan *plan, uint64_t lot)
{
	plan_nodes(plan, lot, 3);
}

static void plan_fleet_8(struct queue_plan *plan, uint64_t lot)
{
	plan_nodes(plan, lot, 8);
}

static void plan_fleet_32(struct queue_plan *plan, uint64_t lot)
{
	plan_nodes(plan, lot, 32);
}

/* Work that takes longer wants as many slots as before; fewer servers want fewer. */
static void plan_halved(struct queue_plan *plan, uint64_t lot, uint32_t nodes)
{
	struct shape s = base_of_nodes(plan, lot, nodes);

	phase(plan, &s, 1.5 * s.load, 10 * SECOND);
	phase(plan, &s, 1.5 * s.load, 30 * SECOND);
	phase(plan, &s, 1.5 * s.load, 30 * SECOND)->servers = s.servers / 2;
	phase(plan, &s, 1.5 * s.load, 10 * SECOND);
	phase(plan, &s, 1.5 * s.load, 20 * SECOND);
}

static void plan_halved_2(struct queue_plan *plan, uint64_t lot)
{
	plan_halved(plan, lot, 2);
}

static void plan_halved_3(struct queue_plan *plan, uint64_t lot)
{
	plan_halved(plan, lot, 3);
}

static void plan_halved_8(struct queue_plan *plan, uint64_t lot)
{
	plan_halved(plan, lot, 8);
}

/* As much work of calls of 1 ms as of calls of 100 ms, each class more than half of what the
 * servers can do. */
static void plan_classes(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->slo_ns *= 10;
	plan->nodes = 2;
	plan->costs[0] = 1000;
	plan->costs[1] = 10;
	plan->fleet = &fleet_of_nodes;
	phase(plan, &s, 1.5 * s.load * 1010 / 200, 10 * SECOND);
	phase(plan, &s, 1.5 * s.load * 1010 / 200, 30 * SECOND);
}

static void plan_oscillation(struct queue_plan *plan, uint64_t lot)
{
	struct shape s = shape_of(lot, 10 * MS);

	base(plan, &s, 10 * MS);
	plan->service = SERVICE_EXPONENTIAL;
	plan->nodes = 2;
	plan->turns_ns = FLEET_BEAT_NS;
	plan->fleet = &fleet_of_nodes;
	phase(plan, &s, 1.2, 10 * SECOND);
	phase(plan, &s, 1.2, 50 * SECOND);
}

const struct scene scenes[] = {
	{ "spike", "load 0.5, then 1.4, then 0.5", plan_spike },
	{ "exponential", "exponential service, load 2", plan_exponential },
	{ "mixed", "work of 2 and of 82 ms, load 1.5", plan_mixed },
	{ "micro", "25 us service, 10,000 calls a second", plan_micro },
	{ "slower", "service takes twice as long for 30 s, load 1.4", plan_slower },
	{ "drift", "service slows down from 10 to 20 ms in 300 s, load 1.4",
	  plan_drift },
	{ "contention", "contention: service slows down above 16 in flight, load 2",
	  plan_contention },
	{ "constant", "constant service, load 1.2", plan_constant },
	{ "calm", "load 0.7", plan_calm },
	{ "breakwater", "10 us service, load 0.5, then 1.4", plan_breakwater },
	{ "outage", "nothing is answered for 30 s", plan_outage },
	{ "fast-failures", "everything fails in 1 ms for 10 s", plan_fast_failures },
	{ "incident", "round trips ten times as long for 20 minutes", plan_incident },
	{ "ramp", "from idle to load 1 at once, from a limit of 4", plan_ramp },
	{ "fleet-2", "2 nodes, load 1.5, and service twice as long for a while",
	  plan_fleet_2 },
	{ "fleet-3", "the same with 3 nodes", plan_fleet_3 },
	{ "fleet-8", "with 8", plan_fleet_8 },
	{ "fleet-32", "with 32", plan_fleet_32 },
	{ "halved-2", "2 nodes, load 1.5, and half of the servers for a while",
	  plan_halved_2 },
	{ "halved-3", "the same with 3 nodes", plan_halved_3 },
	{ "halved-8", "with 8", plan_halved_8 },
	{ "classes", "calls of 1 and of 100 ms, by guards of their own", plan_classes },
	{ "oscillation", "demand comes to one of 2 nodes, then to the other",
	  plan_oscillation },
};
const size_t scene_count = sizeof(scenes) / sizeof(scenes[0]);

const struct scene *scene_named(const char *name)
{
	for (size_t i = 0; i < scene_count; i++)
		if (strcmp(scenes[i].name, name) == 0)
			return &scenes[i];
	return NULL;
}

/* ---- The oracle --------------------------------------------------------------------- */

static double phase_seconds(const struct queue_plan *plan, uint32_t i)
{
	uint64_t ends =
	    i + 1 < plan->phase_count ? plan->phases[i + 1].begins_ns : plan->ends_ns;

	return (double)(ends - plan->phases[i].begins_ns) / 1e9;
}

/* Fixed limits that are tried, in percent of the servers. */
static const uint32_t tried[] = { 60,  75,  90,  100, 106, 115, 125, 140,
	                          160, 200, 250, 300, 400, 600, 900 };
#define TRIED (sizeof(tried) / sizeof(tried[0]))
/* No phase is longer in a scan: what is drawn is drawn again, and the mean is the same. */
#define SCAN_PHASE_NS (10 * SECOND)

struct scan {
	uint32_t limit;
	double good[QUEUE_PHASES];
	uint64_t p99_ns[QUEUE_PHASES];
	double parts[QUEUE_PHASES][2];
};

static struct queue_plan shortened(const struct queue_plan *plan)
{
	struct queue_plan scanned = *plan;
	uint64_t saved = 0;

	for (uint32_t i = 0; i < plan->phase_count; i++) {
		uint64_t ends = i + 1 < plan->phase_count
		                    ? plan->phases[i + 1].begins_ns
		                    : plan->ends_ns;
		uint64_t length = ends - plan->phases[i].begins_ns;

		scanned.phases[i].begins_ns -= saved;
		if (length > SCAN_PHASE_NS)
			saved += length - SCAN_PHASE_NS;
	}
	scanned.ends_ns -= saved;
	scanned.law = law_named("fixed");
	scanned.fleet = NULL;
	if (plan->costs[0] == 0) {
		scanned.nodes = 1;
		scanned.turns_ns = 0;
	}
	return scanned;
}

static void scan_one(struct scan *scan, struct queue *queue, struct queue_plan *plan)
{
	uint32_t each = scan->limit / plan->nodes;

	plan->settings = (struct estimate_settings){ .start = each ? each : 1 };
	queue_play(queue, plan, NULL);
	for (uint32_t i = 0; i < plan->phase_count; i++) {
		scan->good[i] = (double)queue->counts[i].good / phase_seconds(plan, i);
		scan->p99_ns[i] = queue_latency(&queue->counts[i], 990);
		for (int j = 0; j < 2; j++)
			scan->parts[i][j] = (double)queue->counts[i].good_of[j] /
			                    phase_seconds(plan, i);
	}
}

static void choose(struct oracle_phase *phase, const struct scan *scans, uint32_t i)
{
	*phase = (struct oracle_phase){ 0 };
	for (size_t j = 0; j < TRIED; j++)
		if (scans[j].good[i] > phase->goodput)
			phase->goodput = scans[j].good[i];
	for (size_t j = TRIED; j-- > 0;)
		if (scans[j].good[i] >= 0.99 * phase->goodput) {
			phase->limit = scans[j].limit;
			phase->p99_ns = scans[j].p99_ns[i];
			phase->parts[0] = scans[j].parts[i][0];
			phase->parts[1] = scans[j].parts[i][1];
		}
}

void oracle_scan(struct oracle *ret_oracle, struct queue *queue,
                 const struct queue_plan *plan)
{
	static struct scan scans[TRIED];
	struct queue_plan scanned = shortened(plan);

	for (size_t i = 0; i < TRIED; i++) {
		scans[i].limit = (plan->servers * tried[i] + 50) / 100;
		scan_one(&scans[i], queue, &scanned);
	}
	for (uint32_t i = 0; i < plan->phase_count; i++)
		choose(&ret_oracle->phases[i], scans, i);
}

void score_of(struct score *ret_score, const struct queue *queue,
              const struct oracle *oracle)
{
	const struct queue_plan *plan = queue->plan;
	struct queue_count all = { 0 };
	double good = 0, best = 0;

	*ret_score = (struct score){ .part = 1 };
	for (uint32_t i = 0; i < plan->phase_count; i++) {
		const struct queue_count *count = &queue->counts[i];
		double seconds = phase_seconds(plan, i);
		double wanted = oracle->phases[i].goodput * seconds;

		good += (double)count->good;
		best += wanted;
		ret_score->phases[i] = wanted > 0 ? (double)count->good / wanted : 1;
		all.offered += count->offered;
		for (int j = 0; j < 2 && plan->costs[0] > 0 && i > 0; j++) {
			double part = (double)count->good_of[j] /
			              (oracle->phases[i].parts[j] * seconds);

			if (ret_score->part > part)
				ret_score->part = part;
		}
		all.refused += count->refused;
		all.ok += count->ok;
		for (uint32_t j = 0; j < QUEUE_OCTAVES * QUEUE_PARTS; j++)
			all.latency[j] += count->latency[j];
		if (count->ok > 1000 && oracle->phases[i].p99_ns > 0) {
			double ratio = (double)queue_latency(count, 990) /
			               (double)oracle->phases[i].p99_ns;

			if (ret_score->p99_ratio < ratio)
				ret_score->p99_ratio = ratio;
		}
	}
	ret_score->goodput = best > 0 ? good / best : 1;
	ret_score->refused = (double)all.refused / (double)all.offered;
	ret_score->p99_ns = queue_latency(&all, 990);
	ret_score->limit_ratio =
	    (double)queue->counts[plan->phase_count - 1].limit_most /
	    (oracle->phases[plan->phase_count - 1].limit
	         ? oracle->phases[plan->phase_count - 1].limit
	         : 1);
}
