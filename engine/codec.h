/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * codec.h -- the words of a state as bytes: what a store keeps.
 *
 *     byte  0      1      2..3      4..7          8..15          16 ...
 *           1      kind   zero      word count    fingerprint    the words
 *
 * All numbers little-endian.  The first byte is the version of this layout.
 *
 * Invariants
 *
 *   CODEC-1  What state_decode accepts is valid (rule_valid), and encodes to the same
 *            bytes.
 *   CODEC-2  Bytes of another rule, or of other parameters, are refused by name. (L9)
 */
#ifndef ENGINE_CODEC_H
#define ENGINE_CODEC_H

#include "engine/rule.h"

#define STATE_HEAD_BYTES 16

enum state_err {
	STATE_OK,
	STATE_SHORT,    /* fewer or more bytes than the head announces */
	STATE_VERSION,  /* of a layout that this build does not know */
	STATE_CHANGED,  /* of another kind of rule, or of other parameters */
	STATE_TOO_LONG, /* more words than there is room for */
	STATE_INVALID,  /* words that no steps lead to */
};

size_t state_bytes(size_t words);

/* out has room for state_bytes(rule_words(rule, words)); returns how many it wrote. */
size_t state_encode(const struct rule *rule, const uint64_t *words, uint8_t *out);

/* words has room for room words; they are unspecified unless STATE_OK. */
enum state_err state_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            uint64_t *words, size_t room);

#endif
