/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kind.h -- a Redis, of whichever kind its URL names, as a server that shards have wires to.
 *
 * Threads   redis_kind: any.  What it makes: as server.h says.
 */
#ifndef STORES_REDIS_KIND_H
#define STORES_REDIS_KIND_H

#include "stores/server.h"
#include "stores/url.h"

/* Names are looked up here, which may take a while.  NULL: *ret_fault says why; GALE_ERR_MEMORY
 * has no text.  Else a text there is a warning. */
struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               struct url_fault *ret_fault);

#endif
