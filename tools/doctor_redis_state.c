/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_redis_state.c -- reads the generation (stores/redis/greet.lua): whose it is, and from
 * when on nothing has been forgotten.
 *
 *     6 digits of the process, 8 of its tenure, durable=, ':', an instant, 8 bytes of time
 */
#include "tools/doctor_redis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROCESS 6
#define TENURE 8
#define LIFE (PROCESS + TENURE)
#define TIME_BYTES 8
#define QUARANTINE_US UINT64_C(60000000) /* unless a node says otherwise */
#define KEY_ROOM (REDIS_PREFIX_MAX + 24)
#define WHEN_ROOM 40

struct generation {
	char life[LIFE + 1];
	unsigned durable;
	uint64_t since_us;
};

/* False: it is no generation. */
static bool read_generation(const redisReply *reply, struct generation *ret)
{
	char since[24];

	if (reply->type != REDIS_REPLY_STRING ||
	    reply->len < LIFE + 2 + 1 + TIME_BYTES ||
	    reply->len >= LIFE + 2 + (int)sizeof(since) + TIME_BYTES ||
	    reply->str[LIFE + 1] != ':')
		return false;
	memcpy(ret->life, reply->str, LIFE);
	ret->life[LIFE] = '\0';
	ret->durable = (unsigned)(reply->str[LIFE] - '0');
	snprintf(since, sizeof(since), "%.*s", (int)reply->len - LIFE - 2 - TIME_BYTES,
	         reply->str + LIFE + 2);
	ret->since_us = strtoull(since, NULL, 10);
	return ret->durable <= 9;
}

static void put_life(const char *info, char life[LIFE + 1])
{
	char process[REDIS_LINE], tenure[REDIS_LINE];

	redis_line(info, "run_id", process);
	redis_line(info, "master_replid", tenure);
	snprintf(life, LIFE + 1, "%.*s%.*s", PROCESS, process, TENURE, tenure);
}

static void tell_since(struct doctor *doctor, uint64_t since_us, uint64_t now_us)
{
	time_t seconds = (time_t)(since_us / 1000000);
	char when[WHEN_ROOM];
	struct tm utc;

	if (since_us == 0) {
		doctor_say(doctor, DOCTOR_OK, "state",
		           "it is marked as new, and has forgotten nothing");
		return;
	}
	if (now_us < since_us + QUARANTINE_US) {
		doctor_say(doctor, DOCTOR_WARN, "state",
		           "it may have forgotten what it granted until %" PRIu64
		           " s ago: calls may be refused (GALE_WHY_QUARANTINE) for "
		           "%" PRIu64 " s more: wait",
		           now_us > since_us ? (now_us - since_us) / 1000000 : 0,
		           (since_us + QUARANTINE_US - now_us) / 1000000 + 1);
		return;
	}
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &utc));
	doctor_say(doctor, DOCTOR_OK, "state", "it has forgotten nothing since %s",
	           when);
}

static void judge_durable(struct doctor *doctor, const struct redis_url *url,
                          unsigned theirs)
{
	if (theirs == url->durable)
		return;
	if (theirs > 0)
		doctor_say(doctor, DOCTOR_FAIL, "durable",
		           "other nodes say durable=%u of the prefix, and this URL "
		           "durable=%u: nodes with this URL are refused: give all of "
		           "them the same",
		           theirs, (unsigned)url->durable);
	else
		doctor_say(doctor, DOCTOR_WARN, "durable",
		           "other nodes use the prefix without durable=: after a "
		           "fail-over the grants to them may be forgotten: give all "
		           "of them durable=%u",
		           (unsigned)url->durable);
}

static void judge(struct doctor *doctor, redisContext *conn,
                  const struct redis_url *url, const char *info,
                  const redisReply *reply)
{
	struct generation generation;
	char life[LIFE + 1];

	put_life(info, life);
	if (reply->type == REDIS_REPLY_NIL)
		doctor_say(doctor, DOCTOR_WARN, "state",
		           "no node has used it yet, and it is not marked as new: the "
		           "first calls may be refused for up to a minute "
		           "(GALE_WHY_QUARANTINE): gale store init URL marks it");
	else if (!read_generation(reply, &generation))
		doctor_say(doctor, DOCTOR_FAIL, "state",
		           "a key under the prefix %s is not gale's: give gale a "
		           "prefix of its own (?prefix=)",
		           url->prefix);
	else if (strcmp(generation.life, life) != 0)
		doctor_say(doctor, DOCTOR_WARN, "state",
		           "it was started again, or took over, since nodes last "
		           "asked: their next calls may be refused for up to a minute "
		           "(GALE_WHY_QUARANTINE)");
	else {
		judge_durable(doctor, url, generation.durable);
		tell_since(doctor, generation.since_us, doctor_redis_time(conn));
	}
}

/* A right that is missing is told with the others. */
void doctor_redis_state(struct doctor *doctor, redisContext *conn,
                        const struct redis_url *url, const char *info)
{
	char key[KEY_ROOM];
	redisReply *reply;

	snprintf(key, sizeof(key), "%s{b00}generation", url->prefix);
	reply = redis_ask(conn, "GET %s", key);
	if (reply && (reply->type != REDIS_REPLY_ERROR ||
	              strncmp(reply->str, "WRONGTYPE", 9) == 0))
		judge(doctor, conn, url, info, reply);
	freeReplyObject(reply);
}
