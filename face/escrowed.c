/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrowed.c -- budgets of this process: purses, and asks that the escrows decide.
 *
 * Threads   escrowed_ask: the seat's own.  The rest: under the budget's lock.
 */
#include "engine/credit.h"
#include "face/seat.h"
#include "face/tenants.h"

#define AHEAD_PART 8 /* of a share, in a purse at most */

static uint64_t utc_us(const struct gale_budget *budget, mono now)
{
	return (now.ns + budget->epoch_ns) / 1000;
}

/* ---- Windows ----------------------------------------------------------------------- */

/* A word of a window, that dies with it: the same for all purses and holds. */
static uint64_t word_of(const struct gale_budget *budget, uint64_t window)
{
	uint64_t end_us = window + budget->window_us - 1;

	return credit_until((mono){ end_us * 1000 - budget->epoch_ns }, 0);
}

static uint64_t window_of(const struct gale_budget *budget, uint64_t word)
{
	uint64_t us = utc_us(budget, credit_dies(word));

	return us - us % budget->window_us;
}

/* ---- Purses ------------------------------------------------------------------------ */

/* So many units are in it now: the rest of those that were seen last was used. */
static void see_purse(struct gale_tenant *tenant, uint64_t units)
{
	uint64_t used = tenant->locked.seen - units;

	tenant->locked.seen = units;
	tenant->locked.allowed += used;
	tenant->budget->locked.units += used;
}

/* It has been closed. */
static bool is_out(const struct gale_tenant *tenant)
{
	return tenant->locked.family->handles[tenant->locked.number] != tenant;
}

/* Those below a tenant that was closed have no escrow above them any more: the one that it was in
 * has kept what they had used.  TENANT-7 */
static void give_to_highest(struct gale_tenant *tenant, uint64_t back, uint64_t window)
{
	const struct gale_tenant *highest = NULL;

	for (tenant = tenant->parent; tenant; tenant = tenant->parent)
		if (is_out(tenant))
			highest = tenant;
	if (highest)
		escrow_give_removed(&highest->locked.family->escrow, back, window);
}

/* Of one that is closed, or has tenants by now, the escrow of its family, or the one below it, has
 * kept what it had used.  TENANT-7 */
static void give_back(struct gale_tenant *tenant, uint64_t back, uint64_t window)
{
	struct family *family = tenant->locked.family;

	give_to_highest(tenant, back, window);
	if (is_out(tenant))
		escrow_give_removed(&family->escrow, back, window);
	else if (tenant->locked.below)
		escrow_give_removed(&tenant->locked.below->escrow, back, window);
	else
		escrow_give(&family->escrow, tenant->locked.number, back, window);
}

/* Holds that end from now on take the lock.  TENANT-8 */
static void close_back(struct gale_tenant *tenant)
{
	uint64_t word = load_relaxed(&tenant->till.back), back;

	if (word != 0)
		word = swap_relaxed(&tenant->till.back, 0);
	back = credit_units(word);
	if (back > 0)
		give_back(tenant, back, window_of(tenant->budget, word));
}

/* The same, and it stays open. */
static void take_what_is_back(struct gale_tenant *tenant)
{
	uint64_t word = load_relaxed(&tenant->till.back), back;

	do
		back = credit_units(word);
	while (back > 0 && !swap_if_relaxed(&tenant->till.back, &word, word - back));
	if (back > 0)
		give_back(tenant, back, window_of(tenant->budget, word));
}

/* Units of a window that is over are lost.  No other thread puts any in: one that has none is empty
 * without a swap. */
static void empty_purse(struct gale_tenant *tenant)
{
	uint64_t units = credit_units(load_relaxed(&tenant->till.purse));

	if (units > 0)
		units = credit_units(swap_relaxed(&tenant->till.purse, 0));
	see_purse(tenant, units);
	tenant->locked.seen = 0;
	if (units > 0)
		escrow_give(&tenant->locked.family->escrow, tenant->locked.number,
		            units, tenant->locked.window);
	close_back(tenant);
}

void escrowed_empty(struct gale_tenant *tenant)
{
	empty_purse(tenant);
	store_relaxed(&tenant->till.denied, 0);
}

void escrowed_empty_all(struct family *family)
{
	for (uint32_t i = 0; i < family->room; i++) {
		if (!family->handles[i])
			continue;
		escrowed_empty(family->handles[i]);
		if (family->handles[i]->locked.below)
			escrowed_empty_all(family->handles[i]->locked.below);
	}
}

