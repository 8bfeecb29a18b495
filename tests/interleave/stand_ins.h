/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stand_ins.h -- what programs may say and ask of the world below the code under test.
 *
 * Threads   See model.h.
 */
#ifndef TESTS_INTERLEAVE_STAND_INS_H
#define TESTS_INTERLEAVE_STAND_INS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where it has none, readers fence themselves. */
extern bool kernel_has_barriers;
/* Of the one event descriptor that there is. */
extern uint64_t *kernel_event;

long model_syscall(long number, ...);
int model_yield(void);
int model_eventfd(unsigned count, int flags);
int model_close(int fd);
ssize_t model_write(int fd, const void *from, size_t size);
ssize_t model_read(int fd, void *to, size_t size);

#endif
