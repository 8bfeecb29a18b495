/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hot_path_test.c -- what is answered from here takes no lock, no memory and no system
 * call, however it is asked.
 *
 * Two instruments watch the asking thread.  The linker puts functions of ours before
 * those that lock and allocate (--wrap, see meson.build): they see every call that the
 * library makes.  And a filter in the kernel ends the process at the first system call;
 * so each scene is a child.  Both are shown to see a call that misses.
 *
 * Every scene is warmed up, then watched: each way to ask, with a tick and with a clock
 * that is read for each ask, of one key and of many, long ones among them.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <gale/guard.h>

#include "face/lend.h"
#include "tests/support/child.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

/* ThreadSanitizer maps memory as a thread goes on; the others leave the kernel alone. */
#if defined(__SANITIZE_THREAD__)
#define KERNEL_IS_WATCHED false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KERNEL_IS_WATCHED false
#endif
#endif
#ifndef KERNEL_IS_WATCHED
#define KERNEL_IS_WATCHED true
#endif

#define KEYS_MOST LONG_OR_BRIEF(1000, 300)
#define ASKS LONG_OR_BRIEF(20000, 600) /* of a scene, while it is watched */
#define LEASE 1000000
#define MUCH (UINT64_C(1) << 50)
#define PATIENCE GALE_SECONDS(30)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a child says of its scene. */
enum {
	NOTHING_SEEN,
	WRONG_ANSWER,
	MEMORY_SEEN,
	LOCK_SEEN,
};

/* ---- Instruments: memory and locks ----------------------------------------------- */

static _Thread_local struct {
	bool on;
	uint64_t memory; /* calls while it was on */
	uint64_t locks;
} watch;

static void see_memory(void)
{
	watch.memory += watch.on;
}

static void see_lock(void)
{
	watch.locks += watch.on;
}

/* The linker's names: a call of f comes to __wrap_f, and __real_f is the one meant. */
#define WRAP(see, result, name, params, args)                                          \
	result __real_##name params;                                                   \
	result __wrap_##name params;                                                   \
	result __wrap_##name params                                                    \
	{                                                                              \
		see();                                                                 \
		return __real_##name args;                                             \
	}

WRAP(see_memory, void *, malloc, (size_t bytes), (bytes))
WRAP(see_memory, void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(see_memory, void *, realloc, (void *old, size_t bytes), (old, bytes))
WRAP(see_memory, void *, aligned_alloc, (size_t line, size_t bytes), (line, bytes))
WRAP(see_memory, int, posix_memalign, (void **ret, size_t line, size_t bytes),
     (ret, line, bytes))

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	see_memory();
	__real_free(memory);
}

WRAP(see_lock, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
WRAP(see_lock, int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
WRAP(see_lock, int, pthread_mutex_timedlock,
     (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until))
WRAP(see_lock, int, pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t *mutex),
     (cond, mutex))
WRAP(see_lock, int, pthread_cond_timedwait,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until))
WRAP(see_lock, int, pthread_cond_signal, (pthread_cond_t * cond), (cond))
WRAP(see_lock, int, pthread_cond_broadcast, (pthread_cond_t * cond), (cond))

/* ---- Instruments: the kernel ----------------------------------------------------- */

