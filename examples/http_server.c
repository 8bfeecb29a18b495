/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_server.c -- an HTTP server that asks before it serves, and never waits for that.
 *
 *	http_server [--headers] [--legacy] [PORT [LIMIT [SECONDS [CLIENTS]]]]
 *
 * In each window of SECONDS every client may make LIMIT requests (0: as many as it likes).
 * A client is an X-Api-Key, or else an address.  There is one page, "/".  It is 200, or 429
 * with RateLimit headers, Retry-After and a problem as JSON, or 503 where gale cannot tell;
 * with --headers a 200 has RateLimit headers, too.  With --legacy there are X-RateLimit
 * headers beside them.  "/health" is always 200, and "/metrics" is for Prometheus.  CLIENTS
 * is how many of them are remembered at once.
 *
 * One thread turns around epoll.  A turn reads the clock once (gale_tick), and asks for
 * each request as it is parsed.  Most answers come at once.  When one is pending, its
 * connection stops being served until the answer comes to the seat's completions, with
 * the connection as its tag, and all others go on.  Requests may be pipelined: what a
 * turn answers to a connection leaves in one call.
 *
 * A server with many threads does all of this in each of them, from gale_join on, with a
 * listening socket each (SO_REUSEPORT).  A key must be known to be good before it is
 * asked about: here everybody who invents one has a budget of their own.
 *
 * SIGTERM drains the server: requests that have arrived are answered, and each connection
 * ends with the last reply.  The server exits when none is left, or when none makes
 * progress for DRAIN_MS.  A second SIGTERM ends it at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gale/gale.h>
#include <gale/http.h>

#define IN_MOST 8192    /* of a connection that is not answered yet: a head fits */
#define OUT_MOST 32768  /* that is not sent yet */
#define REPLY_MOST 1200 /* a head and its body, but for metrics */
#define METRICS_MOST 16384
#define PENDING 4096    /* connections that may wait for an answer of gale's */
#define EVENTS_MOST 256 /* in a turn */
#define DRAIN_MS 5000
#define HEAD_END "\r\n\r\n"

struct connection {
	struct connection *next, **link; /* of all; what points to it */
	int fd; /* -1: it is over, and only an answer of gale's is still to come */
	uint32_t address;
	uint32_t watched; /* by epoll, for what */
	bool waits;       /* for an answer of gale's */
	bool is_last;     /* what was replied was the last; it ends when that is sent */
	bool has_said_all; /* it ends when everything is answered */
	size_t in_first, in_count;
	size_t out_first, out_count;
	char in[IN_MOST];
	char out[OUT_MOST];
};

struct server {
	int listener;
	int signals;
	int epoll;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *by_key;
	struct gale_limiter *by_address;
	struct gale_seat *seat; /* NULL: there is no limit */
	uint64_t window_us;
	bool has_headers; /* each reply, and not only one that denies */
	bool is_draining;
	struct connection *connections;
	struct gale_http_options options;
};

/* ---- What a request says --------------------------------------------------------- */

struct text {
	const char *first;
	size_t count;
};

struct request {
	struct text method;
	struct text target;
	struct text api_key;
	bool has_body;
	bool closes;
};

static bool is(struct text text, const char *word)
{
	return text.count == strlen(word) && memcmp(text.first, word, text.count) == 0;
}

static bool is_name(struct text text, const char *name)
{
	return text.count == strlen(name) &&
	       strncasecmp(text.first, name, text.count) == 0;
}

/* Takes off what comes before the mark, and the mark; false when there is none. */
static bool take_until(struct text *text, const char *mark, struct text *ret_part)
{
	const char *at = memmem(text->first, text->count, mark, strlen(mark));
	size_t taken;

	if (!at)
		return false;
	*ret_part = (struct text){ text->first, (size_t)(at - text->first) };
	taken = ret_part->count + strlen(mark);
	text->first += taken;
	text->count -= taken;
	return true;
}

static struct text without_spaces(struct text text)
{
	while (text.count > 0 && (*text.first == ' ' || *text.first == '\t')) {
		text.first++;
		text.count--;
	}
	while (text.count > 0 && (text.first[text.count - 1] == ' ' ||
	                          text.first[text.count - 1] == '\t'))
		text.count--;
	return text;
}

