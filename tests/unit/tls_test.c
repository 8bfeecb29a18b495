/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tls_test.c -- a stream in TLS is as one without (stream_test.c): it never waits, its epoll
 * tells of all that comes, and its host has no signal.  What the host's openssl.cnf allows makes
 * no server trusted that is not, and what it forbids stays forbidden.
 *
 *     stream, this thread <--TCP on loopback--> OpenSSL's own server, a thread that waits
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/conf.h>
#include <openssl/ssl.h>

#include "runtime/atomic.h"
#include "stores/stream.h"
#include "tests/support/certificates.h"
#include "tests/support/must.h"
#include "tests/support/scratch.h"

#define PART 4096
#define MANY ((size_t)32 << 20) /* more than all buffers take */
#define UPDATES 64

static struct scene {
	char folder[64];
	struct certificate certificate;
	struct tls tls;
	SSL_CTX *ctx;
	int listener, epoll_fd, fd;
	struct stream stream;
	SSL *other; /* end of it */
	pthread_t thread;
	void (*serves)(SSL *ssl);
	_Atomic bool is_full; /* there was no room any more */
} s;

/* ---- The scene ------------------------------------------------------------------- */

static void *serve(void *arg)
{
	(void)arg;
	s.fd = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	must(s.fd >= 0);
	s.other = SSL_new(s.ctx);
	must(s.other && SSL_set_fd(s.other, s.fd) == 1);
	if (SSL_accept(s.other) == 1)
		s.serves(s.other);
	SSL_free(s.other);
	close(s.fd);
	return NULL;
}

static void open_server(void)
{
	const struct certificate_plan plan = { .folder = s.folder,
		                               .name = "server",
		                               .names = "IP:127.0.0.1",
		                               .to_days = 1 };

	certificate_make(&s.certificate, &plan);
	s.ctx = SSL_CTX_new(TLS_server_method());
	must(s.ctx && SSL_CTX_use_certificate(s.ctx, s.certificate.is) == 1 &&
	     SSL_CTX_use_PrivateKey(s.ctx, s.certificate.pair) == 1);
}

/* As if this were in the host's openssl.cnf, until policy_end. */
static void policy_begin(const char *lines)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/openssl.cnf", s.folder);
	file = fopen(path, "w");
	must(file != NULL);
	must(fprintf(file,
	             "openssl_conf = all\n[all]\nssl_conf = tls\n"
	             "[tls]\nsystem_default = policy\n[policy]\n%s\n",
	             lines) > 0);
	must(fclose(file) == 0);
	must(CONF_modules_load_file(path, NULL, 0) == 1);
	must(unlink(path) == 0);
}

static void policy_end(void)
{
	CONF_modules_unload(0);
}

static void open_client(void)
{
	struct tls_config config = { .ca = s.certificate.cert };
	struct url_fault fault;

	if (!tls_open(&s.tls, &config, &fault))
		print_error("%s\n", fault.text);
	must(s.tls.context != NULL);
	stream_init(&s.stream, (struct watch){ s.epoll_fd, false }, &s.tls);
}

/* One whose client has been made while its host had such a policy; NULL: its own. */
static int open_scene_under(const char *policy)
{
	signal(SIGPIPE, SIG_DFL); /* which ends the test */
	scratch_make(s.folder, sizeof(s.folder), "tls");
	open_server();
	s.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (policy)
		policy_begin(policy);
	open_client();
	if (policy)
		policy_end();
	return 0;
}

static int open_scene(void **state)
{
	(void)state;
	return open_scene_under(NULL);
}

static int open_lax_scene(void **state)
{
	(void)state;
	return open_scene_under("MinProtocol = TLSv1\nCipherString = ALL:@SECLEVEL=0");
}

static int open_strict_scene(void **state)
{
	(void)state;
	return open_scene_under("MinProtocol = TLSv1.3");
}

