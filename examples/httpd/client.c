/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client.c -- a connection: one request after the other.
 *
 * A client has patience_ms for a whole request, however it comes, and as long to take a
 * part of a reply.  A connection that is closed while something was not read is reset, and
 * its last reply could be lost.  So the client closes first, if it does so in time.
 */
#define _GNU_SOURCE
#include "examples/httpd/httpd.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void wait_for(struct client *client)
{
	struct thread *thread = client->thread;

	timer_start(&thread->loop, &thread->patience, &client->timer);
}

static void end_memory(struct client *client)
{
	buffer_free(&client->out);
	client->thread->clients--;
	loop_end(&client->thread->loop, &client->watcher);
}

/* An answer of gale's that is still to come needs the memory. */
static void drop(struct client *client)
{
	timer_stop(&client->timer);
	if (!client->waits) {
		end_memory(client);
	} else if (client->watcher.fd >= 0) {
		close(client->watcher.fd);
		client->watcher.fd = -1;
	}
}

/* ---- A request -------------------------------------------------------------------- */

static const char *text_of(const struct client *client, struct span span)
{
	return client->in + client->first + span.first;
}

static bool is_target(const struct client *client, const char *path)
{
	struct span target = client->request.target;

	return target.count == strlen(path) &&
	       memcmp(text_of(client, target), path, target.count) == 0;
}

/* A key must be known to be good before it is asked about: here each client that invents one
 * has a budget of its own. */
static struct gale_answer ask(struct client *client)
{
	const struct limits *limits = &client->thread->server->limits;
	struct gale_seat *seat = client->thread->loop.seat;
	struct span key = client->request.api_key;

	if (!limits->runtime)
		return (struct gale_answer){ .verdict = GALE_ALLOW };
	if (key.count > 0)
		return gale_ask(seat, limits->by_key, text_of(client, key), key.count,
		                /* cost= */ 1, /* tag= */ client);
	return gale_ask(seat, limits->by_address, &client->address,
	                sizeof(client->address), /* cost= */ 1, /* tag= */ client);
}

static void serve_page(struct client *client)
{
	struct gale_answer answer = ask(client);

	client->waits = answer.verdict == GALE_PENDING; /* then client_answer replies */
	if (!client->waits)
		reply_to_answer(client, &answer);
}

static void serve(struct client *client)
{
	const http_parser *parser = &client->request.parser;

	client->closes = parser->http_minor == 0 || !http_should_keep_alive(parser);
	if (parser->http_major != 1)
		reply_text(client, 505, "", "this is not HTTP/1\n");
	else if (parser->method != HTTP_GET)
		reply_text(client, 405, "Allow: GET\r\n", "");
	else if (is_target(client, "/health"))
		reply_text(client, 200, "", "ok\n");
	else if (is_target(client, "/metrics"))
		reply_metrics(client);
	else if (is_target(client, "/"))
		serve_page(client);
	else
		reply_text(client, 404, "", "nothing there\n");
}

/* Where the next request would begin is not known, so the connection ends. */
static void refuse_request(struct client *client)
{
	client->closes = true;
	switch (client->request.fault) {
	case FAULT_BODY:
		reply_text(client, 413, "", "no body\n");
		break;
	case FAULT_KEY:
		reply_text(client, 400, "", "the API key is too long\n");
		break;
	case FAULT_MALFORMED:
		reply_text(client, 400, "", "the request is malformed\n");
		break;
	case FAULT_NONE:
		reply_text(client, 431, "", "the head of the request is too long\n");
	}
}

static bool may_serve(const struct client *client)
{
	return !client->waits && !client->closes && client->parsed < client->count &&
	       buffer_count(&client->out) < UNSENT_MOST;
}

/* False: no request is whole. */
static bool serve_next(struct client *client)
{
	struct request *request = &client->request;
	char *in = client->in;

	if (!may_serve(client))
		return false;
	client->parsed +=
	    (uint32_t)request_read(request, in + client->first, in + client->parsed,
	                           client->count - client->parsed);
	if (request->is_whole)
		serve(client);
	else if (request->fault != FAULT_NONE ||
	         client->parsed - client->first == IN_MOST)
		refuse_request(client);
	else
		return false;
	client->first = client->parsed;
	request_begin(request);
	wait_for(client);
	return true;
}

