/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url.c -- cut in place, from the left. */
#include "stores/url.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 32
#define PORT_SHOWN 10

/* ---- What is wrong --------------------------------------------------------------- */

bool url_say(struct url_fault *fault, enum gale_err err, const char *format, ...)
{
	va_list args;

	fault->err = err;
	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	for (char *at = fault->text; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return false;
}

static bool refuse(struct url_fault *fault, const char *why)
{
	return url_say(fault, GALE_ERR_URL, "url: %s", why);
}

static bool refuse_escape(struct url_fault *fault, const char *where)
{
	return url_say(fault, GALE_ERR_URL,
	               "url: %s: behind a %% come two hexadecimal digits, and not 00",
	               where);
}

const char *url_shown(const struct url *url, const char *name)
{
	size_t count = strspn(name, "abcdefghijklmnopqrstuvwxyz"
	                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	if (url->may_hide || count == 0 || count > NAME_SHOWN || name[count] != '\0')
		return "(?)";
	return name;
}

/* ---- Parts ----------------------------------------------------------------------- */

/* Cuts text at the first of these characters; what follows, or NULL. */
static char *cut(char *text, char at)
{
	char *end = strchr(text, at);

	if (!end)
		return NULL;
	*end = '\0';
	return end + 1;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Each %xx becomes a byte, but never a NUL. */
static bool decode(char *text)
{
	char *out = text;

	for (; *text != '\0'; text++, out++) {
		int high, low;

		*out = *text;
		if (*text != '%')
			continue;
		high = nibble(text[1]);
		low = high < 0 ? -1 : nibble(text[2]);
		if (low < 0 || high + low == 0)
			return false;
		*out = (char)(high * 16 + low);
		text += 2;
	}
	*out = '\0';
	return true;
}

bool url_number(const char *text, uint64_t most, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (*text == '\0' || strlen(text) > 18)
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
	}
	*ret_number = number;
	return number <= most;
}

static bool refuse_port(const struct url *url, struct url_fault *fault)
{
	return refuse(fault, url->may_hide ? "the port of a host is not a number; in a "
	                                     "password, / is written %2F, and ? %3F"
	                                   : "the port of a host is not a number");
}

static bool parse_port(const struct url *url, const char *text, uint16_t *ret_port,
                       struct url_fault *fault)
{
	size_t digits = strspn(text, "0123456789");
	bool is_number = digits > 0 && digits <= PORT_SHOWN && text[digits] == '\0';
	uint64_t port = 0;
	bool is_port = is_number && url_number(text, UINT16_MAX, &port) && port > 0;

	if (!is_number || (!is_port && url->may_hide))
		return refuse_port(url, fault);
	if (!is_port)
		return url_say(fault, GALE_ERR_URL,
		               "url: port %s is not from 1 to 65535", text);
	*ret_port = (uint16_t)port;
	return true;
}

static bool parse_host(const struct url *url, char *text, struct url_host *ret_host,
                       struct url_fault *fault)
{
	char *port;

	*ret_host = (struct url_host){ .name = text };
	if (*text == '[') {
		ret_host->name = text + 1;
		text = cut(text, ']');
		if (!text)
			return refuse(fault, "a [ has no ]");
		if (*text != ':' && *text != '\0')
			return refuse(fault,
			              "behind the ] of a host comes : and a port");
		port = *text == ':' ? text + 1 : NULL;
	} else {
		port = cut(text, ':');
	}
	if (*ret_host->name == '\0')
		return refuse(fault, "a host has no name");
	return !port || parse_port(url, port, &ret_host->port, fault);
}

static bool parse_hosts(char *text, struct url *url, struct url_fault *fault)
{
	if (*text == '\0')
		return true; /* code that needs a path then asks for it */
	while (text) {
		char *next = cut(text, ',');

		if (url->host_count == URL_HOSTS_MOST)
			return url_say(fault, GALE_ERR_URL, "url: more than %d hosts",
			               URL_HOSTS_MOST);
		if (!parse_host(url, text, &url->hosts[url->host_count++], fault))
			return false;
		text = next;
	}
	return true;
}

static bool parse_user(char *text, struct url *url, struct url_fault *fault)
{
	char *password = cut(text, ':');

	url->user = text;
	url->password = password ? password : "";
	if (!decode(text))
		return refuse_escape(fault, "user");
	return !password || decode(password) || refuse_escape(fault, "password");
}

static bool parse_option(char *text, struct url *url, struct url_fault *fault)
{
	char *value = cut(text, '=');

	if (!value)
		return url_say(fault, GALE_ERR_URL, "url: option %s has no =value",
		               url_shown(url, text));
	if (url->option_count == URL_OPTIONS_MOST)
		return url_say(fault, GALE_ERR_URL, "url: more than %d options",
		               URL_OPTIONS_MOST);
	if (!decode(value))
		return refuse_escape(fault, "the value of an option");
	url->options[url->option_count++] = (struct url_option){ text, value };
	return true;
}

static bool parse_options(char *text, struct url *url, struct url_fault *fault)
{
	while (text && *text != '\0') {
		char *next = cut(text, '&');

		if (!parse_option(text, url, fault))
			return false;
		text = next;
	}
	return true;
}

/* The path keeps its slash, so it is moved up by one to make room for an end. */
static char *cut_path(char *rest, char *end)
{
	char *path = strchr(rest, '/');

	if (!path)
		return end;
	memmove(path + 1, path, strlen(path) + 1);
	*path = '\0';
	return path + 1;
}

static bool parse_rest(char *rest, struct url *url, struct url_fault *fault)
{
	char *options = cut(rest, '?');
	char *at, *path;

	/* The room for an end that a path needs is where the scheme's // was. */
	memmove(rest - 1, rest, strlen(rest) + 1);
	rest--;
	path = cut_path(rest, rest + strlen(rest));
	url->path = path;
	at = strrchr(rest, '@');
	url->may_hide =
	    *rest != '\0' && (strchr(path, '@') || (options && strchr(options, '@')));
	if (at) {
		*at = '\0';
		if (!parse_user(rest, url, fault))
			return false;
		rest = at + 1;
	}
	if (!decode(path))
		return refuse_escape(fault, "path");
	return parse_hosts(rest, url, fault) && parse_options(options, url, fault);
}

bool url_parse(const char *text, struct url *ret_url, struct url_fault *ret_fault)
{
	size_t length = strlen(text);
	char *rest;

	*ret_url = (struct url){ .user = "", .password = "", .path = "" };
	if (length > URL_MOST)
		return url_say(ret_fault, GALE_ERR_URL, "url: longer than %d bytes",
		               URL_MOST);
	memcpy(ret_url->bytes, text, length);
	ret_url->scheme = ret_url->bytes;
	rest = cut(ret_url->bytes, ':');
	if (!rest || ret_url->scheme[0] == '\0' || strncmp(rest, "//", 2) != 0)
		return refuse(ret_fault, "it does not begin with a scheme and ://");
	return parse_rest(rest + 2, ret_url, ret_fault);
}

const char *url_option(const struct url *url, const char *name)
{
	for (size_t i = 0; i < url->option_count; i++)
		if (strcmp(url->options[i].name, name) == 0)
			return url->options[i].value;
	return NULL;
}
