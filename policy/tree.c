/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tree.c -- libyaml's events become a tree. */
#define _GNU_SOURCE
#include "policy/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include <gale/policy.h>

#define DEPTH_MOST 8 /* a field of a tenant is at 5 */
#define PATH_ROOM 320
#define TEXT_ROOM 384

struct reader {
	yaml_parser_t parser;
	struct why *why;
	const char *text;
	size_t bytes;
};

/* ---- Nodes ----------------------------------------------------------------------- */

static struct node *node_new(struct node *above, const char *name, unsigned line)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->above = above;
	node->line = line;
	node->name = strdup(name);
	if (!node->name) {
		free(node);
		return NULL;
	}
	if (!above)
		return node;
	if (above->last)
		above->last->next = node;
	else
		above->first = node;
	above->last = node;
	above->count++;
	return node;
}

/* At most DEPTH_MOST calls deep. */
void tree_free(struct node *root)
{
	if (!root)
		return;
	for (struct node *node = root->first, *next; node; node = next) {
		next = node->next;
		tree_free(node);
	}
	free(root->name);
	free(root->value);
	free(root);
}

const struct node *node_find(const struct node *map, const char *name)
{
	const struct node *node = map ? map->first : NULL;

	while (node && strcmp(node->name, name) != 0)
		node = node->next;
	return node;
}

/* "limiters.api.limit"; of a long way only as much as there is room for. */
static void write_path(const struct node *node, char *path, size_t room)
{
	const struct node *way[DEPTH_MOST + 2];
	size_t count = 0, length = 0;

	for (; node && node->above && count < DEPTH_MOST + 2; node = node->above)
		way[count++] = node;
	path[0] = '\0';
	while (count > 0 && length < room) {
		struct quote quoted = why_quote(way[--count]->name);
		bool is_plain =
		    strlen(way[count]->name) <= 64 && !strstr(way[count]->name, "://");
		int added = snprintf(path + length, room - length, "%s%s",
		                     length > 0 ? "." : "",
		                     is_plain ? way[count]->name : quoted.is);

		length += added > 0 ? (size_t)added : 0;
	}
}

bool node_say(const struct node *node, struct why *why, enum gale_err err,
              const char *format, ...)
{
	char path[PATH_ROOM], text[TEXT_ROOM];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	write_path(node, path, sizeof(path));
	return why_say(why, err, node->line, path, "%s", text);
}

/* ---- What libyaml says ----------------------------------------------------------- */

static bool yaml_say(struct reader *reader, size_t line, const char *what)
{
	return why_say(reader->why, GALE_ERR_POLICY_TEXT, (unsigned)line, "yaml", "%s",
	               what);
}

static size_t line_of(const struct reader *reader, size_t offset)
{
	size_t line = 1;

	for (size_t i = 0; i < offset && i < reader->bytes; i++)
		line += reader->text[i] == '\n';
	return line;
}

/* Two common mistakes have words of their own. */
static bool say_problem(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *problem = parser->problem ? parser->problem : "cannot be read";
	size_t line = parser->problem_mark.line + 1;
	char text[TEXT_ROOM];

	if (parser->error == YAML_MEMORY_ERROR)
		return why_no_memory(reader->why);
	if (parser->error == YAML_READER_ERROR) {
		snprintf(text, sizeof(text), "%s: write it in UTF-8", problem);
		return yaml_say(reader, line_of(reader, parser->problem_offset), text);
	}
	if (strstr(problem, "mapping values are not allowed"))
		return yaml_say(
		    reader, line,
		    "a colon is not allowed here: put a value that has one at its end "
		    "or before a space in quotes, as in \"memory:\"");
	if (parser->problem_mark.index < reader->bytes &&
	    reader->text[parser->problem_mark.index] == '\t')
		return yaml_say(reader, line,
		                "a tab is not allowed here: write spaces");
	snprintf(text, sizeof(text),
	         "%s%s%s: look for a quote, a bracket or a space that is missing",
	         parser->context ? parser->context : "", parser->context ? ", " : "",
	         problem);
	return yaml_say(reader, line, text);
}

