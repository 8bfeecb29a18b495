/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* late_name.c -- stands before the C library's getaddrinfo. */
#define _GNU_SOURCE
#include "tests/support/late_name.h"

#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

#include "runtime/atomic.h"
#include "tests/support/must.h"

typedef int lookup(const char *node, const char *service, const struct addrinfo *hints,
                   struct addrinfo **found);

static _Atomic bool is_known;

void late_name_is_known(bool known)
{
	store_relaxed(&is_known, known);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
	void *next = dlsym(RTLD_NEXT, "getaddrinfo");
	lookup *real;

	must(next != NULL);
	memcpy(&real, &next, sizeof(real));
	if (!node || strcmp(node, LATE_NAME) != 0)
		return real(node, service, hints, found);
	return load_relaxed(&is_known) ? real("127.0.0.1", service, hints, found)
	                               : EAI_AGAIN;
}
