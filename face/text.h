/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * text.h -- the text for Prometheus, written part by part to the host's sink.
 *
 * Threads   One at a time for a text.
 */
#ifndef FACE_TEXT_H
#define FACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>

#define TEXT_PAGE 2048 /* longer than anything that is said at once */

/* A text, and the end of it that is not written yet. */
struct text {
	struct gale_sink *sink;
	bool works; /* false: the sink takes no more */
	size_t length;
	char page[TEXT_PAGE];
};

__attribute__((format(printf, 2, 3))) void text_say(struct text *text,
                                                    const char *format, ...);
/* Between quotes.  One that is not UTF-8 would cost Prometheus the whole text. */
void text_label(struct text *text, const char *value);
/* metric{label="value: quotes and braces are left open. */
void text_series(struct text *text, const char *metric, const char *label,
                 const char *value);
/* A whole line of a metric with one label. */
void text_value(struct text *text, const char *metric, const char *label,
                const char *value, uint64_t count);
/* The lines before those of a metric. */
void text_family(struct text *text, const char *name, const char *type,
                 const char *help);
/* Writes the end to the sink. */
void text_end(struct text *text);

#endif
