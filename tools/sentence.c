/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sentence.c -- one line, whatever is put in. */
#include "tools/sentence.h"

#include <stdarg.h>
#include <stdio.h>

bool sentence_say(struct sentence *sentence, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence->is, sizeof(sentence->is), format, args);
	va_end(args);
	for (char *at = sentence->is; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return false;
}
