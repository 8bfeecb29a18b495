/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * docs_world.h -- what the blocks of C in docs/ stand in: variables and functions that they do
 * not define, what comes before each block, and what must be true after it.
 *
 * docs_programs_test.sh makes a function of each block.  The fourth block of holds.md is
 * holds_4, between BEFORE_holds_4 and AFTER_holds_4: a block without them does not compile.
 *
 * Threads   One.
 */
#ifndef TESTS_TOOLS_DOCS_WORLD_H
#define TESTS_TOOLS_DOCS_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/hold.h>
#include <gale/http.h>
#include <gale/policy.h>
#include <gale/tenants.h>

extern struct gale_runtime *runtime;
extern struct gale_store *store;
extern struct gale_seat *seat;
extern struct gale_limiter *limiter, *per_minute, *per_day, *of_user, *of_model;
extern struct gale_budget *budget;
extern struct gale_tenant *tenant, *organisation;
extern struct gale_hold hold;
extern const char *key, *user, *model;
extern size_t key_len, user_len, model_len;
extern uint64_t cost, prompt, max_tokens, within, used;
extern const uint64_t costs[2];

/* What a block must call, or must not: how often it was. */
extern unsigned queries, streams, sent;

bool query_database(void);
void stream(void);
void send_reply(int status, const char *lines, size_t length);
void report_error(void);    /* not called */
void stop_the_stream(void); /* not called */
int refuse_by(size_t part); /* not called */
int refuse(void);           /* not called */
bool next_token(uint64_t *used);

void must(bool is_so, const char *what);
#define MUST(is_so) must(is_so, #is_so)

/* The key has so many units left, and no more: asks for one more, and for them. */
void must_be_left(struct gale_limiter *of, const char *name, uint64_t units);
void must_be_text(char *text, const char *words); /* and frees it */
void open_organisation(void);
void open_tenant(void);
void open_hold(void);

/* As the page says: every key has the new limit. */
#define BEFORE_changing_1
#define AFTER_changing_1                                                               \
	MUST(gale_wait(seat, limiter, "bob", 3, 1, within).limit == 200);

#define BEFORE_concurrency_1
#define AFTER_concurrency_1                                                            \
	MUST(queries == 1);                                                            \
	MUST(gale_enter(seat, guard, 1, GALE_NORMAL).verdict == GALE_ALLOW);

/* Both limits were used, or neither. */
#define BEFORE_holds_1
#define AFTER_holds_1                                                                  \
	must_be_left(per_minute, user, 999);                                           \
	must_be_left(per_day, user, 999);

/* 700 of the 800 that were held. */
#define BEFORE_holds_2
#define AFTER_holds_2                                                                  \
	MUST(streams == 1);                                                            \
	must_be_left(of_user, user, 300);                                              \
	must_be_left(of_model, model, 300);

#define BEFORE_holds_3 open_hold();
#define AFTER_holds_3 must_be_left(of_user, user, 1000 - 300 - 256);

#define BEFORE_http_1
#define AFTER_http_1 MUST(sent == 1);

#define BEFORE_metrics_1
#define AFTER_metrics_1                                                                \
	MUST(err == GALE_ERR_OK);                                                      \
	MUST(fclose(page.file) == 0);                                                  \
	MUST(strlen(memory) == length);                                                \
	must_be_text(memory, "# TYPE gale_");

/* Its store is a server. */
#define BEFORE_policy_1
#define AFTER_policy_1                                                                 \
	MUST(gale_wait(seat, api, key, key_len, 1, GALE_SECONDS(60)).why <=            \
	     GALE_WHY_CREDIT);                                                         \
	gale_policy_close(policy);

#define BEFORE_tenants_1
#define AFTER_tenants_1 MUST(answer.verdict == GALE_ALLOW);

/* It has grown once, and is settled. */
#define BEFORE_tenants_2 open_tenant();
#define AFTER_tenants_2                                                                \
	MUST(used == 600);                                                             \
	MUST(gale_tenant_commit(seat, &hold, used) == GALE_ERR_HOLD);

#define BEFORE_tenants_3 open_organisation();
#define AFTER_tenants_3 MUST(gale_tenant_ask(seat, tenant, 1).verdict == GALE_ALLOW);

#define BEFORE_tenants_4
#define AFTER_tenants_4                                                                \
	MUST(!gale_budget_open(runtime, &config, &budget));                            \
	MUST(!gale_tenant_open(budget, &terms, &tenant));                              \
	MUST(gale_tenant_wait(seat, tenant, 1, within).verdict == GALE_ALLOW);

#endif
