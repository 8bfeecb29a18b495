/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * alone.c -- regions of one budget that are cut off from its store, and go on with what each may
 * use alone.
 *
 *     store's window   |-------|-------|-------|
 *     a region's            |-------|   |-------|     each begins with what is taken
 *
 * Clocks run as in pool.c: in a tick of the store a region's goes on by QUARTERS, or by drift
 * quarters less or more.  What the store grants is for pool.c: here it is granted and used at once.
 *
 * Shipped   alone_init, alone_take, alone_left.
 * Spec      spec/Alone.tla: the same states.
 */
#include "engine/alone.h"

#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define REGIONS 3
#define QUARTERS 4
#define QUARTER_NS UINT64_C(1000000)
#define TICK_US (QUARTERS * QUARTER_NS / 1000)

enum { N, LIMIT, UNITS, MORE, TICKS, DRIFT, MARGIN, BEGINS, CUT, KEEP };

static const struct constant constants[] = {
	{ "regions", 1, REGIONS, 2, "" },
	{ "limit", 0, 30, 1, "" },
	{ "units", 1, 15, 2, "that a region may use in a window of its own" },
	{ "more", 0, 15, 0, "the same under other terms; 0: there are none" },
	{ "ticks", 1, 8, 3, "of the store in a window" },
	{ "drift", 0, 2, 1, "quarters of a tick that clocks gain or lose in one" },
	{ "margin", 0, 1, 1, "guard at 0: the drift is added (ALONE-2)" },
	{ "begins", 0, 1, 1,
	  "guard at 0: a window begins with what is taken, not with the last one's end "
	  "(ALONE-2)" },
	{ "cut", 0, 1, 1,
	  "guard at 0: nothing is taken alone while the store answers (FUND-8)" },
	{ "keep", 0, 1, 1,
	  "guard at 0: what was taken is known when the store is back (ALONE-1, "
	  "FUND-9)" },
	{ NULL, 0, 0, 0, NULL },
};

struct region {
	uint8_t cut;   /* the store cannot be asked */
	uint8_t was;   /* at some time in the store's window */
	uint8_t other; /* terms */
	uint8_t end;   /* quarters until then, by the region's clock */
	uint8_t taken;
	uint8_t admitted; /* alone, in the store's window */
};

struct state {
	uint8_t phase; /* ticks of the store's window */
	uint8_t used;  /* of the limit */
	struct region regions[REGIONS];
};

static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	return c[MORE] == c[UNITS] ? "terms do not differ" : NULL;
}

static void begin(const long *c, struct walk *walk)
{
	const struct state state = { 0 };

	step(walk, &state, CHANCE, "%d regions", (int)c[N], 0);
}

/* ---- A region ------------------------------------------------------------------------ */

static struct alone alone_of(const long *c, const struct region *region)
{
	struct alone alone;

	alone_init(&alone, (uint64_t)c[region->other ? MORE : UNITS],
	           (uint64_t)c[TICKS] * TICK_US,
	           (uint32_t)(c[MARGIN] * c[DRIFT]) * 1000000 / QUARTERS);
	alone.end = (mono){ HERE_NS + region->end * QUARTER_NS };
	alone.taken = region->taken;
	return alone;
}

static void keep_alone(struct region *region, const struct alone *alone)
{
	region->end = small((alone->end.ns - HERE_NS) / QUARTER_NS);
	region->taken = region->end > 0 ? small(alone->taken) : 0;
}

/* The next one at once: what a region without its guard does. */
static void go_on_at_once(const long *c, struct region *region)
{
	struct alone alone = alone_of(c, region);

	region->end = small(alone.window_ns / QUARTER_NS);
}

static void age(const long *c, struct region *region, int quarters)
{
	bool lasted = region->end > 0;

	region->end = (uint8_t)larger_of(region->end - quarters, 0);
	if (region->end > 0)
		return;
	region->taken = 0;
	if (!c[BEGINS] && lasted)
		go_on_at_once(c, region);
}

/* ---- Steps --------------------------------------------------------------------------- */

static void grant(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	if (state->regions[n].cut || state->used == c[LIMIT])
		return;
	after.used++;
	step(walk, &after, CHANCE, "region %d is granted a unit", n, 0);
}

static void cut_off(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.regions[n].cut = after.regions[n].was = 1;
	step(walk, &after, CHANCE, "region %d is cut off", n, 0);
}

static void heal(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct region *region = &after.regions[n];

	region->cut = 0;
	if (!c[KEEP])
		region->end = region->taken = 0;
	step(walk, &after, CHANCE, "region %d asks the store again", n, 0);
}

static void take(const long *c, const struct state *state, int n, uint64_t units,
                 struct walk *walk)
{
	struct state after = *state;
	struct region *region = &after.regions[n];
	struct alone alone = alone_of(c, region);

	if ((c[CUT] && !region->cut) || !alone_take(&alone, units, now))
		return;
	keep_alone(region, &alone);
	region->admitted += small(units);
	step(walk, &after, CHANCE, "region %d takes %d alone", n, (int)units);
}

static void change(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.regions[n].other ^= 1;
	step(walk, &after, CHANCE, "region %d has other terms", n, 0);
}

static void turn(const long *c, struct state *state)
{
	state->phase = state->used = 0;
	for (int n = 0; n < c[N]; n++) {
		state->regions[n].admitted = 0;
		state->regions[n].was = state->regions[n].cut;
	}
}

/* fast: regions whose clocks run fast, in bits. */
static void tick(const long *c, const struct state *state, struct walk *walk)
{
	unsigned ways = c[DRIFT] > 0 ? 1U << c[N] : 1;

	for (unsigned fast = 0; fast < ways; fast++) {
		struct state after = *state;

		for (int n = 0; n < c[N]; n++)
			age(c, &after.regions[n],
			    QUARTERS + (int)((fast >> n & 1) ? c[DRIFT] : -c[DRIFT]));
		if (++after.phase == c[TICKS])
			turn(c, &after);
		step(walk, &after, CHANCE, "a tick, fast %d", (int)fast, 0);
	}
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		const struct alone alone = alone_of(c, &state->regions[n]);

		grant(c, state, n, walk);
		if (state->regions[n].cut)
			heal(c, state, n, walk);
		else
			cut_off(state, n, walk);
		for (uint64_t k = 1; k <= alone_left(&alone, now); k++)
			take(c, state, n, k, walk);
		if (c[MORE] > 0)
			change(state, n, walk);
	}
	tick(c, state, walk);
}

/* ---- What must hold ------------------------------------------------------------------ */

static long most_alone(const long *c)
{
	return 2 * larger_of(c[UNITS], c[MORE]) - 1;
}

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		const struct region *region = &state->regions[n];

		if (region->admitted > (region->was ? most_alone(c) : 0))
			return "alone"; /* ALONE-2, FUND-8 */
	}
	return NULL;
}

static long bound(const long *c)
{
	return c[LIMIT] + c[N] * most_alone(c);
}

static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long sum = state->used;

	for (int n = 0; n < c[N]; n++)
		sum += state->regions[n].admitted;
	return sum;
}

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "tick %d, used %d", state->phase, state->used);
	for (int n = 0; n < c[N]; n++) {
		const struct region *region = &state->regions[n];

		fprintf(out, "; region %d%s has taken %d of %ld for %d, admitted %d", n,
		        region->cut ? " is cut off," : "", region->taken,
		        c[region->other ? MORE : UNITS], region->end, region->admitted);
	}
}

const struct model alone_model = {
	.name = "alone",
	.about = "regions that are cut off, and what each may use meanwhile",
	.constants = constants,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
