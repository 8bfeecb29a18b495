/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_flags.h -- what gale fleet --tenants was asked to do.
 *
 * Pure: reads no environment, prints nothing; names are copied.
 */
#ifndef TOOLS_TENANT_FLAGS_H
#define TOOLS_TENANT_FLAGS_H

#include <gale/gale.h>

#include "tools/flag.h"

#define TENANT_FLAGS_MOST 16
#define TENANT_REGIONS_MOST 8
#define TENANT_WINDOWS_MOST 4096 /* of a run */

struct tenant_flag {
	char name[GALE_NAME_MAX + 1];
	uint64_t weight;
	uint64_t demand_percent; /* of the limit; 0: as fast as there are answers */
};

struct tenant_flags {
	const char *tenants; /* as it was given */
	uint64_t processes;
	uint64_t nodes; /* of each process */
	uint64_t regions;
	uint64_t link_ms; /* a round trip of the link of each region but the first */
	uint64_t limit;
	uint64_t window_us;
	uint64_t run_us;
	const char *store;
	uint64_t json;
	struct tenant_flag each[TENANT_FLAGS_MOST];
	uint64_t count;
};

bool tenant_flags_wanted(int argc, char *const *argv);
/* argv as after "gale fleet".  On FLAGS_BAD only *ret_error is set. */
enum flags_result tenant_flags_parse(int argc, char *const *argv,
                                     struct tenant_flags *ret_flags,
                                     struct flags_error *ret_error);
void tenant_flags_list(FILE *out);
/* From tenants into each and count, of which there is none yet. */
bool tenant_flags_read_list(struct tenant_flags *flags);

#endif
