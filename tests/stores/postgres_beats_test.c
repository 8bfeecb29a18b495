/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_beats_test.c -- gale.beat against stores/groups.c, on fleets by lot.
 *
 * The server's clock is the test's.  After each beat both must have granted the same, and keep
 * the same words of the group, its estimates, and each member.
 *
 *     postgres_beats_test [--seed N] [--steps N]     prints the seed of what fails
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/arguments.h"
#include "tests/support/beats.h"
#include "tests/support/must.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"

#define STEPS_MOST 1500 /* of one fleet */
#define NOW GALE_DAYS(20000)
#define TOGETHER 4 /* beats of one call, at most */
#define TEXT_MOST 4096

static struct line line;

#define expect(b, x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			fail(b, #x, __LINE__);                                         \
	} while (0)

_Noreturn static void fail(const struct beats *b, const char *what, int at)
{
	printf("FAILED: postgres_beats_test.c:%d: %s\nreplay: --seed %" PRIu64
	       " --steps %" PRIu64 "\n",
	       at, what, b->seed, b->step);
	exit(1);
}

/* ---- What is there --------------------------------------------------------------- */

static size_t add_hex(char *out, const uint8_t *bytes, size_t count)
{
	size_t end = (size_t)sprintf(out, "'\\x");

	for (size_t i = 0; i < count; i++)
		end += (size_t)sprintf(out + end, "%02x", bytes[i]);
	return end + (size_t)sprintf(out + end, "'");
}

/* Words as the server prints a row of them. */
static void print_words(char *out, const void *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		out += sprintf(out, i == 0 ? "%" PRIu64 : ",%" PRIu64, word);
	}
}

static const char *text_of(const char *columns, const char *table,
                           const struct beats *b, const struct beats_name *node)
{
	static char sql[TEXT_MOST];
	size_t end = (size_t)sprintf(
	    sql, "SELECT coalesce((SELECT concat_ws(',', %s) FROM gale.%s WHERE %s = ",
	    columns, table, node ? "group_name" : "name");

	end += add_hex(sql + end, b->group->name.bytes, b->group->name.len);
	if (node) {
		end += (size_t)sprintf(sql + end, " AND node = ");
		end += add_hex(sql + end, node->bytes, node->len);
	}
	sprintf(sql + end, "), '')");
	return postgres_line_text(&line, sql);
}

static void expect_text(const struct beats *b, const char *is, const char *should_be)
{
	if (strcmp(is, should_be) != 0)
		printf("is        %s\nshould be %s\n", is, should_be);
	expect(b, strcmp(is, should_be) == 0);
}

static void expect_group(const struct beats *b)
{
	const struct group_estimates *estimates = beats_estimates(b);
	char text[TEXT_MOST];
	bool any = false;

	print_words(text, beats_group(b), GROUP_WORDS);
	expect_text(
	    b,
	    text_of("law, parts, start, floor, ceiling, lease_us, hold_us, "
	            "rotate_us, probe_us, now_us, epoch, life, lasts_us, beats, over, "
	            "quiet, "
	            "generation, "
	            "\"limit\", parted, lowered_us, joined_us, members, reserved, "
	            "weights, busy, limited, hungry, claimed, lacking, in_flight, "
	            "nudge, wanting, give_us, take_us, highest",
	            "groups", b, NULL),
	    text);
	for (size_t i = 0, end = 0; i < GROUP_BUCKETS; i++) {
		uint32_t count = estimates ? estimates->members[i] : 0;

		end += (size_t)sprintf(text + end, i == 0 ? "%u" : ",%u", count);
		any |= count > 0;
	}
	if (any)
		expect_text(
		    b, text_of("array_to_string(estimates, ',')", "groups", b, NULL),
		    text);
}

static void expect_member(const struct beats *b, size_t node)
{
	const struct group_member *member = beats_member(b, node);
	char text[TEXT_MOST] = "";

	if (member)
		print_words(text, member, GROUP_MEMBER_WORDS);
	expect_text(
	    b,
	    text_of("incarnation, position, seq, beat, share, generation, "
	            "high, in_flight, raised_us, weight, busy, estimate, limited, "
	            "hungry, claim, lacks",
	            "members", b, &b->nodes[node]),
	    text);
}

/* All members once in a while, and the one that was at it each time. */
static void expect_same_kept(struct beats *b)
{
	bool all = chance_one_in(&b->chance, 4);

	expect_group(b);
	for (size_t node = 0; node < BEATS_NODES; node++)
		if (all || node == b->node)
			expect_member(b, node);
}

/* ---- Fleets ---------------------------------------------------------------------- */

static void expect_same_grant(struct beats *b, const struct remote_told *told)
{
	struct store_beat heard = b->beat;
	char ours[TEXT_MOST], theirs[TEXT_MOST];

	expect(b, told->now_us == b->now_us);
	expect(b, remote_explain_beat(told, &heard) == STORE_DONE);
	print_words(ours, &b->beat.grant, GROUP_GRANT_WORDS);
	print_words(theirs, &heard.grant, GROUP_GRANT_WORDS);
	expect_text(b, theirs, ours);
}

