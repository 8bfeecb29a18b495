/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tills.c -- holds of a tenant that go straight, beside asks that take the budget's lock.
 *
 * face/escrowed.c and face/tenant_hold.c are compiled again; the rest of what they need stands in
 * here.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/tills.h"

#include <gale/tenants.h>

#include "face/checks.h"
#include "face/tenants.h"
#include "tests/interleave/model.h"
#include "tests/interleave/stand_ins.h"

#define LIMIT 64
#define BEFORE 40 /* used: more than the share, when the other tenant has come */
#define COMES 8
#define HELD 2
#define TENANTS 2
#define SEATS 2
#define TENANT_BYTES                                                                   \
	(sizeof(struct gale_tenant) + (SEATS + 1) * sizeof(_Atomic uint64_t))
#define WINDOW_US UINT64_C(1000000)
#define NOW_US (WINDOW_US + 1000)

static struct stage {
	struct gale_budget budget; /* first */
	struct gale_tenant *tenants[TENANTS];
	struct gale_tenant *handles[TENANTS];
	struct escrow_tenant escrow[TENANTS];
	struct gale_runtime runtime;
	struct gale_clock clock;
	struct gale_seat seats[SEATS];
	struct gale_tenant_held holds[SEATS];
	_Atomic uint64_t alive;
	uint64_t committed[SEATS]; /* by each seat, in the first window */
	bool turned;
	bool closed; /* the first tenant */
	bool gone;   /* the same */
} * s;

/* ---- What stands in ---------------------------------------------------------------- */

static uint64_t stage_ns(struct gale_clock *clock)
{
	(void)clock;
	return (NOW_US + (s->turned ? WINDOW_US : 0)) * 1000;
}

mono seat_now(struct gale_seat *seat)
{
	return seat->ticked;
}

mono seat_look(struct gale_seat *seat)
{
	return seat->ticked;
}

bool seat_is_here(const struct gale_seat *seat)
{
	(void)seat;
	return true;
}

enum gale_err runtime_error(const struct gale_runtime *runtime)
{
	(void)runtime;
	return GALE_ERR_OK;
}

void handle_hold(struct handle *handle)
{
	add_relaxed(&handle->refs, 1);
}

void handle_drop(struct handle *handle)
{
	uint64_t before = sub_acq_rel(&handle->refs, 1);

	must_hold(before > 0);
	if (before > 1)
		return;
	must_hold(handle == &s->tenants[0]->handle && s->closed);
	s->gone = true;
	model_give(handle);
}

enum gale_why tenant_check(const struct gale_seat *seat,
                           const struct gale_tenant *tenant, uint64_t cost)
{
	(void)seat;
	(void)cost;
	return tenant_is_open(tenant) ? GALE_WHY_RULE : GALE_WHY_CLOSED;
}

bool tenant_denies(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                   struct gale_answer *ret_answer)
{
	(void)seat;
	(void)tenant;
	(void)cost;
	(void)ret_answer;
	return false;
}

uint64_t shared_most(struct gale_tenant *tenant)
{
	(void)tenant;
	must_hold(false);
	return 0;
}

struct gale_answer shared_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                               uint64_t cost, uint64_t within_us,
                               struct tenant_units *ret_units)
{
	(void)seat;
	(void)tenant;
	(void)cost;
	(void)within_us;
	(void)ret_units;
	must_hold(false);
	return (struct gale_answer){ 0 };
}

void shared_settle(struct gale_seat *seat, struct gale_tenant *tenant,
                   const struct tenant_units *units, uint64_t back, uint64_t over)
{
	(void)seat;
	(void)tenant;
	(void)units;
	(void)back;
	(void)over;
	must_hold(false);
}

/* ---- The stage --------------------------------------------------------------------- */

static void hold(int seat)
{
	struct gale_answer answer =
	    gale_tenant_hold(&s->seats[seat], s->tenants[0], HELD, &s->holds[seat], 0);

	must_hold(answer.verdict == GALE_ALLOW || s->holds[seat].units == 0);
}

