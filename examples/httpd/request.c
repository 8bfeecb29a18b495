/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* request.c -- libhttp-parser, and where in the head that is which it finds. */
#define _GNU_SOURCE
#include "examples/httpd/httpd.h"

#include <string.h>
#include <strings.h>

/* The parser may tell a part in pieces, which lie one after the other. */
static void extend(const struct request *request, struct span *span, const char *text,
                   size_t length)
{
	uint32_t first = (uint32_t)(text - request->head);

	if (span->count == 0)
		span->first = first;
	span->count = first + (uint32_t)length - span->first;
}

static bool is_name(const struct request *request, const char *name)
{
	return request->name.count == strlen(name) &&
	       strncasecmp(request->head + request->name.first, name, strlen(name)) ==
	           0;
}

static struct span without_spaces(const struct request *request, struct span span)
{
	const char *text = request->head + span.first;

	while (span.count > 0 &&
	       (text[span.count - 1] == ' ' || text[span.count - 1] == '\t'))
		span.count--;
	return span;
}

/* A header line is over.  The parser takes a space before the colon, and others may not. */
static void end_line(struct request *request)
{
	if (memchr(request->head + request->name.first, ' ', request->name.count))
		request->fault = FAULT_MALFORMED;
	if (is_name(request, "X-Api-Key"))
		request->api_key = without_spaces(request, request->value);
	request->name = request->value = (struct span){ 0 };
	request->is_value = false;
}

/* ---- What the parser says; not 0: it stops ---------------------------------------- */

static int on_target(http_parser *parser, const char *text, size_t length)
{
	struct request *request = parser->data;

	extend(request, &request->target, text, length);
	return 0;
}

static int on_name(http_parser *parser, const char *text, size_t length)
{
	struct request *request = parser->data;

	if (request->is_value)
		end_line(request);
	extend(request, &request->name, text, length);
	return request->fault != FAULT_NONE;
}

static int on_value(http_parser *parser, const char *text, size_t length)
{
	struct request *request = parser->data;

	request->is_value = true;
	extend(request, &request->value, text, length);
	return 0;
}

static bool has_body(const http_parser *parser)
{
	if (parser->flags & F_CHUNKED)
		return true;
	return parser->flags & F_CONTENTLENGTH && parser->content_length > 0;
}

/* An Upgrade is not done, so that what follows is HTTP as before. */
static int on_head(http_parser *parser)
{
	struct request *request = parser->data;

	end_line(request);
	parser->upgrade = 0;
	if (request->fault == FAULT_NONE && has_body(parser))
		request->fault = FAULT_BODY;
	else if (request->api_key.count > GALE_KEY_MAX)
		request->fault = FAULT_KEY;
	return request->fault == FAULT_NONE ? 0 : -1;
}

static int on_whole(http_parser *parser)
{
	struct request *request = parser->data;

	request->is_whole = true;
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_url = on_target,
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_head,
	.on_message_complete = on_whole,
};

/* ---- A request -------------------------------------------------------------------- */

void request_begin(struct request *request)
{
	*request = (struct request){ 0 };
	http_parser_init(&request->parser, HTTP_REQUEST);
	request->parser.data = request;
}

size_t request_read(struct request *request, const char *head, const char *text,
                    size_t count)
{
	size_t taken;

	request->head = head;
	taken = http_parser_execute(&request->parser, &settings, text, count);
	if (!request->is_whole && request->fault == FAULT_NONE &&
	    HTTP_PARSER_ERRNO(&request->parser) != HPE_OK)
		request->fault = FAULT_MALFORMED;
	return taken;
}
