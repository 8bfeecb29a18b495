/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_hold.c -- units of a tenant's share are held until it is known what the call has cost.
 *
 *     hold, grow --> units of the window that is open --> commit: back, or a debt
 *
 * The host keeps the words (struct gale_tenant_held).  Units of the window that was asked last may
 * still go back; those of windows before are past.
 *
 * Nearly all calls of a budget of this process go the straight way: units come from the purse, and go
 * back beside it (till.h), without a lock.  All else goes the longer way: a purse with too few units, a
 * budget over a store, a debt, a commit after the window or after an end.
 *
 * Threads   The seat's own; a hold is one thread's at a time.
 */
#include "face/checks.h"
#include "face/tenants.h"

/* gale_tenant_held.of_gale */
enum { HELD_TENANT, HELD_NODE, HELD_UNITS, HELD_WINDOW, HELD_ALONE };

static struct gale_tenant *tenant_of(const struct gale_tenant_held *hold)
{
	return (struct gale_tenant *)(uintptr_t)hold->of_gale[HELD_TENANT];
}

static bool is_held(const struct gale_seat *seat, const struct gale_tenant_held *hold)
{
	return hold && hold->units > 0 &&
	       hold->of_gale[HELD_NODE] == seat->handle.runtime->node;
}

/* Those that may go back. */
static struct tenant_units units_of(const struct gale_tenant_held *hold)
{
	return (struct tenant_units){ .units = hold->of_gale[HELD_UNITS],
		                      .window = hold->of_gale[HELD_WINDOW],
		                      .alone = hold->of_gale[HELD_ALONE] != 0 };
}

static void put_units(struct gale_tenant_held *hold, const struct tenant_units *units)
{
	hold->of_gale[HELD_UNITS] = units->units;
	hold->of_gale[HELD_WINDOW] = units->window;
	hold->of_gale[HELD_ALONE] = units->alone;
}

/* ---- Holds that are open ---------------------------------------------------------- */

static ALWAYS_INLINE bool has_cell(const struct gale_seat *seat)
{
	return LIKELY(seat->number < seat->handle.runtime->cell_count);
}

/* Of all seats that have no cell. */
static _Atomic uint64_t *common_count(struct gale_tenant *tenant)
{
	return &tenant->holds[tenant->handle.runtime->cell_count];
}

static ALWAYS_INLINE void count_begun(const struct gale_seat *seat,
                                      struct gale_tenant *tenant)
{
	if (has_cell(seat))
		count_add(&tenant->holds[seat->number], 1);
	else
		add_relaxed(common_count(tenant), 1);
}

/* The tenant may be gone then.  The caller looks at held_closes next, behind a fence: the thread that
 * closes a tenant makes all others pass one, where the kernel can. */
static ALWAYS_INLINE void count_settled(const struct gale_seat *seat,
                                        struct gale_tenant *tenant)
{
	if (has_cell(seat)) {
		_Atomic uint64_t *count = &tenant->holds[seat->number];

		store_release(count, load_relaxed(count) - 1); /* ended */
	} else {
		(void)sub_release(common_count(tenant), 1); /* ended */
	}
	fence_compiler();
	if (!LIKELY(grace_passes(&seat->handle.runtime->grace)))
		fence_full(); /* entered */
}

/* Of a tenant that is closed: no hold begins, and some may be settled meanwhile. */
static bool is_settled(const struct gale_tenant *tenant)
{
	uint64_t open = 0;

	for (uint32_t i = 0; i <= tenant->handle.runtime->cell_count; i++)
		open += load_acquire(&tenant->holds[i]); /* ended */
	return open == 0;
}

/* True: the list's reference is to be dropped. */
static bool unlist_settled(struct gale_runtime *runtime, struct gale_tenant *tenant)
    ON(runtime->lock)
{
	(void)runtime;
	if (!list_has(&tenant->held) || !is_settled(tenant))
		return false;
	list_remove(&tenant->held);
	return true;
}

