/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tls_exit_test.c -- TLS works until the process has ended: threads of gale may still use it while
 * the host exits.
 *
 * Nothing else in this program knows OpenSSL, so the library sets it up.  Handlers of exit run in
 * reverse: the one of this test comes after all that OpenSSL may have added.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stores/tls.h"
#include "tests/support/must.h"

static struct tls tls;

static void use_it_late(void)
{
	const struct tls_config config = { .ca = NULL };
	char why[TLS_TEXT];
	struct tls_context *context = tls.ops->context_new(&config, why);

	if (!context) {
		fprintf(stderr, "at the end of the process: %s\n", why);
		_exit(1);
	}
	tls.ops->context_free(context);
	tls_close(&tls);
}

int main(void)
{
	const struct tls_config config = { .ca = NULL };
	struct url_fault fault;

	must(atexit(use_it_late) == 0);
	must(tls_open(&tls, &config, &fault));
	return 0;
}
