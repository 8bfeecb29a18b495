/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow.c -- tenants that ask, tenants that are present, and what is left for each.
 */
#include "engine/escrow.h"

#include "engine/check.h"

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- Lists ------------------------------------------------------------------------- */

static void unlist(struct escrow *escrow, struct escrow_tenant *tenant)
{
	struct escrow_tenant *all = escrow->tenants;

	escrow->lists[tenant->list].count--;
	if (tenant->before == ESCROW_NOBODY)
		escrow->lists[tenant->list].first = tenant->after;
	else
		all[tenant->before].after = tenant->after;
	if (tenant->after == ESCROW_NOBODY)
		escrow->lists[tenant->list].last = tenant->before;
	else
		all[tenant->after].before = tenant->before;
}

static uint32_t number_of(const struct escrow *escrow,
                          const struct escrow_tenant *tenant)
{
	return (uint32_t)(tenant - escrow->tenants);
}

static void append(struct escrow *escrow, struct escrow_tenant *tenant,
                   enum escrow_list list)
{
	uint32_t last = escrow->lists[list].last, number = number_of(escrow, tenant);

	tenant->list = list;
	escrow->lists[list].count++;
	tenant->before = last;
	tenant->after = ESCROW_NOBODY;
	if (last == ESCROW_NOBODY)
		escrow->lists[list].first = number;
	else
		escrow->tenants[last].after = number;
	escrow->lists[list].last = number;
}

static void prepend(struct escrow *escrow, struct escrow_tenant *tenant,
                    enum escrow_list list)
{
	uint32_t first = escrow->lists[list].first, number = number_of(escrow, tenant);

	tenant->list = list;
	escrow->lists[list].count++;
	tenant->before = ESCROW_NOBODY;
	tenant->after = first;
	if (first == ESCROW_NOBODY)
		escrow->lists[list].last = number;
	else
		escrow->tenants[first].before = number;
	escrow->lists[list].first = number;
}

static struct escrow_tenant *first_in(const struct escrow *escrow,
                                      enum escrow_list list)
{
	uint32_t first = escrow->lists[list].first;

	return first == ESCROW_NOBODY ? NULL : &escrow->tenants[first];
}

static struct escrow_tenant *last_in(const struct escrow *escrow, enum escrow_list list)
{
	uint32_t last = escrow->lists[list].last;

	return last == ESCROW_NOBODY ? NULL : &escrow->tenants[last];
}

static struct escrow_tenant *next_in(const struct escrow *escrow,
                                     const struct escrow_tenant *tenant)
{
	return tenant->after == ESCROW_NOBODY ? NULL : &escrow->tenants[tenant->after];
}

#define EACH(escrow, tenant, list)                                                     \
	for (tenant = first_in(escrow, list); tenant; tenant = next_in(escrow, tenant))

/* ---- What a node keeps -------------------------------------------------------------- */

static uint64_t used_of(const struct escrow *escrow, const struct escrow_tenant *tenant)
{
	return tenant->window == escrow->window ? tenant->used : 0;
}

/* Of its guarantee, what it has not used. */
static uint64_t promise_of(const struct escrow *escrow,
                           const struct escrow_tenant *tenant)
{
	uint64_t used = used_of(escrow, tenant);

	if (tenant->list != ESCROW_PRESENT || tenant->terms.guarantee <= used)
		return 0;
	return tenant->terms.guarantee - used;
}

/* Less is promised: the rest goes back.  TREE-4 */
static void keep_promised(struct escrow *escrow)
{
	uint64_t rest;

	if (escrow->kept <= escrow->promised)
		return;
	rest = escrow->kept - escrow->promised;
	escrow->kept -= rest;
	escrow_give(escrow->above, escrow->place, rest, escrow->window);
}

/* ---- Tenants come and go ------------------------------------------------------------ */

void escrow_init(struct escrow *escrow, const struct escrow_settings *set,
                 struct escrow_tenant *tenants, uint32_t room)
{
	*escrow = (struct escrow){ .set = *set,
		                   .tenants = tenants,
		                   .room = room,
		                   .assured = set->limit,
		                   .level = 1 };
	for (int i = 0; i < ESCROW_LISTS; i++)
		escrow->lists[i].first = escrow->lists[i].last = ESCROW_NOBODY;
	for (uint32_t i = 0; i < room; i++) {
		tenants[i] = (struct escrow_tenant){ .list = ESCROW_FREE };
		append(escrow, &tenants[i], ESCROW_FREE);
	}
}

