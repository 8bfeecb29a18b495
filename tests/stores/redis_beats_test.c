/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_beats_test.c -- beat.lua against stores/groups.c, on fleets by lot.
 *
 * A real server runs the script as it is embedded, but for the line that reads the clock: the
 * time is the nonce, and the test's.  After each beat both must have granted the same, and
 * keep the same words of the group, its estimates, and each member.  The server refuses each
 * key that a call does not name.
 *
 *     redis_beats_test [--seed N] [--steps N]     prints the seed of what fails
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/arguments.h"
#include "tests/support/beats.h"
#include "tests/support/must.h"
#include "tests/support/redis_named.h"

#define STEPS_MOST 1500         /* of one fleet */
#define NOW (UINT64_C(1) << 51) /* the year 2041: no real clock expires a group */
#define TOGETHER 4              /* beats of one call, at most */

extern const struct redis_script redis_beats_script;

static struct redis_talk talk, user;

#define expect(b, x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			fail(b, #x, __LINE__);                                         \
	} while (0)

_Noreturn static void fail(const struct beats *b, const char *what, int line)
{
	printf("FAILED: redis_beats_test.c:%d: %s\nreplay: --seed %" PRIu64
	       " --steps %" PRIu64 "\n",
	       line, what, b->seed, b->step);
	exit(1);
}

/* ---- Asking ---------------------------------------------------------------------- */

static struct remote_job job_of(const struct beats *b)
{
	return (struct remote_job){
		.verb = REMOTE_BEAT,
		.key = { b->group->name.bytes, b->group->name.len },
		.beat = &b->beat,
		.forgot_us = b->forgot_us,
	};
}

static redisReply *call(struct beats *b, const struct remote_job *jobs, size_t count,
                        struct remote_told *told)
{
	static const uint8_t buckets[TOGETHER];
	struct redis_call call = {
		.script = &redis_beats_script,
		.prefix = "test:",
		.generation = { (const uint8_t *)"one", 3 },
		.nonce = b->now_us,
		.sure_until_us = GALE_UNITS_MAX,
		.jobs = jobs,
		.buckets = buckets,
		.count = count,
	};
	struct redis_said said;
	redisReply *reply;

	expect(b, redis_put_call(&user.text, &call));
	reply = redis_named_call(&user);
	if (reply->type == REDIS_REPLY_ERROR)
		printf("%s\n", reply->str);
	redis_read_reply(reply, b->now_us, jobs, count, told, &said);
	expect(b, said.word == REDIS_TOLD);
	return reply;
}

/* ---- What is there --------------------------------------------------------------- */

