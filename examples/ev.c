/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ev.c [turns] -- 3 of 5 calls, in a loop of libev; turns: gale has no thread. */
#include <stdio.h>

#include <gale/ev.h>

static int to_come = 5; /* answers */

static void on_answer(struct gale_ev *self, void *tag, const struct gale_answer *it)
{
	printf("%s: %s\n", (char *)tag, it->verdict == GALE_ALLOW ? "yes" : "no");
	if (--to_come == 0) /* a server goes on */
		ev_break(self->loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	static char *calls[] = { "call 1", "call 2", "call 3", "call 4", "call 5" };
	struct gale_config config = { .turns = argc > 1 && *argv[1] == 't' };
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct gale_ev ev;
	struct ev_loop *loop = ev_default_loop(0);

	api.rule = gale_fixed_window(3, GALE_DAYS(1));
	if (gale_runtime_open(&config, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) || !loop)
		return 1;
	gale_ev_open(&ev, loop, runtime, seat, on_answer);
	for (int i = 0; i < 5; i++) {
		struct gale_answer it = gale_ask(seat, limiter, "bob", 3, 1, calls[i]);

		if (it.verdict != GALE_PENDING)
			on_answer(&ev, calls[i], &it);
	}
	if (to_come > 0)
		ev_run(loop, 0);
	gale_ev_close(&ev);
	ev_loop_destroy(loop);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return to_come;
}
