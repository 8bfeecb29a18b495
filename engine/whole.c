/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.c -- the answers of parts become the answer of the whole.
 *
 * Threads   Pure: any.
 */
#include "engine/whole.h"

struct gale_answer whole_of(const struct gale_answer *parts, size_t count,
                            size_t *ret_binding)
{
	struct whole whole = whole_begin();

	for (size_t i = 0; i < count; i++)
		whole_add(&whole, i, &parts[i]);
	*ret_binding = whole.binding;
	return whole_answer(&whole);
}
