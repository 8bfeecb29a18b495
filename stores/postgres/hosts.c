/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* hosts.c -- libpq's own options, cut at their commas. */
#define _GNU_SOURCE
#include "stores/postgres/hosts.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_TEXT 64
#define PORT_TEXT 5

/* ---- What libpq was told ----------------------------------------------------------- */

static const char *value_of(const PQconninfoOption *options, const char *name)
{
	for (; options && options->keyword; options++)
		if (strcmp(options->keyword, name) == 0 && options->val)
			return options->val;
	return "";
}

/* Sockets' folders are no names. */
static bool is_folder(const char *host)
{
	return *host == '/' || *host == '@' || *host == '\0';
}

/* In place; how many pieces there are, or 0 if too many. */
static size_t cut(char *text, const char *pieces[URL_HOSTS_MOST])
{
	size_t count = 0;
	char *piece;

	while ((piece = strsep(&text, ",")) != NULL) {
		if (count == URL_HOSTS_MOST)
			return 0;
		pieces[count++] = piece;
	}
	return count;
}

static bool copy(char to[URL_MOST + 1], const char *from)
{
	return (size_t)snprintf(to, URL_MOST + 1, "%s", from) <= URL_MOST;
}

static bool refuse(struct url_fault *fault, const char *why)
{
	return url_say(fault, GALE_ERR_URL, "url: %s", why);
}

static bool refuse_ports(struct url_fault *fault)
{
	return refuse(fault, "the ports are not one for all hosts, or one for each");
}

/* One port is for all of them. */
static bool take_ports(struct postgres_hosts *hosts, const char *ports,
                       struct url_fault *fault)
{
	size_t count;

	if (!copy(hosts->port_bytes, ports))
		return refuse_ports(fault);
	count = cut(hosts->port_bytes, hosts->ports);
	for (size_t i = 1; i < hosts->url.host_count && count == 1; i++)
		hosts->ports[i] = hosts->ports[0];
	for (size_t i = 0; i < hosts->url.host_count; i++)
		if (count > 0 && hosts->ports[i] && strlen(hosts->ports[i]) > PORT_TEXT)
			return refuse(fault, "a port has more than five digits");
	return count == 1 || count == hosts->url.host_count || refuse_ports(fault);
}

static bool take_hosts(struct postgres_hosts *hosts, const char *text,
                       struct url_fault *fault)
{
	const char *pieces[URL_HOSTS_MOST];

	if (copy(hosts->host_bytes, text))
		hosts->url.host_count = cut(hosts->host_bytes, pieces);
	if (hosts->url.host_count == 0)
		return url_say(fault, GALE_ERR_URL, "url: more than %d hosts",
		               URL_HOSTS_MOST);
	for (size_t i = 0; i < hosts->url.host_count; i++) {
		/* libpq ends a password with its first @. */
		if (pieces[i][0] != '/' && strrchr(pieces[i], '@') > pieces[i])
			return refuse(
			    fault, "a host has an @; in a password, @ is written %40");
		hosts->url.hosts[i].name = pieces[i];
		hosts->has_names |= !is_folder(pieces[i]);
	}
	return true;
}

/* The environment may say what the URL does not.  libpq takes addresses as they are. */
static bool take(struct postgres_hosts *hosts, const PQconninfoOption *said,
                 const PQconninfoOption *usual, struct url_fault *fault)
{
	const char *host = value_of(said, "host"), *port = value_of(said, "port");

	if (*host == '\0' && *value_of(said, "service") != '\0')
		return refuse(fault, "a service needs a host beside it");
	if (*value_of(said, "hostaddr") != '\0' ||
	    (*host == '\0' && *value_of(usual, "hostaddr") != '\0'))
		return true;
	host = *host != '\0' ? host : value_of(usual, "host");
	port = *port != '\0' ? port : value_of(usual, "port");
	return *host == '\0' ||
	       (take_hosts(hosts, host, fault) && take_ports(hosts, port, fault));
}

/* libpq repeats the whole URL, password and all, or a part of it: what comes before that is said,
 * and else only the name of an option, where that is no piece of a password. */
static bool refuse_by_libpq(const struct url *url, struct url_fault *fault,
                            const char *message)
{
	const char *whole = strstr(message, "in URI");
	bool names_option = strstr(message, "URI query parameter");
	size_t shown = strcspn(message, names_option && !url->may_hide ? "\n" : ":");

	if (!names_option && whole) /* there may be a : before it */
		shown = (size_t)(whole - message) + strcspn(whole, ":");
	return url_say(fault, GALE_ERR_URL, "url: libpq says: %.*s", (int)shown,
	               message);
}

