/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* standstill.c -- a nap that took too long. */
#include "tests/support/standstill.h"

#include <pthread.h>
#include <stddef.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define NAP_US 5000
#define TOO_LONG_NS UINT64_C(500000000)

static _Atomic bool seen;

static void *watch(void *arg)
{
	for (;;) {
		uint64_t before = patience_now_ns();

		nap(NAP_US);
		if (patience_now_ns() - before > TOO_LONG_NS)
			store_relaxed(&seen, true);
	}
	return arg;
}

void standstill_watch(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, watch, NULL) == 0);
	must(pthread_detach(thread) == 0);
}

bool standstill_seen(void)
{
	return load_relaxed(&seen);
}
