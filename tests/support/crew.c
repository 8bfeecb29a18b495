/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* crew.c -- a barrier, and threads behind it. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/crew.h"

#include <pthread.h>

#include "tests/support/must.h"

struct crew {
	pthread_barrier_t start;
	void (*work)(void *arg, unsigned who);
	void *arg;
};

struct member {
	struct crew *crew;
	unsigned who;
	pthread_t thread;
};

static void *member_main(void *arg)
{
	struct member *member = arg;

	pthread_barrier_wait(&member->crew->start);
	member->crew->work(member->crew->arg, member->who);
	return NULL;
}

void crew_run(unsigned count, void (*work)(void *arg, unsigned who), void *arg)
{
	struct crew crew = { .work = work, .arg = arg };
	struct member members[CREW_MOST];

	must(count >= 1 && count <= CREW_MOST);
	must(pthread_barrier_init(&crew.start, NULL, count) == 0);
	for (unsigned i = 0; i < count; i++) {
		members[i] = (struct member){ .crew = &crew, .who = i };
		must(pthread_create(&members[i].thread, NULL, member_main,
		                    &members[i]) == 0);
	}
	for (unsigned i = 0; i < count; i++)
		must(pthread_join(members[i].thread, NULL) == 0);
	pthread_barrier_destroy(&crew.start);
}
