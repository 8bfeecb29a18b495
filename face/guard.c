/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.c -- guards open and close; calls enter and exit.
 *
 * Threads   gale_enter and gale_exit: the seat's own.  The rest: any.
 *
 * Ordering
 *
 *   founded   gale_guard_open stores the runtime's guardhouse with release  ->  a thread that
 *             turns, closes or leaves loads it with acquire
 *             The coordinator is open.
 */
#define _GNU_SOURCE
#include "face/guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"
#include "engine/group.h"
#include "face/checks.h"
#include "face/guard_config.h"
#include "face/seat.h"
#include "face/sized.h"
#include "runtime/memory.h"
#include "runtime/random.h"

#define SHEDDABLE_DEFAULT 900
#define SLOTS_MOST_DEFAULT 500
#define OVERDUE_DEFAULT_US GALE_MINUTES(1)

static_assert((int)GALE_OK == TURNSTILE_OK && (int)GALE_DROPPED == TURNSTILE_DROPPED &&
                  (int)GALE_IGNORED == TURNSTILE_IGNORED,
              "an outcome is passed on as it is");
static_assert(GALE_SLOTS_MAX <= SLOTS_MOST && GALE_SLOTS_MAX <= ESTIMATE_MOST,
              "a word has room for each");
static struct guardhouse *guardhouse_of(const struct gale_runtime *runtime)
{
	return load_acquire(&runtime->guardhouse); /* founded */
}

/* ---- The house of the guards ------------------------------------------------------- */

static void free_house(struct gale_runtime *runtime, struct guardhouse *house)
{
	memory_give_lines(runtime->allocator, house, sizeof(*house));
}

static enum gale_err found_house(struct gale_runtime *runtime) ON(runtime->lock)
{
	struct coordinator_config config = { .clock = runtime->node_clock,
		                             .with_thread = !runtime->turns,
		                             .poll_ns = runtime->poll_ns };
	struct guardhouse *house =
	    memory_take_lines(runtime->allocator, sizeof(*house));
	enum gale_err err;

	if (!house)
		return GALE_ERR_MEMORY;
	list_init(&house->guards);
	for (size_t i = 0; i < GUARD_NAMES; i++)
		list_init(&house->names[i]);
	err = coordinator_open(&house->coordinator, &config);
	if (err == GALE_ERR_OK &&
	    !runtime_watch(runtime, house->coordinator.actor.watch_fd)) {
		coordinator_close(&house->coordinator);
		coordinator_free(&house->coordinator);
		err = GALE_ERR_SYSTEM;
	}
	if (err == GALE_ERR_OK)
		store_release(&runtime->guardhouse, house); /* founded */
	else
		free_house(runtime, house);
	return err;
}

enum gale_err guardhouse_found(struct gale_runtime *runtime,
                               struct coordinator **ret_coordinator)
{
	enum gale_err err = GALE_ERR_OK;

	lock_take(&runtime->lock);
	if (!guardhouse_of(runtime))
		err = found_house(runtime);
	lock_drop(&runtime->lock);
	if (err == GALE_ERR_OK)
		*ret_coordinator = &guardhouse_of(runtime)->coordinator;
	return err;
}

void guardhouse_tell_to_close(struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	if (house)
		coordinator_tell_to_close(&house->coordinator);
}

void guardhouse_close(struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	if (house)
		coordinator_close(&house->coordinator);
}

void guardhouse_free(struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	if (!house)
		return;
	coordinator_free(&house->coordinator);
	free_house(runtime, house);
}

uint64_t guardhouse_turn(struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	return house ? coordinator_turn(&house->coordinator) : 0;
}

uint64_t guardhouse_turn_after_ns(const struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	return house ? coordinator_turn_after_ns(&house->coordinator) : UINT64_MAX;
}

/* ---- Opening ---------------------------------------------------------------------- */

