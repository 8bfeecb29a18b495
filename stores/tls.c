/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tls.c -- finds libgale-tls.so: beside whatever this was linked into, where the loader looks,
 * or where gale was installed.
 */
#define _GNU_SOURCE
#include "stores/tls.h"

#include <dlfcn.h>

#define LIBRARY "libgale-tls.so.0"

/* OpenSSL does not come out of a process again: it leaves keys and handlers of threads behind. */
static void *load(const char *path)
{
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static void *find_library(void)
{
	static const char *const paths[] = {
		"$ORIGIN/" LIBRARY,
		LIBRARY,
		GALE_LIBDIR "/" LIBRARY,
	};
	void *library = NULL;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && !library; i++)
		library = load(paths[i]);
	return library;
}

static bool open_library(struct tls *tls, struct url_fault *fault)
{
	tls->library = find_library();
	if (!tls->library) {
		const char *why = dlerror();

		return url_say(fault, GALE_ERR_TLS,
		               "url: rediss:// needs " LIBRARY
		               ", and OpenSSL 3: %.100s",
		               why ? why : "it cannot be loaded");
	}
	tls->ops = dlsym(tls->library, "gale_tls");
	if (tls->ops && tls->ops->interface == TLS_INTERFACE)
		return true;
	return url_say(fault, GALE_ERR_TLS,
	               "url: the " LIBRARY " that was found is of another gale");
}

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
	*tls = (struct tls){ .library = NULL };
	if (open_library(tls, ret_fault) && open_context(tls, config, ret_fault))
		return true;
	tls_close(tls);
	return false;
}

void tls_close(struct tls *tls)
{
	if (tls->context)
		tls->ops->context_free(tls->context);
	if (tls->library)
		dlclose(tls->library);
	*tls = (struct tls){ .library = NULL };
}
