/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold.h -- limits on a cost that is known only when the call has ended.
 *
 *	struct gale_part parts[] = { { of_user, user, user_len, at_most },
 *	                             { of_model, model, model_len, at_most } };
 *	struct gale_all all = { .parts = parts, .count = 2 };
 *	struct gale_hold hold;
 *
 *	if (gale_hold_wait(seat, &all, &hold, within).verdict != GALE_ALLOW)
 *		return refuse();
 *	while (next_token(&used))
 *		if (used >= hold.parts[0].units &&
 *		    gale_hold_grow(seat, &hold, more, 0).verdict != GALE_ALLOW)
 *			break;                                  stop the stream
 *	gale_hold_commit(seat, &hold, costs);           the real cost of each part
 *
 * Before the call begins, a hold takes an upper bound of its cost from several limits, from all
 * of them or from none.  When the call has ended, the hold commits the real cost.  Units that
 * were held and not needed go back into their window.  If the call cost more, the difference is
 * debited to that window.  So calls that run together do not exceed a limit together:
 *
 *     units committed in a window  <=  limit + the excess of the holds that run when the limit
 *                                      is reached
 *
 * The excess of a hold is the difference between the real cost and the units that were held, if
 * the call cost more.  If each hold is an upper bound, no window exceeds its limit.
 *
 * Bound     A part that would hold more than its limiter's limit holds the limit, and hold.cut
 *           is true.  So a large bound does not make a small limit unusable.  A part holds at most
 *           1,048,575 units; a larger bound is cut to that, too.
 * Windows   A hold does not expire while the call runs, however long that is.  Its units stay
 *           used in their own window.  A commit after the end of that window changes no later
 *           window.  If the limiter gets a rule with another period meanwhile, held units stay
 *           used under that rule, and do not go back; a cost beyond is debited there.
 * Debts     Debited units are paid before other calls get units of the window.  They are paid
 *           from units in hand, from units that other holds give back, and from units that the
 *           store still lends to this node.
 * Threads   As for an entry of guard.h: any thread may settle a hold, with the seat of that
 *           thread.  Different threads must not use one hold at the same time.
 * Settling  A commit or a cancel settles a hold.  Every hold that was allowed needs one of them.
 *           Keep its limiters open until then.  A second one changes nothing, and is
 *           GALE_ERR_HOLD.  Do not copy a hold.
 * Limiters  As in all.h.  GCRA and token buckets have no windows: for "window", read the time in
 *           which they fill.  If a cost has no bound, see gale_token_budget (rule.h).  For a
 *           tenant's share of a budget see gale_tenant_hold (tenants.h).
 * Not yet   When a node dies, its holds are not settled: their units stay used until their
 *           windows end.  Debts are of one node: another node may spend units that it has leased
 *           before they are paid.  If a seat has no ask to spare (pending_max) when it commits
 *           above a hold, units in cells of other threads may be spent before that debt is paid.
 *           A part that on_outage has allowed holds nothing: it grows without a limit, and its
 *           cost is not debited.  A node has at most 1,048,575 units of a key in hand, and owes
 *           at most as many.  Units that go back beyond that stay used until their window ends,
 *           and debts beyond that are not debited.
 */
#ifndef GALE_HOLD_H
#define GALE_HOLD_H

#include <gale/all.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gale_held {
	uint64_t units;      /* held of this part */
	uint64_t of_gale[5]; /* the library's */
};

/* Filled by the library. */
struct gale_hold {
	size_t
	    count; /* parts, in the order in which they were asked for; 0: nothing is held */
	bool
	    cut; /* a part asked for more than can be held, and holds that: see Bound */
	size_t binding; /* the part that decided gale_hold_grow */
	uint64_t of_gale;
	struct gale_held parts[GALE_PARTS_MAX];
};

/* As gale_ask_all, but the units are held.  Until the answer has come, *ret_hold must stay where
 * it is, too.  If the call has an entry of a guard, your program exits it, also when the hold was
 * cancelled. */
GALE_API struct gale_answer gale_hold_all(struct gale_seat *seat, struct gale_all *all,
                                          struct gale_hold *ret_hold, void *tag);

/* The same, but waits for at most within_us. */
GALE_API struct gale_answer gale_hold_wait(struct gale_seat *seat, struct gale_all *all,
                                           struct gale_hold *ret_hold,
                                           uint64_t within_us);

/* Holds more units: more[i] of part i, for all parts or for none.  If the node's credit is too
 * small, the stores are asked, and the call waits for at most within_us.  With within_us 0, no
 * store is asked, and the answer is GALE_WHY_LATE.  After a denial the hold is as it was.  The
 * verdict is never GALE_PENDING. */
GALE_API struct gale_answer gale_hold_grow(struct gale_seat *seat,
                                           struct gale_hold *hold, const uint64_t *more,
                                           uint64_t within_us);

/* The call has ended, and costs[i] is the real cost of part i; 0 is a cost, too.  On two errors
 * nothing is settled: a cost exceeds the held units by more than 1,048,575 (GALE_ERR_COST), or
 * there is no memory for a debt (GALE_ERR_MEMORY).  If a limiter was closed, its held units go
 * back all the same, nothing is debited to it, and the error is GALE_ERR_LIMITER. */
GALE_API enum gale_err gale_hold_commit(struct gale_seat *seat, struct gale_hold *hold,
                                        const uint64_t *costs);

/* The call has cost nothing. */
GALE_API enum gale_err gale_hold_cancel(struct gale_seat *seat, struct gale_hold *hold);

#ifdef __cplusplus
}
#endif
#endif
