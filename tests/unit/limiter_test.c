/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * limiter_test.c -- handles: how they are opened, used, closed, and used after that.
 */
#define _POSIX_C_SOURCE 200809L
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "face/face.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define LONG_US GALE_SECONDS(30)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct house_plan plan_of(uint64_t limit)
{
	return (struct house_plan){ .rule = gale_fixed_window(limit, GALE_HOURS(1)),
		                    .shards = 1 };
}

/* ---- Asking ---------------------------------------------------------------------- */

static void an_answer_says_how_long_everything_takes(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	answer = house_ask(&h, "k");
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(answer.why, GALE_WHY_RULE);
	assert_int_equal(answer.limit, 2);
	assert_int_equal(answer.remaining, 1);
	assert_int_equal(answer.reset_after_us, GALE_MINUTES(59));
	assert_int_equal(answer.retry_after_us, 0);
	(void)house_ask(&h, "k");
	test_clock_advance(&h.clock, GALE_MINUTES(9));
	answer = house_ask(&h, "k");
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.retry_after_us, GALE_MINUTES(50));
	test_clock_advance(&h.clock, GALE_MINUTES(50));
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&h));
}

static void costs_count_in_full_or_not_at_all(void **state)
{
	struct house_plan plan = plan_of(10);
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(ask_settled(h.seat, h.limiter, "k", 1, 7).remaining, 3);
	assert_int_equal(ask_settled(h.seat, h.limiter, "k", 1, 4).verdict, GALE_DENY);
	assert_int_equal(ask_settled(h.seat, h.limiter, "k", 1, 3).remaining, 0);
	answer = ask_settled(h.seat, h.limiter, "fresh", 5, 11);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(answer.retry_after_us == GALE_NEVER); /* L7 */
	answer = ask_settled(h.seat, h.limiter, "fresh", 5, GALE_UNITS_MAX);
	assert_true(answer.retry_after_us == GALE_NEVER);
	assert_int_equal(ask_settled(h.seat, h.limiter, "fresh", 5, 10).remaining, 0);
	assert_true(house_close(&h));
}

static void the_longest_and_the_shortest_key_are_keys(void **state)
{
	struct house_plan plan = plan_of(1);
	uint8_t key[GALE_KEY_MAX];
	char name[GALE_NAME_MAX + 1];
	struct gale_limiter *longest;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	memset(name, 'n', GALE_NAME_MAX);
	name[GALE_NAME_MAX] = '\0';
	longest = house_limiter(&h, name, plan.rule);
	memset(key, 0, sizeof(key));
	for (int round = 0; round < 2; round++) {
		enum gale_verdict verdict = round == 0 ? GALE_ALLOW : GALE_DENY;

		assert_int_equal(
		    ask_settled(h.seat, longest, key, sizeof(key), 1).verdict, verdict);
		assert_int_equal(
		    ask_settled(h.seat, longest, key, sizeof(key) - 1, 1).verdict,
		    verdict);
		assert_int_equal(ask_settled(h.seat, longest, key, 1, 1).verdict,
		                 verdict);
	}
	gale_limiter_close(longest);
	assert_true(house_close(&h));
}

static void limiters_of_one_name_share_their_keys_and_others_do_not(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_limiter *same, *other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	same = house_limiter(&h, "house", plan.rule);
	other = house_limiter(&h, "House", plan.rule);
	assert_int_equal(house_ask(&h, "k").remaining, 1);
	assert_int_equal(ask_settled(h.seat, same, "k", 1, 1).remaining, 0);
	assert_int_equal(ask_settled(h.seat, other, "k", 1, 1).remaining, 1);
	gale_limiter_close(same);
	gale_limiter_close(other);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_true(house_close(&h));
}

