/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * panic.c -- what a broken invariant does in a test: says where, and aborts.
 */
#include "engine/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void gale_panic(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
	abort();
}
