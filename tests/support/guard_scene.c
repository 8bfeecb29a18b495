/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* guard_scene.c -- forks, orders, and looks until something is so. */
#define _GNU_SOURCE
#include "tests/support/guard_scene.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/moment.h"
#include "tests/support/must.h"

#define PLACES 256
#define CALLS_PER_S 300 /* of a node: with calls that take 60 ms, 18 in flight */
#define LOOK_US 1000
#define PATIENCE_NS UINT64_C(60000000000)
#define SIDES 2

static const char *const names[GUARD_SCENE_NODES] = { "one", "two", "three" };

/* ---- Opening --------------------------------------------------------------------- */

void guard_scene_open(struct guard_scene *scene, const char *guard, const char *url,
                      uint64_t backend_abort_us)
{
	const struct backend_terms terms = { .places = PLACES,
		                             .takes_us = GUARD_SCENE_TAKES,
		                             .abort_us = backend_abort_us };
	struct sentence why;

	*scene = (struct guard_scene){ .guard = guard,
		                       .url = url,
		                       .backend_abort_us = backend_abort_us,
		                       .lease_us = GUARD_SCENE_LEASE,
		                       .abort_us = GUARD_SCENE_ABORT };
	must(backend_start(&scene->backend, &terms, &why));
	scene->nodes = mmap(NULL, GUARD_SCENE_NODES * sizeof(*scene->nodes),
	                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(scene->nodes != MAP_FAILED);
}

/* For whoever looks why a test has failed. */
static void say(struct gale_log *self, enum gale_level level, const char *source,
                const char *line)
{
	(void)self;
	fprintf(stderr, "  %.3f %d: %s: %s: %s\n",
	        (double)(wall_us() % 1000000000) / 1e6, (int)getpid(),
	        gale_level_name(level), source, line);
}

static _Noreturn void be_node(struct guard_scene *scene, uint32_t node,
                              const char *name, const char *url)
{
	struct gale_log log = { .write = say };
	const struct guarded_plan plan = {
		.backend = &scene->backend,
		.node = node,
		.name = name,
		.store = url,
		.backend_abort_us = scene->backend_abort_us,
		.log = &log,
		.guard = { .name = scene->guard,
		           .law = GALE_FIXED,
		           .ceiling = GUARD_SCENE_LIMIT,
		           .beat_us = GUARD_SCENE_BEAT,
		           .lease_us = scene->lease_us,
		           .abort_us = scene->abort_us },
	};

	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	backend_forget(&scene->backend);
	if (guarded_run(&scene->nodes[node], &plan))
		_exit(0);
	fprintf(stderr, "node %s: %s\n", name, scene->nodes[node].why.is);
	_exit(1);
}

void guard_scene_start(struct guard_scene *scene, uint32_t node, const char *name,
                       const char *url)
{
	atomic_store(&scene->nodes[node].calls_per_s, CALLS_PER_S);
	scene->pids[node] = fork();
	must(scene->pids[node] >= 0);
	if (scene->pids[node] == 0)
		be_node(scene, node, name, url ? url : scene->url);
}

void guard_scene_start_all(struct guard_scene *scene)
{
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++)
		guard_scene_start(scene, i, names[i], NULL);
}

void guard_scene_kill(struct guard_scene *scene, uint32_t node)
{
	must(kill(scene->pids[node], SIGKILL) == 0);
	must(waitpid(scene->pids[node], NULL, 0) == scene->pids[node]);
	scene->pids[node] = 0;
}

void guard_scene_close(struct guard_scene *scene)
{
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++)
		if (scene->pids[i] > 0)
			guard_scene_kill(scene, i);
	backend_end(&scene->backend);
	munmap(scene->nodes, GUARD_SCENE_NODES * sizeof(*scene->nodes));
}

/* ---- Looking --------------------------------------------------------------------- */

static void look(struct guard_scene *scene)
{
	if (scene->looks)
		scene->looks();
	must(backend_look(&scene->backend, &scene->counts));
}