/* The same beat several times in one call: all but the first are old. */
static void beat(struct beats *b)
{
	size_t count =
	    chance_one_in(&b->chance, 10) ? chance_between(&b->chance, 2, TOGETHER) : 1;
	struct remote_told told[TOGETHER];
	struct remote_job jobs[TOGETHER];
	char sql[128];

	beats_draw(b);
	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, b->now_us);
	postgres_line_do(&line, sql);
	for (size_t i = 0; i < count; i++)
		jobs[i] = (struct remote_job){
			.verb = REMOTE_BEAT,
			.key = { b->group->name.bytes, b->group->name.len },
			.beat = &b->beat,
			.forgot_us = b->forgot_us,
		};
	expect(b, postgres_line_call(&line, jobs, count, told) == POSTGRES_TOLD);
	for (size_t i = 0; i < count; i++) {
		beats_serve(b);
		expect_same_grant(b, &told[i]);
	}
	expect_same_kept(b);
	beats_hear(b);
}

/* Its clock is never before it began. */
static void run_fleet(uint64_t seed, uint64_t steps, struct beats_tally *tally)
{
	static struct beats b;

	postgres_line_do(&line, "TRUNCATE gale.groups, gale.members");
	beats_open(&b, seed, NOW + GALE_DAYS(1), tally);
	while (b.step < steps)
		beat(&b);
	beats_close(&b);
}

/* ---- Words that no beat leaves there ----------------------------------------------- */

/* A beat of the group's node to each; the group's clock goes on by a millisecond. */
static void tell(struct beats *b, const struct beats_said *said, const size_t *nodes,
                 size_t count, struct group_grant *ret_grants)
{
	struct store_beat beats[TOGETHER];
	struct remote_told told[TOGETHER];
	struct remote_job jobs[TOGETHER];
	char sql[128];

	b->now_us += 1000;
	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, b->now_us);
	postgres_line_do(&line, sql);
	for (size_t i = 0; i < count; i++) {
		const struct beats_name *name = &b->groups[i].name;

		beats[i] = beats_say(b, nodes[i], &said[i]);
		jobs[i] = (struct remote_job){ .verb = REMOTE_BEAT,
			                       .key = { name->bytes, name->len },
			                       .beat = &beats[i] };
	}
	expect(b, postgres_line_call(&line, jobs, count, told) == POSTGRES_TOLD);
	for (size_t i = 0; i < count; i++) {
		expect(b, remote_explain_beat(&told[i], &beats[i]) == STORE_DONE);
		expect(b, beats[i].grant.result == GROUP_GRANTED);
		ret_grants[i] = beats[i].grant;
	}
}

static void break_group(const struct beats *b, const char *sets)
{
	const struct beats_name *name = &b->groups[0].name;
	char sql[TEXT_MOST];
	size_t end =
	    (size_t)sprintf(sql, "UPDATE gale.groups SET %s WHERE name = ", sets);

	add_hex(sql + end, name->bytes, name->len);
	postgres_line_do(&line, sql);
}

/* In one call a new node of the group that is broken, and the member of another group. */
static void a_group_that_is_broken_is_quiet_and_costs_no_other(void)
{
	static const char *const breaks[] = {
		"members = -1", /* and 0 with the new one */
		"generation = 9223372036854775807",
		"weights = 9223372036854775807",
		"reserved = -9223372036854775808",
	};
	static const size_t first[] = { 1, 1 }, then[] = { 3, 1 };
	static struct beats_tally tally;
	static struct beats b;

	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		struct beats_said said[2] = { { .incarnation = 7, .seq = 1 },
			                      { .incarnation = 7, .seq = 1 } };
		struct group_grant grants[2];

		postgres_line_do(&line, "TRUNCATE gale.groups, gale.members");
		beats_open(&b, 1, NOW + GALE_DAYS(1), &tally);
		tell(&b, said, first, 2, grants);
		expect(&b, grants[0].share == BEATS_SHARE);
		break_group(&b, breaks[i]);
		said[0] = (struct beats_said){ .incarnation = 9, .seq = 1 };
		said[1].seq = 2;
		said[1].held = BEATS_SHARE;
		said[1].generation = grants[1].generation;
		tell(&b, said, then, 2, grants);
		expect(&b, grants[1].share == BEATS_SHARE && grants[1].next == 0);
		expect(&b, grants[0].share == 0 && grants[0].next > 0);
		expect(&b, grants[0].members == 1 && grants[0].life == 10);
		expect(&b, grants[0].lease_us == BEATS_LEASE);
		said[0].seq = 2;
		said[0].life = grants[0].life;
		said[0].over = grants[0].next;
		tell(&b, said, then, 1, grants);
		expect(&b, grants[0].share == BEATS_SHARE && grants[0].members == 1);
		beats_close(&b);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = 2, steps = 3000;
	struct beats_tally tally = { 0 };
	struct postgres_server *server;
	const struct argument arguments[] = {
		{ "--seed", &seed },
		{ "--steps", &steps },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	server = postgres_server_start();
	postgres_line_open(&line, postgres_server_address(server));
	postgres_line_install(&line);
	postgres_line_do(
	    &line,
	    "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint LANGUAGE sql"
	    " VOLATILE AS $$SELECT current_setting('gale.test_now')::bigint$$");
	a_group_that_is_broken_is_quiet_and_costs_no_other();
	while (tally.beats < steps)
		run_fleet(seed++, steps < STEPS_MOST ? steps : STEPS_MOST, &tally);
	postgres_line_close(&line);
	postgres_server_stop(server);
	beats_print(&tally);
	if (steps < 3000 || beats_tell_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}