void escrow_widen(struct escrow *escrow, struct escrow_tenant *tenants, uint32_t room)
{
	for (uint32_t i = 0; i < escrow->room; i++)
		tenants[i] = escrow->tenants[i];
	escrow->tenants = tenants;
	for (uint32_t i = escrow->room; i < room; i++) {
		tenants[i] = (struct escrow_tenant){ .list = ESCROW_FREE };
		append(escrow, &tenants[i], ESCROW_FREE);
	}
	escrow->room = room;
}

static enum fair_fault check_terms(const struct escrow *escrow,
                                   const struct escrow_terms *terms, uint64_t others)
{
	if (terms->weight < 1 || terms->weight > FAIR_WEIGHT_MAX)
		return FAIR_WEIGHT;
	if (terms->cap < 1 || terms->cap < terms->guarantee ||
	    terms->cap > GALE_UNITS_MAX)
		return FAIR_CAP;
	return terms->guarantee > escrow->assured - others ? FAIR_GUARANTEE : FAIR_GOOD;
}

enum fair_fault escrow_add(struct escrow *escrow, const struct escrow_terms *terms,
                           uint32_t *ret_number)
{
	enum fair_fault fault = check_terms(escrow, terms, escrow->guaranteed);
	struct escrow_tenant *tenant = first_in(escrow, ESCROW_FREE);

	if (fault != FAIR_GOOD)
		return fault;
	if (!tenant)
		return FAIR_FULL;
	unlist(escrow, tenant);
	*tenant = (struct escrow_tenant){ .terms = *terms };
	append(escrow, tenant, ESCROW_ABSENT);
	escrow->guaranteed += terms->guarantee;
	*ret_number = number_of(escrow, tenant);
	return FAIR_GOOD;
}

enum fair_fault escrow_change(struct escrow *escrow, uint32_t number,
                              const struct escrow_terms *terms)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];
	uint64_t others = escrow->guaranteed - tenant->terms.guarantee;
	enum fair_fault fault = check_terms(escrow, terms, others);

	if (fault != FAIR_GOOD)
		return fault;
	if (tenant->below && tenant->below->guaranteed > terms->guarantee)
		return FAIR_GUARANTEE;
	if (tenant->below)
		tenant->below->assured = terms->guarantee;
	escrow->promised -= promise_of(escrow, tenant);
	escrow->guaranteed = others + terms->guarantee;
	if (tenant->list == ESCROW_PRESENT)
		escrow->weights += (uint64_t)terms->weight - tenant->terms.weight;
	tenant->terms = *terms;
	tenant->repaid = lesser(tenant->repaid, terms->cap - terms->guarantee);
	escrow->promised += promise_of(escrow, tenant);
	keep_promised(escrow);
	escrow->settled = false;
	return FAIR_GOOD;
}

static void be_absent(struct escrow *escrow, struct escrow_tenant *tenant)
{
	escrow->promised -= promise_of(escrow, tenant);
	keep_promised(escrow);
	unlist(escrow, tenant);
	escrow->weights -= tenant->terms.weight;
	escrow->absent += used_of(escrow, tenant); /* ESCROW-1 */
	tenant->owed = tenant->repaid = 0;
	escrow->settled = false; /* ESCROW-3 */
}

void escrow_remove(struct escrow *escrow, uint32_t number)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];

	gale_assert(!tenant->below);
	if (tenant->list == ESCROW_PRESENT)
		be_absent(escrow, tenant);
	else
		unlist(escrow, tenant);
	escrow->guaranteed -= tenant->terms.guarantee;
	append(escrow, tenant, ESCROW_FREE);
}

enum fair_fault escrow_set_limit(struct escrow *escrow, uint64_t limit)
{
	if (limit < escrow->guaranteed)
		return FAIR_GUARANTEE;
	escrow->set.limit = escrow->assured = limit;
	escrow->settled = false;
	return FAIR_GOOD;
}

/* ---- Shares ------------------------------------------------------------------------- */

/* By the level that was found last. */
static uint64_t known_share_of(struct escrow *escrow, struct escrow_tenant *tenant)
{
	if (tenant->level != escrow->level) {
		tenant->share = escrow_level_of(escrow, tenant, &tenant->part);
		tenant->level = escrow->level;
	}
	return tenant->share;
}

