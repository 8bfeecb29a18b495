/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* bytes.h -- turns a fuzzer's bytes into numbers; past their end there are zeroes. */
#ifndef TESTS_FUZZ_BYTES_H
#define TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <gale/rule.h>

struct bytes {
	const uint8_t *at;
	size_t left;
};

static inline uint64_t take_number(struct bytes *bytes, size_t width)
{
	uint64_t number = 0;
	size_t have = width < bytes->left ? width : bytes->left;

	memcpy(&number, bytes->at, have);
	bytes->at += have;
	bytes->left -= have;
	return number;
}

/* Every part is drawn, so that parts which a kind does not use are wrong as well. */
static inline struct gale_rule take_rule(struct bytes *bytes)
{
	struct gale_rule rule = { 0 };

	rule.kind = (enum gale_rule_kind)take_number(bytes, 1);
	rule.cadence = (enum gale_cadence)take_number(bytes, 1);
	rule.limit = take_number(bytes, 8);
	rule.period_us = take_number(bytes, 8);
	rule.burst = take_number(bytes, 8);
	rule.buckets = take_number(bytes, 1);
	rule.max_wait_us = take_number(bytes, 8);
	rule.anchor_us = take_number(bytes, 8);
	rule.allowance_permille = (uint32_t)take_number(bytes, 2);
	rule.utc_offset_minutes = (int16_t)take_number(bytes, 2);
	rule.first_weekday = (uint32_t)take_number(bytes, 1);
	return rule;
}

#endif