static struct remote_bytes text(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* All of a group. */
struct there {
	redisReply *fields;
	redisReply *leases;
	redisReply *estimates;
	redisReply
	    *forgotten[2]; /* when the group and its leases are, in milliseconds */
};

static void ask(const struct beats *b, const char *kind, struct remote_bytes *words,
                size_t count)
{
	const struct remote_bytes name = { b->group->name.bytes, b->group->name.len };
	uint8_t key[REDIS_KEY_MAX];

	words[1] =
	    (struct remote_bytes){ key, redis_group_key(key, "test:", 0, kind, name) };
	must(redis_put_words(&talk.text, words, count));
}

static struct there look(const struct beats *b)
{
	struct remote_bytes fields[2] = { text("HGETALL") };
	struct remote_bytes set[5] = { text("ZRANGE"), text(""), text("0"), text("-1"),
		                       text("WITHSCORES") };
	struct remote_bytes forgotten[2] = { text("PEXPIRETIME") };
	struct there there;

	ask(b, REDIS_GROUP, fields, 2);
	ask(b, REDIS_LEASES, set, 5);
	ask(b, REDIS_ESTIMATES, set, 5);
	ask(b, REDIS_GROUP, forgotten, 2);
	ask(b, REDIS_LEASES, forgotten, 2);
	redis_talk_send(&talk);
	there.fields = redis_talk_hear(&talk);
	there.leases = redis_talk_hear(&talk);
	there.estimates = redis_talk_hear(&talk);
	for (int i = 0; i < 2; i++)
		there.forgotten[i] = redis_talk_hear(&talk);
	return there;
}

static bool is_name(const redisReply *part, const uint8_t *bytes, size_t count)
{
	return part->len == count && memcmp(part->str, bytes, count) == 0;
}

/* NULL: it is not there.  Pairs: what is named, and what it is. */
static const redisReply *named(const redisReply *pairs, const uint8_t *bytes,
                               size_t count)
{
	for (size_t i = 0; i + 1 < pairs->elements; i += 2)
		if (is_name(pairs->element[i], bytes, count))
			return pairs->element[i + 1];
	return NULL;
}

static const redisReply *field(const struct there *there, char letter,
                               const uint8_t *name, size_t count)
{
	uint8_t bytes[1 + STORE_NODE_MAX] = { (uint8_t)letter };

	if (count > 0)
		memcpy(bytes + 1, name, count);
	return named(there->fields, bytes, 1 + count);
}

static uint64_t word_at(const redisReply *reply, size_t i)
{
	double word;

	must(reply->type == REDIS_REPLY_STRING && reply->len >= (i + 1) * sizeof(word));
	memcpy(&word, reply->str + i * sizeof(word), sizeof(word));
	must(word >= 0 && word <= (double)GALE_UNITS_MAX);
	return (uint64_t)word;
}

static void expect_words(const struct beats *b, const redisReply *reply,
                         const void *words, size_t count)
{
	expect(b, reply && reply->len == count * sizeof(uint64_t));
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		if (word != word_at(reply, i))
			printf("word %zu is %" PRIu64 ", not %" PRIu64 "\n", i,
			       word_at(reply, i), word);
		expect(b, word == word_at(reply, i));
	}
}

/* What a sorted set says of a name; 0: nothing. */
static uint64_t score(const redisReply *set, const struct beats_name *name)
{
	const redisReply *score = named(set, name->bytes, name->len);

	return score ? strtoull(score->str, NULL, 10) : 0;
}

static void expect_member(const struct beats *b, const struct there *there, size_t node)
{
	const struct beats_name *name = &b->nodes[node];
	const struct group_member *member = beats_member(b, node);
	const redisReply *words = field(there, 'm', name->bytes, name->len), *place;
	char digits[REDIS_DECIMAL_MOST];

	expect(b, score(there->leases, name) == (member ? member->beat : 0));
	expect(b, score(there->estimates, name) == (member ? member->estimate : 0));
	expect(b, !words == !member);
	if (!member)
		return;
	expect_words(b, words, member, GROUP_MEMBER_WORDS);
	place = field(there, 'p', (const uint8_t *)digits,
	              redis_decimal(digits, member->position));
	expect(b, place && is_name(place, name->bytes, name->len));
}

/* Not before a day after the last lease; and not much later. GROUPS-2 */
static void expect_forgotten(const struct beats *b, const struct there *there)
{
	const struct group *group = beats_group(b);
	uint64_t due_us = group->now_us + group->settings.lease_us + GROUPS_KEPT_US;

	for (int i = 0; i < (group->members > 0 ? 2 : 1); i++) {
		uint64_t at_us = (uint64_t)there->forgotten[i]->integer * 1000;

		expect(b, at_us > due_us && at_us <= due_us + GALE_MINUTES(2));
	}
}

static void expect_same_kept(const struct beats *b)
{
	const struct group *group = beats_group(b);
	struct there there = look(b);

	expect_words(b, field(&there, 'g', NULL, 0), group, GROUP_WORDS);
	for (size_t node = 0; node < BEATS_NODES; node++)
		expect_member(b, &there, node);
	expect(b, there.fields->elements == 2 * (1 + 2 * group->members));
	expect(b, there.leases->elements == 2 * group->members);
	expect_forgotten(b, &there);
	redis_reply_free(there.forgotten[0]);
	redis_reply_free(there.forgotten[1]);
	redis_reply_free(there.fields);
	redis_reply_free(there.leases);
	redis_reply_free(there.estimates);
}