static void what_was_configured_is_copied(void **state)
{
	struct house_plan plan = plan_of(2);
	char name[] = "copied", url[] = "memory:copied";
	struct gale_store_config store_config = { .url = url };
	struct gale_limiter_config config = { .name = name, .rule = plan.rule };
	struct gale_limiter *limiter, *again;
	struct gale_store *store, *shared;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_store_open(h.runtime, &store_config, &store) == GALE_ERR_OK);
	config.store = store;
	must(gale_limiter_open(h.runtime, &config, &limiter) == GALE_ERR_OK);
	memset(name, 'x', sizeof(name));
	memset(url, 'x', sizeof(url));
	memset(&config, 0xff, sizeof(config));
	memset(&plan, 0xff, sizeof(plan));
	assert_int_equal(ask_settled(h.seat, limiter, "k", 1, 1).remaining, 1);

	store_config.url = "memory:copied";
	must(gale_store_open(h.runtime, &store_config, &shared) == GALE_ERR_OK);
	config = (struct gale_limiter_config){
		.name = "copied",
		.rule = gale_fixed_window(2, GALE_HOURS(1)),
		.store = shared,
	};
	must(gale_limiter_open(h.runtime, &config, &again) == GALE_ERR_OK);
	assert_int_equal(ask_settled(h.seat, again, "k", 1, 1).remaining, 0);
	gale_limiter_close(limiter);
	gale_limiter_close(again);
	gale_store_close(store);
	gale_store_close(shared);
	assert_true(house_close(&h));
}

static void looking_does_not_count_and_resetting_gives_all_back(void **state)
{
	struct house_plan plan = plan_of(10);
	struct gale_outlook forecast;
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &answer),
		                 GALE_ERR_OK);
		assert_int_equal(answer.verdict, GALE_ALLOW);
		assert_int_equal(answer.remaining, 10);
	}
	assert_int_equal(house_stats(&h).keys, 0);
	assert_int_equal(ask_settled(h.seat, h.limiter, "k", 1, 4).remaining, 6);
	assert_int_equal(
	    gale_forecast(h.seat, h.limiter, "k", 1, 4, LONG_US, &forecast),
	    GALE_ERR_OK);
	assert_int_equal(forecast.spendable_now, 1);
	assert_int_equal(forecast.next_after_us, GALE_MINUTES(59));
	assert_int_equal(forecast.full_after_us, GALE_MINUTES(59));
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, LONG_US), GALE_ERR_OK);
	assert_int_equal(ask_settled(h.seat, h.limiter, "k", 1, 10).remaining, 0);
	assert_true(house_close(&h));
}

static void a_place_that_is_given_back_is_anothers(void **state)
{
	struct house_plan plan = { .rule = gale_leaky_bucket(10, GALE_SECONDS(1),
		                                             GALE_MILLIS(300)) };
	struct gale_answer booked[4];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (uint64_t i = 0; i < 4; i++) {
		booked[i] = house_ask(&h, "k");
		assert_int_equal(booked[i].delay_ns, i * 100000000);
	}
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &booked[2]),
	                 GALE_ERR_OK);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &booked[2]),
	                 GALE_ERR_NOT_BOOKED);
	assert_int_equal(house_ask(&h, "k").delay_ns, 200000000);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	test_clock_advance(&h.clock, GALE_MILLIS(100) + 1);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &booked[1]),
	                 GALE_ERR_NOT_BOOKED); /* its time has come */
	assert_true(house_close(&h));
}

/* ---- Policies, and what is said of them ------------------------------------------ */

struct diary {
	struct gale_log log;
	char lines[8][256];
	unsigned count;
};

static void diary_write(struct gale_log *self, enum gale_level level,
                        const char *source, const char *line)
{
	struct diary *diary = (struct diary *)self;

	must(diary->count < COUNT(diary->lines));
	snprintf(diary->lines[diary->count++], sizeof(diary->lines[0]), "%s: %s: %s",
	         gale_level_name(level), source, line);
}

static void ask_often(struct house *h, struct gale_limiter *limiter, const char *key,
                      enum gale_why why, enum gale_verdict verdict)
{
	for (int i = 0; i < 100; i++) {
		struct gale_answer answer =
		    ask_settled(h->seat, limiter, key, strlen(key), 1);

		assert_int_equal(answer.why, why);
		assert_int_equal(answer.verdict, verdict);
		assert_int_equal(answer.limit, 1000);
		assert_int_equal(answer.remaining, 0);
	}
}