static int close_scene(void **state)
{
	(void)state;
	stream_close(&s.stream);
	tls_close(&s.tls);
	SSL_CTX_free(s.ctx);
	certificate_drop(&s.certificate);
	must(rmdir(s.folder) == 0 && close(s.epoll_fd) == 0);
	return 0;
}

static bool told(int ms)
{
	struct epoll_event event;

	return epoll_wait(s.epoll_fd, &event, 1, ms) > 0;
}

/* Turns it only when its epoll tells so, as a shard does. */
static enum stream_state shake_with(void (*serves)(SSL *ssl))
{
	struct stream_address address;
	struct sockaddr_in here = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t count = sizeof(here);

	s.serves = serves;
	s.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(s.listener, (struct sockaddr *)&here, sizeof(here)) == 0);
	must(listen(s.listener, 1) == 0);
	must(getsockname(s.listener, (struct sockaddr *)&here, &count) == 0);
	must(pthread_create(&s.thread, NULL, serve, NULL) == 0);
	must(stream_numeric("127.0.0.1", ntohs(here.sin_port), &address));
	must(stream_connect(&s.stream, &address));
	while (stream_turn(&s.stream) == STREAM_OPENING)
		must(told(-1));
	return stream_turn(&s.stream);
}

static void connect_to(void (*serves)(SSL *ssl))
{
	assert_int_equal(shake_with(serves), STREAM_OPEN);
	assert_string_equal(stream_why(&s.stream), "");
}

static void leave(void)
{
	must(pthread_join(s.thread, NULL) == 0);
	close(s.listener);
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void put_bytes(uint8_t *bytes, size_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = byte_at(from + i);
}

static bool are_bytes(const uint8_t *bytes, size_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != byte_at(from + i))
			return false;
	return true;
}

/* ---- Hearing --------------------------------------------------------------------- */

static void await_end(SSL *ssl)
{
	uint8_t byte;

	(void)SSL_read(ssl, &byte, 1);
}

static void say_a_record(SSL *ssl)
{
	uint8_t bytes[3 * PART];

	put_bytes(bytes, 0, sizeof(bytes));
	must(SSL_write(ssl, bytes, sizeof(bytes)) == sizeof(bytes));
	await_end(ssl);
}

/* A record is taken from the socket as a whole: no epoll would tell of the rest of it.  TLS-2 */
static void the_rest_of_a_record_is_told_of(void **state)
{
	uint8_t bytes[PART];
	ptrdiff_t count = 0;

	(void)state;
	connect_to(say_a_record);
	while ((count = stream_read(&s.stream, bytes, PART)) == 0)
		must(told(-1));
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(count, PART);
		assert_true(are_bytes(bytes, (i - 1) * PART, PART));
		assert_true(told(0));
		count = stream_read(&s.stream, bytes, PART);
	}
	assert_int_equal(count, PART);
	assert_int_equal(stream_read(&s.stream, bytes, PART), 0);
	assert_int_equal(stream_send(&s.stream, bytes, 0), 0);
	assert_false(told(0));
	stream_close(&s.stream);
	leave();
}

/* ---- Saying ---------------------------------------------------------------------- */

static void hear_late(SSL *ssl)
{
	static uint8_t bytes[MANY];
	size_t sum = 0;
	int count;

	must(poll(NULL, 0, 20) ==
	     0); /* there is no room any more, or there will be none */
	while (sum < MANY &&
	       (count = SSL_read(ssl, bytes + sum, (int)(MANY - sum))) > 0)
		sum += (size_t)count;
	must(sum == MANY && are_bytes(bytes, 0, MANY));
	must(SSL_write(ssl, "!", 1) == 1);
	await_end(ssl);
}

static void await_mark(void)
{
	uint8_t byte = 0;

	while (byte != '!') {
		ptrdiff_t count = stream_read(&s.stream, &byte, 1);

		must(count >= 0);
		must(count > 0 || told(-1));
	}
}

