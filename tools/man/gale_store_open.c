/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_store_open.c -- open a store, which keeps the counts
 *
 * Errors   RUNTIME RET MEMORY SYSTEM URL STORE_NAME STORE_KEYS STORE FORKED FENCED HOST TLS
 *          NOT_BUILT QUARANTINE CLUSTER_DB SIZE
 *
 * Prints
 *	url: option prefx is not known; there are db, prefix, durable, sentinel_password
 *	steps: 0, keys: 0
 */
#include <stdio.h>

#include <gale/gale.h>

int main(void)
{
	struct gale_store_config config = { .url = "memory:counts", .max_keys = 1000 };
	struct gale_counts counts;
	struct gale_runtime *runtime;
	struct gale_store *store;
	char why[192];

	if (gale_url_check("redis://127.0.0.1?prefx=a", why, sizeof(why)))
		puts(why);
	if (gale_runtime_open(NULL, &runtime) ||
	    gale_store_open(runtime, &config, &store) ||
	    gale_store_stats(store, &counts))
		return 1;
	printf("steps: %d, keys: %d\n", (int)counts.steps, (int)counts.keys);
	gale_store_close(store);
	gale_runtime_close(runtime);
	return 0;
}
