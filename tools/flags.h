/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flags.h -- what gale fleet was asked to do.
 *
 * Pure: reads no environment, prints nothing, keeps pointers into argv.
 */
#ifndef TOOLS_FLAGS_H
#define TOOLS_FLAGS_H

#include <gale/gale.h>

#include "tools/flag.h"

#define FLAGS_WORKERS_MAX 1024      /* --processes times --nodes times --threads */
#define FLAGS_COUNTERS_MAX 4000000  /* --processes times --keys; 512 MB */
#define FLAGS_DEMAND_CALLS_MAX 1e12 /* in a window */
#define FLAGS_DEMAND_WINDOWS_MIN 8  /* of a run with --demand */

struct fleet_flags {
	uint64_t processes;
	uint64_t nodes;   /* of each process */
	uint64_t threads; /* of each node */
	uint64_t keys;
	uint64_t limit;
	uint64_t window_us;
	uint64_t run_us;
	enum gale_mode mode;
	const char *mode_name;
	const char *store;       /* a URL that all nodes share */
	bool server;             /* it is one of another process */
	uint64_t demand_percent; /* of the limits; 0: as fast as there are answers */
	uint64_t moving;         /* 1: the demand moves between the nodes */
	bool json;
	int argc; /* as they were given */
	char *const *argv;
};

/* argv as after "gale fleet".  On FLAGS_BAD only *ret_error is set. */
enum flags_result flags_parse(int argc, char *const *argv,
                              struct fleet_flags *ret_flags,
                              struct flags_error *ret_error);

/* One store for all nodes of a process, or a server. */
bool flags_is_shared_store(const char *text);

/* The list of flags, with what each takes and what it is when not given. */
void flags_list(FILE *out);

#endif
