/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * names.h -- where the hosts of a URL are, now and after they have moved.
 *
 * Names are looked up once when the store is opened, which takes its time, and again when
 * a connection has been lost, or there was no address to connect to: by a thread that lives
 * as long as the look-up takes, so that no shard waits for it.  Until it has found something,
 * the old addresses stay.
 *
 * Addresses that are spelled out are not looked up, and make no thread.
 *
 * Threads   names_open, names_close: one, before and after all others.
 *           names_list, names_look_again: any, at once; they never wait for a look-up.
 * Limits    names_close waits for a look-up that is under way.
 */
#ifndef STORES_NAMES_H
#define STORES_NAMES_H

#include "engine/clock.h"
#include "runtime/lock.h"
#include "stores/stream.h"
#include "stores/url.h"

/* stream_resolve, or a test's. */
typedef size_t names_lookup(const char *host, uint16_t port,
                            struct stream_address *ret_addresses, size_t most);

struct names_found {
	struct stream_address addresses[STREAM_ADDRESSES_MOST];
	uint8_t hosts[STREAM_ADDRESSES_MOST]; /* of the URL: whose address it is */
	size_t count;
};

struct names {
	struct lock lock;
	struct {
		const struct url *url;
		uint16_t port; /* of those without one */
		names_lookup *lookup;
		bool spelled_out; /* all of them */
	} fixed;
	struct {
		struct names_found found;
		mono due; /* not looked up again before */
		bool looking;
		bool has_thread; /* that is to be joined */
		pthread_t thread;
	} locked;
};

/* The URL, which has a host, stays where it is.  If no address of any was found, *ret_warning
 * says so; it is open all the same. */
void names_open(struct names *names, const struct url *url, uint16_t port,
                names_lookup *lookup, struct url_fault *ret_warning);
void names_close(struct names *names);

/* The addresses that were found last, in the order of the URL; none before the first are found. */
void names_list(struct names *names, struct names_found *ret_found);

/* A connection there was lost, or did not come about.  Nothing is looked up again before
 * five seconds are over. */
void names_look_again(struct names *names, mono now);

#endif
