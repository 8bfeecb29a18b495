/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* proxy.c -- one thread, and for each connection two pipes of what is on its way. */
#define _GNU_SOURCE
#include "tests/support/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/must.h"

#define PAIRS_MOST 64
#define READ_MOST 16384
#define NAP_MS 1 /* how exactly delays are kept, unless it is to be exact */

/* Bytes that came together. */
struct parcel {
	struct parcel *next;
	uint64_t due_ns;
	size_t sent;
	size_t count;
	uint8_t bytes[];
};

struct pipe {
	int from;
	int to;
	struct parcel *first;
	struct parcel **last;
};

struct pair {
	bool open;
	struct pipe pipes[2]; /* by proxy_way */
};

struct works {
	struct proxy *proxy;
	uint64_t cuts;
	uint64_t free_ns[2]; /* when all that came by then has gone that way */
	struct pair pairs[PAIRS_MOST];
};

/* ---- Sockets --------------------------------------------------------------------- */

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t count = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must(fd >= 0);
	must(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(fd, PAIRS_MOST) == 0);
	must(getsockname(fd, (struct sockaddr *)&address, &count) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* -1: nobody is there. */
static int connect_by(const struct sockaddr *address, socklen_t count)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	if (connect(fd, address, count) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
		return fd;
	close(fd);
	return -1;
}

static int connect_to(const struct proxy *proxy)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in port = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                    .sin_port = htons(proxy->server_port) };

	strcpy(path.sun_path, proxy->socket);
	return proxy->server_port != 0
	           ? connect_by((const struct sockaddr *)&port, sizeof(port))
	           : connect_by((const struct sockaddr *)&path, sizeof(path));
}

/* ---- Pipes ----------------------------------------------------------------------- */

static void pipe_open(struct pipe *pipe, int from, int to)
{
	*pipe = (struct pipe){ .from = from, .to = to };
	pipe->last = &pipe->first;
}

static void drop_first(struct pipe *pipe)
{
	struct parcel *first = pipe->first;

	pipe->first = first->next;
	if (!pipe->first)
		pipe->last = &pipe->first;
	free(first);
}

/* Children may have copies of the descriptors: the connections end all the same. */
static void pair_close(struct pair *pair)
{
	(void)shutdown(pair->pipes[TO_SERVER].from, SHUT_RDWR);
	(void)shutdown(pair->pipes[TO_SERVER].to, SHUT_RDWR);
	for (int way = TO_SERVER; way <= TO_NODE; way++)
		while (pair->pipes[way].first)
			drop_first(&pair->pipes[way]);
	close(pair->pipes[TO_SERVER].from);
	close(pair->pipes[TO_SERVER].to);
	pair->open = false;
}

static void append(struct pipe *pipe, const uint8_t *bytes, size_t count,
                   uint64_t due_ns)
{
	struct parcel *parcel = malloc(sizeof(*parcel) + count);

	must(parcel);
	*parcel = (struct parcel){ .due_ns = due_ns, .count = count };
	memcpy(parcel->bytes, bytes, count);
	*pipe->last = parcel;
	pipe->last = &parcel->next;
}

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* All connections share the way: it carries what came first, first. */
static uint64_t due_of(struct works *works, enum proxy_way way, size_t count)
{
	const struct proxy *proxy = works->proxy;
	uint64_t now_ns = patience_now_ns(), *free_ns = &works->free_ns[way];

	if (*free_ns < now_ns)
		*free_ns = now_ns;
	*free_ns += count * load_relaxed(&proxy->byte_ns[way]);
	return *free_ns + load_relaxed(&proxy->delay_us[way]) * 1000;
}

/* False: the connection is over. */
static bool take_in(struct works *works, struct pipe *pipe, enum proxy_way way)
{
	uint8_t bytes[READ_MOST];
	ssize_t count = recv(pipe->from, bytes, sizeof(bytes), 0);

	if (count <= 0)
		return count < 0 && is_for_later();
	if (way == TO_SERVER || !load_relaxed(&works->proxy->swallows))
		append(pipe, bytes, (size_t)count, due_of(works, way, (size_t)count));
	return true;
}

/* How much of it may go; whether that is the last. */
static size_t before_cut(struct proxy *proxy, enum proxy_way way, size_t count,
                         bool *ret_cuts)
{
	uint64_t most = load_relaxed(&proxy->cut_after);

	*ret_cuts = way == TO_NODE && most > 0 && count >= most - 1;
	if (*ret_cuts)
		count = (size_t)most - 1;
	if (way == TO_NODE && most > 0)
		store_relaxed(&proxy->cut_after, *ret_cuts ? 0 : most - count);
	return count;
}

/* False: the connection is over. */
static bool give_out(struct proxy *proxy, struct pipe *pipe, enum proxy_way way)
{
	while (pipe->first && pipe->first->due_ns <= patience_now_ns()) {
		struct parcel *first = pipe->first;
		size_t left = first->count - first->sent;
		bool cuts = false;
		ssize_t sent;

		if (first->sent == 0)
			left = before_cut(proxy, way, left, &cuts);
		sent = send(pipe->to, first->bytes + first->sent, left, MSG_NOSIGNAL);
		if (cuts || (sent < 0 && !is_for_later()))
			return false;
		if (sent < 0)
			return true;
		first->sent += (size_t)sent;
		if (first->sent < first->count)
			return true;
		drop_first(pipe);
	}
	return true;
}

/* ---- The thread ------------------------------------------------------------------ */

