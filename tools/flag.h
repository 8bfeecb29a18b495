/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flag.h -- one table for a command: how a flag is spelled, read, bounded and explained.
 *
 * Pure: reads no environment, prints nothing, keeps pointers into argv.
 *
 * Numbers are whole, with k for thousands and M for millions.  Durations are whole
 * numbers with us, ms, s, m or h.
 */
#ifndef TOOLS_FLAG_H
#define TOOLS_FLAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct flag {
	const char *name;
	const char *takes; /* NULL: no value */
	const char *preset;
	const char *allowed;
	const char *help;
	/* Into the struct that the command keeps its flags in. */
	bool (*read)(const struct flag *flag, const char *text, void *into);
	size_t at; /* of the uint64_t in it, for those below */
	uint64_t least;
	uint64_t most;
	uint64_t bare_us;         /* durations: of a number alone; 0: refused */
	const char *const *words; /* ends with NULL */
};

/* A word that is no flag, and has to be there. */
struct flag_operand {
	const char *is; /* NULL: it is none */
	size_t at;      /* of the const char * in the struct */
};
#define FLAG_OPERANDS_MOST 3

struct flag_table {
	const struct flag *flags;
	size_t count;
	struct flag_operand operands[FLAG_OPERANDS_MOST]; /* in their order */
};

bool flag_read_number(const struct flag *flag, const char *text, void *into);
bool flag_read_duration(const struct flag *flag, const char *text, void *into);
/* The place of the word among its words. */
bool flag_read_word(const struct flag *flag, const char *text, void *into);
/* The text, which is not empty, as a const char *. */
bool flag_read_text(const struct flag *flag, const char *text, void *into);
/* 1. */
bool flag_read_set(const struct flag *flag, const char *text, void *into);

enum flags_result {
	FLAGS_RUN,
	FLAGS_HELP,
	FLAGS_BAD,
};

/* One line without its end: the flag, what it was given, what is allowed. */
struct flags_error {
	char text[640];
};

/* argv as after the command; a flag that comes again counts as it was last.  Into has
 * been zeroed; unless all is well, it is of no use. */
enum flags_result flags_read(const struct flag_table *table, int argc,
                             char *const *argv, void *into,
                             struct flags_error *ret_error);

/* FLAGS_BAD, and why. */
__attribute__((format(printf, 2, 3))) enum flags_result
flags_bad(struct flags_error *error, const char *format, ...);

/* For a command without flags. */
enum flags_result flags_read_none(int argc, char *const *argv,
                                  struct flags_error *ret_error);

/* "word": unknown; there are such and such. */
enum flags_result flags_unknown(struct flags_error *error, const char *word,
                                const char *there_are);

/* The list of flags, --help too, with what each takes and what it is when not given. */
void flags_explain(const struct flag_table *table, FILE *out);

/* "250", "10k", "2M". */
bool flags_number(const char *text, uint64_t *ret_number);

/* "250ms", "1s", "2m"; a bare number is in units of bare_us, or refused if that is 0.
 */
bool flags_duration(const char *text, uint64_t bare_us, uint64_t *ret_us);

#endif
