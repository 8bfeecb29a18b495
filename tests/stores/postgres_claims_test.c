/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_claims_test.c -- gale.claim against stores/pools.c, on fleets by lot.
 *
 * The server's clock is the test's.  After each claim both must have answered the same, and keep
 * the same words of the pool, its tenants, and the claim.
 *
 *     postgres_claims_test [--seed N] [--steps N]     prints the seed of what fails
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/arguments.h"
#include "tests/support/claims.h"
#include "tests/support/must.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"

#define STEPS 2000     /* so many meet everything */
#define STEPS_MOST 500 /* of one fleet */
#define NOW GALE_DAYS(20000)
#define TOGETHER 4 /* claims of one call, at most */
#define TEXT_MOST 65536

static struct line line;

#define expect(c, x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			fail(c, #x, __LINE__);                                         \
	} while (0)

_Noreturn static void fail(const struct claims *c, const char *what, int at)
{
	printf("FAILED: postgres_claims_test.c:%d: %s\nreplay: --seed %" PRIu64
	       " --steps %" PRIu64 "\n",
	       at, what, c->seed, c->step);
	exit(1);
}

/* ---- What is there --------------------------------------------------------------- */

static size_t add_hex(char *out, const char *before, const uint8_t *bytes, size_t count)
{
	size_t end = (size_t)sprintf(out, "%s", before);

	for (size_t i = 0; i < count; i++)
		end += (size_t)sprintf(out + end, "%02x", bytes[i]);
	return end;
}

/* Words as the server prints a row of them. */
static size_t add_words(char *out, const void *words, size_t count)
{
	size_t end = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		end +=
		    (size_t)sprintf(out + end, i == 0 ? "%" PRIu64 : ",%" PRIu64, word);
	}
	return end;
}

static const char *text_of(const struct claims *c, const char *what, const char *from)
{
	static char sql[1024];
	size_t end = (size_t)sprintf(
	    sql, "SELECT coalesce((SELECT %s FROM gale.%s = ", what, from);

	end += add_hex(sql + end, "'\\x", c->pool->name.bytes, c->pool->name.len);
	sprintf(sql + end, "'), '')");
	return postgres_line_text(&line, sql);
}

static void expect_text(const struct claims *c, const char *is, const char *should_be)
{
	if (strcmp(is, should_be) != 0)
		printf("is        %s\nshould be %s\n", is, should_be);
	expect(c, strcmp(is, should_be) == 0);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One line for each tenant: its name, and its words, by name. */
static void print_tenants(const struct claims *c, char *out)
{
	static char lines[CLAIMS_TENANTS][3 * STORE_TENANT_MAX + 128];
	char *sorted[CLAIMS_TENANTS];
	size_t count = 0;

	for (size_t i = 0; i < c->pool->tenants; i++) {
		const struct claims_name *name = &c->tenants[i];
		const struct pool_tenant *tenant = claims_tenant(c, i);
		size_t end;

		if (!tenant)
			continue;
		end = add_hex(lines[count], "", name->bytes, name->len);
		end += (size_t)sprintf(lines[count] + end, "=");
		add_words(lines[count] + end, tenant, POOL_TENANT_WORDS);
		sorted[count] = lines[count];
		count++;
	}
	qsort(sorted, count, sizeof(*sorted), by_name);
	*out = '\0';
	for (size_t i = 0; i < count; i++)
		out += sprintf(out, i == 0 ? "%s" : " %s", sorted[i]);
}

static void expect_same_kept(struct claims *c)
{
	const struct pool_claim *claim = claims_claim(c);
	static char text[TEXT_MOST];
	char from[256];

	add_words(text, claims_pool(c), POOL_WORDS);
	expect_text(c,
	            text_of(c,
	                    "concat_ws(',', period_us, now_us, window_us, used, "
	                    "\"limit\", claims, release_us, protect_us)",
	                    "pools WHERE name"),
	            text);
	print_tenants(c, text);
	expect_text(c,
	            text_of(c,
	                    "string_agg(line, ' ' ORDER BY line COLLATE \"C\") FROM "
	                    "(SELECT encode(name, 'hex') || '=' || concat_ws(',', "
	                    "guarantee, cap, weight, asked_us, used, refused) AS line, "
	                    "pool",
	                    "tenants) AS t WHERE pool"),
	            text);
	*text = '\0';
	if (claim)
		add_words(text, claim, POOL_CLAIM_WORDS);
	sprintf(from + add_hex(from, "claims WHERE tenant = '\\x", c->claim.tenant,
	                       c->claim.tenant_len),
	        "' AND node = %" PRIu64 " AND window_us = %" PRIu64 " AND pool",
	        c->claim.node, claims_pool(c)->window);
	expect_text(c, text_of(c, "concat_ws(',', granted, back)", from), text);
}

/* ---- Fleets ---------------------------------------------------------------------- */

static void expect_same_answer(struct claims *c, const struct remote_told *told)
{
	struct store_claim heard = c->claim;
	char ours[512], theirs[512];

	expect(c, told->now_us == c->now_us);
	expect(c, remote_explain_claim(told, &heard) == STORE_DONE);
	add_words(ours, &c->claim.answer, POOL_ANSWER_WORDS);
	add_words(theirs, &heard.answer, POOL_ANSWER_WORDS);
	expect_text(c, theirs, ours);
}

/* Once, or the same several times in one call. */
static void claim(struct claims *c)
{
	size_t count =
	    chance_one_in(&c->chance, 10) ? chance_between(&c->chance, 2, TOGETHER) : 1;
	struct remote_told told[TOGETHER];
	struct remote_job jobs[TOGETHER];
	char sql[128];

	claims_draw(c);
	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, c->now_us);
	postgres_line_do(&line, sql);
	for (size_t i = 0; i < count; i++)
		jobs[i] = (struct remote_job){
			.verb = REMOTE_CLAIM,
			.key = { c->pool->name.bytes, c->pool->name.len },
			.claim = &c->claim,
			.not_before_us = c->not_before_us,
		};
	expect(c, postgres_line_call(&line, jobs, count, told) == POSTGRES_TOLD);
	for (size_t i = 0; i < count; i++) {
		claims_serve(c);
		expect_same_answer(c, &told[i]);
	}
	if (chance_one_in(&c->chance, 3)) /* it takes longer than the claim */
		expect_same_kept(c);
	claims_hear(c);
}

