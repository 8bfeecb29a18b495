/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init.h -- gale store init: makes a server ready for gale, and says what it can promise.
 *
 * Lines for people: what the server is, what was done, and the bound that it can give.
 *
 * Threads   One; it waits for the server.
 */
#ifndef TOOLS_INIT_H
#define TOOLS_INIT_H

#include <stdio.h>

#include "tools/sentence.h"

enum init_status {
	INIT_DONE = 0,
	INIT_FAILED = 1,  /* it cannot be asked, or not be relied upon as it is */
	INIT_BAD_USE = 2, /* a word or the URL is wrong */
};

/* argv as after "gale store". */
int init_run(int argc, char **argv, FILE *out, FILE *err);

/* Asks the server; role is the user that is to use it afterwards, or NULL. */
enum init_status init_postgres(const char *url, const char *role, FILE *out,
                               struct sentence *ret_why);
enum init_status init_redis(const char *url, FILE *out, struct sentence *ret_why);

#endif