static void take_header(struct request *request, struct text name, struct text value)
{
	if (is_name(name, "X-Api-Key"))
		request->api_key = value;
	else if (is_name(name, "Connection"))
		request->closes |= is_name(value, "close");
	else if (is_name(name, "Content-Length"))
		request->has_body |= !is(value, "0");
	else if (is_name(name, "Transfer-Encoding"))
		request->has_body = true;
}

/* A head without the empty line at its end.  False: this is not HTTP/1.1. */
static bool parse(struct text head, struct request *ret_request)
{
	struct text line, name;

	*ret_request = (struct request){ 0 };
	if (!take_until(&head, " ", &ret_request->method) ||
	    !take_until(&head, " ", &ret_request->target) ||
	    !take_until(&head, "\r\n", &line) || !is(line, "HTTP/1.1"))
		return false;
	while (take_until(&head, "\r\n", &line)) {
		if (!take_until(&line, ":", &name))
			return false;
		take_header(ret_request, name, without_spaces(line));
	}
	return ret_request->api_key.count <= GALE_KEY_MAX;
}

/* ---- What is replied ------------------------------------------------------------- */

static void reply(struct connection *c, const char *whole)
{
	size_t count = strlen(whole);

	memcpy(c->out + c->out_count, whole, count);
	c->out_count += count;
}

#define REPLY(status, headers, length, body)                                           \
	"HTTP/1.1 " status "\r\nContent-Type: text/plain\r\n" headers                  \
	"Content-Length: " length "\r\n\r\n" body

/* And the connection ends: where the next request would begin is not known. */
static void reply_last(struct connection *c, const char *whole)
{
	reply(c, whole);
	c->is_last = true;
}

static void reply_denied(struct connection *c, const struct gale_http_policy *policy,
                         const char *headers)
{
	bool is_over = gale_http_status(policy->answer) == 429;
	char problem[GALE_HTTP_PROBLEM_ROOM(1)], whole[REPLY_MOST];
	size_t length = 0;

	(void)gale_http_problem(policy, 1, problem, sizeof(problem), &length);
	snprintf(whole, sizeof(whole),
	         "HTTP/1.1 %s\r\nContent-Type: application/problem+json\r\n"
	         "%sContent-Length: %zu\r\n\r\n%s",
	         is_over ? "429 Too Many Requests" : "503 Service Unavailable", headers,
	         length, problem);
	reply(c, whole);
}

static void reply_to_answer(const struct server *server, struct connection *c,
                            const struct gale_answer *answer)
{
	struct gale_http_policy policy = { .name = "requests",
		                           .answer = answer,
		                           .window_us = server->window_us };
	char headers[GALE_HTTP_HEADERS_ROOM(1)], whole[REPLY_MOST];
	bool passes = gale_http_status(answer) == 200;
	size_t length;

	if (passes && !server->has_headers) {
		reply(c, REPLY("200 OK", "", "6", "hello\n"));
		return;
	}
	(void)gale_http_headers(&policy, 1, &server->options, headers, sizeof(headers),
	                        &length);
	if (!passes) {
		reply_denied(c, &policy, headers);
		return;
	}
	snprintf(whole, sizeof(whole), REPLY("200 OK", "%s", "6", "hello\n"), headers);
	reply(c, whole);
}

/* What gale says of itself, as far as there is room. */
struct page {
	struct gale_sink sink;
	size_t count;
	char text[METRICS_MOST - REPLY_MOST];
};

static bool append(struct gale_sink *self, const char *text, size_t bytes)
{
	struct page *page = (struct page *)self;

	if (bytes >= sizeof(page->text) - page->count)
		return false;
	memcpy(page->text + page->count, text, bytes);
	page->count += bytes;
	page->text[page->count] = '\0';
	return true;
}

static void reply_metrics(struct connection *c, struct gale_runtime *runtime)
{
	static struct page page = { .sink = { append } };
	char head[REPLY_MOST];
	enum gale_err err;

	page.count = 0;
	err = gale_metrics_write(runtime, &page.sink);
	if (err != GALE_ERR_OK) {
		reply(c, REPLY("500 Internal Server Error", "", "8", "not now\n"));
		return;
	}
	snprintf(head, sizeof(head),
	         "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
	         "Content-Length: %zu\r\n\r\n",
	         page.count);
	reply(c, head);
	reply(c, page.text);
}

/* ---- Asking ---------------------------------------------------------------------- */

