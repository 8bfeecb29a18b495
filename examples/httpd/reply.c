/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* reply.c -- replies, and /metrics. */
#include "examples/httpd/httpd.h"

#include <stdio.h>
#include <string.h>

#define REPLY_MOST 1200 /* a head, and a body that is not of /metrics */

/* A reply that there is no memory for ends the connection. */
static void send_later(struct client *client, const char *text, size_t count)
{
	client->closes |= !buffer_add(&client->out, text, count);
}

static void say(struct client *client, int status, const char *type, const char *lines,
                const char *body, size_t length)
{
	char head[REPLY_MOST];
	int count =
	    snprintf(head, sizeof(head),
	             "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s%sContent-Length: "
	             "%zu\r\n\r\n",
	             status, http_status_str((enum http_status)status), type, lines,
	             client->closes ? "Connection: close\r\n" : "", length);

	send_later(client, head, (size_t)count);
	send_later(client, body, length);
}

void reply_text(struct client *client, int status, const char *lines, const char *body)
{
	say(client, status, "text/plain", lines, body, strlen(body));
}

static void reply_denied(struct client *client, const struct gale_http_policy *policy,
                         const char *lines)
{
	char problem[GALE_HTTP_PROBLEM_ROOM(1)];
	size_t length = 0;

	(void)gale_http_problem(policy, 1, problem, sizeof(problem), &length);
	say(client, gale_http_status(policy->answer), "application/problem+json", lines,
	    problem, length);
}

void reply_to_answer(struct client *client, const struct gale_answer *answer)
{
	const struct server *server = client->thread->server;
	struct gale_http_policy policy = { .name = "requests",
		                           .answer = answer,
		                           .window_us = server->limits.window_us };
	bool passes = gale_http_status(answer) == 200;
	char lines[GALE_HTTP_HEADERS_ROOM(1)] = "";
	size_t length;

	if (!passes || server->has_headers)
		(void)gale_http_headers(&policy, 1, &server->options, lines,
		                        sizeof(lines), &length);
	if (passes)
		reply_text(client, 200, lines, "hello\n");
	else
		reply_denied(client, &policy, lines);
}

/* ---- /metrics --------------------------------------------------------------------- */

struct page {
	struct gale_sink sink;
	struct buffer *text;
};

static bool append(struct gale_sink *self, const char *text, size_t bytes)
{
	return buffer_add(((struct page *)self)->text, text, bytes);
}

void reply_metrics(struct client *client)
{
	struct thread *thread = client->thread;
	struct page page = { .sink = { append }, .text = &thread->page };

	buffer_clear(page.text);
	if (thread->server->limits.runtime &&
	    gale_metrics_write(thread->server->limits.runtime, &page.sink) !=
	        GALE_ERR_OK) {
		reply_text(client, 500, "", "there is no memory\n");
		return;
	}
	say(client, 200, "text/plain; version=0.0.4", "",
	    buffer_count(page.text) ? page.text->text : "", buffer_count(page.text));
}
