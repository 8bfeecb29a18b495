/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * proxy.h -- a bad network between a node and a server.
 *
 *     node <--TCP on loopback--> proxy <--unix socket, or TCP--> server
 *
 * It carries bytes, in order and none of them twice, on a thread of its own; the test
 * says how badly.
 *
 * Threads   Any, at once, while it is open.
 */
#ifndef TESTS_SUPPORT_PROXY_H
#define TESTS_SUPPORT_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum proxy_way {
	TO_SERVER,
	TO_NODE,
};

struct proxy {
	uint16_t port; /* where it listens */
	char socket[96];
	uint16_t server_port; /* 0: it is at the socket */
	int listener;
	int wake;
	pthread_t thread;
	_Atomic bool stopping;
	_Atomic bool silent;
	_Atomic bool exact;
	_Atomic bool swallows;
	_Atomic uint64_t delay_us[2];
	_Atomic uint64_t byte_ns[2];
	_Atomic uint64_t cut_after; /* bytes, and one more; 0: it cuts nothing */
	_Atomic uint64_t cuts;      /* how often all connections are to have been cut */
	_Atomic uint64_t connections; /* so far */
};

/* To the server with that socket. */
void proxy_open(struct proxy *proxy, const char *socket);
/* To a server on loopback. */
void proxy_open_to_port(struct proxy *proxy, uint16_t server_port);
void proxy_close(struct proxy *proxy);

/* From now on what goes that way takes so long. */
void proxy_delay(struct proxy *proxy, enum proxy_way way, uint64_t us);
/* From now on each byte takes so long that way, one after the other, of all connections: what
 * comes faster waits, as it does at a server that has more to do than it can. */
void proxy_slow(struct proxy *proxy, enum proxy_way way, uint64_t byte_ns);
/* From now on it never sleeps: that takes a whole processor, and keeps delays to some
 * microseconds, where otherwise it is a millisecond. */
void proxy_be_exact(struct proxy *proxy);
/* A black hole: nothing is read, nothing goes out; connections are taken by the kernel
 * alone.  What was on its way goes on afterwards. */
void proxy_be_silent(struct proxy *proxy, bool silent);
/* What the server says is lost. */
void proxy_swallow(struct proxy *proxy, bool swallows);
/* Cuts the connection that carries the next answers, when so many bytes of them have
 * gone; once. */
void proxy_cut_after(struct proxy *proxy, uint64_t bytes);
/* Cuts all connections that there are. */
void proxy_cut(struct proxy *proxy);

#endif
