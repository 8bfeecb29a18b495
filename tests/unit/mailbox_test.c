/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * mailbox_test.c -- nothing is lost, nothing is doubled, full is an answer.
 *
 * Every test runs from several first tickets: the numbers wrap, and half-way round they
 * change their sign.
 */
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "runtime/atomic.h"
#include "runtime/mailbox.h"
#include "tests/support/crew.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SLOTS 8

static const uint64_t first_tickets[] = { 0, UINT64_MAX - 20, UINT64_MAX,
	                                  INT64_MAX - UINT64_C(3) };

struct box {
	struct mailbox mailbox;
	struct mail_slot slots[SLOTS];
};

static void open_at(struct box *b, uint64_t count, uint64_t ticket)
{
	mailbox_init(&b->mailbox, b->slots, count);
	assert_true(mailbox_valid(&b->mailbox));
	b->mailbox.own.head = ticket;
	store_relaxed(&b->mailbox.shared.tail, ticket);
	for (uint64_t i = 0; i < count; i++)
		store_relaxed(&b->slots[(ticket + i) & (count - 1)].turn, ticket + i);
	assert_true(mailbox_valid(&b->mailbox));
}

static void what_is_posted_is_taken_once_and_in_order(void **state)
{
	int mails[SLOTS];

	(void)state;
	for (size_t i = 0; i < COUNT(first_tickets); i++) {
		struct box b;

		open_at(&b, SLOTS, first_tickets[i]);
		assert_null(mailbox_take(&b.mailbox));
		for (int lap = 0; lap < 30; lap++) {
			for (int mail = 0; mail < 5; mail++)
				assert_true(mailbox_post(&b.mailbox, &mails[mail]));
			for (int mail = 0; mail < 5; mail++)
				assert_ptr_equal(mailbox_take(&b.mailbox),
				                 &mails[mail]);
			assert_null(mailbox_take(&b.mailbox));
			assert_true(mailbox_valid(&b.mailbox));
		}
	}
}

/* A sender that has a ticket, and has not run on, hides those behind it. */
static void who_is_just_posting_holds_up_others(void **state)
{
	struct box b;
	int mail;

	(void)state;
	open_at(&b, SLOTS, first_tickets[0]);
	assert_false(mailbox_is_held_up(&b.mailbox));
	add_relaxed(&b.mailbox.shared.tail, 1);
	assert_true(mailbox_post(&b.mailbox, &mail));
	assert_null(mailbox_take(&b.mailbox));
	assert_true(mailbox_is_held_up(&b.mailbox));
}

static void full_is_an_answer_and_loses_nothing(void **state)
{
	static const uint64_t counts[] = { 2, 4, SLOTS };
	int mails[SLOTS + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(first_tickets) * COUNT(counts); i++) {
		uint64_t count = counts[i % COUNT(counts)];
		struct box b;

		open_at(&b, count, first_tickets[i / COUNT(counts)]);
		for (int lap = 0; lap < 30; lap++) {
			for (uint64_t mail = 0; mail < count; mail++)
				assert_true(mailbox_post(&b.mailbox, &mails[mail]));
			assert_false(mailbox_post(&b.mailbox, &mails[count]));
			assert_false(mailbox_post(&b.mailbox, &mails[count]));
			assert_true(mailbox_valid(&b.mailbox));
			assert_ptr_equal(mailbox_take(&b.mailbox), &mails[0]);
			assert_true(mailbox_post(&b.mailbox, &mails[count]));
			assert_false(mailbox_post(&b.mailbox, &mails[0]));
			for (uint64_t mail = 1; mail <= count; mail++)
				assert_ptr_equal(mailbox_take(&b.mailbox),
				                 &mails[mail]);
			assert_null(mailbox_take(&b.mailbox));
		}
	}
}

