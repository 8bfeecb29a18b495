/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_ask_all.c -- ask several limits about one call
 *
 * Prints
 *	call 1: allowed
 *	call 2: allowed
 *	call 3: refused by the limit per day
 */
#include <stdio.h>

#include <gale/all.h>

static struct gale_seat *seat;

static void call(int number, struct gale_limiter *minute, struct gale_limiter *day)
{
	static const char *const names[] = { "minute", "day" };
	struct gale_part parts[] = { { minute, "bob", 3, 1 }, { day, "bob", 3, 1 } };
	struct gale_all all = { .parts = parts, .count = 2 };

	if (gale_wait_all(seat, &all, GALE_SECONDS(5)).verdict == GALE_ALLOW)
		printf("call %d: allowed\n", number);
	else
		printf("call %d: refused by the limit per %s\n", number,
		       names[all.binding]);
}

int main(void)
{
	struct gale_limiter_config config = { .mode = GALE_LEASED };
	struct gale_limiter *minute, *day;
	struct gale_runtime *runtime;

	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &config.store))
		return 1;
	config.lease.patience_us = GALE_SECONDS(5);
	config.name = "minute";
	config.rule = gale_fixed_window(10, GALE_MINUTES(1));
	if (gale_limiter_open(runtime, &config, &minute))
		return 1;
	config.name = "day";
	config.rule = gale_fixed_window(2, GALE_DAYS(1));
	if (gale_limiter_open(runtime, &config, &day))
		return 1;
	for (int number = 1; number <= 3; number++)
		call(number, minute, day);
	gale_leave(seat);
	gale_limiter_close(minute);
	gale_limiter_close(day);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return 0;
}
