/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * same.h -- two answers that must be the same in every field.
 */
#ifndef TESTS_SUPPORT_SAME_H
#define TESTS_SUPPORT_SAME_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <gale/gale.h>

static inline void same_answer(const struct gale_answer *a, const struct gale_answer *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->why, b->why);
	assert_int_equal(a->limit, b->limit);
	assert_int_equal(a->remaining, b->remaining);
	assert_int_equal(a->reset_after_us, b->reset_after_us);
	assert_int_equal(a->retry_after_us, b->retry_after_us);
	assert_int_equal(a->delay_ns, b->delay_ns);
	assert_int_equal(a->slot.us, b->slot.us);
	assert_int_equal(a->slot.part, b->slot.part);
}

#endif
