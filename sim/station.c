/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* station.c -- by the engine: values by their keys, and what a replica has of them. */
#include "sim/station.h"

#include <string.h>

#include "sim/must.h"
#include "sim/room.h"

struct station_entry {
	uint8_t key[STORE_KEY_MAX];
	size_t key_len;
	struct kept kept;
	struct kept replica;
};

/* ---- Any ------------------------------------------------------------------------- */

void station_open(struct station *station, struct gale_clock *clock)
{
	station->clock = clock;
	station->generation = 1;
	station->since_us = 0;
	station->ops->open(station);
}

void station_fail_over(struct station *station)
{
	station->ops->fail_over(station);
	station->since_us = station->clock->now_us(station->clock);
	station->generation++;
}

/* ---- By the engine --------------------------------------------------------------- */

static struct station_entry *entry_of(struct engine_station *station,
                                      struct remote_bytes key)
{
	struct station_entry *entry;

	for (size_t i = 0; i < station->count; i++) {
		entry = &station->entries[i];
		if (entry->key_len == key.count &&
		    memcmp(entry->key, key.bytes, key.count) == 0)
			return entry;
	}
	must(station->count < STATION_KEYS);
	entry = &station->entries[station->count++];
	memcpy(entry->key, key.bytes, key.count);
	entry->key_len = key.count;
	entry->kept.count = entry->replica.count = 0;
	return entry;
}

static struct remote_told
engine_serve(struct station *self, const struct remote_job *job, struct kept *before)
{
	struct engine_station *station = (struct engine_station *)self;
	struct station_entry *entry = entry_of(station, job->key);

	*before = entry->kept;
	return server_serve(job, self->clock->now_us(self->clock), before,
	                    &entry->kept);
}

static void copy(struct kept *to, const struct kept *from)
{
	to->count = from->count;
	to->expires_us = from->expires_us;
	memcpy(to->bytes, from->bytes, from->count);
}

static void engine_replicate(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	for (size_t i = 0; i < station->count; i++)
		copy(&station->entries[i].replica, &station->entries[i].kept);
}

static void engine_fail_over(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	for (size_t i = 0; i < station->count; i++)
		copy(&station->entries[i].kept, &station->entries[i].replica);
}

static void engine_open(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	station->count = 0;
	station->entries = room_for(NULL, STATION_KEYS * sizeof(*station->entries));
	memset(station->entries, 0, STATION_KEYS * sizeof(*station->entries));
}

static void engine_close(struct station *self)
{
	free(((struct engine_station *)self)->entries);
}

static const struct station_ops engine_ops = {
	.open = engine_open,
	.close = engine_close,
	.serve = engine_serve,
	.replicate = engine_replicate,
	.fail_over = engine_fail_over,
};

void engine_station_init(struct engine_station *station)
{
	*station = (struct engine_station){ .station.ops = &engine_ops };
}
