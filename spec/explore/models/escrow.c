/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow.c -- a budget for tenants that ask, pause, are removed, and come back.
 *
 * Time is kept as ages: how many ticks ago each tenant asked last.  A window lasts as long as it
 * likes, and turns some day.
 *
 * Calls hold units of a tenant's share, grow, and end with less or more than they hold, also after
 * their window, and after their tenant was removed.  Call i is of the tenant i modulo their number.
 *
 *     ask, hold, grow --> used --settle--> back, or a debt, which the share pays first
 *
 * Shipped   all of escrow.c and escrow_level.c: its words are packed into a state as they are,
 *           with instants as ages.  What a hold gives back, and to which tenant, is as in
 *           face/tenant_hold.c and face/escrowed.c.
 */
#include <limits.h>
#include <string.h>

#include "engine/escrow.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define TENANTS 3
#define CALLS_MOST 4
#define HERE_US (UINT64_C(1) << 30)
#define PERIOD_US (UINT64_C(1) << 20)
#define AGES 8 /* windows that are told apart, of what is owed */

enum {
	N,
	LIMIT,
	WEIGHT,
	GUARANTEE,
	CAP,
	COST,
	RELEASE,
	EVICT,
	OTHERS,
	OWN,
	KEEP,
	LEAVE,
	CALLS,
	OVER,
	DEBT,
	FIRST,
	WINDOW,
	PAST,
	ONCE,
	SAME,
	LIFT,
	JUDGED
};

/* JUDGED */
enum { ALL, LAWS, FAIRNESS };

static const struct constant constants[] = {
	{ "tenants", 1, TENANTS, 2, "" },
	{ "limit", 1, 30, 5, "" },
	{ "weight", 1, 9, 1, "of tenant 0; the others have 1" },
	{ "guarantee", 0, 30, 0, "of tenant 1" },
	{ "cap", 1, 30, 30, "of tenant 2" },
	{ "cost", 1, 8, 1, "of the dearest call" },
	{ "release", 1, 3, 2, "ticks until who has stopped is absent" },
	{ "evict", 0, 1, 1, "tenants are removed, and others take their places" },
	{ "others", 0, 1, 1, "guard at 0: nothing is reserved for others" },
	{ "own", 0, 1, 1, "guard at 0: a borrower's own share is lent to it (W-29)" },
	{ "keep", 0, 1, 1,
	  "guard at 0: who is removed takes what it has used along (W-8)" },
	{ "leave", 0, 1, 1, "guard at 0: who has stopped is never absent (W-9)" },
	{ "calls", 0, CALLS_MOST, 0, "that may hold units at once, of all tenants" },
	{ "over", 0, 4, 1, "units that a call may cost beyond what it holds" },
	{ "debt", 0, 1, 1,
	  "guard at 0: what a call cost beyond is not owed (ESCROW-5)" },
	{ "first", 0, 1, 1,
	  "guard at 0: a tenant is admitted before it has paid (ESCROW-5)" },
	{ "window", 0, 1, 1,
	  "guard at 0: a hold gives back into any window (TENANT-7)" },
	{ "past", 0, 1, 1,
	  "guard at 0: who grows in a later window may give back both (TENANT-7)" },
	{ "once", 0, 1, 1, "guard at 0: a hold is settled again (TENANT-7)" },
	{ "same", 0, 1, 1,
	  "guard at 0: the hold of a removed tenant gives back to the next "
	  "(TENANT-7)" },
	{ "lift", 0, 1, 1,
	  "guard at 0: who comes back is owed what it has missed (T4)" },
	{ "judged", ALL, FAIRNESS, ALL,
	  "1: not where each unit is; 2: neither that, but T4 alone" },
	{ NULL, 0, 0, 0, NULL },
};

struct packed {
	uint8_t used, debt, refused, owed, owed_since, repaid, came, age;
	uint8_t list, stand, before, after;
};