/* ---- The connection --------------------------------------------------------------- */

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* False: the client is gone. */
static bool send_replies(struct client *client)
{
	struct buffer *out = &client->out;
	ssize_t sent;

	if (buffer_count(out) == 0)
		return true;
	sent = send(client->watcher.fd, out->text + out->first, buffer_count(out),
	            MSG_NOSIGNAL);
	if (sent < 0)
		return is_for_later();
	buffer_take(out, (size_t)sent);
	wait_for(client);
	return true;
}

/* Bytes that are not parsed come to the front, so that there is room for the rest. */
static void make_room(struct client *client)
{
	if (client->first == 0)
		return;
	memmove(client->in, client->in + client->first, client->count - client->first);
	client->count -= client->first;
	client->parsed -= client->first;
	client->first = 0;
}

static bool is_over(const struct client *client)
{
	return (client->closes || client->has_said_all) && !client->waits &&
	       buffer_count(&client->out) == 0;
}

static void part(struct client *client)
{
	client->parts = true;
	(void)shutdown(client->watcher.fd, SHUT_WR);
	wait_for(client);
}

/* Only for what can be made use of; otherwise epoll would tell it again and again. */
static bool watch(struct client *client)
{
	uint32_t events = 0;

	if (client->parts ||
	    (!client->closes && !client->has_said_all && client->count < IN_MOST))
		events |= EPOLLIN;
	if (buffer_count(&client->out) > 0)
		events |= EPOLLOUT;
	return loop_watch(&client->thread->loop, &client->watcher, events);
}

/* As far as it goes with what has been read. */
static void go_on(struct client *client)
{
	bool is_there;

	do {
		while (serve_next(client))
			continue;
		is_there = send_replies(client);
	} while (is_there && buffer_count(&client->out) == 0 && may_serve(client));
	make_room(client);
	if (is_there && is_over(client) && !client->has_said_all)
		part(client);
	if (!is_there || (is_over(client) && !client->parts) || !watch(client))
		drop(client);
}

static bool read_more(struct client *client)
{
	ssize_t count = recv(client->watcher.fd, client->in + client->count,
	                     IN_MOST - client->count, 0);

	if (count < 0)
		return is_for_later();
	client->has_said_all = count == 0;
	client->count += (uint32_t)count;
	return true;
}

/* False: it has closed, too. */
static bool read_nothing(struct client *client)
{
	ssize_t count = recv(client->watcher.fd, client->in, IN_MOST, 0);

	return count > 0 || (count < 0 && is_for_later());
}

static void on_events(struct watcher *watcher, uint32_t events)
{
	struct client *client = (struct client *)watcher;
	bool is_there = (events & (EPOLLERR | EPOLLHUP)) == 0;

	if (is_there && events & EPOLLIN)
		is_there = client->parts ? read_nothing(client) : read_more(client);
	if (!is_there)
		drop(client);
	else if (!client->parts)
		go_on(client);
}

void client_answer(struct client *client, const struct gale_answer *answer)
{
	client->waits = false;
	if (client->watcher.fd < 0) {
		end_memory(client);
		return;
	}
	reply_to_answer(client, answer);
	go_on(client);
}

void client_late(struct timer *timer)
{
	drop(CONTAINER(timer, struct client, timer));
}

/* Bytes that have arrived are still read; after them, the client seems to have said all. */
void client_leave(struct client *client)
{
	(void)shutdown(client->watcher.fd, SHUT_RD);
}

void client_accept(struct thread *thread, int fd, const struct sockaddr_in *address)
{
	struct client *client = malloc(sizeof(*client));
	const int on = 1;

	if (!client) {
		close(fd);
		return;
	}
	memset(client, 0, offsetof(struct client, in));
	client->watcher = (struct watcher){ .fd = fd, .on_events = on_events };
	client->thread = thread;
	client->address = address->sin_addr.s_addr;
	thread->clients++;
	request_begin(&client->request);
	wait_for(client);
	/* A reply does not wait for the one before to have arrived. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!watch(client))
		drop(client);
}
