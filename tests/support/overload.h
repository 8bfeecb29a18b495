/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * overload.h -- nodes that are asked for one key at a steady rate, whatever is answered.
 *
 * The askers do not wait for each other: an ask comes when it is due, though those before it are
 * not answered.  So a server that is too slow for the rate gets a queue.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_OVERLOAD_H
#define TESTS_SUPPORT_OVERLOAD_H

#include <stdint.h>

#include <gale/gale.h>

#define OVERLOAD_NODES_MOST 4

struct overload {
	const char *url;
	const char *limiter; /* its name */
	const char *key;
	struct gale_rule rule;
	uint32_t nodes;
	uint64_t rate; /* asks a second, of all nodes */
	uint64_t lasts_us;
};

/* What became of the asks. */
struct overload_tally {
	uint64_t asked;
	uint64_t allowed;
	uint64_t denied; /* by the rule */
	uint64_t late;
	uint64_t busy;
	uint64_t down;
	uint64_t odd;
	uint64_t longest_us; /* until one was allowed */
	uint64_t lasted_us;
};

struct overload_tally overload_run(const struct overload *overload);

#endif