static void policy_decides(enum gale_on_outage policy, enum gale_verdict verdict)
{
	struct house_plan plan = plan_of(1000);
	struct diary diary = { .log = { diary_write } };
	struct gale_limiter *other;
	struct house h;

	plan.max_keys = 1;
	plan.on_outage = policy;
	plan.log = &diary.log;
	house_open(&h, &plan);
	other = house_limiter(&h, "house", gale_gcra(1000, GALE_HOURS(1), 1000));
	assert_int_equal(house_ask(&h, "the only key").why, GALE_WHY_RULE);
	assert_int_equal(diary.count, 0);
	ask_often(&h, h.limiter, "secret", GALE_WHY_FULL, verdict);
	assert_int_equal(diary.count, 1);
	assert_string_equal(diary.lines[0],
	                    "error: limiter house: "
	                    "the store holds max_keys keys, and this key is new");
	ask_often(&h, other, "the only key", GALE_WHY_CHANGED, GALE_DENY);
	assert_int_equal(diary.count, 2);
	assert_string_equal(
	    diary.lines[1],
	    "error: limiter house: the key has counts of another kind of rule");
	ask_often(&h, h.limiter, "secret", GALE_WHY_FULL, verdict);
	ask_often(&h, other, "secret", GALE_WHY_FULL, GALE_DENY);
	assert_int_equal(diary.count, 3); /* the other limiter's first */

	assert_int_equal(gale_reset(h.seat, h.limiter, "the only key", 12, LONG_US),
	                 GALE_ERR_OK);
	h.allocator.fail_first = 1;
	h.allocator.fail_last = UINT64_MAX;
	ask_often(&h, h.limiter, "secret", GALE_WHY_MEMORY, verdict);
	h.allocator.fail_last = 0;
	assert_int_equal(diary.count, 4);
	assert_int_equal(house_ask(&h, "secret").why, GALE_WHY_RULE);
	gale_limiter_close(other);
	assert_true(house_close(&h));
	for (unsigned i = 0; i < diary.count; i++)
		assert_null(strstr(diary.lines[i], "secret"));
}

static void when_the_store_cannot_answer_the_policy_does_and_says_so_once(void **state)
{
	(void)state;
	policy_decides(GALE_ON_OUTAGE_DENY, GALE_DENY);
	policy_decides(GALE_ON_OUTAGE_ALLOW, GALE_ALLOW);
}

/* ---- Closing --------------------------------------------------------------------- */

static void close_one(struct house *h, unsigned what)
{
	switch (what) {
	case 0:
		gale_runtime_close(h->runtime);
		break;
	case 1:
		gale_store_close(h->store);
		break;
	case 2:
		gale_limiter_close(h->limiter);
		break;
	default:
		gale_leave(h->seat);
		break;
	}
}

/* The n-th order of four things: each digit says which of those that are left. */
static void close_in_order(struct house *h, unsigned n)
{
	unsigned left[] = { 0, 1, 2, 3 };

	for (unsigned count = 4; count > 0; count--) {
		unsigned at = n % count;

		n /= count;
		close_one(h, left[at]);
		memmove(&left[at], &left[at + 1], (3 - at) * sizeof(left[0]));
		if (count > 1)
			assert_false(test_allocator_is_balanced(&h->allocator));
	}
}

static void handles_may_be_closed_in_any_order(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 24; n++) {
		struct house_plan plan = plan_of(2);
		struct house h;

		plan.url = n % 2 ? "memory:order" : NULL;
		house_open(&h, &plan);
		assert_int_equal(house_ask(&h, "k").verdict, GALE_ALLOW);
		close_in_order(&h, n);
		assert_true(test_allocator_is_balanced(&h.allocator));
	}
}

static void closing_nothing_does_nothing(void **state)
{
	(void)state;
	gale_runtime_close(NULL);
	gale_store_close(NULL);
	gale_limiter_close(NULL);
	gale_leave(NULL);
}

static void a_limiter_lives_on_when_its_stores_handle_is_closed(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_counts stats;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	gale_store_close(h.store);
	assert_int_equal(house_ask(&h, "k").remaining, 1);
	assert_int_equal(house_wait(&h, "k").remaining, 0);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_int_equal(gale_store_stats(h.store, &stats), GALE_ERR_STORE);
	h.store = NULL;
	assert_true(house_close(&h));
}

static void a_closed_limiter_is_refused_and_named(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_outlook forecast;
	struct gale_answer answer = { .slot = { 1, 0 } };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	gale_limiter_close(h.limiter);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &answer),
	                 GALE_ERR_LIMITER);
	assert_int_equal(
	    gale_forecast(h.seat, h.limiter, "k", 1, 1, LONG_US, &forecast),
	    GALE_ERR_LIMITER);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, LONG_US),
	                 GALE_ERR_LIMITER);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &answer),
	                 GALE_ERR_LIMITER);
	h.limiter = NULL;
	assert_true(house_close(&h));
}

