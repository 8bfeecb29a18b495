/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * must.h -- what is taken for granted: if it does not hold, the program says so and ends.
 */
#ifndef SIM_MUST_H
#define SIM_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(x)                                                                        \
	do {                                                                           \
		if (!(x)) {                                                            \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__,  \
			        #x);                                                   \
			abort();                                                       \
		}                                                                      \
	} while (0)

#endif
