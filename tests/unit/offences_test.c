/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offences_test.c -- which keys are refused most: noted however they are asked, and written for
 * operators.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <gale/hold.h>

#include "engine/offenders.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define ROOM 8192
#define TIMES 40 /* fewer than OFFENDERS_EACH */
#define PATIENCE GALE_SECONDS(30)
#define THREADS 4
#define TURNS LONG_OR_BRIEF(100000, 20000)

static const struct gale_rule rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                               .limit = 3,
	                               .period_us = GALE_HOURS(1) };

/* ---- The text --------------------------------------------------------------------- */

struct page {
	struct gale_sink sink;
	size_t length;
	char text[ROOM];
};

static bool keep(struct gale_sink *self, const char *text, size_t bytes)
{
	struct page *page = (struct page *)self;

	must(page->length + bytes < ROOM);
	memcpy(page->text + page->length, text, bytes);
	page->length += bytes;
	return true;
}

static struct page read_page(struct house *h)
{
	struct page page = { .sink = { keep } };

	must(gale_offenders_write(h->runtime, &page.sink) == GALE_ERR_OK);
	return page;
}

/* How often the key was refused, as the page says; it is 0 too high at most. */
static uint64_t refused(const struct page *page, const char *key, size_t key_len)
{
	char line[160];
	const char *at;
	uint64_t count, over;

	snprintf(line, sizeof(line),
	         "{\"limiter\":\"house\",\"key\":\"%s\",\"key_bytes\":%zu,\"refused\":",
	         key, key_len);
	at = strstr(page->text, line);
	if (!at)
		return 0;
	must(sscanf(at + strlen(line), "%" SCNu64 ",\"over\":%" SCNu64 "}\n", &count,
	            &over) == 2);
	assert_int_equal(over, 0);
	return count;
}

/* ---- Each way to ask -------------------------------------------------------------- */

struct asked {
	struct house *h;
	const char *key;
	struct gale_key *held;
};

static struct gale_answer by_name(const struct asked *asked)
{
	return house_ask(asked->h, asked->key);
}

static struct gale_answer by_wait(const struct asked *asked)
{
	return house_wait(asked->h, asked->key);
}

/* The seat has no other ask that is pending. */
static struct gale_answer settled(const struct asked *asked, struct gale_answer answer)
{
	struct pollfd ready = { .fd = gale_seat_fd(asked->h->seat), .events = POLLIN };
	struct gale_completion completion;

	if (answer.verdict != GALE_PENDING)
		return answer;
	while (gale_seat_completions(asked->h->seat, &completion, 1) == 0)
		must(poll(&ready, 1, 30000) == 1);
	return completion.answer;
}

static struct gale_answer by_many(const struct asked *asked)
{
	struct gale_question question = { .key = asked->key,
		                          .key_len = strlen(asked->key),
		                          .cost = 1 };
	struct gale_answer answer;

	gale_ask_many(asked->h->seat, asked->h->limiter, &question, 1, &answer);
	return settled(asked, answer);
}

static struct gale_answer by_held_key(const struct asked *asked)
{
	return settled(asked, gale_ask_key(asked->held, 1, NULL));
}

static struct gale_answer by_whole(const struct asked *asked)
{
	struct gale_part part = { .limiter = asked->h->limiter,
		                  .key = asked->key,
		                  .key_len = strlen(asked->key),
		                  .cost = 1 };
	struct gale_all all = { .parts = &part, .count = 1 };

	return gale_wait_all(asked->h->seat, &all, PATIENCE);
}

static struct gale_answer too_dear(const struct asked *asked)
{
	return gale_wait(asked->h->seat, asked->h->limiter, asked->key,
	                 strlen(asked->key), rule.limit + 1, PATIENCE);
}