static struct gale_guard *gale_guard_of(struct guard *guard)
{
	return (struct gale_guard *)((char *)guard -
	                             offsetof(struct gale_guard, guard));
}

static size_t cells_bytes(const struct gale_guard *guard)
{
	return (guard->guard.turnstile.cell_count + 1) * sizeof(struct turnstile_cell);
}

static void guard_die(struct handle *self)
{
	struct gale_guard *guard = (struct gale_guard *)self;

	memory_give_lines(self->runtime->allocator, guard->cells, cells_bytes(guard));
	if (!guard->fleet)
		return;
	memory_give(self->runtime->allocator, guard->fleet, sizeof(*guard->fleet));
	handle_drop(&guard->store->handle);
}

static void guard_drop(struct guard *self)
{
	handle_drop(&gale_guard_of(self)->handle);
}

/* The last slot is given back of a guard that is closed.  HOUSE-2 */
static void guard_is_empty(struct gale_guard *guard)
{
	handle_drop(&guard->handle);
}

static void guard_empty(struct guard *self)
{
	guard_is_empty(gale_guard_of(self));
}

static void guard_say(struct guard *self, enum gale_level level, const char *line)
{
	struct gale_guard *guard = gale_guard_of(self);

	runtime_say(guard->handle.runtime, level, "guard ", guard->name, line);
}

static void guard_fenced(struct guard *self)
{
	struct gale_guard *guard = gale_guard_of(self);

	if (guard->on_fenced)
		guard->on_fenced->fenced(guard->on_fenced, guard);
}

static const struct guard_ops guard_ops = { guard_drop, guard_empty, guard_say,
	                                    guard_fenced };

/* Neither the name nor the incarnation is another node's, nor this one's of before. */
static bool join_fleet(struct gale_guard *guard, const struct gale_guard_config *config)
{
	struct gale_runtime *runtime = guard->handle.runtime;
	struct fleet_config fleet = guard_fleet(config);
	char made_up[32];
	uint64_t lot;

	if (!random_fill(&lot, sizeof(lot)))
		return false;
	fleet.membership.incarnation = lot % GALE_UNITS_MAX + 1;
	snprintf(made_up, sizeof(made_up), "node-%016" PRIx64, lot);
	if (!config->node)
		fleet.membership.node = made_up;
	guard->fleet = memory_take(runtime->allocator, sizeof(*guard->fleet));
	if (!guard->fleet)
		return false;
	fleet_init(guard->fleet, &fleet, clock_now(runtime->node_clock));
	guard->store = config->store;
	guard->on_fenced = config->on_fenced;
	handle_hold(&guard->store->handle);
	return true;
}

static uint32_t or_default(uint32_t given, uint32_t otherwise)
{
	return given ? given : otherwise;
}

static void set_up(struct gale_guard *guard, const struct gale_guard_config *config)
{
	uint64_t overdue_us =
	    config->overdue_us ? config->overdue_us : OVERDUE_DEFAULT_US;
	struct guard_config inner = {
		.ops = &guard_ops,
		.turnstile = { .cell_count = guard->guard.turnstile.cell_count,
		               .sheddable_permille = or_default(
				   config->sheddable_permille, SHEDDABLE_DEFAULT),
		               .wide_permille = or_default(config->slots_most_permille,
		                                           SLOTS_MOST_DEFAULT),
		               .observes = config->observe },
		.cells = guard->cells,
		.fleet = guard->fleet,
		.law = guard_law(config),
		.overdue_ns = overdue_us * 1000,
	};

	memcpy(guard->name, config->name, strlen(config->name));
	(void)random_fill(&inner.seed, sizeof(inner.seed));
	guard_init(&guard->guard, &inner, clock_now(guard->handle.runtime->node_clock));
}

static struct list *names_of(struct guardhouse *house, const char *name)
{
	return &house->names[XXH3_64bits(name, strlen(name)) % GUARD_NAMES];
}