/* TENANT-9 */
void tenant_keep_while_held(struct gale_tenant *tenant)
{
	struct gale_runtime *runtime = tenant->handle.runtime;
	bool is_held, is_last;

	lock_take(&runtime->lock);
	is_held = !is_settled(tenant);
	if (is_held) {
		handle_hold(&tenant->handle);
		list_append(&runtime->locked.held, &tenant->held);
		(void)add_release(&runtime->held_closes, 1); /* closed */
	}
	lock_drop(&runtime->lock);
	if (!is_held)
		return;
	grace_pass(&runtime->grace); /* entered */
	lock_take(&runtime->lock);
	is_last = unlist_settled(runtime, tenant);
	lock_drop(&runtime->lock);
	if (is_last)
		handle_drop(&tenant->handle);
}

/* Of a tenant that is closed. */
static void settle_closed(const struct gale_seat *seat, struct gale_tenant *tenant)
{
	struct gale_runtime *runtime = seat->handle.runtime;
	bool is_last;

	lock_take(&runtime->lock);
	count_settled(seat, tenant);
	is_last = unlist_settled(runtime, tenant);
	lock_drop(&runtime->lock);
	if (is_last)
		handle_drop(&tenant->handle);
}

/* One whose last hold was settled; NULL: there is none. */
static struct gale_tenant *unlist_any(struct gale_runtime *runtime) ON(runtime->lock)
{
	struct list *all = &runtime->locked.held;

	for (struct list *at = all->next; at != all; at = at->next) {
		struct gale_tenant *tenant = list_item(at, struct gale_tenant, held);

		if (unlist_settled(runtime, tenant))
			return tenant;
	}
	return NULL;
}

/* A tenant was closed while a hold was settled: it may have been the hold's. */
static __attribute__((noinline)) void drop_settled(struct gale_runtime *runtime)
{
	struct gale_tenant *tenant;

	do {
		lock_take(&runtime->lock);
		tenant = unlist_any(runtime);
		lock_drop(&runtime->lock);
		if (tenant)
			handle_drop(&tenant->handle);
	} while (tenant);
}

/* How many tenants were closed under holds: looked at before it is looked whether one is open. */
static ALWAYS_INLINE uint64_t closes_of(const struct gale_seat *seat)
{
	return load_acquire(&seat->handle.runtime->held_closes); /* closed */
}

/* Of a tenant that was open, after so many closes.  TENANT-9 */
static ALWAYS_INLINE void settle_open(const struct gale_seat *seat,
                                      struct gale_tenant *tenant, uint64_t closes)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	count_settled(seat, tenant);
	if (!LIKELY(load_relaxed(&runtime->held_closes) == closes))
		drop_settled(runtime);
}

/* ---- Holding and growing ---------------------------------------------------------- */

static struct gale_answer denied(enum gale_why why)
{
	return (struct gale_answer){ .verdict = GALE_DENY, .why = why };
}

/* From the purse of a budget of this process.  One that is closed, or below one that is, is empty, and
 * no purse has more than may be held. */
static ALWAYS_INLINE bool take_straight(struct gale_tenant *tenant, mono now,
                                        uint64_t cost, uint64_t *ret_word)
{
	return LIKELY(!is_shared(tenant->budget)) &&
	       LIKELY(cost - 1 < CREDIT_UNITS_MAX) &&
	       till_take(&tenant->till, now, cost, ret_word);
}

static ALWAYS_INLINE struct tenant_units straight_units(uint64_t cost, uint64_t word)
{
	return (struct tenant_units){ .units = cost,
		                      .window = word - credit_units(word) };
}

/* It may be asked. */
static struct gale_answer take(struct gale_seat *seat, struct gale_tenant *tenant,
                               uint64_t cost, uint64_t within_us,
                               struct tenant_units *ret_units)
{
	struct gale_answer answer;
	mono now = seat_now(seat);
	uint64_t word;

	if (take_straight(tenant, now, cost, &word)) {
		*ret_units = straight_units(cost, word);
		return tenant_allowed(tenant, now, word);
	}
	if (tenant_denies(seat, tenant, cost, &answer))
		return answer;
	return is_shared(tenant->budget)
	           ? shared_hold(seat, tenant, cost, within_us, ret_units)
	           : escrowed_hold(seat, tenant, cost, ret_units);
}

static uint64_t most_of(struct gale_tenant *tenant)
{
	return is_shared(tenant->budget) ? shared_most(tenant) : escrowed_most(tenant);
}

