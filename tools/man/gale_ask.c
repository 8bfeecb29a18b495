/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_ask.c -- ask whether a call may go through
 *
 * Errors   SEAT LIMITER KEY RET MEMORY RUNTIME FORKED FENCED
 *
 * Prints
 *	of one key may pass: 3
 *	of a held key may pass: 3
 *	of many keys may pass: 2
 */
#include <poll.h>
#include <stdio.h>

#include <gale/gale.h>

static struct gale_seat *seat;
static int passed, pending;

static void count(const struct gale_answer *answer)
{
	passed += answer->verdict == GALE_ALLOW;
	pending += answer->verdict == GALE_PENDING;
}

/* What an event loop does when the descriptor of the seat is readable. */
static void take_answers(void)
{
	struct pollfd readable = { .fd = gale_seat_fd(seat), .events = POLLIN };
	struct gale_completion done[16];

	while (pending > 0 && poll(&readable, 1, -1) >= 0) {
		size_t taken = gale_seat_completions(seat, done, 16);

		pending -= (int)taken;
		for (size_t i = 0; i < taken; i++)
			count(&done[i].answer);
	}
}

static void tell(const char *of)
{
	take_answers();
	printf("of %s may pass: %d\n", of, passed);
	passed = 0;
}

static void ask(struct gale_limiter *limiter, struct gale_key *held)
{
	struct gale_question questions[] = { { "dan", 3, 1, NULL },
		                             { "eve", 3, 1, NULL } };
	struct gale_answer answers[2];

	gale_tick(seat); /* in each turn of the loop */
	for (int call = 0; call < 5; call++) {
		struct gale_answer answer = gale_ask(seat, limiter, "bob", 3, 1, NULL);

		count(&answer);
	}
	tell("one key");
	for (int call = 0; call < 5; call++) {
		struct gale_answer answer = gale_ask_key(held, 1, NULL);

		count(&answer);
	}
	tell("a held key");
	gale_ask_many(seat, limiter, questions, 2, answers);
	count(&answers[0]);
	count(&answers[1]);
	tell("many keys");
}

int main(void)
{
	struct gale_limiter_config api = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_key *held;

	api.lease.patience_us = GALE_SECONDS(5);
	api.rule = gale_fixed_window(3, GALE_DAYS(1));
	if (gale_runtime_open(NULL, &runtime) || gale_join(runtime, &seat) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) ||
	    gale_key_open(seat, limiter, "carol", 5, &held))
		return 1;
	ask(limiter, held);
	gale_key_close(held);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	return 0;
}
