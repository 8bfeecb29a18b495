/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * call.c -- one request to a backend at a time, on connections that are kept.
 *
 * A call holds one slot of its backend's guard, from before the connection is made until
 * the reply is whole.  How it ended tells the guard:
 *
 *	OK        the reply is whole
 *	DROPPED   it was late, or the backend said 429 or 503
 *	IGNORED   all else: the backend was not reached, the client left or was slow
 *
 * A connection that was idle may have been closed just when the request was sent.  That
 * is no failure of the backend, so once per request it is made again.
 */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum ending { ENDS_WELL, ENDS_FAILED, ENDS_SAYING_NOTHING };

static void free_parts(struct call *call)
{
	timer_stop(&call->timer);
	message_free(&call->reply);
	buffer_free(&call->out);
}

static void call_close(struct call *call)
{
	free_parts(call);
	loop_end(&call->thread->loop, &call->watcher);
}

/* The call is over, though its connection need not be. */
static void give_back(struct call *call, enum ending ending, enum gale_outcome outcome)
{
	struct thread *thread = call->thread;

	if (call->has_stalled)
		outcome = GALE_IGNORED;
	if (thread->loop.seat)
		gale_exit(thread->loop.seat, &call->entry, outcome);
	if (ending == ENDS_WELL)
		choice_works(thread, call->backend, call->is_probe);
	else if (ending == ENDS_FAILED)
		choice_fails(thread, call->backend, call->is_probe);
	else
		choice_says_nothing(thread, call->backend, call->is_probe);
	call->client->call = NULL;
	call->client = NULL;
}

/* ---- The pool --------------------------------------------------------------------- */

static void leave_pool(struct call *call)
{
	struct standing *standing = &call->thread->standings[call->backend];

	if (call->previous_idle)
		call->previous_idle->next_idle = call->next_idle;
	else
		standing->idle = call->next_idle;
	if (call->next_idle)
		call->next_idle->previous_idle = call->previous_idle;
	call->next_idle = call->previous_idle = NULL;
	standing->idle_count--;
}

static void enter_pool(struct call *call)
{
	struct standing *standing = &call->thread->standings[call->backend];

	timer_stop(&call->timer);
	if (call->thread->is_draining || standing->idle_count == IDLE_MOST ||
	    !loop_watch(&call->thread->loop, &call->watcher, EPOLLIN)) {
		call_close(call);
		return;
	}
	call->next_idle = standing->idle;
	if (standing->idle)
		standing->idle->previous_idle = call;
	standing->idle = call;
	standing->idle_count++;
}

void calls_close(struct thread *thread, uint32_t backend)
{
	struct call *call;

	while ((call = thread->standings[backend].idle)) {
		leave_pool(call);
		call_close(call);
	}
}

/* ---- Endings ---------------------------------------------------------------------- */

void call_abort(struct call *call)
{
	give_back(call, ENDS_SAYING_NOTHING, GALE_IGNORED);
	call_close(call);
}

/* The reply is whole. */
static void finish(struct call *call)
{
	struct client *client = call->client;
	unsigned status = call->reply.parser.status_code;
	bool is_busy = status == 429 || status == 503;
	bool has_failed = status == 502 || status == 504;
	bool is_kept = http_should_keep_alive(&call->reply.parser) &&
	               buffer_count(&call->out) == 0;

	give_back(call, has_failed ? ENDS_FAILED : ENDS_WELL,
	          is_busy ? GALE_DROPPED : GALE_OK);
	if (is_kept)
		enter_pool(call);
	else
		call_close(call);
	client_end(client);
	client_flush(client);
}

/* The client gets the status, unless the request can be made again. */
static void fail(struct call *call, enum gale_outcome outcome, int status)
{
	struct client *client = call->client;
	bool has_left = call->has_sent;
	bool was_stale = call->is_reused && !call->has_heard && status == 502 &&
	                 !client->was_stale && client_is_safe(client);

	client->failed_as = status;
	give_back(call, was_stale ? ENDS_SAYING_NOTHING : ENDS_FAILED, outcome);
	if (was_stale) {
		client->was_stale = true;
		client->tried &= ~(UINT64_C(1) << call->backend);
	}
	call_close(call);
	if (client->has_head) {
		client_drop(client); /* nothing else tells it that this is not all */
		return;
	}
	if (was_stale ||
	    ((client_is_safe(client) || !has_left) && budget_spend(call->thread)))
		client_call(client);
	else
		reply_status(client, status,
		             status == 504 ? "the backend is late"
		                           : "the backend has failed");
	client_flush(client);
}

