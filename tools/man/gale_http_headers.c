/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gale_http_headers.c -- make an HTTP reply of answers
 *
 * Errors   RET SIZE POLICY POLICY_NAME ROOM
 *
 * Prints
 *	HTTP/1.1 429
 *	RateLimit-Policy: "api";q=100;w=60
 *	RateLimit: "api";r=0;t=42
 *	Retry-After: 42
 */
#include <stdio.h>

#include <gale/http.h>

int main(void)
{
	/* What gale_ask has returned. */
	struct gale_answer answer = { .verdict = GALE_DENY,
		                      .why = GALE_WHY_RULE,
		                      .limit = 100,
		                      .reset_after_us = GALE_SECONDS(42),
		                      .retry_after_us = GALE_SECONDS(42) };
	struct gale_http_policy policy = { .name = "api",
		                           .answer = &answer,
		                           .window_us = GALE_MINUTES(1) };
	char lines[GALE_HTTP_HEADERS_ROOM(1)], body[GALE_HTTP_PROBLEM_ROOM(1)];
	size_t length;

	if (gale_http_headers(&policy, 1, NULL, lines, sizeof(lines), &length) ||
	    gale_http_problem(&policy, 1, body, sizeof(body), &length))
		return 1;
	printf("HTTP/1.1 %d\n", gale_http_status(&answer));
	for (const char *at = lines; *at; at++)
		if (*at != '\r') /* each line ends in CRLF */
			putchar(*at);
	fprintf(stderr, "%s\n", body);
	return 0;
}
