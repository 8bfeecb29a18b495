/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * late_name.h -- a host name that nobody can look up at first: LATE_NAME, later 127.0.0.1.
 *
 * A program that has this file has its getaddrinfo, which passes all other names on.
 *
 * Threads   late_name_is_known: any.
 */
#ifndef TESTS_SUPPORT_LATE_NAME_H
#define TESTS_SUPPORT_LATE_NAME_H

#include <stdbool.h>

#define LATE_NAME "late.invalid"

/* At first it is not. */
void late_name_is_known(bool known);

#endif
