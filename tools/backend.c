/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * backend.c -- one thread, one epoll, a queue, and the calls that are worked on.
 *
 *	read everything -> end silent callers -> end what is done -> begin what was read
 *	-> fill the places -> answer the owner -> send the replies -> sleep
 *
 * Everything is read before a caller is judged: a backend that got no processor for a while
 * does not take that for its callers' silence.
 */
#define _GNU_SOURCE
#include "tools/backend.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define READ_BYTES 65536
#define BACKLOG 1024

struct caller_end {
	struct caller_end *next;
	int fd; /* -1: closed */
	uint64_t heard_ns;
	uint64_t calls; /* in flight */
	size_t partial; /* bytes of a message whose rest has not come */
	char part[sizeof(struct backend_message)];
	char *out; /* replies that are to be sent */
	size_t out_bytes;
	size_t out_room;
	bool waits_for_room; /* of its socket */
};

struct call {
	struct call *next; /* in the queue */
	struct caller_end *caller;
	uint32_t node;
	uint64_t number;
	uint64_t takes_us;
	uint64_t due_ns;
};

struct letter {
	struct caller_end *caller;
	struct backend_message is;
};

struct works {
	int epoll;
	int listener;
	int control;
	bool is_asked; /* the owner has written */
	struct backend_terms terms;
	struct backend_counts counts;
	struct caller_end *callers;
	struct call *first; /* the queue */
	struct call **last;
	struct call *worked_on[BACKEND_PLACES];
	size_t worked_on_count;
	struct letter *inbox; /* what was read in this turn */
	size_t inbox_count;
	size_t inbox_room;
};

uint64_t backend_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Without it there is no backend; its owner notices. */
static void *need(void *memory)
{
	if (!memory)
		_exit(1);
	return memory;
}

/* ---- Counting -------------------------------------------------------------------- */

static void count_begun(struct backend_count *count)
{
	count->begun++;
	count->in_flight++;
	if (count->worst < count->in_flight)
		count->worst = count->in_flight;
}

static void count_ended(struct backend_count *count, enum backend_end end)
{
	count->in_flight--;
	if (end == BACKEND_DONE)
		count->done++;
	else
		count->aborted++;
}

/* ---- Calls ----------------------------------------------------------------------- */

static void reply(struct caller_end *caller, uint64_t number, enum backend_end end)
{
	const struct backend_reply is = { end, number };

	if (caller->fd < 0)
		return;
	if (caller->out_bytes + sizeof(is) > caller->out_room) {
		caller->out_room = 2 * caller->out_room + 64 * sizeof(is);
		caller->out = need(realloc(caller->out, caller->out_room));
	}
	memcpy(caller->out + caller->out_bytes, &is, sizeof(is));
	caller->out_bytes += sizeof(is);
}

static void begin_call(struct works *works, struct caller_end *caller,
                       const struct backend_message *message)
{
	struct call *call = need(malloc(sizeof(*call)));

	*call = (struct call){ .caller = caller,
		               .node = message->node,
		               .number = message->number,
		               .takes_us = message->takes_us };
	*works->last = call;
	works->last = &call->next;
	caller->calls++;
	count_begun(&works->counts.all);
	count_begun(&works->counts.of[call->node]);
	if (works->counts.recent_worst < works->counts.all.in_flight)
		works->counts.recent_worst = works->counts.all.in_flight;
}

static void end_call(struct works *works, struct call *call, enum backend_end end)
{
	count_ended(&works->counts.all, end);
	count_ended(&works->counts.of[call->node], end);
	call->caller->calls--;
	reply(call->caller, call->number, end);
	free(call);
}

static void end_queued(struct works *works, const struct caller_end *caller)
{
	struct call **at = &works->first;

	while (*at) {
		struct call *call = *at;

		if (call->caller != caller) {
			at = &call->next;
			continue;
		}
		*at = call->next;
		end_call(works, call, BACKEND_ABORTED);
	}
	works->last = at;
}

static void end_calls_of(struct works *works, struct caller_end *caller)
{
	size_t kept = 0;

	end_queued(works, caller);
	for (size_t i = 0; i < works->worked_on_count; i++) {
		struct call *call = works->worked_on[i];

		if (call->caller == caller)
			end_call(works, call, BACKEND_ABORTED);
		else
			works->worked_on[kept++] = call;
	}
	works->worked_on_count = kept;
}

