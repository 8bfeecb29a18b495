/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * port.h -- a port for a server of the test's own.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_PORT_H
#define TESTS_SUPPORT_PORT_H

#include <stdint.h>

/* Nobody listens there on loopback now; it is the caller's a moment later. */
uint16_t free_port(void);

#endif
