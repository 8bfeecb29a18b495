/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pocket.c -- what happens to a pocket seldom.
 *
 * Threads   The seat's.
 */
#include "shards/pocket.h"

void pocket_empty(struct pocket *pocket, uint64_t known)
{
	*pocket = (struct pocket){ .known = known };
}
