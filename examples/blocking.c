/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* blocking.c -- three calls a second for each user.  C and C++ compile it as it is. */
#include <stdio.h>
#include <gale/gale.h>

int main(void)
{
	static struct gale_limiter_config config; /* static: what is not set is 0 */
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	config.name = "api";
	config.rule = gale_fixed_window(3, GALE_SECONDS(1));
	if (gale_runtime_open(NULL, &runtime) ||
	    gale_store_open(runtime, NULL, &config.store) ||
	    gale_limiter_open(runtime, &config, &limiter) || gale_join(runtime, &seat))
		return 1;
	for (int i = 0; i < 5; i++) {
		struct gale_answer answer =
		    gale_wait(seat, limiter, "alice", 5, 1, GALE_MILLIS(10));
		puts(answer.verdict == GALE_ALLOW ? "yes" : "no");
	}
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
}
