/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_servers_test.c -- one ceiling for nodes that die, stop, are cut off and come back, over a
 * real Redis and a real PostgreSQL.  (H1)
 *
 *     in flight at the backend, as it counts it  <=  the ceiling, at each instant
 *     free slots are taken again: within the lease and a tenth where a node has died
 *
 * Each test runs with both servers at once.  Its calls are long where what a stopped or dead node
 * has at the backend matters: it ends there because the backend keeps the abort time.  Where that
 * does not, the last test sees more in flight than the ceiling.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/support/both_servers.h"
#include "tests/support/guard_scene.h"
#include "tests/support/must.h"
#include "tests/support/proxy.h"

#define LIMIT GUARD_SCENE_LIMIT
#define LEASE GUARD_SCENE_LEASE
#define LONG_US (10 * LEASE) /* longer than any share is good without a beat */
#define KILLS_MOST 6 /* of which one is not disturbed by other work of the machine */
#define COORDINATOR "gale-guards"

static struct both_servers both;

/* The first node has long calls from the beginning. */
static void open_scene(struct guard_scene *scene, const char *guard, int which)
{
	guard_scene_open(scene, guard, both.urls[which], GUARD_SCENE_BACKEND_ABORT);
	atomic_store(&scene->nodes[0].takes_us, LONG_US);
	guard_scene_start_all(scene);
	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
}

static void close_scene(struct guard_scene *scene)
{
	guard_scene_held(scene);
	guard_scene_close(scene);
}

/* ---- Nodes that die -------------------------------------------------------------- */

static uint64_t slots_come_back_us(struct guard_scene *scene)
{
	uint64_t killed_ns;

	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
	killed_ns = backend_now_ns();
	guard_scene_kill(scene, 0);
	guard_scene_await_in_flight(scene, 1, 2, LIMIT);
	return (backend_now_ns() - killed_ns) / 1000;
}

/* It is measured from the kill until the backend has all of the ceiling from the others: which
 * other work of the machine makes longer, and nothing makes shorter. */
static void run_killed(int which)
{
	struct guard_scene scene;
	uint64_t took_us, best_us = UINT64_MAX;
	char name[16];

	open_scene(&scene, "killed", which);
	for (int i = 0; i < KILLS_MOST && best_us > LEASE + LEASE / 10; i++) {
		if (i > 0) {
			snprintf(name, sizeof(name), "another %d", i);
			guard_scene_start(&scene, 0, name, NULL);
		}
		took_us = slots_come_back_us(&scene);
		print_message("slots of a dead node are back after %" PRIu64 " ms\n",
		              took_us / 1000);
		best_us = took_us < best_us ? took_us : best_us;
	}
	must(best_us <= LEASE + LEASE / 10);
	close_scene(&scene);
}

static void slots_of_a_dead_node_are_back_within_a_lease(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_killed);
}

static void run_restarted(int which)
{
	struct guard_scene scene;

	open_scene(&scene, "restarted", which);
	guard_scene_kill(&scene, 0);
	guard_scene_start(&scene, 0, "one", NULL);
	guard_scene_await_refused(&scene, 0, GALE_WHY_CUT_OFF, 1);
	guard_scene_await_none(&scene, 0);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	close_scene(&scene);
}

static void a_node_is_started_again_under_its_name(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_restarted);
}

/* False: the first lost its share, since its beats were late; so the second may have one. */
static bool is_kept_out(struct guard_scene *scene)
{
	const _Atomic uint64_t *fences = &scene->nodes[0].fences;
	const _Atomic uint64_t *refused = &scene->nodes[1].refused_by[GALE_WHY_CUT_OFF];
	uint64_t fences_before = atomic_load(fences),
		 refused_before = atomic_load(refused);

	while (atomic_load(refused) < refused_before + LIMIT * 20 &&
	       atomic_load(fences) == fences_before)
		guard_scene_watch(scene, 1000);
	guard_scene_watch(scene, 0);
	return atomic_load(fences) == fences_before;
}

static bool second_waits(struct guard_scene *scene, const char *name)
{
	uint64_t begun;
	bool is_out;

	guard_scene_start(scene, 0, name, NULL);
	guard_scene_await_in_flight(scene, 0, 0, LIMIT);
	begun = scene->counts.of[1].begun;
	guard_scene_start(scene, 1, name, NULL);
	is_out = is_kept_out(scene);
	must(!is_out || scene->counts.of[1].begun == begun);
	guard_scene_kill(scene, 0);
	guard_scene_await_in_flight(scene, 1, 1, LIMIT);
	guard_scene_kill(scene, 1);
	return is_out;
}

static void run_namesake(int which)
{
	struct guard_scene scene;
	char name[16];

	guard_scene_open(&scene, "namesakes", both.urls[which],
	                 GUARD_SCENE_BACKEND_ABORT);
	for (int i = 0;; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		if (second_waits(&scene, name))
			break;
	}
	close_scene(&scene);
}

