/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * structured.h -- reads lists of strings with parameters, as RFC 9651 writes them.
 *
 * It is as strict as the RFC's section 4.1 on writing: one way to write each value, and
 * nothing that a reader would only tolerate.  Items are strings.  Parameters are integers
 * or strings: no other type is in a RateLimit field.
 */
#ifndef TESTS_SUPPORT_STRUCTURED_H
#define TESTS_SUPPORT_STRUCTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRUCTURED_TEXT 80
#define STRUCTURED_PARAMETERS 4

struct structured_parameter {
	char key[STRUCTURED_TEXT];
	bool is_text;
	char text[STRUCTURED_TEXT];
	int64_t number;
};

struct structured_item {
	char text[STRUCTURED_TEXT];
	struct structured_parameter parameters[STRUCTURED_PARAMETERS];
	size_t parameter_count;
};

/* The value of a field, from its first byte to its last; false: it is not such a list, or
 * it has more than most items. */
bool structured_read(const char *value, struct structured_item *items, size_t most,
                     size_t *ret_count);

/* NULL: the item has no parameter of that key. */
const struct structured_parameter *
structured_parameter_of(const struct structured_item *item, const char *key);

#endif