/* Of such a share. */
static uint64_t most_ahead(uint64_t share)
{
	uint64_t most = share / AHEAD_PART;

	return most < CREDIT_UNITS_MAX ? most : CREDIT_UNITS_MAX;
}

static uint64_t ahead_of(struct gale_tenant *tenant, uint64_t share)
{
	struct escrow *escrow = &tenant->locked.family->escrow;

	if (escrow->set.parted)
		return 0;
	return escrow_ask_ahead(escrow, tenant->locked.number, most_ahead(share));
}

static void take_back(struct gale_tenant *tenant)
{
	struct escrow *escrow = &tenant->locked.family->escrow;
	uint64_t excess = escrow_excess(escrow, tenant->locked.number);
	uint64_t word, units;

	if (excess == 0 || tenant->locked.window != escrow->window)
		return;
	close_back(tenant); /* TENANT-8 */
	excess = escrow_excess(escrow, tenant->locked.number);
	word = load_relaxed(&tenant->till.purse);
	do {
		units = credit_units(word);
		if (units > excess)
			units = excess;
	} while (!swap_if_relaxed(&tenant->till.purse, &word, word - units));
	see_purse(tenant, credit_units(word));
	escrow_give(escrow, tenant->locked.number, units, escrow->window);
	tenant->locked.seen -= units;
}

static struct gale_tenant *next_present(struct family *family,
                                        const struct gale_tenant *tenant)
{
	uint32_t number = escrow_next(&family->escrow,
	                              tenant ? tenant->locked.number : ESCROW_NOBODY);

	return number == ESCROW_NOBODY ? NULL : family->handles[number];
}

#define EACH_PRESENT(family, tenant)                                                   \
	for (struct gale_tenant *tenant = next_present(family, NULL); tenant;          \
	     tenant = next_present(family, tenant))

static void find_shares(struct family *family)
{
	EACH_PRESENT(family, tenant)
	{
		(void)escrow_share(&family->escrow, tenant->locked.number);
		if (tenant->locked.below)
			find_shares(tenant->locked.below);
	}
}

/* A tenant that is absent has nothing ahead. */
static void take_back_below(struct family *family)
{
	EACH_PRESENT(family, tenant)
	if (tenant->locked.below)
		take_back_below(tenant->locked.below);
	else
		take_back(tenant);
}

/* All by one level: units that one tenant gives back would have it found anew for the next one.  Down
 * to half a share: so shares halve before they fall below purses again. */
void escrowed_take_back_all(struct family *family)
{
	find_shares(family);
	take_back_below(family);
}

/* Of a purse that is empty.  TENANT-1, TENANT-2 */
static uint64_t fill_purse(struct gale_tenant *tenant,
                           const struct escrow_answer *answer)
{
	uint64_t units = ahead_of(tenant, answer->share), window, word;

	if (units == 0)
		return 0;
	window = tenant->locked.family->escrow.window;
	word = word_of(tenant->budget, window);
	tenant->locked.window = window;
	tenant->locked.seen = units;
	store_relaxed(&tenant->till.purse, word + units);
	/* TENANT-8 */
	store_release(&tenant->till.back, word); /* reopened */
	return units;
}

/* ---- Time goes on ------------------------------------------------------------------- */

static void go_on(struct family *family, uint64_t now_us);

/* TENANT-3.  One that has tenants is present while one of them is: TREE-4. */
static bool is_still_there(struct gale_tenant *tenant, uint64_t now_us)
{
	uint64_t units = credit_units(load_relaxed(&tenant->till.purse));

	if (tenant->locked.below) {
		go_on(tenant->locked.below, now_us);
		return escrow_anybody(&tenant->locked.below->escrow);
	}
	if (units < tenant->locked.seen) {
		see_purse(tenant, units);
		return true;
	}
	empty_purse(tenant);
	return false;
}

static void go_on(struct family *family, uint64_t now_us)
{
	struct escrow *escrow = &family->escrow;
	uint32_t number;

	while ((number = escrow_due(escrow, now_us)) != ESCROW_NOBODY)
		if (is_still_there(family->handles[number], now_us))
			escrow_saw(escrow, number);
		else
			escrow_leave(escrow, number);
}

/* From the root down. */
static void go_on_to(struct gale_tenant *tenant, uint64_t now_us)
{
	if (tenant->parent)
		go_on_to(tenant->parent, now_us);
	go_on(tenant->locked.family, now_us);
}

/* ---- Asking ------------------------------------------------------------------------ */