static struct gale_answer ask(struct server *server, struct connection *c,
                              struct text api_key)
{
	if (api_key.count > 0)
		return gale_ask(server->seat, server->by_key, api_key.first,
		                api_key.count, /* cost= */ 1, /* tag= */ c);
	return gale_ask(server->seat, server->by_address, &c->address,
	                sizeof(c->address), /* cost= */ 1, /* tag= */ c);
}

static void serve_page(struct server *server, struct connection *c,
                       const struct request *request)
{
	struct gale_answer answer = { .verdict = GALE_ALLOW };

	if (server->seat)
		answer = ask(server, c, request->api_key);
	c->waits = answer.verdict == GALE_PENDING; /* then on_completions replies */
	if (!c->waits)
		reply_to_answer(server, c, &answer);
}

static void serve(struct server *server, struct connection *c,
                  const struct request *request)
{
	if (request->has_body)
		reply_last(c, REPLY("413 Content Too Large", "Connection: close\r\n",
		                    "8", "no body\n"));
	else if (!is(request->method, "GET"))
		reply(c, REPLY("405 Method Not Allowed", "Allow: GET\r\n", "0", ""));
	else if (is(request->target, "/health"))
		reply(c, REPLY("200 OK", "", "3", "ok\n"));
	else if (is(request->target, "/metrics"))
		reply_metrics(c, server->runtime);
	else if (!is(request->target, "/"))
		reply(c, REPLY("404 Not Found", "", "14", "nothing there\n"));
	else
		serve_page(server, c, request);
	c->is_last |= request->closes;
}

/* ---- A connection ---------------------------------------------------------------- */

/* An answer of gale's that is still to come needs the memory. */
static void drop(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd); /* epoll forgets it */
	c->fd = -1;
	if (c->waits)
		return;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	free(c);
}

/* False: there is no whole request, or no room to reply. */
static bool serve_next(struct server *server, struct connection *c)
{
	struct text rest = { c->in + c->in_first, c->in_count - c->in_first };
	struct request request;
	struct text head;

	if (c->waits || c->is_last || c->out_count > OUT_MOST - METRICS_MOST)
		return false;
	if (!take_until(&rest, HEAD_END, &head)) {
		if (rest.count == IN_MOST)
			reply_last(c,
			           REPLY("431 Request Header Fields Too Large",
			                 "Connection: close\r\n", "9", "too long\n"));
		return false;
	}
	head.count += strlen("\r\n"); /* each of its lines has an end */
	c->in_first = c->in_count - rest.count;
	if (parse(head, &request))
		serve(server, c, &request);
	else
		reply_last(c, REPLY("400 Bad Request", "Connection: close\r\n", "15",
		                    "not understood\n"));
	return true;
}

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* False: nobody is there any more. */
static bool send_replies(struct connection *c)
{
	ssize_t sent;

	if (c->out_count == 0)
		return true;
	sent = send(c->fd, c->out + c->out_first, c->out_count - c->out_first,
	            MSG_NOSIGNAL);
	if (sent < 0)
		return is_for_later();
	c->out_first += (size_t)sent;
	if (c->out_first == c->out_count)
		c->out_first = c->out_count = 0;
	return true;
}

/* Only for what can be made use of; otherwise epoll would tell us again and again. */
static bool watch(struct server *server, struct connection *c)
{
	struct epoll_event event = { .data.ptr = c };
	int change = c->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	/* Of errors epoll tells in any case; 0 means that it does not know it yet. */
	event.events = EPOLLERR;
	if (!c->is_last && !c->has_said_all && c->in_count < IN_MOST)
		event.events |= EPOLLIN;
	if (c->out_count > 0)
		event.events |= EPOLLOUT;
	if (event.events == c->watched)
		return true;
	c->watched = event.events;
	return epoll_ctl(server->epoll, change, c->fd, &event) == 0;
}

static bool is_over(const struct connection *c)
{
	return (c->is_last || c->has_said_all) && c->out_count == 0 && !c->waits;
}

/* As far as it goes with what has been read. */
static void go_on(struct server *server, struct connection *c)
{
	bool is_there;

	do {
		while (serve_next(server, c))
			continue;
		is_there = send_replies(c);
	} while (is_there && c->out_count == 0 && serve_next(server, c));
	memmove(c->in, c->in + c->in_first, c->in_count - c->in_first);
	c->in_count -= c->in_first;
	c->in_first = 0;
	if (!is_there || is_over(c) || !watch(server, c))
		drop(c);
}

