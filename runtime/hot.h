/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hot.h -- two hints for the few functions that every ask goes through.
 *
 * What bench/ measures decides where they are used: a call in the middle of an ask costs
 * as much as a third of it, as registers have to be kept across it.
 */
#ifndef RUNTIME_HOT_H
#define RUNTIME_HOT_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define ALWAYS_INLINE inline __attribute__((always_inline))

#endif
