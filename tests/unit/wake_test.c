/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wake_test.c -- no wake-up is lost, and none is written twice.
 *
 * A lost wake-up is a thread that sleeps for ever; here it sleeps for half a minute,
 * and that is the failure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/actor.h"
#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/wake.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/sleeps.h"

#define ROUNDS LONG_OR_BRIEF(100000, 20000)
#define TOO_LONG_NS UINT64_C(30000000000)

static bool is_readable(const struct wake *wake)
{
	struct pollfd ready = { .fd = wake->fd, .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static void it_is_readable_from_the_first_raise_until_the_clear(void **state)
{
	struct wake wake;

	(void)state;
	assert_true(wake_open(&wake));
	for (int round = 0; round < 3; round++) {
		assert_false(is_readable(&wake));
		wake_raise(&wake);
		assert_true(is_readable(&wake));
		wake_raise(&wake);
		assert_true(is_readable(&wake));
		wake_clear(&wake);
		assert_false(is_readable(&wake));
		wake_clear(&wake);
	}
	wake_close(&wake);
}

static void any_number_of_raises_is_one_write(void **state)
{
	struct wake wake;
	uint64_t writes;

	(void)state;
	assert_true(wake_open(&wake));
	for (int i = 0; i < 1000; i++)
		wake_raise(&wake);
	assert_int_equal(read(wake.fd, &writes, sizeof(writes)), sizeof(writes));
	assert_int_equal(writes, 1);
	wake_close(&wake);
}

/* The raiser has been held up between the word and the descriptor; nobody may find this
 * readable for ever. */
static void what_is_written_after_the_clear_is_cleared_by_the_next(void **state)
{
	const uint64_t one = 1;
	struct wake wake;

	(void)state;
	assert_true(wake_open(&wake));
	for (int round = 0; round < 3; round++) {
		store_relaxed(&wake.raised, true);
		wake_clear(&wake);
		wake_clear(&wake);
		assert_int_equal(write(wake.fd, &one, sizeof(one)), sizeof(one));
		assert_true(is_readable(&wake));
		wake_clear(&wake);
		assert_false(is_readable(&wake));
		wake_raise(&wake);
		assert_true(is_readable(&wake));
		wake_clear(&wake);
		assert_false(is_readable(&wake));
	}
	wake_close(&wake);
}

static void its_descriptor_is_closed_on_exec_and_never_blocks(void **state)
{
	struct wake wake;
	uint64_t writes;

	(void)state;
	assert_true(wake_open(&wake));
	assert_true(fcntl(wake.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(read(wake.fd, &writes, sizeof(writes)), -1);
	wake_close(&wake);
}

static void a_wait_ends_at_its_deadline(void **state)
{
	struct wake wake;
	uint64_t deadline = patience_now_ns() + 5000000;

	(void)state;
	assert_true(wake_open(&wake));
	while (patience_now_ns() < deadline)
		wake_wait(&wake, NULL, deadline);
	wake_wait(&wake, NULL, deadline); /* passed */
	wake_wait(&wake, NULL, 0);
	assert_in_range(patience_now_ns() - deadline, 0, TOO_LONG_NS);
	wake_close(&wake);
}

static void a_wait_for_what_was_raised_before_does_not_sleep(void **state)
{
	struct wake wake;
	uint64_t before = patience_now_ns();

	(void)state;
	assert_true(wake_open(&wake));
	wake_raise(&wake);
	wake_wait(&wake, NULL, UINT64_MAX);
	wake_wait(&wake, NULL, before + TOO_LONG_NS);
	assert_in_range(patience_now_ns() - before, 0, TOO_LONG_NS / 2);
	wake_close(&wake);
}

/* ---- Polling --------------------------------------------------------------------- */

#define FOREVER_NS (2 * TOO_LONG_NS)
#define MOMENT_NS 5000
#define TRIES 50 /* anything may make a thread sleep, now and then */

struct couch {
	struct wake wake;
	int epoll_fd;
	struct poller poller; /* the waiter's */
	_Atomic pid_t waiter;
	_Atomic bool waits;
	uint64_t before; /* it waits: its sleeps */
	uint64_t slept;  /* while it did */
	bool on_epoll;
	bool raised_asleep; /* or while it polls */
};

static void couch_open(struct couch *couch, uint64_t poll_ns)
{
	struct epoll_event readable = { .events = EPOLLIN };

	couch->poller = (struct poller){ .poll_ns = poll_ns };
	assert_true(wake_open(&couch->wake));
	couch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(
	    epoll_ctl(couch->epoll_fd, EPOLL_CTL_ADD, couch->wake.fd, &readable), 0);
	atomic_init(&couch->waiter, 0);
	atomic_init(&couch->waits, false);
}

static void couch_close(const struct couch *couch)
{
	close(couch->epoll_fd);
	close(couch->wake.fd);
}

static bool sleeps_now(struct couch *couch)
{
	return sleeps_of(load_relaxed(&couch->waiter)) > couch->before;
}

/* Who has heard that the other waits, and for long enough that it would sleep, raises. */
static void raise_later(struct couch *couch)
{
	static const struct timespec a_while = { .tv_nsec = 2000000 };
	uint64_t deadline = patience_now_ns() + TOO_LONG_NS;

	while (!load_acquire(&couch->waits)) /* waits */
		sched_yield();
	do
		nanosleep(&a_while, NULL);
	while (couch->raised_asleep && !sleeps_now(couch) &&
	       patience_now_ns() < deadline);
	wake_raise(&couch->wake);
}

static void lie_down(struct couch *couch)
{
	store_relaxed(&couch->waiter, (pid_t)syscall(SYS_gettid));
	couch->before = sleeps_of(load_relaxed(&couch->waiter));
	store_release(&couch->waits, true); /* waits */
	if (couch->on_epoll)
		wake_wait_on(couch->epoll_fd, &couch->poller, UINT64_MAX);
	else
		wake_wait(&couch->wake, &couch->poller, UINT64_MAX);
	couch->slept = sleeps_of(load_relaxed(&couch->waiter)) - couch->before;
}

static void wait_or_raise(void *arg, unsigned who)
{
	if (who == 0)
		lie_down(arg);
	else
		raise_later(arg);
}

/* So often it slept, until it was raised; 0 if it rested, as others kept the processor. */
static uint64_t sleeps_of_wait(bool on_epoll, bool raised_asleep)
{
	struct couch couch = { .on_epoll = on_epoll, .raised_asleep = raised_asleep };

	couch_open(&couch, raised_asleep ? 1000000 : FOREVER_NS);
	crew_run(2, wait_or_raise, &couch);
	assert_true(is_readable(&couch.wake));
	couch_close(&couch);
	return couch.poller.rests_ns > 0 && !raised_asleep ? 0 : couch.slept;
}

static void who_polls_is_not_asleep_when_it_is_raised(void **state)
{
	(void)state;
	for (int on_epoll = 0; on_epoll <= 1; on_epoll++) {
		unsigned tries = 0;

		while (sleeps_of_wait(on_epoll, /* raised_asleep= */ false) > 0)
			assert_in_range(++tries, 0, TRIES);
	}
}

static void who_has_polled_long_enough_sleeps(void **state)
{
	(void)state;
	for (int on_epoll = 0; on_epoll <= 1; on_epoll++)
		assert_true(sleeps_of_wait(on_epoll, /* raised_asleep= */ true) > 0);
}

static void who_polls_looks_at_its_deadline(void **state)
{
	struct couch couch;
	uint64_t begin = patience_now_ns();

	(void)state;
	couch_open(&couch, FOREVER_NS);
	wake_wait(&couch.wake, &couch.poller, 0);
	wake_wait(&couch.wake, &couch.poller, begin + 5000000);
	wake_wait_on(couch.epoll_fd, &couch.poller, patience_now_ns() + 5000000);
	assert_in_range(patience_now_ns() - begin, 5000000, TOO_LONG_NS);
	couch_close(&couch);
}

/* ---- Where others keep the processor --------------------------------------------- */

struct one_processor {
	struct couch couch;
	_Atomic bool over;
};

static void stay_on_one_processor(void)
{
	cpu_set_t ours, one;
	size_t number = 0;

	must(sched_getaffinity(0, sizeof(ours), &ours) == 0);
	while (!CPU_ISSET(number, &ours))
		number++;
	CPU_ZERO(&one);
	CPU_SET(number, &one);
	must(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void poll_or_keep(void *arg, unsigned who)
{
	struct one_processor *p = arg;
	struct couch *couch = &p->couch;
	uint64_t deadline = patience_now_ns() + TOO_LONG_NS;

	stay_on_one_processor();
	while (who == 1 && !load_relaxed(&p->over))
		continue;
	while (who == 0 && couch->poller.rests_ns == 0 && patience_now_ns() < deadline)
		wake_wait(&couch->wake, &couch->poller, patience_now_ns() + 1000000);
	store_relaxed(&p->over, true);
}

static void who_is_kept_from_its_processor_rests(void **state)
{
	struct one_processor p = { .over = false };
	uint64_t before = patience_now_ns();

	(void)state;
	couch_open(&p.couch, FOREVER_NS);
	crew_run(2, poll_or_keep, &p);
	assert_true(p.couch.poller.rests_ns > before);
	couch_close(&p.couch);
}

static void who_rests_sleeps_at_once(void **state)
{
	struct couch couch = { .raised_asleep = true };

	(void)state;
	couch_open(&couch, FOREVER_NS);
	couch.poller.rests_ns = UINT64_MAX;
	crew_run(2, wait_or_raise, &couch);
	assert_true(couch.slept > 0);
	couch_close(&couch);
}

/* ---- On an epoll ----------------------------------------------------------------- */

static void check_deadline_on(int fd)
{
	uint64_t deadline = patience_now_ns() + 5000000;
	unsigned waits = 0;

	wake_wait_on(fd, NULL, 0); /* passed */
	for (; patience_now_ns() < deadline; waits++)
		wake_wait_on(fd, NULL, deadline);
	assert_in_range(waits, 0, 100); /* it slept */
	assert_in_range(patience_now_ns() - deadline, 0, TOO_LONG_NS);
}

static void check_raised_on(int fd)
{
	uint64_t before = patience_now_ns();

	wake_wait_on(fd, NULL, UINT64_MAX);
	wake_wait_on(fd, NULL, before + TOO_LONG_NS);
	assert_in_range(patience_now_ns() - before, 0, TOO_LONG_NS / 2);
}

/* Something is about to come: told once. */
static int tell_early(int epoll_fd)
{
	struct epoll_event early = { .events = EPOLLOUT | EPOLLET,
		                     .data.u64 = WATCH_EARLY };
	int fd = eventfd(0, EFD_CLOEXEC);

	must(fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &early) == 0);
	return fd;
}

static bool tells_nothing(int epoll_fd)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, 0) == 0;
}

/* How long a wait takes that is told it, and nothing else, and whether that is over then. */
static uint64_t wait_told_early(int epoll_fd)
{
	uint64_t begin = patience_now_ns(), took;
	int fd = tell_early(epoll_fd);

	wake_wait_on(epoll_fd, NULL, begin + TOO_LONG_NS);
	took = patience_now_ns() - begin;
	must(tells_nothing(epoll_fd));
	close(fd);
	return took;
}

/* For a moment: longer than a look, and shorter than anybody would wait. */
static bool looks_a_moment(int epoll_fd)
{
	uint64_t least = UINT64_MAX, took;

	for (int i = 0; i < TRIES; i++) {
		took = wait_told_early(epoll_fd);
		if (took < least)
			least = took;
	}
	return least >= MOMENT_NS && least < 100 * MOMENT_NS;
}

/* From here on the kernel has no wait on an epoll by nanoseconds, or gives that reason. */
static void refuse_that_wait(int reason)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)reason),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = 4, .filter = steps };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static int wait_without(void *arg)
{
	struct epoll_event readable = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t begin = patience_now_ns(), ended;
	struct wake wake;

	must(wake_open(&wake));
	must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake.fd, &readable) == 0);
	refuse_that_wait(*(const int *)arg);
	wake_wait_on(epoll_fd, NULL, begin + 5000000);
	ended = patience_now_ns();
	must(ended >= begin + 5000000); /* it slept */
	wake_raise(&wake);
	wake_wait_on(epoll_fd, NULL, ended + TOO_LONG_NS);
	must(patience_now_ns() - ended < TOO_LONG_NS / 2);
	wake_clear(&wake);
	return looks_a_moment(epoll_fd) ? 0 : 1;
}

