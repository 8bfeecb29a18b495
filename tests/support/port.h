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

/* Nobody listens there on loopback now, and nobody else is given it while this process lives. */
uint16_t free_port(void);

#endif
