/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tls.h -- TLS below a stream, by a library that is loaded when a URL asks for it.
 *
 *     tls_open -> libgale-tls.so -> a context, one for each store -> a session, one for each stream
 *
 * Only stores/tls/openssl.c, which that library is made of, includes OpenSSL.  libgale needs
 * neither to be linked with it nor to have it (spec/decisions/0027).
 *
 * Invariants
 *
 *   TLS-1  No byte of a stream is sent or read before the certificate of the other end was
 *          verified: its chain, its dates, and the name of the host.  No option turns that off.
 *   TLS-2  A read returns fewer bytes than there is room for only when nothing more has
 *          come.  has_more is true when more bytes lie in the session, of which no epoll tells.
 *
 * Threads   tls_open, tls_close: one, before and after all others.  Sessions: any, at once;
 *           each one at a time, its stream's owner.
 * Limits    OpenSSL has its memory from malloc, and not from the allocator of the host.
 */
#ifndef STORES_TLS_H
#define STORES_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/url.h"

#define TLS_NAME_MOST 255
#define TLS_TEXT 160    /* of what is wrong, at most */
#define TLS_INTERFACE 1 /* grows when anything below changes */

/* NULL: not given. */
struct tls_config {
	const char *ca; /* file of those that are trusted; else those of the system */
	const char
	    *cert; /* file of the client's certificate, and of those up to a CA's */
	const char *key; /* file of its key */
	const char
	    *name; /* that the server's certificate has to have; else the host's */
};

enum tls_state {
	TLS_SHAKING, /* hands */
	TLS_OPEN,
	TLS_OVER,
};

struct tls_context;
struct tls_session;

/* What libgale-tls.so exports as gale_tls. */
struct tls_ops {
	uint32_t interface; /* first: TLS_INTERFACE of its build */

	/* Reads the files.  NULL: why says what is wrong. */
	struct tls_context *(*context_new)(const struct tls_config *config,
	                                   char why[TLS_TEXT]);
	void (*context_free)(struct tls_context *context);

	/* On a socket that does not block; host: its name, or its address.  NULL: no memory. */
	struct tls_session *(*session_new)(struct tls_context *context, int fd,
	                                   const char *host);
	/* The socket stays open. */
	void (*session_free)(struct tls_session *session);

	/* Once the socket is connected, until it is open or over. */
	enum tls_state (*shake)(struct tls_session *session);
	/* As stream_send and stream_read, of one that is open. */
	ptrdiff_t (*send)(struct tls_session *session, const uint8_t *bytes,
	                  size_t count);
	ptrdiff_t (*read)(struct tls_session *session, uint8_t *bytes, size_t most);
	/* Goes on only when the socket takes bytes. */
	bool (*wants_out)(const struct tls_session *session);
	bool (*has_more)(const struct tls_session *session);
	/* Of one that is over; "": the other end has closed it. */
	const char *(*why)(const struct tls_session *session);
};

struct tls {
	const struct tls_ops *ops;
	struct tls_context *context;
};

/* False: *ret_fault is set, to GALE_ERR_TLS. */
bool tls_open(struct tls *tls, const struct tls_config *config,
              struct url_fault *ret_fault);
void tls_close(struct tls *tls);

#endif