static void a_wait_on_an_epoll_does_without_the_kernels(void **state)
{
	int reasons[] = { ENOSYS, EPERM };

	(void)state;
	assert_int_equal(child_run(wait_without, &reasons[0]), 0);
	assert_int_equal(child_run(wait_without, &reasons[1]), 0);
}

/* A descriptor of another kind is waited for as all are where the kernel has no such wait. */
static void a_wait_on_an_epoll_ends_at_its_deadline_or_when_it_tells(void **state)
{
	struct epoll_event readable = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct wake wake;

	(void)state;
	assert_true(wake_open(&wake));
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake.fd, &readable), 0);
	check_deadline_on(epoll_fd);
	check_deadline_on(wake.fd);
	check_deadline_on(-1);
	wake_raise(&wake);
	check_raised_on(epoll_fd);
	check_raised_on(wake.fd);
	wake_clear(&wake);
	check_deadline_on(epoll_fd);
	close(epoll_fd);
	wake_close(&wake);
}

static void who_is_told_early_looks_a_moment(void **state)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_true(looks_a_moment(epoll_fd));
	close(epoll_fd);
}

/* Nor does he look when it is there. */
static void who_polls_looks_on_when_he_is_told_early(void **state)
{
	struct epoll_event readable = { .events = EPOLLIN };
	struct poller poller = { .poll_ns = FOREVER_NS };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int fd = tell_early(epoll_fd);
	uint64_t begin = patience_now_ns();
	struct wake wake;

	(void)state;
	wake_wait_on(epoll_fd, &poller, begin + 5000000);
	assert_in_range(patience_now_ns() - begin, 5000000, TOO_LONG_NS);
	assert_true(tells_nothing(epoll_fd));
	assert_true(wake_open(&wake));
	must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake.fd, &readable) == 0);
	wake_raise(&wake);
	poller.rests_ns = 0;
	wake_wait_on(epoll_fd, &poller, UINT64_MAX);
	wake_close(&wake);
	close(fd);
	close(epoll_fd);
}

