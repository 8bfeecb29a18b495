/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* structured.c -- each function takes what it reads off the front of the value. */
#include "tests/support/structured.h"

#include <string.h>

#define DIGITS_MOST 15

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool take(const char **at, const char *what)
{
	if (strncmp(*at, what, strlen(what)) != 0)
		return false;
	*at += strlen(what);
	return true;
}

static bool add(char text[STRUCTURED_TEXT], char c)
{
	size_t length = strlen(text);

	if (length + 1 >= STRUCTURED_TEXT)
		return false;
	text[length] = c;
	text[length + 1] = '\0';
	return true;
}

static bool take_text(const char **at, char text[STRUCTURED_TEXT])
{
	text[0] = '\0';
	if (!take(at, "\""))
		return false;
	while (!take(at, "\"")) {
		if (take(at, "\\") && **at != '"' && **at != '\\')
			return false;
		if (**at < 0x20 || **at > 0x7e || !add(text, **at))
			return false;
		(*at)++;
	}
	return true;
}

static bool take_number(const char **at, int64_t *ret_number)
{
	int sign = take(at, "-") ? -1 : 1;
	int digits = 0;

	*ret_number = 0;
	if (take(at, "0"))
		return sign > 0 && !is_digit(**at) && **at != '.';
	for (; is_digit(**at) && digits <= DIGITS_MOST; digits++)
		*ret_number = *ret_number * 10 + sign * (*(*at)++ - '0');
	return digits > 0 && digits <= DIGITS_MOST && **at != '.';
}

static bool take_key(const char **at, char key[STRUCTURED_TEXT])
{
	key[0] = '\0';
	if (!is_letter(**at) && **at != '*')
		return false;
	while (is_letter(**at) || is_digit(**at) || (**at && strchr("_-.*", **at)))
		if (!add(key, *(*at)++))
			return false;
	return true;
}

static bool take_parameter(const char **at, struct structured_parameter *parameter)
{
	if (!take_key(at, parameter->key) || !take(at, "="))
		return false;
	parameter->is_text = **at == '"';
	return parameter->is_text ? take_text(at, parameter->text)
	                          : take_number(at, &parameter->number);
}

static bool take_item(const char **at, struct structured_item *item)
{
	memset(item, 0, sizeof(*item));
	if (!take_text(at, item->text))
		return false;
	while (take(at, ";")) {
		struct structured_parameter next = { .is_text = false };

		if (item->parameter_count == STRUCTURED_PARAMETERS ||
		    !take_parameter(at, &next) ||
		    structured_parameter_of(item, next.key))
			return false;
		item->parameters[item->parameter_count++] = next;
	}
	return true;
}

bool structured_read(const char *value, struct structured_item *items, size_t most,
                     size_t *ret_count)
{
	*ret_count = 0;
	do {
		if (*ret_count == most || !take_item(&value, &items[*ret_count]))
			return false;
		++*ret_count;
	} while (take(&value, ", "));
	return *value == '\0';
}

const struct structured_parameter *
structured_parameter_of(const struct structured_item *item, const char *key)
{
	for (size_t i = 0; i < item->parameter_count; i++)
		if (strcmp(item->parameters[i].key, key) == 0)
			return &item->parameters[i];
	return NULL;
}
