/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * info.c -- lines of INFO, name:value.
 *
 * Threads   Pure: any.
 */
#include "stores/redis/info.h"

#include <stdio.h>
#include <string.h>

#include "stores/url.h"

/* The value of a line of INFO, cut at its end; "" if there is none. */
static const char *line_of(const char *info, const char *name, char *out, size_t most)
{
	size_t length = strlen(name);
	const char *at = info;

	out[0] = '\0';
	while (at && (strncmp(at, name, length) != 0 || at[length] != ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return out;
	at += length + 1;
	length = strcspn(at, "\r\n");
	if (length >= most)
		length = most - 1;
	memcpy(out, at, length);
	out[length] = '\0';
	return out;
}

static bool has_replicas(const char *info, uint64_t least)
{
	char text[24];
	uint64_t count;

	line_of(info, "connected_slaves", text, sizeof(text));
	return least == 0 || (url_number(text, INT32_MAX, &count) && count >= least);
}

const char *redis_info_refusal(const char *info, uint64_t durable, bool is_cluster)
{
	char role[16], loading[8], mode[16];

	if (strcmp(line_of(info, "role", role, sizeof(role)), "master") != 0)
		return "it is a replica"; /* REDIS-3 */
	if (strcmp(line_of(info, "loading", loading, sizeof(loading)), "1") == 0)
		return "it is loading";
	if (!is_cluster &&
	    strcmp(line_of(info, "redis_mode", mode, sizeof(mode)), "cluster") == 0)
		return "it is a node of a cluster, which redis+cluster:// asks";
	if (!has_replicas(info, durable))
		return "it has fewer replicas than durable= says"; /* REDIS-6 */
	return NULL;
}

void redis_info_warning(const char *info, uint64_t durable, char text[WIRE_TEXT])
{
	char policy[32], memory[32], aof[8];

	line_of(info, "maxmemory_policy", policy, sizeof(policy));
	line_of(info, "maxmemory", memory, sizeof(memory));
	line_of(info, "aof_enabled", aof, sizeof(aof));
	if (strcmp(memory, "0") != 0 && strcmp(policy, "noeviction") != 0)
		snprintf(text, WIRE_TEXT,
		         "maxmemory-policy is %s: keys may be evicted, and what "
		         "was admitted under them forgotten",
		         policy);
	else if (strcmp(aof, "1") != 0)
		snprintf(text, WIRE_TEXT,
		         "no append-only file: after a restart nothing is "
		         "granted until the window turns, or for a minute");
	else if (durable == 0 && has_replicas(info, 1))
		snprintf(text, WIRE_TEXT,
		         "replicas may be behind: after a fail-over nothing is "
		         "granted until the window turns, or for a minute; durable= "
		         "waits for them");
}