static int early_pays_on(void *arg)
{
	cpu_set_t before, few;
	unsigned last = 0;

	(void)arg;
	must(sched_getaffinity(0, sizeof(before), &before) == 0);
	must(wake_early_pays() == (CPU_COUNT(&before) > 1));
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &before))
			last = i;
	CPU_ZERO(&few);
	CPU_SET(last, &few);
	must(sched_setaffinity(0, sizeof(few), &few) == 0);
	return wake_early_pays() ? 1 : 0;
}

static void nobody_is_woken_early_on_the_only_processor(void **state)
{
	(void)state;
	assert_int_equal(child_run(early_pays_on, NULL), 0);
}

/* ---- Ping-pong ------------------------------------------------------------------- */

struct court {
	struct wake wakes[2];
	_Atomic unsigned balls[2]; /* that have come to this side */
	_Atomic bool lost;
};

static bool get(struct court *court, unsigned side, unsigned round)
{
	uint64_t deadline = patience_now_ns() + TOO_LONG_NS;

	for (;;) {
		wake_clear(&court->wakes[side]);
		if (load_relaxed(&court->balls[side]) > round)
			return true;
		if (load_relaxed(&court->lost) || patience_now_ns() >= deadline)
			break;
		wake_wait(&court->wakes[side], NULL, deadline);
	}
	store_relaxed(&court->lost, true);
	return false;
}

