/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * funds.c -- calls of two seats at a shared budget, and a coordinator that claims for them.
 *
 * The store answers in the turn in which it is asked, after all locks were dropped: seats may come
 * in between.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/funds.h"

#include "coordinator/coordinator.h"
#include "coordinator/stake.h"
#include "tests/interleave/model.h"
#include "tests/interleave/stand_ins.h"

#define SEATS 2
#define COST 3
#define LIMIT 64

static const mono now = { UINT64_C(1000000000000) };

struct call {
	struct fund_wait wait; /* first */
	struct store_op op;
	bool waits;
	bool done;
	bool gave_up;
	uint64_t used;
};

static struct stage {
	struct fund fund; /* first */
	struct stake stake;
	struct till till;
	struct fund_alone alones[1];
	struct store store;
	struct post post;
	struct coordinator coordinator; /* its lock and its words alone */
	struct store_call *sent;
	struct call calls[SEATS];
	struct fund_held held;
	uint64_t beyond; /* so many more are granted than are asked for */
	uint64_t before; /* so many were used at the beginning */
	bool gone;
} * s;

/* ---- The stage -------------------------------------------------------------------- */

static void begin_call(const struct store_client *client, struct store_call *call)
{
	(void)client;
	s->sent = call;
}

static const struct store_ops store_ops = { .begin = begin_call };

static void drop(struct fund *self)
{
	(void)self;
}

static void drop_stake(struct stake *self)
{
	(void)self;
	s->gone = true;
}

static void say(struct fund *self, enum gale_level level, const char *line)
{
	(void)self;
	(void)level;
	(void)line;
}

static const struct fund_ops fund_ops = { drop, drop_stake, say };

void coordinator_wake(struct coordinator *coordinator)
{
	lock_take(&coordinator->lock);
	due_now(&coordinator->due);
	wake_raise(&coordinator->actor.wake);
	lock_drop(&coordinator->lock);
}

static void is_done(struct fund_wait *wait)
{
	struct call *call = (struct call *)wait;

	must_hold(!call->done);
	call->done = true;
}

void begin_fund(void)
{
	struct stake_config tenant = { .name = "t",
		                       .node = 1,
		                       .terms = { .cap = LIMIT, .weight = 1 } };
	struct fund_config config = { .ops = &fund_ops,
		                      .name = "b",
		                      .terms = { .limit = LIMIT,
		                                 .period_us = GALE_DAYS(1),
		                                 .release_us = GALE_HOURS(1) },
		                      .patience_ns = 1,
		                      .remind_ns = UINT64_C(1) << 60,
		                      .alone_count = 1 };

	s = model_take(sizeof(*s));
	s->store.ops = &store_ops;
	s->post = (struct post){ .store = &s->store,
		                 .client = { .store = &s->store,
		                             .desk = (struct store_desk *)s },
		                 .entered = true };
	model_init(&s->coordinator.due, sizeof(s->coordinator.due), DUE_NEVER);
	must_hold(wake_open(&s->coordinator.actor.wake));
	config.coordinator = &s->coordinator;
	config.post = &s->post;
	config.alones = s->alones;
	fund_init(&s->fund, &config);
	tenant.fund = &s->fund;
	tenant.till = &s->till;
	must_hold(stake_open(&s->stake, &tenant, now));
}

/* ---- The coordinator --------------------------------------------------------------- */

static void hear(void)
{
	struct store_call *call = s->sent;
	struct store_claim *claim = call->op->claim;

	s->sent = NULL;
	claim->answer = (struct pool_answer){ .window = 1,
		                              .granted = claim->ask.had +
		                                         claim->ask.more + s->beyond,
		                              .left_us = GALE_HOURS(1),
		                              .share = LIMIT,
		                              .free = LIMIT };
	call->result = STORE_DONE;
	fund_hear(call, now);
}

/* As the actor does: it clears, looks, and sleeps. */
static void turn(void)
{
	due_word *due = &s->coordinator.due;
	bool woken;

	wake_clear(&s->coordinator.actor.wake);
	if (!due_reached(due, now))
		return;
	woken = due_take(due);
	if (!s->gone && (woken || mono_reached(now, s->fund.due)))
		(void)fund_turn(&s->fund, now);
	if (s->sent)
		hear();
	due_set(due, s->gone ? NEVER : s->fund.due);
}

