/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * client.c -- a connection of a client: one request after the other.
 *
 *	READING  --whole-->  ASKING  --allowed-->  CALLING  --reply-->  READING
 *	                       only while gale's answer is pending   or ENDING, PARTING
 *
 * A client has client_ms for a whole request, however it comes, and as long to take a part
 * of a reply.  The requests of a connection are made one after the other.  A client that
 * closes its side while a backend works for it is taken to be gone.
 */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void end_memory(struct client *client)
{
	message_free(&client->request);
	buffer_free(&client->in);
	buffer_free(&client->body);
	buffer_free(&client->out);
	client->thread->clients--;
	loop_end(&client->thread->loop, &client->watcher);
}

/* An answer of gale's that is still to come needs the memory. */
void client_drop(struct client *client)
{
	timer_stop(&client->timer);
	if (client->call)
		call_abort(client->call);
	if (client->state == CLIENT_ASKING) {
		close(client->watcher.fd);
		client->watcher.fd = -1;
		return;
	}
	end_memory(client);
}

static bool client_is_idle(const struct client *client)
{
	return client->state == CLIENT_READING && !client->request.has_begun &&
	       buffer_count(&client->in) == 0 && buffer_count(&client->out) == 0;
}

bool client_is_safe(const struct client *client)
{
	switch (client->request.parser.method) {
	case HTTP_GET:
	case HTTP_HEAD:
	case HTTP_PUT:
	case HTTP_DELETE:
	case HTTP_OPTIONS:
	case HTTP_TRACE:
		return true;
	default:
		return false;
	}
}

/* ---- The reply -------------------------------------------------------------------- */

static bool has_no_body(const struct client *client, const struct message *reply)
{
	unsigned status = reply->parser.status_code;

	return client->request.parser.method == HTTP_HEAD || status == 204 ||
	       status == 304;
}

static bool is_1_0(const struct client *client)
{
	return client->request.parser.http_minor == 0;
}

/* How long the body is, or how it ends. */
static bool say_length(struct client *client, const struct message *reply)
{
	struct buffer *out = &client->out;

	client->is_chunked = false;
	if (reply->parser.flags & F_CONTENTLENGTH)
		return buffer_say(out, "Content-Length: %llu\r\n",
		                  (unsigned long long)reply->parser.content_length);
	if (has_no_body(client, reply))
		return true;
	client->is_chunked = !is_1_0(client);
	client->closes |= is_1_0(client);
	return !client->is_chunked || buffer_say(out, "Transfer-Encoding: chunked\r\n");
}

static bool say_connection(struct client *client)
{
	client->closes |= client->thread->is_draining;
	if (client->closes)
		return buffer_say(&client->out, "Connection: close\r\n\r\n");
	return buffer_say(&client->out,
	                  is_1_0(client) ? "Connection: keep-alive\r\n\r\n" : "\r\n");
}

bool client_head(struct client *client, const struct message *reply)
{
	struct buffer *out = &client->out;
	const struct buffer *reason = &reply->reason, *lines = &reply->lines;

	client->has_head = true;
	return buffer_say(out, "HTTP/1.1 %u ", reply->parser.status_code) &&
	       buffer_add(out, reason->text + reason->first, buffer_count(reason)) &&
	       buffer_add(out, "\r\n", 2) &&
	       buffer_add(out, lines->text + lines->first, buffer_count(lines)) &&
	       say_length(client, reply) && say_connection(client);
}

bool client_body(struct client *client, const char *text, size_t length)
{
	struct buffer *out = &client->out;

	if (!client->is_chunked)
		return buffer_add(out, text, length);
	return buffer_say(out, "%zx\r\n", length) && buffer_add(out, text, length) &&
	       buffer_add(out, "\r\n", 2);
}

static bool on_request_head(struct message *request);
static bool on_request_body(struct message *request, const char *text, size_t length);

static void begin_request(struct client *client)
{
	message_begin(&client->request, HTTP_REQUEST);
	client->request.on_head = on_request_head;
	client->request.on_body = on_request_body;
	buffer_clear(&client->body);
	client->tried = 0;
	client->failed_as = 0;
	client->has_refusal = client->was_stale = client->has_head = false;
	client->is_chunked = false;
	client->state = CLIENT_READING;
	timer_start(&client->thread->loop, &client->thread->patience, &client->timer);
}

void client_end(struct client *client)
{
	if (client->is_chunked && !buffer_say(&client->out, "0\r\n\r\n"))
		client->closes = true;
	if (client->closes)
		client->state = CLIENT_ENDING;
	else
		begin_request(client);
}

