/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* link.c -- libpq without waiting: connects, installs, sends batches in a pipeline. */
#define _GNU_SOURCE
#include "stores/postgres/link.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/part.h"
#include "stores/postgres/hosts.h"
#include "stores/postgres/session.h"
#include "stores/postgres/wire.h"

#define AWAITED_MOST 32
#define IDLE_BYTES (64 * 1024) /* that a server may say for no reason */
#define JOB_BYTES 4096         /* that it may say of a job ... */
#define READ_BYTES 8192        /* that libpq has room for whenever it reads */
#define LOG_BYTES (2 * 12 * (1 + 2 * GALE_LOG_LIMIT_MAX)) /* ... or tell twice: a log */
#define SECOND_US UINT64_C(1000000)
#define SWEEP_PAUSE_NS UINT64_C(10000000000) /* while anything is asked at all */
#define SWEEP_KEYS "1000"
#define WRONG_MOST 10    /* after so many wrong guesses the pauses get no longer */
#define SECOND_DIGITS 10 /* of a generation: the second it was made in, then lots */

/* ---- The kind -------------------------------------------------------------------- */

struct kind {
	struct server_kind is; /* first */
	struct gale_allocator *allocator;
	struct postgres_hosts hosts;
	char url[URL_MOST + 1];
};

/* ---- The link -------------------------------------------------------------------- */

enum phase {
	CONNECTING,
	ASKING, /* whose the session is */
	GREETING,
	INSTALLING,
	READY,
	BROKEN,
};

struct awaited {
	struct remote_batch batch; /* of no jobs: a sweep, or a name */
	struct postgres_order order;
	bool is_name;
	bool is_over; /* it has failed, and that was told */
};

struct link {
	struct wire wire; /* first */
	struct kind *kind;
	PGconn *conn; /* NULL: none */
	struct session session;
	enum phase phase;
	int watched;     /* a copy of its descriptor, which is in the epoll; -1: none */
	uint32_t events; /* that it is there for */
	size_t attempts; /* to connect, since it was ready */
	bool connected;  /* at least once, or tried to */
	bool installed;  /* on this connection: it is not tried twice */
	bool missing;    /* its schema, or what is new in it */
	bool listens;    /* on this connection it has said so */
	char generation[REMOTE_GENERATION_BYTES + 1];
	struct postgres_room asked;
	struct postgres_room answered;
	mono sweep_due;
	uint64_t sent;
	uint64_t heard;
	uint64_t received; /* bytes, when a sync was last heard; 0: none was */
	bool is_local;  /* its socket is none of TCP, and its bytes are counted here: */
	uint64_t read;  /* so many at least */
	unsigned wrong; /* guesses in a row that keys are new */
	unsigned unguessed; /* batches to come of which that is not guessed */
	PGresult *result;   /* of the oldest, until its sync has come; or NULL */
	struct awaited awaited[AWAITED_MOST];
	struct remote_told told[REMOTE_BATCH_MOST];
};

/* The first line of what libpq says. */
static void give_up(struct link *link, const char *what, const char *why)
{
	if (link->phase == BROKEN)
		return;
	link->phase = BROKEN;
	snprintf(link->wire.text, WIRE_TEXT, "%s%s%.*s", what, why[0] ? ": " : "",
	         (int)strcspn(why, "\n"), why);
}

static void give_up_by(struct link *link, const char *what)
{
	give_up(link, what, link->conn ? PQerrorMessage(link->conn) : "no memory");
}

/* ---- What the epoll is told ------------------------------------------------------ */

/* libpq closes its socket when it likes, and one that a child of the host's has, too, would
 * stay in the epoll for ever: so what is watched is a copy of ours. */
static void unwatch(struct link *link)
{
	if (link->watched < 0)
		return;
	(void)epoll_ctl(link->wire.watch.epoll_fd, EPOLL_CTL_DEL, link->watched, NULL);
	close(link->watched);
	link->watched = -1;
}

