/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * key_flags.h -- what gale peek, reset, forecast and watch are asked: of which key, by which rule.
 *
 * A store keeps what was spent, and not the limit: so the rule is given, as the nodes have it.
 *
 * Pure: reads no environment, prints nothing, keeps pointers into argv.
 */
#ifndef TOOLS_KEY_FLAGS_H
#define TOOLS_KEY_FLAGS_H

#include <gale/gale.h>

#include "tools/flag.h"

enum key_command {
	KEY_PEEK,
	KEY_RESET,
	KEY_FORECAST,
	KEY_WATCH,
};

struct key_flags {
	enum key_command command;
	const char *url;
	const char *limiter;
	const char *key;
	struct gale_rule rule;
	uint64_t within_us;
	uint64_t json;
	uint64_t cost;     /* forecast */
	uint64_t every_us; /* watch */
	uint64_t count;    /* watch; 0: without end */

	/* What the rule is made of. */
	uint64_t kind;
	uint64_t limit;
	uint64_t window_us;
	uint64_t burst;
	uint64_t buckets;
	uint64_t max_wait_us;
	uint64_t weekday;
	int32_t offset_minutes;
};

const char *key_command_name(enum key_command command);

/* argv as after the command.  The rule is one that fits together, and the URL is good. */
enum flags_result key_flags_parse(enum key_command command, int argc, char *const *argv,
                                  struct key_flags *ret_flags,
                                  struct flags_error *ret_error);

void key_flags_help(enum key_command command, FILE *out);

#endif
