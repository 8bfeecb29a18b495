/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * info.h -- what a Redis server says of itself, and what that is worth.
 *
 * Threads   Pure: any.
 * Limits    A word of INFO that is longer than any that matters is cut.
 */
#ifndef STORES_REDIS_INFO_H
#define STORES_REDIS_INFO_H

#include <stdint.h>

#include "stores/wire.h"

/* Why it cannot be the one that is asked, where so many replicas are to confirm what is
 * granted, as a node of a cluster or by itself; NULL: it can. */
const char *redis_info_refusal(const char *info, uint64_t durable, bool is_cluster);

/* What it cannot promise; the text stays as it is if there is nothing to be said. */
void redis_info_warning(const char *info, uint64_t durable, char text[WIRE_TEXT]);

#endif
