/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * corpus.c -- a fuzz target runs once over each file that was kept for it, without a fuzzer.
 *
 *     NAME_corpus FOLDER
 *
 * Any compiler and sanitizer can run this; libFuzzer, which looks for new inputs, needs a build of
 * its own.  A folder without files counts as a failure.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not every target has one. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Each input lies in memory of its size, so that a sanitizer sees a read behind its end. */
static int run(int folder, const char *name)
{
	int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	uint8_t *data = NULL;
	size_t size;
	int bad = -1;

	if (file < 0 || fstat(file, &stat) != 0)
		goto done;
	size = (size_t)stat.st_size;
	data = malloc(size > 0 ? size : 1);
	if (data == NULL || read(file, data, size) != (ssize_t)size)
		goto done;
	printf("%s\n", name); /* the last line names the input that ended the program */
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	bad = 0;
done:
	if (bad != 0)
		perror(name);
	free(data);
	if (file >= 0)
		close(file);
	return bad;
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	unsigned inputs = 0;
	int bad = 0;

	if (folder == NULL) {
		fprintf(stderr,
		        "usage: NAME_corpus FOLDER, a folder that can be read\n");
		return 2;
	}
	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	while ((entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		bad |= run(dirfd(folder), entry->d_name);
		inputs++;
	}
	closedir(folder);
	printf("%u inputs\n", inputs);
	return bad != 0 || inputs == 0;
}