static bool is_listed(struct guardhouse *house, const char *name)
{
	struct list *names = names_of(house, name);

	for (struct list *at = names->next; at != names; at = at->next)
		if (strcmp(list_item(at, struct gale_guard, same_hash)->name, name) ==
		    0)
			return true;
	return false;
}

/* HOUSE-1, HOUSE-2 */
static enum gale_err list_guard(struct gale_runtime *runtime, struct gale_guard *guard)
    ON(runtime->lock)
{
	enum gale_err err = guardhouse_of(runtime) ? GALE_ERR_OK : found_house(runtime);
	struct guardhouse *house = guardhouse_of(runtime);

	if (err != GALE_ERR_OK)
		return err;
	if (is_listed(house, guard->name))
		return GALE_ERR_GUARD_NAME;
	list_append(&house->guards, &guard->place);
	list_append(names_of(house, guard->name), &guard->same_hash);
	handle_hold(&guard->handle); /* by the coordinator ... */
	handle_hold(&guard->handle); /* ... and by slots in use */
	coordinator_add(&house->coordinator, &guard->guard);
	return GALE_ERR_OK;
}

static enum gale_err open_checked(struct gale_runtime *runtime,
                                  const struct gale_guard_config *config,
                                  struct gale_guard **ret_guard)
{
	struct gale_guard *guard = handle_new(runtime, sizeof(*guard), guard_die);
	enum gale_err err = GALE_ERR_MEMORY;

	if (!guard)
		return GALE_ERR_MEMORY;
	guard->token = runtime->lifeline.token;
	guard->guard.turnstile.cell_count = runtime->cell_count;
	guard->cells = memory_take_lines(runtime->allocator, cells_bytes(guard));
	if (guard->cells && (!config->store || join_fleet(guard, config))) {
		set_up(guard, config);
		lock_take(&runtime->lock);
		err = list_guard(runtime, guard);
		lock_drop(&runtime->lock);
	}
	if (err == GALE_ERR_OK)
		*ret_guard = guard;
	else
		handle_close(&guard->handle);
	return err;
}

enum gale_err gale_guard_open_sized(struct gale_runtime *runtime,
                                    const struct gale_guard_config *config,
                                    size_t config_bytes, struct gale_guard **ret_guard)
{
	enum gale_err err = runtime_error(runtime);
	struct gale_guard_config known;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_guard)
		return GALE_ERR_RET;
	if (!config)
		return GALE_ERR_CONFIG;
	if (!sized_read(&known, sizeof(known), config, config_bytes))
		return GALE_ERR_SIZE;
	err = guard_check(runtime, &known);
	return err == GALE_ERR_OK ? open_checked(runtime, &known, ret_guard) : err;
}

/* ---- Closing ---------------------------------------------------------------------- */

static void unlist(struct gale_runtime *runtime, struct gale_guard *guard)
{
	lock_take(&runtime->lock);
	list_remove(&guard->place);
	list_remove(&guard->same_hash);
	lock_drop(&runtime->lock);
}

void gale_guard_close(struct gale_guard *guard)
{
	struct gale_runtime *runtime;

	if (!guard || !lifeline_holds(&guard->handle.runtime->lifeline))
		return;
	runtime = guard->handle.runtime;
	/* One that is closed already may be gone; handle_close tells of that. */
	if (!load_relaxed(&guard->handle.closed)) {
		unlist(runtime, guard);
		/* First: nothing enters while the coordinator reports that it leaves. */
		if (turnstile_close(&guard->guard.turnstile))
			guard_is_empty(guard);
		coordinator_remove(&guardhouse_of(runtime)->coordinator, &guard->guard);
	}
	handle_close(&guard->handle);
}

void guards_leave(struct gale_runtime *runtime, uint32_t seat_number)
{
	struct guardhouse *house = guardhouse_of(runtime);

	if (!house || seat_number >= runtime->cell_count)
		return;
	for (struct list *at = house->guards.next; at != &house->guards; at = at->next)
		(void)turnstile_call_back(
		    &list_item(at, struct gale_guard, place)->guard.turnstile,
		    UINT64_C(1) << seat_number);
}

