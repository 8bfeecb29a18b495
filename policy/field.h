/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * field.h -- the fields of a policy, as tables: how each is written, and where it goes.
 *
 * A field has the name that it has in the struct of gale's, without its unit: quarantine for
 * quarantine_us.
 */
#ifndef POLICY_FIELD_H
#define POLICY_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "policy/entry.h"

/* How a field is written, and thereby what it is in an entry. */
enum written {
	AS_COUNT,    /* uint64_t */
	AS_COUNT32,  /* uint32_t */
	AS_DURATION, /* uint64_t, microseconds */
	AS_SPAN,     /* the same, or never */
	AS_RATE,     /* struct rate */
	AS_UNITS,    /* the units of a struct rate */
	AS_PERMILLE, /* uint32_t */
	AS_PPM,      /* uint32_t */
	AS_DECIMAL,  /* double */
	AS_RULE,     /* enum form */
	AS_WORD,     /* an enum: the place among the words */
	AS_BOOL,     /* bool */
	AS_NAME,     /* char[NAME_ROOM] */
	AS_URL,      /* char *, from malloc */
	AS_OFFSET,   /* int32_t, minutes */
	AS_INSTANT,  /* uint64_t, microseconds */
	AS_LEASE,    /* a mapping: fields_of_lease */
	AS_TENANTS,  /* a mapping: entries of their own */
};

/* What a reload may change of something that is open. */
enum changes {
	STAYS,
	CHANGES,
	UNITS_CHANGE, /* of a rate, but not its time */
};

struct field {
	const char *name;
	enum written written;
	enum changes changes;
	bool must;
	bool preset_is_0; /* in gale's struct 0 is the default, so it is no value */
	size_t at;        /* in struct entry */
	const char *const *words;
	/* Of no use, unless this other field of the mapping is given, and is one of these
	 * words; NULL: whatever it is. */
	const char *needs;
	const char *const *needs_one_of;
	unsigned part; /* a rule's: a bit; 0: of any rule */
};

struct fields {
	const struct field *fields;
	size_t count;
};

extern const struct fields fields_of[KIND_COUNT];
extern const struct fields fields_of_lease;

/* The parts of a form of rule. */
unsigned form_must(enum form form);
unsigned form_may(enum form form);
const char *form_name(enum form form);

/* Reads the value of a node into the entry. */
bool field_read(const struct field *field, const struct node *node, struct entry *entry,
                struct why *why);

/* Is it the same in both? */
bool field_same(const struct field *field, const struct entry *one,
                const struct entry *other);

#endif
