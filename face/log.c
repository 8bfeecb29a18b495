/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log.c -- what is said to the host, and by whom. */
#include "face/face.h"

#include <stdio.h>

const char *gale_level_name(enum gale_level level)
{
	switch (level) {
	case GALE_LEVEL_INFO:
		return "info";
	case GALE_LEVEL_WARNING:
		return "warning";
	case GALE_LEVEL_ERROR:
		return "error";
	}
	return "unknown";
}

static void say(const struct gale_runtime *runtime, enum gale_level level,
                const char *source, const char *line)
{
	if (runtime->log)
		runtime->log->write(runtime->log, level, source, line);
}

void store_say(const struct gale_store *store, enum gale_level level, const char *line)
{
	char source[sizeof("store ") + LABEL_ROOM];

	snprintf(source, sizeof(source), "store %s", store->label);
	say(store->handle.runtime, level, source, line);
}

void limiter_say(const struct gale_limiter *limiter, enum gale_level level,
                 const char *line)
{
	char source[sizeof("limiter ") + GALE_NAME_MAX];

	snprintf(source, sizeof(source), "limiter %.*s", limiter->lender.name_len,
	         limiter->lender.name);
	say(limiter->handle.runtime, level, source, line);
}
