/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lends.h -- what a shard asks of a store, out of a fuzzer's bytes.
 *
 * Threads   Pure.
 */
#ifndef TESTS_FUZZ_LENDS_H
#define TESTS_FUZZ_LENDS_H

#include "stores/store.h"
#include "tests/fuzz/bytes.h"

/* But for its key and its number.  tag: of what was lent last. */
static inline struct lend_request fuzzed_lend(struct bytes *bytes, enum lend_verb verb,
                                              const struct rule *rule,
                                              struct gale_slot tag)
{
	uint64_t units = take_number(bytes, 2) + 1;
	bool lends_ahead = verb == LEND && lease_has_ahead(rule);

	return (struct lend_request){
		.verb = verb,
		.key_len = 1,
		.rule = rule,
		.ask = { .node = 1,
		         .want = units,
		         .least = 1 + units / 2,
		         .ahead = units % 4 == 0 && lends_ahead ? units / 16 : 0,
		         .had = units % 3 == 0 && lends_ahead ? units / 32 : 0,
		         .had_of = tag.us },
		.tag = tag,
		.units = units,
		.seen_in = units % 2, /* or it is the first of its key */
	};
}

#endif
