/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* names.c -- a thread for one look-up, and a lock around what it has found. */
#define _GNU_SOURCE
#include "stores/names.h"

#include <signal.h>
#include <string.h>

#include "engine/check.h"

#define PAUSE_NS UINT64_C(5000000000) /* between look-ups */

/* ---- Looking up ------------------------------------------------------------------ */

static void add(struct names_found *found, const struct stream_address *address,
                size_t host)
{
	if (found->count == STREAM_ADDRESSES_MOST)
		return;
	found->addresses[found->count] = *address;
	found->hosts[found->count++] = (uint8_t)host;
}

static void add_host(const struct names *names, size_t host, struct names_found *found)
{
	const struct url_host *at = &names->fixed.url->hosts[host];
	struct stream_address addresses[STREAM_ADDRESSES_MOST];
	size_t count =
	    names->fixed.lookup(at->name, at->port ? at->port : names->fixed.port,
	                        addresses, STREAM_ADDRESSES_MOST);

	for (size_t i = 0; i < count; i++) {
		addresses[i].host = at->name;
		add(found, &addresses[i], host);
	}
}

static struct names_found look_up(const struct names *names)
{
	struct names_found found = { .count = 0 };

	for (size_t i = 0; i < names->fixed.url->host_count; i++)
		add_host(names, i, &found);
	return found;
}

static void add_those_of(struct names_found *all, const struct names_found *from,
                         size_t host)
{
	for (size_t i = 0; i < from->count; i++)
		if (from->hosts[i] == host)
			add(all, &from->addresses[i], host);
}

/* Of a host that was not found, what was known. */
static void take_over(struct names *names, const struct names_found *fresh)
    ON(names->lock)
{
	struct names_found all = { .count = 0 };

	for (size_t host = 0; host < names->fixed.url->host_count; host++) {
		size_t before = all.count;

		add_those_of(&all, fresh, host);
		if (all.count == before)
			add_those_of(&all, &names->locked.found, host);
	}
	names->locked.found = all;
}

static void *thread_main(void *arg)
{
	struct names *names = arg;
	struct names_found fresh = look_up(names);

	lock_take(&names->lock);
	take_over(names, &fresh);
	names->locked.looking = false;
	lock_drop(&names->lock);
	return NULL;
}

/* The host's signal handlers must not run on it. */
static bool start_thread(struct names *names) ON(names->lock)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	gale_assert(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	started = pthread_create(&names->locked.thread, NULL, thread_main, names) == 0;
	gale_assert(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	if (started)
		(void)pthread_setname_np(names->locked.thread, "gale-names");
	return started;
}

/* ---- From open to close ---------------------------------------------------------- */

static bool are_spelled_out(const struct url *url)
{
	struct stream_address ignored;

	for (size_t i = 0; i < url->host_count; i++)
		if (!stream_numeric(url->hosts[i].name, 0, &ignored))
			return false;
	return true;
}

void names_open(struct names *names, const struct url *url, uint16_t port,
                names_lookup *lookup, struct url_fault *ret_warning)
{
	memset(names, 0, sizeof(*names));
	names->fixed.url = url;
	names->fixed.port = port;
	names->fixed.lookup = lookup;
	names->fixed.spelled_out = are_spelled_out(url);
	names->locked.found = look_up(names);
	if (names->locked.found.count == 0)
		url_say(ret_warning, GALE_ERR_OK,
		        "url: no address is known of %s%s; it is looked up again",
		        url->hosts[0].name,
		        url->host_count > 1 ? ", nor of any other host" : "");
	lock_init(&names->lock);
}

void names_close(struct names *names)
{
	if (names->locked.has_thread)
		gale_assert(pthread_join(names->locked.thread, NULL) == 0);
	lock_destroy(&names->lock);
}

void names_list(struct names *names, struct names_found *ret_found)
{
	lock_take(&names->lock);
	*ret_found = names->locked.found;
	lock_drop(&names->lock);
}

/* A thread that is not looking any more has let go of the lock: it is as good as over. */
static void begin(struct names *names, mono now) ON(names->lock)
{
	if (names->locked.has_thread)
		gale_assert(pthread_join(names->locked.thread, NULL) == 0);
	names->locked.due = mono_after(now, PAUSE_NS);
	names->locked.has_thread = names->locked.looking = start_thread(names);
}

void names_look_again(struct names *names, mono now)
{
	if (names->fixed.spelled_out)
		return;
	lock_take(&names->lock);
	if (!names->locked.looking && mono_reached(now, names->locked.due))
		begin(names, now);
	lock_drop(&names->lock);
}