static uint64_t share_of(struct escrow *escrow, struct escrow_tenant *tenant)
{
	if (!escrow->settled)
		escrow_find_level(escrow);
	return known_share_of(escrow, tenant);
}

/* ---- A window turns ----------------------------------------------------------------- */

static void forget_window(struct escrow *escrow, struct escrow_tenant *tenant)
{
	tenant->window = escrow->window;
	tenant->used = tenant->debt = tenant->refused = tenant->repaid = 0;
}

/* A tenant that was present from the beginning of a window, and had an ask refused, is owed what it
 * has used less than the share that it would have if nothing was used, nor repaid.  ESCROW-4 */
static uint64_t owed_after(struct escrow *escrow, struct escrow_tenant *tenant)
{
	uint64_t due = tenant->owed + share_of(escrow, tenant);

	if (tenant->refused == 0 || tenant->came_us > escrow->window)
		return 0;
	return due > tenant->spent ? lesser(due - tenant->spent, tenant->refused) : 0;
}

/* A part of what an ask costs would be of no use. */
static uint64_t repay(struct escrow_tenant *tenant, uint64_t room)
{
	uint64_t most = lesser(tenant->terms.cap - tenant->terms.guarantee, room);

	if (tenant->owed == 0 || tenant->owed < tenant->refused || tenant->owed > most)
		return 0;
	tenant->repaid = tenant->owed;
	return tenant->repaid;
}

static bool waits_longer(const struct escrow_tenant *tenant,
                         const struct escrow_tenant *other)
{
	return tenant->owed > 0 && tenant->owed >= tenant->refused &&
	       (!other || tenant->owed_since < other->owed_since);
}

/* The tenant that has been owed for longest comes first; so none waits for ever. */
static void repay_all(struct escrow *escrow)
{
	uint64_t room = escrow->set.limit > escrow->guaranteed
	                    ? escrow->set.limit - escrow->guaranteed
	                    : 0;
	uint64_t all = room;
	struct escrow_tenant *first = NULL, *tenant;

	EACH(escrow, tenant, ESCROW_PRESENT)
	if (waits_longer(tenant, first))
		first = tenant;
	if (first)
		room -= repay(first, room);
	EACH(escrow, tenant, ESCROW_PRESENT)
	{
		if (tenant != first)
			room -= repay(tenant, room);
		tenant->refused = 0;
	}
	if (room < all)
		escrow->settled = false;
}

/* All are present until the time of protection is over. */
static void protect(struct escrow *escrow)
{
	uint64_t until = escrow->window + escrow->set.protect_us, seen;
	struct escrow_tenant *tenant;

	if (escrow->now_us >= until)
		return;
	seen = until > escrow->set.release_us ? until - escrow->set.release_us : 0;
	EACH(escrow, tenant, ESCROW_PRESENT)
	if (tenant->asked_us < seen)
		tenant->asked_us = seen;
	while ((tenant = first_in(escrow, ESCROW_ABSENT)) != NULL) {
		unlist(escrow, tenant);
		forget_window(escrow, tenant);
		tenant->asked_us = seen;
		prepend(escrow, tenant, ESCROW_PRESENT);
		tenant->came_us = escrow->window;
		escrow->promised += tenant->terms.guarantee;
		escrow->weights += tenant->terms.weight;
	}
	escrow->settled = false;
}

/* The level of a window in which nothing is used yet says what each should have had in the one
 * before. */
static void turn_window(struct escrow *escrow, uint64_t start)
{
	struct escrow_tenant *tenant;

	EACH(escrow, tenant, ESCROW_PRESENT)
	{
		tenant->spent = used_of(escrow, tenant);
		tenant->used = tenant->debt = tenant->repaid = 0;
		tenant->window = start;
	}
	escrow->used = escrow->absent = escrow->kept = escrow->promised = 0;
	escrow_find_level(escrow);
	EACH(escrow, tenant, ESCROW_PRESENT)
	{
		uint64_t owed = owed_after(escrow, tenant);

		if (tenant->owed == 0 || owed < tenant->owed)
			tenant->owed_since = start;
		tenant->owed = owed;
		escrow->promised += tenant->terms.guarantee;
	}
	escrow->window = start;
	repay_all(escrow);
	protect(escrow);
}

