/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_join.c -- make the seat with which a thread asks
 *
 * Errors   RUNTIME RET MEMORY SYSTEM FORKED FENCED
 *
 * Prints
 *	each thread has a seat
 */
#include <pthread.h>
#include <stdio.h>

#include <gale/gale.h>

static void *work(void *runtime)
{
	struct gale_seat *seat;

	if (gale_join(runtime, &seat))
		return NULL;
	/* Here the thread asks. */
	gale_leave(seat);
	return runtime;
}

int main(void)
{
	struct gale_runtime *runtime;
	pthread_t threads[2];
	void *of[2];

	if (gale_runtime_open(NULL, &runtime))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, runtime))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], &of[i]);
	puts(of[0] && of[1] ? "each thread has a seat" : "a thread has no seat");
	gale_runtime_close(runtime);
	return 0;
}
