/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leased.h -- a key that units are lent of, without a store: asks and returns as a store makes
 * them, with the rows apart beside the value.
 *
 * Include cmocka.h first.  Every step checks that the value is one that can be.
 */
#ifndef TESTS_SUPPORT_LEASED_H
#define TESTS_SUPPORT_LEASED_H

#include "engine/lease.h"

#define WORDS 21
#define APARTS 128

/* A key under a rule. */
struct leased {
	struct rule rule;
	uint64_t words[WORDS];
	struct ledger ledger;
	struct lease_row aparts[APARTS]; /* by their nodes */
};

static inline struct leased key_of(struct gale_rule config)
{
	struct leased key = { .words = { 0 } };

	assert_int_equal(rule_compile(&config, &key.rule), GALE_ERR_OK);
	assert_true(key.rule.words <= WORDS);
	assert_true(lease_possible(&key.rule));
	return key;
}

static inline void check_key(const struct leased *key)
{
	assert_true(rule_valid(&key->rule, key->words, key->rule.words));
	assert_true(ledger_valid(&key->rule, key->words, &key->ledger));
}

/* As a store does it. */
static inline void find_apart(struct leased *key, uint64_t node)
{
	uint64_t crowd = ledger_crowd_of(&key->ledger, node);

	if (crowd != 0 && key->aparts[node % APARTS].tag.us == crowd)
		key->ledger.apart = key->aparts[node % APARTS];
}

static inline void keep_apart(struct leased *key)
{
	const struct lease_row *row = &key->ledger.apart;

	if (row->node != 0) {
		assert_true(row->node < APARTS);
		key->aparts[row->node] = row->out > 0 ? *row : (struct lease_row){ 0 };
	}
	key->ledger.apart = (struct lease_row){ 0 };
}

static inline struct lease_grant asks(struct leased *key, uint64_t now,
                                      const struct lease_ask *ask)
{
	struct lease_grant grant;

	find_apart(key, ask->node);
	grant = lease_step(&key->rule, key->words, &key->ledger, now, ask);
	check_key(key);
	keep_apart(key);
	return grant;
}

static inline bool back(struct leased *key, uint64_t now, uint64_t node,
                        uint64_t number, struct gale_slot tag, uint64_t units)
{
	bool taken;

	find_apart(key, node);
	taken = lease_give_back(&key->rule, key->words, &key->ledger, now, node, number,
	                        tag, units);
	check_key(key);
	keep_apart(key);
	return taken;
}

#endif