/* Sender 1 has its ticket and is interrupted; sender 2 posts, and must wait for it. */
static void a_sender_that_pauses_hides_later_mail_and_loses_none(void **state)
{
	int slow, quick;

	(void)state;
	for (size_t i = 0; i < COUNT(first_tickets); i++) {
		struct box b;
		uint64_t ticket = first_tickets[i];
		struct mail_slot *slot = &b.slots[ticket & (SLOTS - 1)];

		open_at(&b, SLOTS, ticket);
		store_relaxed(&b.mailbox.shared.tail, ticket + 1);
		assert_true(mailbox_post(&b.mailbox, &quick));
		assert_null(mailbox_take(&b.mailbox));
		slot->mail = &slow;
		store_relaxed(&slot->turn, ticket + 1);
		assert_ptr_equal(mailbox_take(&b.mailbox), &slow);
		assert_ptr_equal(mailbox_take(&b.mailbox), &quick);
		assert_null(mailbox_take(&b.mailbox));
	}
}

static void mailbox_valid_sees_a_head_that_has_overtaken_the_tail(void **state)
{
	struct box b;

	(void)state;
	open_at(&b, SLOTS, UINT64_MAX);
	b.mailbox.own.head++;
	assert_false(mailbox_valid(&b.mailbox)); /* MAILBOX-1 */
	open_at(&b, SLOTS, UINT64_MAX);
	store_relaxed(&b.mailbox.shared.tail, UINT64_MAX + SLOTS + UINT64_C(1));
	assert_false(mailbox_valid(&b.mailbox)); /* MAILBOX-1 */
}

#define SENDERS 6
#define PARCELS 20000

/* Plain memory, written by its sender just before it is posted: what is not handed over
 * in order shows as a race. */
struct parcel {
	unsigned sender;
	unsigned number;
};

struct post_office {
	struct box box;
	struct parcel parcels[SENDERS][PARCELS];
	unsigned taken[SENDERS];
	unsigned faults;
	_Atomic unsigned full;
};

static void send_all(struct post_office *office, unsigned sender)
{
	for (unsigned i = 0; i < PARCELS; i++) {
		struct parcel *parcel = &office->parcels[sender][i];

		*parcel = (struct parcel){ sender, i };
		while (!mailbox_post(&office->box.mailbox, parcel)) {
			add_relaxed(&office->full, 1);
			sched_yield();
		}
	}
}

static void receive_all(struct post_office *office)
{
	for (unsigned left = SENDERS * PARCELS; left > 0;) {
		struct parcel *parcel = mailbox_take(&office->box.mailbox);

		if (!parcel) {
			sched_yield();
			continue;
		}
		office->faults += parcel->number != office->taken[parcel->sender]++;
		*parcel = (struct parcel){ 0 }; /* it is the receiver's now */
		left--;
	}
}

static void work(void *arg, unsigned who)
{
	if (who < SENDERS)
		send_all(arg, who);
	else
		receive_all(arg);
}

static void six_senders_lose_nothing_and_each_keeps_its_order(void **state)
{
	static struct post_office office;

	(void)state;
	for (size_t i = 0; i < COUNT(first_tickets); i++) {
		uint64_t first = first_tickets[i];

		office = (struct post_office){ 0 };
		open_at(&office.box, SLOTS, first);
		crew_run(SENDERS + 1, work, &office);
		assert_int_equal(office.faults, 0);
		for (int sender = 0; sender < SENDERS; sender++)
			assert_int_equal(office.taken[sender], PARCELS);
		assert_null(mailbox_take(&office.box.mailbox));
		assert_true(mailbox_valid(&office.box.mailbox));
		assert_int_equal(office.box.mailbox.own.head - first,
		                 SENDERS * PARCELS);
	}
}

#ifdef GALE_DEBUG
static void builds_for_debugging_start_just_below_the_wrap(void **state)
{
	struct box b;

	(void)state;
	mailbox_init(&b.mailbox, b.slots, SLOTS);
	assert_in_range(b.mailbox.own.head, UINT64_MAX - 100, UINT64_MAX);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_posted_is_taken_once_and_in_order),
		cmocka_unit_test(who_is_just_posting_holds_up_others),
		cmocka_unit_test(full_is_an_answer_and_loses_nothing),
		cmocka_unit_test(a_sender_that_pauses_hides_later_mail_and_loses_none),
		cmocka_unit_test(mailbox_valid_sees_a_head_that_has_overtaken_the_tail),
		cmocka_unit_test(six_senders_lose_nothing_and_each_keeps_its_order),
#ifdef GALE_DEBUG
		cmocka_unit_test(builds_for_debugging_start_just_below_the_wrap),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
