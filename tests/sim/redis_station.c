/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_station.c -- one connection, on which each job waits for its reply. */
#include "tests/sim/redis_station.h"

#include <inttypes.h>
#include <string.h>

#include "stores/redis/cluster.h"
#include "tests/support/fake_time.h"
#include "tests/support/must.h"
#include "tests/support/redis_server.h"

#define PREFIX "sim:"
#define BEGIN_US UINT64_C(1600000000000000) /* before any world does */

struct redis_station {
	struct station station; /* first */
	struct fake_time time;
	struct redis_server server;
	struct redis_talk talk;
	uint64_t now_us; /* that the server's clock was set to */
	uint64_t nonce;  /* of the latest job, in all worlds */
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
};

static struct remote_bytes word_of(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static redisReply *hear(struct redis_station *station)
{
	redis_talk_send(&station->talk);
	return redis_talk_hear(&station->talk);
}

static void set_clock(struct redis_station *station)
{
	uint64_t now_us = station->station.clock->now_us(station->station.clock);

	if (station->now_us != now_us)
		fake_time_set(&station->time, now_us);
	station->now_us = now_us;
}

/* ---- Generations ----------------------------------------------------------------- */

static void put_greeting(struct redis_station *station)
{
	uint8_t key[REDIS_KEY_MAX];
	const struct remote_bytes words[] = {
		word_of("EVAL"),
		{ (const uint8_t *)redis_greet_script.text, redis_greet_script.count },
		word_of("1"),
		{ key, redis_generation_key(key, PREFIX, 0) },
		word_of("0"),
	};

	must(redis_put_words(&station->talk.text, words, 5));
}

/* It has forgotten, and says since now. */
static void greet(struct redis_station *station)
{
	uint64_t since_us;
	redisReply *reply;
	const char *since;

	put_greeting(station);
	reply = hear(station);
	must(reply->type == REDIS_REPLY_STRING);
	since = strchr(reply->str, ':');
	must(since && sscanf(since, ":%" SCNu64, &since_us) == 1);
	must(since_us == station->now_us);
	must(reply->len <= sizeof(station->generation));
	memcpy(station->generation, reply->str, reply->len);
	station->generation_count = reply->len;
	redis_reply_free(reply);
}

/* ---- Jobs ------------------------------------------------------------------------ */

static redisReply *call(struct redis_station *station, const struct remote_job *job)
{
	const uint8_t bucket = redis_bucket(job->key.bytes, job->key.count);
	const struct redis_call call = {
		.script = &redis_step_script,
		.prefix = PREFIX,
		.generation = { (const uint8_t *)station->generation,
		                station->generation_count },
		.nonce = ++station->nonce,
		.now_us = station->now_us,
		.jobs = job,
		.buckets = &bucket,
		.count = 1,
	};

	must(redis_put_call(&station->talk.text, &call));
	return hear(station);
}

static void copy_before(struct remote_told *told, struct kept *ret_before)
{
	must(told->before.count <= KEPT_MOST);
	if (told->before.count > 0)
		memcpy(ret_before->bytes, told->before.bytes, told->before.count);
	ret_before->count = told->before.count;
	told->before.bytes = ret_before->bytes;
}

static struct remote_told serve(struct station *self, const struct remote_job *job,
                                struct kept *before)
{
	struct redis_station *station = (struct redis_station *)self;
	struct remote_told told;
	struct redis_said said;
	redisReply *reply;

	set_clock(station);
	reply = call(station, job);
	redis_read_reply(reply, station->nonce, job, 1, &told, &said);
	if (said.word != REDIS_TOLD)
		fprintf(stderr, "said %d: %s\n", (int)said.word, said.text);
	must(said.word == REDIS_TOLD);
	must(told.now_us == station->now_us);
	copy_before(&told, before);
	redis_reply_free(reply);
	return told;
}

/* ---- The replica ----------------------------------------------------------------- */

/* With their times to live. */
static void copy_all(struct redis_station *station, const char *from, const char *to)
{
	static const char script[] =
	    "redis.call('SELECT', ARGV[2]) redis.call('FLUSHDB')"
	    " redis.call('SELECT', ARGV[1])"
	    " for _, key in ipairs(redis.call('KEYS', '*')) do"
	    " redis.call('COPY', key, key, 'DB', ARGV[2]) end return 'copied'";
	const struct remote_bytes words[] = { word_of("EVAL"), word_of(script),
		                              word_of("0"), word_of(from),
		                              word_of(to) };
	redisReply *reply;

	set_clock(station);
	must(redis_put_words(&station->talk.text, words, 5));
	reply = hear(station);
	if (reply->type == REDIS_REPLY_ERROR)
		fprintf(stderr, "%s\n", reply->str);
	must(reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "copied") == 0);
	redis_reply_free(reply);
}

static void replicate(struct station *self)
{
	copy_all((struct redis_station *)self, "0", "1");
}

/* Another server has another name, so that what stands there is not its generation. */
static void fail_over(struct station *self)
{
	struct redis_station *station = (struct redis_station *)self;

	copy_all(station, "1", "0");
	redis_talk_do(&station->talk, "DEL " PREFIX "{b00}generation");
	greet(station);
}

/* ---- Worlds ---------------------------------------------------------------------- */

static void open_world(struct station *self)
{
	struct redis_station *station = (struct redis_station *)self;

	redis_talk_do(&station->talk, "FLUSHALL");
	set_clock(station);
	greet(station);
}

static void close_world(struct station *self)
{
	(void)self;
}

static const struct station_ops ops = {
	.open = open_world,
	.close = close_world,
	.serve = serve,
	.replicate = replicate,
	.fail_over = fail_over,
};

static struct redis_station redis = { .station.ops = &ops };

struct station *redis_station_start(void)
{
	fake_time_begin(&redis.time, BEGIN_US);
	redis_server_start(&redis.server, NULL);
	fake_time_end();
	redis_talk_open(&redis.talk, &redis.server);
	must(redis_put_script(&redis.talk.text, &redis_step_script));
	redis_reply_free(hear(&redis));
	return &redis.station;
}

uint64_t redis_station_stop(void)
{
	redis_talk_close(&redis.talk);
	redis_server_stop(&redis.server);
	fake_time_close(&redis.time);
	return redis.nonce;
}