static void a_closed_runtime_is_refused_and_what_was_opened_of_it_too(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_limiter_config config = { .name = "late", .rule = plan.rule };
	struct gale_limiter *limiter = NULL;
	struct gale_store *store = NULL;
	struct gale_seat *seat = NULL;
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.on_outage = GALE_ON_OUTAGE_ALLOW; /* closed is not an outage */
	house_open(&h, &plan);
	gale_runtime_close(h.runtime);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &answer),
	                 GALE_ERR_RUNTIME);
	assert_int_equal(gale_join(h.runtime, &seat), GALE_ERR_RUNTIME);
	assert_int_equal(gale_store_open(h.runtime, NULL, &store), GALE_ERR_RUNTIME);
	config.store = h.store;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &limiter),
	                 GALE_ERR_RUNTIME);
	assert_true(!seat && !store && !limiter);
	h.runtime = NULL;
	assert_true(house_close(&h));
}

static void handles_of_another_runtime_are_refused(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_limiter_config config = { .name = "mixed", .rule = plan.rule };
	struct gale_limiter *limiter = NULL;
	struct gale_answer answer;
	struct house one, two;

	(void)state;
	house_open(&one, &plan);
	house_open(&two, &plan);
	answer = ask_settled(one.seat, two.limiter, "k", 1, 1);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_BAD_ASK);
	assert_int_equal(gale_wait(two.seat, one.limiter, "k", 1, 1, 0).why,
	                 GALE_WHY_BAD_ASK);
	assert_int_equal(gale_peek(one.seat, two.limiter, "k", 1, LONG_US, &answer),
	                 GALE_ERR_LIMITER);
	config.store = two.store;
	assert_int_equal(gale_limiter_open(one.runtime, &config, &limiter),
	                 GALE_ERR_STORE);
	assert_null(limiter);
	assert_true(house_close(&one));
	assert_int_equal(house_ask(&two, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&two));
}

/* ---- Over and over --------------------------------------------------------------- */

static void a_thousand_handles_of_one_runtime_leave_memory_flat(void **state)
{
	struct house_plan plan = plan_of(1000000);
	uint64_t after_a_hundred = 0;
	struct house h;

	(void)state;
	plan.pending_max = 4;
	house_open(&h, &plan);
	for (int i = 0; i < 1000; i++) {
		struct gale_limiter *limiter = house_limiter(&h, "again", plan.rule);
		struct gale_store_config config = { .url = "memory:again" };
		struct gale_store *store;
		struct gale_seat *seat;

		must(gale_store_open(h.runtime, &config, &store) == GALE_ERR_OK);
		must(gale_join(h.runtime, &seat) == GALE_ERR_OK);
		assert_int_equal(ask_settled(seat, limiter, "k", 1, 1).verdict,
		                 GALE_ALLOW);
		gale_limiter_close(limiter);
		gale_leave(seat);
		gale_store_close(store);
		if (i == 100)
			after_a_hundred = h.allocator.bytes;
	}
	assert_in_range(h.allocator.bytes, 1, after_a_hundred);
	assert_true(house_close(&h));
}

static void a_thousand_runtimes_leave_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct house_plan plan = plan_of(2);
		struct house h;

		plan.pending_max = 1;
		house_open(&h, &plan);
		assert_int_equal(house_ask(&h, "k").verdict, GALE_ALLOW);
		assert_true(house_close(&h));
	}
}

static void a_runtime_opens_as_many_shards_as_asked(void **state)
{
	static const uint32_t counts[] = { 1, 2, 5, 256 };

	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		struct house_plan plan = plan_of(2);
		struct house h;

		plan.shards = counts[i];
		house_open(&h, &plan);
		assert_int_equal(h.runtime->shard_count, counts[i]);
		assert_int_equal(house_ask(&h, "k").verdict, GALE_ALLOW);
		assert_true(house_close(&h));
	}
}

/* ---- A store that is opened while its runtime is closed -------------------------- */

