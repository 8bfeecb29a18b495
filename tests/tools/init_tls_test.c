/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_tls_test.c -- gale store init and gale store check, on a server in TLS.
 *
 * Each has connections of its own: those of hiredis, and those of the library.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/must.h"
#include "tests/support/scratch.h"
#include "tests/support/secure_server.h"
#include "tools/check.h"
#include "tools/init.h"

#define STEPS 500
#define TRIES_MOST 3

static char folder[64], *out;
static struct certificate ca, shown;
static struct secure_server server;

static int start(void **state)
{
	struct certificate_plan plan = { .folder = folder, .name = "ca", .to_days = 1 };

	(void)state;
	scratch_make(folder, sizeof(folder), "init-tls");
	certificate_make(&ca, &plan);
	plan.name = "server";
	plan.names = "IP:127.0.0.1";
	plan.by = &ca;
	certificate_make(&shown, &plan);
	secure_server_start(&server, &shown, &ca, "yes");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	secure_server_stop(&server);
	for (int i = 0; i < 2; i++) {
		must(unlink(i ? ca.cert : shown.cert) == 0);
		must(unlink(i ? ca.key : shown.key) == 0);
	}
	certificate_free(&ca);
	certificate_free(&shown);
	must(rmdir(folder) == 0);
	free(out);
	return 0;
}

/* more: options behind the CA's. */
static const char *url_of(const char *more)
{
	static char url[512];

	snprintf(url, sizeof(url), "rediss://ali:baba@127.0.0.1:%s?ca=%s%s",
	         server.port, ca.cert, more);
	return url;
}

static const char *with_certificate(void)
{
	static char more[256];

	snprintf(more, sizeof(more), "&cert=%s&key=%s", shown.cert, shown.key);
	return more;
}

static enum init_status init(const char *url, struct sentence *why)
{
	size_t size;
	FILE *said;
	enum init_status status;

	free(out);
	said = open_memstream(&out, &size);
	must(said != NULL);
	status = init_redis(url, said, why);
	fclose(said);
	return status;
}

static void a_server_is_looked_at_and_marked(void **state)
{
	struct sentence why = { "" };

	(void)state;
	if (init(url_of(with_certificate()), &why) != INIT_DONE)
		fail_msg("%s", why.is);
	assert_non_null(strstr(out, "Redis 7"));
	assert_non_null(strstr(out, "it is marked as new"));
}

static void what_is_wrong_is_said(void **state)
{
	struct sentence why = { "" };

	(void)state;
	assert_int_equal(init(url_of(""), &why), INIT_FAILED);
	if (!strstr(why.is, "the server wants a certificate of the client"))
		fail_msg("%s", why.is);
	assert_int_equal(init(url_of("&servername=other"), &why), INIT_FAILED);
	if (!strstr(why.is, "cannot connect to 127.0.0.1: the server's certificate is "
	                    "not of other"))
		fail_msg("%s", why.is);
}

static void it_keeps_the_laws(void **state)
{
	struct check_flags flags = { .url = url_of(with_certificate()),
		                     .seed = 20,
		                     .steps = STEPS };
	struct sentence why = { "" };
	enum check_status status = CHECK_UNTOLD;

	(void)state;
	for (int i = 0; i < TRIES_MOST && status == CHECK_UNTOLD; i++) {
		status = check_store(&flags, stdout, &why);
		if (status != CHECK_KEPT)
			print_error("%s\n", why.is);
	}
	assert_int_equal(status, CHECK_KEPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_looked_at_and_marked),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(it_keeps_the_laws),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