static bool watch(struct link *link, uint32_t events)
{
	struct epoll_event event = { .events = events };
	bool is_new = link->watched < 0;

	if (link->wire.watch.epoll_fd < 0 || (!is_new && events == link->events))
		return true;
	if (is_new)
		link->watched = fcntl(PQsocket(link->conn), F_DUPFD_CLOEXEC, 0);
	link->events = events;
	return link->watched >= 0 && epoll_ctl(link->wire.watch.epoll_fd,
	                                       is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
	                                       link->watched, &event) == 0;
}

static void watch_or_give_up(struct link *link, uint32_t events)
{
	if (link->phase != BROKEN && !watch(link, events))
		give_up(link, "its socket cannot be watched", "");
}

/* ---- Greeting -------------------------------------------------------------------- */

static bool send_batch(struct link *link, const struct postgres_batch *batch)
{
	struct postgres_call call;

	return postgres_ask(batch, &link->asked, &call) &&
	       session_call(&link->session, link->conn, &call);
}

/* A job that changes nothing, for a generation that there is not: it says which there
 * is. */
static void greet(struct link *link)
{
	struct postgres_order order;
	const struct postgres_batch batch = { .generation = "", .order = &order };

	link->phase = GREETING;
	if (!send_batch(link, &batch))
		give_up_by(link, "cannot ask");
}

static void ask_whose(struct link *link)
{
	link->phase = ASKING;
	if (!session_ask(&link->session, link->conn))
		give_up_by(link, "cannot ask");
}

static void install(struct link *link)
{
	link->phase = INSTALLING;
	link->installed = true;
	link->missing = false;
	if (PQsendQuery(link->conn, postgres_schema) != 1)
		give_up_by(link, "cannot install its schema");
}

static uint64_t since_us(const char *generation)
{
	char digits[SECOND_DIGITS + 1] = { 0 };

	memcpy(digits, generation, SECOND_DIGITS);
	return (strtoull(digits, NULL, 16) + 1) * SECOND_US;
}

static void take_generation(struct link *link)
{
	if (strlen(link->generation) < SECOND_DIGITS)
		give_up(link, "its generation is none of ours", "");
	else
		link->wire.since_us = since_us(link->generation);
}

static void hear_greeting(struct link *link, const PGresult *result)
{
	const struct postgres_batch batch = { .generation = "" };
	enum postgres_result meaning = postgres_told(result, &batch, &link->answered,
	                                             link->told, link->generation);

	switch (meaning) {
	case POSTGRES_OTHER_GENERATION:
		take_generation(link);
		break;
	case POSTGRES_MISSING:
	case POSTGRES_OLDER:
		link->missing = true;
		if (link->installed)
			give_up(link, "its schema cannot be installed", "");
		break;
	case POSTGRES_NEWER:
		give_up(link, "its schema is newer than this gale", "");
		break;
	case POSTGRES_READ_ONLY:
		give_up(link, "it is read-only", "");
		break;
	default:
		give_up_by(link, "it does not answer as it should");
	}
}

static void hear_installed(struct link *link, const PGresult *result)
{
	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		give_up(link, "its schema cannot be installed",
		        PQresultErrorMessage(result));
}

static void enter(struct link *link)
{
	link->phase = READY;
	link->attempts = 0;
}

/* The statement has ended: no more results come of it. */
static void end_greeting(struct link *link)
{
	if (link->phase == ASKING || link->phase == INSTALLING)
		greet(link);
	else if (link->phase == GREETING && link->missing)
		install(link);
	else if (link->phase == GREETING && PQenterPipelineMode(link->conn) == 1)
		enter(link);
	else
		give_up_by(link, "no pipeline");
}

static void hear_greetings(struct link *link)
{
	while (link->phase == ASKING || link->phase == GREETING ||
	       link->phase == INSTALLING) {
		PGresult *result;

		if (PQisBusy(link->conn))
			return;
		result = PQgetResult(link->conn);
		if (!result)
			end_greeting(link);
		else if (link->phase == ASKING)
			session_hear(&link->session, result);
		else if (link->phase == GREETING)
			hear_greeting(link, result);
		else
			hear_installed(link, result);
		PQclear(result);
	}
}

