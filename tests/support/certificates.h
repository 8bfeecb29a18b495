/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * certificates.h -- certificates of the test's own, with their keys, as files.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_CERTIFICATES_H
#define TESTS_SUPPORT_CERTIFICATES_H

#include <openssl/x509.h>

#define CERTIFICATE_PATH 96

struct certificate {
	X509 *is;
	EVP_PKEY *pair;
	char cert[CERTIFICATE_PATH];
	char key[CERTIFICATE_PATH];
};

struct certificate_plan {
	const char *folder;
	const char *name;  /* of the files, and of whom it certifies */
	const char *names; /* "DNS:localhost,IP:127.0.0.1"; NULL: none, it is a CA */
	const struct certificate *by; /* CA; NULL: it signs itself */
	int from_days;                /* since when it is valid, from now on */
	int to_days;
};

void certificate_make(struct certificate *made, const struct certificate_plan *plan);

/* What a test of servers in TLS needs, in a folder of its own. */
struct certificates {
	char folder[64];
	struct certificate ca, other_ca;
	struct certificate good; /* by ca, as the others: of localhost and 127.0.0.1 */
	struct certificate elsewhere; /* of redis.example */
	struct certificate expired;   /* of localhost and 127.0.0.1 */
	struct certificate client;
};

void certificates_make(struct certificates *made);
void certificates_drop(struct certificates *made);
/* The same for one, whose folder stays. */
void certificate_drop(struct certificate *made);

#endif