static void set_up(void)
{
	struct escrow_settings set = { .limit = LIMIT,
		                       .period_us = WINDOW_US,
		                       .release_us = GALE_NEVER };
	struct escrow_terms terms = { .cap = LIMIT, .weight = 1 };
	struct family *family = &s->budget.locked.family;

	s->budget.remember_ns = 1;
	s->budget.window_us = WINDOW_US;
	s->budget.room = TENANTS;
	s->budget.handle.runtime = &s->runtime;
	s->clock.boot_ns = stage_ns;
	s->runtime.node_clock = &s->clock;
	s->runtime.node = 1;
	*family = (struct family){ .tenants = s->escrow,
		                   .handles = s->handles,
		                   .room = TENANTS };
	escrow_init(&family->escrow, &set, s->escrow, TENANTS);
	s->runtime.cell_count = SEATS;
	grace_open(&s->runtime.grace);
	list_init(&s->runtime.locked.held);
	for (uint32_t i = 0; i < TENANTS; i++) {
		struct gale_tenant *tenant = model_take(TENANT_BYTES);

		s->tenants[i] = tenant;
		tenant->holds = (_Atomic uint64_t *)(tenant + 1);
		tenant->handle.runtime = &s->runtime;
		model_init(&tenant->handle.refs, sizeof(tenant->handle.refs), 1);
		tenant->budget = &s->budget;
		tenant->locked.family = family;
		must_hold(escrow_add(&family->escrow, &terms, &tenant->locked.number) ==
		          FAIR_GOOD);
		s->handles[tenant->locked.number] = tenant;
	}
	for (int i = 0; i < SEATS; i++) {
		s->seats[i].handle.runtime = &s->runtime;
		s->seats[i].number = (uint32_t)i;
		s->seats[i].owner = pthread_self();
		s->seats[i].lifeline.word = &s->alive;
		s->seats[i].ticked = (mono){ NOW_US * 1000 };
	}
	s->runtime.lifeline = s->seats[0].lifeline;
}

static void begin_filled(void)
{
	s = model_take(sizeof(*s));
	set_up();
	must_hold(escrowed_ask(&s->seats[0], s->tenants[0], BEFORE).verdict ==
	          GALE_ALLOW);
}

void begin_till(void)
{
	begin_filled();
	hold(0);
	hold(1);
	must_hold(credit_units(load_relaxed(&s->tenants[0]->till.purse)) ==
	          LIMIT / 8 - 2 * HELD);
}

void begin_till_with_a_call(void)
{
	begin_filled();
	hold(0);
}

void begin_till_without_cells(void)
{
	begin_filled();
	for (int i = 0; i < SEATS; i++)
		s->seats[i].number = CELLS_MOST;
	hold(0);
}

void begin_till_unfenced(void)
{
	kernel_has_barriers = false;
	begin_till_with_a_call();
	kernel_has_barriers = true;
}

/* ---- Seats --------------------------------------------------------------------------- */

static void commit(int seat, uint64_t cost)
{
	uint64_t held = s->holds[seat].units;
	enum gale_err err = gale_tenant_commit(&s->seats[seat], &s->holds[seat], cost);

	s->committed[seat] += err == GALE_ERR_TENANT && cost > held ? held : cost;
}

void till_seat_holds(void)
{
	struct gale_tenant_held other;

	if (gale_tenant_hold(&s->seats[0], s->tenants[0], HELD, &other, 0).verdict ==
	    GALE_ALLOW)
		s->committed[0] += HELD;
}

void till_seat_grows(void)
{
	(void)gale_tenant_grow(&s->seats[0], &s->holds[0], 1, 0);
}

/* It has units in its purse then, and the denial is remembered. */
void till_seat_is_refused(void)
{
	must_hold(escrowed_ask(&s->seats[0], s->tenants[0], LIMIT).verdict ==
	          GALE_DENY);
}

void till_seat_commits_less(void)
{
	commit(0, HELD - 1);
}