static bool read_more(struct connection *c)
{
	ssize_t count = recv(c->fd, c->in + c->in_count, IN_MOST - c->in_count, 0);

	if (count < 0)
		return is_for_later();
	c->has_said_all = count == 0;
	c->in_count += (size_t)count;
	return true;
}

static void on_connection(struct server *server, struct connection *c, uint32_t events)
{
	bool is_there = (events & (EPOLLERR | EPOLLHUP)) == 0;

	if (is_there && events & EPOLLIN)
		is_there = read_more(c);
	if (is_there)
		go_on(server, c);
	else
		drop(c);
}

static void enlist(struct server *server, struct connection *c)
{
	c->next = server->connections;
	c->link = &server->connections;
	if (c->next)
		c->next->link = &c->next;
	server->connections = c;
}

/* False: nobody is there, or there is no memory. */
static bool on_listener(struct server *server)
{
	const int on = 1;
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int fd = accept4(server->listener, (struct sockaddr *)&address, &length,
	                 SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *c;

	if (fd < 0)
		return false;
	c = malloc(sizeof(*c));
	if (!c) {
		close(fd);
		return false;
	}
	memset(c, 0, offsetof(struct connection, in));
	c->fd = fd;
	c->address = address.sin_addr.s_addr;
	enlist(server, c);
	/* A reply does not wait for the one before to have arrived. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!watch(server, c))
		drop(c);
	return true;
}

static void on_completions(struct server *server)
{
	struct gale_completion done[64];
	size_t count;

	do {
		count = gale_seat_completions(server->seat, done, 64);
		for (size_t i = 0; i < count; i++) {
			struct connection *c = done[i].tag;

			c->waits = false;
			reply_to_answer(server, c, &done[i].answer);
			if (c->fd < 0)
				drop(c);
			else
				go_on(server, c);
		}
	} while (count == 64);
}

/* ---- The loop -------------------------------------------------------------------- */

/* What has arrived is still read; after it, each connection seems to have said all. */
static void drain(struct server *server)
{
	while (on_listener(server))
		continue;
	close(server->listener); /* epoll forgets it */
	for (struct connection *c = server->connections; c; c = c->next)
		(void)shutdown(c->fd, SHUT_RD);
	server->is_draining = true;
}

/* False: the server ends at once. */
static bool on_signal(struct server *server)
{
	struct signalfd_siginfo taken;

	if (server->is_draining || read(server->signals, &taken, sizeof(taken)) < 0)
		return false;
	drain(server);
	return true;
}

/* False: it is to end.  Completions come last: they may drop a connection that this turn
 * has an event for. */
static bool turn(struct server *server)
{
	struct epoll_event events[EVENTS_MOST];
	int count = epoll_wait(server->epoll, events, EVENTS_MOST,
	                       server->is_draining ? DRAIN_MS : -1);
	bool has_completions = false, goes_on = true;

	if (server->seat)
		gale_tick(server->seat);
	for (int i = 0; i < count; i++) {
		void *what = events[i].data.ptr;

		if (what == &server->listener)
			(void)on_listener(server);
		else if (what == &server->seat)
			has_completions = true;
		else if (what == &server->signals)
			goes_on = on_signal(server);
		else
			on_connection(server, what, events[i].events);
	}
	if (has_completions)
		on_completions(server);
	if (server->is_draining)
		return goes_on && count != 0 && server->connections;
	return goes_on;
}

/* ---- Setting up ------------------------------------------------------------------ */

/* When gale cannot tell, as with a store that is down, this server would rather serve. */
static enum gale_err open_limiter(struct server *server, const char *name,
                                  struct gale_rule rule,
                                  struct gale_limiter **ret_limiter)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = GALE_LEASED,
		.on_outage = GALE_ON_OUTAGE_ALLOW,
		.store = server->store,
	};

	return gale_limiter_open(server->runtime, &config, ret_limiter);
}