const struct gale_guard *guards_first(const struct gale_runtime *runtime)
{
	struct guardhouse *house = guardhouse_of(runtime);

	return house && !list_is_empty(&house->guards)
	           ? list_item(list_first(&house->guards), struct gale_guard, place)
	           : NULL;
}

const struct gale_guard *guards_next(const struct gale_runtime *runtime,
                                     const struct gale_guard *guard)
{
	struct list *next = guard->place.next;

	return next == &guardhouse_of(runtime)->guards
	           ? NULL
	           : list_item(next, struct gale_guard, place);
}

/* ---- Entering --------------------------------------------------------------------- */

static const uint8_t whys[TURNSTILE_REFUSALS] = {
	[SLOTS_BY_CEILING] = GALE_WHY_CEILING,
	[SLOTS_BY_SHARE] = GALE_WHY_SHARE,
	[SLOTS_BY_ESTIMATE] = GALE_WHY_ESTIMATE,
	[SLOTS_BY_PROBE] = GALE_WHY_PROBE,
	[SLOTS_BY_FENCE] = GALE_WHY_CUT_OFF,
	[SLOTS_BY_CLOSE] = GALE_WHY_CLOSED,
	[TURNSTILE_REFUSED_CLASS] = GALE_WHY_CLASS,
	[TURNSTILE_REFUSED_WIDE] = GALE_WHY_WIDE,
};

static enum gale_why why_of(uint32_t how)
{
	return (enum gale_why)whys[how & (TURNSTILE_OBSERVED - 1)];
}

static ALWAYS_INLINE bool has_cell(const struct gale_seat *seat,
                                   const struct gale_guard *guard)
{
	return seat->number < guard->guard.turnstile.cell_count;
}

/* Of a seat that has one. */
static ALWAYS_INLINE struct turnstile_cell *its_cell(const struct gale_seat *seat,
                                                     const struct gale_guard *guard)
{
	gale_audit(has_cell(seat, guard));
	return &guard->guard.turnstile.cells[seat->number];
}

static struct turnstile_cell *cell_or_null(const struct gale_seat *seat,
                                           const struct gale_guard *guard)
{
	return has_cell(seat, guard) ? its_cell(seat, guard) : NULL;
}

#define DENIED(reason, most)                                                           \
	((struct gale_entry){ .verdict = GALE_DENY, .why = (reason), .limit = (most) })
#define ALLOWED(of, reason, count, most, ns)                                           \
	((struct gale_entry){ .verdict = GALE_ALLOW,                                   \
	                      .why = (reason),                                         \
	                      .slots = (count),                                        \
	                      .limit = (most),                                         \
	                      .started_ns = (ns),                                      \
	                      .guard = (of) })

static enum gale_why check_call(const struct gale_seat *seat,
                                const struct gale_guard *guard, uint32_t slots,
                                enum gale_class of_class)
{
	if (!seat || !guard || guard->handle.runtime != seat->handle.runtime ||
	    slots < 1 || slots > GALE_SLOTS_MAX || of_class > GALE_SHEDDABLE)
		return GALE_WHY_BAD_ASK;
	if (!handle_is_open(&seat->handle, seat->handle.runtime))
		return GALE_WHY_CLOSED;
	return runtime_refuses(seat->handle.runtime);
}

/* The guard is of the seat's runtime, which this process may use, and the seat has a cell.  A word of
 * a lifeline is not enough: what a child has opened by itself may have the word of its parent's. */
static ALWAYS_INLINE bool passes(const struct gale_seat *seat,
                                 const struct gale_guard *guard)
{
	return LIKELY(load_relaxed(seat->pass) == guard->token) &&
	       LIKELY(seat->lifeline.token == guard->token);
}

