/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * link.h -- a connection to a PostgreSQL server.
 *
 *     connect -> which generation? -> ready: one statement and one sync for a batch
 *                    |       ^
 *                    '-------'  the schema is installed first, where it is missing
 *
 * Invariants
 *
 *   POSTGRES-1  Results come in the order of the statements: each batch has its own
 *               sync, so an error ends that batch and no other.
 *   POSTGRES-2  A statement that failed has changed nothing, unless the connection was
 *               lost: then that is not known, and it is not sent again.  One that was done
 *               is committed when its sync has come, and not believed before; if that
 *               fails, it is undone for sure only where it could not be put in order
 *               with others. (L13)
 *
 *   POSTGRES-3  What a server may say is bounded: by what it was asked, and by little
 *               if it was not. (L13)
 *
 * Threads   Its shard's actor.  A kind: any, while it is open.
 * Limits    POSTGRES-3 holds over TCP.  At a socket of this machine a server may say what
 *           it wants, for as long as a batch may take.
 */
#ifndef STORES_POSTGRES_LINK_H
#define STORES_POSTGRES_LINK_H

#include "stores/server.h"
#include "stores/url.h"

/* postgres://[user[:password]@]host[:port][/db][?...], as libpq has it; the options are
 * libpq's own.  Names are looked up here, which may take a while.  NULL: *ret_fault says why;
 * GALE_ERR_MEMORY has no text.  Else a text there is a warning. */
struct server_kind *postgres_kind(struct gale_allocator *allocator, const char *url,
                                  struct url_fault *ret_fault);

#endif