void call_late(struct timer *timer)
{
	struct call *call =
	    (struct call *)((char *)timer - offsetof(struct call, timer));

	fail(call, GALE_DROPPED, 504);
}

/* ---- The reply -------------------------------------------------------------------- */

/* A request that another backend may answer better, as long as nothing was passed on. */
static bool is_for_another(const struct call *call)
{
	unsigned status = call->reply.parser.status_code;

	return (status == 502 || status == 503 || status == 504) &&
	       client_is_safe(call->client) &&
	       choice_is_there(call->thread, call->client->tried);
}

static bool on_head(struct message *reply)
{
	struct call *call =
	    (struct call *)((char *)reply - offsetof(struct call, reply));

	if (reply->parser.status_code < 200)
		return reply->parser.status_code != 101;
	if (is_for_another(call) && budget_spend(call->thread)) {
		call->is_refused = true;
		return false;
	}
	return client_head(call->client, reply);
}

static bool on_body(struct message *reply, const char *text, size_t length)
{
	struct call *call =
	    (struct call *)((char *)reply - offsetof(struct call, reply));

	return client_body(call->client, text, length);
}

static void begin_reply(struct call *call)
{
	message_begin(&call->reply, HTTP_RESPONSE);
	call->reply.on_head = on_head;
	call->reply.on_body = on_body;
	call->reply.has_no_body = call->client->request.parser.method == HTTP_HEAD;
}

/* The backend said that it cannot, and another is asked. */
static void pass_by(struct call *call)
{
	struct client *client = call->client;
	bool is_busy = call->reply.parser.status_code == 503;

	client->failed_as = (int)call->reply.parser.status_code;
	give_back(call, is_busy ? ENDS_WELL : ENDS_FAILED,
	          is_busy ? GALE_DROPPED : GALE_IGNORED);
	call_close(call);
	client_call(client);
	client_flush(client);
}

/* False: the call is over. */
static bool take_reply(struct call *call, const char *text, size_t length)
{
	struct message *reply = &call->reply;

	while (length > 0) {
		size_t taken = message_read(reply, text, length);

		if (reply->fault != FAULT_NONE) {
			if (call->is_refused)
				pass_by(call);
			else
				fail(call, GALE_IGNORED, 502);
			return false;
		}
		text += taken;
		length -= taken;
		if (!reply->is_whole)
			continue;
		if (reply->parser.status_code >= 200)
			break;
		begin_reply(call); /* 100 Continue, 103 Early Hints */
	}
	if (!reply->is_whole)
		return true;
	if (length > 0)
		reply->parser.flags |= F_CONNECTION_CLOSE; /* more than was asked for */
	finish(call);
	return false;
}

/* ---- Events ----------------------------------------------------------------------- */

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* The backend says no more, which may be how its reply ends. */
static void hear_the_end(struct call *call, bool is_orderly)
{
	if (is_orderly && call->has_heard)
		message_ends(&call->reply);
	if (call->reply.is_whole)
		finish(call);
	else
		fail(call, GALE_IGNORED, 502);
}

static void hear(struct call *call)
{
	struct thread *thread = call->thread;
	struct client *client = call->client;
	ssize_t length = recv(call->watcher.fd, thread->scratch, READ_MOST, 0);

	if (length < 0 && is_for_later())
		return;
	if (length <= 0) {
		hear_the_end(call, /* is_orderly= */ length == 0);
		return;
	}
	call->has_heard = true;
	if (!take_reply(call, thread->scratch, (size_t)length))
		return;
	timer_start(&thread->loop, &thread->answering, &call->timer);
	client_flush(client);
}

static bool send_request(struct call *call)
{
	ssize_t sent;

	if (buffer_count(&call->out) == 0)
		return true;
	sent = send(call->watcher.fd, call->out.text + call->out.first,
	            buffer_count(&call->out), MSG_NOSIGNAL);
	if (sent < 0)
		return is_for_later();
	call->has_sent = true;
	buffer_take(&call->out, (size_t)sent);
	return true;
}

/* Reads only what its client can take. */
void call_go_on(struct call *call)
{
	struct thread *thread = call->thread;
	bool is_stalled = buffer_count(&call->client->out) > UNSENT_MOST;
	uint32_t events = is_stalled ? 0 : EPOLLIN;

	if (is_stalled)
		timer_stop(&call->timer);
	else if (call->is_stalled)
		timer_start(&thread->loop, &thread->answering, &call->timer);
	call->is_stalled = is_stalled;
	call->has_stalled |= is_stalled;
	if (buffer_count(&call->out) > 0)
		events |= EPOLLOUT;
	(void)loop_watch(&thread->loop, &call->watcher, events);
}

