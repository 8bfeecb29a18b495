/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* all.c -- the models that there are. */
#include "spec/explore/model.h"

#define MODELS                                                                         \
	X(ahead)                                                                       \
	X(alone)                                                                       \
	X(beats)                                                                       \
	X(change)                                                                      \
	X(crash)                                                                       \
	X(escrow)                                                                      \
	X(forget)                                                                      \
	X(handoff)                                                                     \
	X(history)                                                                     \
	X(holds)                                                                       \
	X(idle)                                                                        \
	X(lapse)                                                                       \
	X(leasing)                                                                     \
	X(meter)                                                                       \
	X(once)                                                                        \
	X(pacing)                                                                      \
	X(pool)                                                                        \
	X(tiers)                                                                       \
	X(waiters)                                                                     \
	X(window)

#define X(name) extern const struct model name##_model;
MODELS
#undef X

#define X(name) &name##_model,
const struct model *const models[] = { MODELS NULL };
#undef X