static __attribute__((noinline)) void give_at_length(struct gale_guard *guard,
                                                     uint32_t slots)
{
	if (turnstile_give(&guard->guard.turnstile, slots))
		guard_is_empty(guard);
}

/* It has entered, but its clock says that the share is over.  FLEET-2 */
static struct gale_entry too_late(struct gale_seat *seat, struct gale_guard *guard,
                                  uint32_t slots)
{
	turnstile_count_late(&guard->guard.turnstile, cell_or_null(seat, guard));
	give_at_length(guard, slots);
	return DENIED(GALE_WHY_CUT_OFF, 0);
}

/* It has entered, and looks at the clock. */
static struct gale_entry time_entry(struct gale_seat *seat, struct gale_guard *guard,
                                    uint32_t slots, enum gale_why why, uint32_t most)
{
	mono now = seat_now(seat);

	return turnstile_fenced(&guard->guard.turnstile, now)
	           ? too_late(seat, guard, slots)
	           : ALLOWED(guard, why, slots, most, now.ns);
}

static __attribute__((noinline)) struct gale_entry
time_at_length(struct gale_seat *seat, struct gale_guard *guard, uint32_t most)
{
	return time_entry(seat, guard, 1, GALE_WHY_SLOT, most);
}

static __attribute__((noinline)) struct gale_entry
enter_at_length(struct gale_seat *seat, struct gale_guard *guard, uint32_t slots,
                enum gale_class of_class)
{
	enum gale_why why = check_call(seat, guard, slots, of_class);
	struct turnstile_entered entered;

	if (why != GALE_WHY_RULE)
		return DENIED(why, 0);
	entered = turnstile_enter(&guard->guard.turnstile, cell_or_null(seat, guard),
	                          slots, of_class == GALE_SHEDDABLE);
	if (entered.how >= TURNSTILE_REFUSED)
		return DENIED(why_of(entered.how), entered.most);
	return time_entry(seat, guard, slots,
	                  entered.how == 0 ? GALE_WHY_SLOT : why_of(entered.how),
	                  entered.most);
}

/* By itself, as registers that it needs would be pushed for all calls. */
static __attribute__((noinline)) struct gale_entry
refuse_sheddable(struct turnstile_cell *cell, uint64_t word)
{
	return DENIED(why_of(turnstile_refuse(cell, word, true)), slots_most(word));
}

/* One slot.  A guard that is closed says so by its word. */
static ALWAYS_INLINE struct gale_entry enter_quickly(struct gale_seat *seat,
                                                     struct gale_guard *guard,
                                                     enum gale_class of_class)
{
	const bool sheddable = of_class == GALE_SHEDDABLE;
	struct turnstile *turnstile = &guard->guard.turnstile;
	struct turnstile_cell *cell = its_cell(seat, guard);
	enum turnstile_quick quick;
	uint64_t word;
	mono now;

	seat_check_thread(seat);
	quick = turnstile_enter_quickly(turnstile, cell, sheddable, &word);
	if (LIKELY(quick == QUICK_IN)) {
		if (LIKELY(seat_tells(seat, &now)) &&
		    LIKELY(!turnstile_fenced(turnstile, now)))
			return ALLOWED(guard, GALE_WHY_SLOT, 1, slots_most(word),
			               now.ns);
		return time_at_length(seat, guard, slots_most(word));
	}
	if (quick == QUICK_FULL && turnstile_refuses(turnstile))
		return sheddable ? refuse_sheddable(cell, word)
		                 : DENIED(why_of(turnstile_refuse(cell, word, false)),
		                          slots_most(word));
	return enter_at_length(seat, guard, 1, of_class);
}

/* Each class has its own straight line: the test of the class is made once, and a normal call
 * computes no part. */