/* What is read meanwhile does not make it forget that it waits for room. */
static void what_has_no_room_goes_later(void **state)
{
	static uint8_t bytes[MANY];
	uint8_t byte;
	size_t sum = 0;

	(void)state;
	connect_to(hear_late);
	put_bytes(bytes, 0, MANY);
	while (sum < MANY) {
		ptrdiff_t sent = stream_send(&s.stream, bytes + sum, MANY - sum);

		must(sent >= 0);
		sum += (size_t)sent;
		if (sum < MANY)
			store_relaxed(&s.is_full, true);
		must(stream_read(&s.stream, &byte, 1) == 0);
		must(sum == MANY || told(-1));
	}
	await_mark();
	stream_close(&s.stream);
	leave();
}

static void renew_keys(SSL *ssl)
{
	uint8_t bytes[PART];
	size_t sum = 0;

	for (int i = 0; i < UPDATES; i++) {
		must(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
		must(SSL_write(ssl, ".", 1) == 1);
		for (size_t part = 0; part < PART;) {
			int count = SSL_read(ssl, bytes, (int)(PART - part));

			must(count > 0 && are_bytes(bytes, sum, (size_t)count));
			part += (size_t)count;
			sum += (size_t)count;
		}
	}
	must(SSL_write(ssl, "!", 1) == 1);
	await_end(ssl);
}

static void keys_are_renewed_under_load(void **state)
{
	static uint8_t bytes[UPDATES * PART];
	uint8_t byte;
	size_t sum = 0;

	(void)state;
	connect_to(renew_keys);
	put_bytes(bytes, 0, sizeof(bytes));
	while (sum < sizeof(bytes)) {
		ptrdiff_t sent =
		    stream_send(&s.stream, bytes + sum, sizeof(bytes) - sum);

		must(sent >= 0);
		sum += (size_t)sent;
		must(stream_read(&s.stream, &byte, 1) >= 0);
		must(sum == sizeof(bytes) || told(-1));
	}
	await_mark();
	stream_close(&s.stream);
	leave();
}

/* It asks for that, and takes no for an end. */
static void negotiate_again(SSL *ssl)
{
	uint8_t bytes[PART];

	must(SSL_read(ssl, bytes, PART) > 0);
	must(SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) == 1);
	while (SSL_read(ssl, bytes, PART) > 0)
		;
}

/* TLS 1.3 knows nothing like it. */
static void a_server_that_negotiates_again_is_left(void **state)
{
	static uint8_t bytes[PART];
	ptrdiff_t count = 0;

	(void)state;
	must(SSL_CTX_set_max_proto_version(s.ctx, TLS1_2_VERSION) == 1);
	connect_to(negotiate_again);
	while (count >= 0) {
		must(stream_send(&s.stream, bytes, PART) >= 0);
		count = stream_read(&s.stream, bytes, 1);
		must(count != 0 || told(-1));
	}
	assert_string_equal(stream_why(&s.stream),
	                    "the server wants to negotiate TLS again, which gale does "
	                    "not: turn that off at the server, or let it use TLS 1.3");
	stream_close(&s.stream);
	leave();
}

/* ---- Its end --------------------------------------------------------------------- */

static void hang_up(SSL *ssl)
{
	must(SSL_write(ssl, "!", 1) == 1);
	must(setsockopt(s.fd, SOL_SOCKET, SO_LINGER,
	                &(struct linger){ .l_onoff = 1, .l_linger = 0 },
	                sizeof(struct linger)) == 0);
}

static void is_over(const char *because)
{
	uint8_t byte;

	while (stream_read(&s.stream, &byte, 1) >= 0)
		must(told(-1));
	assert_string_equal(stream_why(&s.stream), because);
}

static void nobody_has_a_signal(void **state)
{
	uint8_t bytes[PART] = { 0 };

	(void)state;
	connect_to(hang_up);
	leave();
	for (int i = 0; i < 3; i++)
		assert_int_equal(stream_send(&s.stream, bytes, PART), PART);
	is_over("Connection reset by peer");
}

/* In TLS 1.3 a client may send before the server has looked at its certificate.  The first bytes
 * that come too late have a reset for an answer, which the next ones meet. */
