/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * busy.h -- how long a server of the bench's own is busy with what it is asked.
 *
 *     Redis        by its own count of the microseconds that EVALSHA took (INFO commandstats)
 *     PostgreSQL   the processor time of the sessions' processes: all of a call, and its commit
 *
 * Threads   One.
 */
#ifndef BENCH_BUSY_H
#define BENCH_BUSY_H

#include "stores/server.h"

struct server_kind *busy_redis_start(void);
/* How long EVALSHA took on average, when act was done so many times. */
double busy_redis_us(void (*act)(void *arg), void *arg, unsigned times);
void busy_redis_stop(void);

struct server_kind *busy_postgres_start(void);
/* How long the processes of all sessions but the bench's own have had a processor. */
uint64_t busy_postgres_ns(void);
void busy_postgres_stop(void);

/* Sorts the values. */
double busy_median(double *values, size_t count);

#endif
