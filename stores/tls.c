/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tls.c -- a context of libgale-tls.so, which is loaded for it. */
#include "stores/tls.h"

#include "stores/library.h"

static const struct library library = {
	.file = "libgale-tls.so.0",
	.table = "gale_tls",
	.interface = TLS_INTERFACE,
	.scheme = "rediss://",
	.needs = "OpenSSL 3",
	.err = GALE_ERR_TLS,
};

static bool open_context(struct tls *tls, const struct tls_config *config,
                         struct url_fault *fault)
{
	char why[TLS_TEXT];

	tls->context = tls->ops->context_new(config, why);
	return tls->context || url_say(fault, GALE_ERR_TLS, "url: %s", why);
}

bool tls_open(struct tls *tls, const struct tls_config *config,
              struct url_fault *ret_fault)
{
	*tls = (struct tls){ .ops = library_load(&library, ret_fault) };
	return tls->ops && open_context(tls, config, ret_fault);
}

void tls_close(struct tls *tls)
{
	if (tls->context)
		tls->ops->context_free(tls->context);
	*tls = (struct tls){ .ops = NULL };
}
