/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* message.c -- libhttp-parser, and what a proxy passes on of a head (RFC 9110, 7.6.1). */
#define _GNU_SOURCE
#include "examples/balancer/balancer.h"

#include <string.h>
#include <strings.h>

/* Lines for one connection, and lines that the balancer writes itself. */
static const char *const own[] = { "Connection",        "Keep-Alive",
	                           "Proxy-Connection",  "TE",
	                           "Trailer",           "Upgrade",
	                           "Transfer-Encoding", "Expect",
	                           "Content-Length" };

static bool is_name(const struct buffer *text, const char *name)
{
	return buffer_count(text) == strlen(name) &&
	       strncasecmp(text->text + text->first, name, strlen(name)) == 0;
}

static bool is_own(const struct buffer *name)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (is_name(name, own[i]))
			return true;
	}
	return false;
}

/* At its end. */
static void drop_spaces(struct buffer *text)
{
	while (buffer_count(text) > 0 &&
	       (text->text[text->end - 1] == ' ' || text->text[text->end - 1] == '\t'))
		text->end--;
}

static size_t head_count(const struct message *message)
{
	return buffer_count(&message->target) + buffer_count(&message->reason) +
	       buffer_count(&message->lines) + buffer_count(&message->field) +
	       buffer_count(&message->value);
}

static bool fail(struct message *message, enum fault fault)
{
	message->fault = fault;
	return false;
}

static bool add_to_head(struct message *message, struct buffer *part, const char *text,
                        size_t length)
{
	if (head_count(message) + length > HEAD_MOST)
		return fail(message, FAULT_HEAD_TOO_LONG);
	return buffer_add(part, text, length) || fail(message, FAULT_STOPPED);
}

static bool add_line(struct message *message)
{
	const struct buffer *field = &message->field, *value = &message->value;

	return buffer_add(&message->lines, field->text + field->first,
	                  buffer_count(field)) &&
	       buffer_add(&message->lines, ": ", 2) &&
	       buffer_add(&message->lines, value->text + value->first,
	                  buffer_count(value)) &&
	       buffer_add(&message->lines, "\r\n", 2);
}

/* The parser takes these as another server may not: a space before the colon, and a coding
 * besides chunks, which would be lost on the way. */
static bool is_ambiguous(const struct message *message)
{
	const struct buffer *field = &message->field;

	return memchr(field->text + field->first, ' ', buffer_count(field)) ||
	       (is_name(field, "Transfer-Encoding") &&
	        !is_name(&message->value, "chunked"));
}

/* A line is over, if there was one. */
static bool end_line(struct message *message)
{
	struct buffer *value = &message->value;
	bool is_good = true;

	if (buffer_count(&message->field) == 0)
		return true;
	drop_spaces(value);
	if (is_ambiguous(message))
		return fail(message, FAULT_MALFORMED);
	if (is_name(&message->field, "Connection"))
		is_good = buffer_add(&message->named, value->text + value->first,
		                     buffer_count(value)) &&
		          buffer_add(&message->named, ",", 1);
	message->expects_continue |= is_name(&message->field, "Expect");
	if (is_good && !is_own(&message->field))
		is_good = add_line(message);
	buffer_clear(&message->field);
	buffer_clear(&message->value);
	message->is_value = false;
	return is_good || fail(message, FAULT_STOPPED);
}

/* Drops the lines of a name that Connection has. */
static void drop_lines(struct buffer *lines, const char *name, size_t length)
{
	char *from = lines->text + lines->first, *to = from;
	char *end = lines->text + lines->end;

	while (from < end) {
		char *next = (char *)memchr(from, '\n', (size_t)(end - from)) + 1;
		size_t whole = (size_t)(next - from);

		if (whole <= length || from[length] != ':' ||
		    strncasecmp(from, name, length) != 0) {
			memmove(to, from, whole);
			to += whole;
		}
		from = next;
	}
	lines->end = (size_t)(to - lines->text);
}

/* It is for the backend, whatever Connection says. */
static bool is_host(const char *name, size_t length)
{
	return length == strlen("Host") && strncasecmp(name, "Host", length) == 0;
}

