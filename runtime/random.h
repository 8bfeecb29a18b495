/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * random.h -- bytes that cannot be guessed, for the secrets of hash tables.
 *
 * Threads   random_fill: any, at once.
 */
#ifndef RUNTIME_RANDOM_H
#define RUNTIME_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/* False if the kernel gives none. */
bool random_fill(void *out, size_t bytes);

#endif
