/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * room.h -- memory of the simulator itself: without it nothing can be said, so that the
 * program says only this, and ends.
 */
#ifndef SIM_ROOM_H
#define SIM_ROOM_H

#include <stddef.h>

#define ROOM_NONE 3 /* how the program ends */

/* realloc; never NULL. */
void *room_for(void *old, size_t bytes);

/* calloc of one; never NULL. */
void *room_new(size_t bytes);

#endif
