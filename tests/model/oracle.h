/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * oracle.h -- the rules once more, slow and obvious, to judge the engine by.
 *
 * An oracle is one key under one rule.  It is written from engine/README.md alone and
 * shares no arithmetic with the engine: fractions are exact (rational.h), windows are
 * found by walking, a token bucket is tokens that accrue, and the sliding rules keep
 * every admission that can still count.
 *
 * Limits    A cost is from 1 to GALE_UNITS_MAX, a rule is one that rule_compile
 * accepts.
 */
#ifndef TESTS_MODEL_ORACLE_H
#define TESTS_MODEL_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/rule.h>

struct oracle;

struct oracle *oracle_new(const struct gale_rule *rule);
void oracle_free(struct oracle *o);

/* From now on by another rule, of which the state has the same meaning: pacers of one
 * rate and burst. */
void oracle_use(struct oracle *o, const struct gale_rule *rule);

struct gale_answer oracle_step(struct oracle *o, uint64_t now_us, uint64_t cost);
struct gale_answer oracle_peek(const struct oracle *o, uint64_t now_us);
struct gale_outlook oracle_forecast(const struct oracle *o, uint64_t now_us,
                                    uint64_t cost);
bool oracle_cancel(struct oracle *o, uint64_t now_us, uint64_t cost,
                   struct gale_slot slot);
uint64_t oracle_expires(const struct oracle *o);

#endif
