/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * servers.h -- asks of a store that is a server, as a shard sends them.
 *
 * Threads   One at a time.
 */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include "bench/bench.h"
#include "runtime/wake.h"
#include "stores/server.h"

#define TOGETHER 64 /* asks in one call */
#define UNDER_WAY_MOST 8

/* A store's home, which asks it. */
struct asker {
	struct store_home home; /* first */
	struct store *store;
	struct store_client client;
	struct rule rule;
	unsigned answered;
	bool granted;  /* something, once */
	uint64_t keys; /* that are asked about, in turn, from the first on ... */
	uint64_t first;
	uint64_t nodes; /* ... by so many nodes, in turn; 0: by one */
	uint64_t next;
	uint64_t late;        /* leases that were not answered in time */
	struct poller poller; /* while it waits for answers */
};

/* Its rule is a window that cannot be used up. */
void asker_open(struct asker *asker, struct server_kind *kind, uint64_t keys);
/* The same, of a store that answers at once. */
void asker_open_embedded(struct asker *asker, struct store *store, uint64_t keys);

/* Asks for so many leases, of one key each, in one call; waits for the answers. */
void asker_lend(struct asker *asker, unsigned count);
/* TOGETHER leases, so many times; so many calls are under way at once, at most UNDER_WAY_MOST. */
void asker_lend_ahead(struct asker *asker, unsigned batches, unsigned under_way);
/* So many steps, as leases. */
void asker_step(struct asker *asker, unsigned count);
/* So many beats of members of that group, of TOGETHER at most; all are granted something, if
 * only 0 slots. */
void asker_beat(struct asker *asker, const char *group, struct store_beat *beats,
                unsigned count);

/* Rows: a lease at a time, TOGETHER at a time; the same for steps. */
void run_lend_one(struct bench *b);
void run_lend_many(struct bench *b);
void run_step_one(struct bench *b);
void run_step_many(struct bench *b);

#endif
