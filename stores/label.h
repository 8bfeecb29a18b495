/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * label.h -- what a store is called in logs and metrics: its URL, without what is secret.
 *
 * User, password and options are left out, but for the prefix of a Redis URL: it tells
 * fleets apart that share a server.  A text without a scheme has no label: any part of it may be a
 * password.
 *
 * Threads   Pure: any.
 */
#ifndef STORES_LABEL_H
#define STORES_LABEL_H

#include <stddef.h>

#define LABEL_ROOM 160 /* a longer one is cut */

void label_of_url(const char *url, char label[LABEL_ROOM]);

#endif
