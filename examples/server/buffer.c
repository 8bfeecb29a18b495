/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* buffer.c -- one piece of memory, that grows. */
#include "examples/server/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_room(struct buffer *buffer, size_t count)
{
	size_t room = buffer->room ? buffer->room : 512;
	char *text;

	if (buffer->first > 0) {
		memmove(buffer->text, buffer->text + buffer->first,
		        buffer_count(buffer));
		buffer->end -= buffer->first;
		buffer->first = 0;
	}
	while (room - buffer->end < count)
		room *= 2;
	if (room == buffer->room)
		return true;
	text = realloc(buffer->text, room);
	if (!text)
		return false;
	buffer->text = text;
	buffer->room = room;
	return true;
}

bool buffer_add(struct buffer *buffer, const char *text, size_t count)
{
	if (count == 0)
		return true;
	if (buffer->room - buffer->end < count && !has_room(buffer, count))
		return false;
	memcpy(buffer->text + buffer->end, text, count);
	buffer->end += count;
	return true;
}

bool buffer_say(struct buffer *buffer, const char *format, ...)
{
	char text[512];
	va_list arguments;
	int count;

	va_start(arguments, format);
	count = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return count >= 0 && (size_t)count < sizeof(text) &&
	       buffer_add(buffer, text, (size_t)count);
}

void buffer_take(struct buffer *buffer, size_t taken)
{
	buffer->first += taken;
	if (buffer->first == buffer->end)
		buffer->first = buffer->end = 0;
}

void buffer_clear(struct buffer *buffer)
{
	buffer->first = buffer->end = 0;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->text);
	*buffer = (struct buffer){ 0 };
}