static void hit(struct court *court, unsigned side)
{
	add_relaxed(&court->balls[!side], 1);
	wake_raise(&court->wakes[!side]);
}

static void play(void *arg, unsigned side)
{
	struct court *court = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		if (side == 0)
			hit(court, side);
		if (!get(court, side, round))
			return;
		if (side == 1)
			hit(court, side);
	}
}

static void wake_ups_to_and_fro_are_none_too_few(void **state)
{
	struct court court = { .lost = false };

	(void)state;
	assert_true(wake_open(&court.wakes[0]));
	assert_true(wake_open(&court.wakes[1]));
	crew_run(2, play, &court);
	assert_false(court.lost);
	assert_int_equal(court.balls[0], ROUNDS);
	assert_int_equal(court.balls[1], ROUNDS);
	wake_close(&court.wakes[0]);
	wake_close(&court.wakes[1]);
}

/* Four who ring without waiting for anybody; what the last of them rang must be seen. */
struct bell {
	struct wake wake;
	_Atomic unsigned rung[4];
	_Atomic bool lost;
};

static void ring(struct bell *bell, unsigned who)
{
	for (unsigned i = 1; i <= ROUNDS; i++) {
		store_relaxed(&bell->rung[who], i);
		wake_raise(&bell->wake);
	}
}

