/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_tls_test.c -- one ceiling for nodes of which one is not let in again, since the server's certificate
 * has expired meanwhile.  (H1)
 *
 *     node 0 --TLS--> Redis <--its socket-- node 1
 *
 * A connection that there is goes on: only who connects anew looks at the certificate.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/support/guard_scene.h"
#include "tests/support/must.h"
#include "tests/support/secure_server.h"

#define LIMIT GUARD_SCENE_LIMIT
#define LONG_US                                                                        \
	(10 * GUARD_SCENE_LEASE) /* longer than any share is good without a beat */

static struct certificates c;
static struct secure_server server;

/* What was shown until now is shown no more. */
static void show(const struct certificate *certificate)
{
	char command[512];

	snprintf(command, sizeof(command),
	         "CONFIG SET tls-cert-file %s tls-key-file %s", certificate->cert,
	         certificate->key);
	redis_server_do(&server.is, command);
}

static void open_scene(struct guard_scene *scene, const char *secure, const char *plain)
{
	guard_scene_open(scene, "secure", plain, GUARD_SCENE_BACKEND_ABORT);
	atomic_store(&scene->nodes[0].takes_us, LONG_US);
	guard_scene_start(scene, 0, "one", secure);
	guard_scene_start(scene, 1, "two", NULL);
	guard_scene_await_in_flight(scene, 0, 0, 1);
	guard_scene_await_in_flight(scene, 0, 1, LIMIT);
}

static void who_finds_an_expired_certificate_is_fenced_and_comes_back(void **state)
{
	char secure[256], plain[128];
	struct guard_scene scene;

	(void)state;
	snprintf(secure, sizeof(secure), "rediss://127.0.0.1:%s?ca=%s", server.port,
	         c.ca.cert);
	snprintf(plain, sizeof(plain), "redis://%s", server.is.socket);
	open_scene(&scene, secure, plain);

	show(&c.expired);
	guard_scene_await_done(&scene, 1, LIMIT); /* nothing ends by that alone */
	must(atomic_load(&scene.nodes[0].fences) == 0);
	redis_server_do(&server.is, "CLIENT KILL TYPE normal");
	guard_scene_await_refused(&scene, 0, GALE_WHY_CUT_OFF, 1);
	guard_scene_await_none(&scene, 0); /* it cancels its calls */
	must(atomic_load(&scene.nodes[0].fences) > 0);
	guard_scene_await_in_flight(&scene, 1, 1, LIMIT);

	show(&c.good);
	guard_scene_await_in_flight(&scene, 0, 0, 1);
	guard_scene_await_in_flight(&scene, 0, 1, LIMIT);
	guard_scene_held(&scene);
	guard_scene_close(&scene);
}

static int start_server(void **state)
{
	(void)state;
	certificates_make(&c);
	secure_server_start(&server, &c.good, &c.ca, "no");
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	secure_server_stop(&server);
	certificates_drop(&c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    who_finds_an_expired_certificate_is_fenced_and_comes_back),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