/* What is no part of a policy; NULL: it may be one. */
static const char *foreign(const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return "an alias (*) is not allowed: write the value itself";
	case YAML_SEQUENCE_START_EVENT:
		return "a list is not allowed: write names and values, as in limit: "
		       "100/s";
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor)
		return "an anchor (&) is not allowed: write the value wherever it is "
		       "needed";
	return tag ? "a tag (!) is not allowed: write the value alone" : NULL;
}

static bool has_control(const yaml_event_t *event)
{
	const yaml_char_t *value = event->data.scalar.value;

	for (size_t i = 0; i < event->data.scalar.length; i++)
		if (value[i] < ' ' || value[i] == 0x7f)
			return true;
	return false;
}

static bool next_event(struct reader *reader, yaml_event_t *ret_event)
{
	if (!yaml_parser_parse(&reader->parser, ret_event))
		return say_problem(reader);
	return true;
}

/* ---- The tree -------------------------------------------------------------------- */

/* With the path of where it is, if it is anywhere. */
static bool refuse(struct reader *reader, const struct node *at, size_t line,
                   const char *what)
{
	struct node here = *at;

	if (!at->above)
		return yaml_say(reader, line, what);
	here.line = (unsigned)line;
	return node_say(&here, reader->why, GALE_ERR_POLICY_TEXT, "%s", what);
}

static int by_name(const void *a, const void *b)
{
	const struct node *const *one = a, *const *other = b;
	int order = strcmp((*one)->name, (*other)->name);

	if (order != 0)
		return order;
	return (*one)->line < (*other)->line ? -1 : (*one)->line > (*other)->line;
}

/* NODE-1 */
static bool check_names(struct reader *reader, const struct node *map)
{
	const struct node **nodes;
	size_t count = 0;
	bool good = true;

	if (map->count < 2)
		return true;
	nodes = calloc(map->count, sizeof(*nodes));
	if (!nodes)
		return why_no_memory(reader->why);
	for (const struct node *node = map->first; node; node = node->next)
		nodes[count++] = node;
	qsort(nodes, count, sizeof(*nodes), by_name);
	for (size_t i = 1; i < count && good; i++)
		if (strcmp(nodes[i - 1]->name, nodes[i]->name) == 0)
			good = node_say(nodes[i], reader->why, GALE_ERR_POLICY_TEXT,
			                "is given twice, first in line %u: remove one",
			                nodes[i - 1]->line);
	free(nodes);
	return good;
}

static bool read_map(struct reader *reader, struct node *map, int depth);

static bool read_scalar(struct reader *reader, struct node *node,
                        const yaml_event_t *event)
{
	size_t line = event->start_mark.line + 1;

	if (has_control(event))
		return refuse(reader, node, line,
		              "has a line break or another control character: write it "
		              "in one line");
	if (event->data.scalar.length == 0)
		return refuse(reader, node, node->line,
		              "has no value: write one, or remove the name");
	node->value = strdup((const char *)event->data.scalar.value);
	return node->value || why_no_memory(reader->why);
}

static bool read_value(struct reader *reader, struct node *node, int depth)
{
	yaml_event_t event;
	bool good;

	if (!next_event(reader, &event))
		return false;
	if (foreign(&event))
		good = refuse(reader, node, event.start_mark.line + 1, foreign(&event));
	else if (event.type == YAML_SCALAR_EVENT)
		good = read_scalar(reader, node, &event);
	else if (depth >= DEPTH_MOST)
		good = refuse(reader, node, event.start_mark.line + 1,
		              "is deeper than any field of a policy: remove it");
	else
		good = read_map(reader, node, depth + 1);
	yaml_event_delete(&event);
	return good;
}