static void drop_named(struct message *message)
{
	const char *at = message->named.text + message->named.first;
	size_t left = buffer_count(&message->named);

	while (left > 0) {
		size_t length = (size_t)((const char *)memchr(at, ',', left) - at);
		const char *name = at;

		left -= length + 1;
		at += length + 1;
		while (length > 0 && (*name == ' ' || *name == '\t'))
			name++, length--;
		while (length > 0 &&
		       (name[length - 1] == ' ' || name[length - 1] == '\t'))
			length--;
		if (length > 0 && !is_host(name, length))
			drop_lines(&message->lines, name, length);
	}
}

/* ---- What the parser says; not 0: it stops ---------------------------------------- */

static int on_begin(http_parser *parser)
{
	((struct message *)parser->data)->has_begun = true;
	return 0;
}

static int on_target(http_parser *parser, const char *text, size_t length)
{
	struct message *message = parser->data;

	return !add_to_head(message, &message->target, text, length);
}

static int on_reason(http_parser *parser, const char *text, size_t length)
{
	struct message *message = parser->data;

	return !add_to_head(message, &message->reason, text, length);
}

static int on_field(http_parser *parser, const char *text, size_t length)
{
	struct message *message = parser->data;

	if (message->has_head) /* it comes after a body in chunks */
		return 0;
	if (message->is_value && !end_line(message))
		return 1;
	return !add_to_head(message, &message->field, text, length);
}

static int on_value(http_parser *parser, const char *text, size_t length)
{
	struct message *message = parser->data;

	if (message->has_head)
		return 0;
	message->is_value = true;
	return !add_to_head(message, &message->value, text, length);
}

/* An Upgrade is not passed on, so that what follows is HTTP as before. */
static int on_head(http_parser *parser)
{
	struct message *message = parser->data;

	if (!end_line(message))
		return -1;
	message->has_head = true;
	drop_named(message);
	if (parser->method != HTTP_CONNECT || parser->type == HTTP_RESPONSE)
		parser->upgrade = 0;
	if (!message->on_head(message)) {
		if (message->fault == FAULT_NONE)
			message->fault = FAULT_STOPPED;
		return -1;
	}
	return message->has_no_body;
}

static int on_body(http_parser *parser, const char *text, size_t length)
{
	struct message *message = parser->data;

	if (message->on_body(message, text, length))
		return 0;
	if (message->fault == FAULT_NONE)
		message->fault = FAULT_STOPPED;
	return 1;
}

static int on_whole(http_parser *parser)
{
	struct message *message = parser->data;

	message->is_whole = true;
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_message_begin = on_begin,
	.on_url = on_target,
	.on_status = on_reason,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_head,
	.on_body = on_body,
	.on_message_complete = on_whole,
};

/* ---- A message -------------------------------------------------------------------- */

void message_begin(struct message *message, enum http_parser_type type)
{
	http_parser_init(&message->parser, type);
	message->parser.data = message;
	buffer_clear(&message->target);
	buffer_clear(&message->reason);
	buffer_clear(&message->lines);
	buffer_clear(&message->field);
	buffer_clear(&message->value);
	buffer_clear(&message->named);
	message->is_value = message->expects_continue = message->has_begun = false;
	message->is_whole = message->has_head = message->has_no_body = false;
	message->fault = FAULT_NONE;
}

static void note_fault(struct message *message)
{
	enum http_errno error = HTTP_PARSER_ERRNO(&message->parser);

	if (message->is_whole || error == HPE_OK || message->fault != FAULT_NONE)
		return;
	message->fault =
	    error == HPE_HEADER_OVERFLOW ? FAULT_HEAD_TOO_LONG : FAULT_MALFORMED;
}

size_t message_read(struct message *message, const char *text, size_t length)
{
	size_t taken = http_parser_execute(&message->parser, &settings, text, length);

	note_fault(message);
	return taken;
}

void message_ends(struct message *message)
{
	(void)http_parser_execute(&message->parser, &settings, NULL, 0);
	note_fault(message);
}

void message_free(struct message *message)
{
	buffer_free(&message->target);
	buffer_free(&message->reason);
	buffer_free(&message->lines);
	buffer_free(&message->field);
	buffer_free(&message->value);
	buffer_free(&message->named);
}
