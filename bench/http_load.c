/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* http_load.c -- a turn of epoll for all connections. */
#define _GNU_SOURCE
#include "bench/http_load.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/must.h"

#define REQUEST                                                                        \
	"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: gale_http\r\n"               \
	"Accept: */*\r\nX-Api-Key: %016" PRIx64 "\r\n\r\n"
#define REQUEST_MOST 128
#define IN_MOST 65536
#define PATIENCE_MS 60000

struct line {
	int fd;
	unsigned unanswered;
	size_t in_count;
	char in[IN_MOST];
};

struct load {
	int epoll;
	unsigned count;
	uint64_t picked;
	struct load_plan plan; /* of this run */
	uint64_t to_send;
	struct load_answers answers;
	struct line lines[];
};

/* ---- Sending --------------------------------------------------------------------- */

static uint64_t next_key(struct load *load)
{
	uint64_t id = load->picked++;

	if (!load->plan.in_order) {
		id = id * UINT64_C(0x9e3779b97f4a7c15);
		id = (id ^ id >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
		id ^= id >> 32;
	}
	/* Keys that follow each other do not look it. */
	return (id % load->plan.keys + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void send_some(struct load *load, struct line *line)
{
	char text[LOAD_DEEP_MOST * REQUEST_MOST];
	size_t count = 0;

	for (unsigned i = 0; i < load->plan.deep; i++)
		count += (size_t)snprintf(text + count, sizeof(text) - count, REQUEST,
		                          next_key(load));
	must(send(line->fd, text, count, MSG_NOSIGNAL) == (ssize_t)count);
	line->unanswered = load->plan.deep;
	load->to_send -= load->plan.deep;
	load->answers.sent += load->plan.deep;
}

/* ---- Hearing --------------------------------------------------------------------- */

/* How long the first reply of the text is; 0: it is not all there. */
static size_t reply_length(const char *text, size_t count)
{
	const char *end = memmem(text, count, "\r\n\r\n", 4);
	const char *length;
	size_t whole;

	if (!end)
		return 0;
	length = strcasestr(text, "\r\nContent-Length:");
	must(length && length < end);
	whole = (size_t)(end - text) + 4 + strtoul(length + 17, NULL, 10);
	return whole <= count ? whole : 0;
}

static void take_replies(struct load *load, struct line *line)
{
	size_t first = 0, length;

	line->in[line->in_count] = '\0';
	while ((length = reply_length(line->in + first, line->in_count - first)) > 0) {
		bool allowed = memcmp(line->in + first, "HTTP/1.1 200", 12) == 0;

		load->answers.allowed += allowed;
		load->answers.denied += !allowed;
		must(line->unanswered-- > 0);
		first += length;
	}
	memmove(line->in, line->in + first, line->in_count - first);
	line->in_count -= first;
}

static void hear(struct load *load, struct line *line)
{
	ssize_t count =
	    recv(line->fd, line->in + line->in_count, IN_MOST - 1 - line->in_count, 0);

	must(count > 0);
	line->in_count += (size_t)count;
	take_replies(load, line);
	if (line->unanswered == 0 && load->to_send > 0)
		send_some(load, line);
}

struct load_answers load_run(struct load *load, const struct load_plan *plan)
{
	uint64_t together = (uint64_t)load->count * plan->deep;
	struct epoll_event events[64];

	must(plan->deep <= LOAD_DEEP_MOST);
	load->plan = *plan;
	load->to_send = (plan->count + together - 1) / together * together;
	load->answers = (struct load_answers){ 0 };
	for (unsigned i = 0; i < load->count; i++)
		send_some(load, &load->lines[i]);
	while (load->answers.allowed + load->answers.denied <
	       load->answers.sent + load->to_send) {
		int count = epoll_wait(load->epoll, events, 64, PATIENCE_MS);

		must(count > 0);
		for (int i = 0; i < count; i++)
			hear(load, events[i].data.ptr);
	}
	return load->answers;
}

/* ---- Connections ----------------------------------------------------------------- */

static void line_open(struct load *load, struct line *line, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = line };
	const int on = 1;

	line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(line->fd >= 0);
	must(connect(line->fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	must(epoll_ctl(load->epoll, EPOLL_CTL_ADD, line->fd, &event) == 0);
}

struct load *load_open(uint16_t port, unsigned connections)
{
	struct load *load =
	    calloc(1, sizeof(*load) + connections * sizeof(load->lines[0]));

	must(load);
	load->count = connections;
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	must(load->epoll >= 0);
	for (unsigned i = 0; i < connections; i++)
		line_open(load, &load->lines[i], port);
	return load;
}

void load_close(struct load *load)
{
	for (unsigned i = 0; i < load->count; i++)
		close(load->lines[i].fd);
	close(load->epoll);
	free(load);
}
