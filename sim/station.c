/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * station.c -- by the engine: values by their keys, and what a replica has of them.
 *
 * A replica's groups are made by the beats that it has seen, one after the other.
 */
#include "sim/station.h"

#include <string.h>

#include "sim/apart.h"
#include "sim/must.h"
#include "sim/room.h"

#define SET_BACK_US UINT64_C(1000000) /* a clock may be set back by so much unnoticed */
#define GROUP_KEY_MOST 64
#define GROUPS_MOST 100000

struct station_entry {
	uint8_t key[STORE_KEY_MAX];
	size_t key_len;
	struct kept kept;
	struct kept replica;
	struct aparts aparts;
	struct aparts replica_aparts;
};

struct station_beat {
	struct store_beat beat;
	uint8_t node[STORE_NODE_MAX];
	uint8_t key[GROUP_KEY_MOST];
	uint32_t key_len;
	uint64_t now_us;
	uint64_t forgot_us;
};

/* ---- Any ------------------------------------------------------------------------- */

void station_open(struct station *station, struct gale_clock *clock)
{
	station->clock = clock;
	station->generation = 1;
	station->since_us = 0;
	station->latest_us = 0;
	station->ops->open(station);
}

/* Two beginnings have two instants: a life is known by when it began. */
static void begin_anew(struct station *station, uint64_t now_us)
{
	station->latest_us = now_us;
	station->since_us = now_us == station->since_us ? now_us + 1 : now_us;
	station->generation++;
}

void station_look(struct station *station)
{
	uint64_t now_us = station->clock->now_us(station->clock);

	if (now_us + SET_BACK_US < station->latest_us)
		begin_anew(station, now_us);
	if (station->latest_us < now_us)
		station->latest_us = now_us;
}

void station_fail_over(struct station *station)
{
	station->ops->fail_over(station);
	begin_anew(station, station->clock->now_us(station->clock));
}

void station_flush(struct station *station)
{
	station->ops->empty(station);
	station_fail_over(station);
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

/* ---- Beats ----------------------------------------------------------------------- */

static void open_groups(struct engine_station *station)
{
	station->groups = groups_open(&station->allocator.allocator, GROUPS_MOST);
	must(station->groups);
}

static struct remote_told do_beat(struct engine_station *station,
                                  const struct station_beat *one)
{
	const struct remote_job job = { .verb = REMOTE_BEAT,
		                        .key = { one->key, one->key_len },
		                        .beat = &one->beat,
		                        .forgot_us = one->forgot_us };

	station->nudge.mark = store_mark(one->key, one->key_len);
	station->nudge.bits = UINT64_MAX;
	return server_beat(station->groups, &job, one->now_us, station->grant,
	                   &station->nudge.is);
}

static struct station_beat *add_beat(struct engine_station *station)
{
	if (station->beat_count == station->beat_room) {
		station->beat_room = station->beat_room ? 2 * station->beat_room : 256;
		station->beats = room_for(station->beats,
		                          station->beat_room * sizeof(*station->beats));
		for (size_t i = 0; i < station->beat_count; i++)
			station->beats[i].beat.node = station->beats[i].node;
	}
	return &station->beats[station->beat_count++];
}

static struct remote_told serve_beat(struct engine_station *station,
                                     const struct remote_job *job)
{
	struct station_beat *one = add_beat(station);

	must(job->key.count <= GROUP_KEY_MOST);
	one->beat = *job->beat;
	one->beat.node = one->node;
	memcpy(one->node, job->beat->node, job->beat->node_len);
	memcpy(one->key, job->key.bytes, job->key.count);
	one->key_len = (uint32_t)job->key.count;
	one->now_us = station->station.clock->now_us(station->station.clock);
	one->forgot_us = job->forgot_us;
	return do_beat(station, one);
}

static void replay_beats(struct engine_station *station)
{
	groups_close(station->groups);
	open_groups(station);
	station->beat_count = station->copied;
	for (size_t i = 0; i < station->beat_count; i++)
		(void)do_beat(station, &station->beats[i]);
}

/* ---- Jobs ------------------------------------------------------------------------ */

static struct remote_told
engine_serve(struct station *self, const struct remote_job *job, struct kept *before)
{
	struct engine_station *station = (struct engine_station *)self;
	struct station_entry *entry;
	struct remote_told told;

	if (job->verb == REMOTE_BEAT)
		return serve_beat(station, job);
	entry = entry_of(station, job->key);
	entry->kept.apart = aparts_find(&entry->aparts, job->ask.node);
	*before = entry->kept;
	told =
	    server_serve(job, self->clock->now_us(self->clock), before, &entry->kept);
	aparts_keep_of(&entry->aparts, &entry->kept);
	return told;
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

	for (size_t i = 0; i < station->count; i++) {
		struct station_entry *entry = &station->entries[i];

		copy(&entry->replica, &entry->kept);
		aparts_copy(&entry->replica_aparts, &entry->aparts);
	}
	station->copied = station->beat_count;
}

static void engine_empty(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	for (size_t i = 0; i < station->count; i++)
		station->entries[i].replica.count = 0;
	station->copied = 0;
}

static void engine_fail_over(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	for (size_t i = 0; i < station->count; i++) {
		struct station_entry *entry = &station->entries[i];

		copy(&entry->kept, &entry->replica);
		aparts_copy(&entry->aparts, &entry->replica_aparts);
	}
	replay_beats(station);
}

static void engine_open(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	station->count = 0;
	station->entries = room_for(NULL, STATION_KEYS * sizeof(*station->entries));
	memset(station->entries, 0, STATION_KEYS * sizeof(*station->entries));
	test_allocator_init(&station->allocator);
	station->beat_count = station->copied = 0;
	open_groups(station);
}

static void engine_close(struct station *self)
{
	struct engine_station *station = (struct engine_station *)self;

	groups_close(station->groups);
	must(test_allocator_is_balanced(&station->allocator));
	for (size_t i = 0; i < station->count; i++) {
		aparts_free(&station->entries[i].aparts);
		aparts_free(&station->entries[i].replica_aparts);
	}
	free(station->beats);
	station->beats = NULL;
	station->beat_room = 0;
	free(station->entries);
}

static const struct station_ops engine_ops = {
	.open = engine_open,
	.close = engine_close,
	.serve = engine_serve,
	.replicate = engine_replicate,
	.fail_over = engine_fail_over,
	.empty = engine_empty,
};

void engine_station_init(struct engine_station *station)
{
	*station = (struct engine_station){ .station.ops = &engine_ops };
}
