/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.c -- looks at a guard.
 *
 * Threads   As guard.h says.
 */
#include "coordinator/guard.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOK_LEAST_NS UINT64_C(5000000) /* of a guard of which there is much to learn */
#define LOOK_AGAIN_NS UINT64_C(100000)  /* never sooner: a turn ends */
#define LOOK_USUAL_NS UINT64_C(20000000)
#define LOOK_MOST_NS UINT64_C(640000000) /* of a guard without calls */
#define MUCH 64 /* slots that ended from one look to the next */
#define IDLE_NS UINT64_C(200000000)
#define CEILING_PER_CELL 16 /* slots, for each seat that is to keep some of them */
#define KEPT_PART 4         /* of the ceiling, in all: a quarter.  TURNSTILE-3 */

/* ---- The ceiling ------------------------------------------------------------------ */

static void apply(struct guard *guard)
{
	struct slots_ceiling least = slots_least(&guard->ceilings);
	uint64_t word = turnstile_word(&guard->turnstile);

	if (slots_applied(word, guard->generation, least) != word &&
	    turnstile_apply(&guard->turnstile, guard->generation, least))
		guard->ops->empty(guard);
}

/* What the law says, and what of it is a probe. */
static void follow_estimate(struct guard *guard)
{
	struct slots_ceilings *all = &guard->ceilings;
	uint32_t learned = estimate_limit(&guard->estimate);
	uint32_t limit = fleet_has_limit(guard->fleet) ? SLOTS_MOST : learned;
	uint32_t share = all->share < limit ? all->share : limit;
	uint32_t now = estimate_ceiling(&guard->estimate, share);

	all->estimate = limit;
	all->probe = now < share ? now : SLOTS_MOST;
	store_relaxed(&guard->told.estimate, learned);
}

void guard_init(struct guard *guard, const struct guard_config *config, mono now)
{
	struct turnstile_config turnstile = config->turnstile;

	(void)estimate_init(&guard->estimate, &config->law);
	turnstile.begins = estimate_limit(&guard->estimate);
	turnstile_init(&guard->turnstile, config->cells, &turnstile);
	guard->ops = config->ops;
	guard->overdue_ns = config->overdue_ns;
	guard->seed = config->seed;
	guard->fleet = config->fleet;
	guard->ceilings =
	    (struct slots_ceilings){ .ceiling = guard->estimate.set.ceiling,
		                     .share = SLOTS_MOST };
	guard->look_ns = LOOK_LEAST_NS;
	guard->overdue.since = guard->window = guard->look_due = now;
	if (guard->fleet)
		fleet_begin(guard->fleet, guard);
	follow_estimate(guard);
	apply(guard);
}

void guard_put_share(struct guard *guard, uint16_t generation, uint32_t share,
                     bool fenced)
{
	guard->generation = generation;
	guard->ceilings.share = share;
	guard->ceilings.fenced = fenced;
	follow_estimate(guard);
	apply(guard);
}

/* ---- Cells ------------------------------------------------------------------------ */

/* Cells through which calls have entered lately.  One that has not for as long as a thread
 * may have to wait for a processor is idle. */
static uint64_t cells_in_use(struct guard *guard, mono now)
{
	uint64_t in_use = 0;

	for (uint32_t i = 0; i < guard->turnstile.cell_count; i++) {
		uint64_t entered = turnstile_cell_entered(&guard->turnstile, i);

		if (entered != guard->entered[i])
			guard->active[i] = now;
		guard->entered[i] = entered;
		if (guard->active[i].ns > 0 && now.ns - guard->active[i].ns < IDLE_NS)
			in_use |= UINT64_C(1) << i;
	}
	return in_use;
}

/* A seat that has stopped entering gives back what its cell keeps. */
static void share_out(struct guard *guard, mono now)
{
	uint64_t cells = cells_in_use(guard, now);
	uint32_t count = (uint32_t)__builtin_popcountll(cells);
	uint32_t most = slots_most(turnstile_word(&guard->turnstile));
	uint32_t each = 0;

	/* A seat that is alone has no other to wait for. */
	if (count >= 2 && most / CEILING_PER_CELL >= count)
		each = most / (KEPT_PART * count);
	if (turnstile_keep(&guard->turnstile, cells, each))
		guard->ops->empty(guard);
}

/* ---- Calls that do not end -------------------------------------------------------- */

static uint64_t ended_of(const struct tally_sum *sum)
{
	uint64_t ended = 0;

	for (int i = 0; i < TURNSTILE_OUTCOMES; i++)
		ended += sum->ended[i];
	return ended;
}

static uint64_t in_use_of(const struct turnstile *turnstile)
{
	uint64_t in_flight = slots_in_flight(turnstile_word(turnstile));
	uint64_t kept = turnstile_kept(turnstile);

	return in_flight > kept ? in_flight - kept : 0;
}

static void say_overdue(struct guard *guard, uint64_t stuck)
{
	char line[128];

	if (stuck > 0)
		snprintf(line, sizeof(line),
		         "%" PRIu64
		         " slots or more are taken by calls that are overdue",
		         stuck);
	else
		snprintf(line, sizeof(line), "no call is overdue any more");
	guard->ops->say(guard, stuck > 0 ? GALE_LEVEL_WARNING : GALE_LEVEL_INFO, line);
}

/* Of the slots that were in flight then, those that did not end since are in flight still.
 * GUARD-2 */