static void end_done(struct works *works, uint64_t now_ns)
{
	size_t kept = 0;

	if (works->terms.stopped)
		return;
	for (size_t i = 0; i < works->worked_on_count; i++) {
		struct call *call = works->worked_on[i];

		if (call->due_ns <= now_ns)
			end_call(works, call, BACKEND_DONE);
		else
			works->worked_on[kept++] = call;
	}
	works->worked_on_count = kept;
}

uint64_t backend_takes_us(const struct backend_terms *terms, uint64_t takes_us,
                          uint64_t in_flight)
{
	uint64_t above = in_flight > terms->places ? in_flight - terms->places : 0;

	if (!terms->bends)
		return takes_us;
	return takes_us + takes_us * above / terms->places * above / terms->places;
}

/* All calls that were read in a turn are in flight before the first of them is worked on. */
static void fill_places(struct works *works, uint64_t now_ns)
{
	const struct backend_terms *terms = &works->terms;
	size_t places = terms->bends ? BACKEND_PLACES : terms->places;

	while (works->first && works->worked_on_count < places) {
		struct call *call = works->first;
		uint64_t takes_us =
		    call->takes_us > 0 ? call->takes_us : terms->takes_us;

		works->first = call->next;
		if (!works->first)
			works->last = &works->first;
		call->due_ns =
		    now_ns + 1000 * backend_takes_us(terms, takes_us,
		                                     works->counts.all.in_flight);
		works->worked_on[works->worked_on_count++] = call;
	}
}

/* ---- Callers --------------------------------------------------------------------- */

static void watch(const struct works *works, int fd, uint32_t events, void *whose,
                  int how)
{
	struct epoll_event event = { .events = events, .data.ptr = whose };

	if (epoll_ctl(works->epoll, how, fd, &event) != 0)
		_exit(1);
}

