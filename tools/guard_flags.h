/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_flags.h -- what gale fleet --guard was asked to do.
 *
 * Pure: reads no environment, prints nothing, keeps pointers into argv.
 */
#ifndef TOOLS_GUARD_FLAGS_H
#define TOOLS_GUARD_FLAGS_H

#include "tools/flag.h"

/* What happens to the backend amid the run. */
enum guard_script {
	GUARD_STEADY, /* nothing */
	GUARD_HALVES, /* it works on half as many calls for a while */
	GUARD_STOPS,  /* it ends no call for a while */
	GUARD_BENDS,  /* from some point on, calls slow each other down */
};

struct guard_flags {
	uint64_t is_guard;
	uint64_t processes;
	uint64_t nodes; /* of each process */
	uint64_t limit; /* calls in flight, of all nodes */
	uint64_t law;   /* enum gale_law */
	uint64_t script;
	uint64_t places; /* of the backend */
	uint64_t takes_us;
	uint64_t run_us;
	uint64_t json;
	const char *store; /* a URL; NULL: each node has a guard of its own */
};

/* --guard is among them: these are not the flags of a fleet that limits rates. */
bool guard_flags_wanted(int argc, char *const *argv);
/* argv as after "gale fleet".  On FLAGS_BAD only *ret_error is set. */
enum flags_result guard_flags_parse(int argc, char *const *argv,
                                    struct guard_flags *ret_flags,
                                    struct flags_error *ret_error);
void guard_flags_list(FILE *out);
/* As the flag is spelled. */
const char *guard_flags_law(const struct guard_flags *flags);
const char *guard_flags_script(const struct guard_flags *flags);

#endif
