/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * openssl.c -- stores/tls.h by OpenSSL 3: all of libgale-tls.so.
 *
 *     stream.c <-> SSL <-> a BIO of our own <-> send, recv
 *
 * OpenSSL's own BIO for sockets writes without MSG_NOSIGNAL, and the host would have a SIGPIPE.
 * TLS 1.2 is the least, or what the host's openssl.cnf has above it; nothing is negotiated again,
 * so that a send never waits for a read: a server of TLS 1.2 that insists on it ends the session, and
 * another one is made.
 * OpenSSL is set up without its handler of exit: a host may exit while other threads are in here.
 *
 * Threads   As tls.h says: a context is not changed once it is made.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "stores/tls.h"

struct tls_context {
	SSL_CTX *ctx;
	BIO_METHOD *method;
	char name[TLS_NAME_MOST + 1]; /* "": the host's */
};

struct tls_session {
	SSL *ssl;
	int fd;
	int error; /* errno of the last call that failed; 0: the other end has closed */
	int hung_up; /* as of a stream: errno of a send after that, or 0 */
	bool is_open;
	bool is_over;
	bool send_wants_out;
	bool read_wants_out;
	bool has_more;
	char name[TLS_NAME_MOST + 1]; /* that the certificate has to have */
	char why[TLS_TEXT];
};

/* ---- The socket ------------------------------------------------------------------ */

