/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log.c -- lines to the host's log, each with the name of its sender. */
#include "face/face.h"

#include <stdio.h>

#include "runtime/probe.h"

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

void runtime_say(const struct gale_runtime *runtime, enum gale_level level,
                 const char *kind, const char *name, const char *line)
{
	char source[sizeof("limiter ") + LABEL_ROOM + GALE_NAME_MAX];

	snprintf(source, sizeof(source), "%s%s", kind, name);
	probe_said(level, source, line);
	if (runtime->log)
		runtime->log->write(runtime->log, level, source, line);
}

void store_say(const struct gale_store *store, enum gale_level level, const char *line)
{
	runtime_say(store->handle.runtime, level, "store ", store->label, line);
}

void limiter_say(const struct gale_limiter *limiter, enum gale_level level,
                 const char *line)
{
	char name[GALE_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", limiter->lender.name_len,
	         limiter->lender.name);
	runtime_say(limiter->handle.runtime, level, "limiter ", name, line);
}