static bool all_has_been_rung(struct bell *bell)
{
	for (unsigned who = 0; who < 4; who++)
		if (load_relaxed(&bell->rung[who]) < ROUNDS)
			return false;
	return true;
}

static void ring_or_look(void *arg, unsigned who)
{
	struct bell *bell = arg;
	uint64_t deadline = patience_now_ns() + TOO_LONG_NS;

	if (who < 4) {
		ring(bell, who);
		return;
	}
	for (;;) {
		wake_clear(&bell->wake);
		if (all_has_been_rung(bell))
			return;
		if (patience_now_ns() >= deadline)
			break;
		wake_wait(&bell->wake, NULL, deadline);
	}
	store_relaxed(&bell->lost, true);
}

static void the_last_of_four_raisers_is_seen(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		struct bell bell = { .lost = false };

		assert_true(wake_open(&bell.wake));
		crew_run(5, ring_or_look, &bell);
		assert_false(bell.lost);
		wake_close(&bell.wake);
	}
}

/* ---- An actor, which sleeps on a wake -------------------------------------------- */

struct echo {
	struct actor actor;
	struct mail_slot slots[64];
	struct wake wake;
	_Atomic unsigned heard;
};

static void on_mail(struct actor *self, void *mail)
{
	struct echo *echo = (struct echo *)self;

	(void)mail;
	add_relaxed(&echo->heard, 1);
	wake_raise(&echo->wake);
}

static uint64_t no_chores(struct actor *self)
{
	(void)self;
	return UINT64_MAX;
}

static const struct actor_ops echo_ops = { .on_mail = on_mail, .chores = no_chores };

static void echo_open(struct echo *echo, uint64_t poll_ns)
{
	atomic_init(&echo->heard, 0);
	assert_true(wake_open(&echo->wake));
	assert_true(actor_open(&echo->actor, &echo_ops, echo->slots, 64));
	assert_true(actor_start(&echo->actor, "echo", poll_ns));
}

/* Posted to, and answered, within a time in which nobody sleeps by mistake. */
static bool is_heard(struct echo *echo, struct poller *poller, unsigned round)
{
	uint64_t deadline = patience_now_ns() + TOO_LONG_NS;

	must(actor_post(&echo->actor, echo));
	for (;;) {
		wake_clear(&echo->wake);
		if (load_relaxed(&echo->heard) > round)
			return true;
		if (patience_now_ns() >= deadline)
			return false;
		wake_wait(&echo->wake, poller, deadline);
	}
}