/* From here on this thread may do nothing but end the process. */
static void seal(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { .len = COUNT(steps), .filter = steps };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void watch_on(void)
{
	if (KERNEL_IS_WATCHED)
		seal();
	memset(&watch, 0, sizeof(watch));
	watch.on = true;
}

/* Not _exit, which does more in a sanitizer; and not _Noreturn, as AddressSanitizer asks
 * the kernel for the stack before it calls what does not return. */
static int end(int status)
{
	return (int)syscall(SYS_exit_group, status);
}

static int read_clock_sealed(void *arg)
{
	struct timespec now;

	(void)arg;
	seal();
	return end(clock_gettime(CLOCK_BOOTTIME, &now) == 0 ? 0 : 1);
}

/* Some machines have clocks that only the kernel can read: an ask without a tick must
 * then enter it, which is why there are ticks. */
static bool clock_is_in_the_kernel(void)
{
	static int known = -1;

	if (known < 0 && KERNEL_IS_WATCHED)
		known = child_run(read_clock_sealed, NULL) == -SIGSYS;
	return known > 0;
}

/* ---- Scenes ---------------------------------------------------------------------- */

enum state {
	LENT,       /* units in the purse: ALLOW */
	SPLIT,      /* units in the cells of seats: ALLOW */
	BOOKED,     /* a pacer's places: ALLOW */
	SPENT,      /* leased, and the store has no more: DENY */
	SPLIT_UP,   /* the same, of a key with cells: DENY */
	QUEUED_UP,  /* a pacer's, and who came now would wait too long: DENY */
	REMEMBERED, /* strict, and a denial is remembered: DENY */
	TOO_MUCH,   /* more than there can ever be: DENY */
};
static const char *const state_names[] = { "lent",       "split",    "booked",
	                                   "spent",      "split up", "queued up",
	                                   "remembered", "too much" };

enum way { BY_NAME, AHEAD, MANY, HELD, WAITING, WAYS };
static const char *const way_names[] = { "gale_ask", "gale_prefetch and gale_ask",
	                                 "gale_ask_many", "gale_ask_key", "gale_wait" };

struct plan {
	enum state state;
	enum way way;
	bool ticks;
	size_t keys;
};

struct name {
	uint8_t bytes[100];
	size_t len;
};

struct scene {
	const struct plan *plan;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct name names[KEYS_MOST];
	struct gale_key *held[KEYS_MOST];
	struct gale_question questions[KEYS_MOST];
	struct gale_answer answers[KEYS_MOST];
};

static bool is_denied(const struct plan *plan)
{
	return plan->state >= SPENT;
}

static bool is_split(const struct plan *plan)
{
	return plan->state == SPLIT || plan->state == SPLIT_UP;
}

static bool is_pacer(const struct plan *plan)
{
	return plan->state == BOOKED || plan->state == QUEUED_UP;
}

static uint64_t cost_of(const struct plan *plan)
{
	return plan->state == TOO_MUCH ? 2 : 1;
}

static bool is_right(const struct plan *plan, const struct gale_answer *answer)
{
	if (plan->state == TOO_MUCH)
		return answer->verdict == GALE_DENY &&
		       answer->retry_after_us == GALE_NEVER;
	if (is_denied(plan))
		return answer->verdict == GALE_DENY && answer->why == GALE_WHY_SPENT;
	if (plan->state == BOOKED && answer->slot.us == 0)
		return false; /* from the burst, which comes first */
	return answer->verdict == GALE_ALLOW;
}

/* Places are far apart, so that none goes back for being idle meanwhile. */
static struct gale_rule rule_of(const struct plan *plan)
{
	struct gale_rule pacer = gale_pacer(1, GALE_SECONDS(100), 1);

	if (plan->state == QUEUED_UP)
		pacer.max_wait_us = GALE_SECONDS(150);
	if (is_pacer(plan))
		return pacer;
	return gale_fixed_window(is_denied(plan) ? 1 : MUCH, GALE_SPAN_MAX_US);
}

/* Cells are put in by hand, so the actors must hold still: the host takes the turns. */
static void open_scene(struct scene *scene)
{
	const struct plan *plan = scene->plan;
	struct gale_config config = { .shards = 2, .turns = is_split(plan) };
	struct gale_limiter_config limiter = {
		.name = "hot",
		.rule = rule_of(plan),
		.mode = plan->state == REMEMBERED ? GALE_CACHED_DENY : GALE_LEASED,
	};

	if (limiter.mode == GALE_LEASED)
		limiter.lease =
		    (struct gale_leasing){ .sizing = GALE_SIZE_FIXED,
			                   .batch = LEASE,
			                   .patience_us = GALE_SECONDS(30) };
	must(gale_runtime_open(&config, &scene->runtime) == GALE_ERR_OK);
	must(gale_store_open(scene->runtime, NULL, &scene->store) == GALE_ERR_OK);
	limiter.store = scene->store;
	must(gale_limiter_open(scene->runtime, &limiter, &scene->limiter) ==
	     GALE_ERR_OK);
	must(gale_join(scene->runtime, &scene->seat) == GALE_ERR_OK);
}

/* Every second key is too long to be kept near. */
static void name_keys(struct scene *scene)
{
	for (size_t i = 0; i < scene->plan->keys; i++) {
		struct name *name = &scene->names[i];

		name->len = i % 2 == 0 ? 16 : sizeof(name->bytes);
		memset(name->bytes, 'k', sizeof(name->bytes));
		memcpy(name->bytes, &i, sizeof(i));
		scene->questions[i] =
		    (struct gale_question){ .key = name->bytes,
			                    .key_len = name->len,
			                    .cost = cost_of(scene->plan) };
	}
}

static struct gale_answer wait_for(struct scene *scene, size_t i)
{
	return gale_wait(scene->seat, scene->limiter, scene->names[i].bytes,
	                 scene->names[i].len, cost_of(scene->plan), PATIENCE);
}

/* Until it is answered as it will be from then on; the first call is not denied, and a
 * shard hears of a denial a little later.  The first place of a pacer comes alone, and a
 * block of them with the next. */
static void warm(struct scene *scene, size_t i)
{
	struct gale_answer answer;

	while (answer = wait_for(scene, i), !is_right(scene->plan, &answer))
		sched_yield();
	if (scene->plan->state == BOOKED)
		(void)wait_for(scene, i);
}

static void split(struct scene *scene, size_t i)
{
	const struct name *name = &scene->names[i];
	struct purse_name wanted = {
		.lender = &scene->limiter->lender,
		.key = name->bytes,
		.key_len = (uint16_t)name->len,
		.hash = local_hash(&scene->limiter->lender, name->bytes, name->len),
	};
	struct purses *set = &runtime_shard(scene->runtime, wanted.hash)->lessor.purses;
	struct purse *purse = purses_find(set, &wanted);

	must(purse);
	must(purses_give_cells(set, purse, 4));
	must(load_relaxed(&purse->split) == 4);
}

/* A held key finds what it holds with its first ask. */
static void hold(struct scene *scene, size_t i)
{
	struct gale_answer answer;

	must(gale_key_open(scene->seat, scene->limiter, scene->names[i].bytes,
	                   scene->names[i].len, &scene->held[i]) == GALE_ERR_OK);
	answer = gale_ask_key(scene->held[i], cost_of(scene->plan), NULL);
	must(is_right(scene->plan, &answer));
}

static void set_scene(struct scene *scene)
{
	open_scene(scene);
	name_keys(scene);
	for (size_t i = 0; i < scene->plan->keys; i++) {
		warm(scene, i);
		if (is_split(scene->plan))
			split(scene, i);
		if (scene->plan->way == HELD)
			hold(scene, i);
	}
	if (scene->plan->ticks)
		gale_tick(scene->seat);
}

/* ---- Asking, while watched ------------------------------------------------------- */

static struct gale_answer ask(struct scene *scene, size_t i)
{
	const struct name *name = &scene->names[i];

	if (scene->plan->way == HELD)
		return gale_ask_key(scene->held[i], cost_of(scene->plan), NULL);
	if (scene->plan->way == WAITING)
		return wait_for(scene, i);
	if (scene->plan->way == AHEAD)
		gale_prefetch(scene->seat, scene->limiter, name->bytes, name->len);
	return gale_ask(scene->seat, scene->limiter, name->bytes, name->len,
	                cost_of(scene->plan), NULL);
}

/* A tick reads the clock, so where that takes the kernel there was one before. */
static void tick(struct scene *scene)
{
	if (scene->plan->ticks && !clock_is_in_the_kernel())
		gale_tick(scene->seat);
}

static bool ask_once(struct scene *scene)
{
	size_t keys = scene->plan->keys;
	bool right = true;

	tick(scene);
	if (scene->plan->way == MANY)
		gale_ask_many(scene->seat, scene->limiter, scene->questions, keys,
		              scene->answers);
	for (size_t i = 0; i < keys; i++) {
		if (scene->plan->way != MANY)
			scene->answers[i] = ask(scene, i);
		right &= is_right(scene->plan, &scene->answers[i]);
	}
	return right;
}

static int play(void *arg)
{
	static struct scene scene;
	bool right = true;

	scene = (struct scene){ .plan = arg };
	set_scene(&scene);
	watch_on();
	for (size_t asked = 0; asked < ASKS; asked += scene.plan->keys)
		right &= ask_once(&scene);
	watch.on = false;
	if (!right)
		return end(WRONG_ANSWER);
	if (watch.memory > 0)
		return end(MEMORY_SEEN);
	return end(watch.locks > 0 ? LOCK_SEEN : NOTHING_SEEN);
}

static void check(struct plan plan)
{
	int seen;

	if (!plan.ticks && clock_is_in_the_kernel())
		return; /* said once, below */
	seen = child_run(play, &plan);
	if (seen != NOTHING_SEEN)
		fail_msg("%s, %s, %s, %zu keys: %s (%d)", state_names[plan.state],
		         way_names[plan.way], plan.ticks ? "ticks" : "no ticks",
		         plan.keys,
		         seen == -SIGSYS       ? "a system call"
		         : seen == MEMORY_SEEN ? "memory was taken or given"
		         : seen == LOCK_SEEN   ? "a lock was taken"
		                               : "another answer",
		         seen);
}

static void check_all_ways(enum state state)
{
	for (int way = 0; way < WAYS; way++)
		for (int ticks = 0; ticks <= 1; ticks++) {
			check((struct plan){ state, (enum way)way, ticks, 1 });
			check((struct plan){ state, (enum way)way, ticks, KEYS_MOST });
		}
}

/* ---- Tests ----------------------------------------------------------------------- */

static void an_allow_from_credit_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(LENT);
}