struct gale_entry gale_enter(struct gale_seat *seat, struct gale_guard *guard,
                             uint32_t slots, enum gale_class of_class)
{
	if (LIKELY(seat && guard) && passes(seat, guard) && LIKELY(slots == 1)) {
		if (LIKELY(of_class == GALE_NORMAL))
			return enter_quickly(seat, guard, GALE_NORMAL);
		if (of_class == GALE_SHEDDABLE)
			return enter_quickly(seat, guard, GALE_SHEDDABLE);
	}
	return enter_at_length(seat, guard, slots, of_class);
}

/* ---- Exiting ---------------------------------------------------------------------- */

static __attribute__((noinline)) void exit_without_entry(struct gale_seat *seat,
                                                         const struct gale_entry *entry)
{
	bool is_cleared =
	    !entry || (entry->verdict == GALE_DENY && entry->why == GALE_WHY_RULE);

	if (is_cleared && seat && seat_is_here(seat))
		seat_count(seat, COUNT_NO_ENTRY);
}

/* The seat cannot tell how long it took, or has no cell; in a child nothing is done, as the
 * slots are its parent's. */
static __attribute__((noinline)) void exit_anyway(struct gale_entry *entry)
{
	struct gale_guard *guard = entry->guard;
	uint32_t slots = entry->slots;

	*entry = (struct gale_entry){ 0 };
	if (!lifeline_holds(&guard->handle.runtime->lifeline))
		return;
	tally_end(guard->guard.turnstile.common, slots, TURNSTILE_IGNORED, 0,
	          /* alone= */ false);
	give_at_length(guard, slots);
}

/* Another seat may have been told the time later than this one. */
static uint64_t took_ns(uint64_t started_ns, mono now)
{
	return now.ns >= started_ns ? now.ns - started_ns : 0;
}

static void count_end(struct gale_guard *guard, struct turnstile_cell *cell,
                      uint32_t slots, enum gale_outcome outcome, uint64_t took)
{
	struct tally *tally = cell ? &cell->tally : guard->guard.turnstile.common;

	tally_end(tally, slots, (enum turnstile_outcome)outcome, took, cell != NULL);
	if (took > guard->guard.overdue_ns)
		tally_add(&tally->overdue, 1, cell != NULL);
}

/* Several slots, a seat without a cell or one that has to look at the clock, a call that is overdue
 * or did not end well. */
static __attribute__((noinline)) void exit_at_length(struct gale_seat *seat,
                                                     struct gale_entry *entry,
                                                     enum gale_outcome outcome)
{
	struct gale_guard *guard;
	struct turnstile_cell *cell;
	uint64_t started_ns;
	uint32_t slots;

	if (!entry || entry->verdict != GALE_ALLOW || !entry->guard) {
		exit_without_entry(seat, entry);
		return;
	}
	guard = entry->guard;
	if (!seat || guard->handle.runtime != seat->handle.runtime ||
	    !lifeline_passes(&seat->lifeline) || !seat_is_in(seat) ||
	    outcome > GALE_IGNORED) {
		exit_anyway(entry);
		return;
	}
	slots = entry->slots;
	started_ns = entry->started_ns;
	*entry = (struct gale_entry){ 0 };
	cell = cell_or_null(seat, guard);
	count_end(guard, cell, slots, outcome, took_ns(started_ns, seat_now(seat)));
	if (!cell || slots != 1 ||
	    !turnstile_exit_quickly(&guard->guard.turnstile, cell))
		give_at_length(guard, slots);
}

/* One slot.  The entry is cleared before its slot is given back, so that it is given back once. */
static ALWAYS_INLINE void exit_quickly(struct gale_seat *seat, struct gale_entry *entry,
                                       uint64_t took)
{
	struct gale_guard *guard = entry->guard;
	struct turnstile_cell *cell = its_cell(seat, guard);

	seat_check_thread(seat);
	*entry = (struct gale_entry){ 0 };
	tally_end(&cell->tally, 1, TURNSTILE_OK, took, /* alone= */ true);
	if (!LIKELY(turnstile_exit_quickly(&guard->guard.turnstile, cell)))
		give_at_length(guard, 1);
}