static bool is_connected(const struct call *call)
{
	int error = 0;
	socklen_t length = sizeof(error);

	return getsockopt(call->watcher.fd, SOL_SOCKET, SO_ERROR, &error, &length) ==
	           0 &&
	       error == 0;
}

static void on_events(struct watcher *watcher, uint32_t events)
{
	struct call *call = (struct call *)watcher;
	struct thread *thread = call->thread;

	if (!call->client) { /* the backend has closed it, or says more than was asked */
		leave_pool(call);
		call_close(call);
		return;
	}
	if (!call->is_connected) {
		if (!is_connected(call)) {
			fail(call, GALE_IGNORED, 502);
			return;
		}
		call->is_connected = true;
		timer_start(&thread->loop, &thread->answering, &call->timer);
	}
	if (events & EPOLLOUT && !send_request(call)) {
		fail(call, GALE_IGNORED, 502);
		return;
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		hear(call);
	else
		call_go_on(call);
}

/* ---- Beginnings ------------------------------------------------------------------- */

static struct call *connect_to(struct thread *thread, uint32_t backend)
{
	const struct sockaddr_in *address =
	    &thread->balancer->backends[backend].address;
	const int on = 1;
	struct call *call = calloc(1, sizeof(*call));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (!call || fd < 0)
		goto nothing;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	    errno != EINPROGRESS)
		goto nothing;
	call->watcher = (struct watcher){ .fd = fd, .on_events = on_events };
	call->thread = thread;
	call->backend = backend;
	if (loop_watch(&thread->loop, &call->watcher, EPOLLOUT))
		return call;
nothing:
	if (fd >= 0)
		close(fd);
	free(call);
	return NULL;
}

static struct call *take_idle(struct thread *thread, uint32_t backend)
{
	struct call *call = thread->standings[backend].idle;

	if (!call)
		return NULL;
	leave_pool(call);
	call->is_reused = true;
	call->is_refused = call->has_sent = call->has_heard = false;
	call->is_stalled = call->has_stalled = false;
	return call;
}

static bool write_request(struct call *call, const struct client *client)
{
	const struct message *request = &client->request;
	const struct buffer *target = &request->target, *lines = &request->lines;
	const unsigned char *ip = (const unsigned char *)&client->address;
	struct buffer *out = &call->out;
	bool has_length = request->parser.flags & (F_CONTENTLENGTH | F_CHUNKED);

	buffer_clear(out);
	return buffer_say(out, "%s ", http_method_str(request->parser.method)) &&
	       buffer_add(out, target->text + target->first, buffer_count(target)) &&
	       buffer_say(out, " HTTP/1.1\r\n") &&
	       buffer_add(out, lines->text + lines->first, buffer_count(lines)) &&
	       buffer_say(out, "X-Forwarded-For: %d.%d.%d.%d\r\n", ip[0], ip[1], ip[2],
	                  ip[3]) &&
	       (!has_length || buffer_say(out, "Content-Length: %zu\r\n",
	                                  buffer_count(&client->body))) &&
	       buffer_add(out, "\r\n", 2) &&
	       buffer_add(out, client->body.text + client->body.first,
	                  buffer_count(&client->body));
}

static struct call *open_call(struct client *client, uint32_t backend)
{
	struct thread *thread = client->thread;
	struct call *call = take_idle(thread, backend);

	if (!call)
		call = connect_to(thread, backend);
	if (call && !write_request(call, client)) {
		call_close(call);
		call = NULL;
	}
	return call;
}

bool call_begin(struct client *client, uint32_t backend, struct gale_entry entry)
{
	struct thread *thread = client->thread;
	bool is_probe = choice_begins(thread, backend);
	struct call *call = open_call(client, backend);

	if (!call) {
		if (thread->loop.seat)
			gale_exit(thread->loop.seat, &entry, GALE_IGNORED);
		choice_fails(thread, backend, is_probe);
		return false;
	}
	call->client = client;
	client->call = call;
	call->entry = entry;
	call->is_probe = is_probe;
	begin_reply(call);
	timer_start(&thread->loop,
	            call->is_connected ? &thread->answering : &thread->connecting,
	            &call->timer);
	if (call->is_connected && send_request(call))
		call_go_on(call);
	return true;
}
