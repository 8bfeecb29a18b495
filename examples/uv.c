/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* uv.c [turns] -- 3 of 5 calls, in a loop of libuv; turns: gale has no thread. */
#include <stdio.h>

#include <gale/uv.h>

static int to_come = 5; /* answers */

static void on_answer(struct gale_uv *self, void *tag, const struct gale_answer *it)
{
	printf("%s: %s\n", (char *)tag, it->verdict == GALE_ALLOW ? "yes" : "no");
	if (--to_come == 0) /* a server goes on */
		uv_stop(self->later.loop);
}

int main(int argc, char **argv)
{
	static char *calls[] = { "call 1", "call 2", "call 3", "call 4", "call 5" };
	struct gale_config config = { .turns = argc > 1 && *argv[1] == 't' };
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct gale_uv uv;
	uv_loop_t *loop = uv_default_loop();

	api.rule = gale_fixed_window(3, GALE_DAYS(1));
	if (gale_runtime_open(&config, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) ||
	    gale_uv_open(&uv, loop, runtime, seat, on_answer))
		return 1;
	for (int i = 0; i < 5; i++) {
		struct gale_answer it = gale_ask(seat, limiter, "bob", 3, 1, calls[i]);

		if (it.verdict != GALE_PENDING)
			on_answer(&uv, calls[i], &it);
	}
	if (to_come > 0)
		uv_run(loop, UV_RUN_DEFAULT);
	gale_uv_close(&uv, NULL);
	uv_run(loop, UV_RUN_DEFAULT); /* closes */
	uv_loop_close(loop);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return to_come;
}