/* Units that are held for a call; all 0: none runs. */
struct held_call {
	uint8_t units, past; /* past: of windows before that of the units */
	uint8_t now;         /* of the units: those that are of this window */
	uint8_t old;         /* the units are of a window that is over */
	uint8_t removed;     /* the tenant is */
	uint8_t again;       /* it is settled, and is settled again */
};

struct state {
	/* Held or committed in the window, with what calls have cost beyond; apart from the
	 * escrow. */
	uint8_t admitted;
	uint8_t
	    gone; /* of it: what was owed, or would be, by those that were removed */
	uint8_t robbed; /* an ask took of what was left of another's share */
	uint8_t owing;  /* one that still owed units was admitted */
	uint8_t
	    gained; /* one that came back has more than its part in the window after */
	struct held_call calls[CALLS_MOST];
	uint8_t by[TENANTS]; /* of admitted */
	uint8_t used, absent, weights, guaranteed, promised;
	uint8_t settled, is_short, reckoned;
	uint8_t fixed, bases, slopes, pool, floor, reserve;
	uint8_t first[ESCROW_LISTS], last[ESCROW_LISTS];
	struct packed tenants[TENANTS];
};

struct world {
	struct escrow escrow;
	struct escrow_tenant tenants[TENANTS];
};

static struct escrow_settings settings_of(const long *c)
{
	return (struct escrow_settings){ .limit = (uint64_t)c[LIMIT],
		                         .period_us = PERIOD_US,
		                         .release_us = (uint64_t)c[RELEASE] };
}

static struct escrow_terms terms_of(const long *c, int n)
{
	return (struct escrow_terms){
		.guarantee = n == 1 ? (uint64_t)c[GUARANTEE] : 0,
		.cap = n == 2 ? (uint64_t)c[CAP] : (uint64_t)c[LIMIT],
		.weight = n == 0 ? (uint32_t)c[WEIGHT] : 1,
	};
}

static const char *open(const long *c)
{
	return c[GUARANTEE] > c[LIMIT] ? "guarantee is above the limit" : NULL;
}

/* ---- Packing ----------------------------------------------------------------------- */

static uint8_t pack_number(uint32_t number)
{
	return number == ESCROW_NOBODY ? UINT8_MAX : small(number);
}

static uint32_t unpack_number(uint8_t number)
{
	return number == UINT8_MAX ? ESCROW_NOBODY : number;
}

static struct packed pack_tenant(const struct escrow_tenant *tenant)
{
	uint64_t since = (HERE_US - tenant->owed_since) / PERIOD_US;
	bool in_window = tenant->window == HERE_US;

	return (struct packed){
		.used = in_window ? small(tenant->used) : 0,
		.debt = in_window ? small(tenant->debt) : 0,
		.refused = in_window ? small(tenant->refused) : 0,
		.owed = small(tenant->owed),
		.owed_since =
		    tenant->owed > 0 ? (uint8_t)smaller_of((long)since, AGES) : 0,
		.repaid = in_window ? small(tenant->repaid) : 0,
		.came = tenant->list == ESCROW_PRESENT && tenant->came_us > HERE_US,
		.age = tenant->list == ESCROW_PRESENT
		           ? small(HERE_US + AGES - tenant->asked_us)
		           : 0,
		.list = (uint8_t)tenant->list,
		.stand = tenant->list == ESCROW_PRESENT ? (uint8_t)tenant->stand : 0,
		.before = pack_number(tenant->before),
		.after = pack_number(tenant->after),
	};
}