/* The entry is read word by word, as it was just written: a copy of all of it would wait for
 * that.  One that was refused, or is cleared, has no slot.  A call that began later than now, by
 * the time of another seat, took longer than any. */
void gale_exit(struct gale_seat *seat, struct gale_entry *entry,
               enum gale_outcome outcome)
{
	mono now;

	if (LIKELY(seat && entry && entry->slots == 1 && entry->guard) &&
	    passes(seat, entry->guard) && LIKELY(outcome == GALE_OK) &&
	    LIKELY(seat_tells(seat, &now))) {
		uint64_t took = now.ns - entry->started_ns;

		if (LIKELY(took <= entry->guard->guard.overdue_ns)) {
			exit_quickly(seat, entry, took);
			return;
		}
	}
	exit_at_length(seat, entry, outcome);
}

/* ---- Counts ----------------------------------------------------------------------- */

/* The fence counts from its instant on, whether or not the coordinator has had a turn. */
static bool is_cut_off(const struct gale_guard *guard)
{
	return load_relaxed(&guard->fleet->told.fenced) ||
	       turnstile_fenced(&guard->guard.turnstile,
	                        clock_now(guard->handle.runtime->node_clock));
}

static void fill_fleet(const struct fleet *fleet, struct gale_guard_counts *counts)
{
	counts->share = load_relaxed(&fleet->told.share);
	counts->fleet_limit = load_relaxed(&fleet->told.limit);
	counts->fleet_nodes = load_relaxed(&fleet->told.members);
	counts->fleet_in_flight = load_relaxed(&fleet->told.in_flight);
	counts->beats = load_relaxed(&fleet->told.beats);
	counts->beats_lost = load_relaxed(&fleet->told.beats_lost);
	counts->fences = load_relaxed(&fleet->told.fences);
}

void guard_fill_counts(const struct gale_guard *gale_guard,
                       struct gale_guard_counts *counts)
{
	const struct guard *guard = &gale_guard->guard;
	uint64_t word = turnstile_word(&guard->turnstile);
	struct tally_sum sum;

	turnstile_sum(&guard->turnstile, &sum);
	counts->limit = slots_most(word);
	if (guard->fleet) {
		fill_fleet(guard->fleet, counts);
		counts->cut_off = is_cut_off(gale_guard);
	}
	counts->estimate = load_relaxed(&guard->told.estimate);
	counts->in_flight = slots_in_flight(word);
	counts->kept = turnstile_kept(&guard->turnstile);
	counts->entered = sum.entered;
	counts->ok = sum.ended[TURNSTILE_OK];
	counts->dropped = sum.ended[TURNSTILE_DROPPED];
	counts->ignored = sum.ended[TURNSTILE_IGNORED];
	counts->overdue = sum.overdue;
	counts->overdue_now = load_relaxed(&guard->told.overdue);
	counts->exits_without_entry = load_relaxed(&guard->turnstile.refused_gives);
	for (int i = 0; i < TURNSTILE_REFUSALS; i++) {
		counts->refused_by[whys[i]] = sum.refused[i];
		counts->refused += sum.refused[i];
	}
}

enum gale_err gale_guard_stats_sized(struct gale_guard *guard,
                                     struct gale_guard_counts *ret_stats,
                                     size_t stats_bytes)
{
	struct gale_guard_counts known = { 0 };

	if (!guard || !handle_is_open(&guard->handle, guard->handle.runtime))
		return GALE_ERR_GUARD;
	if (!ret_stats)
		return GALE_ERR_RET;
	if (!lifeline_holds(&guard->handle.runtime->lifeline))
		return GALE_ERR_FORKED;
	guard_fill_counts(guard, &known);
	return sized_write(ret_stats, stats_bytes, &known, sizeof(known))
	           ? GALE_ERR_OK
	           : GALE_ERR_SIZE;
}
