/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* node.c -- opens a node, and asks its store for a first unit. */
#define _GNU_SOURCE
#include "tools/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gale/http.h>

#include "tools/tally.h"

#define METRICS_MOST 64
#define ANSWER_US GALE_MILLIS(250)
#define NAP_NS 20000000
#define SAY_AFTER_US GALE_MILLIS(500)
#define REACH_US GALE_SECONDS(5)       /* a server must be reached within this */
#define QUARANTINE_US GALE_SECONDS(60) /* and grants nothing for longer than this ... */
#define MARGIN_US GALE_SECONDS(10)     /* ... and a bit */

/* ---- The log --------------------------------------------------------------------- */

/* A limiter's line is what comes of a store's, which tells why and is said once. */
static bool is_a_limiters(const char *source)
{
	return strncmp(source, "limiter", strlen("limiter")) == 0;
}

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	struct node_log *log = (struct node_log *)self;

	pthread_mutex_lock(&log->lock);
	if (log->line[0] == '\0' || !is_a_limiters(source))
		snprintf(log->line, sizeof(log->line), "%s: %s: %s",
		         gale_level_name(level), source, line);
	pthread_mutex_unlock(&log->lock);
}

static void log_init(struct node_log *log)
{
	pthread_mutex_init(&log->lock, NULL);
	log->log.write = write_line;
	log->line[0] = '\0';
}

/* What has failed, and the line that tells why, if there is one.  Returns false. */
static bool log_explain(struct node_log *log, const char *what,
                        struct sentence *ret_why)
{
	pthread_mutex_lock(&log->lock);
	sentence_say(ret_why, "%s%s%s", what, log->line[0] ? "; " : "", log->line);
	pthread_mutex_unlock(&log->lock);
	return false;
}

static bool cannot_start(struct node *node, enum gale_err err, struct sentence *ret_why)
{
	struct sentence failed;

	sentence_say(&failed, "a node cannot start: %s", gale_err_text(err));
	return log_explain(&node->log, failed.is, ret_why);
}

/* ---- Opening --------------------------------------------------------------------- */

static enum gale_err open_limiter(struct node *node, const char *what,
                                  enum gale_mode mode,
                                  struct gale_limiter **ret_limiter)
{
	const struct fleet_flags *flags = node->plan->flags;
	char name[GALE_NAME_MAX + 1];
	struct gale_limiter_config config = {
		.name = name,
		.rule = gale_fixed_window(flags->limit, flags->window_us),
		.mode = mode,
		.on_outage = GALE_ON_OUTAGE_DENY,
		.store = node->store,
	};

	snprintf(name, sizeof(name), "%s-%016" PRIx64, what, node->plan->run);
	return gale_limiter_open(node->runtime, &config, ret_limiter);
}

static enum gale_err open_all(struct node *node)
{
	const struct fleet_flags *flags = node->plan->flags;
	/* All nodes share this machine: one actor each will do. */
	struct gale_config config = { .shards = 1,
		                      .max_keys = (uint32_t)flags->keys,
		                      .log = &node->log.log,
		                      .clock = &node->plan->clock->gale };
	struct gale_store_config store = { .url = flags->store,
		                           .max_keys = flags->keys };
	enum gale_err err = gale_runtime_open(&config, &node->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(node->runtime, &store, &node->store);
	if (err == GALE_ERR_OK)
		err = open_limiter(node, "fleet", flags->mode, &node->limiter);
	return err;
}

bool node_open(struct node *node, const struct node_plan *plan,
               struct sentence *ret_why)
{
	enum gale_err err;

	memset(node, 0, sizeof(*node));
	node->plan = plan;
	log_init(&node->log);
	err = open_all(node);
	return err == GALE_ERR_OK || cannot_start(node, err, ret_why);
}

void node_close(struct node *node)
{
	if (!node->plan)
		return; /* never opened */
	gale_limiter_close(node->first);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	pthread_mutex_destroy(&node->log.lock);
}

/* ---- Warming up ------------------------------------------------------------------ */

struct probe {
	struct node *node;
	struct node_host *host;
	struct gale_seat *seat;
	uint64_t begin_us;
	uint64_t before_us; /* of the last ask */
	uint64_t after_us;
	bool waits; /* the store has answered */
	bool told;
};

/* A key of its own: no other asks can have spent it. */
static struct gale_answer ask(struct probe *probe)
{
	struct fleet_clock *clock = probe->node->plan->clock;
	struct gale_answer answer;
	char key[64];
	int length =
	    snprintf(key, sizeof(key), "%d %p", (int)getpid(), (void *)probe->node);

