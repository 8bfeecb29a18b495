/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_scene.h -- nodes that are processes, with one ceiling at a real server, and the backend
 * that counts what they have in flight there.
 *
 *     node 0, 1, 2  --calls-->  backend: what is in flight, of each and of all
 *          '-----beats--> server
 *
 * Each node wants more than the ceiling for itself, so that every free slot is taken at once.
 * The backend has a place for each call: a call takes as long as it is told to.
 *
 * What is not as it must be ends the process.
 *
 * Threads   One.  Nodes are forked, so the process should have no other thread that holds locks.
 */
#ifndef TESTS_SUPPORT_GUARD_SCENE_H
#define TESTS_SUPPORT_GUARD_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/guarded.h"

#define GUARD_SCENE_NODES 3
#define GUARD_SCENE_LIMIT 12
#define GUARD_SCENE_BEAT GALE_MILLIS(150)
#define GUARD_SCENE_LEASE GALE_MILLIS(1000)
#define GUARD_SCENE_ABORT GALE_MILLIS(300)
/* The backend is the sooner one: that it has a processor then is not promised. */
#define GUARD_SCENE_BACKEND_ABORT GALE_MILLIS(200)
#define GUARD_SCENE_TAKES GALE_MILLIS(60)

struct guard_scene {
	const char *guard; /* the group's name */
	const char *url;   /* of the server */
	uint64_t backend_abort_us;
	uint64_t lease_us; /* of nodes that are started; GUARD_SCENE_LEASE */
	uint64_t abort_us; /* as they promise; GUARD_SCENE_ABORT */
	struct backend backend;
	struct backend_counts counts; /* as they were looked at last */
	struct guarded *nodes;        /* in memory that all share */
	pid_t pids[GUARD_SCENE_NODES];
	void (*looks)(void); /* is called whenever it looks; or NULL */
};

/* backend_abort_us: 0: the backend does not keep the promise that the bound needs. */
void guard_scene_open(struct guard_scene *scene, const char *guard, const char *url,
                      uint64_t backend_abort_us);
/* At most the ceiling was in flight, at each instant; and all of it at one. */
void guard_scene_held(struct guard_scene *scene);
void guard_scene_close(struct guard_scene *scene);

/* A node has a number at the backend, and a name in the group; url: NULL: the scene's. */
void guard_scene_start(struct guard_scene *scene, uint32_t node, const char *name,
                       const char *url);
void guard_scene_start_all(struct guard_scene *scene);
void guard_scene_kill(struct guard_scene *scene, uint32_t node);

/* Looks until it is so, and for a minute at most. */
void guard_scene_await_in_flight(struct guard_scene *scene, uint32_t first,
                                 uint32_t last, uint64_t wanted);
void guard_scene_await_none(struct guard_scene *scene, uint32_t node);
void guard_scene_await_worst(struct guard_scene *scene, uint64_t wanted);
/* So many more than there are now. */
void guard_scene_await_done(struct guard_scene *scene, uint32_t node, uint64_t more);
void guard_scene_await_refused(struct guard_scene *scene, uint32_t node,
                               enum gale_why why, uint64_t more);
/* Looks for so long. */
void guard_scene_watch(struct guard_scene *scene, uint64_t us);

/* Runs both at the same time, each in a process of its own; they must end well. */
void guard_scene_side_by_side(void (*run)(int which));

#endif