static void go_on(struct escrow *escrow, uint64_t now_us)
{
	if (now_us > escrow->now_us)
		escrow->now_us = now_us;
	if (escrow->now_us - escrow->window >= escrow->set.period_us)
		turn_window(escrow,
		            escrow->now_us - escrow->now_us % escrow->set.period_us);
}

/* ---- Presence ----------------------------------------------------------------------- */

static uint64_t leaves_us(const struct escrow *escrow,
                          const struct escrow_tenant *tenant)
{
	return tenant->asked_us < UINT64_MAX - escrow->set.release_us
	           ? tenant->asked_us + escrow->set.release_us
	           : UINT64_MAX;
}

uint32_t escrow_due(struct escrow *escrow, uint64_t now_us)
{
	struct escrow_tenant *first;

	go_on(escrow, now_us);
	first = first_in(escrow, ESCROW_PRESENT);
	return first && leaves_us(escrow, first) <= escrow->now_us
	           ? number_of(escrow, first)
	           : ESCROW_NOBODY;
}

void escrow_leave(struct escrow *escrow, uint32_t number)
{
	be_absent(escrow, &escrow->tenants[number]);
	append(escrow, &escrow->tenants[number], ESCROW_ABSENT);
}

static void come(struct escrow *escrow, struct escrow_tenant *tenant)
{
	tenant->came_us = escrow->now_us;
	escrow->weights += tenant->terms.weight;
	escrow->absent -= tenant->used;
	if (escrow_lower_level(escrow, tenant))
		return;
	escrow->settled = false;
	escrow->falls++;
}

void escrow_saw(struct escrow *escrow, uint32_t number)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];
	const struct escrow_tenant *last;
	bool comes = tenant->list == ESCROW_ABSENT;

	if (tenant->window != escrow->window)
		forget_window(escrow, tenant);
	if (comes)
		come(escrow, tenant);
	unlist(escrow, tenant);
	last = last_in(escrow, ESCROW_PRESENT);
	/* No tenant goes before those that are protected. */
	tenant->asked_us =
	    last && last->asked_us > escrow->now_us ? last->asked_us : escrow->now_us;
	append(escrow, tenant, ESCROW_PRESENT);
	if (comes)
		escrow->promised += promise_of(escrow, tenant);
}

/* ---- Judging ------------------------------------------------------------------------ */

/* What one escrow says of an ask. */
enum verdict { NO, OWN, LENT };

/* Beyond its share, and with units that are in no tenant's share?  ESCROW-2 */
static bool may_lend(struct escrow *escrow, const struct escrow_tenant *tenant,
                     uint64_t share, uint64_t cost)
{
	uint64_t most;

	if (!escrow->reckoned)
		escrow_find_level(escrow);
	most = escrow->set.limit + greater(share, tenant->used);
	most = most > escrow->reserve ? most - escrow->reserve : 0;
	return tenant->used + cost <= lesser(most, tenant->terms.cap);
}

static enum verdict judge_here(struct escrow *escrow, struct escrow_tenant *tenant,
                               uint64_t cost)
{
	uint64_t share = share_of(escrow, tenant);

	if (escrow->used + cost > escrow->set.limit)
		return NO;
	if (tenant->used + cost <= share)
		return OWN;
	if (escrow->set.parted)
		return NO;
	if (tenant->used < share || (tenant->used == share && tenant->part))
		return may_lend(escrow, tenant, share, cost) ? LENT : NO;
	return NO;
}

static void limit_to(struct escrow *escrow, uint64_t limit)
{
	if (limit == escrow->set.limit)
		return;
	escrow->falls += limit < escrow->set.limit;
	escrow->set.limit = limit;
	escrow->settled = false;
}

/* Of what the node keeps. */
static uint64_t kept_for(const struct escrow *escrow,
                         const struct escrow_tenant *tenant, uint64_t cost)
{
	if (escrow->kept == 0)
		return 0;
	return lesser(escrow->kept, lesser(cost, promise_of(escrow, tenant)));
}

/* From the root down.  An ask for which the node may borrow is judged with so much more.  TREE-2
 * Below a node that owes, an ask is admitted only what is kept for its guarantee.  TREE-6 */