static void expect_same_grant(struct beats *b, const struct remote_told *told,
                              const struct group_grant *grant)
{
	struct store_beat heard = b->beat;
	uint64_t theirs[GROUP_GRANT_WORDS], ours[GROUP_GRANT_WORDS];

	expect(b, remote_explain_beat(told, &heard) == STORE_DONE);
	memcpy(theirs, &heard.grant, sizeof(theirs));
	memcpy(ours, grant, sizeof(ours));
	for (size_t i = 0; i < GROUP_GRANT_WORDS; i++) {
		if (theirs[i] != ours[i])
			printf("word %zu of the grant is %" PRIu64 ", not %" PRIu64
			       "\n",
			       i, theirs[i], ours[i]);
		expect(b, theirs[i] == ours[i]);
	}
}

/* ---- Fleets ---------------------------------------------------------------------- */

static void beat(struct beats *b)
{
	struct remote_told told;
	struct remote_job job;
	redisReply *reply;

	beats_draw(b);
	job = job_of(b);
	reply = call(b, &job, 1, &told);
	beats_serve(b);
	expect_same_grant(b, &told, &b->beat.grant);
	expect_same_kept(b);
	beats_hear(b);
	redis_reply_free(reply);
}

/* The same beat several times in one call: all but the first are old. */
static void beat_together(struct beats *b)
{
	size_t count = chance_between(&b->chance, 2, TOGETHER);
	struct remote_told told[TOGETHER];
	struct remote_job jobs[TOGETHER];
	redisReply *reply;

	beats_draw(b);
	for (size_t i = 0; i < count; i++)
		jobs[i] = job_of(b);
	reply = call(b, jobs, count, told);
	for (size_t i = 0; i < count; i++) {
		beats_serve(b);
		expect_same_grant(b, &told[i], &b->beat.grant);
	}
	expect_same_kept(b);
	beats_hear(b);
	redis_reply_free(reply);
}

static void run_fleet(uint64_t seed, uint64_t steps, struct beats_tally *tally)
{
	static struct beats b;

	redis_talk_do(&talk, "FLUSHALL");
	redis_talk_do(&talk, "SET test:{b00}generation one");
	beats_open(&b, seed, NOW, tally);
	while (b.step < steps)
		if (chance_one_in(&b.chance, 10))
			beat_together(&b);
		else
			beat(&b);
	beats_close(&b);
}

/* ---- What somebody deleted, or an older version wrote ----------------------------- */

#define LEASE BEATS_LEASE
#define LONGER GALE_SECONDS(7)

/* A fleet of which nothing is drawn. */
static void open_bare(struct beats *b)
{
	static struct beats_tally tally;

	redis_talk_do(&talk, "FLUSHALL");
	redis_talk_do(&talk, "SET test:{b00}generation one");
	beats_open(b, 1, NOW, &tally);
	b->group = &b->groups[0];
}

static void hear(const struct beats *b, const struct remote_told *told,
                 struct store_beat *beat)
{
	expect(b, remote_explain_beat(told, beat) == STORE_DONE);
	expect(b, beat->grant.result == GROUP_GRANTED);
}

static struct group_grant tell(struct beats *b, size_t node,
                               const struct beats_said *said)
{
	struct remote_told told;
	struct remote_job job;
	redisReply *reply;

	b->beat = beats_say(b, node, said);
	job = job_of(b);
	reply = call(b, &job, 1, &told);
	hear(b, &told, &b->beat);
	redis_reply_free(reply);
	return b->beat.grant;
}
#define TELL(b, node, ...) tell((b), (node), &(struct beats_said){ __VA_ARGS__ })

static void do_to(const struct beats *b, const char *kind, struct remote_bytes *words,
                  size_t count)
{
	redisReply *reply;

	ask(b, kind, words, count);
	redis_talk_send(&talk);
	reply = redis_talk_hear(&talk);
	expect(b, reply->type != REDIS_REPLY_ERROR);
	redis_reply_free(reply);
}

