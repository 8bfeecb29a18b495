/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* certificates.c -- keys on P-256, which are made at once. */
#include "tests/support/certificates.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "tests/support/must.h"
#include "tests/support/scratch.h"

#define A_DAY (24L * 60 * 60)

static void extend(X509 *is, X509 *by, int what, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&ctx, by, is, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, what, value);
	must(extension && X509_add_ext(is, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

static void call(X509 *is, const char *name)
{
	must(X509_NAME_add_entry_by_txt(X509_get_subject_name(is), "CN", MBSTRING_ASC,
	                                (const unsigned char *)name, -1, -1, 0) == 1);
}

static void number(X509 *is)
{
	uint32_t serial;

	must(RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1);
	must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(is), serial) == 1);
}

static void sign(const struct certificate *made, const struct certificate_plan *plan)
{
	const struct certificate *by = plan->by ? plan->by : made;

	must(X509_set_issuer_name(made->is, X509_get_subject_name(by->is)) == 1);
	extend(made->is, by->is, NID_basic_constraints,
	       plan->names ? "critical,CA:FALSE" : "critical,CA:TRUE");
	if (plan->names)
		extend(made->is, by->is, NID_subject_alt_name, plan->names);
	must(X509_sign(made->is, by->pair, EVP_sha256()) > 0);
}

static void write_files(const struct certificate *made)
{
	FILE *cert = fopen(made->cert, "w"), *key = fopen(made->key, "w");

	must(cert && key);
	/* libpq takes no key that others may read. */
	must(fchmod(fileno(key), 0600) == 0);
	must(PEM_write_X509(cert, made->is) == 1);
	must(PEM_write_PrivateKey(key, made->pair, NULL, NULL, 0, NULL, NULL) == 1);
	must(fclose(cert) == 0 && fclose(key) == 0);
}

void certificate_make(struct certificate *made, const struct certificate_plan *plan)
{
	snprintf(made->cert, sizeof(made->cert), "%s/%s.pem", plan->folder, plan->name);
	snprintf(made->key, sizeof(made->key), "%s/%s.key", plan->folder, plan->name);
	made->pair = EVP_EC_gen("P-256");
	made->is = X509_new();
	must(made->pair && made->is && X509_set_version(made->is, 2) == 1);
	must(X509_gmtime_adj(X509_getm_notBefore(made->is), plan->from_days * A_DAY));
	must(X509_gmtime_adj(X509_getm_notAfter(made->is), plan->to_days * A_DAY));
	must(X509_set_pubkey(made->is, made->pair) == 1);
	number(made->is);
	call(made->is, plan->name);
	sign(made, plan);
	write_files(made);
}

void certificate_drop(struct certificate *made)
{
	must(unlink(made->cert) == 0 && unlink(made->key) == 0);
	X509_free(made->is);
	EVP_PKEY_free(made->pair);
}

/* ---- All that a test needs ------------------------------------------------------- */

#define HERE "DNS:localhost,IP:127.0.0.1"

static void make(struct certificate *it, const char *folder, const char *name,
                 const char *names, const struct certificate *by, int to_days)
{
	const struct certificate_plan plan = { .folder = folder,
		                               .name = name,
		                               .names = names,
		                               .by = by,
		                               .from_days = -10,
		                               .to_days = to_days };

	certificate_make(it, &plan);
}

void certificates_make(struct certificates *made)
{
	const char *folder = made->folder;

	scratch_make(made->folder, sizeof(made->folder), "certificates");
	make(&made->ca, folder, "ca", NULL, NULL, 10);
	make(&made->other_ca, folder, "other", NULL, NULL, 10);
	make(&made->good, folder, "good", HERE, &made->ca, 10);
	make(&made->elsewhere, folder, "elsewhere", "DNS:redis.example", &made->ca, 10);
	make(&made->expired, folder, "expired", HERE, &made->ca, -1);
	make(&made->client, folder, "client", "DNS:client", &made->ca, 10);
}

void certificates_drop(struct certificates *made)
{
	certificate_drop(&made->ca);
	certificate_drop(&made->other_ca);
	certificate_drop(&made->good);
	certificate_drop(&made->elsewhere);
	certificate_drop(&made->expired);
	certificate_drop(&made->client);
	must(rmdir(made->folder) == 0);
}
