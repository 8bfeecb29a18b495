/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fake_time.c -- a word in a file that servers map, and the library that reads it there. */
#define _GNU_SOURCE
#include "tests/support/fake_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/atomic.h"
#include "tests/support/must.h"

static int create(char *ret_path, size_t size, const char *folder, const char *name)
{
	int fd;

	snprintf(ret_path, size, "%s/%s", folder, name);
	fd = open(ret_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	must(fd >= 0);
	return fd;
}

static void make_word(struct fake_time *fake)
{
	int fd = create(fake->file, sizeof(fake->file), fake->folder, "now");
	void *word;

	must(ftruncate(fd, sizeof(*fake->now_us)) == 0);
	word = mmap(NULL, sizeof(*fake->now_us), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	            0);
	must(word != MAP_FAILED);
	close(fd);
	fake->now_us = word;
}

static void copy_library(struct fake_time *fake)
{
	int to = create(fake->library, sizeof(fake->library), fake->folder, "clock.so");
	int from = open(FAKE_CLOCK, O_RDONLY | O_CLOEXEC);
	struct stat is;

	must(from >= 0 && fstat(from, &is) == 0);
	must(sendfile(to, from, NULL, (size_t)is.st_size) == is.st_size);
	close(from);
	close(to);
}

void fake_time_set(struct fake_time *fake, uint64_t now_us)
{
	store_relaxed(fake->now_us, now_us);
}

/* PostgreSQL runs as another user, which may not see where this was built. */
void fake_time_begin(struct fake_time *fake, uint64_t now_us)
{
	strcpy(fake->folder, "/tmp/gale-time-XXXXXX");
	must(mkdtemp(fake->folder) && chmod(fake->folder, 0755) == 0);
	make_word(fake);
	copy_library(fake);
	fake_time_set(fake, now_us);
	must(setenv("GALE_FAKE_CLOCK", fake->file, 1) == 0);
	must(setenv("TZ", "UTC", 1) == 0);
	must(setenv("LD_PRELOAD", fake->library, 1) == 0);
}

void fake_time_end(void)
{
	unsetenv("LD_PRELOAD");
	unsetenv("TZ");
	unsetenv("GALE_FAKE_CLOCK");
}

void fake_time_close(struct fake_time *fake)
{
	must(munmap(fake->now_us, sizeof(*fake->now_us)) == 0);
	must(unlink(fake->library) == 0 && unlink(fake->file) == 0);
	must(rmdir(fake->folder) == 0);
}