static ALWAYS_INLINE void begin_hold(const struct gale_seat *seat,
                                     struct gale_tenant *tenant,
                                     const struct tenant_units *units,
                                     struct gale_tenant_held *ret_hold)
{
	ret_hold->units = units->units;
	ret_hold->of_gale[HELD_TENANT] = (uintptr_t)tenant;
	ret_hold->of_gale[HELD_NODE] = seat->handle.runtime->node;
	put_units(ret_hold, units);
	count_begun(seat, tenant); /* TENANT-7 */
}

static __attribute__((noinline)) struct gale_answer
hold_longer(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t at_most,
            struct gale_tenant_held *ret_hold, uint64_t within_us)
{
	enum gale_why why = tenant_check(
	    seat, tenant, at_most < GALE_UNITS_MAX ? at_most : GALE_UNITS_MAX);
	struct tenant_units units;
	struct gale_answer answer;
	uint64_t most;

	if (!ret_hold)
		return denied(GALE_WHY_BAD_ASK);
	*ret_hold = (struct gale_tenant_held){ 0 };
	if (why != GALE_WHY_RULE)
		return denied(why);
	seat_check_thread(seat);
	most = most_of(tenant);
	ret_hold->cut = at_most > most;
	answer = take(seat, tenant, ret_hold->cut ? most : at_most, within_us, &units);
	if (answer.verdict != GALE_ALLOW)
		return answer;
	begin_hold(seat, tenant, &units, ret_hold);
	return answer;
}

struct gale_answer gale_tenant_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                                    uint64_t at_most, struct gale_tenant_held *ret_hold,
                                    uint64_t within_us)
{
	struct tenant_units units;
	uint64_t word;
	mono now;

	if (!LIKELY(seat_may(seat, &now)) || !LIKELY(tenant && ret_hold) ||
	    !LIKELY(tenant->handle.runtime == seat->handle.runtime) ||
	    !LIKELY(take_straight(tenant, now, at_most, &word)))
		return hold_longer(seat, tenant, at_most, ret_hold, within_us);
	seat_check_thread(seat);
	units = straight_units(at_most, word);
	ret_hold->cut = false;
	begin_hold(seat, tenant, &units, ret_hold);
	return tenant_allowed(tenant, now, word);
}

/* Units of one window are together; those of a window before are settled as spent.  Units alone never
 * go back: they are spent at once, and those of the pool stay what may. */
static void add_units(struct gale_seat *seat, struct gale_tenant_held *hold,
                      const struct tenant_units *more)
{
	struct gale_tenant *tenant = tenant_of(hold);
	struct tenant_units units = units_of(hold);
	bool is_same = units.window == more->window && units.alone == more->alone;
	struct tenant_units rest = is_same || more->alone ? *more : units;

	hold->units += more->units;
	if (is_same)
		units.units += more->units;
	else if (!more->alone)
		units = *more;
	put_units(hold, &units);
	if (is_shared(tenant->budget)) /* that is one hold less of its fund's */
		shared_settle(seat, tenant, &rest, 0, 0);
}

/* The same, of units that came straight: word by word, as a copy would wait for words that have just
 * been written. */
static ALWAYS_INLINE void add_straight(struct gale_tenant_held *hold, uint64_t more,
                                       uint64_t word)
{
	uint64_t window = word - credit_units(word);
	bool is_same = window == hold->of_gale[HELD_WINDOW];

	hold->units += more;
	hold->of_gale[HELD_UNITS] = more + (is_same ? hold->of_gale[HELD_UNITS] : 0);
	hold->of_gale[HELD_WINDOW] = window;
}

static __attribute__((noinline)) struct gale_answer
grow_longer(struct gale_seat *seat, struct gale_tenant_held *hold, uint64_t more,
            uint64_t within_us)
{
	struct gale_tenant *tenant;
	struct tenant_units units;
	struct gale_answer answer;
	enum gale_why why;

	if (!seat || !is_held(seat, hold))
		return denied(GALE_WHY_BAD_ASK);
	tenant = tenant_of(hold);
	why = tenant_check(seat, tenant, more);
	if (why == GALE_WHY_RULE && more > GALE_UNITS_MAX - hold->units)
		why = GALE_WHY_TOO_MUCH;
	if (why != GALE_WHY_RULE)
		return denied(why);
	seat_check_thread(seat);
	answer = take(seat, tenant, more, within_us, &units);
	if (answer.verdict == GALE_ALLOW)
		add_units(seat, hold, &units);
	return answer;
}