/* ---- Batches --------------------------------------------------------------------- */

static struct postgres_batch batch_of(const struct link *link,
                                      const struct remote_batch *batch,
                                      struct postgres_order *order)
{
	return (struct postgres_batch){
		.jobs = batch->jobs,
		.count = batch->count,
		.generation = link->generation,
		.nonce = batch->nonce,
		.order = order,
		.now_us = batch->guess_us,
		.takes_first = link->unguessed == 0,
	};
}

/* If it was wrong the server has put keys in for nothing, and others may have waited for that.
 * So a link that guesses wrong again does not guess for twice as long; batches that were sent
 * before that was known do not count. */
static void note_guess(struct link *link, bool was_right)
{
	if (was_right) {
		link->wrong = 0;
	} else if (link->unguessed == 0) {
		link->unguessed = 1U << link->wrong;
		link->wrong += link->wrong < WRONG_MOST;
	}
}

static enum wire_reply_kind kind_of(enum postgres_result meaning)
{
	switch (meaning) {
	case POSTGRES_TOLD:
		return WIRE_TOLD;
	case POSTGRES_OTHER_GENERATION:
	case POSTGRES_DEADLOCK:
	case POSTGRES_UNNAMED:
		return WIRE_AGAIN; /* POSTGRES-2 */
	case POSTGRES_TIMED_OUT:
		return WIRE_NOT_NOW; /* it may be one job's row that somebody has locked */
	case POSTGRES_WRONG:
	case POSTGRES_NO_MEMORY:
		return WIRE_WRONG;
	default:
		return WIRE_LATER; /* POSTGRES-2: it has changed nothing */
	}
}

static void hear_batch(struct link *link, struct awaited *awaited,
                       const PGresult *result)
{
	const struct remote_batch *batch = &awaited->batch;
	struct postgres_batch asked = batch_of(link, batch, &awaited->order);
	struct wire_reply said = { .nonce = batch->nonce,
		                   .told = link->told,
		                   .count = batch->count };
	char instead[REMOTE_GENERATION_BYTES + 1];
	enum postgres_result meaning =
	    postgres_told(result, &asked, &link->answered, link->told, instead);

	if (meaning == POSTGRES_LOST) {
		give_up(link, "an answer is lost", PQresultErrorMessage(result));
		return;
	}
	said.kind = kind_of(meaning);
	if (awaited->order.is_first)
		note_guess(link, meaning == POSTGRES_TOLD && awaited->order.were_first);
	if (meaning == POSTGRES_OTHER_GENERATION) {
		strcpy(link->generation, instead);
		take_generation(link);
	} else if (meaning == POSTGRES_UNNAMED) {
		session_lose(&link->session);
	} else if (said.kind == WIRE_LATER || said.kind == WIRE_WRONG) {
		give_up(link, "a statement failed", PQresultErrorMessage(result));
	}
	link->wire.home->on_reply(link->wire.home, &said);
}

static void forget_result(struct link *link)
{
	PQclear(link->result);
	link->result = NULL;
}

/* It was committed, or had failed before. */
static void hear_sync(struct link *link, struct awaited *awaited)
{
	if (awaited->is_name)
		session_hear_name(&link->session, link->result);
	else if (link->result && awaited->batch.count > 0)
		hear_batch(link, awaited, link->result);
	else if (!link->result && !awaited->is_over)
		give_up(link, "no result", "");
	forget_result(link);
	link->heard++; /* POSTGRES-1 */
}

/* After a result it was the commit that failed. */
static void hear_error(struct link *link, struct awaited *awaited,
                       const PGresult *result)
{
	bool was_done = link->result != NULL;

	forget_result(link);
	awaited->is_over = true;
	/* POSTGRES-2 */
	if (was_done && postgres_error(PQresultErrorField(result, PG_DIAG_SQLSTATE)) !=
	                    POSTGRES_DEADLOCK)
		give_up(link, "not committed", PQresultErrorMessage(result));
	else if (awaited->batch.count > 0)
		hear_batch(link, awaited, result);
}

