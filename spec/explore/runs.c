/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* runs.c -- words, one after the other; whatever is not understood is said. */
#define _GNU_SOURCE
#include "spec/explore/runs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 400
#define SAID_MOST 200

static char said[SAID_MOST]; /* the last sentence */

__attribute__((format(printf, 1, 2))) static const char *say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	return said;
}

static const struct model *model_of(const char *name)
{
	for (size_t i = 0; models[i]; i++)
		if (strcmp(models[i]->name, name) == 0)
			return models[i];
	return NULL;
}

/* A word that begins so, or NULL; what follows otherwise. */
static const char *after(const char *word, const char *begin)
{
	size_t length = strlen(begin);

	return strncmp(word, begin, length) == 0 ? word + length : NULL;
}

static bool read_number(const char *text, long *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0';
}

/* ---- Constants ------------------------------------------------------------------- */

static void set_usual(struct run *run)
{
	const struct constant *constant = run->model->constants;

	for (size_t i = 0; constant[i].name; i++)
		run->c[i] = constant[i].usual;
}

static const char *set_constant(struct run *run, const char *word, const char *equals)
{
	const struct constant *constant = run->model->constants;
	size_t length = (size_t)(equals - word), i = 0;
	long value;

	while (constant[i].name && (strlen(constant[i].name) != length ||
	                            strncmp(constant[i].name, word, length) != 0))
		i++;
	if (!constant[i].name)
		return say("model %s has no constant called %.*s", run->model->name,
		           (int)length, word);
	if (!read_number(equals + 1, &value))
		return say("%s: not a number", word);
	if (value < constant[i].least || value > constant[i].most)
		return say("%s: must be from %ld to %ld", word, constant[i].least,
		           constant[i].most);
	if (run->given & UINT32_C(1) << i)
		return say("%s: given twice", word);
	run->given |= UINT32_C(1) << i;
	run->c[i] = value;
	return NULL;
}

static const char *add_constant(struct run *run, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t used = strlen(run->constants);

	if (!equals)
		return say("%s: a constant is NAME=NUMBER", word);
	if (used + strlen(word) + 2 > sizeof(run->constants))
		return "too many constants";
	snprintf(run->constants + used, sizeof(run->constants) - used, "%s%s",
	         used > 0 ? " " : "", word);
	return set_constant(run, word, equals);
}

static const char *read_world(struct run *run, char *text)
{
	char *rest = NULL;
	char *name = strtok_r(text, " \t\n", &rest);
	char *model = strtok_r(NULL, " \t\n", &rest), *word;
	const char *fault = NULL;

	if (!name || !model)
		return "a run is NAME MODEL CONSTANT=NUMBER...";
	if (strlen(name) >= sizeof(run->name))
		return say("%s: the name is too long", name);
	strcpy(run->name, name);
	run->model = model_of(model);
	if (!run->model)
		return say("no model is called %s", model);
	set_usual(run);
	while (!fault && (word = strtok_r(NULL, " \t\n", &rest)))
		fault = add_constant(run, word);
	return fault;
}

const char *run_read(const char *text, struct run *ret_run)
{
	char copy[LINE_MOST];

	*ret_run = (struct run){ .holds = true, .states = -1, .found = -1 };
	if (strlen(text) >= sizeof(copy))
		return "too long";
	strcpy(copy, text);
	return read_world(ret_run, copy);
}

/* ---- What must come out ---------------------------------------------------------- */

/* It is there, and no minus one, which would stand for any. */
static bool read_count(const char *text, long *ret_count)
{
	return read_number(text, ret_count) && *ret_count >= 0;
}

static const char *read_word(struct run *run, const char *word)
{
	const char *value;

	if (strcmp(word, "quick") == 0)
		run->quick = true;
	else if (strcmp(word, "live") == 0)
		run->live = true;
	else if ((value = after(word, "tlc=")) && value[0] != '\0')
		return NULL;
	else if ((value = after(word, "by=")) && value[0] != '\0' &&
	         strlen(value) < sizeof(run->by))
		strcpy(run->by, value);
	else if ((value = after(word, "states=")) && read_count(value, &run->states))
		return NULL;
	else if ((value = after(word, "found=")) && read_count(value, &run->found))
		return NULL;
	else
		return say("%s: not understood", word);
	return NULL;
}

static const char *read_outcome(struct run *run, char *text)
{
	char *rest = NULL;
	char *verdict = strtok_r(text, " \t\n", &rest), *word;
	const char *fault = NULL;

	if (!verdict ||
	    (strcmp(verdict, "holds") != 0 && strcmp(verdict, "refuted") != 0))
		return "after the colon: holds or refuted";
	run->holds = strcmp(verdict, "holds") == 0;
	while (!fault && (word = strtok_r(NULL, " \t\n", &rest)))
		fault = read_word(run, word);
	if (!fault && run->holds && run->by[0] != '\0')
		return "what holds is refuted by nothing";
	return fault;
}

static const char *read_line(char *line, struct run *run)
{
	char *colon = strchr(line, ':');
	const char *fault;

	if (!colon)
		return "no colon: what must come out?";
	*colon = '\0';
	fault = run_read(line, run);
	return fault ? fault : read_outcome(run, colon + 1);
}

static bool is_empty(const char *line)
{
	return line[strspn(line, " \t\n")] == '\0';
}

static bool is_known(const struct run *runs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(runs[i].name, name) == 0)
			return true;
	return false;
}

static const char *add_line(char *text, struct run *runs, size_t count)
{
	const char *fault = read_line(text, &runs[count]);

	if (!fault && is_known(runs, count, runs[count].name))
		return say("%s: there is a run of that name", runs[count].name);
	return fault;
}

static const char *read_lines(FILE *in, struct run **runs, size_t *count,
                              unsigned *line)
{
	char text[LINE_MOST];

	for (*line = 1; fgets(text, sizeof(text), in); ++*line) {
		struct run *more;
		const char *fault;

		if (!strchr(text, '\n') && !feof(in))
			return "the line is too long";
		text[strcspn(text, "#")] = '\0';
		if (is_empty(text))
			continue;
		more = realloc(*runs, (*count + 1) * sizeof(**runs));
		if (!more)
			return "no memory";
		*runs = more;
		fault = add_line(text, more, *count);
		if (fault)
			return fault;
		++*count;
	}
	*line = 0;
	return *count == 0 ? "there are no runs in it" : NULL;
}

const char *runs_read(const char *path, struct run **ret_runs, size_t *ret_count,
                      unsigned *ret_line)
{
	FILE *in = fopen(path, "r");
	const char *fault;

	*ret_runs = NULL;
	*ret_count = 0;
	*ret_line = 0;
	if (!in)
		return say("%s", strerror(errno));
	fault = read_lines(in, ret_runs, ret_count, ret_line);
	fclose(in);
	return fault;
}
