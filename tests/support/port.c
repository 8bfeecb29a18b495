/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * port.c -- ports for servers, of which no two tests get one.
 *
 * They are below those that the kernel gives to who connects: it would give one away before
 * its server is there, or while that is down.  Who has one keeps a name until it ends, which
 * the kernel then takes back.
 */
#define _GNU_SOURCE
#include "tests/support/port.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/must.h"

#define FIRST 16384
#define COUNT 16384

static bool nobody_has_its_name(uint16_t port)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int count;

	must(fd >= 0);
	count = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "gale port %u",
	                 port);
	if (bind(fd, (struct sockaddr *)&name,
	         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	                     (size_t)count)) == 0)
		return true; /* and is open until the end */
	close(fd);
	return false;
}

static bool nobody_listens(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                       .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_free;

	must(fd >= 0);
	is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return is_free;
}

uint16_t free_port(void)
{
	uint16_t port;

	do {
		must(getrandom(&port, sizeof(port), 0) == sizeof(port));
		port = FIRST + port % COUNT;
	} while (!nobody_has_its_name(port) || !nobody_listens(port));
	return port;
}
