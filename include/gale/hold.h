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
 *	while (next_token(&used))                       each part: as much more
 *		if (used == held && gale_hold_grow(seat, &hold, more, 0).verdict != GALE_ALLOW)
 *			break;                                     stop the stream
 *	gale_hold_commit(seat, &hold, costs);           each part: what it has cost
 *
 * A hold takes an upper bound of the cost from several limits, all of them or none, before the
 * call begins.  When the call has ended, its real cost is committed: what was held and not
 * needed goes back into the window that it is from, and what the call cost beyond that is
 * debited to that window.  So calls that run together do not pass a limit together:
 *
 *     all that is committed in a window  <=  limit + what the holds that run when the limit is
 *                                            reached cost beyond what they held
 *
 * If each hold is an upper bound, that is the limit.
 *
 * Bound     A part that is held for more than its limiter's limit is cut to the limit, and
 *           hold.cut says so: a large bound does not make a small limit unusable.
 * Windows   A hold does not expire while the call runs, however long that is.  Its units
 *           stay used in the window that they are from.  A commit after that window has ended
 *           changes no later window.
 * Debts     What is debited is paid before anybody else gets units of the window: by units in
 *           hand, by what other holds give back, and by what the store still lends to this node.
 * Threads   As for an entry of guard.h: any thread may settle a hold, with the seat of that
 *           thread.  Different threads must not use one hold at the same time.
 * Settling  Every hold that was allowed needs one gale_hold_commit or gale_hold_cancel.  Keep
 *           its limiters open until then.  A second one changes nothing, and is
 *           GALE_ERR_HOLD.  Do not copy a hold.
 * Limiters  As in all.h.  GCRA and token buckets have no windows: read "window" as the time that
 *           they take to fill.  For a cost that has no bound, see gale_token_budget (rule.h).
 * Not yet   A node that dies takes its holds with it: their units stay used until their windows
 *           end, and are not given back by the store after the node's lease.  Debts are of
 *           one node: another node may spend what it has leased itself before they are paid.
 *           If a seat has no ask to spare (pending_max) when it commits above a hold, units in
 *           cells of other threads may be spent before that debt is paid.
 *           A part that on_outage has allowed holds nothing: it grows without a limit, and its
 *           cost is not debited.  A node has at most 1,048,575 units of a key in hand, and owes
 *           at most as many: what goes back beyond that stays used until its window ends, and
 *           what is owed beyond that is not debited.
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
	bool cut;       /* a part asked for more than its limit, and holds the limit */
	size_t binding; /* the part that decided gale_hold_grow */
	uint64_t of_gale;
	struct gale_held parts[GALE_PARTS_MAX];
};

/* As gale_ask_all, but the units are held.  Until the answer has come, *ret_hold must stay where
 * it is, too.  A guard's entry is the program's to exit, whatever becomes of the hold. */
GALE_API struct gale_answer gale_hold_all(struct gale_seat *seat, struct gale_all *all,
                                          struct gale_hold *ret_hold, void *tag);

/* The same, but waits for at most within_us. */
GALE_API struct gale_answer gale_hold_wait(struct gale_seat *seat, struct gale_all *all,
                                           struct gale_hold *ret_hold,
                                           uint64_t within_us);

/* Holds so many units more of each part (0: none), all of them or none.  Credit of this node
 * is enough most of the time.  If it is short, the stores are asked, and the call waits for at
 * most within_us; 0: no store is asked, and the answer is GALE_WHY_LATE.  When that is denied, the
 * hold stays as it was.  The verdict is never GALE_PENDING. */
GALE_API struct gale_answer gale_hold_grow(struct gale_seat *seat,
                                           struct gale_hold *hold, const uint64_t *more,
                                           uint64_t within_us);

/* The call has ended, and has cost so much of each part; 0 is a cost, too.  On two errors nothing
 * is settled: a cost exceeds what was held by more than 1,048,575 units (GALE_ERR_COST), or there
 * is no memory to remember what is owed (GALE_ERR_MEMORY).  If a limiter was closed, what was held
 * of it goes back all the same, nothing is debited to it, and the error is GALE_ERR_LIMITER. */
GALE_API enum gale_err gale_hold_commit(struct gale_seat *seat, struct gale_hold *hold,
                                        const uint64_t *costs);

/* The call has cost nothing. */
GALE_API enum gale_err gale_hold_cancel(struct gale_seat *seat, struct gale_hold *hold);

#ifdef __cplusplus
}
#endif
#endif
