/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ear.h -- a second connection to the server that a link beats at: what is published there.
 *
 *     the link is connected -> connect -> AUTH -> the link beats -> SUBSCRIBE -> messages
 *                                 ^                                                 |
 *                                 '----------------- after a while -----------------'
 *
 * Messages go to the wire's home, on_nudge.  Nudges that were published before it subscribed
 * are missed; so members that lack slots are nudged then.
 *
 * A connection that subscribes may ask nothing else, so it is another than the link's.  Nudges are
 * hints (GROUP-12): a server that does not let it subscribe is not asked again on that
 * connection of the link's, and that is not logged; nothing waits for an ear.
 *
 * A network may drop a connection on which nothing is said.  So it subscribes now and then to a
 * channel without publishers, and connects anew if nothing was heard meanwhile.
 *
 * Threads   Its link's.
 */
#ifndef STORES_REDIS_EAR_H
#define STORES_REDIS_EAR_H

#include "engine/clock.h"
#include "stores/redis/reply.h"
#include "stores/redis/site.h"
#include "stores/wire.h"

struct redis_ear {
	struct redis_site *site;
	struct wire *wire;           /* whose home is told */
	struct stream_address where; /* the link's server */
	struct stream stream;
	struct redis_text out;
	struct redis_intake intake;
	uint64_t wanted[REDIS_CHANNELS / 64]; /* channels; none: it does not connect */
	uint64_t asked[REDIS_CHANNELS / 64];  /* of them, on this connection */
	bool greeted;
	uint32_t nods; /* replies to come, before those to SUBSCRIBE */
	bool heard;    /* something, since it asked last whether it is heard */
	bool refused;  /* it may not subscribe there */
	mono due;      /* to connect, or to ask that again */
};

/* The wire is the link's, and has its watch already. */
void redis_ear_open(struct redis_ear *ear, struct redis_site *site, struct wire *wire);
void redis_ear_close(struct redis_ear *ear);

/* The link connects there, and begins anew. */
void redis_ear_move(struct redis_ear *ear, const struct stream_address *where);
void redis_ear_hang_up(struct redis_ear *ear);
/* From now on it hears the channel of that mark. */
void redis_ear_listen(struct redis_ear *ear, uint64_t mark);
/* While the link is connected. */
void redis_ear_turn(struct redis_ear *ear, mono now);
/* Only says what it has to, and hears nothing. */
void redis_ear_flush(struct redis_ear *ear);

#endif
