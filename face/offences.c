/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offences.c -- the tables of keys that are refused most, and a text of them for operators.
 *
 * Threads   offence_note_as: the seat's own.  gale_offenders_write: any.
 */
#include "face/offences.h"

#include <inttypes.h>
#include <string.h>

#include "engine/check.h"
#include "face/lend.h"
#include "face/text.h"

static void note(struct gale_limiter *limiter, const void *key, size_t key_len,
                 uint64_t weight) ON(limiter->latch)
{
	offenders_note(&limiter->offenders, local_hash(&limiter->lender, key, key_len),
	               key, key_len, weight);
}

void offence_note_as(struct gale_limiter *limiter, const void *key, size_t key_len,
                     uint64_t weight)
{
	if (!latch_try(&limiter->latch))
		return;
	note(limiter, key, key_len, weight);
	latch_drop(&limiter->latch);
}

/* ---- The text --------------------------------------------------------------------- */

static void add_table(struct offenders *sum, struct gale_limiter *limiter)
{
	struct offenders offenders;

	latch_take(&limiter->latch);
	offenders = limiter->offenders;
	latch_drop(&limiter->latch);
	gale_audit(offenders_valid(&offenders));
	offenders_add(sum, &offenders);
}

/* Of all limiters of its name, whose keys have the same hashes. */
static struct offenders offenders_of(struct gale_limiter *limiter)
{
	const struct list *all = &limiter->locked.same;
	struct offenders sum = { 0 };

	add_table(&sum, limiter);
	for (const struct list *at = all->next; at != all; at = at->next)
		add_table(&sum, list_item(at, struct gale_limiter, locked.same));
	offenders_rank(&sum);
	return sum;
}

/* A string of JSON in which each character is a byte. */
static void say_bytes(struct text *text, const uint8_t *bytes, size_t count)
{
	text_say(text, "\"");
	for (size_t i = 0; i < count; i++) {
		bool is_plain = bytes[i] >= ' ' && bytes[i] <= '~' && bytes[i] != '"' &&
		                bytes[i] != '\\';

		text_say(text, is_plain ? "%c" : "\\u%04x", bytes[i]);
	}
	text_say(text, "\"");
}

static void say_offender(struct text *text, const struct lender *lender,
                         const struct offender *row)
{
	size_t kept = row->key_len < OFFENDERS_KEY ? row->key_len : OFFENDERS_KEY;

	text_say(text, "{\"limiter\":");
	say_bytes(text, (const uint8_t *)lender->name, lender->name_len);
	text_say(text, ",\"key\":");
	say_bytes(text, row->key, kept);
	text_say(text,
	         ",\"key_bytes\":%u,\"refused\":%" PRIu64 ",\"over\":%" PRIu64 "}\n",
	         row->key_len, row->count, row->over);
}

static void say_limiter(struct text *text, struct gale_limiter *limiter)
{
	const struct offenders offenders = offenders_of(limiter);

	for (size_t i = 0; i < OFFENDERS_ROWS && offenders.rows[i].count > 0; i++)
		say_offender(text, &limiter->lender, &offenders.rows[i]);
}

enum gale_err gale_offenders_write(struct gale_runtime *runtime, struct gale_sink *sink)
{
	struct text text = { .sink = sink, .works = true, .length = 0 };
	struct gale_limiter *limiter;

	if (!runtime)
		return GALE_ERR_RUNTIME;
	if (!lifeline_holds(&runtime->lifeline))
		return GALE_ERR_FORKED;
	if (!sink || !sink->write)
		return GALE_ERR_SINK;
	lock_take(&runtime->lock);
	for (limiter = score_next_name(runtime, 0); limiter;
	     limiter = score_next_name(runtime, limiter->locked.number + 1))
		say_limiter(&text, limiter);
	text_end(&text);
	lock_drop(&runtime->lock);
	return text.works ? GALE_ERR_OK : GALE_ERR_SINK;
}
