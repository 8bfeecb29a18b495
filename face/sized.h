/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sized.h -- structs of a host that was compiled with another gale.h than the library.
 *
 * gale.h passes the size that a struct had when the host was compiled.  Structs grow at
 * their end only, so the smaller of two sizes is what both sides know.
 *
 *     the host's   |  known to both  |            an older host: the rest reads as 0
 *     ours         |  known to both  |  newer  |
 *
 *     the host's   |  known to both  |  newer  |  a newer host: the rest must be 0
 *     ours         |  known to both  |
 *
 * Threads   Any: the memory is the caller's.
 * Limits    A size is from 1 to SIZED_MOST and a multiple of SIZED_ALIGN.  Any other
 *           was not made by sizeof, and nothing is read or written.
 */
#ifndef FACE_SIZED_H
#define FACE_SIZED_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIZED_MOST 4096
#define SIZED_ALIGN alignof(uint64_t) /* of every struct that may grow */

bool sized_is_good(size_t bytes);

/* Reads a struct that the host has filled, as the library knows it; false if the size is not
 * good, or a field that the library does not know is not 0. */
bool sized_read(void *known, size_t known_bytes, const void *given, size_t given_bytes);

/* Writes a struct that the library has filled, as the host knows it; false if the size is not
 * good.  Fields that the library does not know become 0. */
bool sized_write(void *given, size_t given_bytes, const void *known,
                 size_t known_bytes);

#endif
