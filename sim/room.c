/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* room.c -- malloc with an end to it. */
#include "sim/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *room_for(void *old, size_t bytes)
{
	void *memory = realloc(old, bytes);

	if (memory)
		return memory;
	fprintf(stderr, "there is no memory for so large a world\n");
	exit(ROOM_NONE);
}

void *room_new(size_t bytes)
{
	void *memory = room_for(NULL, bytes);

	memset(memory, 0, bytes);
	return memory;
}
