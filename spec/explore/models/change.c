/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * change.c -- nodes are given another rule, one by one, and share a key meanwhile. (law L15)
 *
 * Each node asks under the rule that it has; the store keeps the words of the rule that last
 * took something, and converts them.  A rule is in force as long as a node has it, or the
 * words are of it: what is spent then comes back at that rate.
 *
 * Meters: for every interval t what is admitted is at most the largest burst and what the
 * fastest rate in force adds; since there was one rule alone, at most that one's.  Windows: at
 * most the largest limit that was in force in the window.  Token budgets: so much, and what the
 * last call costs above it.
 *
 * The state keeps only the worst interval that ends now, in parts: a unit is the product of
 * both periods.
 *
 * Shipped   rule_step, rule_reads, rule_convert, rule_expires; meter.c, window.c.
 */
#include <string.h>

#include "engine/meter.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define HERE_US (UINT64_C(1) << 40)

enum {
	N,
	LIMIT,
	PERIOD,
	BURST,
	LIMIT2,
	PERIOD2,
	BURST2,
	COST,
	KIND,
	BACK,
	CONVERT,
	KEEP
};
enum { GCRA, BUCKET, WINDOW, BUDGET };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 8, 1, "of the first rule: units accrue in a period" },
	{ "period", 1, 12, 2, "ticks" },
	{ "burst", 1, 12, 3, "" },
	{ "limit2", 1, 8, 1, "of the other rule" },
	{ "period2", 1, 12, 3, "" },
	{ "burst2", 1, 12, 2, "" },
	{ "cost", 1, 4, 1, "the most that is asked for" },
	{ "kind", 0, 3, 0,
	  "0: a gcra, 1: a token bucket, 2: a window of a tick, 3: a token budget of "
	  "one" },
	{ "back", 0, 1, 0, "nodes may be given the first rule again" },
	{ "convert", 0, 1, 1, "guard at 0: words are read as if they were one's own" },
	{ "keep", 0, 1, 1, "guard at 0: a key of another rule begins anew" },
	{ NULL, 0, 0, 0, NULL },
};

struct state {
	uint16_t over;  /* the worst interval that ends now; windows: admitted in it */
	uint16_t alone; /* the same, since one rule is in force alone */
	uint8_t ahead;  /* parts of its rule's until the meter is full; windows: used */
	uint8_t by;     /* the rule that has written that */
	uint8_t has;    /* which rule each node has, in bits */
	uint8_t seen;   /* windows: which were in force since it began */
};

static struct rule rules[2];

static bool has_windows(const long *c)
{
	return c[KIND] == WINDOW || c[KIND] == BUDGET;
}

static struct gale_rule configure(const long *c, int which)
{
	uint64_t limit = (uint64_t)c[which ? LIMIT2 : LIMIT];
	uint64_t period = (uint64_t)c[which ? PERIOD2 : PERIOD];
	uint64_t burst = (uint64_t)c[which ? BURST2 : BURST];

	if (c[KIND] == BUDGET)
		return gale_token_budget(limit, 1);
	if (c[KIND] == WINDOW)
		return gale_fixed_window(limit, 1);
	return c[KIND] == BUCKET ? gale_token_bucket(burst, limit, period)
	                         : gale_gcra(limit, period, burst);
}

static const char *open(const long *c)
{
	for (int i = 0; i < 2; i++) {
		struct gale_rule config = configure(c, i);

		if (rule_compile(&config, &rules[i]) != GALE_ERR_OK)
			return "no such rule";
	}
	return NULL;
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { .seen = 1 };

	(void)c;
	step(walk, &state, CHANCE, "all have the first rule, and nothing is spent", 0,
	     0);
}

/* ---- What is in force ------------------------------------------------------------ */

static int rule_of(const struct state *state, int n)
{
	return state->has >> n & 1;
}

static unsigned in_force(const long *c, const struct state *state)
{
	unsigned set = !has_windows(c) && state->ahead > 0 ? 1u << state->by : 0;

	for (int n = 0; n < c[N]; n++)
		set |= 1u << rule_of(state, n);
	return set;
}

/* Parts of a unit that a rule adds in a tick, and that it has at most. */
static long rate(const long *c, int which)
{
	return which ? c[LIMIT2] * c[PERIOD] : c[LIMIT] * c[PERIOD2];
}

static long unit(const long *c)
{
	return c[PERIOD] * c[PERIOD2];
}

static long capacity(const long *c, int which)
{
	if (c[KIND] == BUDGET)
		return c[which ? LIMIT2 : LIMIT] + c[COST] - 1;
	if (c[KIND] == WINDOW)
		return c[which ? LIMIT2 : LIMIT];
	return c[which ? BURST2 : BURST] * unit(c);
}

static long most_of(unsigned set, long first, long second)
{
	return larger_of(set & 1 ? first : 0, set & 2 ? second : 0);
}

/* What is in force has changed, or may have. */
static void note(const long *c, struct state *state)
{
	unsigned set = in_force(c, state);

	state->seen = has_windows(c) ? (uint8_t)(state->seen | set) : 0;
	if (set == 3)
		state->alone = 0;
}