static void take_callers(struct works *works)
{
	int fd;

	while ((fd = accept4(works->listener, NULL, NULL,
	                     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct caller_end *caller = need(calloc(1, sizeof(*caller)));

		caller->fd = fd;
		caller->heard_ns = backend_now_ns();
		caller->next = works->callers;
		works->callers = caller;
		watch(works, fd, EPOLLIN, caller, EPOLL_CTL_ADD);
	}
}

static void close_caller(struct caller_end *caller)
{
	if (caller->fd >= 0)
		close(caller->fd);
	caller->fd = -1;
	caller->out_bytes = 0;
}

static bool is_silent(const struct works *works, const struct caller_end *caller,
                      uint64_t now_ns)
{
	uint64_t abort_ns = 1000 * works->terms.abort_us;

	return abort_ns > 0 && caller->heard_ns + abort_ns <= now_ns;
}

static bool is_there(const struct caller_end *caller)
{
	return caller->fd >= 0 || caller->calls > 0;
}

static void end_silent_callers(struct works *works, uint64_t now_ns)
{
	for (struct caller_end *caller = works->callers; caller; caller = caller->next)
		if (is_there(caller) && is_silent(works, caller, now_ns)) {
			works->counts.cut++;
			close_caller(caller);
			end_calls_of(works, caller);
		}
}

static void free_callers(struct works *works)
{
	struct caller_end **at = &works->callers;

	while (*at) {
		struct caller_end *caller = *at;

		if (is_there(caller)) {
			at = &caller->next;
			continue;
		}
		*at = caller->next;
		free(caller->out);
		free(caller);
	}
}

/* ---- Reading --------------------------------------------------------------------- */

static void put_into_inbox(struct works *works, struct caller_end *caller,
                           const char *bytes)
{
	struct letter *letter;

	if (works->inbox_count == works->inbox_room) {
		works->inbox_room = 2 * works->inbox_room + 64;
		works->inbox = need(
		    realloc(works->inbox, works->inbox_room * sizeof(*works->inbox)));
	}
	letter = &works->inbox[works->inbox_count++];
	letter->caller = caller;
	memcpy(&letter->is, bytes, sizeof(letter->is));
	if (caller->heard_ns < letter->is.sent_ns)
		caller->heard_ns = letter->is.sent_ns;
}

static void read_caller(struct works *works, struct caller_end *caller)
{
	static char bytes[READ_BYTES];
	const size_t one = sizeof(struct backend_message);
	ssize_t count;

	do {
		size_t filled = caller->partial, used = 0;

		memcpy(bytes, caller->part, filled);
		count = recv(caller->fd, bytes + filled, sizeof(bytes) - filled, 0);
		if (count > 0)
			filled += (size_t)count;
		for (; filled - used >= one; used += one)
			put_into_inbox(works, caller, bytes + used);
		caller->partial = filled - used;
		memcpy(caller->part, bytes + used, caller->partial);
	} while (count > 0 || (count < 0 && errno == EINTR));
	if (count == 0 || errno != EAGAIN)
		close_caller(caller); /* for all that is known it may only be silent */
}

static bool is_sound(const struct backend_message *message)
{
	return message->order >= BACKEND_CALL && message->order <= BACKEND_CANCEL &&
	       message->node < BACKEND_NODES;
}

static void open_letter(struct works *works, const struct letter *letter)
{
	struct caller_end *caller = letter->caller;

	if (!is_sound(&letter->is))
		close_caller(caller);
	else if (letter->is.order == BACKEND_CALL)
		begin_call(works, caller, &letter->is);
	else if (letter->is.order == BACKEND_CANCEL)
		end_calls_of(works, caller);
}

static void open_letters(struct works *works)
{
	for (size_t i = 0; i < works->inbox_count; i++)
		open_letter(works, &works->inbox[i]);
	works->inbox_count = 0;
}

static void drop_letters_of_silent(struct works *works, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < works->inbox_count; i++)
		if (!is_silent(works, works->inbox[i].caller, now_ns))
			works->inbox[kept++] = works->inbox[i];
	works->inbox_count = kept;
}

/* ---- Writing --------------------------------------------------------------------- */

static void send_replies(struct works *works, struct caller_end *caller)
{
	size_t sent_bytes = 0;

	while (sent_bytes < caller->out_bytes) {
		ssize_t sent = send(caller->fd, caller->out + sent_bytes,
		                    caller->out_bytes - sent_bytes, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			break;
		sent_bytes += sent > 0 ? (size_t)sent : 0;
	}
	caller->out_bytes -= sent_bytes;
	memmove(caller->out, caller->out + sent_bytes, caller->out_bytes);
	if (caller->waits_for_room != (caller->out_bytes > 0)) {
		caller->waits_for_room = !caller->waits_for_room;
		watch(works, caller->fd,
		      EPOLLIN | (caller->waits_for_room ? EPOLLOUT : 0), caller,
		      EPOLL_CTL_MOD);
	}
}

static void send_all_replies(struct works *works)
{
	for (struct caller_end *caller = works->callers; caller; caller = caller->next)
		if (caller->fd >= 0 &&
		    (caller->out_bytes > 0 || caller->waits_for_room))
			send_replies(works, caller);
}

/* ---- The owner ------------------------------------------------------------------- */

/* Terms of no place leave those that there are: the owner only looks. */
static void answer_owner(struct works *works)
{
	struct backend_terms terms;

	if (!works->is_asked)
		return;
	works->is_asked = false;
	if (recv(works->control, &terms, sizeof(terms), 0) != sizeof(terms))
		_exit(0);
	if (terms.places > 0)
		works->terms = terms;
	if (send(works->control, &works->counts, sizeof(works->counts), MSG_NOSIGNAL) !=
	    sizeof(works->counts))
		_exit(0);
	if (terms.places == 0)
		works->counts.recent_worst = works->counts.all.in_flight;
}

/* ---- The thread ------------------------------------------------------------------ */

static uint64_t next_due_ns(const struct works *works)
{
	uint64_t due_ns = UINT64_MAX, abort_ns = 1000 * works->terms.abort_us;

	for (size_t i = 0; i < works->worked_on_count && !works->terms.stopped; i++)
		if (due_ns > works->worked_on[i]->due_ns)
			due_ns = works->worked_on[i]->due_ns;
	for (const struct caller_end *caller = works->callers; caller && abort_ns > 0;
	     caller = caller->next)
		if (due_ns > caller->heard_ns + abort_ns)
			due_ns = caller->heard_ns + abort_ns;
	return due_ns;
}

static int wait_for_events(struct works *works, struct epoll_event *events)
{
	uint64_t due_ns = next_due_ns(works), now_ns = backend_now_ns();
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	const struct timespec wait = { (time_t)(left_ns / 1000000000),
		                       (long)(left_ns % 1000000000) };
	struct pollfd is_ready = { .fd = works->epoll, .events = POLLIN };

	(void)ppoll(&is_ready, 1, due_ns == UINT64_MAX ? NULL : &wait, NULL);
	return epoll_wait(works->epoll, events, EVENTS, /* timeout= */ 0);
}

static void read_all(struct works *works, const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		void *whose = events[i].data.ptr;

		if (whose == &works->control)
			works->is_asked = true;
		else if (whose != &works->listener && events[i].events != EPOLLOUT)
			read_caller(works, whose);
	}
	take_callers(works);
}

static void turn(struct works *works)
{
	struct epoll_event events[EVENTS];
	int count = wait_for_events(works, events);
	uint64_t now_ns;

	read_all(works, events, count);
	now_ns = backend_now_ns();
	drop_letters_of_silent(works, now_ns);
	end_silent_callers(works, now_ns);
	end_done(works, now_ns);
	open_letters(works);
	fill_places(works, now_ns);
	answer_owner(works);
	send_all_replies(works);
	free_callers(works);
}

static _Noreturn void be_backend(int listener, int control,
                                 const struct backend_terms *terms)
{
	struct works *works = need(calloc(1, sizeof(*works)));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "gale-backend");
	signal(SIGINT, SIG_IGN); /* its owner's to answer */
	signal(SIGTERM, SIG_IGN);
	works->terms = *terms;
	works->last = &works->first;
	works->listener = listener;
	works->control = control;
	works->epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(works, listener, EPOLLIN, &works->listener, EPOLL_CTL_ADD);
	watch(works, control, EPOLLIN, &works->control, EPOLL_CTL_ADD);
	for (;;)
		turn(works);
}