/* Its clock is never before it began. */
static void run_fleet(uint64_t seed, uint64_t steps, struct claims_tally *tally)
{
	static struct claims c;

	postgres_line_do(&line, "TRUNCATE gale.pools, gale.tenants, gale.claims");
	claims_open(&c, seed, NOW + GALE_DAYS(1), tally);
	while (c.step < steps)
		claim(&c);
	claims_close(&c);
}

/* Words that no claim leaves there: the pool is left as it is, and the other one of the call is served. */
static void a_pool_that_is_broken_costs_no_other(void)
{
	static struct claims_tally tally;
	static struct claims c;
	struct remote_told told[2];
	struct remote_job jobs[2];
	char sql[1024];
	size_t end;

	postgres_line_do(&line, "TRUNCATE gale.pools, gale.tenants, gale.claims");
	claims_open(&c, 1, NOW + GALE_DAYS(1), &tally);
	claims_draw(&c);
	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, c.now_us);
	postgres_line_do(&line, sql);
	for (size_t i = 0; i < 2; i++)
		jobs[i] = (struct remote_job){
			.verb = REMOTE_CLAIM,
			.key = { c.pools[i].name.bytes, c.pools[i].name.len },
			.claim = &c.claim,
		};
	expect(&c, postgres_line_call(&line, jobs, 2, told) == POSTGRES_TOLD);
	expect(&c, told[0].code == REMOTE_DONE && told[1].code == REMOTE_DONE);
	end = (size_t)sprintf(sql, "UPDATE gale.pools SET now_us = "
	                           "9223372036854775807 WHERE name = '");
	end += add_hex(sql + end, "\\x", c.pools[0].name.bytes, c.pools[0].name.len);
	sprintf(sql + end, "'");
	postgres_line_do(&line, sql);
	expect(&c, postgres_line_call(&line, jobs, 2, told) == POSTGRES_TOLD);
	expect(&c, told[0].code == REMOTE_GARBLED && told[1].code == REMOTE_DONE);
	expect(&c, postgres_line_number(&line, "SELECT count(*) FROM gale.pools WHERE "
	                                       "now_us = 9223372036854775807") == 1);
	claims_close(&c);
}

int main(int argc, char **argv)
{
	uint64_t seed = 7, steps = STEPS;
	struct claims_tally tally = { 0 };
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
	a_pool_that_is_broken_costs_no_other();
	while (tally.asks < steps)
		run_fleet(seed++, steps < STEPS_MOST ? steps : STEPS_MOST, &tally);
	postgres_line_close(&line);
	postgres_server_stop(server);
	claims_print(&tally);
	if (steps < STEPS || claims_tell_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}
