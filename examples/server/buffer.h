/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* buffer.h -- bytes that wait to be read by a parser, or to be sent. */
#ifndef EXAMPLES_SERVER_BUFFER_H
#define EXAMPLES_SERVER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
	char *text;
	size_t first, end, room;
};

static inline size_t buffer_count(const struct buffer *buffer)
{
	return buffer->end - buffer->first;
}

/* False: there is no memory, and nothing was added. */
bool buffer_add(struct buffer *buffer, const char *text, size_t count);
bool buffer_say(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buffer_take(struct buffer *buffer, size_t count);
void buffer_clear(struct buffer *buffer); /* keeps the memory */
void buffer_free(struct buffer *buffer);

#endif
