/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* label.c -- leaves out rather too much than too little. */
#include "stores/label.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* libpq takes a question mark for a part of a password, so only a slash ends what may hold
 * one; and of several @ the last ends it. */
static const char *after_user(const char *rest)
{
	size_t authority = strcspn(rest, "/");
	const char *after = rest;

	for (size_t i = 0; i < authority; i++)
		if (rest[i] == '@')
			after = rest + i + 1;
	return after;
}

static bool are_ports(const char *hosts, size_t count)
{
	bool in_brackets = false;

	for (size_t i = 0; i < count; i++) {
		size_t digits = strspn(hosts + i + 1, "0123456789");

		if (hosts[i] == '[' || hosts[i] == ']')
			in_brackets = hosts[i] == '[';
		if (hosts[i] != ':' || in_brackets)
			continue;
		if (digits == 0 || !strchr(",/?", hosts[i + 1 + digits]))
			return false;
	}
	return true;
}

/* Is an @ behind what seem to be the hosts?  Then the / or ? that ends them may be of a password
 * in which it was not written as %2F or %3F.  A socket's path and an option's value may have an
 * @, too. */
static bool may_have_user(const char *rest)
{
	size_t hosts = strcspn(rest, "/?");
	const char *at = strchr(rest, '@');
	const char *option = strchr(rest, '?');
	bool in_value =
	    at && option && option < at && memchr(option, '=', (size_t)(at - option));

	return hosts > 0 && at && !(in_value && are_ports(rest, hosts));
}

/* With its name, as it is in the URL; "" if there is none. */
static const char *prefix_option(const char *url, const char *rest, size_t *ret_length)
{
	const char *option = strchr(rest, '?');

	*ret_length = 0;
	if (strncmp(url, "redis", 5) != 0)
		return "";
	for (; option; option = strchr(option + 1, '&'))
		if (strncmp(option + 1, "prefix=", 7) == 0) {
			*ret_length = strcspn(option + 1, "&");
			return option + 1;
		}
	return "";
}

void label_of_url(const char *url, char label[LABEL_ROOM])
{
	const char *scheme_end = strstr(url, "://");
	size_t scheme, option;
	const char *rest, *prefix;
	bool is_memory = strncmp(url, "memory:", 7) == 0;

	if (is_memory || !scheme_end) {
		snprintf(label, LABEL_ROOM, "%s", is_memory ? url : "");
		return;
	}
	scheme = (size_t)(scheme_end + 3 - url);
	rest = after_user(url + scheme);
	if (may_have_user(rest))
		rest = "";
	prefix = prefix_option(url, rest, &option);
	snprintf(label, LABEL_ROOM, "%.*s%.*s%s%.*s", (int)scheme, url,
	         (int)strcspn(rest, "?"), rest, option > 0 ? "?" : "", (int)option,
	         prefix);
}
