/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* gate.c -- a lock and a condition. */
#define _GNU_SOURCE
#include "tools/gate.h"

void gate_init(struct gate *gate)
{
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->moved, NULL);
	gate->waiting = 0;
	gate->open = gate->given_up = false;
}

void gate_destroy(struct gate *gate)
{
	pthread_cond_destroy(&gate->moved);
	pthread_mutex_destroy(&gate->lock);
}

uint32_t gate_waiting(struct gate *gate)
{
	uint32_t waiting;

	pthread_mutex_lock(&gate->lock);
	waiting = gate->waiting;
	pthread_mutex_unlock(&gate->lock);
	return waiting;
}

void gate_await(struct gate *gate, uint32_t count)
{
	pthread_mutex_lock(&gate->lock);
	while (gate->waiting < count)
		pthread_cond_wait(&gate->moved, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

void gate_open(struct gate *gate, bool give_up)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	gate->given_up = give_up;
	pthread_cond_broadcast(&gate->moved);
	pthread_mutex_unlock(&gate->lock);
}

bool gate_pass(struct gate *gate)
{
	bool go;

	pthread_mutex_lock(&gate->lock);
	gate->waiting++;
	pthread_cond_broadcast(&gate->moved);
	while (!gate->open)
		pthread_cond_wait(&gate->moved, &gate->lock);
	go = !gate->given_up;
	pthread_mutex_unlock(&gate->lock);
	return go;
}
