/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* answers.c -- verdicts, reasons and instants that a caller may be told.  (SIM-5) */
#include "sim/answers.h"

#include <inttypes.h>

#include <gale/http.h>

#include "engine/credit.h"
#include "stores/quarantine.h"
#include "sim/force.h"
#include "sim/law.h"

static uint64_t capacity_of(const struct gale_rule *rule)
{
	if (law_is_budget(rule))
		return GALE_UNITS_MAX;
	return law_has_windows(rule) || law_slides(rule) ? rule->limit : rule->burst;
}

/* Is the cost above the limit, by the largest in force or by the smallest? */
static bool is_too_much(const struct world *world, uint64_t cost, bool by_largest)
{
	bool one = cost > capacity_of(&world->plan.rule), other = one;

	if (force_changes(world))
		other = cost > capacity_of(&world->plan.next);
	return by_largest ? one && other : one || other;
}

static uint64_t widest_limit(const struct world *world)
{
	return force_widest(&world->plan).limit;
}

/* An ask may be decided by the rule that its node had before. */
static bool is_limit(const struct world *world, uint64_t limit)
{
	return limit == world->plan.rule.limit ||
	       (force_changes(world) && limit == world->plan.next.limit);
}

void answers_check_allow(struct world *world, const struct call *call)
{
	const struct gale_answer *answer = &call->answer;
	bool strict = world->nodes[call->node].strict ||
	              world->plan.mode != GALE_LEASED || call->cost > CREDIT_UNITS_MAX;

	if (answer->why != (strict ? GALE_WHY_RULE : GALE_WHY_CREDIT))
		world_fault(world, "allowed because %s", gale_why_text(answer->why));
	if (answer->limit < 1)
		world_fault(world, "allowed, and no limit is told");
	if (law_has_windows(&world->plan.rule) &&
	    (!is_limit(world, answer->limit) ||
	     (answer->remaining > widest_limit(world) &&
	      !world->plan.lease.carry_over) ||
	     is_too_much(world, call->cost, /* by_largest= */ true)))
		world_fault(
		    world, "allowed %" PRIu64 ", limit %" PRIu64 ", remaining %" PRIu64,
		    call->cost, answer->limit, answer->remaining);
	if (answer->retry_after_us != 0)
		world_fault(world, "allowed, and to retry after %" PRIu64 " us",
		            answer->retry_after_us);
}

static bool is_expected_denial(enum gale_why why)
{
	switch (why) {
	case GALE_WHY_RULE:
	case GALE_WHY_SPENT:
	case GALE_WHY_BUSY:
	case GALE_WHY_LATE:
	case GALE_WHY_DOWN:
	case GALE_WHY_CROWDED:
	case GALE_WHY_TOO_MUCH:
	case GALE_WHY_QUARANTINE:
		return true;
	default:
		return false;
	}
}

/* May a node that is right find the store's answers wrong?  If its own clock is worse than
 * it knows, it may. */
static bool may_be_wrong(const struct world_plan *plan)
{
	uint32_t allowed_ppm = plan->lease.drift_ppm ? plan->lease.drift_ppm : 500;

	return plan->bad || plan->rate_ppm > clock_apart_ppm(allowed_ppm);
}

void answers_check_denial(struct world *world, const struct call *call)
{
	const struct gale_answer *answer = &call->answer;
	bool never = answer->retry_after_us == GALE_NEVER;
	bool too_much = is_too_much(world, call->cost, /* by_largest= */ !never);

	if (!is_expected_denial(answer->why) &&
	    !(answer->why == GALE_WHY_WRONG && may_be_wrong(&world->plan)))
		world_fault(world, "denied because %s", gale_why_text(answer->why));
	if (answer->limit < 1)
		world_fault(world, "denied, and no limit is told");
	if (world->plan.rule.kind != GALE_RULE_PACER &&
	    gale_http_status(answer) == 429 && never != too_much)
		world_fault(world,
		            "cost %" PRIu64 " denied, to retry after %" PRIu64 " us",
		            call->cost, answer->retry_after_us);
	if (!never && law_has_windows(&world->plan.rule) &&
	    answer->retry_after_us > world->plan.rule.period_us * 2 +
	                                 (world->plan.fails ? QUARANTINE_SKEW_US : 0))
		world_fault(world, "to retry after %" PRIu64 " us",
		            answer->retry_after_us);
}

static uint64_t patience_of(const struct world *world)
{
	uint64_t patience = world->plan.lease.patience_us;

	return patience ? patience : GALE_MILLIS(100);
}

void answers_check_patience(struct world *world, const struct call *call) /* SIM-4 */
{
	uint64_t patience = patience_of(world);
	uint64_t now = world->agenda.now_us;
	uint64_t took = now > call->seen_us ? now - call->seen_us : 0;

	if (world->nodes[call->node].paused_us >= call->asked_us)
		return;
	if (took > patience + patience / 1000 + 2)
		world_fault(world, "answered after %" PRIu64 " us, patience %" PRIu64,
		            took, patience);
}