static void pack(const struct world *world, struct state *ret_state)
{
	const struct escrow *escrow = &world->escrow;

	ret_state->used = small(escrow->used);
	ret_state->absent = small(escrow->absent);
	ret_state->weights = small(escrow->weights);
	ret_state->guaranteed = small(escrow->guaranteed);
	ret_state->promised = small(escrow->promised);
	ret_state->settled = escrow->settled;
	ret_state->is_short = escrow->settled && escrow->is_short;
	ret_state->reckoned = escrow->settled && escrow->reckoned;
	ret_state->fixed = escrow->settled ? small(escrow->fixed) : 0;
	ret_state->bases = escrow->settled ? small(escrow->bases) : 0;
	ret_state->slopes = escrow->settled ? small(escrow->slopes) : 0;
	ret_state->pool = escrow->settled ? small(escrow->pool) : 0;
	ret_state->floor = escrow->settled ? small(escrow->floor) : 0;
	ret_state->reserve = ret_state->reckoned ? small(escrow->reserve) : 0;
	for (int i = 0; i < ESCROW_LISTS; i++) {
		ret_state->first[i] = pack_number(escrow->lists[i].first);
		ret_state->last[i] = pack_number(escrow->lists[i].last);
	}
	for (uint32_t n = 0; n < escrow->room; n++)
		ret_state->tenants[n] = pack_tenant(&world->tenants[n]);
}

static struct escrow_tenant unpack_tenant(const long *c, int n,
                                          const struct packed *packed)
{
	return (struct escrow_tenant){
		.terms = terms_of(c, n),
		.window = HERE_US,
		.used = packed->used,
		.debt = packed->debt,
		.refused = packed->refused,
		.owed = packed->owed,
		.owed_since = HERE_US - packed->owed_since * PERIOD_US,
		.repaid = packed->repaid,
		.came_us = packed->came ? HERE_US + 1 : HERE_US,
		.asked_us = HERE_US + AGES - packed->age,
		.list = packed->list,
		.stand = packed->stand,
		.before = unpack_number(packed->before),
		.after = unpack_number(packed->after),
	};
}

/* Now is AGES into the window, so that whoever has asked in it has asked after its beginning. */
static void unpack(const long *c, const struct state *state, struct world *ret_world)
{
	struct escrow *escrow = &ret_world->escrow;

	*escrow = (struct escrow){ .set = settings_of(c),
		                   .tenants = ret_world->tenants,
		                   .room = (uint32_t)c[N],
		                   .now_us = HERE_US + AGES,
		                   .window = HERE_US,
		                   .used = state->used,
		                   .absent = state->absent,
		                   .weights = state->weights,
		                   .guaranteed = state->guaranteed,
		                   .promised = state->promised,
		                   .assured = (uint64_t)c[LIMIT],
		                   .level = 1, /* so no share is known */
		                   .settled = state->settled,
		                   .is_short = state->is_short,
		                   .reckoned = state->reckoned,
		                   .fixed = state->fixed,
		                   .bases = state->bases,
		                   .slopes = state->slopes,
		                   .pool = state->pool,
		                   .floor = state->floor,
		                   .reserve = state->reserve };
	for (int i = 0; i < ESCROW_LISTS; i++) {
		escrow->lists[i].first = unpack_number(state->first[i]);
		escrow->lists[i].last = unpack_number(state->last[i]);
	}
	for (int n = 0; n < c[N]; n++) {
		ret_world->tenants[n] = unpack_tenant(c, n, &state->tenants[n]);
		escrow->lists[ret_world->tenants[n].list].count++;
	}
}

/* ---- Steps -------------------------------------------------------------------------- */

static void begin(const long *c, struct walk *walk)
{
	struct escrow_settings set = settings_of(c);
	struct world world;
	struct state state = { 0 };
	uint32_t number;

	escrow_init(&world.escrow, &set, world.tenants, (uint32_t)c[N]);
	world.escrow.now_us = HERE_US + AGES;
	world.escrow.window = HERE_US;
	for (int n = 0; n < c[N]; n++) {
		struct escrow_terms terms = terms_of(c, n);

		gale_assert(escrow_add(&world.escrow, &terms, &number) == FAIR_GOOD);
	}
	pack(&world, &state);
	step(walk, &state, CHANCE, "%d tenants", (int)c[N], 0);
}