static struct gale_answer (*const ways[])(const struct asked *) = {
	by_wait, by_name, by_many, by_held_key, by_whole, too_dear
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void expect_noted(const struct asked *asked, size_t way)
{
	uint64_t denied = 0;
	struct page page;

	for (int i = 0; i < TIMES; i++)
		denied += ways[way](asked).verdict == GALE_DENY;
	assert_true(denied >= TIMES - rule.limit);
	page = read_page(asked->h);
	assert_int_equal(refused(&page, asked->key, strlen(asked->key)), denied);
}

static void ask_in(enum gale_mode mode, size_t way, const char *key)
{
	struct house_plan plan = { .rule = rule, .mode = mode };
	struct asked asked = { .key = key };
	struct house h;

	house_open(&h, &plan);
	asked.h = &h;
	must(gale_key_open(h.seat, h.limiter, key, strlen(key), &asked.held) ==
	     GALE_ERR_OK);
	if (ways[way] != by_whole || mode == GALE_LEASED) /* others cannot be parts */
		expect_noted(&asked, way);
	gale_key_close(asked.held);
	assert_true(house_close(&h));
}

static void each_way_to_ask_is_noted(void **state)
{
	static const char *const keys[] = { "a", "client-000042",
		                            "a key that is longer than sixteen bytes" };

	(void)state;
	for (size_t way = 0; way < WAYS; way++)
		for (size_t i = 0; i < 3; i++) {
			ask_in(GALE_STRICT, way, keys[i]);
			ask_in(GALE_CACHED_DENY, way, keys[i]);
			ask_in(GALE_LEASED, way, keys[i]);
		}
}

/* ---- Many refusals ---------------------------------------------------------------- */

static void is_about(uint64_t count, uint64_t truth)
{
	assert_in_range(count, truth - truth / 10, truth + truth / 10);
}

/* From memory one in so many is noted: of two keys that are refused in turn, of both. */
static void many_refusals_are_counted_by_a_part_of_them(void **state)
{
	struct house_plan plan = { .rule = rule, .mode = GALE_LEASED };
	struct gale_question both[2] = { { "client-000001", 13, 1, NULL },
		                         { "client-000002", 13, 1, NULL } };
	struct gale_answer answers[2];
	struct house h;
	struct page page;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 5000; i++)
		for (int key = 0; key < 2; key++)
			(void)house_ask(&h, both[key].key);
	page = read_page(&h);
	is_about(refused(&page, both[0].key, 13), 5000);
	is_about(refused(&page, both[1].key, 13), 5000);
	for (int i = 0; i < 5000; i++)
		gale_ask_many(h.seat, h.limiter, both, 2, answers);
	page = read_page(&h);
	is_about(refused(&page, both[0].key, 13), 10000);
	is_about(refused(&page, both[1].key, 13), 10000);
	assert_true(house_metric(&h, "refused_from_memory") > 19000);
	assert_true(house_close(&h));
}

struct crowd {
	struct house *h;
	_Atomic unsigned ended;
};

