/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * codec.h -- the words of a state as bytes: what a store keeps.
 *
 *     byte  0      1      2..3      4..7          8..15          16 ...
 *           2      kind   zero      word count    fingerprint    the words
 *
 * All numbers little-endian.  The first byte is the version of this layout.  Version 1 had
 * a fingerprint of all parameters, and no period among the words of meters and pacers.
 *
 * Invariants
 *
 *   CODEC-1  What state_decode accepts is valid (rule_valid), and encodes to the same
 *            bytes.
 *   CODEC-2  Bytes that this rule has not written are refused by name, or converted.
 *            (L9, L15)
 */
#ifndef ENGINE_CODEC_H
#define ENGINE_CODEC_H

#include "engine/rule.h"

#define STATE_HEAD_BYTES 16

enum state_err {
	STATE_OK,
	STATE_SHORT,    /* fewer or more bytes than the head announces */
	STATE_VERSION,  /* of a layout that this build does not know */
	STATE_CHANGED,  /* of another rule */
	STATE_TOO_LONG, /* more words than there is room for */
	STATE_INVALID,  /* words that no steps lead to */
};

size_t state_bytes(size_t words);

/* out has room for state_bytes(rule_words(rule, words)); returns how many it wrote. */
size_t state_encode(const struct rule *rule, const uint64_t *words, uint8_t *out);

/* words has room for room words; they are unspecified unless STATE_OK. */
enum state_err state_decode(const struct rule *rule, const uint8_t *bytes, size_t count,
                            uint64_t *words, size_t room);

/*
 * As state_decode, for bytes that are STATE_CHANGED: what they mean under this rule.  It is
 * STATE_CHANGED again if that is nothing, as they are of another kind.
 */
enum state_err state_convert(const struct rule *rule, const uint8_t *bytes,
                             size_t count, uint64_t now_us, uint64_t *words,
                             size_t room);

#endif