	probe->before_us = fleet_clock_us(clock);
	answer = gale_wait(probe->seat, probe->node->first, key, (size_t)length,
	                   /* cost= */ 1, ANSWER_US);
	probe->after_us = fleet_clock_us(clock);
	return answer;
}

static bool no_answer(struct probe *probe, struct sentence *ret_why)
{
	struct sentence failed;

	sentence_say(
	    &failed,
	    "--store: no answer for %d seconds (gale doctor URL says what to do)",
	    (int)(REACH_US / 1000000));
	return log_explain(&probe->node->log, failed.is, ret_why);
}

/* It decided by the rule, and in vain. */
static void note_wait(struct probe *probe)
{
	probe->waits = true;
	if (probe->told || probe->after_us - probe->begin_us < SAY_AFTER_US)
		return;
	probe->told = true;
	probe->host->waits(probe->host);
}

static bool may_wait(struct probe *probe, const struct gale_answer *answer,
                     struct sentence *ret_why)
{
	uint64_t waited_us = probe->after_us - probe->begin_us;

	if (!probe->host->goes_on(probe->host))
		return sentence_say(ret_why, "interrupted before anything was counted");
	if (gale_http_status(answer) == 429 || answer->why == GALE_WHY_QUARANTINE)
		note_wait(probe);
	if (!probe->waits && waited_us > REACH_US)
		return no_answer(probe, ret_why);
	if (waited_us > QUARANTINE_US + MARGIN_US)
		return sentence_say(
		    ret_why, "--store: nothing was admitted for %d seconds: %s",
		    (int)(waited_us / 1000000), gale_why_text(answer->why));
	return true;
}

static bool clocks_agree(const struct probe *probe, const struct gale_answer *answer,
                         struct sentence *ret_why)
{
	struct tally_span span =
	    tally_place(probe->node->plan->flags->window_us,
	                probe->before_us - FLEET_CLOCK_SLACK_US,
	                probe->after_us + FLEET_CLOCK_SLACK_US, answer->reset_after_us);

	return span.first <= span.last ||
	       sentence_say(ret_why, "--store: its windows do not end when ours do; "
	                             "run this where the store is");
}

static bool probe_until_admitted(struct probe *probe, struct sentence *ret_why)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	struct gale_answer answer = ask(probe);

	while (answer.verdict != GALE_ALLOW) {
		if (!may_wait(probe, &answer, ret_why))
			return false;
		nanosleep(&nap, NULL);
		answer = ask(probe);
	}
	return clocks_agree(probe, &answer, ret_why);
}

bool node_warm_up(struct node *node, struct node_host *host, struct sentence *ret_why)
{
	struct probe probe = { .node = node, .host = host };
	struct gale_counts stats;
	enum gale_err err;
	bool warm = false;

	if (!node->plan->flags->server)
		return true;
	probe.begin_us = fleet_clock_us(node->plan->clock);
	err = open_limiter(node, "first", GALE_STRICT, &node->first);
	if (err == GALE_ERR_OK)
		err = gale_join(node->runtime, &probe.seat);
	if (err == GALE_ERR_OK)
		warm = probe_until_admitted(&probe, ret_why);
	else
		cannot_start(node, err, ret_why);
	if (gale_store_stats(node->store, &stats) == GALE_ERR_OK)
		node->warm_trips = stats.round_trips;
	if (probe.seat)
		gale_leave(probe.seat);
	return warm;
}

/* ---- Looking --------------------------------------------------------------------- */

static uint64_t metric(const struct node *node, const char *name)
{
	struct gale_metric metrics[METRICS_MOST];
	size_t count = gale_metrics(node->runtime, metrics, METRICS_MOST);

	for (size_t i = 0; i < count && i < METRICS_MOST; i++)
		if (strcmp(metrics[i].name, name) == 0)
			return metrics[i].value;
	return 0;
}

void node_look(const struct node *node, bool first, struct seen *seen)
{
	struct gale_counts stats;

	if (gale_store_stats(node->store, &stats) != GALE_ERR_OK)
		return;
	if (node->plan->flags->server) {
		seen->counts[SEEN_STORE_CALLS] += stats.round_trips - node->warm_trips;
		seen->counts[SEEN_CONNECTS] += stats.connects;
		seen->counts[SEEN_FAILURES] += stats.failures;
		seen->counts[SEEN_WRONG] += stats.wrong;
	} else {
		seen->counts[SEEN_STORE_CALLS] +=
		    metric(node, "lease_batches") + (first ? stats.steps : 0);
	}
	if (first || node->plan->flags->server)
		seen->counts[SEEN_LEASES] += stats.leases;
}