void coordinator_turns_twice(void)
{
	turn();
	turn();
}

static bool is_awake(void)
{
	return *kernel_event > 0 || due_reached(&s->coordinator.due, now);
}

/* ---- Seats -------------------------------------------------------------------------- */

static void ask(int seat, bool waits)
{
	struct call *call = &s->calls[seat];
	struct gale_answer answer;

	call->op.cost = COST;
	call->wait = (struct fund_wait){ .done = is_done, .op = &call->op };
	switch (
	    fund_ask(&s->stake, COST, now, waits ? &call->wait : NULL, NULL, &answer)) {
	case FUND_ALLOWED:
		call->used = COST;
		break;
	case FUND_WAITS:
		call->waits = waits;
		break;
	case FUND_DENIED:
		break;
	}
}

void fund_seat_asks(void)
{
	ask(0, /* waits= */ true);
}

void fund_other_asks(void)
{
	ask(1, /* waits= */ true);
}

void fund_seat_asks_and_gives_up(void)
{
	struct call *call = &s->calls[0];

	ask(0, /* waits= */ true);
	if (call->waits)
		call->gave_up = fund_give_up(&s->stake, &call->wait);
}

static void take(int seat)
{
	uint64_t word;

	if (till_take(&s->till, now, COST, &word))
		s->calls[seat].used = COST;
	else
		ask(seat, /* waits= */ false);
}

void fund_seat_takes(void)
{
	take(0);
}

void fund_other_takes(void)
{
	take(1);
}

/* So many that one of two calls takes the last of them. */
void begin_fund_with_units(void)
{
	begin_fund();
	s->beyond = COST;
	ask(0, /* waits= */ true);
	turn();
	s->beyond = 0;
	must_hold(s->calls[0].done);
	s->calls[0] = (struct call){ .used = 0 };
	must_hold(credit_units(load_relaxed(&s->till.purse)) == COST);
	s->before = COST;
}

void begin_fund_with_hold(void)
{
	struct call *call;
	struct gale_answer answer;

	begin_fund();
	call = &s->calls[0];
	call->op.cost = COST;
	call->wait = (struct fund_wait){ .done = is_done, .op = &call->op };
	must_hold(fund_ask(&s->stake, COST, now, &call->wait, &s->held, &answer) ==
	          FUND_WAITS);
	turn();
	must_hold(call->done && s->held.units == COST);
	*call = (struct call){ .used = 0 };
	s->before = COST;
}

void fund_seat_settles(void)
{
	fund_settle(&s->stake, &s->held, COST, 0, now);
}

void fund_seat_settles_as_used(void)
{
	fund_settle(&s->stake, &s->held, 0, 0, now);
}

void anybody_counts(void)
{
	struct stake_counts counts;

	stake_counts(&s->stake, now, &counts);
	must_hold(counts.spent % COST == 0);
}

void anybody_closes(void)
{
	stake_close(&s->stake);
}

/* ---- What must be ------------------------------------------------------------------- */

static uint64_t used_of(const struct call *call)
{
	bool is_allowed = call->done && call->op.answer.verdict == GALE_ALLOW;

	must_hold(!call->waits || call->done != call->gave_up); /* FUND-10 */
	return call->used + (is_allowed ? COST : 0);
}

void nobody_waits_for_ever(void)
{
	struct stake_counts counts;
	uint64_t used = 0;

	while (is_awake())
		turn();
	for (int i = 0; i < SEATS; i++)
		used += used_of(&s->calls[i]);
	stake_counts(&s->stake, now, &counts);
	must_hold(counts.spent == used + s->before); /* FUND-1 */
}

void all_units_go_back(void)
{
	const struct claim *claim = &s->stake.locked.claim;

	nobody_waits_for_ever();
	must_hold(s->gone);
	must_hold(claim->granted - claim->back == claim->taken);
	must_hold(claim->told_back == claim->back); /* FUND-3 */
}