static void an_allow_from_a_cell_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(SPLIT);
}

static void an_allow_from_a_place_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(BOOKED);
}

static void a_denial_of_a_lease_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(SPENT);
	check_all_ways(SPLIT_UP);
}

static void a_denial_of_a_place_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(QUEUED_UP);
}

static void a_denial_for_ever_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(TOO_MUCH);
}

static void a_remembered_denial_does_nothing_else(void **state)
{
	(void)state;
	check_all_ways(REMEMBERED);
}

/* ---- The instruments are checked ------------------------------------------------- */

/* Of a guard with three slots: one, several, one that is refused, and exits of all. */
static int enter_and_exit(void *arg)
{
	struct gale_guard_config config = { .name = "g",
		                            .law = GALE_FIXED,
		                            .ceiling = 3 };
	static struct scene scene;
	struct gale_entry one, two, more;
	struct gale_guard *guard;
	bool right = true;

	scene = (struct scene){ .plan = arg };
	open_scene(&scene);
	must(gale_guard_open(scene.runtime, &config, &guard) == GALE_ERR_OK);
	gale_tick(scene.seat);
	watch_on();
	for (int i = 0; i < ASKS; i++) {
		one = gale_enter(scene.seat, guard, 1, GALE_SHEDDABLE);
		two = gale_enter(scene.seat, guard, 1, GALE_NORMAL);
		more = gale_enter(scene.seat, guard, 1, GALE_SHEDDABLE);
		right &= one.verdict == GALE_ALLOW && two.verdict == GALE_ALLOW &&
		         more.why == GALE_WHY_CLASS;
		gale_exit(scene.seat, &one, GALE_OK);
		gale_exit(scene.seat, &two, GALE_DROPPED);
		gale_exit(scene.seat, &more, GALE_OK);
	}
	watch.on = false;
	if (!right)
		return end(WRONG_ANSWER);
	if (watch.memory > 0)
		return end(MEMORY_SEEN);
	return end(watch.locks > 0 ? LOCK_SEEN : NOTHING_SEEN);
}