/* Stops a thread in the middle of gale_store_open. */
struct gated {
	struct test_allocator test;
	struct gale_allocator front;
	sem_t inside;
	sem_t leave;
	struct gale_runtime *runtime;
};
static _Thread_local bool stop_here;

static struct gated *gated_of(struct gale_allocator *front)
{
	return (struct gated *)((char *)front - offsetof(struct gated, front));
}

static void *gated_alloc(struct gale_allocator *self, size_t bytes)
{
	struct gated *gated = gated_of(self);

	if (stop_here && bytes > 4096) { /* the store itself, not its handle */
		stop_here = false;
		must(sem_post(&gated->inside) == 0);
		while (sem_wait(&gated->leave) != 0)
			continue;
	}
	return gated->test.allocator.alloc(&gated->test.allocator, bytes);
}

static void gated_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	struct gated *gated = gated_of(self);

	gated->test.allocator.free(&gated->test.allocator, memory, bytes);
}

static void *open_store(void *arg)
{
	struct gated *gated = arg;
	struct gale_store *store;

	stop_here = true;
	if (gale_store_open(gated->runtime, NULL, &store) == GALE_ERR_OK)
		gale_store_close(store);
	must(!stop_here);
	return NULL;
}

static int open_while_closing(void *arg)
{
	struct gated gated = { .front = { gated_alloc, gated_free } };
	struct gale_config config = { .shards = 1, .allocator = &gated.front };
	struct gale_seat *seat; /* keeps what is left of the runtime */
	pthread_t opener;

	(void)arg;
	test_allocator_init(&gated.test);
	must(sem_init(&gated.inside, 0, 0) == 0 && sem_init(&gated.leave, 0, 0) == 0);
	must(gale_runtime_open(&config, &gated.runtime) == GALE_ERR_OK);
	must(gale_join(gated.runtime, &seat) == GALE_ERR_OK);
	must(pthread_create(&opener, NULL, open_store, &gated) == 0);
	while (sem_wait(&gated.inside) != 0)
		continue;
	gale_runtime_close(gated.runtime);
	must(sem_post(&gated.leave) == 0);
	must(pthread_join(opener, NULL) == 0);
	gale_leave(seat);
	return test_allocator_is_balanced(&gated.test) ? 0 : 1;
}

/* It would wake a shard that is gone, through a descriptor that is someone else's. */
static void
opening_a_store_while_the_runtime_closes_touches_nothing_closed(void **state)
{
	(void)state;
	assert_int_equal(child_run(open_while_closing, NULL), 0);
}

static void the_version_is_the_headers(void **state)
{
	char version[32];

	(void)state;
	snprintf(version, sizeof(version), "%d.%d.%d", GALE_VERSION_MAJOR,
	         GALE_VERSION_MINOR, GALE_VERSION_PATCH);
	assert_string_equal(gale_version(), version);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    opening_a_store_while_the_runtime_closes_touches_nothing_closed),
		cmocka_unit_test(an_answer_says_how_long_everything_takes),
		cmocka_unit_test(costs_count_in_full_or_not_at_all),
		cmocka_unit_test(the_longest_and_the_shortest_key_are_keys),
		cmocka_unit_test(
		    limiters_of_one_name_share_their_keys_and_others_do_not),
		cmocka_unit_test(what_was_configured_is_copied),
		cmocka_unit_test(looking_does_not_count_and_resetting_gives_all_back),
		cmocka_unit_test(a_place_that_is_given_back_is_anothers),
		cmocka_unit_test(
		    when_the_store_cannot_answer_the_policy_does_and_says_so_once),
		cmocka_unit_test(handles_may_be_closed_in_any_order),
		cmocka_unit_test(closing_nothing_does_nothing),
		cmocka_unit_test(a_limiter_lives_on_when_its_stores_handle_is_closed),
		cmocka_unit_test(a_closed_limiter_is_refused_and_named),
		cmocka_unit_test(
		    a_closed_runtime_is_refused_and_what_was_opened_of_it_too),
		cmocka_unit_test(handles_of_another_runtime_are_refused),
		cmocka_unit_test(a_thousand_handles_of_one_runtime_leave_memory_flat),
		cmocka_unit_test(a_thousand_runtimes_leave_nothing),
		cmocka_unit_test(a_runtime_opens_as_many_shards_as_asked),
		cmocka_unit_test(the_version_is_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