static bool would_block(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static bool has_hung_up(int error)
{
	return error == 0 || error == EPIPE || error == ECONNRESET;
}

/* What send and recv have said; bits: of BIO_FLAGS_*, if it goes on later. */
static int say(BIO *bio, ssize_t count, int bits)
{
	struct tls_session *session = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	session->error = count < 0 ? errno : session->hung_up;
	if (count < 0 && would_block(errno))
		BIO_set_flags(bio, bits | BIO_FLAGS_SHOULD_RETRY);
	return (int)count;
}

/* A server that refuses a session says why, and closes.  That is read only if OpenSSL does not
 * hear of the end before, by a write. */
static int socket_write(BIO *bio, const char *bytes, int count)
{
	struct tls_session *session = BIO_get_data(bio);
	ssize_t sent = send(session->fd, bytes, (size_t)count, MSG_NOSIGNAL);

	if (sent < 0 && has_hung_up(errno)) {
		session->hung_up = session->hung_up ? session->hung_up : errno;
		sent = count;
	}
	return say(bio, sent, BIO_FLAGS_WRITE);
}

static int socket_read(BIO *bio, char *bytes, int most)
{
	const struct tls_session *session = BIO_get_data(bio);

	return say(bio, recv(session->fd, bytes, (size_t)most, 0), BIO_FLAGS_READ);
}

/* Nothing lies in it that would have to be flushed. */
static long socket_control(BIO *bio, int what, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method_new(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "gale");

	if (method && BIO_meth_set_write(method, socket_write) &&
	    BIO_meth_set_read(method, socket_read) &&
	    BIO_meth_set_ctrl(method, socket_control))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* ---- Contexts -------------------------------------------------------------------- */

/* The first of those that are noted: the others say only which callers have met it. */
static const char *first_reason(void)
{
	unsigned long error = ERR_peek_error();
	const char *reason = ERR_reason_error_string(error);

	if (ERR_SYSTEM_ERROR(error))
		return strerror(ERR_GET_REASON(error));
	return reason ? reason : "no reason is given";
}

static bool refuse(char why[TLS_TEXT], const char *option, const char *what)
{
	snprintf(why, TLS_TEXT, "option %s: %s: %s", option, what, first_reason());
	return false;
}

static bool trust(SSL_CTX *ctx, const struct tls_config *config, char why[TLS_TEXT])
{
	if (!config->ca)
		return SSL_CTX_set_default_verify_paths(ctx) == 1;
	return SSL_CTX_load_verify_file(ctx, config->ca) == 1 ||
	       refuse(why, "ca", "no certificate can be read from the file");
}

static bool show(SSL_CTX *ctx, const struct tls_config *config, char why[TLS_TEXT])
{
	if (!config->cert)
		return true;
	if (SSL_CTX_use_certificate_chain_file(ctx, config->cert) != 1)
		return refuse(why, "cert", "no certificate can be read from the file");
	if (SSL_CTX_use_PrivateKey_file(ctx, config->key, SSL_FILETYPE_PEM) != 1)
		return refuse(why, "key", "the file has no key of the certificate");
	return true;
}

/* A key that is locked by a password: none is asked for. */
static int no_password(char *out, int room, int writes, void *self)
{
	(void)out;
	(void)room;
	(void)writes;
	(void)self;
	return -1;
}

/* The host's openssl.cnf may have a later one, which stays. */
static bool need_version(SSL_CTX *ctx)
{
	return SSL_CTX_get_min_proto_version(ctx) >= TLS1_2_VERSION ||
	       SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1;
}

static bool set_up(struct tls_context *context, const struct tls_config *config,
                   char why[TLS_TEXT])
{
	SSL_CTX *ctx = context->ctx;

	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); /* TLS-1 */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
	                          SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	return need_version(ctx) && trust(ctx, config, why) && show(ctx, config, why);
}

static void context_free(struct tls_context *context)
{
	SSL_CTX_free(context->ctx);
	BIO_meth_free(context->method);
	free(context);
}

static struct tls_context *context_new(const struct tls_config *config,
                                       char why[TLS_TEXT])
{
	struct tls_context *context = calloc(1, sizeof(*context));

	snprintf(why, TLS_TEXT, "TLS could not be set up");
	if (!context)
		return NULL;
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	ERR_clear_error();
	snprintf(context->name, sizeof(context->name), "%s",
	         config->name ? config->name : "");
	context->method = method_new();
	context->ctx = SSL_CTX_new(TLS_client_method());
	if (context->method && context->ctx && set_up(context, config, why))
		return context;
	ERR_clear_error();
	context_free(context);
	return NULL;
}

/* ---- Sessions -------------------------------------------------------------------- */

static bool is_address(const char *name)
{
	struct in6_addr ignored;

	return inet_pton(AF_INET, name, &ignored) == 1 ||
	       inet_pton(AF_INET6, name, &ignored) == 1;
}

/* Servers are told the names of hosts, and no addresses (RFC 6066).  OpenSSL takes an empty name
 * for any, and one that begins with a dot for all below it. */
static bool expect(SSL *ssl, const char *name)
{
	if (name[0] == '\0' || name[0] == '.')
		return false;
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 &&
	       SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool have_socket(const struct tls_context *context, struct tls_session *session)
{
	BIO *bio = BIO_new(context->method);

	if (!bio)
		return false;
	BIO_set_data(bio, session);
	BIO_set_init(bio, 1);
	SSL_set_bio(session->ssl, bio, bio); /* which is its own from now on */
	return true;
}

static void session_free(struct tls_session *session)
{
	SSL_free(session->ssl);
	free(session);
}

static struct tls_session *session_new(struct tls_context *context, int fd,
                                       const char *host)
{
	struct tls_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->fd = fd;
	snprintf(session->name, sizeof(session->name), "%s",
	         context->name[0] ? context->name : host);
	session->ssl = SSL_new(context->ctx);
	if (session->ssl && have_socket(context, session) &&
	    expect(session->ssl, session->name)) {
		SSL_set_connect_state(session->ssl);
		return session;
	}
	ERR_clear_error();
	session_free(session);
	return NULL;
}

/* ---- Why ------------------------------------------------------------------------- */

static void note_certificate(struct tls_session *session, long fault)
{
	const char *says = X509_verify_cert_error_string(fault);

	switch (fault) {
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		snprintf(session->why, TLS_TEXT,
		         "the server's certificate is not of %.60s; servername= names "
		         "another",
		         session->name);
		break;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		snprintf(session->why, TLS_TEXT,
		         "the server's certificate, or its CA's, has expired");
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		snprintf(session->why, TLS_TEXT,
		         "the server's certificate is of no CA that is trusted; ca= "
		         "names the file of one");
		break;
	default:
		snprintf(session->why, TLS_TEXT, "the server's certificate: %.100s",
		         says);
	}
}

static void note_reason(struct tls_session *session)
{
	int reason = ERR_GET_REASON(ERR_peek_error());
	bool is_refused = reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE;

	if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
		snprintf(session->why, TLS_TEXT,
		         "the server does not answer in TLS; its port may be one "
		         "without TLS");
	else if (is_refused && session->is_open)
		snprintf(
		    session->why, TLS_TEXT,
		    "the server wants to negotiate TLS again, which gale does not: "
		    "turn that off at the server, or let it use TLS 1.3");
	else if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
	         (is_refused && !SSL_get_certificate(session->ssl)))
		snprintf(session->why, TLS_TEXT,
		         "the server wants a certificate of the client; cert= and key= "
		         "name one");
	else
		snprintf(session->why, TLS_TEXT, "TLS: %.100s", first_reason());
}

static void note_why(struct tls_session *session, int error)
{
	long fault = SSL_get_verify_result(session->ssl);

	session->is_over = true;
	if (fault != X509_V_OK)
		note_certificate(session, fault);
	else if (error == SSL_ERROR_SSL)
		note_reason(session);
	else if (!SSL_is_init_finished(session->ssl) &&
	         (error != SSL_ERROR_SYSCALL || has_hung_up(session->error)))
		snprintf(session->why, TLS_TEXT,
		         "the server has hung up before TLS was agreed on");
	else if (error == SSL_ERROR_SYSCALL && session->error != 0)
		snprintf(session->why, TLS_TEXT, "%.100s", strerror(session->error));
}

/* After a call that did not succeed: does it later?  Else notes why. */
static bool goes_on(struct tls_session *session, int result, bool *wants_out)
{
	int error = SSL_get_error(session->ssl, result);

	*wants_out = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return true;
	note_why(session, error);
	ERR_clear_error();
	return false;
}

static const char *why(const struct tls_session *session)
{
	return session->why;
}

/* ---- Bytes ----------------------------------------------------------------------- */

/* With an anonymous cipher, which a host's openssl.cnf may offer, a server shows no certificate,
 * and OpenSSL verifies none.  TLS-1 */
static enum tls_state open_if_verified(struct tls_session *session)
{
	session->send_wants_out = false;
	if (SSL_get0_peer_certificate(session->ssl) &&
	    SSL_get_verify_result(session->ssl) == X509_V_OK) {
		session->is_open = true;
		return TLS_OPEN;
	}
	session->is_over = true;
	snprintf(session->why, TLS_TEXT, "the server has shown no certificate");
	return TLS_OVER;
}

static enum tls_state shake(struct tls_session *session)
{
	int result;

	if (session->is_over)
		return TLS_OVER;
	ERR_clear_error();
	result = SSL_do_handshake(session->ssl);
	if (result == 1)
		return open_if_verified(session);
	return goes_on(session, result, &session->send_wants_out) ? TLS_SHAKING
	                                                          : TLS_OVER;
}

/* Bytes that could not go are the beginning of what is sent next, as SSL_write wants it. */
static ptrdiff_t send_bytes(struct tls_session *session, const uint8_t *bytes,
                            size_t count)
{
	size_t sum = 0, sent;
	int result = 1;

	if (session->is_over)
		return -1;
	ERR_clear_error();
	while (sum < count && result == 1) {
		result = SSL_write_ex(session->ssl, bytes + sum, count - sum, &sent);
		sum += result == 1 ? sent : 0;
	}
	session->send_wants_out = false;
	if (result != 1 && !goes_on(session, result, &session->send_wants_out))
		return -1;
	return (ptrdiff_t)sum;
}

/* An end after some bytes is told by the next read, which has_more asks for: no epoll tells of
 * bytes that were taken already.  TLS-2 */
static ptrdiff_t read_bytes(struct tls_session *session, uint8_t *bytes, size_t most)
{
	size_t sum = 0, count;
	int result = 1;

	session->has_more = false;
	if (session->is_over)
		return -1;
	ERR_clear_error();
	while (sum < most && result == 1) {
		result = SSL_read_ex(session->ssl, bytes + sum, most - sum, &count);
		sum += result == 1 ? count : 0;
	}
	session->read_wants_out = false;
	if (result == 1)
		session->has_more = SSL_has_pending(session->ssl);
	else if (!goes_on(session, result, &session->read_wants_out))
		session->has_more = true;
	return session->is_over && sum == 0 ? -1 : (ptrdiff_t)sum;
}

static bool wants_out(const struct tls_session *session)
{
	return session->send_wants_out || session->read_wants_out;
}

static bool has_more(const struct tls_session *session)
{
	return session->has_more;
}

extern const struct tls_ops gale_tls;

__attribute__((visibility("default"))) const struct tls_ops gale_tls = {
	.interface = TLS_INTERFACE,
	.context_new = context_new,
	.context_free = context_free,
	.session_new = session_new,
	.session_free = session_free,
	.shake = shake,
	.send = send_bytes,
	.read = read_bytes,
	.wants_out = wants_out,
	.has_more = has_more,
	.why = why,
};