/* ---- Asking and calling ----------------------------------------------------------- */

/* A backend that had no slot can do it later.  One that failed may have done it, so that only a
 * request that may be made twice is asked to come again. */
static void reply_nothing_left(struct client *client)
{
	if (client->has_refusal && (!client->failed_as || client_is_safe(client)))
		reply_no_slot(client, &client->refusal);
	else if (client->failed_as)
		reply_status(client, client->failed_as, "no backend could do it");
	else
		reply_status(client, 503, "no backend is up");
}

/* A slot of the backend's guard. */
static bool enter(struct client *client, uint32_t backend, struct gale_entry *ret_entry)
{
	struct thread *thread = client->thread;

	*ret_entry = (struct gale_entry){ .verdict = GALE_ALLOW };
	if (!thread->loop.seat)
		return true;
	*ret_entry =
	    gale_enter(thread->loop.seat, thread->balancer->backends[backend].guard, 1,
	               GALE_NORMAL);
	if (ret_entry->verdict == GALE_ALLOW)
		return true;
	client->has_refusal = true;
	client->refusal = (struct gale_answer){ .verdict = ret_entry->verdict,
		                                .why = ret_entry->why,
		                                .limit = ret_entry->limit };
	return false;
}

void client_call(struct client *client)
{
	struct thread *thread = client->thread;
	struct gale_entry entry;
	int next;

	client->state = CLIENT_CALLING;
	while ((next = choice_next(thread, client->tried)) >= 0) {
		client->tried |= UINT64_C(1) << next;
		if (!enter(client, (uint32_t)next, &entry))
			continue;
		if (call_begin(client, (uint32_t)next, entry))
			return;
		client->failed_as = 502;
		if (!budget_spend(thread))
			break;
	}
	reply_nothing_left(client);
}

static void take_answer(struct client *client, const struct gale_answer *answer)
{
	if (answer->verdict == GALE_ALLOW) {
		client_call(client);
		return;
	}
	count(&client->thread->limited);
	reply_over_limit(client, answer);
}

void client_answer(struct client *client, const struct gale_answer *answer)
{
	client->state = CLIENT_CALLING;
	if (client->watcher.fd < 0) {
		end_memory(client);
		return;
	}
	take_answer(client, answer);
	client_flush(client);
}

static void ask(struct client *client)
{
	struct thread *thread = client->thread;
	struct gale_answer answer = { .verdict = GALE_ALLOW };

	if (thread->balancer->limiter)
		answer = gale_ask(thread->loop.seat, thread->balancer->limiter,
		                  &client->address, sizeof(client->address),
		                  /* cost= */ 1, /* tag= */ client);
	if (answer.verdict == GALE_PENDING)
		client->state = CLIENT_ASKING;
	else
		take_answer(client, &answer);
}

/* ---- The request ------------------------------------------------------------------ */

static bool is_target(const struct client *client, const char *path)
{
	const struct buffer *target = &client->request.target;

	return buffer_count(target) == strlen(path) &&
	       memcmp(target->text + target->first, path, strlen(path)) == 0;
}

