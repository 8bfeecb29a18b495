/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* event.c [turns] -- 3 of 5 calls, in a loop of libevent; turns: gale has no thread. */
#include <stdio.h>

#include <gale/event.h>

static int to_come = 5; /* answers */

static void on_answer(struct gale_event *self, void *tag, const struct gale_answer *it)
{
	printf("%s: %s\n", (char *)tag, it->verdict == GALE_ALLOW ? "yes" : "no");
	if (--to_come == 0) /* a server goes on */
		event_base_loopbreak(event_get_base(&self->answers));
}

int main(int argc, char **argv)
{
	static char *calls[] = { "call 1", "call 2", "call 3", "call 4", "call 5" };
	struct gale_config config = { .turns = argc > 1 && *argv[1] == 't' };
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct gale_event event;
	struct event_base *base = event_base_new();

	api.rule = gale_fixed_window(3, GALE_DAYS(1));
	if (gale_runtime_open(&config, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) || !base ||
	    gale_event_open(&event, base, runtime, seat, on_answer))
		return 1;
	for (int i = 0; i < 5; i++) {
		struct gale_answer it = gale_ask(seat, limiter, "bob", 3, 1, calls[i]);

		if (it.verdict != GALE_PENDING)
			on_answer(&event, calls[i], &it);
	}
	if (to_come > 0)
		event_base_dispatch(base);
	gale_event_close(&event);
	event_base_free(base);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return to_come;
}
