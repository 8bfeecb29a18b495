/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* loaded.c -- in libgale.so, parts are libraries that are loaded when a URL needs them. */
#include "engine/check.h"
#include "stores/library.h"
#include "stores/part.h"

static const struct library libraries[] = {
	[PART_REDIS] = { .file = "libgale-redis.so.0",
	                 .table = "gale_part",
	                 .interface = PART_INTERFACE,
	                 .scheme = "redis://",
	                 .needs = "hiredis",
	                 .err = GALE_ERR_NOT_BUILT },
	[PART_POSTGRES] = { .file = "libgale-postgres.so.0",
	                    .table = "gale_part",
	                    .interface = PART_INTERFACE,
	                    .scheme = "postgres://",
	                    .needs = "libpq",
	                    .err = GALE_ERR_NOT_BUILT },
};

const struct store_part *part_find(enum store_part_name name,
                                   struct url_fault *ret_fault)
{
	const struct store_part_table *table =
	    library_load(&libraries[name], ret_fault);

	if (!table)
		return NULL;
	table->enter(gale_panic);
	return table->part;
}