static enum gale_why why_of(struct gale_budget *budget,
                            const struct escrow_answer *answer, uint64_t cost)
{
	const struct escrow *root = &budget->locked.family.escrow;

	if (answer->admitted)
		return answer->lent ? GALE_WHY_LENT : GALE_WHY_OWN;
	if (answer->retry_us == GALE_NEVER)
		return GALE_WHY_TOO_MUCH;
	return root->used + cost > root->set.limit ? GALE_WHY_SPENT : GALE_WHY_OTHERS;
}

/* TENANT-4 */
static void remember(struct gale_tenant *tenant, enum gale_why why, uint64_t retry_us,
                     uint64_t cost, mono now)
{
	uint64_t ns = tenant->budget->remember_ns;

	if (retry_us < ns / 1000)
		ns = retry_us * 1000;
	till_remember(
	    &tenant->till, why, cost,
	    escrow_most(&tenant->locked.family->escrow, tenant->locked.number),
	    mono_after(now, ns));
}

static void note(struct gale_tenant *tenant, const struct escrow_answer *answer,
                 enum gale_why why, uint64_t cost)
{
	struct gale_budget *budget = tenant->budget;

	if (answer->admitted) {
		tenant->locked.allowed += cost;
		budget->locked.units += cost;
	} else {
		tenant->locked.denied++;
		budget->locked.denied_by[why]++;
	}
	tenant->locked.lent += answer->lent;
	budget->locked.lent += answer->lent;
	store_relaxed(&tenant->till.share, answer->share);
}

/* How often, on the way up, shares may have fallen below what was used. */
static uint64_t falls_above(const struct gale_tenant *tenant)
{
	uint64_t falls = 0;

	for (; tenant; tenant = tenant->parent)
		falls += tenant->locked.family->escrow.falls;
	return falls;
}

/* Who has come may have lowered the shares of others below what they have ahead. */
static bool have_fallen(struct gale_tenant *tenant, uint64_t falls)
{
	if (falls_above(tenant) == falls)
		return false;
	escrowed_take_back_all(&tenant->budget->locked.family);
	return true;
}

static void ask_escrow(struct gale_tenant *tenant, uint64_t cost, uint64_t now_us,
                       struct escrow_answer *ret_answer)
{
	struct escrow *escrow = &tenant->locked.family->escrow;
	uint32_t number = tenant->locked.number;
	uint64_t falls = falls_above(tenant);

	if (!escrow_ask_own(escrow, number, cost, now_us, ret_answer))
		escrow_ask_beyond(escrow, number, cost, ret_answer);
	if (have_fallen(tenant, falls) && !ret_answer->admitted)
		*ret_answer = escrow_ask(escrow, number, cost, now_us);
}

/* The purse has units, and none of the tenant's would have room for so many. */
static bool may_stay(const struct gale_tenant *tenant, uint64_t cost)
{
	return cost > most_ahead(load_relaxed(&tenant->till.share)) &&
	       tenant->locked.window == tenant->locked.family->escrow.window &&
	       credit_units(load_relaxed(&tenant->till.purse)) > 0;
}

/* Of what is left of the share beside the purse.  TENANT-10 */
static bool ask_beside_purse(struct gale_tenant *tenant, uint64_t cost, uint64_t now_us,
                             struct escrow_answer *ret_answer)
{
	uint64_t falls = falls_above(tenant);

	bool is_own = escrow_ask_own(&tenant->locked.family->escrow,
	                             tenant->locked.number, cost, now_us, ret_answer);

	(void)have_fallen(tenant, falls);
	return is_own;
}

static enum gale_why ask_locked(struct gale_tenant *tenant, uint64_t cost, mono now,
                                struct escrow_answer *ret_answer)
{
	uint64_t now_us = utc_us(tenant->budget, now), ahead = 0;
	enum gale_why why;
	bool stays;

	go_on_to(tenant, now_us);
	stays = may_stay(tenant, cost) &&
	        ask_beside_purse(tenant, cost, now_us, ret_answer);
	if (!stays) {
		empty_purse(tenant);
		ask_escrow(tenant, cost, now_us, ret_answer);
	}
	why = why_of(tenant->budget, ret_answer, cost);
	note(tenant, ret_answer, why, cost);
	if (ret_answer->admitted)
		store_relaxed(&tenant->till.denied, 0);
	else if (why != GALE_WHY_TOO_MUCH)
		remember(tenant, why, ret_answer->retry_us, cost, now);
	if (!stays && why != GALE_WHY_TOO_MUCH)
		ahead = fill_purse(tenant, ret_answer);
	store_relaxed(&tenant->till.left, ret_answer->remaining - ahead);
	if (stays)
		ret_answer->remaining +=
		    credit_units(load_relaxed(&tenant->till.purse));
	return why;
}