static enum verdict judge(struct escrow *escrow, uint32_t number, uint64_t cost)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];
	uint64_t beyond = cost - kept_for(escrow, tenant, cost);
	enum verdict above = OWN, here;

	if (tenant->debt > 0) /* ESCROW-5 */
		return NO;
	if (escrow->above && beyond > 0)
		above = judge(escrow->above, escrow->place, beyond);
	if (above == NO)
		return NO;
	if (above == LENT && tenant->used <= share_of(escrow, tenant))
		limit_to(escrow, escrow_used(escrow->above, escrow->place) + beyond);
	here = judge_here(escrow, tenant, cost);
	return here == OWN ? above : here;
}

/* ---- Using -------------------------------------------------------------------------- */

static void use(struct escrow *escrow, struct escrow_tenant *tenant, uint64_t units)
{
	escrow->promised -= lesser(promise_of(escrow, tenant), units);
	tenant->used += units;
	escrow->used += units;
	gale_assert(escrow->used <= escrow->set.limit); /* ESCROW-1 */
	escrow_note_used(escrow, tenant);
}

/* In each escrow from the lowest up.  TREE-1 */
static void take(struct escrow *escrow, uint32_t number, uint64_t units)
{
	for (; escrow && units > 0; number = escrow->place, escrow = escrow->above) {
		struct escrow_tenant *tenant = &escrow->tenants[number];
		uint64_t kept = kept_for(escrow, tenant, units);
		uint64_t held = greater(share_of(escrow, tenant), tenant->used);

		use(escrow, tenant, units);
		if (tenant->used > held)
			escrow->reserve += tenant->used - held;
		escrow->kept -= kept;
		units -= kept;
	}
}

/* Of its share, and of those of the nodes above. */
static uint64_t remaining_of(struct escrow *escrow, uint32_t number)
{
	uint64_t least = UINT64_MAX;

	for (; escrow; number = escrow->place, escrow = escrow->above) {
		struct escrow_tenant *tenant = &escrow->tenants[number];
		uint64_t share = share_of(escrow, tenant), rest;

		rest = escrow->set.limit > escrow->used
		           ? escrow->set.limit - escrow->used
		           : 0;
		rest = lesser(rest, share > tenant->used ? share - tenant->used : 0);
		if (rest <= kept_for(escrow, tenant, rest))
			return lesser(least, rest);
		least = lesser(least, rest);
	}
	return least;
}

uint64_t escrow_ask_ahead(struct escrow *escrow, uint32_t number, uint64_t most)
{
	uint64_t units = lesser(remaining_of(escrow, number), most);

	take(escrow, number, units);
	return units;
}

/* ESCROW-5 */
static void pay(struct escrow *escrow, uint32_t number)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];

	tenant->debt -= escrow_ask_ahead(escrow, number, tenant->debt);
}

/* Of calls of before the node had tenants: it counts as what it used then.  TREE-6 */
static void pay_for_node(struct escrow *escrow)
{
	struct escrow_tenant *node = &escrow->above->tenants[escrow->place];
	uint64_t units;

	if (node->debt == 0)
		return;
	units = escrow_ask_ahead(escrow->above, escrow->place, node->debt);
	node->debt -= units;
	escrow->used += units; /* TREE-1 */
	escrow->absent += units;
	escrow->settled = false;
}

/* Keeps units of the node's share for tenants whose guarantees are not used.  TREE-3 */
static void keep(struct escrow *escrow)
{
	if (escrow->kept < escrow->promised)
		escrow->kept += escrow_ask_ahead(escrow->above, escrow->place,
		                                 escrow->promised - escrow->kept);
}

/* What those below a node may use together.  TREE-2 */
static uint64_t limit_below(struct escrow *escrow, uint32_t number)
{
	struct escrow_tenant *node = &escrow->tenants[number];

	if (node->list != ESCROW_PRESENT)
		return used_of(escrow, node);
	return greater(share_of(escrow, node), node->used);
}

/* From the root down: a tenant that asks is present.  TREE-4 */
static void be_seen(struct escrow *escrow, uint32_t number, uint64_t now_us)
{
	if (escrow->above)
		be_seen(escrow->above, escrow->place, now_us);
	go_on(escrow, now_us);
	escrow_saw(escrow, number);
	if (!escrow->above)
		return;
	keep(escrow);
	pay_for_node(escrow);
	limit_to(escrow, limit_below(escrow->above, escrow->place));
}

