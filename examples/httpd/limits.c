/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * limits.c -- gale's handles.
 *
 * A policy has to define the limiters "keys" and "addresses".  Their handles stay the same
 * when the policy is read again, so the threads that ask know nothing of that.
 */
#include "examples/httpd/httpd.h"

#include <stdio.h>

#include "examples/server/log.h"

#define PENDING 4096 /* connections of a thread that may wait for an answer of gale's */

static void must(enum gale_err err, const char *what)
{
	if (err != GALE_ERR_OK)
		refuse("%s: %s", what, gale_err_text(err));
}

/* When gale cannot tell, as with a store that is down, this server would rather serve. */
static struct gale_limiter *open_limiter(struct limits *limits, const char *name,
                                         struct gale_rule rule)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = GALE_LEASED,
		.on_outage = GALE_ON_OUTAGE_ALLOW,
		.store = limits->store,
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(limits->runtime, &config, &limiter), name);
	return limiter;
}

static void open_by_flags(struct limits *limits, const struct server *server)
{
	struct gale_store_config store = { .max_keys = server->max_clients };
	struct gale_rule rule = gale_fixed_window(server->limit, server->window_us);

	must(gale_store_open(limits->runtime, &store, &limits->store), "store");
	limits->by_key = open_limiter(limits, "keys", rule);
	limits->by_address = open_limiter(limits, "addresses", rule);
	limits->window_us = server->window_us;
}

static void open_by_policy(struct limits *limits, const char *path)
{
	struct gale_policy_config config = { .path = path };
	char why[GALE_POLICY_WHY_ROOM];

	if (gale_policy_open(limits->runtime, &config, why, sizeof(why),
	                     &limits->policy) != GALE_ERR_OK)
		refuse("%s", why);
	limits->by_key = gale_policy_limiter(limits->policy, "keys");
	limits->by_address = gale_policy_limiter(limits->policy, "addresses");
	if (!limits->by_key || !limits->by_address)
		refuse("%s: it must define the limiters \"keys\" and \"addresses\"",
		       path);
}

void limits_open(struct limits *limits, const struct server *server)
{
	struct gale_config config = { .pending_max = PENDING,
		                      .max_keys = server->max_clients,
		                      .log = &log_to_stderr };

	if (server->limit == 0 && !server->policy)
		return;
	must(gale_runtime_open(&config, &limits->runtime), "gale");
	if (server->policy)
		open_by_policy(limits, server->policy);
	else
		open_by_flags(limits, server);
}

void limits_reload(struct limits *limits)
{
	char why[GALE_POLICY_WHY_ROOM];

	if (!limits->policy)
		fprintf(stderr, "httpd: there is no --policy to read again\n");
	else if (gale_policy_reload(limits->policy, NULL, why, sizeof(why)) ==
	         GALE_ERR_OK)
		fprintf(stderr, "httpd: the new policy is in force\n");
	else
		fprintf(stderr, "httpd: the old policy stays: %s\n", why);
}

/* ---- Keys that are refused most --------------------------------------------------- */

struct page {
	struct gale_sink sink;
	struct buffer text;
};

static bool append(struct gale_sink *self, const char *text, size_t bytes)
{
	return buffer_add(&((struct page *)self)->text, text, bytes);
}

/* Standard error may be slow to take it, and gale's sink must not wait: so it is kept first. */
void limits_tell(struct limits *limits)
{
	struct page page = { .sink = { append } };

	if (!limits->runtime)
		return;
	if (gale_offenders_write(limits->runtime, &page.sink) != GALE_ERR_OK)
		fprintf(stderr, "httpd: there is no memory\n");
	else if (page.text.text)
		fwrite(page.text.text, 1, buffer_count(&page.text), stderr);
	buffer_free(&page.text);
}

/* ---- The end ---------------------------------------------------------------------- */

void limits_close(struct limits *limits)
{
	if (limits->policy) {
		gale_policy_close(limits->policy);
	} else {
		gale_limiter_close(limits->by_address);
		gale_limiter_close(limits->by_key);
		gale_store_close(limits->store);
	}
	gale_runtime_close(limits->runtime);
}