/* ---- Words ----------------------------------------------------------------------- */

union words {
	struct meter_state meter;
	struct window_state window;
	uint64_t all[4];
};

static union words words_of(const long *c, const struct state *state)
{
	uint64_t limit = (uint64_t)c[state->by ? LIMIT2 : LIMIT];
	union words words = { .all = { 0 } };

	if (has_windows(c))
		words.window =
		    words_of_window(&rules[state->by], HERE_US, state->ahead);
	else
		words.meter = (struct meter_state){
			.tat = { HERE_US + state->ahead / limit, state->ahead % limit },
			.period_us = rules[state->by].is.period_us,
		};
	return words;
}

static void keep(const long *c, struct state *state, const union words *words, int by)
{
	const struct gale_slot tat = words->meter.tat;
	uint64_t limit = rules[by].is.limit;

	state->by = (uint8_t)by;
	if (has_windows(c))
		state->ahead =
		    words->window.start_us == HERE_US ? small(words->window.used) : 0;
	else
		state->ahead =
		    tat.us < HERE_US ? 0 : small((tat.us - HERE_US) * limit + tat.part);
}

/* As a store does it.  False: it begins anew. */
static bool convert(const long *c, int by, int which, union words *words)
{
	const union words was = *words;
	const struct rule_former former = { rules[by].is.kind, rules[by].fingerprint,
		                            false, was.all, rules[by].words };

	if (rule_reads(&rules[which], &former) || !c[CONVERT])
		return true;
	if (!c[KEEP])
		return false;
	gale_assert(rule_convert(&rules[which], &former, HERE_US, words->all) ==
	            RULE_CONVERTED);
	return true;
}

/* ---- Steps ----------------------------------------------------------------------- */

static void admit(const long *c, struct state *state, long cost)
{
	long parts = has_windows(c) ? cost : cost * unit(c);

	state->over = (uint16_t)(state->over + parts);
	state->alone = (uint16_t)(state->alone + parts);
}

static void ask(const long *c, const struct state *state, int n, long cost,
                struct walk *walk)
{
	struct state after = *state;
	union words words = words_of(c, state);
	int which = rule_of(state, n);

	if (!convert(c, state->by, which, &words))
		memset(&words, 0, sizeof(words));
	if (!c[CONVERT] && !has_windows(c))
		words.meter.period_us = rules[which].is.period_us;
	if (rule_step(&rules[which], words.all, HERE_US, (uint64_t)cost).verdict !=
	    GALE_ALLOW)
		return;
	keep(c, &after, &words, which);
	admit(c, &after, cost);
	note(c, &after);
	step(walk, &after, CHANCE, "node %d is allowed %d", n, (int)cost);
}

static void change(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	if (rule_of(state, n) == 1 && !c[BACK])
		return;
	note(c, &after);
	after.has ^= (uint8_t)(1u << n);
	note(c, &after);
	step(walk, &after, CHANCE, "node %d has rule %d", n, rule_of(&after, n) + 1);
}

static uint16_t less(uint16_t parts, long by)
{
	return parts > by ? (uint16_t)(parts - by) : 0;
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	long added = most_of(in_force(c, state), rate(c, 0), rate(c, 1));

	if (has_windows(c)) {
		after.ahead = 0;
		after.over = after.alone = 0;
		after.seen = 0;
	} else {
		after.ahead = (uint8_t)less(after.ahead, c[state->by ? LIMIT2 : LIMIT]);
		after.over = less(after.over, added);
		after.alone = less(after.alone, added);
	}
	if (after.ahead == 0)
		after.by = 0;
	note(c, &after);
	step(walk, &after, FAIR, "a tick", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		for (long cost = 1; cost <= c[COST]; cost++)
			ask(c, state, n, cost, walk);
		change(c, state, n, walk);
	}
	tick(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static bool is_alone(unsigned set)
{
	return set == 1 || set == 2;
}

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	unsigned set = has_windows(c) ? state->seen : in_force(c, state);

	if (has_windows(c))
		return state->over > most_of(set, capacity(c, 0), capacity(c, 1))
		           ? "window"
		           : NULL;
	return is_alone(set) &&
	               state->alone > most_of(set, capacity(c, 0), capacity(c, 1))
	           ? "alone"
	           : NULL;
}

static long bound(const long *c)
{
	return larger_of(capacity(c, 0), capacity(c, 1));
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->over;
}

static bool is_full(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->ahead == 0;
}

static const struct goal goals[] = {
	{ "full", CERTAIN, is_full },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "%s %d by rule %d, over %d, alone %d;",
	        has_windows(c) ? "used" : "full in", state->ahead, state->by + 1,
	        state->over, state->alone);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, " node %d has rule %d", n, rule_of(state, n) + 1);
}

const struct model change_model = {
	.name = "change",
	.about = "a key whose rule is changed node by node",
	.constants = constants,
	.goals = goals,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
