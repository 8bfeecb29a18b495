/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.c -- answers as HTTP says them.
 *
 * A text is written into the host's buffer, piece by piece.  The first piece that does not
 * fit fills the page, and what follows does not fit either: so only the end of a function
 * looks whether all of it did.
 *
 * Threads   Any.
 */
#define _GNU_SOURCE
#include <gale/http.h>

#include <string.h>

#define INTEGER_MAX UINT64_C(999999999999999) /* of a structured field */
#define DIGITS_MOST 20
#define SECOND_US 1000000

#define TYPES "https://iana.org/assignments/http-problem-types#"

/* ---- Pages ------------------------------------------------------------------------ */

struct page {
	char *buf;
	size_t room;
	size_t length; /* room: it is full */
};

static void put_bytes(struct page *page, const char *bytes, size_t count)
{
	if (count < page->room - page->length) { /* and a final 0 */
		memcpy(page->buf + page->length, bytes, count);
		page->length += count;
	} else {
		page->length = page->room;
	}
}

static void put(struct page *page, const char *text)
{
	put_bytes(page, text, strlen(text));
}

static void put_number(struct page *page, uint64_t number)
{
	char digits[DIGITS_MOST];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	put_bytes(page, digits + first, sizeof(digits) - first);
}

/* A string of a structured field is one of JSON, too, if it is printable ASCII. */
static void put_string(struct page *page, const char *name)
{
	put(page, "\"");
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			put(page, "\\");
		put_bytes(page, name, 1);
	}
	put(page, "\"");
}

static void put_line(struct page *page, const char *name, uint64_t number)
{
	put(page, name);
	put_number(page, number);
	put(page, "\r\n");
}

static enum gale_err end_page(const struct page *page, size_t *ret_length)
{
	if (page->length == page->room) {
		if (page->room > 0)
			page->buf[0] = '\0';
		return GALE_ERR_ROOM;
	}
	page->buf[page->length] = '\0';
	*ret_length = page->length;
	return GALE_ERR_OK;
}

/* ---- What the host gives ---------------------------------------------------------- */