/* A node that is new has nothing until a lease is over, and then all. */
static void expect_quiet(struct beats *b, uint64_t lease_us)
{
	struct group_grant grant = TELL(b, 3, .incarnation = 9, .seq = 1);

	expect(b, grant.share == 0 && grant.next > 0 && grant.members == 1);
	expect(b, grant.lease_us == lease_us);
	grant = TELL(b, 3, .incarnation = 9, .seq = 2, .life = grant.life,
	             .over = grant.next);
	expect(b, grant.share == 10 && grant.members == 1);
}

static struct group_grant open_with_one(struct beats *b)
{
	struct group_grant grant;

	open_bare(b);
	grant = TELL(b, 1, .incarnation = 7, .seq = 1);
	expect(b, grant.share == 10);
	return grant;
}

static void a_key_that_was_deleted_alone_spoils_nothing(void)
{
	static struct beats b;
	const char *const lost[] = { REDIS_GROUP, REDIS_LEASES };
	struct remote_bytes words[2] = { text("DEL") };
	struct group_grant grant;

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		open_with_one(&b);
		do_to(&b, lost[i], words, 2);
		expect_quiet(&b, LEASE);
		beats_close(&b);
	}
	grant = open_with_one(&b);
	do_to(&b, REDIS_ESTIMATES, words, 2);
	grant = TELL(&b, 1, .incarnation = 7, .seq = 2, .held = 10,
	             .generation = grant.generation);
	expect(&b, grant.share == 10 && grant.limit == 10);
	beats_close(&b);
}

static void a_group_of_an_older_version_is_quiet_for_the_longer_lease(void)
{
	static struct beats b;
	static const size_t lengths[] = { 0, 232, 256, 264, 288 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		double older[36] = { 0, 0, 1, 1, 100, (double)LONGER };
		struct remote_bytes words[4] = { text("HSET"),
			                         text(""),
			                         text("g"),
			                         { (uint8_t *)older, lengths[i] } };

		if (lengths[i] >= 264) { /* these know the longest lease of all nodes */
			older[5] = (double)LEASE;
			older[12] = (double)LONGER;
		}
		open_with_one(&b);
		do_to(&b, REDIS_GROUP, words, 4);
		expect_quiet(&b, lengths[i] > 0 ? LONGER : LEASE);
		beats_close(&b);
	}
}

/* It had all words but the last.  GROUP-16 */
static void a_group_of_before_small_rises_waited_goes_on(void)
{
	static struct beats b;
	struct remote_bytes had[3] = { text("HGET"), text(""), text("g") };
	struct remote_bytes words[4] = { text("HSET"), text(""), text("g") };
	uint8_t older[8 * (GROUP_WORDS - 1)];
	struct group_grant first = open_with_one(&b), next;
	redisReply *reply;

	ask(&b, REDIS_GROUP, had, 3);
	redis_talk_send(&talk);
	reply = redis_talk_hear(&talk);
	expect(&b, reply->type == REDIS_REPLY_STRING && reply->len == 8 * GROUP_WORDS);
	memcpy(older, reply->str, sizeof(older));
	redis_reply_free(reply);
	words[3] = (struct remote_bytes){ older, sizeof(older) };
	do_to(&b, REDIS_GROUP, words, 4);
	next = TELL(&b, 1, .incarnation = 7, .seq = 2, .held = 10,
	            .generation = first.generation);
	expect(&b, next.share == 10 && next.life == first.life);
	expect(&b, next.generation == first.generation && next.next == 0);
	beats_close(&b);
}