static void check_mail_is_heard(uint64_t poll_ns, unsigned rounds)
{
	struct poller poller = { .poll_ns = poll_ns };
	struct echo echo;
	unsigned heard = 0;

	echo_open(&echo, poll_ns);
	while (heard < rounds && is_heard(&echo, &poller, heard))
		heard++;
	actor_stop(&echo.actor);
	actor_close(&echo.actor);
	wake_close(&echo.wake);
	assert_int_equal(heard, rounds);
}

/* Of those who poll some have just begun to sleep. */
static void an_actor_never_sleeps_over_its_mail(void **state)
{
	(void)state;
	check_mail_is_heard(0, ROUNDS / 4);
	check_mail_is_heard(5000, ROUNDS / 16);
	check_mail_is_heard(1000000, ROUNDS / 16);
}

static void an_actor_that_is_stopped_has_handled_what_was_posted_before(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct echo echo;
		unsigned posted = 0;

		echo_open(&echo, 0);
		while (posted < round % 64 && actor_post(&echo.actor, &echo))
			posted++;
		actor_stop(&echo.actor);
		actor_close(&echo.actor);
		assert_int_equal(echo.heard, posted);
		wake_close(&echo.wake);
	}
}

/* More than one turn's worth is waiting when it is told to stop. */
struct slow {
	struct actor actor;
	struct mail_slot slots[1024];
	_Atomic unsigned heard;
};

static void on_slow_mail(struct actor *self, void *mail)
{
	struct slow *slow = (struct slow *)self;

	(void)mail;
	while (!load_relaxed(&self->stopping))
		sched_yield();
	add_relaxed(&slow->heard, 1);
}

static const struct actor_ops slow_ops = { .on_mail = on_slow_mail,
	                                   .chores = no_chores };

static void an_actor_that_is_stopped_takes_as_many_turns_as_it_needs(void **state)
{
	static struct slow slow;

	(void)state;
	assert_true(actor_open(&slow.actor, &slow_ops, slow.slots, 1024));
	assert_true(actor_start(&slow.actor, "slow", 0));
	for (int i = 0; i < 1000; i++)
		assert_true(actor_post(&slow.actor, &slow));
	actor_stop(&slow.actor);
	actor_close(&slow.actor);
	assert_int_equal(slow.heard, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_readable_from_the_first_raise_until_the_clear),
		cmocka_unit_test(any_number_of_raises_is_one_write),
		cmocka_unit_test(
		    what_is_written_after_the_clear_is_cleared_by_the_next),
		cmocka_unit_test(its_descriptor_is_closed_on_exec_and_never_blocks),
		cmocka_unit_test(a_wait_ends_at_its_deadline),
		cmocka_unit_test(a_wait_for_what_was_raised_before_does_not_sleep),
		cmocka_unit_test(who_polls_is_not_asleep_when_it_is_raised),
		cmocka_unit_test(who_has_polled_long_enough_sleeps),
		cmocka_unit_test(who_polls_looks_at_its_deadline),
		cmocka_unit_test(who_is_kept_from_its_processor_rests),
		cmocka_unit_test(who_rests_sleeps_at_once),
		cmocka_unit_test(a_wait_on_an_epoll_does_without_the_kernels),
		cmocka_unit_test(who_is_told_early_looks_a_moment),
		cmocka_unit_test(who_polls_looks_on_when_he_is_told_early),
		cmocka_unit_test(nobody_is_woken_early_on_the_only_processor),
		cmocka_unit_test(
		    a_wait_on_an_epoll_ends_at_its_deadline_or_when_it_tells),
		cmocka_unit_test(wake_ups_to_and_fro_are_none_too_few),
		cmocka_unit_test(the_last_of_four_raisers_is_seen),
		cmocka_unit_test(an_actor_never_sleeps_over_its_mail),
		cmocka_unit_test(
		    an_actor_that_is_stopped_has_handled_what_was_posted_before),
		cmocka_unit_test(
		    an_actor_that_is_stopped_takes_as_many_turns_as_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