/* It must be one to us, too: of any other, libpq thinks that it is a database's name. */
bool postgres_hosts_read(struct postgres_hosts *ret_hosts, const char *url,
                         struct url_fault *ret_fault)
{
	PQconninfoOption *said, *usual;
	char *message = NULL;
	struct url ours;
	bool good;

	memset(ret_hosts, 0, sizeof(*ret_hosts));
	if (!url_parse(url, &ours, ret_fault))
		return false;
	said = PQconninfoParse(url, &message);
	usual = PQconndefaults();
	if (said)
		good = take(ret_hosts, said, usual, ret_fault);
	else
		good =
		    refuse_by_libpq(&ours, ret_fault, message ? message : "no memory");
	PQfreemem(message);
	PQconninfoFree(said);
	PQconninfoFree(usual);
	return good;
}

/* ---- From open to close ------------------------------------------------------------ */

static size_t look_up(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most)
{
	return is_folder(host) ? 0 : stream_resolve(host, port, ret_addresses, most);
}

bool postgres_hosts_open(struct postgres_hosts *hosts, const char *url,
                         struct url_fault *ret_fault)
{
	if (!postgres_hosts_read(hosts, url, ret_fault))
		return false;
	*ret_fault = (struct url_fault){ .err = GALE_ERR_OK };
	if (hosts->has_names)
		names_open(&hosts->names, &hosts->url, /* port= */ 1, look_up,
		           ret_fault);
	return true;
}

void postgres_hosts_close(struct postgres_hosts *hosts)
{
	if (hosts->has_names)
		names_close(&hosts->names);
}

void postgres_hosts_look_again(struct postgres_hosts *hosts, mono now)
{
	if (hosts->has_names)
		names_look_again(&hosts->names, now);
}

/* ---- Lists ------------------------------------------------------------------------- */

struct place {
	const char *host;
	const char *port;
	char address[ADDRESS_TEXT]; /* "": it is a folder */
};

struct list {
	struct place places[POSTGRES_PLACES];
	size_t count;
};

static void add_addresses(struct list *list, const struct names_found *found,
                          size_t host, struct place place)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct stream_address *at = &found->addresses[i];

		if (found->hosts[i] == host &&
		    getnameinfo((const struct sockaddr *)&at->bytes, at->count,
		                place.address, sizeof(place.address), NULL, 0,
		                NI_NUMERICHOST) == 0)
			list->places[list->count++] = place;
	}
}

static void collect(struct postgres_hosts *hosts, struct list *list)
{
	struct names_found found = { .count = 0 };

	list->count = 0;
	if (hosts->has_names)
		names_list(&hosts->names, &found);
	for (size_t i = 0; i < hosts->url.host_count; i++) {
		struct place place = { .host = hosts->url.hosts[i].name,
			               .port = hosts->ports[i] };

		if (is_folder(place.host))
			list->places[list->count++] = place;
		else
			add_addresses(list, &found, i, place);
	}
}

/* Nothing, if there is no room. */
static bool append(char *text, size_t size, bool is_first, const char *piece)
{
	size_t at = strlen(text);

	if (at + strlen(piece) + 2 > size)
		return false;
	snprintf(text + at, size - at, "%s%s", is_first ? "" : ",", piece);
	return true;
}

/* Names are long, and their room is the least. */
static bool put(struct postgres_places *places, const struct place *place)
{
	bool is_first = places->count == 0;

	if (!append(places->hosts, sizeof(places->hosts), is_first, place->host))
		return false;
	(void)append(places->addresses, sizeof(places->addresses), is_first,
	             place->address);
	(void)append(places->ports, sizeof(places->ports), is_first, place->port);
	places->count++;
	return true;
}

void postgres_hosts_list(struct postgres_hosts *hosts, size_t first,
                         struct postgres_places *ret_places)
{
	struct list list;

	ret_places->count = 0;
	ret_places->hosts[0] = ret_places->addresses[0] = ret_places->ports[0] = '\0';
	collect(hosts, &list);
	for (size_t i = 0; i < list.count; i++)
		if (!put(ret_places, &list.places[(first + i) % list.count]))
			return;
}