struct gale_answer gale_tenant_grow(struct gale_seat *seat,
                                    struct gale_tenant_held *hold, uint64_t more,
                                    uint64_t within_us)
{
	uint64_t word;
	mono now;

	if (!LIKELY(seat_may(seat, &now)) || !LIKELY(is_held(seat, hold)) ||
	    !LIKELY(hold->units <= GALE_UNITS_MAX - CREDIT_UNITS_MAX) ||
	    !LIKELY(take_straight(tenant_of(hold), now, more, &word)))
		return grow_longer(seat, hold, more, within_us);
	seat_check_thread(seat);
	add_straight(hold, more, word);
	return tenant_allowed(tenant_of(hold), now, word);
}

/* ---- Settling --------------------------------------------------------------------- */

static void settle(struct gale_seat *seat, const struct gale_tenant_held *hold,
                   uint64_t cost, bool is_open)
{
	struct gale_tenant *tenant = tenant_of(hold);
	struct tenant_units units = units_of(hold);
	uint64_t back = cost < hold->units ? hold->units - cost : 0;
	uint64_t over = is_open && cost > hold->units ? cost - hold->units : 0;

	if (back > units.units)
		back = units.units;
	if (is_shared(tenant->budget))
		shared_settle(seat, tenant, &units, back, over);
	else if (back + over > 0)
		escrowed_settle(seat, tenant, &units, back, over);
}

/* A runtime that is closed settles nothing. */
static enum gale_err closed_error(const struct gale_tenant *tenant)
{
	enum gale_err err = runtime_error(tenant->handle.runtime);

	return err == GALE_ERR_OK && !tenant_is_open(tenant) ? GALE_ERR_TENANT : err;
}

static __attribute__((noinline)) enum gale_err
commit_longer(struct gale_seat *seat, struct gale_tenant_held *hold, uint64_t cost)
{
	struct gale_tenant *tenant;
	uint64_t closes;
	enum gale_err err;

	if (!seat || !seat_is_here(seat))
		return seat && !lifeline_holds(&seat->handle.runtime->lifeline)
		           ? GALE_ERR_FORKED
		           : GALE_ERR_SEAT;
	if (!is_held(seat, hold))
		return GALE_ERR_HOLD;
	if (cost > GALE_UNITS_MAX)
		return GALE_ERR_COST;
	seat_check_thread(seat);
	tenant = tenant_of(hold);
	closes = closes_of(seat);
	err = closed_error(tenant);
	if (err == GALE_ERR_OK || err == GALE_ERR_TENANT)
		settle(seat, hold, cost, err == GALE_ERR_OK);
	hold->units = 0;
	if (err == GALE_ERR_OK)
		settle_open(seat, tenant, closes);
	else
		settle_closed(seat, tenant);
	return err;
}

/* It costs no more than was held, and its window is open, as of the last look. */
static ALWAYS_INLINE bool settle_straight(struct gale_tenant *tenant,
                                          const struct gale_tenant_held *hold,
                                          uint64_t cost)
{
	uint64_t back = hold->units - cost;

	if (!LIKELY(cost <= hold->units) || !LIKELY(!is_shared(tenant->budget)) ||
	    !LIKELY(tenant_is_open(tenant)))
		return false;
	if (back > hold->of_gale[HELD_UNITS])
		back = hold->of_gale[HELD_UNITS];
	return back == 0 ||
	       till_give_back(&tenant->till, hold->of_gale[HELD_WINDOW], back);
}

enum gale_err gale_tenant_commit(struct gale_seat *seat, struct gale_tenant_held *hold,
                                 uint64_t cost)
{
	uint64_t closes;

	if (!LIKELY(seat != NULL) || !LIKELY(lifeline_passes(&seat->lifeline)) ||
	    !LIKELY(seat_is_in(seat)) || !LIKELY(is_held(seat, hold)))
		return commit_longer(seat, hold, cost);
	closes = closes_of(seat);
	if (!LIKELY(settle_straight(tenant_of(hold), hold, cost)))
		return commit_longer(seat, hold, cost);
	seat_check_thread(seat);
	hold->units = 0;
	settle_open(seat, tenant_of(hold), closes);
	return GALE_ERR_OK;
}
