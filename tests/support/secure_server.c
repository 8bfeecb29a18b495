/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* secure_server.c -- the options of Redis for TLS. */
#include "tests/support/secure_server.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/port.h"

void secure_server_start(struct secure_server *server, const struct certificate *shown,
                         const struct certificate *ca, const char *clients)
{
	const char *const options[] = { "--tls-port",
		                        server->port,
		                        "--tls-cert-file",
		                        shown->cert,
		                        "--tls-key-file",
		                        shown->key,
		                        "--tls-ca-cert-file",
		                        ca->cert,
		                        "--tls-auth-clients",
		                        clients,
		                        "--user",
		                        "ali",
		                        "on",
		                        ">baba",
		                        "~gale:*",
		                        "&*",
		                        "+@all",
		                        NULL };

	snprintf(server->port, sizeof(server->port), "%u", free_port());
	memcpy(server->options, options, sizeof(options));
	redis_server_start(&server->is, server->options);
}

void secure_server_stop(struct secure_server *server)
{
	redis_server_stop(&server->is);
}