void till_seat_commits_more(void)
{
	commit(0, HELD + 1);
}

void till_other_holds(void)
{
	struct gale_tenant_held other;

	if (gale_tenant_hold(&s->seats[1], s->tenants[0], HELD, &other, 0).verdict ==
	    GALE_ALLOW)
		s->committed[1] += HELD;
}

void till_other_commits_less(void)
{
	commit(1, 0);
}

/* The first seat's call, which its thread has handed over. */
void till_other_ends_call(void)
{
	must_hold(gale_tenant_commit(&s->seats[1], &s->holds[0], 1) != GALE_ERR_HOLD);
}

void till_other_tenant_comes(void)
{
	must_hold(escrowed_ask(&s->seats[1], s->tenants[1], COMES).verdict ==
	          GALE_ALLOW);
	s->committed[1] += COMES;
}

/* What it holds now is of the second window. */
void till_other_turns_window(void)
{
	s->seats[1].ticked = (mono){ (NOW_US + WINDOW_US) * 1000 };
	s->turned = true;
	must_hold(escrowed_ask(&s->seats[1], s->tenants[0], 1).verdict == GALE_ALLOW);
}

/* As tenants.c does it. */
UNCHECKED void till_is_closed(void)
{
	struct gale_tenant *tenant = s->tenants[0];

	latch_take(&s->budget.lock);
	escrowed_empty(tenant);
	escrow_remove(&tenant->locked.family->escrow, tenant->locked.number);
	s->handles[tenant->locked.number] = NULL;
	latch_drop(&s->budget.lock);
	s->closed = true;
	store_relaxed(&tenant->handle.closed, true);
	tenant_keep_while_held(tenant);
	handle_drop(&tenant->handle);
}

void till_other_commits_and_closes(void)
{
	till_other_commits_less();
	till_is_closed();
}

/* As tenants.c does it. */
UNCHECKED void till_budget_is_closed(void)
{
	latch_take(&s->budget.lock);
	s->budget.locked.closed = true;
	for (int i = 0; i < TENANTS; i++)
		escrowed_empty(s->tenants[i]);
	latch_drop(&s->budget.lock);
}

/* Begun while the budget was open. */
void till_other_asks(void)
{
	(void)escrowed_ask(&s->seats[1], s->tenants[1], COMES);
}

/* ---- What must be --------------------------------------------------------------------- */

UNCHECKED void till_has_all_units(void)
{
	struct escrow *escrow = &s->budget.locked.family.escrow;
	uint64_t used = BEFORE, debt;

	latch_take(&s->budget.lock);
	for (int i = s->closed; i < TENANTS; i++)
		escrowed_empty(s->tenants[i]);
	debt = s->closed ? 0 : s->escrow[s->tenants[0]->locked.number].debt;
	must_hold(escrow_valid(escrow));
	for (int i = 0; i < SEATS; i++)
		used += s->committed[i] + s->holds[i].units;
	must_hold(escrow->used <= LIMIT);
	if (s->turned) /* a hold that takes the lock then is of the second window */
		must_hold(escrow->used == 1 || escrow->used == 1 + HELD);
	else
		must_hold(escrow->used + debt == used);
	latch_drop(&s->budget.lock);
}

void till_lives_while_held(void)
{
	bool is_held = false;

	for (int i = 0; i < SEATS; i++)
		is_held |= s->holds[i].units > 0;
	must_hold(s->gone == !is_held);
}

/* A hold that gave back straight has seen the denial that was remembered before (reopened). */
void till_remembers_no_denial(void)
{
	const struct till *till = &s->tenants[0]->till;

	must_hold(credit_units(load_relaxed(&till->back)) == 0 ||
	          load_relaxed(&till->denied) == 0);
	till_has_all_units();
}

/* Holds look at nothing else of a budget that is closed. */
void till_is_empty(void)
{
	for (int i = 0; i < TENANTS; i++)
		must_hold(credit_units(load_relaxed(&s->tenants[i]->till.purse)) == 0);
}