static void look_for_overdue(struct guard *guard, const struct tally_sum *sum, mono now)
{
	struct overdue *overdue = &guard->overdue;
	uint64_t ended = ended_of(sum), since = ended - overdue->ended;
	uint64_t stuck = overdue->in_use > since ? overdue->in_use - since : 0;

	if (now.ns - overdue->since.ns < guard->overdue_ns)
		return;
	store_relaxed(&guard->told.overdue, stuck);
	if (overdue->said != (stuck > 0))
		say_overdue(guard, stuck);
	*overdue = (struct overdue){ .since = now,
		                     .in_use = in_use_of(&guard->turnstile),
		                     .ended = ended,
		                     .said = stuck > 0 };
}

/* ---- Learning --------------------------------------------------------------------- */

static uint32_t narrow(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Calls that a larger ceiling would have let in. */
static uint64_t refused_of(const struct tally_sum *sum)
{
	return sum->refused[SLOTS_BY_CEILING] + sum->refused[SLOTS_BY_SHARE] +
	       sum->refused[SLOTS_BY_ESTIMATE] + sum->refused[SLOTS_BY_PROBE] +
	       sum->refused[TURNSTILE_REFUSED_CLASS];
}

/* Calls that ended in the window were in flight for so long, at most all of the window; and calls
 * that did not end are in flight at its end. */
static uint64_t in_flight_time(const struct guard *guard, const struct tally_sum *sum,
                               uint64_t length_ns)
{
	uint64_t now = in_use_of(&guard->turnstile) * length_ns, busy = 0;

	for (int i = 0; i < TURNSTILE_OUTCOMES; i++)
		busy += sum->busy_ns[i] - guard->begun.busy_ns[i];
	return busy > now ? busy : now;
}

static struct estimate_window window_of(const struct guard *guard,
                                        const struct tally_sum *sum, mono now)
{
	const struct tally_sum *begun = &guard->begun;
	uint64_t length_ns = now.ns - guard->window.ns;

	return (struct estimate_window){
		.now_ns = now.ns,
		.length_ns = length_ns,
		.ok = narrow(sum->ended[TURNSTILE_OK] - begun->ended[TURNSTILE_OK]),
		.dropped = narrow(sum->ended[TURNSTILE_DROPPED] -
		                  begun->ended[TURNSTILE_DROPPED]),
		.ignored = narrow(sum->ended[TURNSTILE_IGNORED] -
		                  begun->ended[TURNSTILE_IGNORED]),
		.refused = narrow(refused_of(sum) - refused_of(begun)),
		.rtt_sum_ns = sum->busy_ns[TURNSTILE_OK] - begun->busy_ns[TURNSTILE_OK],
		.in_flight_time = in_flight_time(guard, sum, length_ns),
	};
}

static uint64_t draw(struct guard *guard)
{
	uint64_t x = guard->seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The ceiling that admitted in the window, but for a probe. */
static uint32_t in_force(const struct guard *guard)
{
	struct slots_ceilings all = guard->ceilings;

	all.probe = SLOTS_MOST;
	return slots_least(&all).most;
}

/* The limit that lets in a call which was kept out.  Where the law finds the ceiling of a fleet, each
 * other node keeps a slot of it. */
static uint32_t kept_out(struct guard *guard)
{
	uint64_t slots = turnstile_take_kept_out(&guard->turnstile);

	if (slots > 0 && guard->fleet && !guard->fleet->alone &&
	    !guard->fleet->shares_instead)
		slots += load_relaxed(&guard->fleet->told.members);
	return slots < SLOTS_MOST ? (uint32_t)slots : SLOTS_MOST;
}

static void learn(struct guard *guard, const struct tally_sum *sum, mono now)
{
	struct estimate_window window = window_of(guard, sum, now);

	if (!estimate_due(&guard->estimate, &window))
		return;
	window.in_flight_peak = turnstile_take_peak(&guard->turnstile);
	window.kept_out = kept_out(guard);
	estimate_learn(&guard->estimate, &window, in_force(guard), draw(guard));
	guard->begun = *sum;
	guard->window = now;
	follow_estimate(guard);
}

/* ---- A look ----------------------------------------------------------------------- */

static void set_pace(struct guard *guard, const struct tally_sum *sum)
{
	const struct tally_sum *last = &guard->last;
	uint64_t ended = ended_of(sum) - ended_of(last);

	if (ended >= MUCH)
		guard->look_ns = LOOK_LEAST_NS;
	else if (ended > 0 || sum->entered != last->entered ||
	         refused_of(sum) != refused_of(last))
		guard->look_ns = LOOK_USUAL_NS;
	else if (guard->look_ns < LOOK_MOST_NS)
		guard->look_ns *= 2;
}

/* The ceilings that made the word are known before it is changed: learning looks at the past. */
mono guard_look(struct guard *guard, mono now)
{
	struct tally_sum sum;

	turnstile_sum(&guard->turnstile, &sum);
	learn(guard, &sum, now);
	apply(guard);
	share_out(guard, now);
	look_for_overdue(guard, &sum, now);
	set_pace(guard, &sum);
	guard->last = sum;
	return mono_later(mono_earlier(mono_after(now, guard->look_ns),
	                               (mono){ estimate_next_ns(&guard->estimate) }),
	                  mono_after(now, LOOK_AGAIN_NS));
}
