/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * script.h -- what a Redis server runs for us: step.lua, beat.lua, claim.lua, greet.lua.
 *
 * Threads   Constant: any.
 */
#ifndef STORES_REDIS_SCRIPT_H
#define STORES_REDIS_SCRIPT_H

#include <stddef.h>

struct redis_script {
	const char *text;
	size_t count;
	char sha1[41];
};

/* step.lua: all that is done to values. */
extern const struct redis_script redis_step_script;
/* beat.lua: all that is done to groups. */
extern const struct redis_script redis_beat_script;
/* claim.lua: all that is done to pools. */
extern const struct redis_script redis_claim_script;
/* greet.lua: what a connection begins with. */
extern const struct redis_script redis_greet_script;

#endif