static void the_second_of_one_name_waits_for_the_first(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_namesake);
}

/* ---- Nodes that stop ------------------------------------------------------------- */

static void run_stopped(int which)
{
	struct guard_scene scene;

	open_scene(&scene, "stopped", which);
	must(kill(scene.pids[0], SIGSTOP) == 0);
	guard_scene_watch(&scene, 2 * LEASE);
	guard_scene_await_in_flight(&scene, 1, 2, LIMIT);
	must(kill(scene.pids[0], SIGCONT) == 0);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	close_scene(&scene);
}

static void a_node_is_stopped_for_two_leases(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_stopped);
}

/* Of the process, the thread of that name. */
static pid_t thread_of(pid_t pid, const char *name)
{
	char path[300], is[32] = "";
	struct dirent *entry;
	DIR *tasks;
	pid_t found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	must(tasks);
	while ((entry = readdir(tasks)) != NULL) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid,
		         entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(is, sizeof(is), file) && strncmp(is, name, strlen(name)) == 0)
			found = (pid_t)atoi(entry->d_name);
		fclose(file);
	}
	closedir(tasks);
	must(found > 0);
	return found;
}

/* As if it got no processor: all other threads of its process go on. */
static void hold_thread(pid_t thread)
{
	must(ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0);
	must(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0);
	must(waitpid(thread, NULL, __WALL) == thread);
}

static void let_thread_go(pid_t thread)
{
	must(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
}

/* True if calls have begun meanwhile, by a share that was still good. */
static bool is_held_once(struct guard_scene *scene)
{
	pid_t thread = thread_of(scene->pids[0], COORDINATOR);
	uint64_t begun;

	hold_thread(thread);
	guard_scene_watch(scene, 0);
	begun = scene->counts.of[0].begun;
	/* Its seats find by themselves that the share is over. */
	guard_scene_await_refused(scene, 0, GALE_WHY_CUT_OFF, 1);
	guard_scene_watch(scene, 2 * LEASE);
	guard_scene_await_in_flight(scene, 1, 2, LIMIT);
	must(scene->counts.of[0].in_flight == 0);
	begun = scene->counts.of[0].begun - begun;
	let_thread_go(thread);
	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 2, LIMIT);
	return begun > 0;
}

/* Its calls are short: gale's thread is the one that would call on_fenced, and so nobody cancels
 * them. */
static void run_held(int which)
{
	struct guard_scene scene;

	guard_scene_open(&scene, "held", both.urls[which], GUARD_SCENE_BACKEND_ABORT);
	guard_scene_start_all(&scene);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	while (!is_held_once(&scene))
		continue; /* the machine stood still until the fence */
	close_scene(&scene);
}

static void a_coordinator_gets_no_processor_for_two_leases(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_held);
}

/* ---- Nodes that are cut off ------------------------------------------------------ */

static void open_proxy(struct proxy *proxy, int which, char *ret_url, size_t size)
{
	char folder[64], socket[96];

	if (which == 0) {
		proxy_open(proxy, both.redis.socket);
		snprintf(ret_url, size, "redis://127.0.0.1:%u", proxy->port);
		return;
	}
	must(sscanf(postgres_server_address(both.postgres), "host=%63s", folder) == 1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.5432", folder);
	proxy_open(proxy, socket);
	snprintf(ret_url, size, "postgres://gale@127.0.0.1:%u/postgres", proxy->port);
}

static void run_partitioned(int which)
{
	struct guard_scene scene;
	struct proxy proxy;
	char url[128];

	open_proxy(&proxy, which, url, sizeof(url));
	guard_scene_open(&scene, "partitioned", both.urls[which],
	                 GUARD_SCENE_BACKEND_ABORT);
	atomic_store(&scene.nodes[0].takes_us, LONG_US);
	guard_scene_start(&scene, 0, "one", url);
	guard_scene_start(&scene, 1, "two", NULL);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 1, LIMIT);
	proxy_be_silent(&proxy, true);
	guard_scene_await_refused(&scene, 0, GALE_WHY_CUT_OFF, 1);
	guard_scene_await_none(&scene, 0); /* it cancels its calls */
	must(atomic_load(&scene.nodes[0].fences) > 0);
	guard_scene_await_in_flight(&scene, 1, 1, LIMIT);
	proxy_be_silent(&proxy, false);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 1, LIMIT);
	close_scene(&scene);
	proxy_close(&proxy);
}

static void a_node_is_cut_off_and_comes_back(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_partitioned);
}

/* ---- Servers that are too slow --------------------------------------------------- */

static void await_all_cut_off(struct guard_scene *scene)
{
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++)
		guard_scene_await_refused(scene, i, GALE_WHY_CUT_OFF, 1);
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++)
		guard_scene_await_none(scene, i);
}

