/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tunnel.h -- a plain socket that leads to a server in TLS.
 *
 *     hiredis <-- a pair of sockets --> a thread <-- stores/stream.h --> the server
 *
 * hiredis 0.14 speaks only plain.  When the server ends the connection with a reason, such as
 * a certificate that it wants, the reason comes as an error that the server replies with.
 *
 * Threads   All of it: one.  Each tunnel has a thread of its own.
 */
#ifndef TOOLS_TUNNEL_H
#define TOOLS_TUNNEL_H

#include "stores/redis/url.h"
#include "tools/sentence.h"

/* Waits until TLS is agreed on.  The plain end, for the caller to close; -1, and why. */
int tunnel_open(const struct redis_url *url, const char *host, int port, int patience_s,
                struct sentence *why);
/* After that end was closed: its thread has ended, too.  Nothing, if it was no tunnel's. */
void tunnel_close(int fd);

#endif