/* Writes words that no script writes into the group of the first node. */
static void break_group(const struct beats *b, int how)
{
	static const uint8_t short_words[8];
	const struct beats_name *node = &b->nodes[3];
	uint8_t member[1 + STORE_NODE_MAX] = "m";
	double no_numbers[GROUP_WORDS];
	struct remote_bytes set[3] = { text("SET"), text(""), text("x") };
	struct remote_bytes ghost[4] = { text("ZADD"), text(""), text("0"),
		                         text("ghost") };
	struct remote_bytes put[4] = { text("HSET"), text("") };

	memcpy(member + 1, node->bytes, node->len);
	for (size_t i = 0; i < GROUP_WORDS; i++)
		no_numbers[i] = 0.0 / 0.0;
	switch (how) {
	case 0:
		do_to(b, REDIS_LEASES, set, 3);
		break;
	case 1:
		do_to(b, REDIS_ESTIMATES, set, 3);
		break;
	case 2: /* a lease of a node that is no member */
		do_to(b, REDIS_LEASES, ghost, 4);
		break;
	case 3:
		put[2] = (struct remote_bytes){ member, 1 + node->len };
		put[3] = (struct remote_bytes){ short_words, sizeof(short_words) };
		do_to(b, REDIS_GROUP, put, 4);
		break;
	default:
		put[2] = text("g");
		put[3] =
		    (struct remote_bytes){ (uint8_t *)no_numbers, sizeof(no_numbers) };
		do_to(b, REDIS_GROUP, put, 4);
	}
}
#define BREAKS 5

/* In one call a new node of the group that is broken, and the member of another group. */
static void expect_only_the_other_goes_on(struct beats *b, uint64_t generation)
{
	struct store_beat beats[2];
	struct remote_job jobs[2];
	struct remote_told told[2];
	struct group_grant grant;
	redisReply *reply;

	for (size_t i = 0; i < 2; i++) {
		const struct beats_said said[2] = { { .incarnation = 9, .seq = 1 },
			                            { .incarnation = 7,
			                              .seq = 2,
			                              .held = 10,
			                              .generation = generation } };

		beats[i] = beats_say(b, i == 0 ? 3 : 1, &said[i]);
		b->group = &b->groups[i];
		jobs[i] = job_of(b);
		jobs[i].beat = &beats[i];
	}
	reply = call(b, jobs, 2, told);
	for (size_t i = 0; i < 2; i++)
		hear(b, &told[i], &beats[i]);
	redis_reply_free(reply);
	expect(b, beats[1].grant.share == 10 && beats[1].grant.next == 0);
	grant = beats[0].grant;
	expect(b, grant.share == 0 && grant.next > 0 && grant.members == 1);
	expect(b, grant.lease_us == LEASE);
	b->group = &b->groups[0];
	grant = TELL(b, 3, .incarnation = 9, .seq = 2, .life = grant.life,
	             .over = grant.next);
	expect(b, grant.share == 10 && grant.members == 1);
}

static void a_group_that_is_broken_is_quiet_and_costs_no_other(void)
{
	static struct beats b;

	for (int how = 0; how < BREAKS; how++) {
		struct group_grant grant;

		open_with_one(&b);
		b.group = &b.groups[1];
		grant = TELL(&b, 1, .incarnation = 7, .seq = 1);
		expect(&b, grant.share == 10);
		b.group = &b.groups[0];
		break_group(&b, how);
		expect_only_the_other_goes_on(&b, grant.generation);
		beats_close(&b);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, steps = 20000;
	struct beats_tally tally = { 0 };
	struct redis_server server;
	const struct argument arguments[] = {
		{ "--seed", &seed },
		{ "--steps", &steps },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	redis_server_start(&server, NULL);
	redis_talk_open(&talk, &server);
	redis_named_open(&user, &server);
	must(redis_put_script(&talk.text, &redis_beats_script));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
	while (tally.beats < steps)
		run_fleet(seed++, steps < STEPS_MOST ? steps : STEPS_MOST, &tally);
	a_key_that_was_deleted_alone_spoils_nothing();
	a_group_of_an_older_version_is_quiet_for_the_longer_lease();
	a_group_of_before_small_rises_waited_goes_on();
	a_group_that_is_broken_is_quiet_and_costs_no_other();
	redis_talk_close(&user);
	redis_talk_close(&talk);
	redis_server_stop(&server);
	beats_print(&tally);
	if (steps < 10000 || beats_tell_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}