/* The server hears each report, and answers it when the share that the answer grants is over.  So
 * no call begins until answers come in time again. */
static void run_slow(int which)
{
	struct guard_scene scene;
	struct proxy proxy;
	uint64_t begun;
	char url[128];

	open_proxy(&proxy, which, url, sizeof(url));
	guard_scene_open(&scene, "slow", url, GUARD_SCENE_BACKEND_ABORT);
	atomic_store(&scene.nodes[0].takes_us, LONG_US);
	guard_scene_start_all(&scene);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	proxy_delay(&proxy, TO_NODE, LEASE - GUARD_SCENE_ABORT);
	await_all_cut_off(&scene);
	begun = scene.counts.all.begun;
	guard_scene_watch(&scene, 2 * LEASE);
	must(scene.counts.all.begun == begun);
	proxy_delay(&proxy, TO_NODE, 0);
	for (uint32_t i = 0; i < GUARD_SCENE_NODES; i++)
		guard_scene_await_in_flight(&scene, i, i, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	close_scene(&scene);
	proxy_close(&proxy);
}

static void a_server_is_too_slow_for_all(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_slow);
}

/* ---- Servers that forget --------------------------------------------------------- */

/* A node dies at the same moment: the server does not know any more what it had. */
static void run_flushed(int which)
{
	struct guard_scene scene;

	open_scene(&scene, "flushed", which);
	guard_scene_kill(&scene, 0);
	if (which == 0)
		redis_server_do(&both.redis, "FLUSHALL");
	else
		both_servers_run_sql(&both, "TRUNCATE gale.groups, gale.members");
	guard_scene_await_in_flight(&scene, 1, 2, LIMIT);
	guard_scene_start(&scene, 0, "one", NULL);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	close_scene(&scene);
}

static void a_server_is_flushed(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_flushed);
}

/* ---- Calls that are long --------------------------------------------------------- */

/* A call that the backend has worked on for two leases was not aborted.  A node that gets no
 * processor for a while loses its share, and its calls.  So shares and the backend bear standstills
 * of half a second here, and a call that is lost all the same is one of many. */
static void run_long(int which)
{
	const uint64_t lease_us = 2 * LEASE, abort_us = LEASE * 7 / 10;
	struct guard_scene scene;

	guard_scene_open(&scene, "long", both.urls[which], abort_us - LEASE / 10);
	scene.lease_us = lease_us;
	scene.abort_us = abort_us;
	atomic_store(&scene.nodes[0].takes_us, 2 * lease_us);
	guard_scene_start_all(&scene);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_done(&scene, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 2, LIMIT);
	close_scene(&scene);
}

static void a_call_keeps_its_slot_while_its_node_beats(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_long);
}

/* ---- Without the promise --------------------------------------------------------- */

/* The node has the whole ceiling when it is stopped, and what it has at the backend goes on.  Its
 * lease ends all the same. */
static void run_unpromised(int which)
{
	struct guard_scene scene;

	guard_scene_open(&scene, "unpromised", both.urls[which], /* abort= */ 0);
	atomic_store(&scene.nodes[0].takes_us, GALE_HOURS(1));
	guard_scene_start(&scene, 0, "one", NULL);
	guard_scene_await_in_flight(&scene, 0, 0, LIMIT);
	guard_scene_start(&scene, 1, "two", NULL);
	must(kill(scene.pids[0], SIGSTOP) == 0);
	guard_scene_await_in_flight(&scene, 1, 1, LIMIT);
	must(scene.counts.all.worst == 2 * LIMIT);
	print_message("%" PRIu64
	              " were in flight, of %d, where the backend does not end "
	              "what a stopped node has there\n",
	              scene.counts.all.worst, LIMIT);
	guard_scene_close(&scene);
}

static void without_the_abort_time_there_is_no_bound(void **state)
{
	(void)state;
	guard_scene_side_by_side(run_unpromised);
}

static int start_servers(void **state)
{
	(void)state;
	both_servers_start(&both);
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_of_a_dead_node_are_back_within_a_lease),
		cmocka_unit_test(a_node_is_started_again_under_its_name),
		cmocka_unit_test(the_second_of_one_name_waits_for_the_first),
		cmocka_unit_test(a_node_is_stopped_for_two_leases),
		cmocka_unit_test(a_coordinator_gets_no_processor_for_two_leases),
		cmocka_unit_test(a_node_is_cut_off_and_comes_back),
		cmocka_unit_test(a_server_is_too_slow_for_all),
		cmocka_unit_test(a_server_is_flushed),
		cmocka_unit_test(a_call_keeps_its_slot_while_its_node_beats),
		cmocka_unit_test(without_the_abort_time_there_is_no_bound),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
