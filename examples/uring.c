/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* uring.c [turns] -- 3 of 5 calls, in a loop of io_uring; turns: gale has no thread. */
#include <stdio.h>

#include <gale/uring.h>

static int to_come = 5; /* answers */
static bool is_closed;

static void on_answer(struct gale_uring *self, void *tag, const struct gale_answer *it)
{
	(void)self;
	printf("%s: %s\n", (char *)tag, it->verdict == GALE_ALLOW ? "yes" : "no");
	to_come--; /* a server goes on when it is 0 */
}

static void on_closed(struct gale_uring *self)
{
	(void)self;
	is_closed = true;
}

/* One turn of the loop; false: io_uring has failed. */
static bool turn(struct io_uring *ring, struct gale_uring *uring)
{
	struct io_uring_cqe *cqe;

	if (gale_uring_prepare(uring) < 0 || io_uring_submit_and_wait(ring, 1) < 0)
		return false;
	while (io_uring_peek_cqe(ring, &cqe) == 0) {
		if (!gale_uring_take(uring, cqe))
			printf("this completion is one of your own requests\n");
		io_uring_cqe_seen(ring, cqe);
	}
	return true;
}

int main(int argc, char **argv)
{
	static char *calls[] = { "call 1", "call 2", "call 3", "call 4", "call 5" };
	struct gale_config config = { .turns = argc > 1 && *argv[1] == 't' };
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct gale_uring uring;
	struct io_uring ring;
	int err = io_uring_queue_init(64, &ring, 0);

	if (err) {
		fprintf(stderr, "this machine refuses io_uring: error %d\n", -err);
		return 1;
	}
	api.rule = gale_fixed_window(3, GALE_DAYS(1));
	if (gale_runtime_open(&config, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter))
		return 1;
	gale_uring_open(&uring, &ring, runtime, seat, on_answer);
	for (int i = 0; i < 5; i++) {
		struct gale_answer it = gale_ask(seat, limiter, "bob", 3, 1, calls[i]);

		if (it.verdict != GALE_PENDING)
			on_answer(&uring, calls[i], &it);
	}
	while (to_come > 0 && turn(&ring, &uring))
		;
	gale_uring_close(&uring, on_closed);
	while (!is_closed && turn(&ring, &uring))
		;
	io_uring_queue_exit(&ring);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return to_come;
}