/* A store shared by many servers would be .url = "redis://…". */
static enum gale_err open_limits(struct server *server, struct gale_rule rule,
                                 uint32_t clients)
{
	struct gale_config config = { .shards = 1,
		                      .pending_max = PENDING,
		                      .max_keys = clients };
	struct gale_store_config store = { .max_keys = clients };
	enum gale_err err = gale_runtime_open(&config, &server->runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(server->runtime, &store, &server->store);
	if (err == GALE_ERR_OK)
		err = open_limiter(server, "keys", rule, &server->by_key);
	if (err == GALE_ERR_OK)
		err = open_limiter(server, "addresses", rule, &server->by_address);
	if (err == GALE_ERR_OK)
		err = gale_join(server->runtime, &server->seat);
	return err;
}

static void close_limits(struct server *server)
{
	gale_leave(server->seat);
	gale_limiter_close(server->by_address);
	gale_limiter_close(server->by_key);
	gale_store_close(server->store);
	gale_runtime_close(server->runtime);
}

static void must(bool works, const char *what)
{
	if (works)
		return;
	perror(what);
	exit(1);
}

static void add(struct server *server, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	must(epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void open_listener(struct server *server, uint16_t port)
{
	const int on = 1;
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	server->listener =
	    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	must(server->listener >= 0, "socket");
	(void)setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(server->listener, (struct sockaddr *)&address, length) == 0, "bind");
	must(listen(server->listener, SOMAXCONN) == 0, "listen");
	must(getsockname(server->listener, (struct sockaddr *)&address, &length) == 0,
	     "getsockname");
	printf("listening on 127.0.0.1, port %d\n", ntohs(address.sin_port));
	fflush(stdout);
}

/* Ctrl-C and kill come as events. */
static void open_signals(struct server *server)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	must(sigprocmask(SIG_BLOCK, &ends, NULL) == 0, "sigprocmask");
	server->signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	must(server->signals >= 0, "signalfd");
}

#define USAGE "http_server [--headers] [--legacy] [PORT [LIMIT [SECONDS [CLIENTS]]]]\n"

static _Noreturn void refuse(const char *what)
{
	fprintf(stderr, "http_server: %s is no number that can be here\nusage: " USAGE,
	        what);
	exit(2);
}

static uint64_t argument(char **arguments, int count, int number, uint64_t otherwise,
                         uint64_t most)
{
	uint64_t value;
	char *end;

	if (number >= count)
		return otherwise;
	errno = 0;
	value = strtoull(arguments[number], &end, 10);
	if (arguments[number][0] < '0' || arguments[number][0] > '9' || *end || errno ||
	    value > most)
		refuse(arguments[number]);
	return value;
}

/* Returns which argument is the first that is none. */
static int take_options(int argc, char **argv, struct server *server)
{
	static const struct option options[] = { { "headers", no_argument, NULL, 'H' },
		                                 { "legacy", no_argument, NULL, 'L' },
		                                 { "help", no_argument, NULL, 'h' },
		                                 { NULL, 0, NULL, 0 } };

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'h') {
			printf("usage: " USAGE);
			exit(0);
		}
		if (c == '?') {
			fprintf(stderr, "usage: " USAGE);
			exit(2);
		}
		server->has_headers |= c == 'H';
		server->options.legacy |= c == 'L';
	}
	return optind;
}

int main(int argc, char **argv)
{
	struct server server = { 0 };
	int first = take_options(argc, argv, &server), count = argc - first;
	char **rest = argv + first;
	uint16_t port = (uint16_t)argument(rest, count, 0, 8080, UINT16_MAX);
	uint64_t limit = argument(rest, count, 1, 100, GALE_UNITS_MAX);
	uint64_t seconds = argument(rest, count, 2, 60, 1000000);
	uint32_t clients = (uint32_t)argument(rest, count, 3, 65536, 1000000000);
	enum gale_err err = GALE_ERR_OK;

	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	server.window_us = GALE_SECONDS(seconds);

	must(server.epoll >= 0, "epoll_create1");
	open_signals(&server);
	if (limit > 0)
		err = open_limits(&server, gale_fixed_window(limit, server.window_us),
		                  clients);
	if (err != GALE_ERR_OK) {
		fprintf(stderr, "http_server: %s\n", gale_err_text(err));
		return 1;
	}
	open_listener(&server, port);
	add(&server, server.listener, &server.listener);
	add(&server, server.signals, &server.signals);
	if (server.seat)
		add(&server, gale_seat_fd(server.seat), &server.seat);
	while (turn(&server))
		continue;
	close_limits(&server);
	return 0;
}
