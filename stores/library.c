/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * library.c -- finds a library of gale's: beside whatever this was linked into, where the loader
 * looks, or where gale was installed.
 */
#define _GNU_SOURCE
#include "stores/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "stores/libdir.h" /* made by meson */

#define PATH_MOST 4096
#define WHY_MOST 100

/* Without the folder, for which a sentence has no room: "name: what is wrong". */
static const char *shown(const char *why)
{
	const char *end = strchr(why, ':');
	const char *folder = end ? memrchr(why, '/', (size_t)(end - why)) : NULL;

	return folder ? folder + 1 : why;
}

/* A file that is there may lack what it is linked with: then the loader names that, and the
 * sentence should, too. */
static void keep_why(const char *file, const char *why, char kept[WHY_MOST])
{
	if (kept[0] == '\0' || strstr(kept, file))
		snprintf(kept, WHY_MOST, "%s",
		         why ? shown(why) : "it cannot be loaded");
}

static void *load(const char *file, char why[WHY_MOST])
{
	static const char *const folders[] = { "$ORIGIN/", "", GALE_LIBDIR "/" };
	void *loaded = NULL;
	char path[PATH_MOST];

	why[0] = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !loaded; i++) {
		snprintf(path, sizeof(path), "%s%s", folders[i], file);
		loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (!loaded)
			keep_why(file, dlerror(), why);
	}
	return loaded;
}

const void *library_load(const struct library *library, struct url_fault *ret_fault)
{
	char why[WHY_MOST];
	void *loaded = load(library->file, why);
	const uint32_t *table;

	if (!loaded) {
		url_say(ret_fault, library->err,
		        "url: %s needs %s, and %s; install both: %s", library->scheme,
		        library->file, library->needs, why);
		return NULL;
	}
	table = dlsym(loaded, library->table);
	if (table && *table == library->interface)
		return table;
	url_say(
	    ret_fault, library->err,
	    "url: the %s that was found is of another gale; install the one of this",
	    library->file);
	return NULL;
}
