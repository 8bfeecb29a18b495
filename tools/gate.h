/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gate.h -- where all threads wait until all are there, so that they begin at once.
 *
 * Threads   gate_pass .... each of those that wait
 *           the others ... the gate's owner
 */
#ifndef TOOLS_GATE_H
#define TOOLS_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint32_t waiting; /* under the lock, as the next two */
	bool open;
	bool given_up;
};

void gate_init(struct gate *gate);
void gate_destroy(struct gate *gate);

/* Waits until it is open; true if one may begin. */
bool gate_pass(struct gate *gate);

/* How many have come so far. */
uint32_t gate_waiting(struct gate *gate);

/* Returns when so many wait. */
void gate_await(struct gate *gate, uint32_t count);

/* Lets all through, or sends all home. */
void gate_open(struct gate *gate, bool give_up);

#endif