/* ---- Asking ------------------------------------------------------------------------- */

/* When the window turns, or another tenant of one of the escrows is absent. */
static uint64_t retry_of(const struct escrow *escrow, uint32_t number,
                         uint64_t reset_us)
{
	uint64_t least = reset_us;

	for (; escrow; number = escrow->place, escrow = escrow->above) {
		const struct escrow_tenant *first = first_in(escrow, ESCROW_PRESENT);
		uint64_t leaves = leaves_us(escrow, first);

		if (first != &escrow->tenants[number] && leaves > escrow->now_us)
			least = lesser(least, leaves - escrow->now_us);
	}
	return least;
}

/* TREE-5 */
static void refuse(struct escrow *escrow, uint32_t number, uint64_t cost)
{
	uint64_t before = escrow->tenants[number].refused;
	uint64_t more = cost > before ? cost - before : 0;

	for (; escrow && more > 0; number = escrow->place, escrow = escrow->above)
		escrow->tenants[number].refused += more;
}

/* It, or a node above it.  ESCROW-5, TREE-6 */
static bool owes(const struct escrow *escrow, uint32_t number)
{
	for (; escrow; number = escrow->place, escrow = escrow->above)
		if (escrow->tenants[number].debt > 0)
			return true;
	return false;
}

bool escrow_ask_own(struct escrow *escrow, uint32_t number, uint64_t cost,
                    uint64_t now_us, struct escrow_answer *ret_answer)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];
	uint64_t remaining;
	bool is_own;

	gale_assert(!tenant->below);
	be_seen(escrow, number, now_us);
	if (tenant->debt > 0)
		pay(escrow, number);
	remaining = remaining_of(escrow, number);
	is_own = cost <= remaining && !owes(escrow, number);
	if (is_own) {
		take(escrow, number, cost);
		/* Of what a node keeps, and gives only for guarantees, less may be left. */
		remaining =
		    escrow->above ? remaining_of(escrow, number) : remaining - cost;
	}
	*ret_answer = (struct escrow_answer){
		.admitted = is_own,
		.share = tenant->share,
		.remaining = remaining,
		.reset_us = escrow->window + escrow->set.period_us - escrow->now_us,
	};
	return is_own;
}

void escrow_ask_beyond(struct escrow *escrow, uint32_t number, uint64_t cost,
                       struct escrow_answer *answer)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];
	enum verdict verdict = NO;

	if (cost > escrow_most(escrow, number))
		answer->retry_us = GALE_NEVER;
	else
		verdict = judge(escrow, number, cost);
	answer->admitted = verdict != NO;
	answer->lent = verdict == LENT;
	if (answer->admitted) {
		take(escrow, number, cost);
	} else if (answer->retry_us != GALE_NEVER) {
		refuse(escrow, number, cost);
		answer->retry_us = retry_of(escrow, number, answer->reset_us);
	}
	answer->share = share_of(escrow, tenant);
	answer->remaining = remaining_of(escrow, number);
}

/* Units of its guarantee that are free again are kept for it.  Returns the rest. */
static uint64_t give(struct escrow *escrow, struct escrow_tenant *tenant,
                     uint64_t units)
{
	uint64_t before = promise_of(escrow, tenant), kept;
	bool is_reserved = tenant->list == ESCROW_PRESENT && escrow->settled &&
	                   tenant->used <= share_of(escrow, tenant);

	tenant->used -= units;
	escrow->used -= units;
	if (tenant->list == ESCROW_ABSENT)
		escrow->absent -= units;
	if (!is_reserved) /* what it gives back is reserved for itself */
		escrow->settled = false;
	kept = promise_of(escrow, tenant) - before;
	escrow->promised += kept;
	if (!escrow->above)
		return 0;
	escrow->kept += kept;
	return units - kept;
}

void escrow_give(struct escrow *escrow, uint32_t number, uint64_t units,
                 uint64_t window)
{
	for (; escrow && units > 0; number = escrow->place, escrow = escrow->above) {
		struct escrow_tenant *tenant = &escrow->tenants[number];

		if (window != escrow->window || tenant->list == ESCROW_FREE ||
		    used_of(escrow, tenant) < units)
			return;
		units = give(escrow, tenant, units);
	}
}