/* ---- The owner's side ------------------------------------------------------------ */

/* The kernel finds a name that is free. */
static int listen_somewhere(struct backend *backend)
{
	struct sockaddr_un *address = &backend->address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	backend->address_bytes = sizeof(*address);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)address, sizeof(address->sun_family)) != 0 ||
	    getsockname(fd, (struct sockaddr *)address, &backend->address_bytes) != 0 ||
	    listen(fd, BACKLOG) != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

bool backend_start(struct backend *backend, const struct backend_terms *terms,
                   struct sentence *ret_why)
{
	int listener = listen_somewhere(backend), ends[2];

	if (listener < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return sentence_say(ret_why, "a socket for the backend: %s",
		                    strerror(errno));
	backend->pid = fork();
	if (backend->pid == 0) {
		close(ends[0]);
		be_backend(listener, ends[1], terms);
	}
	close(listener);
	close(ends[1]);
	backend->control = ends[0];
	if (backend->pid > 0)
		return true;
	close(ends[0]);
	return sentence_say(ret_why, "a process for the backend: %s", strerror(errno));
}

void backend_forget(struct backend *backend)
{
	close(backend->control);
	backend->pid = 0;
}

void backend_end(struct backend *backend)
{
	if (backend->pid <= 0)
		return;
	kill(backend->pid, SIGKILL);
	waitpid(backend->pid, NULL, 0);
	backend_forget(backend);
}

static bool talk(struct backend *backend, const struct backend_terms *terms,
                 struct backend_counts *ret_counts)
{
	return send(backend->control, terms, sizeof(*terms), MSG_NOSIGNAL) ==
	           sizeof(*terms) &&
	       recv(backend->control, ret_counts, sizeof(*ret_counts), 0) ==
	           sizeof(*ret_counts);
}

bool backend_set(struct backend *backend, const struct backend_terms *terms)
{
	struct backend_counts counts;

	return talk(backend, terms, &counts);
}

bool backend_look(struct backend *backend, struct backend_counts *ret_counts)
{
	const struct backend_terms none = { .places = 0 };

	return talk(backend, &none, ret_counts);
}
