/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sim_flags.h -- what gale sim was asked to do, and the script that it makes.
 *
 * Threads   One.
 */
#ifndef TOOLS_SIM_FLAGS_H
#define TOOLS_SIM_FLAGS_H

#include "sim/shrink.h"
#include "tools/flag.h"

struct sim_flags {
	uint64_t rule; /* these three: places in lists of words */
	uint64_t mode;
	uint64_t sizing;
	uint64_t limit;
	uint64_t window_us;
	uint64_t burst;       /* 0: the limit */
	uint64_t max_wait_us; /* pacer */
	uint64_t batch;
	uint64_t order_cost;
	uint64_t strand_penalty;
	uint64_t carry_over;
	uint64_t patience_us;
	uint64_t allowance_ppm;
	uint64_t nodes;
	uint64_t shards;
	uint64_t keys;
	uint64_t demand; /* percent of the limit */
	uint64_t arrivals;
	struct cost costs[SCRIPT_COSTS_MOST];
	size_t cost_count;
	const char *costs_text;
	uint64_t run_us;
	uint64_t delay_us;
	uint64_t lost;
	uint64_t doubled;
	uint64_t offset_us;
	uint64_t drift_ppm;
	uint64_t crash_us; /* mean times between two; 0: none */
	uint64_t pause_us;
	uint64_t cut_us;
	uint64_t fail_us;
	uint64_t first_seed;
	uint64_t last_seed;
	const char *only; /* NULL: all */
	uint64_t verbose;
};

/* argv as after "gale sim".  On FLAGS_BAD only *ret_error is set. */
enum flags_result sim_flags_parse(int argc, char *const *argv,
                                  struct sim_flags *ret_flags,
                                  struct flags_error *ret_error);

void sim_flags_list(FILE *out);

struct script sim_script(const struct sim_flags *flags, uint64_t seed);

/* The command that does it again: one seed of it, and of the asks those that are chosen. */
void sim_flags_print(const struct sim_flags *flags, uint64_t seed,
                     const struct choice *choice, uint64_t asks, FILE *out);

/* What a plan that fails is made smaller by. */
extern const struct shrink_field sim_fields[];
extern const size_t sim_field_count;

#endif
