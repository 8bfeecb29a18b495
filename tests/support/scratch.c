/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scratch.c -- /dev/shm or /tmp.
 *
 * A cluster of PostgreSQL is a thousand files, made and removed for each test.  A file system on
 * a disk does not give out again what was removed a moment ago, and looks for what else is free
 * for longer than the tests take.  A Redis of a cluster syncs what it knows of the others before it
 * goes on, and a disk that others write to takes a tenth of a second for it, and may take seconds.
 * A container may have a /dev/shm of 64 MB.
 */
#define _GNU_SOURCE
#include "tests/support/scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/support/must.h"

#define IN_MEMORY "/dev/shm"
#define ROOM_LEAST (UINT64_C(1) << 31) /* ten servers at a time, and what they log */

static const char *place(void)
{
	struct statvfs room;

	if (access(IN_MEMORY, W_OK | X_OK) != 0 || statvfs(IN_MEMORY, &room) != 0 ||
	    (uint64_t)room.f_bavail * room.f_frsize < ROOM_LEAST)
		return "/tmp";
	return IN_MEMORY;
}

void scratch_make(char *folder, size_t size, const char *name)
{
	int length = snprintf(folder, size, "%s/gale-%s-XXXXXX", place(), name);

	must(length > 0 && (size_t)length < size && mkdtemp(folder) != NULL);
}