static void a_guard_does_nothing_else(void **state)
{
	struct plan plan = { REMEMBERED, BY_NAME, true, 1 };

	(void)state;
	assert_int_equal(child_run(enter_and_exit, &plan), NOTHING_SEEN);
}

static int ask_for_a_cold_key(void *arg)
{
	static struct scene scene;

	scene = (struct scene){ .plan = arg };
	open_scene(&scene);
	scene.names[0] = (struct name){ "cold", 4 };
	while (gale_turn(scene.runtime) > 0) /* it was woken to be opened */
		continue;
	watch_on();
	(void)ask(&scene, 0);
	return end(NOTHING_SEEN);
}

/* Nobody is awake to see the ask without being woken: the host takes the turns. */
static void a_miss_enters_the_kernel_and_is_seen(void **state)
{
	struct plan plan = { SPLIT, BY_NAME, false, 1 };

	(void)state;
	if (KERNEL_IS_WATCHED)
		assert_int_equal(child_run(ask_for_a_cold_key, &plan), -SIGSYS);
	else
		print_message("ThreadSanitizer enters the kernel by itself: memory and "
		              "locks are watched here, system calls are not\n");
	if (clock_is_in_the_kernel())
		print_message("only the kernel can read this machine's clock: asks are "
		              "watched with ticks, not without\n");
}

