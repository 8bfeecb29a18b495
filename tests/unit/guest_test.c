/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guest_test.c -- the library in somebody else's house: it takes nothing, leaves nothing
 * behind, and does not mind what happens there.
 *
 *     guest_test LIBGALE.SO
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gale/gale.h>

#include "engine/check.h"
#include "runtime/atomic.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHARDS 3
#define LONG_US GALE_SECONDS(30)

static const char *library; /* the path of libgale.so */

static struct house_plan plan_of(uint64_t limit)
{
	return (struct house_plan){ .rule = gale_fixed_window(limit, GALE_HOURS(1)),
		                    .shards = SHARDS };
}

/* ---- /proc ----------------------------------------------------------------------- */

/* The entries of a folder that are numbers, below 1024 or counted from the smallest. */
struct numbers {
	int list[1024];
	size_t count;
};

static struct numbers numbers_in(const char *folder)
{
	struct numbers found = { .count = 0 };
	DIR *dir = opendir(folder);
	struct dirent *entry;

	must(dir);
	while ((entry = readdir(dir))) {
		int number = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || number == dirfd(dir))
			continue;
		must(found.count < COUNT(found.list));
		found.list[found.count++] = number;
	}
	closedir(dir);
	return found;
}

static bool contains(const struct numbers *numbers, int number)
{
	for (size_t i = 0; i < numbers->count; i++)
		if (numbers->list[i] == number)
			return true;
	return false;
}

/* The rest of the line that begins so, in the status of a thread. */
static void status_of(int task, const char *field, char *out, size_t size)
{
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", task);
	status = fopen(path, "re");
	must(status);
	out[0] = '\0';
	while (fgets(line, sizeof(line), status))
		if (strncmp(line, field, strlen(field)) == 0)
			snprintf(out, size, "%s", line + strlen(field));
	fclose(status);
	must(out[0] != '\0');
	out[strcspn(out, "\n")] = '\0';
}

static uint64_t mask_of(int task, const char *field)
{
	char hex[64];

	status_of(task, field, hex, sizeof(hex));
	return strtoull(hex, NULL, 16);
}

/* ---- Threads, signals, descriptors ----------------------------------------------- */