/* The last one reads while the others are refused. */
static void be_refused(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct gale_seat *seat;

	if (who == THREADS) {
		while (crowd->ended < THREADS)
			must(read_page(crowd->h).length < ROOM);
		return;
	}
	must(gale_join(crowd->h->runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < TURNS; i++)
		(void)gale_wait(seat, crowd->h->limiter, "client-000001", 13, 1,
		                PATIENCE);
	gale_leave(seat);
	crowd->ended++;
}

/* A refusal that finds the table in use is not noted: the count is not too high. */
static void seats_note_at_once_and_one_reads(void **state)
{
	struct house_plan plan = { .rule = rule, .mode = GALE_LEASED };
	struct house h;
	struct crowd crowd = { .h = &h };
	struct page page;

	(void)state;
	house_open(&h, &plan);
	crew_run(THREADS + 1, be_refused, &crowd);
	page = read_page(&h);
	assert_in_range(refused(&page, "client-000001", 13), THREADS * TURNS / 4,
	                THREADS * TURNS + THREADS * TURNS / 10);
	assert_true(house_close(&h));
}

/* ---- What is written -------------------------------------------------------------- */

static void is_refused(struct house *h, const void *key, size_t key_len, int times)
{
	for (uint64_t i = 0; i < rule.limit + (uint64_t)times; i++)
		(void)gale_wait(h->seat, h->limiter, key, key_len, 1, PATIENCE);
}

static void keys_are_escaped_and_cut_and_the_most_is_first(void **state)
{
	static const uint8_t address[4] = { 127, 0, 10, 255 };
	struct house_plan plan = { .rule = rule };
	char key[GALE_KEY_MAX], cut[OFFENDERS_KEY + 1] = "";
	struct house h;
	struct page page;

	(void)state;
	house_open(&h, &plan);
	memset(key, 'k', sizeof(key));
	memset(cut, 'k', OFFENDERS_KEY);
	is_refused(&h, "quote\"\\\n", 8, 2);
	is_refused(&h, address, 4, 5);
	is_refused(&h, key, sizeof(key), 1);
	is_refused(&h, "never", 5, 0);
	page = read_page(&h);
	assert_int_equal(refused(&page, "quote\\u0022\\u005c\\u000a", 8), 2);
	assert_int_equal(refused(&page, "\\u007f\\u0000\\u000a\\u00ff", 4), 5);
	assert_int_equal(refused(&page, cut, GALE_KEY_MAX), 1);
	assert_null(strstr(page.text, "never"));
	assert_true(strstr(page.text, "\"refused\":5,") <
	            strstr(page.text, "\"refused\":2,"));
	assert_true(house_close(&h));
}

/* What is no decision of the rule is no offence, and a page without one is empty. */
static void what_the_rule_did_not_refuse_is_not_written(void **state)
{
	struct house_plan plan = { .rule = rule };
	struct house h;
	struct page page;

	(void)state;
	house_open(&h, &plan);
	must(house_wait(&h, "client").verdict == GALE_ALLOW);
	must(gale_wait(h.seat, h.limiter, "client", 6, 0, 0).why == GALE_WHY_BAD_ASK);
	must(gale_wait(h.seat, h.limiter, "", 0, 1, 0).why == GALE_WHY_BAD_ASK);
	page = read_page(&h);
	assert_int_equal(page.length, 0);
	assert_true(house_close(&h));
}

static void a_limiter_has_a_page_of_its_own_and_takes_it_along(void **state)
{
	struct house_plan plan = { .rule = rule };
	struct gale_limiter *other;
	struct house h;
	struct page page;

	(void)state;
	house_open(&h, &plan);
	other = house_limiter(&h, "other", rule);
	is_refused(&h, "client", 6, 7);
	for (uint64_t i = 0; i < rule.limit + 4; i++)
		(void)gale_wait(h.seat, other, "client", 6, 1, PATIENCE);
	page = read_page(&h);
	assert_int_equal(refused(&page, "client", 6), 7);
	assert_non_null(strstr(page.text,
	                       "{\"limiter\":\"other\",\"key\":\"client\","
	                       "\"key_bytes\":6,\"refused\":4,\"over\":0}\n"));
	gale_limiter_close(other);
	page = read_page(&h);
	assert_null(strstr(page.text, "other"));
	assert_true(house_close(&h));
}

static const char *after(const char *text, const char *part)
{
	const char *at = strstr(text, part);

	return at ? at + strlen(part) : NULL;
}

/* Plans of customers are limiters of one name.  Another store makes no difference to the text. */
static void limiters_of_one_name_are_told_together(void **state)
{
	struct house_plan plan = { .rule = rule };
	struct gale_limiter_config config = { .name = "house", .rule = rule };
	struct gale_limiter *twin, *stranger;
	struct house h;
	struct page page;

	(void)state;
	house_open(&h, &plan);
	config.store = h.store;
	must(gale_limiter_open(h.runtime, &config, &twin) == GALE_ERR_OK);
	stranger = house_limiter(&h, "stranger", rule);
	is_refused(&h, "client", 6, 7);
	is_refused(&h, "first", 5, 2);
	for (int i = 0; i < 4; i++)
		must(gale_wait(h.seat, twin, "client", 6, 1, PATIENCE).verdict ==
		     GALE_DENY);
	for (uint64_t i = 0; i < rule.limit + 9; i++)
		(void)gale_wait(h.seat, twin, "second", 6, 1, PATIENCE);
	page = read_page(&h);
	assert_int_equal(refused(&page, "client", 6), 11);
	assert_int_equal(refused(&page, "second", 6), 9);
	assert_int_equal(refused(&page, "first", 5), 2);
	assert_null(strstr(after(page.text, "\"client\""), "\"client\""));
	gale_limiter_close(twin);
	page = read_page(&h);
	assert_int_equal(refused(&page, "client", 6), 7);
	gale_limiter_close(stranger);
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_to_ask_is_noted),
		cmocka_unit_test(many_refusals_are_counted_by_a_part_of_them),
		cmocka_unit_test(seats_note_at_once_and_one_reads),
		cmocka_unit_test(keys_are_escaped_and_cut_and_the_most_is_first),
		cmocka_unit_test(what_the_rule_did_not_refuse_is_not_written),
		cmocka_unit_test(limiters_of_one_name_are_told_together),
		cmocka_unit_test(a_limiter_has_a_page_of_its_own_and_takes_it_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
