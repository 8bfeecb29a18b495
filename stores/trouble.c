/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* trouble.c -- remembers texts by their hash; the host is told without the lock. */
#include "stores/trouble.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/memory.h"

#define WHERE_ROOM 64
#define LINE_ROOM 384

struct said {
	uint64_t text;    /* its hash */
	uint64_t trouble; /* the number of the one that it was said in */
	mono at;          /* 0: never */
};

struct trouble_server {
	struct trouble_server *next;
	char where[WHERE_ROOM];
	uint64_t trouble; /* how many there were */
	bool is_troubled;
	bool is_told; /* the host was told of this one */
	mono since;
	struct said said[TROUBLE_TEXTS];
};

void trouble_open(struct trouble *trouble)
{
	lock_init(&trouble->lock);
	trouble->locked.servers = NULL;
}

void trouble_close(struct trouble *trouble)
{
	struct trouble_server *next;

	for (struct trouble_server *at = trouble->locked.servers; at; at = next) {
		next = at->next;
		memory_give(trouble->allocator, at, sizeof(*at));
	}
	lock_destroy(&trouble->lock);
}

static struct trouble_server *find(struct trouble *trouble, const char *where)
    ON(trouble->lock)
{
	struct trouble_server *at = trouble->locked.servers;

	while (at && strncmp(at->where, where, WHERE_ROOM - 1) != 0)
		at = at->next;
	return at;
}

static struct trouble_server *find_or_make(struct trouble *trouble, const char *where)
    ON(trouble->lock)
{
	struct trouble_server *server = find(trouble, where);

	if (server)
		return server;
	server = memory_take(trouble->allocator, sizeof(*server));
	if (!server)
		return NULL;
	snprintf(server->where, sizeof(server->where), "%s", where);
	server->next = trouble->locked.servers;
	trouble->locked.servers = server;
	return server;
}

/* Where the text is remembered, or is to be: in place of the oldest. */
static struct said *place_of(struct trouble_server *server, uint64_t text)
{
	struct said *oldest = &server->said[0];

	for (size_t i = 0; i < TROUBLE_TEXTS; i++) {
		struct said *said = &server->said[i];

		if (said->at.ns > 0 && said->text == text)
			return said;
		if (said->at.ns < oldest->at.ns)
			oldest = said;
	}
	return oldest;
}

static bool is_new(const struct trouble_server *server, const struct said *said,
                   uint64_t text, mono now)
{
	uint64_t pause =
	    said->trouble == server->trouble ? TROUBLE_AGAIN_NS : TROUBLE_ANEW_NS;

	return said->at.ns == 0 || said->text != text ||
	       mono_reached(now, mono_after(said->at, pause));
}

/* Is it to be written? */
static bool note(struct trouble_server *server, enum gale_level level, const char *text,
                 mono now)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));
	struct said *said;

	if (level == GALE_LEVEL_ERROR && !server->is_troubled) {
		server->is_troubled = true;
		server->is_told = false;
		server->since = now;
		server->trouble++;
	}
	said = place_of(server, hash);
	if (!is_new(server, said, hash, now))
		return false;
	*said = (struct said){ hash, server->trouble, now };
	server->is_told |= level == GALE_LEVEL_ERROR;
	return true;
}

static void tell(const struct trouble *trouble, const char *where,
                 enum gale_level level, const char *text)
{
	char line[LINE_ROOM];

	snprintf(line, sizeof(line), "%s%s%s", where, where[0] != '\0' ? ": " : "",
	         text);
	trouble->say(trouble->sayer, level, line);
}

void trouble_tell(const struct trouble *trouble, enum gale_level level,
                  const char *text)
{
	if (trouble)
		tell(trouble, "", level, text);
}

void trouble_say(struct trouble *trouble, const char *where, enum gale_level level,
                 const char *text, mono now)
{
	struct trouble_server *server;
	bool is_to_be_told;

	if (!trouble || text[0] == '\0')
		return;
	lock_take(&trouble->lock);
	server = find_or_make(trouble, where);
	is_to_be_told = !server || note(server, level, text, now);
	lock_drop(&trouble->lock);
	if (is_to_be_told)
		tell(trouble, where, level, text);
}

void trouble_over(struct trouble *trouble, const char *where, mono now)
{
	struct trouble_server *server;
	bool is_to_be_told = false;
	mono since = now;
	char text[64];

	if (!trouble)
		return;
	lock_take(&trouble->lock);
	server = find(trouble, where);
	if (server && server->is_troubled) {
		server->is_troubled = false;
		is_to_be_told = server->is_told;
		since = mono_earlier(server->since, now); /* another shard's now */
	}
	lock_drop(&trouble->lock);
	if (!is_to_be_told)
		return;
	snprintf(text, sizeof(text), "it is well again, after %.1f s",
	         (double)(now.ns - since.ns) / 1e9);
	tell(trouble, where, GALE_LEVEL_INFO, text);
}