/* What is refused is admitted after all, by a rule that has no guard. */
static bool admits_anyway(const long *c, struct world *world, uint32_t n, uint64_t cost)
{
	struct escrow *escrow = &world->escrow;
	uint64_t used = world->tenants[n].used, left = escrow->set.limit - escrow->used;
	uint64_t reserve = 0, share = escrow_share(escrow, n);

	if (cost > left)
		return false;
	for (uint32_t j = 0; j < (uint32_t)c[N]; j++)
		if (j != n && escrow_share(escrow, j) > escrow_used(escrow, j))
			reserve += escrow_share(escrow, j) - escrow_used(escrow, j);
	if (!c[OTHERS])
		return true;
	/* The predecessor's: what the borrower has not used of its share is there, too. */
	return !c[OWN] && used + cost - share <= (left > reserve ? left - reserve : 0);
}

static bool admits(const long *c, struct world *world, struct state *after, int n,
                   int cost)
{
	struct escrow *escrow = &world->escrow;
	struct escrow_tenant *tenant = &world->tenants[n];
	uint64_t later = c[FIRST] ? 0 : tenant->debt;
	bool admitted;

	tenant->debt -= later;
	admitted =
	    escrow_ask(escrow, (uint32_t)n, (uint64_t)cost, escrow->now_us).admitted;
	tenant->debt += later;
	if (!admitted && admits_anyway(c, world, (uint32_t)n, (uint64_t)cost)) {
		admitted = true;
		tenant->used += (uint64_t)cost;
		escrow->used += (uint64_t)cost;
		escrow->settled = false;
	}
	if (!admitted)
		return false;
	after->admitted += small((uint64_t)cost);
	after->by[n] += small((uint64_t)cost);
	after->owing |= tenant->debt > 0;
	return true;
}

/* What each has left of its share: that is nobody else's to take.  Who comes takes of it. */
static void fill_left(const long *c, struct escrow *escrow, uint64_t *ret_left)
{
	for (uint32_t n = 0; n < (uint32_t)c[N]; n++) {
		uint64_t share = escrow_share(escrow, n), used = escrow_used(escrow, n);

		ret_left[n] = share > used ? share - used : 0;
	}
}

/* The world after a step for tenant n: *ret_after says, too, whether it took what is another's. */
static void end_step(const long *c, const struct state *state, int n,
                     struct world *world, struct state *ret_after)
{
	uint64_t before[TENANTS] = { 0 }, left[TENANTS] = { 0 };
	struct world first;

	unpack(c, state, &first);
	fill_left(c, &first.escrow, before);
	pack(world, ret_after);
	fill_left(c, &world->escrow, left);
	for (int j = 0; j < c[N]; j++)
		ret_after->robbed |= j != n && left[j] < before[j] &&
		                     state->tenants[n].list == ESCROW_PRESENT;
}

static void ask(const long *c, const struct state *state, int n, int cost,
                struct walk *walk)
{
	struct state after = *state;
	struct world world;

	unpack(c, state, &world);
	(void)admits(c, &world, &after, n, cost);
	end_step(c, state, n, &world, &after);
	step(walk, &after, CHANCE, "tenant %d asks for %d", n, cost);
}

/* ---- Calls that hold units ---------------------------------------------------------- */

static void hold(const long *c, const struct state *state, int i, int cost,
                 struct walk *walk)
{
	struct state after = *state;
	int n = i % (int)c[N];
	struct world world;
	uint64_t most;

	unpack(c, state, &world);
	most = escrow_most(&world.escrow, (uint32_t)n);
	if ((uint64_t)cost > most)
		cost = (int)most;
	if (admits(c, &world, &after, n, cost))
		after.calls[i] = (struct held_call){ .units = small((uint64_t)cost),
			                             .now = small((uint64_t)cost) };
	end_step(c, state, n, &world, &after);
	step(walk, &after, CHANCE, "call %d holds %d", i, cost);
}

/* A hold outlives one window, in this world. */
static void grow(const long *c, const struct state *state, int i, struct walk *walk)
{
	struct state after = *state;
	struct held_call *call = &after.calls[i];
	int n = i % (int)c[N];
	struct world world;

	if (call->removed || (call->old && call->past > 0))
		return;
	unpack(c, state, &world);
	if (admits(c, &world, &after, n, 1)) {
		if (call->old && c[PAST]) {
			call->past = call->units;
			call->units = 0;
		}
		call->units++;
		call->now++;
		call->old = 0;
	}
	end_step(c, state, n, &world, &after);
	step(walk, &after, CHANCE, "call %d grows", i, 0);
}

