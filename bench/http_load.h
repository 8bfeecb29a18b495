/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_load.h -- requests to an HTTP server on this machine, over connections that stay.
 *
 * On each connection so many requests are sent at once, each with an X-Api-Key; when all
 * of them are answered, the next.  Nothing of what that costs here is measured.
 *
 * Threads   One.
 */
#ifndef BENCH_HTTP_LOAD_H
#define BENCH_HTTP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_DEEP_MOST 64

struct load;

struct load_plan {
	unsigned deep;  /* requests at once on a connection */
	uint64_t keys;  /* that they have, each as likely as the others */
	bool in_order;  /* or one after the other */
	uint64_t count; /* of requests; a multiple of connections and depth is sent */
};

/* How they were answered. */
struct load_answers {
	uint64_t sent;
	uint64_t allowed; /* 200 */
	uint64_t denied;  /* any other status */
};

struct load *load_open(uint16_t port, unsigned connections);
void load_close(struct load *load);

struct load_answers load_run(struct load *load, const struct load_plan *plan);

#endif