static void a_reason_is_heard_after_what_was_sent_in_vain(void **state)
{
	uint8_t bytes[PART] = { 0 };
	struct pollfd end = { .fd = -1 };

	(void)state;
	SSL_CTX_set_verify(s.ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
	                   NULL);
	connect_to(await_end);
	leave();
	end.fd = s.stream.fd;
	do
		assert_int_equal(stream_send(&s.stream, bytes, PART), PART);
	while (poll(&end, 1, 0) == 0 || !(end.revents & POLLHUP));
	assert_int_equal(stream_send(&s.stream, bytes, PART), PART);
	is_over(
	    "the server wants a certificate of the client; cert= and key= name one");
}

static void say_and_close(SSL *ssl)
{
	must(SSL_write(ssl, "!", 1) == 1);
	(void)SSL_shutdown(ssl);
}

/* What came before the end is heard, and the end is no fault. */
static void an_end_comes_after_what_was_said(void **state)
{
	uint8_t byte = 0;
	ptrdiff_t count;

	(void)state;
	connect_to(say_and_close);
	leave();
	await_mark();
	while ((count = stream_read(&s.stream, &byte, 1)) == 0)
		must(told(-1));
	assert_int_equal(count, -1);
	assert_string_equal(stream_why(&s.stream), "");
}

/* ---- The host's policy ----------------------------------------------------------- */

static void is_refused(const char *because)
{
	assert_int_equal(shake_with(await_end), STREAM_OVER);
	if (!strstr(stream_why(&s.stream), because))
		fail_msg("not %s: %s", because, stream_why(&s.stream));
	stream_close(&s.stream);
	leave();
}

/* TLS-1 */
static void a_server_without_a_certificate_is_refused(void **state)
{
	(void)state;
	SSL_CTX_free(s.ctx);
	s.ctx = SSL_CTX_new(TLS_server_method());
	must(s.ctx && SSL_CTX_set_cipher_list(s.ctx, "aNULL:@SECLEVEL=0") == 1 &&
	     SSL_CTX_set_max_proto_version(s.ctx, TLS1_2_VERSION) == 1);
	is_refused("the server has shown no certificate");
}

static void a_policy_of_less_than_tls_1_2_is_raised(void **state)
{
	(void)state;
	must(SSL_CTX_set_cipher_list(s.ctx, "ALL:@SECLEVEL=0") == 1 &&
	     SSL_CTX_set_min_proto_version(s.ctx, TLS1_VERSION) == 1 &&
	     SSL_CTX_set_max_proto_version(s.ctx, TLS1_1_VERSION) == 1);
	is_refused("TLS: tlsv1 alert protocol version");
}

static void a_policy_of_more_than_tls_1_2_stays(void **state)
{
	(void)state;
	must(SSL_CTX_set_max_proto_version(s.ctx, TLS1_2_VERSION) == 1);
	is_refused("TLS: tlsv1 alert protocol version");
}

/* ---- Names ----------------------------------------------------------------------- */

/* Which OpenSSL would take for any server's, or for that of any host below a domain. */
static void a_name_of_many_servers_is_none(void **state)
{
	static const char *const names[] = { "", ".example" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_null(s.tls.ops->session_new(s.tls.context, -1, names[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
		TEST(the_rest_of_a_record_is_told_of),
		TEST(what_has_no_room_goes_later),
		TEST(keys_are_renewed_under_load),
		TEST(a_server_that_negotiates_again_is_left),
		TEST(nobody_has_a_signal),
		TEST(a_reason_is_heard_after_what_was_sent_in_vain),
		TEST(an_end_comes_after_what_was_said),
		TEST(a_name_of_many_servers_is_none),
#undef TEST
#define TEST(name, open) cmocka_unit_test_setup_teardown(name, open, close_scene)
		TEST(a_server_without_a_certificate_is_refused, open_lax_scene),
		TEST(a_policy_of_less_than_tls_1_2_is_raised, open_lax_scene),
		TEST(a_policy_of_more_than_tls_1_2_stays, open_strict_scene),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
