/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* station.c -- values by their keys, and what a replica has of them. */
#include "sim/station.h"

#include <string.h>

#include "sim/must.h"
#include "sim/room.h"

static struct station_entry *entry_of(struct station *station, struct remote_bytes key)
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

struct remote_told station_serve(struct station *station, const struct remote_job *job,
                                 struct kept *before)
{
	struct station_entry *entry = entry_of(station, job->key);

	*before = entry->kept;
	return server_serve(job, station->clock->now_us(station->clock), before,
	                    &entry->kept);
}

static void copy(struct kept *to, const struct kept *from)
{
	to->count = from->count;
	to->expires_us = from->expires_us;
	memcpy(to->bytes, from->bytes, from->count);
}

void station_replicate(struct station *station)
{
	for (size_t i = 0; i < station->count; i++)
		copy(&station->entries[i].replica, &station->entries[i].kept);
}

void station_fail_over(struct station *station)
{
	for (size_t i = 0; i < station->count; i++)
		copy(&station->entries[i].kept, &station->entries[i].replica);
	station->since_us = station->clock->now_us(station->clock);
	station->generation++;
}

void station_open(struct station *station, struct gale_clock *clock)
{
	*station = (struct station){ .clock = clock, .generation = 1 };
	station->entries = room_for(NULL, STATION_KEYS * sizeof(*station->entries));
	memset(station->entries, 0, STATION_KEYS * sizeof(*station->entries));
}

void station_close(struct station *station)
{
	free(station->entries);
}
