/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * library.h -- a library of gale's that is loaded when a URL needs it (spec/decisions/0027, 0028).
 *
 * The library exports one table, whose first member is a uint32_t: the interface that both
 * sides were built with.  A table of another interface is not touched.
 *
 * Threads   Any.
 * Limits    The library stays in the process: OpenSSL leaves keys and handlers of threads behind.
 */
#ifndef STORES_LIBRARY_H
#define STORES_LIBRARY_H

#include <stdint.h>

#include "stores/url.h"

struct library {
	const char *file;   /* without a folder */
	const char *table;  /* its name in the file */
	uint32_t interface; /* of that table */
	const char *scheme; /* of the URLs that need it, for the sentence */
	const char *needs;  /* what the library is linked with, for the sentence */
	enum gale_err err;  /* when it cannot be had */
};

/* The table.  NULL: *ret_fault says what is missing. */
const void *library_load(const struct library *library, struct url_fault *ret_fault);

#endif
