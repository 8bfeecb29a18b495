/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale.c -- a rate limiter: may one more call go through?
 *
 * Prints
 *	call 1: may pass
 *	call 2: may pass
 *	call 3: denied
 */
#include <stdio.h>

#include <gale/gale.h>

int main(void)
{
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	api.rule = gale_fixed_window(2, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) || gale_join(runtime, &seat))
		return 1;
	for (int call = 1; call <= 3; call++) {
		struct gale_answer answer =
		    gale_wait(seat, limiter, "alice", 5, 1, GALE_SECONDS(5));

		printf("call %d: %s\n", call,
		       answer.verdict == GALE_ALLOW ? "may pass" : "denied");
	}
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return 0;
}
