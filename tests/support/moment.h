/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * moment.h -- the time of day, and a nap, for tests that run in real time.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_MOMENT_H
#define TESTS_SUPPORT_MOMENT_H

#include <stdint.h>

/* As a server on this machine has it. */
uint64_t wall_us(void);

void nap(uint64_t us);

#endif