static bool read_entry(struct reader *reader, struct node *map,
                       const yaml_event_t *name, int depth)
{
	size_t line = name->start_mark.line + 1;
	struct node *node;

	if (foreign(name))
		return refuse(reader, map, line, foreign(name));
	if (name->type != YAML_SCALAR_EVENT || name->data.scalar.length == 0)
		return refuse(reader, map, line,
		              "a name is missing here: write one before the colon");
	if (has_control(name))
		return refuse(reader, map, line, "a name has a control character");
	node = node_new(map, (const char *)name->data.scalar.value, (unsigned)line);
	if (!node)
		return why_no_memory(reader->why);
	return read_value(reader, node, depth);
}

/* Behind its beginning. */
static bool read_map(struct reader *reader, struct node *map, int depth)
{
	for (;;) {
		yaml_event_t event;
		bool is_end, good;

		if (!next_event(reader, &event))
			return false;
		is_end = event.type == YAML_MAPPING_END_EVENT;
		good = is_end || read_entry(reader, map, &event, depth);
		yaml_event_delete(&event);
		if (!good)
			return false;
		if (is_end)
			return check_names(reader, map);
	}
}

/* ---- The document ---------------------------------------------------------------- */

/* The event, if it is of this type. */
static bool expect(struct reader *reader, yaml_event_type_t type, const char *otherwise)
{
	yaml_event_t event;
	bool good;

	if (!next_event(reader, &event))
		return false;
	good = event.type == type;
	if (!good)
		(void)yaml_say(reader, event.start_mark.line + 1,
		               foreign(&event) ? foreign(&event) : otherwise);
	yaml_event_delete(&event);
	return good;
}

static bool expect_end(struct reader *reader)
{
	yaml_event_t event;
	bool good;

	if (!next_event(reader, &event))
		return false;
	good =
	    event.type == YAML_DOCUMENT_END_EVENT && !event.data.document_end.implicit;
	if (!good)
		(void)yaml_say(reader, event.end_mark.line + 1,
		               "the last line must be \"...\": without it the file "
		               "may be only half written");
	yaml_event_delete(&event);
	return good;
}

static bool read_document(struct reader *reader, struct node *root)
{
	static const char empty[] =
	    "the policy is empty: write what it defines, as in limiters:";

	return expect(reader, YAML_STREAM_START_EVENT, empty) &&
	       expect(reader, YAML_DOCUMENT_START_EVENT, empty) &&
	       expect(reader, YAML_MAPPING_START_EVENT,
	              "a policy begins with a name and a colon, as in limiters:") &&
	       read_map(reader, root, 1) && expect_end(reader) &&
	       expect(reader, YAML_STREAM_END_EVENT,
	              "a second document begins here: a policy is one, so remove it");
}

/* libyaml would stop at some of them, and take others for the end of a file. */
static bool check_bytes(struct reader *reader)
{
	const char *nul;

	if (reader->bytes > GALE_POLICY_BYTES_MAX)
		return why_say(reader->why, GALE_ERR_POLICY_TEXT, 0, "",
		               "is larger than %u bytes: define less",
		               (unsigned)GALE_POLICY_BYTES_MAX);
	nul = memchr(reader->text, '\0', reader->bytes);
	if (nul)
		return yaml_say(
		    reader, line_of(reader, (size_t)(nul - reader->text)),
		    "a NUL is not allowed: write the policy as text in UTF-8");
	return true;
}

bool tree_read(const char *text, size_t bytes, struct why *why, struct node **ret_root)
{
	struct reader reader = { .why = why, .text = text, .bytes = bytes };
	struct node *root;
	bool good;

	if (!check_bytes(&reader))
		return false;
	root = node_new(NULL, "", 1);
	if (!root || !yaml_parser_initialize(&reader.parser)) {
		tree_free(root);
		return why_no_memory(why);
	}
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text,
	                             bytes);
	good = read_document(&reader, root);
	yaml_parser_delete(&reader.parser);
	if (good)
		*ret_root = root;
	else
		tree_free(root);
	return good;
}
