/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_hold_all.c -- hold units for a call whose cost is known only when it has ended
 *
 * Errors   SEAT LIMITER COST MEMORY RUNTIME FORKED FENCED HOLD
 *
 * Prints
 *	held 70 of 100: allowed
 *	grown by 40: denied
 *	when 20 are committed, another one may hold 80: allowed
 */
#include <stdio.h>

#include <gale/hold.h>

static const uint64_t within = GALE_SECONDS(5);

static const char *said(struct gale_answer answer)
{
	return answer.verdict == GALE_ALLOW ? "allowed" : "denied";
}

static int stream(struct gale_seat *seat, struct gale_limiter *limiter)
{
	struct gale_part part = { limiter, "bob", 3, 70 };
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold hold, other;
	uint64_t more = 40, cost = 20;

	printf("held 70 of 100: %s\n", said(gale_hold_wait(seat, &all, &hold, within)));
	printf("grown by 40: %s\n", said(gale_hold_grow(seat, &hold, &more, within)));
	if (gale_hold_commit(seat, &hold, &cost))
		return 1;
	part.cost = 80;
	printf("when 20 are committed, another one may hold 80: %s\n",
	       said(gale_hold_wait(seat, &all, &other, within)));
	return gale_hold_cancel(seat, &other) != GALE_ERR_OK;
}

int main(void)
{
	struct gale_limiter_config tokens = { .name = "tokens", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	int failed;

	tokens.lease.patience_us = GALE_SECONDS(5);
	tokens.rule = gale_fixed_window(100, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &tokens.store) ||
	    gale_limiter_open(runtime, &tokens, &limiter))
		return 1;
	failed = stream(seat, limiter);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(tokens.store);
	gale_runtime_close(runtime);
	return failed;
}
