/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* port.c -- the kernel picks one. */
#define _GNU_SOURCE
#include "tests/support/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/must.h"

uint16_t free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t count = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&address, count) == 0);
	must(getsockname(fd, (struct sockaddr *)&address, &count) == 0);
	close(fd);
	return ntohs(address.sin_port);
}