/* Units go back to the tenant that they are of, and what was used beyond is its debt. */
static void settle_escrow(const long *c, struct world *world, int n,
                          const struct held_call *call, uint64_t back, uint64_t over)
{
	uint64_t window = call->old && c[WINDOW] ? HERE_US - PERIOD_US : HERE_US;

	if (call->removed && c[SAME]) {
		escrow_give_removed(&world->escrow, back, window);
		return;
	}
	escrow_give(&world->escrow, (uint32_t)n, back, window);
	if (!call->removed && c[DEBT])
		escrow_debit(&world->escrow, (uint32_t)n, over, window);
}

/* The same, apart from the escrow. */
static void note_settled(struct state *after, int n, const struct held_call *call,
                         uint64_t back, uint64_t over)
{
	uint64_t real = (uint64_t)smaller_of((long)back, call->now);
	uint64_t beyond = call->old || call->again ? 0 : over;

	after->admitted += small(beyond);
	after->admitted -= small(real);
	if (call->removed) {
		after->gone += small(beyond);
		return;
	}
	after->by[n] += small(beyond);
	after->by[n] -= small(real);
}

static void settle(const long *c, const struct state *state, int i, int cost,
                   struct walk *walk)
{
	const struct held_call *call = &state->calls[i];
	int n = i % (int)c[N], held = call->units + call->past;
	uint64_t back = (uint64_t)smaller_of(call->units, larger_of(0, held - cost));
	uint64_t over = (uint64_t)larger_of(0, cost - held);
	struct state after = *state;
	struct world world;

	unpack(c, state, &world);
	settle_escrow(c, &world, n, call, back, over);
	note_settled(&after, n, call, back, over);
	if (c[ONCE]) {
		after.calls[i] = (struct held_call){ 0 };
	} else {
		after.calls[i].again = 1;
		after.calls[i].now = 0;
	}
	end_step(c, state, n, &world, &after);
	step(walk, &after, CHANCE, "call %d has cost %d", i, cost);
}

static void call(const long *c, const struct state *state, int i, struct walk *walk)
{
	const struct held_call *it = &state->calls[i];

	for (int cost = 1; it->units == 0 && cost <= c[COST]; cost++)
		hold(c, state, i, cost, walk);
	if (it->units == 0)
		return;
	grow(c, state, i, walk);
	for (int cost = 0; cost <= it->units + it->past + c[OVER]; cost++)
		settle(c, state, i, cost, walk);
}

/* ---- Time --------------------------------------------------------------------------- */

/* All ages but one go up, by setting back when each has asked. */
static void age(const long *c, const struct state *state, int but, struct world *world)
{
	uint32_t number;

	for (int n = 0; n < c[N]; n++)
		if (n != but && world->tenants[n].list == ESCROW_PRESENT &&
		    (c[LEAVE] || state->tenants[n].age < c[RELEASE]))
			world->tenants[n].asked_us--;
	while (c[LEAVE] && (number = escrow_due(&world->escrow,
	                                        world->escrow.now_us)) != ESCROW_NOBODY)
		escrow_leave(&world->escrow, number);
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct world world;

	unpack(c, state, &world);
	age(c, state, /* but= */ -1, &world);
	pack(&world, &after);
	step(walk, &after, CHANCE, "a tick", 0, 0);
}

/* The rest is silent. */
static void ask_alone(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct world world;

	unpack(c, state, &world);
	escrow_saw(&world.escrow, 0);
	age(c, state, /* but= */ 0, &world);
	while (admits(c, &world, &after, 0, 1))
		;
	pack(&world, &after);
	step(walk, &after, FAIR, "a tick in which tenant 0 asks for all there is", 0,
	     0);
}

