/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* replies.c -- what the balancer says by itself, and /metrics. */
#include "examples/balancer/balancer.h"

#include <gale/http.h>
#include <stdio.h>
#include <string.h>

static void say(struct client *client, int status, const char *type, const char *lines,
                const char *body, size_t length)
{
	struct buffer *out = &client->out;
	bool is_said;

	client->closes |= client->thread->is_draining;
	is_said = buffer_say(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n", status,
	                     http_status_str((enum http_status)status), type) &&
	          buffer_add(out, lines, strlen(lines)) &&
	          buffer_say(out, "%sContent-Length: %zu\r\n\r\n",
	                     client->closes ? "Connection: close\r\n" : "", length) &&
	          (client->request.parser.method == HTTP_HEAD ||
	           buffer_add(out, body, length));
	client->closes |= !is_said;
	client_end(client);
}

void reply_status(struct client *client, int status, const char *sentence)
{
	char body[128];
	int length = snprintf(body, sizeof(body), "balancer: %s\n", sentence);

	count(&client->thread->refused);
	say(client, status, "text/plain", "", body, (size_t)length);
}

void reply_last(struct client *client, int status, const char *sentence)
{
	client->closes = true;
	reply_status(client, status, sentence);
}

static void reply_denied(struct client *client, const struct gale_http_policy *policy)
{
	char lines[GALE_HTTP_HEADERS_ROOM(1)], problem[GALE_HTTP_PROBLEM_ROOM(1)];
	size_t length;

	(void)gale_http_headers(policy, 1, NULL, lines, sizeof(lines), &length);
	(void)gale_http_problem(policy, 1, problem, sizeof(problem), &length);
	say(client, gale_http_status(policy->answer), "application/problem+json", lines,
	    problem, length);
}

void reply_over_limit(struct client *client, const struct gale_answer *answer)
{
	struct gale_http_policy policy = {
		.name = "address",
		.answer = answer,
		.window_us = client->thread->balancer->window_us,
	};

	reply_denied(client, &policy);
}

void reply_no_slot(struct client *client, const struct gale_answer *refusal)
{
	struct gale_http_policy policy = {
		.name = "backend",
		.answer = refusal,
		.unit = GALE_HTTP_CONCURRENT_REQUESTS,
	};

	count(&client->thread->no_slot);
	reply_denied(client, &policy);
}

/* ---- /metrics --------------------------------------------------------------------- */

struct page {
	struct gale_sink sink;
	struct buffer text;
};

static bool append(struct gale_sink *self, const char *text, size_t bytes)
{
	return buffer_add(&((struct page *)self)->text, text, bytes);
}

static uint64_t sum(const struct balancer *balancer, size_t offset)
{
	uint64_t whole = 0;

	for (uint32_t i = 0; i < balancer->thread_count; i++) {
		const char *thread = (const char *)&balancer->threads[i];

		whole += atomic_load_explicit(
		    (const _Atomic uint64_t *)(thread + offset), memory_order_relaxed);
	}
	return whole;
}

struct family {
	const char *name, *type, *help;
	size_t offset; /* in struct thread, or in struct standing */
};

static const struct family of_threads[] = {
	{ "requests_total", "counter", "Requests that were read.",
	  offsetof(struct thread, requests) },
	{ "over_limit_total", "counter", "Requests over the limit of their address.",
	  offsetof(struct thread, limited) },
	{ "no_slot_total", "counter", "Requests for which no backend had a slot.",
	  offsetof(struct thread, no_slot) },
	{ "errors_total", "counter", "Requests that the balancer refused otherwise.",
	  offsetof(struct thread, refused) },
	{ "retries_total", "counter", "Calls that were made again.",
	  offsetof(struct thread, retries) },
	{ "retries_denied_total", "counter", "Calls for which no retry was left.",
	  offsetof(struct thread, retries_denied) },
};

static const struct family of_backends[] = {
	{ "calls_total", "counter", "Calls to a backend.",
	  offsetof(struct standing, calls) },
	{ "failures_total", "counter", "Calls that a backend failed.",
	  offsetof(struct standing, failed) },
	{ "ejections_total", "counter", "Times that a thread ejected a backend.",
	  offsetof(struct standing, ejections) },
	{ "ejected_threads", "gauge", "Threads that have ejected a backend.",
	  offsetof(struct standing, ejected) },
};

static bool say_family(struct buffer *text, const struct family *family)
{
	return buffer_say(text, "# HELP balancer_%s %s\n# TYPE balancer_%s %s\n",
	                  family->name, family->help, family->name, family->type);
}

static bool say_of_threads(struct buffer *text, const struct balancer *balancer)
{
	bool is_said = true;

	for (size_t i = 0; i < sizeof(of_threads) / sizeof(of_threads[0]); i++)
		is_said =
		    is_said && say_family(text, &of_threads[i]) &&
		    buffer_say(text, "balancer_%s %llu\n", of_threads[i].name,
		               (unsigned long long)sum(balancer, of_threads[i].offset));
	return is_said;
}

static bool say_of_backend(struct buffer *text, const struct balancer *balancer,
                           const struct family *family, uint32_t backend)
{
	size_t offset = offsetof(struct thread, standings) +
	                backend * sizeof(struct standing) + family->offset;

	return buffer_say(text, "balancer_%s{backend=\"%s\"} %llu\n", family->name,
	                  balancer->backends[backend].name,
	                  (unsigned long long)sum(balancer, offset));
}

static bool say_of_backends(struct buffer *text, const struct balancer *balancer)
{
	bool is_said = true;

	for (size_t i = 0; i < sizeof(of_backends) / sizeof(of_backends[0]); i++) {
		is_said = is_said && say_family(text, &of_backends[i]);
		for (uint32_t b = 0; b < balancer->backend_count; b++)
			is_said = is_said &&
			          say_of_backend(text, balancer, &of_backends[i], b);
	}
	return is_said;
}

void reply_metrics(struct client *client)
{
	const struct balancer *balancer = client->thread->balancer;
	struct page page = { .sink = { append } };
	bool is_said = say_of_threads(&page.text, balancer) &&
	               say_of_backends(&page.text, balancer);

	if (balancer->runtime)
		is_said = is_said && gale_metrics_write(balancer->runtime,
		                                        &page.sink) == GALE_ERR_OK;
	if (is_said)
		say(client, 200, "text/plain; version=0.0.4", "", page.text.text,
		    buffer_count(&page.text));
	else
		reply_status(client, 500, "there is no memory");
	buffer_free(&page.text);
}