/* True if the result is kept. */
static bool hear_result(struct link *link, PGresult *result)
{
	struct awaited *awaited = &link->awaited[link->heard % AWAITED_MOST];

	if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
		hear_sync(link, awaited);
	else if (awaited->is_over)
		give_up(link, "a result too many", "");
	else if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		hear_error(link, awaited, result);
	else if (link->result)
		give_up(link, "a result too many", "");
	else
		link->result = result;
	return link->result == result;
}

/* A statement's results end with a NULL, and so does all that has come.  PQisBusy throws away
 * the server's remarks while nothing is asked. */
static void hear_results(struct link *link)
{
	bool ended = false;

	while (link->phase == READY && !PQisBusy(link->conn) &&
	       link->heard < link->sent) {
		PGresult *result = PQgetResult(link->conn);

		if (!result && ended)
			return;
		ended = !result;
		if (result && !hear_result(link, result))
			PQclear(result);
	}
}

/* ---- A wire ---------------------------------------------------------------------- */

static void link_hang_up(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	unwatch(link);
	forget_result(link);
	PQfinish(link->conn);
	link->conn = NULL;
	link->heard = link->sent;
	link->phase = BROKEN;
}

/* libpq would write what the server remarks to stderr, which is the host's. */
static void keep_quiet(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

/* A host that does not answer takes all the time that there is: the next attempt begins with
 * the one behind it. */
static bool find_places(struct link *link, struct postgres_places *ret_places)
{
	postgres_hosts_list(&link->kind->hosts, link->attempts++, ret_places);
	return ret_places->count > 0 || link->kind->hosts.url.host_count == 0;
}

static PGconn *start(const struct link *link, const struct postgres_places *places)
{
	const char *names[] = { "dbname", "fallback_application_name",
		                "host",   "hostaddr",
		                "port",   NULL };
	const char *values[] = { link->kind->url,   "gale",        places->hosts,
		                 places->addresses, places->ports, NULL };

	if (places->count == 0)
		names[2] = NULL;
	return PQconnectStartParams(names, values, /* expand_dbname= */ 1);
}

static void link_connect(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;
	struct postgres_places places;

	link_hang_up(wire);
	if (link->connected)
		postgres_hosts_look_again(&link->kind->hosts, now);
	link->connected = true;
	link->phase = CONNECTING;
	link->wire.waits_for = "the server does not answer";
	link->installed = link->missing = link->listens = false;
	link->received = link->read = 0;
	if (!find_places(link, &places)) {
		give_up(link, "no address is known of its host", "");
		return;
	}
	link->conn = start(link, &places);
	if (!link->conn || PQstatus(link->conn) == CONNECTION_BAD) {
		give_up_by(link, "cannot connect");
		return;
	}
	(void)PQsetNoticeProcessor(link->conn, keep_quiet, NULL);
	watch_or_give_up(link, EPOLLOUT);
}

/* How many bytes have come, as the kernel says; false if it does not count them. */
static bool ask_kernel(const struct link *link, uint64_t *ret_bytes)
{
	struct tcp_info info = { 0 };
	socklen_t count = sizeof(info);

	if (getsockopt(PQsocket(link->conn), IPPROTO_TCP, TCP_INFO, &info, &count) != 0)
		return false;
	*ret_bytes = info.tcpi_bytes_received;
	return true;
}

static void go_on_connecting(struct link *link)
{
	uint64_t ignored;

	unwatch(link); /* it may close its socket, and open another */
	switch (PQconnectPoll(link->conn)) {
	case PGRES_POLLING_READING:
		watch_or_give_up(link, EPOLLIN);
		break;
	case PGRES_POLLING_WRITING:
		watch_or_give_up(link, EPOLLOUT);
		break;
	case PGRES_POLLING_OK:
		link->is_local = !ask_kernel(link, &ignored);
		if (PQsetnonblocking(link->conn, 1) == 0)
			ask_whose(link);
		else
			give_up_by(link, "cannot connect");
		break;
	default:
		give_up_by(link, "cannot connect");
	}
}

static void flush(struct link *link)
{
	int left = PQflush(link->conn);

	if (left < 0)
		give_up_by(link, "the connection is over");
	else
		watch_or_give_up(link, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void end_statement(struct link *link, const struct remote_batch *batch,
                          bool is_name)
{
	struct awaited *awaited = &link->awaited[link->sent++ % AWAITED_MOST];

	awaited->batch = *batch;
	awaited->is_name = is_name;
	awaited->is_over = false;
	if (PQpipelineSync(link->conn) != 1)
		give_up_by(link, "cannot send"); /* it is not known how much has gone */
}

/* Keys that have expired are dropped now and then, by each node that asks: a few each time. */
static void sweep(struct link *link, mono now)
{
	const struct remote_batch nothing = { .count = 0 };
	const char *most = SWEEP_KEYS;

	if (link->phase != READY || !mono_reached(now, link->sweep_due) ||
	    link->sent == link->heard || link->sent - link->heard == AWAITED_MOST)
		return;
	link->sweep_due = mono_after(now, SWEEP_PAUSE_NS);
	if (PQsendQueryParams(link->conn, POSTGRES_SWEEP, 1, NULL, &most, NULL, NULL,
	                      POSTGRES_BINARY) == 1)
		end_statement(link, &nothing, /* is_name= */ false);
	else
		give_up_by(link, "cannot send");
}

/* A session that is a pool's would be another's next.  A user who may not listen goes without. */
static void ask_for_nudges(struct link *link)
{
	const struct remote_batch nothing = { .count = 0 };

	if (!link->wire.hears || link->listens || link->phase != READY ||
	    !link->session.is_ours || link->sent - link->heard == AWAITED_MOST)
		return;
	link->listens = true;
	if (PQsendQueryParams(link->conn, "LISTEN " POSTGRES_CHANNEL, 0, NULL, NULL,
	                      NULL, NULL, POSTGRES_BINARY) == 1)
		end_statement(link, &nothing, /* is_name= */ false);
	else
		give_up_by(link, "cannot send");
}

/* The next statement, if it is one that has no name yet and may have one. */
static void name(struct link *link)
{
	const struct remote_batch nothing = { .count = 0 };

	if (link->phase != READY || link->sent - link->heard == AWAITED_MOST ||
	    !session_is_to_name(&link->session))
		return;
	if (session_name(&link->session, link->conn))
		end_statement(link, &nothing, /* is_name= */ true);
	else
		give_up_by(link, "cannot send");
}

/* ---- Too much -------------------------------------------------------------------- */

/* Before libpq reads. */
static void count_waiting(struct link *link)
{
	int waiting = 0;

	if (link->is_local && ioctl(PQsocket(link->conn), FIONREAD, &waiting) == 0)
		link->read += (uint64_t)(waiting < READ_BYTES ? waiting : READ_BYTES);
}

/* Bytes that have come on this connection. */
static uint64_t received(const struct link *link)
{
	uint64_t bytes = link->read;

	if (!link->is_local)
		(void)ask_kernel(link, &bytes);
	return bytes;
}

/* Nudges that were published since; libpq keeps them no longer. */
static void hear_nudges(struct link *link)
{
	struct store_nudge nudge;
	PGnotify *said;

	while (link->phase == READY && (said = PQnotifies(link->conn))) {
		if (link->wire.home->on_nudge &&
		    strcmp(said->relname, POSTGRES_CHANNEL) == 0 &&
		    postgres_read_nudge(said->extra, &nudge))
			link->wire.home->on_nudge(link->wire.home, &nudge);
		PQfreemem(said);
		link->received = received(link);
	}
}

/* What may come of all that is under way. */
static uint64_t may_come(const struct link *link)
{
	uint64_t bytes = IDLE_BYTES;

	for (uint64_t i = link->heard; i < link->sent; i++) {
		const struct awaited *awaited = &link->awaited[i % AWAITED_MOST];
		size_t jobs = awaited->is_over ? 0 : awaited->batch.count;

		for (size_t job = 0; job < jobs; job++)
			bytes += awaited->batch.jobs[job].verb == REMOTE_READ
			             ? LOG_BYTES
			             : JOB_BYTES;
	}
	return bytes;
}

/* libpq keeps what it has been told until it is asked for. */
static void bear(struct link *link, uint64_t heard_before)
{
	uint64_t now;

	if (link->phase == BROKEN)
		return;
	now = received(link);
	if (link->heard != heard_before)
		link->received = now;
	else if (now - link->received > IDLE_BYTES &&
	         now - link->received > may_come(link))
		give_up(link, "it says more than it was asked", "");
}

static enum wire_state link_flush(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	if (link->phase != BROKEN && link->phase != CONNECTING)
		flush(link);
	if (link->phase == BROKEN)
		return WIRE_BROKEN;
	return link->phase == READY ? WIRE_READY : WIRE_OPENING;
}

static enum wire_state link_turn(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;
	uint64_t heard = link->heard;

	if (link->phase == CONNECTING)
		go_on_connecting(link);
	if (link->phase != BROKEN && link->phase != CONNECTING) {
		sweep(link, now); /* first: while an answer is waited for */
		count_waiting(link);
		if (PQconsumeInput(link->conn) != 1)
			give_up_by(link, "the connection is over");
		hear_greetings(link);
		hear_results(link);
		hear_nudges(link);
		ask_for_nudges(link);
		name(link);
		bear(link, heard);
	}
	return link_flush(wire);
}

static bool link_send(struct wire *wire, const struct remote_batch *batch)
{
	struct link *link = (struct link *)wire;
	struct postgres_order *order = &link->awaited[link->sent % AWAITED_MOST].order;
	struct postgres_batch asked = batch_of(link, batch, order);

	if (link->sent - link->heard >= AWAITED_MOST - 1 || !send_batch(link, &asked))
		return false;
	link->unguessed -= link->unguessed > 0;
	end_statement(link, batch, /* is_name= */ false);
	return true;
}

static void link_free(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	link_hang_up(wire);
	postgres_room_close(&link->asked);
	postgres_room_close(&link->answered);
	memory_give(link->kind->allocator, link, sizeof(*link));
}

static const struct wire_ops link_ops = {
	.connect = link_connect,
	.turn = link_turn,
	.send = link_send,
	.flush = link_flush,
	.hang_up = link_hang_up,
	.free = link_free,
};

static struct wire *link_new(struct server_kind *self, struct watch watch)
{
	struct kind *kind = (struct kind *)self;
	struct link *link = memory_take(kind->allocator, sizeof(*link));

	if (!link)
		return NULL;
	link->wire.ops = &link_ops;
	link->wire.watch = watch;
	link->kind = kind;
	link->phase = BROKEN;
	link->watched = -1;
	link->asked.allocator = link->answered.allocator = kind->allocator;
	return &link->wire;
}

/* ---- URLs ------------------------------------------------------------------------ */

static void kind_free(struct server_kind *self)
{
	struct kind *kind = (struct kind *)self;

	postgres_hosts_close(&kind->hosts);
	memory_give(kind->allocator, kind, sizeof(*kind));
}

struct server_kind *postgres_kind(struct gale_allocator *allocator, const char *url,
                                  struct url_fault *ret_fault)
{
	struct kind *kind = memory_take(allocator, sizeof(*kind));

	*ret_fault = (struct url_fault){ .err = GALE_ERR_MEMORY };
	if (!kind)
		return NULL;
	kind->is.wire = link_new;
	kind->is.free = kind_free;
	kind->is.lends_ahead = true;
	kind->allocator = allocator;
	if (postgres_hosts_open(&kind->hosts, url, ret_fault)) {
		strcpy(kind->url, url);
		return &kind->is;
	}
	memory_give(allocator, kind, sizeof(*kind));
	return NULL;
}

static bool check(const char *url, struct url_fault *ret_fault)
{
	struct postgres_hosts ignored;

	return postgres_hosts_read(&ignored, url, ret_fault);
}

const struct store_part postgres_part = { .check = check, .kind = postgres_kind };