/* Strict, and new to the embedded store: it is locked, and an entry is made. */
static int ask_the_store_for_a_cold_key(void *arg)
{
	static struct scene scene;
	struct gale_answer answer;

	scene = (struct scene){ .plan = arg };
	open_scene(&scene);
	memset(&watch, 0, sizeof(watch));
	watch.on = true;
	answer = gale_ask(scene.seat, scene.limiter, "cold", 4, 1, NULL);
	watch.on = false;
	must(answer.verdict == GALE_ALLOW);
	return end(watch.memory > 0 && watch.locks > 0 ? NOTHING_SEEN : WRONG_ANSWER);
}

static void a_miss_locks_and_allocates_and_is_seen(void **state)
{
	struct plan plan = { REMEMBERED, BY_NAME, false, 1 };

	(void)state;
	assert_int_equal(child_run(ask_the_store_for_a_cold_key, &plan), NOTHING_SEEN);
}

static int read_a_sealed_clock_slowly(void *arg)
{
	struct timespec now;

	(void)arg;
	seal();
	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
	return end(NOTHING_SEEN);
}

static int end_sealed(void *arg)
{
	(void)arg;
	seal();
	return end(NOTHING_SEEN);
}

static void the_seal_lets_nothing_through_but_the_end(void **state)
{
	(void)state;
	assert_int_equal(child_run(read_a_sealed_clock_slowly, NULL), -SIGSYS);
	assert_int_equal(child_run(end_sealed, NULL), NOTHING_SEEN);
}

static void allocate_in_every_way(void)
{
	void *volatile kept = malloc(1);

	kept = realloc(kept, 2);
	free(kept);
	kept = calloc(1, 1);
	free(kept);
	kept = aligned_alloc(64, 64);
	free(kept);
	must(posix_memalign((void **)&kept, 64, 64) == 0);
	free(kept);
}

static void lock_in_every_way(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec past = { 0, 0 };

	must(pthread_mutex_lock(&mutex) == 0);
	must(pthread_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT);
	must(pthread_mutex_unlock(&mutex) == 0);
	must(pthread_mutex_trylock(&mutex) == 0);
	must(pthread_mutex_unlock(&mutex) == 0);
	must(pthread_mutex_timedlock(&mutex, &past) == 0);
	must(pthread_mutex_unlock(&mutex) == 0);
	must(pthread_cond_signal(&cond) == 0);
	must(pthread_cond_broadcast(&cond) == 0);
}

static void every_call_that_is_wrapped_is_seen(void **state)
{
	(void)state;
	memset(&watch, 0, sizeof(watch));
	allocate_in_every_way();
	lock_in_every_way();
	assert_int_equal(watch.memory + watch.locks, 0); /* nobody watches */
	watch.on = true;
	allocate_in_every_way();
	lock_in_every_way();
	watch.on = false;
	assert_int_equal(watch.memory, 9);
	assert_int_equal(watch.locks, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_that_is_wrapped_is_seen),
		cmocka_unit_test(the_seal_lets_nothing_through_but_the_end),
		cmocka_unit_test(a_miss_locks_and_allocates_and_is_seen),
		cmocka_unit_test(a_guard_does_nothing_else),
		cmocka_unit_test(a_miss_enters_the_kernel_and_is_seen),
		cmocka_unit_test(an_allow_from_credit_does_nothing_else),
		cmocka_unit_test(an_allow_from_a_cell_does_nothing_else),
		cmocka_unit_test(an_allow_from_a_place_does_nothing_else),
		cmocka_unit_test(a_denial_of_a_lease_does_nothing_else),
		cmocka_unit_test(a_denial_of_a_place_does_nothing_else),
		cmocka_unit_test(a_remembered_denial_does_nothing_else),
		cmocka_unit_test(a_denial_for_ever_does_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
