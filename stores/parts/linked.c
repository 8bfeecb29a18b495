/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* linked.c -- in libgale.a, the command and the tests, parts are those that were built. */
#include <stddef.h>

#include <gale/gale.h>

#include "stores/part.h"

static const struct store_part *built(enum store_part_name name)
{
#ifdef GALE_REDIS
	if (name == PART_REDIS)
		return &redis_part;
#endif
#ifdef GALE_POSTGRES
	if (name == PART_POSTGRES)
		return &postgres_part;
#endif
	(void)name;
	return NULL;
}

const struct store_part *part_find(enum store_part_name name,
                                   struct url_fault *ret_fault)
{
	const struct store_part *part = built(name);

	if (!part)
		url_say(ret_fault, GALE_ERR_NOT_BUILT, "%s",
		        gale_err_text(GALE_ERR_NOT_BUILT));
	return part;
}
