/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_peek.c -- look at a key at the store, give it its limit again, cancel a booking
 *
 * Errors   SEAT LIMITER KEY COST RET RUNTIME STORE MEMORY FORKED FENCED STORE_FULL STORE_CHANGED
 *          LATE BUSY NOT_BOOKED BROKEN
 *
 * Prints
 *	remaining: 8
 *	calls of cost 3 that would pass: 2
 *	after a reset remaining: 10
 *	a place is given back: no error
 *	once more: booking: its time is past, or it was given back or never made; nothing is given back
 */
#include <stdio.h>

#include <gale/gale.h>

static const uint64_t within = GALE_SECONDS(5);
static struct gale_limiter *api, *paced;
static struct gale_seat *seat;

static int look(void)
{
	struct gale_answer answer;
	struct gale_outlook outlook;

	(void)gale_wait(seat, api, "bob", 3, 2, within);
	if (gale_peek(seat, api, "bob", 3, within, &answer) ||
	    gale_forecast(seat, api, "bob", 3, 3, within, &outlook))
		return 1;
	printf("remaining: %d\n", (int)answer.remaining);
	printf("calls of cost 3 that would pass: %d\n", (int)outlook.spendable_now);
	if (gale_reset(seat, api, "bob", 3, within) ||
	    gale_peek(seat, api, "bob", 3, within, &answer))
		return 1;
	printf("after a reset remaining: %d\n", (int)answer.remaining);
	return 0;
}

static int cancel(void)
{
	struct gale_answer place;

	(void)gale_wait(seat, paced, "bob", 3, 1, within);
	place = gale_wait(seat, paced, "bob", 3, 1, within); /* in an hour */
	printf("a place is given back: %s\n",
	       gale_err_text(gale_cancel(seat, paced, "bob", 3, 1, within, &place)));
	printf("once more: %s\n",
	       gale_err_text(gale_cancel(seat, paced, "bob", 3, 1, within, &place)));
	return 0;
}

int main(void)
{
	struct gale_limiter_config config = { .name = "api" };
	struct gale_runtime *runtime;
	int failed;

	config.rule = gale_fixed_window(10, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &config.store) ||
	    gale_limiter_open(runtime, &config, &api))
		return 1;
	config.name = "paced";
	config.rule = gale_pacer(1, GALE_HOURS(1), 0);
	if (gale_limiter_open(runtime, &config, &paced))
		return 1;
	failed = look() || cancel();
	gale_leave(seat);
	gale_limiter_close(api);
	gale_limiter_close(paced);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return failed;
}