static void show(const struct guard_scene *scene, const char *what)
{
	fprintf(stderr, "%s: %s, worst %" PRIu64 "\n", scene->guard, what,
	        scene->counts.all.worst);
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++) {
		const struct guarded *node = &scene->nodes[i];

		fprintf(stderr,
		        "  node %" PRIu32 ": %" PRIu64 " in flight, %" PRIu64
		        " done, %" PRIu64 " aborted; limit %" PRIu64 ", %" PRIu64
		        " cuts, %" PRIu64 " fences; refused:",
		        i, scene->counts.of[i].in_flight, scene->counts.of[i].done,
		        scene->counts.of[i].aborted, node->limit, node->cuts,
		        node->fences);
		for (int why = 0; why < GALE_WHY_ROOM; why++)
			if (node->refused_by[why] > 0)
				fprintf(stderr, " %" PRIu64 " (%s)",
				        node->refused_by[why],
				        gale_why_text((enum gale_why)why));
		fprintf(stderr, "\n");
	}
}

/* One more look; ends the process if there were too many. */
static void look_again(struct guard_scene *scene, uint64_t deadline_ns,
                       const char *what)
{
	bool in_time;

	nap(LOOK_US);
	look(scene);
	in_time = backend_now_ns() < deadline_ns;
	if (!in_time)
		show(scene, what);
	must(in_time);
}

static uint64_t deadline(void)
{
	return backend_now_ns() + PATIENCE_NS;
}

static uint64_t in_flight(const struct guard_scene *scene, uint32_t first,
                          uint32_t last)
{
	uint64_t sum = 0;

	for (uint32_t i = first; i <= last; i++)
		sum += scene->counts.of[i].in_flight;
	return sum;
}

void guard_scene_await_in_flight(struct guard_scene *scene, uint32_t first,
                                 uint32_t last, uint64_t wanted)
{
	uint64_t deadline_ns = deadline();

	look(scene);
	while (in_flight(scene, first, last) < wanted)
		look_again(scene, deadline_ns, "too few in flight");
}

void guard_scene_await_none(struct guard_scene *scene, uint32_t node)
{
	uint64_t deadline_ns = deadline();

	look(scene);
	while (scene->counts.of[node].in_flight > 0)
		look_again(scene, deadline_ns, "still in flight");
}

void guard_scene_await_worst(struct guard_scene *scene, uint64_t wanted)
{
	uint64_t deadline_ns = deadline();

	look(scene);
	while (scene->counts.all.worst < wanted)
		look_again(scene, deadline_ns, "too few in flight at worst");
}

void guard_scene_await_done(struct guard_scene *scene, uint32_t node, uint64_t more)
{
	uint64_t deadline_ns = deadline(), before;

	look(scene);
	before = scene->counts.of[node].done;
	while (scene->counts.of[node].done < before + more)
		look_again(scene, deadline_ns, "too few done");
}

void guard_scene_await_refused(struct guard_scene *scene, uint32_t node,
                               enum gale_why why, uint64_t more)
{
	const _Atomic uint64_t *refused = &scene->nodes[node].refused_by[why];
	uint64_t deadline_ns = deadline(), before = atomic_load(refused);

	while (atomic_load(refused) < before + more)
		look_again(scene, deadline_ns, "too few refused");
}

void guard_scene_watch(struct guard_scene *scene, uint64_t us)
{
	uint64_t until_ns = backend_now_ns() + 1000 * us;

	while (backend_now_ns() < until_ns) {
		nap(LOOK_US);
		look(scene);
	}
}

void guard_scene_held(struct guard_scene *scene)
{
	look(scene);
	if (scene->counts.all.worst != GUARD_SCENE_LIMIT)
		show(scene, "not the ceiling");
	must(scene->counts.all.worst == GUARD_SCENE_LIMIT);
}

/* ---- Side by side ---------------------------------------------------------------- */

void guard_scene_side_by_side(void (*run)(int which))
{
	pid_t pids[SIDES];
	int statuses[SIDES];

	for (int which = 0; which < SIDES; which++) {
		pids[which] = fork();
		must(pids[which] >= 0);
		if (pids[which] > 0)
			continue;
		must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		run(which);
		_exit(0);
	}
	for (int which = 0; which < SIDES; which++)
		must(waitpid(pids[which], &statuses[which], 0) == pids[which]);
	for (int which = 0; which < SIDES; which++)
		assert_int_equal(statuses[which], 0);
}