void escrow_give_removed(struct escrow *escrow, uint64_t units, uint64_t window)
{
	if (window != escrow->window || escrow->absent < units)
		return;
	escrow->used -= units;
	escrow->absent -= units;
	escrow->settled = false;
	if (escrow->above)
		escrow_give(escrow->above, escrow->place, units, window);
}

void escrow_debit(struct escrow *escrow, uint32_t number, uint64_t units,
                  uint64_t window)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];

	if (window != escrow->window || tenant->window != window)
		return;
	tenant->debt = lesser(tenant->debt + units, GALE_UNITS_MAX);
	if (tenant->list != ESCROW_PRESENT)
		return;
	if (!tenant->below) {
		pay(escrow, number);
	} else if (tenant->below->window == window) {
		pay_for_node(tenant->below);
		limit_to(tenant->below, limit_below(escrow, number));
	}
}

uint64_t escrow_used(const struct escrow *escrow, uint32_t number)
{
	return used_of(escrow, &escrow->tenants[number]);
}

uint64_t escrow_share(struct escrow *escrow, uint32_t number)
{
	struct escrow_tenant *tenant = &escrow->tenants[number];

	if (escrow->above) {
		(void)escrow_share(escrow->above, escrow->place);
		limit_to(escrow, limit_below(escrow->above, escrow->place));
	}
	return tenant->list == ESCROW_PRESENT ? share_of(escrow, tenant) : 0;
}

uint64_t escrow_excess(struct escrow *escrow, uint32_t number)
{
	uint64_t most = 0;

	for (; escrow; number = escrow->place, escrow = escrow->above) {
		struct escrow_tenant *tenant = &escrow->tenants[number];
		uint64_t used = used_of(escrow, tenant), half;

		half = tenant->list == ESCROW_PRESENT
		           ? known_share_of(escrow, tenant) / 2
		           : 0;
		most = greater(most, used > half ? used - half : 0);
	}
	return most;
}

uint64_t escrow_most(const struct escrow *escrow, uint32_t number)
{
	uint64_t most = GALE_UNITS_MAX;

	for (; escrow->above; number = escrow->place, escrow = escrow->above)
		most = lesser(most, escrow->tenants[number].terms.cap);
	return lesser(most,
	              lesser(escrow->tenants[number].terms.cap, escrow->set.limit));
}

/* ---- What is always true ------------------------------------------------------------ */

/* TREE-1 */
static bool is_used_above(const struct escrow *escrow)
{
	return !escrow->above || escrow->above->window != escrow->window ||
	       escrow->used + escrow->kept == escrow_used(escrow->above, escrow->place);
}

static bool has_its_share(const struct escrow *escrow,
                          const struct escrow_tenant *tenant)
{
	bool part;

	return tenant->list != ESCROW_PRESENT || !escrow->settled ||
	       tenant->level != escrow->level ||
	       (tenant->share == escrow_level_of(escrow, tenant, &part) &&
	        tenant->part == part);
}

bool escrow_valid(const struct escrow *escrow)
{
	uint64_t used = 0, absent = 0, weights = 0, guaranteed = 0, asked = 0;
	uint64_t promised = 0;
	uint32_t present = 0;

	for (uint32_t i = 0; i < escrow->room; i++) {
		const struct escrow_tenant *tenant = &escrow->tenants[i];

		if (tenant->list == ESCROW_FREE)
			continue;
		if (!has_its_share(escrow, tenant))
			return false;
		guaranteed += tenant->terms.guarantee;
		promised += promise_of(escrow, tenant);
		used += used_of(escrow, tenant);
		if (tenant->list == ESCROW_PRESENT)
			weights += tenant->terms.weight;
		else
			absent += used_of(escrow, tenant);
	}
	for (const struct escrow_tenant *tenant = first_in(escrow, ESCROW_PRESENT);
	     tenant; tenant = next_in(escrow, tenant)) {
		if (tenant->asked_us < asked)
			return false;
		asked = tenant->asked_us;
		present++;
	}
	return present == escrow_present(escrow) && used <= escrow->used &&
	       absent <= escrow->absent &&
	       escrow->used - used == escrow->absent - absent &&
	       weights == escrow->weights && guaranteed == escrow->guaranteed &&
	       guaranteed <= escrow->assured && promised == escrow->promised &&
	       escrow->kept <= promised && is_used_above(escrow);
}