static uint64_t bit_of(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/* The kernel blocks neither of these, and the C library keeps two for itself. */
static uint64_t all_signals(void)
{
	return ~(bit_of(SIGKILL) | bit_of(SIGSTOP) | bit_of(32) | bit_of(33));
}

static void our_threads_have_names_and_take_no_signals(void **state)
{
	struct house_plan plan = plan_of(5);
	struct numbers before = numbers_in("/proc/self/task"), after;
	unsigned named = 0, ours = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	after = numbers_in("/proc/self/task");
	for (size_t i = 0; i < after.count; i++) {
		char name[64];

		if (contains(&before, after.list[i]))
			continue;
		ours++;
		status_of(after.list[i], "Name:\t", name, sizeof(name));
		assert_int_equal(strncmp(name, "gale-shard-", 11), 0);
		named |= 1u << atoi(name + 11);
		assert_int_equal(mask_of(after.list[i], "SigBlk:") & all_signals(),
		                 all_signals());
	}
	assert_int_equal(ours, SHARDS);
	assert_int_equal(named, (1u << SHARDS) - 1);
	assert_true(house_close(&h));
	assert_int_equal(numbers_in("/proc/self/task").count, before.count);
}

static void the_hosts_signals_stay_as_they_were(void **state)
{
	struct house_plan plan = plan_of(5);
	sigset_t some;
	uint64_t blocked, caught, ignored;
	struct house h;

	(void)state;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	must(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
	blocked = mask_of(gettid(), "SigBlk:");
	caught = mask_of(gettid(), "SigCgt:");
	ignored = mask_of(gettid(), "SigIgn:");
	house_open(&h, &plan);
	(void)house_ask(&h, "k");
	assert_int_equal(mask_of(gettid(), "SigBlk:"), blocked);
	assert_int_equal(mask_of(gettid(), "SigCgt:"), caught);
	assert_int_equal(mask_of(gettid(), "SigIgn:"), ignored);
	assert_true(house_close(&h));
	assert_int_equal(mask_of(gettid(), "SigBlk:"), blocked);
	assert_int_equal(mask_of(gettid(), "SigCgt:"), caught);
	must(pthread_sigmask(SIG_UNBLOCK, &some, NULL) == 0);
}

static void our_descriptors_are_closed_on_exec(void **state)
{
	struct house_plan plan = plan_of(5);
	struct numbers before = numbers_in("/proc/self/fd"), after;
	unsigned ours = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	after = numbers_in("/proc/self/fd");
	for (size_t i = 0; i < after.count; i++) {
		if (contains(&before, after.list[i]))
			continue;
		ours++;
		assert_true(fcntl(after.list[i], F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(ours,
	                 2 * SHARDS + 1); /* a wake and what it sleeps on; the seat's */
	assert_true(house_close(&h));
}

static void two_hundred_runtimes_leave_no_descriptor_and_no_thread(void **state)
{
	size_t fds = numbers_in("/proc/self/fd").count;
	size_t tasks = numbers_in("/proc/self/task").count;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct house_plan plan = plan_of(5);
		struct holder holder;
		struct house h;

		house_open(&h, &plan);
		holder_begin(&holder, h.limiter, "k");
		assert_int_equal(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL).verdict,
		                 GALE_PENDING);
		holder_end(&holder);
		assert_true(house_close(&h));
		assert_int_equal(numbers_in("/proc/self/fd").count, fds);
	}
	assert_int_equal(numbers_in("/proc/self/task").count, tasks);
}

/* ---- Silence --------------------------------------------------------------------- */

/* A life with all its mishaps, at the end of which an invariant breaks. */
static int live_and_break(void *arg)
{
	int *pipe_end = arg;
	struct house_plan plan = plan_of(1);
	struct house h;

	must(dup2(*pipe_end, STDOUT_FILENO) >= 0);
	must(dup2(*pipe_end, STDERR_FILENO) >= 0);
	plan.max_keys = 1;
	house_open(&h, &plan);
	(void)house_ask(&h, "k");
	(void)house_ask(&h, "k");
	(void)house_ask(&h, "full");
	h.allocator.fail_last = UINT64_MAX;
	(void)gale_reset(h.seat, h.limiter, "k", 1, LONG_US);
	(void)house_ask(&h, "no memory");
	h.allocator.fail_last = 0;
	(void)gale_ask(NULL, NULL, NULL, 0, 0, NULL);
	house_close(&h);
	house_open(&h, &plan);
	gale_store_close(h.store);
	gale_store_close(h.store); /* the panic */
	return 0;
}

static void nothing_is_written_to_stdout_or_stderr(void **state)
{
	int ends[2];
	char byte;

	(void)state;
	must(pipe2(ends, O_CLOEXEC) == 0);
	assert_int_equal(child_run(live_and_break, &ends[1]), -SIGABRT);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* ---- Loaded and unloaded --------------------------------------------------------- */

/* What a host looks up. */
struct symbols {
	enum gale_err (*runtime_open)(const struct gale_config *config, size_t bytes,
	                              struct gale_runtime **ret_runtime);
	void (*runtime_close)(struct gale_runtime *runtime);
	enum gale_err (*store_open)(struct gale_runtime *runtime,
	                            const struct gale_store_config *config,
	                            size_t bytes, struct gale_store **ret_store);
	void (*store_close)(struct gale_store *store);
	enum gale_err (*limiter_open)(struct gale_runtime *runtime,
	                              const struct gale_limiter_config *config,
	                              size_t bytes, struct gale_limiter **ret_limiter);
	void (*limiter_close)(struct gale_limiter *limiter);
	enum gale_err (*join)(struct gale_runtime *runtime,
	                      struct gale_seat **ret_seat);
	void (*leave)(struct gale_seat *seat);
	struct gale_answer (*wait)(struct gale_seat *seat, struct gale_limiter *limiter,
	                           const void *key, size_t key_len, uint64_t cost,
	                           uint64_t within_us);
	const char *(*version)(void);
	enum gale_err (*url_check)(const char *url, char *ret_why, size_t room);
};

/* As POSIX has it: through the address of a pointer to data. */
static void look_up(void *handle, const char *name, void *ret_function)
{
	void *found = dlsym(handle, name);

	must(found);
	memcpy(ret_function, &found, sizeof(found));
}

static struct symbols symbols_of(void *handle)
{
	struct symbols s;

	look_up(handle, "gale_runtime_open_sized", &s.runtime_open);
	look_up(handle, "gale_runtime_close", &s.runtime_close);
	look_up(handle, "gale_store_open_sized", &s.store_open);
	look_up(handle, "gale_store_close", &s.store_close);
	look_up(handle, "gale_limiter_open_sized", &s.limiter_open);
	look_up(handle, "gale_limiter_close", &s.limiter_close);
	look_up(handle, "gale_join", &s.join);
	look_up(handle, "gale_leave", &s.leave);
	look_up(handle, "gale_wait", &s.wait);
	look_up(handle, "gale_version", &s.version);
	look_up(handle, "gale_url_check", &s.url_check);
	return s;
}

static void live_in(const struct symbols *s)
{
	struct gale_limiter_config config = { .name = "loaded",
		                              .rule =
		                                  gale_fixed_window(2, GALE_HOURS(1)) };
	struct gale_store_config named = { .url = "memory:loaded" };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;

	assert_int_equal(s->runtime_open(NULL, 0, &runtime), GALE_ERR_OK);
	assert_int_equal(s->store_open(runtime, &named, sizeof(named), &config.store),
	                 GALE_ERR_OK);
	assert_int_equal(s->limiter_open(runtime, &config, sizeof(config), &limiter),
	                 GALE_ERR_OK);
	assert_int_equal(s->join(runtime, &seat), GALE_ERR_OK);
	assert_int_equal(s->wait(seat, limiter, "k", 1, 2, LONG_US).verdict,
	                 GALE_ALLOW);
	s->leave(seat);
	s->limiter_close(limiter);
	s->store_close(config.store);
	s->runtime_close(runtime);
}

/* Parts that were loaded stay, and do not hold the library (PART-1, PART-2). */
static void load_parts(const struct symbols *s)
{
	static const char *const urls[] = {
		"memory:",
#ifdef GALE_REDIS
		"redis://h",
#endif
#ifdef GALE_POSTGRES
		"postgres://h/db",
#endif
	};
	char why[192];

	for (size_t i = 0; i < COUNT(urls); i++)
		if (s->url_check(urls[i], why, sizeof(why)) != GALE_ERR_OK)
			fail_msg("%s", why);
}

static void it_is_loaded_and_unloaded_a_hundred_times(void **state)
{
	size_t fds = numbers_in("/proc/self/fd").count;
	size_t tasks = numbers_in("/proc/self/task").count;

	(void)state;
	for (int i = 0; i < 100; i++) {
		void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		struct symbols s;

		if (!handle)
			fail_msg("%s", dlerror());
		s = symbols_of(handle);
		assert_ptr_not_equal(s.version, gale_version);
		assert_string_equal(s.version(), gale_version());
		live_in(&s);
		load_parts(&s);
		assert_int_equal(dlclose(handle), 0);
		/* It is gone: nothing of it keeps it in the process. */
		assert_null(dlopen(library, RTLD_NOW | RTLD_NOLOAD));
	}
	assert_int_equal(numbers_in("/proc/self/fd").count, fds);
	assert_int_equal(numbers_in("/proc/self/task").count, tasks);
}

/* ---- Forked ---------------------------------------------------------------------- */

static int close_everything(void *arg)
{
	struct house *h = arg;
	struct gale_completion completion;
	struct gale_counts stats;

	if (gale_seat_completions(h->seat, &completion, 1) != 0)
		return 1;
	if (gale_store_stats(h->store, &stats) != GALE_ERR_FORKED)
		return 2;
	gale_leave(h->seat);
	gale_limiter_close(h->limiter);
	gale_store_close(h->store);
	gale_runtime_close(h->runtime);
	gale_runtime_close(h->runtime); /* not even twice */
	return house_ask(h, "k").why == GALE_WHY_FORKED ? 0 : 3;
}

static void what_a_child_closes_stays_open_for_its_parent(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_completion completion;
	struct pollfd ready;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(child_run(close_everything, &h), 0);
	holder_end(&holder);
	ready = (struct pollfd){ .fd = gale_seat_fd(h.seat), .events = POLLIN };
	assert_int_equal(poll(&ready, 1, 30000), 1);
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 1);
	assert_int_equal(completion.answer.verdict, GALE_ALLOW);
	assert_int_equal(house_ask(&h, "k").remaining, 1);
	assert_int_equal(child_run(close_everything, &h), 0);
	assert_int_equal(house_ask(&h, "k").remaining, 0);
	assert_true(house_close(&h));
}

/* A house of the child's own, on the store of this name. */
static int open_own_house(void *arg)
{
	struct house_plan plan = plan_of(3);
	struct gale_answer answer;
	struct house h;

	plan.url = arg;
	house_open(&h, &plan);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 1, GALE_SECONDS(5));
	if (answer.verdict != GALE_ALLOW || answer.why != GALE_WHY_RULE)
		return 10 + (int)answer.why;
	if (answer.remaining != 2)
		return 2;
	return house_close(&h) ? 0 : 3;
}

static void a_child_may_open_a_runtime_of_its_own(void **state)
{
	struct house_plan plan = plan_of(3);
	char unnamed[] = "memory:", named[] = "memory:new in the child";
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(child_run(open_own_house, unnamed), 0);
	assert_int_equal(child_run(open_own_house, named), 0);
	assert_true(house_close(&h));
}

/*
 * A name is shared by all in this process, and the child is another one.  What it has of
 * its parent's store is a copy: with locks that nobody will release any more, and with a
 * budget that is its parent's.
 */
static void a_child_does_not_find_its_parents_stores(void **state)
{
	struct house_plan plan = plan_of(3);
	char named[] = "memory:forked";
	struct holder holder;
	struct house h;
	int while_held, after;

	(void)state;
	plan.url = named;
	house_open(&h, &plan);
	assert_int_equal(house_ask(&h, "k").remaining, 2);
	holder_begin(&holder, h.limiter, "k");
	while_held = child_run(open_own_house, named);
	holder_end(&holder);
	after = child_run(open_own_house, named);
	assert_int_equal(house_ask(&h, "k").remaining, 1);
	assert_true(house_close(&h));
	assert_int_equal(while_held, 0);
	assert_int_equal(after, 0);
}

/* Stops whoever opens a store, with whatever the library holds then. */
struct stopping {
	struct gale_allocator allocator;
	sem_t inside;
	sem_t leave;
	struct gale_runtime *runtime;
};
static _Thread_local bool stop_here;

static void *stopping_alloc(struct gale_allocator *self, size_t bytes)
{
	struct stopping *stopping = (struct stopping *)self;

	if (stop_here && bytes > 4096) { /* the store itself, not its handle */
		stop_here = false;
		must(sem_post(&stopping->inside) == 0);
		while (sem_wait(&stopping->leave) != 0)
			continue;
	}
	return malloc(bytes);
}

static void stopping_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	(void)bytes;
	free(memory);
}

static void *open_slowly(void *arg)
{
	struct stopping *stopping = arg;
	struct gale_store_config config = { .url = "memory:slow" };
	struct gale_store *store;

	stop_here = true;
	must(gale_store_open(stopping->runtime, &config, &store) == GALE_ERR_OK);
	must(!stop_here);
	gale_store_close(store);
	return NULL;
}

static void a_child_does_not_wait_for_the_locks_of_its_parents_threads(void **state)
{
	struct stopping stopping = { .allocator = { stopping_alloc, stopping_free } };
	struct gale_config config = { .allocator = &stopping.allocator };
	char named[] = "memory:of the child";
	pthread_t opener;
	int child;

	(void)state;
	must(sem_init(&stopping.inside, 0, 0) == 0);
	must(sem_init(&stopping.leave, 0, 0) == 0);
	must(gale_runtime_open(&config, &stopping.runtime) == GALE_ERR_OK);
	must(pthread_create(&opener, NULL, open_slowly, &stopping) == 0);
	while (sem_wait(&stopping.inside) != 0)
		continue;
	child = child_run(open_own_house, named);
	must(sem_post(&stopping.leave) == 0);
	must(pthread_join(opener, NULL) == 0);
	gale_runtime_close(stopping.runtime);
	assert_int_equal(child, 0);
}

/* ---- Interrupted ----------------------------------------------------------------- */

static _Atomic unsigned interrupted;

static void on_signal(int number)
{
	(void)number;
	add_relaxed(&interrupted, 1);
}

struct pester {
	struct holder holder;
	pthread_t waiter;
	struct gale_seat *seat;
};

static bool is_waiting(void *seat)
{
	return asks_of_seat(seat) > 0;
}

static bool was_interrupted(void *times)
{
	return load_relaxed(&interrupted) >= *(unsigned *)times;
}

static void *pester_and_release(void *arg)
{
	struct pester *pester = arg;

	must(becomes_true(is_waiting, pester->seat));
	for (unsigned times = 1; times <= 100; times++) {
		must(pthread_kill(pester->waiter, SIGUSR2) == 0);
		must(becomes_true(was_interrupted, &times));
	}
	holder_end(&pester->holder);
	return NULL;
}

static void a_wait_outlasts_the_hosts_signals(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct house_plan plan = plan_of(3);
	struct pester pester;
	struct gale_answer answer;
	pthread_t thread;
	struct house h;

	(void)state;
	must(sigaction(SIGUSR2, &action, &before) == 0);
	house_open(&h, &plan);
	holder_begin(&pester.holder, h.limiter, "k");
	pester.waiter = pthread_self();
	pester.seat = h.seat;
	must(pthread_create(&thread, NULL, pester_and_release, &pester) == 0);
	answer = house_wait(&h, "k");
	must(pthread_join(thread, NULL) == 0);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(answer.why, GALE_WHY_RULE);
	assert_int_equal(interrupted, 100);
	assert_true(house_close(&h));
	must(sigaction(SIGUSR2, &before, NULL) == 0);
}

/* ---- Two of them ----------------------------------------------------------------- */

static void two_runtimes_do_not_know_of_each_other(void **state)
{
	struct house_plan plan = plan_of(2);
	struct holder holder;
	struct house one, two;

	(void)state;
	house_open(&one, &plan);
	house_open(&two, &plan);
	assert_int_equal(house_ask(&one, "k").remaining, 1);
	assert_int_equal(house_ask(&two, "k").remaining, 1);
	test_clock_advance(&one.clock, GALE_HOURS(5));
	assert_int_equal(house_ask(&one, "k").remaining, 1);
	assert_int_equal(house_ask(&two, "k").remaining, 0);
	holder_begin(&holder, one.limiter, "k");
	assert_int_equal(gale_ask(one.seat, one.limiter, "k", 1, 1, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(house_ask(&two, "k").verdict, GALE_DENY);
	holder_end(&holder);
	assert_true(house_close(&one));
	test_clock_advance(&two.clock, GALE_HOURS(1));
	assert_int_equal(house_wait(&two, "k").remaining, 1);
	assert_true(house_close(&two));
}

/* A sanitizer starts a thread of its own with the first of the program. */
static void do_nothing(void *arg, unsigned who)
{
	(void)arg;
	(void)who;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_threads_have_names_and_take_no_signals),
		cmocka_unit_test(the_hosts_signals_stay_as_they_were),
		cmocka_unit_test(our_descriptors_are_closed_on_exec),
		cmocka_unit_test(
		    two_hundred_runtimes_leave_no_descriptor_and_no_thread),
		cmocka_unit_test(nothing_is_written_to_stdout_or_stderr),
		cmocka_unit_test(it_is_loaded_and_unloaded_a_hundred_times),
		cmocka_unit_test(what_a_child_closes_stays_open_for_its_parent),
		cmocka_unit_test(a_child_may_open_a_runtime_of_its_own),
		cmocka_unit_test(a_child_does_not_find_its_parents_stores),
		cmocka_unit_test(
		    a_child_does_not_wait_for_the_locks_of_its_parents_threads),
		cmocka_unit_test(a_wait_outlasts_the_hosts_signals),
		cmocka_unit_test(two_runtimes_do_not_know_of_each_other),
	};

	must(argc == 2);
	library = argv[1];
	crew_run(1, do_nothing, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