static bool on_request_head(struct message *request)
{
	struct client *client =
	    (struct client *)((char *)request - offsetof(struct client, request));

	if (request->parser.flags & F_CONTENTLENGTH &&
	    request->parser.content_length > REQUEST_MOST) {
		request->fault = FAULT_BODY_TOO_LONG;
		return false;
	}
	return !request->expects_continue || request->parser.http_minor == 0 ||
	       buffer_say(&client->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

static bool on_request_body(struct message *request, const char *text, size_t length)
{
	struct client *client =
	    (struct client *)((char *)request - offsetof(struct client, request));

	if (buffer_count(&client->body) + length <= REQUEST_MOST)
		return buffer_add(&client->body, text, length);
	request->fault = FAULT_BODY_TOO_LONG;
	return false;
}

static void on_request(struct client *client)
{
	const http_parser *parser = &client->request.parser;

	timer_stop(&client->timer);
	client->closes = !http_should_keep_alive(parser);
	count(&client->thread->requests);
	budget_earn(client->thread);
	if (parser->http_major != 1)
		reply_last(client, 505, "this is not HTTP/1");
	else if (parser->method == HTTP_CONNECT)
		reply_last(client, 405, "there are no tunnels here");
	else if (parser->method == HTTP_GET && is_target(client, "/metrics"))
		reply_metrics(client);
	else
		ask(client);
}

static void on_fault(struct client *client)
{
	switch (client->request.fault) {
	case FAULT_HEAD_TOO_LONG:
		reply_last(client, 431, "the head of the request is too long");
		break;
	case FAULT_BODY_TOO_LONG:
		reply_last(client, 413, "the body of the request is too long");
		break;
	case FAULT_STOPPED:
		reply_last(client, 503, "there is no memory");
		break;
	default:
		reply_last(client, 400, "the request is malformed");
	}
}

static bool has_much_to_take(const struct client *client)
{
	return buffer_count(&client->out) > UNSENT_MOST;
}

static bool may_proceed(const struct client *client)
{
	return client->state == CLIENT_READING && buffer_count(&client->in) > 0 &&
	       !has_much_to_take(client);
}

/* As far as it goes with what was read. */
static void proceed(struct client *client)
{
	struct buffer *in = &client->in;

	while (may_proceed(client)) {
		size_t taken = message_read(&client->request, in->text + in->first,
		                            buffer_count(in));

		buffer_take(in, taken);
		if (client->request.fault != FAULT_NONE)
			on_fault(client);
		else if (client->request.is_whole)
			on_request(client);
	}
}

/* ---- The connection --------------------------------------------------------------- */

/* False: the client is gone. */
static bool send_out(struct client *client)
{
	struct buffer *out = &client->out;
	struct thread *thread = client->thread;
	ssize_t sent;

	if (buffer_count(out) == 0)
		return true;
	sent = send(client->watcher.fd, out->text + out->first, buffer_count(out),
	            MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return false;
	if (sent > 0)
		buffer_take(out, (size_t)sent);
	if (buffer_count(out) == 0 && client->state != CLIENT_READING)
		timer_stop(&client->timer);
	else if (sent > 0 || !client->timer.next)
		timer_start(&thread->loop, &thread->patience, &client->timer);
	return true;
}

/* A connection that is closed while something was not read is reset, and the last reply
 * could be lost.  So the client closes first, if it does so soon. */
static void part(struct client *client)
{
	client->state = CLIENT_PARTING;
	shutdown(client->watcher.fd, SHUT_WR);
	timer_start(&client->thread->loop, &client->thread->parting, &client->timer);
}

void client_flush(struct client *client)
{
	uint32_t events = 0;

	if (client->watcher.fd < 0)
		return;
	do {
		proceed(client);
		if (!send_out(client)) {
			client_drop(client);
			return;
		}
	} while (may_proceed(client));
	if (client->state == CLIENT_ENDING && buffer_count(&client->out) == 0)
		part(client);
	if (client->call)
		call_go_on(client->call);
	if (client->state == CLIENT_PARTING ||
	    (client->state == CLIENT_READING && !has_much_to_take(client)))
		events |= EPOLLIN;
	if (buffer_count(&client->out) > 0)
		events |= EPOLLOUT;
	if (client->state == CLIENT_CALLING)
		events |= EPOLLRDHUP;
	if (!loop_watch(&client->thread->loop, &client->watcher, events))
		client_drop(client);
}

/* False: it is over. */
static bool read_more(struct client *client)
{
	char *scratch = client->thread->scratch;
	ssize_t length = recv(client->watcher.fd, scratch, READ_MOST, 0);

	if (length < 0)
		return errno == EAGAIN || errno == EINTR;
	if (length == 0)
		return false;
	return client->state == CLIENT_PARTING ||
	       buffer_add(&client->in, scratch, (size_t)length);
}

static void on_events(struct watcher *watcher, uint32_t events)
{
	struct client *client = (struct client *)watcher;

	bool is_gone = events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP);

	if (is_gone || (events & EPOLLIN && !read_more(client)))
		client_drop(client);
	else
		client_flush(client);
}

void client_late(struct timer *timer)
{
	struct client *client =
	    (struct client *)((char *)timer - offsetof(struct client, timer));

	if (client->state == CLIENT_READING && client->request.has_begun &&
	    buffer_count(&client->out) == 0) {
		reply_last(client, 408, "the request takes too long");
		client_flush(client);
	} else {
		client_drop(client);
	}
}

void client_leave(struct client *client)
{
	on_events(&client->watcher, EPOLLIN);
	if (client->watcher.fd >= 0 && client_is_idle(client))
		client_drop(client);
}

void client_accept(struct thread *thread, int fd, const struct sockaddr_in *address)
{
	struct client *client = calloc(1, sizeof(*client));
	const int on = 1;

	if (!client) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	client->watcher = (struct watcher){ .fd = fd, .on_events = on_events };
	client->thread = thread;
	client->address = address->sin_addr.s_addr;
	thread->clients++;
	begin_request(client);
	client_flush(client);
}
