/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_cluster.h -- a Redis Cluster of the test's own: three primaries, three replicas.
 *
 * Six processes on free ports of loopback.  A replica takes over a second or two after its
 * primary has gone.  Servers that were killed or stand still are not asked anything.
 */
#ifndef TESTS_SUPPORT_REDIS_CLUSTER_H
#define TESTS_SUPPORT_REDIS_CLUSTER_H

#include "tests/support/redis_server.h"

#define CLUSTER_SERVERS 6
#define CLUSTER_PRIMARIES 3

struct redis_cluster {
	struct redis_server servers[CLUSTER_SERVERS];
	char ports[CLUSTER_SERVERS][8];
	char bus_ports[CLUSTER_SERVERS][8];
	const char *const *tls; /* options of TLS; NULL: it speaks plain */
	const char *options[CLUSTER_SERVERS][32];
	bool stands_still[CLUSTER_SERVERS];
};

void redis_cluster_start(struct redis_cluster *cluster);
/* In TLS among themselves, too; the options end with NULL, and stay there. */
void redis_cluster_start_in_tls(struct redis_cluster *cluster, const char *const *tls);
void redis_cluster_stop(struct redis_cluster *cluster);

void redis_cluster_kill(struct redis_cluster *cluster, int i);
void redis_cluster_restart(struct redis_cluster *cluster, int i);
void redis_cluster_pause(struct redis_cluster *cluster, int i);
void redis_cluster_go_on(struct redis_cluster *cluster, int i);

/* The server that says that it has the slot; -1: none, or two, soon after it has moved. */
int redis_cluster_owner(const struct redis_cluster *cluster, unsigned slot);
int redis_cluster_await_owner(const struct redis_cluster *cluster, unsigned slot);
/* One that has no slots and would take over from that one; -1: none. */
int redis_cluster_replica(const struct redis_cluster *cluster, int primary);
/* All that are up agree that all slots are served, and replicas have their primaries. */
void redis_cluster_settle(struct redis_cluster *cluster);

/* How often all servers that are up have said this error since they were started. */
uint64_t redis_cluster_errors(const struct redis_cluster *cluster, const char *word);

/* Moves a slot with all its keys, which is half of it, and says whose it is, which is the
 * rest; pauses between the steps, so that askers meet all of them. */
void redis_cluster_move_keys(struct redis_cluster *cluster, unsigned slot, int from,
                             int to, unsigned pause_ms);
void redis_cluster_move_slot(struct redis_cluster *cluster, unsigned slot, int from,
                             int to, unsigned pause_ms);

#endif