static struct pair *free_pair(struct works *works)
{
	for (int i = 0; i < PAIRS_MOST; i++)
		if (!works->pairs[i].open)
			return &works->pairs[i];
	return NULL;
}

static void take_node(struct works *works)
{
	struct pair *pair = free_pair(works);
	const int on = 1;
	int node, server;

	node =
	    accept4(works->proxy->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (node < 0)
		return;
	must(pair);
	add_relaxed(&works->proxy->connections, 1);
	server = connect_to(works->proxy);
	if (server < 0) {
		close(node);
		return;
	}
	/* What comes soon after an answer does not wait for that to be acknowledged. */
	(void)setsockopt(node, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	pair->open = true;
	pipe_open(&pair->pipes[TO_SERVER], node, server);
	pipe_open(&pair->pipes[TO_NODE], server, node);
}

static void carry(struct works *works, struct pair *pair)
{
	static const enum proxy_way ways[] = { TO_SERVER, TO_NODE };

	for (int i = 0; i < 2 && pair->open; i++)
		if (!take_in(works, &pair->pipes[ways[i]], ways[i]) ||
		    !give_out(works->proxy, &pair->pipes[ways[i]], ways[i]))
			pair_close(pair);
}

static int nap_ms(const struct proxy *proxy, bool busy)
{
	if (load_relaxed(&proxy->exact))
		return 0;
	return busy ? NAP_MS : -1;
}

/* Sleeps until something comes, or somebody says so; a moment, when something is on its
 * way or nothing is looked at; not at all, when it is to be exact. */
static void sleep_a_while(struct works *works)
{
	struct pollfd polls[2 + 2 * PAIRS_MOST];
	nfds_t count = 0;
	bool busy = load_relaxed(&works->proxy->silent);
	uint64_t raised;

	polls[count++] = (struct pollfd){ works->proxy->wake, POLLIN, 0 };
	if (!busy)
		polls[count++] = (struct pollfd){ works->proxy->listener, POLLIN, 0 };
	for (int i = 0; i < PAIRS_MOST && !busy; i++)
		for (int way = 0; way < 2 && works->pairs[i].open; way++) {
			struct pipe *pipe = &works->pairs[i].pipes[way];

			polls[count++] = (struct pollfd){ pipe->from, POLLIN, 0 };
			busy |= pipe->first != NULL;
		}
	(void)poll(polls, count, nap_ms(works->proxy, busy));
	(void)!read(works->proxy->wake, &raised, sizeof(raised));
}

static void cut_all(struct works *works)
{
	uint64_t cuts = load_relaxed(&works->proxy->cuts);

	for (int i = 0; i < PAIRS_MOST && works->cuts != cuts; i++)
		if (works->pairs[i].open)
			pair_close(&works->pairs[i]);
	works->cuts = cuts;
}

static void *thread_main(void *arg)
{
	struct works *works = calloc(1, sizeof(*works));

	must(works);
	works->proxy = arg;
	while (!load_relaxed(&works->proxy->stopping)) {
		sleep_a_while(works);
		cut_all(works);
		if (load_relaxed(&works->proxy->silent))
			continue;
		take_node(works);
		for (int i = 0; i < PAIRS_MOST; i++)
			if (works->pairs[i].open)
				carry(works, &works->pairs[i]);
	}
	add_relaxed(&works->proxy->cuts, 1);
	cut_all(works);
	free(works);
	return NULL;
}

/* ---- What the test says ---------------------------------------------------------- */

static void wake(struct proxy *proxy)
{
	const uint64_t one = 1;

	must(write(proxy->wake, &one, sizeof(one)) == sizeof(one));
}

static void begin(struct proxy *proxy)
{
	proxy->listener = listen_somewhere(&proxy->port);
	proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	must(proxy->wake >= 0);
	must(pthread_create(&proxy->thread, NULL, thread_main, proxy) == 0);
}

void proxy_open(struct proxy *proxy, const char *socket)
{
	memset(proxy, 0, sizeof(*proxy));
	must(strlen(socket) < sizeof(proxy->socket));
	strcpy(proxy->socket, socket);
	begin(proxy);
}

void proxy_open_to_port(struct proxy *proxy, uint16_t server_port)
{
	memset(proxy, 0, sizeof(*proxy));
	proxy->server_port = server_port;
	begin(proxy);
}

void proxy_close(struct proxy *proxy)
{
	store_relaxed(&proxy->stopping, true);
	wake(proxy);
	must(pthread_join(proxy->thread, NULL) == 0);
	close(proxy->listener);
	close(proxy->wake);
}

void proxy_delay(struct proxy *proxy, enum proxy_way way, uint64_t us)
{
	store_relaxed(&proxy->delay_us[way], us);
}

void proxy_slow(struct proxy *proxy, enum proxy_way way, uint64_t byte_ns)
{
	store_relaxed(&proxy->byte_ns[way], byte_ns);
}

void proxy_be_exact(struct proxy *proxy)
{
	store_relaxed(&proxy->exact, true);
	wake(proxy);
}

void proxy_be_silent(struct proxy *proxy, bool silent)
{
	store_relaxed(&proxy->silent, silent);
	wake(proxy);
}

void proxy_swallow(struct proxy *proxy, bool swallows)
{
	store_relaxed(&proxy->swallows, swallows);
}

void proxy_cut_after(struct proxy *proxy, uint64_t bytes)
{
	store_relaxed(&proxy->cut_after, bytes + 1);
}

void proxy_cut(struct proxy *proxy)
{
	add_relaxed(&proxy->cuts, 1);
	wake(proxy);
}
