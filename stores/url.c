/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url.c -- cut in place, from the left. */
#include "stores/url.h"

#include <string.h>

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

static bool parse_port(const char *text, uint16_t *ret_port)
{
	uint64_t port;

	if (!url_number(text, UINT16_MAX, &port) || port == 0)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

static bool parse_host(char *text, struct url_host *ret_host)
{
	char *port;

	*ret_host = (struct url_host){ .name = text };
	if (*text == '[') {
		ret_host->name = text + 1;
		text = cut(text, ']');
		if (!text || (*text != ':' && *text != '\0'))
			return false;
		port = *text == ':' ? text + 1 : NULL;
	} else {
		port = cut(text, ':');
	}
	return *ret_host->name != '\0' && (!port || parse_port(port, &ret_host->port));
}

static bool parse_hosts(char *text, struct url *url)
{
	if (*text == '\0')
		return true; /* a path is then asked for by who needs one */
	while (text) {
		char *next = cut(text, ',');

		if (url->host_count == URL_HOSTS_MOST ||
		    !parse_host(text, &url->hosts[url->host_count++]))
			return false;
		text = next;
	}
	return true;
}

static bool parse_user(char *text, struct url *url)
{
	char *password = cut(text, ':');

	url->user = text;
	url->password = password ? password : "";
	return decode(text) && (!password || decode(password));
}

static bool parse_options(char *text, struct url *url)
{
	while (text && *text != '\0') {
		char *next = cut(text, '&');
		char *value = cut(text, '=');

		if (!value || url->option_count == URL_OPTIONS_MOST || !decode(value))
			return false;
		url->options[url->option_count++] = (struct url_option){ text, value };
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

static bool parse_rest(char *rest, struct url *url)
{
	char *options = cut(rest, '?');
	char *at, *path;

	/* The room for an end that a path needs is where the scheme's // was. */
	memmove(rest - 1, rest, strlen(rest) + 1);
	rest--;
	path = cut_path(rest, rest + strlen(rest));
	url->path = path;
	at = strrchr(rest, '@');
	if (at) {
		*at = '\0';
		if (!parse_user(rest, url))
			return false;
		rest = at + 1;
	}
	return decode(path) && parse_hosts(rest, url) && parse_options(options, url);
}

bool url_parse(const char *text, struct url *ret_url)
{
	size_t length = strlen(text);
	char *rest;

	*ret_url = (struct url){ .user = "", .password = "", .path = "" };
	if (length > URL_MOST)
		return false;
	memcpy(ret_url->bytes, text, length);
	ret_url->scheme = ret_url->bytes;
	rest = cut(ret_url->bytes, ':');
	return rest && ret_url->scheme[0] != '\0' && strncmp(rest, "//", 2) == 0 &&
	       parse_rest(rest + 2, ret_url);
}

const char *url_option(const struct url *url, const char *name)
{
	for (size_t i = 0; i < url->option_count; i++)
		if (strcmp(url->options[i].name, name) == 0)
			return url->options[i].value;
	return NULL;
}
