/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* record.c -- batches of structs through a socket. */
#define _GNU_SOURCE
#include "tools/record.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Sending --------------------------------------------------------------------- */

void record_out_init(struct record_out *out, int fd)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
}

bool record_flush(struct record_out *out)
{
	const char *at = (const char *)out->batch;
	size_t left = out->count * sizeof(out->batch[0]);

	while (left > 0 && !out->broken) {
		ssize_t sent = send(out->fd, at, left, MSG_NOSIGNAL);

		if (sent < 0) {
			out->broken = errno != EINTR;
			continue;
		}
		at += sent;
		left -= (size_t)sent;
	}
	out->count = 0;
	return !out->broken;
}

void record_put(struct record_out *out, const struct record *record)
{
	if (out->count == RECORD_BATCH)
		record_flush(out);
	out->batch[out->count] = *record;
	out->batch[out->count++].number = out->number++;
}

void record_put_text(struct record_out *out, const char *text)
{
	size_t left = strlen(text);

	do {
		struct record record = { .kind = RECORD_TEXT };
		size_t part = left < RECORD_TEXT_MAX ? left : RECORD_TEXT_MAX;

		memcpy(record.text, text, part);
		record_put(out, &record);
		text += part;
		left -= part;
	} while (left > 0);
}

/* ---- Receiving ------------------------------------------------------------------- */

void record_in_init(struct record_in *in, int fd)
{
	memset(in, 0, sizeof(*in));
	in->fd = fd;
}

/* Moves a part of a record to the front, and reads more behind it. */
static ssize_t read_more(struct record_in *in, bool wait)
{
	ssize_t count;

	memmove(in->bytes, in->bytes + in->used, in->filled - in->used);
	in->filled -= in->used;
	in->used = 0;
	do
		count = recv(in->fd, in->bytes + in->filled,
		             sizeof(in->bytes) - in->filled, wait ? 0 : MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	if (count > 0)
		in->filled += (size_t)count;
	return count;
}

static bool is_next(struct record_in *in, const struct record *record)
{
	return record->kind > RECORD_NONE && record->kind < RECORD_KIND_END &&
	       record->number == in->number;
}

enum record_got record_get(struct record_in *in, bool wait, struct record *ret_record)
{
	struct record record;

	while (in->filled - in->used < sizeof(record)) {
		ssize_t count = read_more(in, wait);

		if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return RECORD_NOT_YET;
		if (count <= 0)
			return in->filled > 0 ? RECORD_NONSENSE : RECORD_END;
	}
	memcpy(&record, in->bytes + in->used, sizeof(record));
	if (!is_next(in, &record))
		return RECORD_NONSENSE;
	in->used += sizeof(record);
	in->number++;
	*ret_record = record;
	return RECORD_IS;
}
