/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * source.c -- reads a regular file of at most GALE_POLICY_BYTES_MAX bytes.
 *
 * A pipe or a terminal could hold the caller up, so neither is read.
 */
#define _GNU_SOURCE
#include "policy/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gale/policy.h>

static bool say(struct why *why, const char *what)
{
	return why_say(why, GALE_ERR_POLICY_FILE, 0, "", "%s", what);
}

static bool say_errno(struct why *why, int error)
{
	char text[64];

	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return say(
		    why, "there is no such file: look for a typing error in the path");
	case EACCES:
	case EPERM:
		return say(why, "this process may not read it: give its user the right "
		                "to, as with chmod");
	default:
		return why_say(why, GALE_ERR_POLICY_FILE, 0, "",
		               "it cannot be read: %s",
		               strerror_r(error, text, sizeof(text)));
	}
}

static bool check(const struct stat *stat, struct why *why)
{
	if (S_ISDIR(stat->st_mode))
		return say(why, "it is a directory: name the file in it");
	if (!S_ISREG(stat->st_mode))
		return say(why, "it is no regular file: write the policy to one");
	if (stat->st_size > GALE_POLICY_BYTES_MAX)
		return why_say(why, GALE_ERR_POLICY_FILE, 0, "",
		               "is larger than %u bytes: define less",
		               (unsigned)GALE_POLICY_BYTES_MAX);
	return true;
}

/* So many bytes as there were when it was opened; false: there are others now. */
static bool read_all(int file, char *text, size_t bytes, int *ret_error)
{
	size_t have = 0;

	*ret_error = 0;
	while (have < bytes) {
		ssize_t more = read(file, text + have, bytes - have);

		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0) {
			*ret_error = more < 0 ? errno : 0;
			return false;
		}
		have += (size_t)more;
	}
	return true;
}

static bool is_as_before(int file, const struct stat *before)
{
	struct stat now;

	return fstat(file, &now) == 0 && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static bool read_open(int file, struct why *why, char **ret_text, size_t *ret_bytes)
{
	struct stat stat;
	char *text;
	int error;

	if (fstat(file, &stat) != 0)
		return say_errno(why, errno);
	if (!check(&stat, why))
		return false;
	text = malloc((size_t)stat.st_size + 1);
	if (!text)
		return why_no_memory(why);
	if (read_all(file, text, (size_t)stat.st_size, &error) &&
	    is_as_before(file, &stat)) {
		*ret_text = text;
		*ret_bytes = (size_t)stat.st_size;
		return true;
	}
	free(text);
	if (error)
		return say_errno(why, error);
	return say(why, "it has changed while it was read: write a new file, and "
	                "rename it to this one");
}

bool source_read(const char *path, struct why *why, char **ret_text, size_t *ret_bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool good;

	if (file < 0)
		return say_errno(why, errno);
	good = read_open(file, why, ret_text, ret_bytes);
	close(file);
	return good;
}