/* No tenant has a guarantee or a cap: shares are by weight alone. */
static bool are_alike(const long *c)
{
	return c[GUARANTEE] == 0 && (c[N] <= 2 || c[CAP] >= c[LIMIT]);
}

/* Who came in the window before has no more than its part of this one, and is owed nothing.  T4 */
static bool has_gained(const long *c, const struct state *state, struct world *world)
{
	struct escrow *escrow = &world->escrow;

	for (uint32_t n = 0; are_alike(c) && n < (uint32_t)c[N]; n++)
		if (state->tenants[n].came &&
		    (world->tenants[n].owed > 0 ||
		     escrow_share(escrow, n) * escrow->weights >
		         escrow->set.limit * world->tenants[n].terms.weight))
			return true;
	return false;
}

static void turn_calls(struct state *after)
{
	for (int i = 0; i < CALLS_MOST; i++) {
		after->calls[i].old = after->calls[i].units > 0;
		after->calls[i].now = 0;
	}
}

/* All that is left of the window before is what is owed. */
static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct world world;

	unpack(c, state, &world);
	for (int n = 0; n < c[N] && !c[LIFT]; n++)
		world.tenants[n].came_us = HERE_US;
	(void)escrow_due(&world.escrow, HERE_US + PERIOD_US);
	for (int n = 0; n < c[N]; n++) {
		world.tenants[n].window -= PERIOD_US;
		world.tenants[n].came_us -= PERIOD_US;
		world.tenants[n].owed_since -= PERIOD_US;
	}
	pack(&world, &after);
	after.gained |= has_gained(c, state, &world);
	after.admitted = after.gone = 0;
	memset(after.by, 0, sizeof(after.by));
	turn_calls(&after);
	step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static void evict(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct escrow_terms terms = terms_of(c, n);
	struct state after = *state;
	struct world world;
	uint32_t number = (uint32_t)n, other;

	unpack(c, state, &world);
	if (!c[KEEP])
		escrow_give(&world.escrow, number, world.tenants[n].used, HERE_US);
	escrow_remove(&world.escrow, number);
	gale_assert(escrow_add(&world.escrow, &terms, &other) == FAIR_GOOD &&
	            other == number);
	after.by[n] = 0;
	after.gone += state->tenants[n].debt;
	for (int i = n; i < c[CALLS]; i += (int)c[N])
		after.calls[i].removed = after.calls[i].units > 0;
	pack(&world, &after);
	step(walk, &after, CHANCE, "another is tenant %d", n, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++)
		for (int cost = 1; cost <= c[COST]; cost++)
			ask(c, state, n, cost, walk);
	for (int i = 0; i < c[CALLS]; i++)
		call(c, state, i, walk);
	tick(c, state, walk);
	ask_alone(c, state, walk);
	turn(c, state, walk);
	for (int n = 1; c[EVICT] && n < c[N]; n++)
		evict(c, state, n, walk);
}

/* ---- What must hold ------------------------------------------------------------------ */

/* By tenant n; the rest of what its calls have cost is owed. */
static long used_by(const struct state *state, int n)
{
	return state->by[n] - state->tenants[n].debt;
}

static long used(const long *c, const struct state *state)
{
	long owed = state->gone;

	for (int n = 0; n < c[N]; n++)
		owed += state->tenants[n].debt;
	return state->admitted - owed;
}

static bool are_booked(const long *c, const struct state *state)
{
	for (int n = 0; n < c[N]; n++)
		if (used_by(state, n) != state->tenants[n].used)
			return false;
	return used(c, state) == state->used;
}

/* All were there from the beginning of the window, no call runs, and each has used its share. */
static bool is_over(const long *c, const struct state *state, struct world *world)
{
	for (int i = 0; i < c[CALLS]; i++)
		if (state->calls[i].now > 0)
			return false;
	for (int n = 0; n < c[N]; n++) {
		const struct packed *tenant = &state->tenants[n];

		if (tenant->list != ESCROW_PRESENT || tenant->came ||
		    tenant->repaid > 0 ||
		    (long)escrow_share(&world->escrow, (uint32_t)n) > used_by(state, n))
			return false;
	}
	return true;
}