static bool is_printable(const char *name)
{
	size_t length = name ? strnlen(name, GALE_HTTP_NAME_MAX + 1) : 0;

	for (size_t i = 0; i < length; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return length > 0 && length <= GALE_HTTP_NAME_MAX;
}

static bool is_zero(const uint64_t reserved[4])
{
	return (reserved[0] | reserved[1] | reserved[2] | reserved[3]) == 0;
}

static enum gale_err check_policy(const struct gale_http_policy *policy)
{
	if (!policy->answer || (unsigned)policy->unit > GALE_HTTP_CONCURRENT_REQUESTS)
		return GALE_ERR_POLICY;
	if (!is_printable(policy->name))
		return GALE_ERR_POLICY_NAME;
	if (!is_zero(policy->reserved))
		return GALE_ERR_SIZE;
	return GALE_ERR_OK;
}

static enum gale_err check(const struct gale_http_policy *policies, size_t count,
                           const char *buf, size_t room, const size_t *ret_length)
{
	enum gale_err err = GALE_ERR_OK;

	if (!ret_length || (!buf && room > 0))
		return GALE_ERR_RET;
	if (!policies && count > 0)
		return GALE_ERR_POLICY;
	for (size_t i = 0; i < count && err == GALE_ERR_OK; i++)
		err = check_policy(&policies[i]);
	return err;
}

/* ---- What the answers say --------------------------------------------------------- */

static bool is_by_rule(enum gale_why why)
{
	return why == GALE_WHY_RULE || why == GALE_WHY_SPENT ||
	       why == GALE_WHY_TOO_MUCH;
}

int gale_http_status(const struct gale_answer *answer)
{
	switch (answer->verdict) {
	case GALE_ALLOW:
		return 200;
	case GALE_PENDING:
		return 0;
	case GALE_DENY:
		break;
	}
	return is_by_rule(answer->why) ? 429 : 503;
}

/* Two at a time, so that it takes no memory (COMBINE-1). */
static struct gale_answer combine(const struct gale_http_policy *policies, size_t count,
                                  size_t *ret_binding)
{
	struct gale_answer sum = gale_combine(NULL, 0, ret_binding), pair[2];
	size_t binding;

	for (size_t i = 0; i < count; i++) {
		pair[0] = *policies[*ret_binding].answer;
		pair[1] = *policies[i].answer;
		(void)gale_combine(pair, 2, &binding);
		if (binding == 1)
			*ret_binding = i;
		pair[0] = sum;
		sum = gale_combine(pair, 2, NULL);
	}
	return sum;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

/* How many seconds from now, rounded up. */
static uint64_t seconds_until(uint64_t us, const struct gale_http_options *options)
{
	uint64_t sum = us + at_most(options->later_us, UINT64_MAX - us);

	return sum / SECOND_US + (sum % SECOND_US > 0);
}

static bool has_limit(const struct gale_answer *answer)
{
	return answer->verdict != GALE_PENDING && answer->limit > 0;
}

/* Does the answer say what remains?  Of a cost that never passes nothing was looked up. */
static bool tells_remaining(const struct gale_answer *answer)
{
	return has_limit(answer) &&
	       (answer->why == GALE_WHY_RULE || answer->why == GALE_WHY_CREDIT ||
	        answer->why == GALE_WHY_SPENT || answer->why == GALE_WHY_RESTARTED);
}

/* A wait that helps. */
static bool tells_retry(const struct gale_answer *answer)
{
	return answer->verdict == GALE_DENY && answer->retry_after_us > 0 &&
	       answer->retry_after_us != GALE_NEVER;
}

static uint64_t quota_of(const struct gale_answer *answer)
{
	return at_most(answer->limit, INTEGER_MAX);
}

/* The draft's t is when there is more, which can be before all of it is there. */
static uint64_t reset_of(const struct gale_answer *answer,
                         const struct gale_http_options *options)
{
	uint64_t us = answer->reset_after_us;

	if (tells_retry(answer))
		us = at_most(us, answer->retry_after_us);
	return seconds_until(us, options);
}

static uint64_t remaining_of(const struct gale_answer *answer,
                             const struct gale_http_options *options)
{
	uint64_t seconds = reset_of(answer, options), most;

	if (options->remaining_per_second == 0 ||
	    __builtin_mul_overflow(options->remaining_per_second,
	                           seconds > 0 ? seconds : 1, &most))
		most = INTEGER_MAX;
	return at_most(at_most(answer->remaining, most), quota_of(answer));
}

/* ---- Headers ---------------------------------------------------------------------- */

static void put_policy(struct page *page, const struct gale_http_policy *policy)
{
	static const char *const units[] = { "", ";qu=\"content-bytes\"",
		                             ";qu=\"concurrent-requests\"" };

	put_string(page, policy->name);
	put(page, ";q=");
	put_number(page, quota_of(policy->answer));
	put(page, units[policy->unit]);
	if (policy->window_us < SECOND_US)
		return;
	put(page, ";w=");
	put_number(page, policy->window_us / SECOND_US);
}

static void put_policies(struct page *page, const struct gale_http_policy *policies,
                         size_t count)
{
	const char *before = "RateLimit-Policy: ", *end = "";

	for (size_t i = 0; i < count; i++) {
		if (!has_limit(policies[i].answer))
			continue;
		put(page, before);
		put_policy(page, &policies[i]);
		before = ", ";
		end = "\r\n";
	}
	put(page, end);
}

static void put_limits(struct page *page, const struct gale_http_policy *policies,
                       size_t count, const struct gale_http_options *options)
{
	const char *before = "RateLimit: ", *end = "";

	for (size_t i = 0; i < count; i++) {
		const struct gale_answer *answer = policies[i].answer;

		if (!tells_remaining(answer))
			continue;
		put(page, before);
		put_string(page, policies[i].name);
		put(page, ";r=");
		put_number(page, remaining_of(answer, options));
		put(page, ";t=");
		put_number(page, reset_of(answer, options));
		before = ", ";
		end = "\r\n";
	}
	put(page, end);
}

static void put_legacy(struct page *page, const struct gale_answer *answer,
                       const struct gale_http_options *options)
{
	uint64_t reset = reset_of(answer, options);

	if (!has_limit(answer))
		return;
	put_line(page, "X-RateLimit-Limit: ", quota_of(answer));
	if (!tells_remaining(answer))
		return;
	put_line(page, "X-RateLimit-Remaining: ", remaining_of(answer, options));
	put_line(page, "X-RateLimit-Reset: ",
	         at_most(options->legacy_utc_s, INTEGER_MAX) + reset);
}

enum gale_err gale_http_headers(const struct gale_http_policy *policies, size_t count,
                                const struct gale_http_options *options, char *buf,
                                size_t room, size_t *ret_length)
{
	static const struct gale_http_options none;
	struct page page = { .buf = buf, .room = room };
	enum gale_err err = check(policies, count, buf, room, ret_length);
	struct gale_answer all;
	size_t binding;

	if (buf && room > 0)
		buf[0] = '\0';
	if (err != GALE_ERR_OK)
		return err;
	if (!options)
		options = &none;
	if (!is_zero(options->reserved))
		return GALE_ERR_SIZE;
	all = combine(policies, count, &binding);
	put_policies(&page, policies, count);
	put_limits(&page, policies, count, options);
	if (tells_retry(&all))
		put_line(&page,
		         "Retry-After: ", seconds_until(all.retry_after_us, options));
	if (options->legacy && count > 0)
		put_legacy(&page, policies[binding].answer, options);
	return end_page(&page, ret_length);
}

/* ---- Problems --------------------------------------------------------------------- */

struct problem {
	const char *type;
	const char *title;
	bool has_policies; /* of which it tells the violated ones */
};

static const struct problem *problem_of(const struct gale_answer *answer)
{
	static const struct problem exceeded = {
		TYPES "quota-exceeded",
		"Request cannot be satisfied as assigned quota has been exceeded", true
	};
	static const struct problem reduced = {
		TYPES "temporary-reduced-capacity",
		"Request cannot be satisfied due to temporary server capacity "
		"constraints",
		true
	};
	static const struct problem other = { "about:blank", "Service Unavailable",
		                              false };

	if (is_by_rule(answer->why))
		return &exceeded;
	return gale_why_is_outage(answer->why) || answer->why > GALE_WHY_SLOT ? &reduced
	                                                                      : &other;
}

static void put_violated(struct page *page, const struct gale_http_policy *policies,
                         size_t count, int status)
{
	const char *before = "";

	put(page, ",\"violated-policies\":[");
	for (size_t i = 0; i < count; i++) {
		if (gale_http_status(policies[i].answer) != status)
			continue;
		put(page, before);
		put_string(page, policies[i].name);
		before = ",";
	}
	put(page, "]");
}

static void put_problem(struct page *page, const struct gale_http_policy *policies,
                        size_t count, const struct gale_answer *all)
{
	const struct problem *problem = problem_of(all);
	int status = gale_http_status(all);

	put(page, "{\"type\":");
	put_string(page, problem->type);
	put(page, ",\"title\":");
	put_string(page, problem->title);
	put(page, ",\"status\":");
	put_number(page, (uint64_t)status);
	if (problem->has_policies)
		put_violated(page, policies, count, status);
	put(page, "}");
}

enum gale_err gale_http_problem(const struct gale_http_policy *policies, size_t count,
                                char *buf, size_t room, size_t *ret_length)
{
	struct page page = { .buf = buf, .room = room };
	enum gale_err err = check(policies, count, buf, room, ret_length);
	struct gale_answer all;
	size_t binding;

	if (buf && room > 0)
		buf[0] = '\0';
	if (err != GALE_ERR_OK)
		return err;
	all = combine(policies, count, &binding);
	if (all.verdict == GALE_DENY)
		put_problem(&page, policies, count, &all);
	return end_page(&page, ret_length);
}
