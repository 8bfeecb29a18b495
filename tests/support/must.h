/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * must.h -- what a test takes for granted, and how it waits for what it does not.
 *
 * must() is for setting a scene, in any thread and in programs without cmocka: if it
 * does not hold, the program says so and ends.
 */
#ifndef TESTS_SUPPORT_MUST_H
#define TESTS_SUPPORT_MUST_H

#include <stdbool.h>

#include "sim/must.h"

/* Looks again and again until it holds; false if it does not within half a minute. */
bool becomes_true(bool (*holds)(void *arg), void *arg);

#endif