/* |a/v - b/w| <= q/v + q/w, where q is the dearest hold, and what the calls of a tenant that run at
 * once cost beyond.  T4 */
static bool are_fair(const long *c, const struct state *state, struct world *world)
{
	long q = c[COST] + (c[CALLS] + c[N] - 1) / c[N] * c[OVER];

	if (!are_alike(c) || !is_over(c, state, world))
		return true;
	for (int i = 0; i < c[N]; i++)
		for (int j = 0; j < c[N]; j++) {
			long v = terms_of(c, i).weight, w = terms_of(c, j).weight;

			if (state->by[i] * w > state->by[j] * v + q * (v + w))
				return false;
		}
	return true;
}

static const char *unjust(const long *c, const struct state *state, struct world *world)
{
	if (state->robbed && c[JUDGED] != FAIRNESS)
		return "robbed";
	if (state->owing && c[JUDGED] != FAIRNESS)
		return "owing"; /* ESCROW-5 */
	if (state->gained)
		return "gained";
	return c[CALLS] > 0 && !are_fair(c, state, world) ? "fair" : NULL;
}

/* Whatever is reserved is there, and nobody has both a share that is used up and room for one
 * unit more of it. */
static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long all = used(c, state), reserve = all;
	const char *why;
	struct world world;

	unpack(c, state, &world);
	if (!escrow_valid(&world.escrow))
		return "valid";
	if (c[CALLS] > 0 && c[JUDGED] == ALL && !are_booked(c, state))
		return "conserved";
	why = unjust(c, state, &world);
	if (why || c[JUDGED] == FAIRNESS)
		return why;
	for (int n = 0; n < c[N]; n++) {
		long share = (long)escrow_share(&world.escrow, (uint32_t)n);

		if (state->tenants[n].list == ESCROW_PRESENT)
			reserve += larger_of(0, share - used_by(state, n));
	}
	if (reserve > larger_of(c[LIMIT], all))
		return "reserved";
	/* Who was there from the beginning of the window has its guarantee. */
	if (c[N] > 1 && state->tenants[1].list == ESCROW_PRESENT &&
	    !state->tenants[1].came && used_by(state, 1) < c[GUARANTEE] &&
	    all + c[GUARANTEE] - used_by(state, 1) > c[LIMIT])
		return "guarantee";
	return NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

/* But for what calls have cost beyond their holds, and is owed. */
static long found(const long *c, const void *at)
{
	return smaller_of(used(c, at), c[JUDGED] == FAIRNESS ? c[LIMIT] : LONG_MAX);
}

static bool is_used_up(const long *c, const void *at)
{
	return used(c, at) == c[LIMIT];
}

static const struct goal goals[] = {
	{ "used-up", CERTAIN, is_used_up },
	{ NULL, 0, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "admitted %d%s", state->admitted,
	        state->settled ? "" : ", unsettled");
	for (int n = 0; n < c[N]; n++) {
		const struct packed *tenant = &state->tenants[n];

		fprintf(out, "; %s %d used %d",
		        tenant->list == ESCROW_PRESENT ? "present" : "absent", n,
		        tenant->used);
		if (tenant->owed > 0)
			fprintf(out, ", owed %d repaid %d", tenant->owed,
			        tenant->repaid);
		if (tenant->debt > 0)
			fprintf(out, ", owes %d", tenant->debt);
	}
	for (int i = 0; i < c[CALLS]; i++)
		if (state->calls[i].units > 0)
			fprintf(out, "; call %d holds %d%s and %d of before%s", i,
			        state->calls[i].units,
			        state->calls[i].old ? " that are past" : "",
			        state->calls[i].past,
			        state->calls[i].removed ? ", its tenant is removed"
			                                : "");
}

const struct model escrow_model = {
	.name = "escrow",
	.about = "one budget for tenants that ask, pause, are removed, and come back",
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