/* It has not been taken out, nor been cut off by its parent's end. */
static bool is_there(const struct gale_tenant *tenant)
{
	return tenant_is_open(tenant) && !is_out(tenant);
}

/* TENANT-5.  ret_units: of a hold; or NULL.  The answer is made where it is returned, word by word: a
 * copy would read two words at a time that have just been written one by one, and a processor waits
 * for that as long as for a lock. */
static struct gale_answer ask(struct gale_seat *seat, struct gale_tenant *tenant,
                              uint64_t cost, struct tenant_units *ret_units)
{
	struct escrow_answer answer = { 0 };
	enum gale_why why;

	latch_take(&tenant->budget->lock);
	if (tenant->budget->locked.closed || !is_there(tenant))
		why = GALE_WHY_CLOSED;
	else if (tenant->locked.below)
		why = GALE_WHY_BAD_ASK;
	else
		why = ask_locked(tenant, cost, seat_now(seat), &answer);
	if (ret_units && answer.admitted)
		*ret_units = (struct tenant_units){
			.units = cost,
			.window = word_of(tenant->budget,
			                  tenant->locked.family->escrow.window),
		};
	latch_drop(&tenant->budget->lock);
	return (struct gale_answer){
		.verdict = answer.admitted ? GALE_ALLOW : GALE_DENY,
		.why = why,
		.limit = answer.share,
		.remaining = answer.remaining,
		.reset_after_us = answer.reset_us,
		.retry_after_us = answer.retry_us,
	};
}

struct gale_answer escrowed_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                                uint64_t cost)
{
	return ask(seat, tenant, cost, NULL);
}

/* ---- Holds --------------------------------------------------------------------------- */

uint64_t escrowed_most(struct gale_tenant *tenant)
{
	uint64_t most;

	latch_take(&tenant->budget->lock);
	most = escrow_most(&tenant->locked.family->escrow, tenant->locked.number);
	latch_drop(&tenant->budget->lock);
	return most;
}

struct gale_answer escrowed_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                                 uint64_t cost, struct tenant_units *ret_units)
{
	return ask(seat, tenant, cost, ret_units);
}

void escrowed_settle(struct gale_seat *seat, struct gale_tenant *tenant,
                     const struct tenant_units *units, uint64_t back, uint64_t over)
{
	struct gale_budget *budget = tenant->budget;
	uint64_t window = window_of(budget, units->window);

	latch_take(&budget->lock);
	go_on_to(tenant, utc_us(budget, seat_look(seat)));
	give_back(tenant, back, window);
	if (over > 0 && is_there(tenant)) {
		empty_purse(tenant);
		if (tenant->locked.below)
			escrowed_empty_all(tenant->locked.below); /* TREE-6 */
		escrow_debit(&tenant->locked.family->escrow, tenant->locked.number,
		             over, window);
	}
	if (back > 0)
		store_relaxed(&tenant->till.denied, 0);
	latch_drop(&budget->lock);
}

void escrowed_stats(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts)
{
	struct gale_budget *budget = tenant->budget;
	struct escrow *escrow = &tenant->locked.family->escrow;
	uint64_t unspent, ahead;

	go_on_to(tenant, utc_us(budget, clock_now(budget->handle.runtime->node_clock)));
	take_what_is_back(tenant);
	unspent = credit_units(load_relaxed(&tenant->till.purse));
	ahead = tenant->locked.window == escrow->window ? unspent : 0;
	*ret_counts = (struct gale_tenant_counts){
		.share = escrow_share(escrow, tenant->locked.number),
		.used = escrow_used(escrow, tenant->locked.number) - ahead,
		.ahead = ahead,
		.owed = escrow->tenants[tenant->locked.number].owed,
		.allowed = tenant->locked.allowed + tenant->locked.seen - unspent,
		.lent = tenant->locked.lent,
		.denied = tenant->locked.denied,
	};
}

void escrowed_add_counts(struct gale_budget *budget, struct budget_counts *sum)
{
	struct family *family = &budget->locked.family;

	go_on(family, utc_us(budget, clock_now(budget->handle.runtime->node_clock)));
	if (family->escrow.guaranteed > sum->guarantees)
		sum->guarantees = family->escrow.guaranteed;
	sum->used += family->escrow.used;
	sum->present += escrow_present(&family->escrow);
	sum->units += budget->locked.units;
	sum->lent += budget->locked.lent;
	for (unsigned why = 0; why < GALE_WHY_ROOM; why++)
		sum->denied_by[why] += budget->locked.denied_by[why];
}
