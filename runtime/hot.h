/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hot.h -- hints for the few functions that every ask goes through, and where what they
 * touch lies.
 *
 * The figures of bench/ decide where the hints are used: a call in the middle of an ask costs
 * as much as a third of it, as registers have to be kept across it.
 *
 * Threads   None of its own.
 */
#ifndef RUNTIME_HOT_H
#define RUNTIME_HOT_H

#include <stddef.h>

/*
 * A processor may hold a load back while a store is under way to another address with
 * the same low 12 bits, as if it were the same word.  An ask's own stores then stand in
 * the way of the next ask's loads, by chance of where its memory lies; this costs more
 * than an ask.  So whatever every ask writes, but for its answer, lies in the second
 * quarter of 128 bytes, and of what else it reads only a denial.  And of the four words
 * that there are in a quarter, it reads of a purse none that it writes of its seat, but to
 * count.  Static asserts beside each type say so.
 */
#define WET_ALIGN 128
#define IS_WET(type, member) (offsetof(type, member) % WET_ALIGN / 32 == 1)
#define WET_WORD(type, member) (offsetof(type, member) % WET_ALIGN / 8)

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The compiler forgets where a value came from: it does not make a jump of what chose it, and works
 * out no address beforehand that only a later step takes. */
#define CHOSEN(value) __asm__("" : "+r"(value))

#endif
