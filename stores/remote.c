/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * remote.c -- the engine, run again on what a server has told.
 *
 *     told: before, now  -->  decoded, or not believed  -->  the engine  -->  the answer
 *     told: how a window was left, now  ------------------>
 *
 * The server has changed the value already; what the engine makes of its copy here is
 * thrown away, but for its answer.  When a value was only read, it is what the server
 * is asked to put in its place.
 */
#define _GNU_SOURCE
#include "stores/remote.h"

#include <endian.h>
#include <string.h>

#include "engine/check.h"
#include "engine/log.h"
#include "engine/window.h"

#define LENT_WORDS 21 /* of a pacer, the longest state that can be lent from */
#define ROW_BYTES (LEASE_ROW_WORDS * sizeof(uint64_t))
#define LOG_ENTRY_WORDS (sizeof(struct log_entry) / sizeof(uint64_t))

bool remote_can_step(const struct rule *rule)
{
	switch (rule->is.kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_QUOTA:
	case GALE_RULE_TOKEN_BUDGET:
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return true;
	default:
		return false;
	}
}

bool remote_can_lend(const struct rule *rule)
{
	return remote_can_step(rule) && lease_possible(rule);
}

bool remote_lends_windows(const struct rule *rule)
{
	return value_can_fold(rule);
}

bool remote_lends_ahead(const struct remote_job *job)
{
	return lease_has_ahead(job->rule) && (job->ask.ahead > 0 || job->ask.had > 0);
}

bool remote_same_rule(const struct rule *a, const struct rule *b)
{
	return a == b || (a->fingerprint == b->fingerprint &&
	                  memcmp(&a->is, &b->is, sizeof(a->is)) == 0);
}

/* ---- What was told --------------------------------------------------------------- */

static bool is_too_early(const struct remote_job *job, const struct remote_told *told)
{
	return told->now_us < job->not_before_us;
}

static enum store_result judge(enum state_err err)
{
	switch (err) {
	case STATE_OK:
		return STORE_DONE;
	case STATE_CHANGED:
		return STORE_CHANGED;
	default:
		return STORE_WRONG;
	}
}

static void begin_anew(struct value *value)
{
	memset(value->words, 0, value->room * sizeof(uint64_t));
	value->ledger = (struct ledger){ 0 };
	value->restarted = true;
}

/* A value of another rule is converted where it is read: it can be swapped then.  (L15) */
static enum store_result convert(const struct remote_job *job,
                                 const struct remote_told *told, struct value *value)
{
	enum state_err err = value_convert(job->rule, told->before.bytes,
	                                   told->before.count, told->now_us, value);

	if (err == STATE_CHANGED && job->rule->restarts) {
		begin_anew(value);
		return STORE_DONE;
	}
	return judge(err);
}

static enum store_result decode(const struct remote_job *job,
                                const struct remote_told *told, struct value *value)
{
	enum state_err err =
	    value_decode(job->rule, told->before.bytes, told->before.count, value);

	if (err == STATE_CHANGED && job->verb == REMOTE_READ)
		return convert(job, told, value);
	if (err == STATE_OK && lease_has_ahead(job->rule))
		(void)lease_turn(job->rule, value->words, &value->ledger, told->now_us,
		                 job->reserve_from_us);
	return judge(err);
}

static enum store_result decode_nothing(const struct remote_job *job,
                                        struct value *value)
{
	return judge(value_decode(job->rule, NULL, 0, value));
}

/* STORE_DONE: it can be explained, from the value as it was.  A job that has to wait is told of
 * none, and none is needed. */
static enum store_result read_told(const struct remote_job *job,
                                   const struct remote_told *told, struct value *value)
{
	switch (told->code) {
	case REMOTE_DONE:
		return decode(job, told, value);
	case REMOTE_WAITS:
		return is_too_early(job, told) ? decode_nothing(job, value)
		                               : STORE_WRONG;
	case REMOTE_MOVED:
	case REMOTE_CALENDAR:
		return STORE_BUSY;
	case REMOTE_CHANGED:
		return STORE_CHANGED;
	case REMOTE_GARBLED:
	case REMOTE_LENT: /* it is no value */
		break;
	}
	return STORE_WRONG;
}

/* ---- Steps and looks ------------------------------------------------------------- */

/* A cost that a fresh key denies is denied as it would; any other has to wait. */
static struct gale_answer early_answer(const struct remote_job *job,
                                       const struct remote_told *told, uint64_t cost)
{
	uint64_t words[VALUE_WORDS_MOST] = { 0 };
	uint64_t wait_us = job->not_before_us - told->now_us;
	struct gale_answer fresh = rule_step(job->rule, words, told->now_us, cost);

	if (fresh.verdict == GALE_DENY)
		return fresh;
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_QUARANTINE,
		.limit = fresh.limit,
		.reset_after_us =
		    fresh.reset_after_us > wait_us ? fresh.reset_after_us : wait_us,
		.retry_after_us = wait_us,
	};
}

static struct gale_answer step(const struct remote_job *job,
                               const struct remote_told *told, uint64_t *words,
                               uint64_t cost)
{
	if (is_too_early(job, told))
		return early_answer(job, told, cost);
	return rule_step(job->rule, words, told->now_us, cost);
}

enum store_result remote_explain_step(const struct remote_job *job,
                                      const struct remote_told *told,
                                      struct store_op *op)
{
	uint64_t words[LENT_WORDS];
	struct value value = { .words = words, .room = LENT_WORDS };
	enum store_result result = read_told(job, told, &value);

	gale_assert(remote_can_step(job->rule));
	if (result != STORE_DONE)
		return result;
	op->answer = step(job, told, words, job->cost);
	return op->answer.why == GALE_WHY_QUARANTINE ? STORE_QUARANTINE : STORE_DONE;
}

/* Nothing can be had before then, and then all. */
static struct gale_outlook early_outlook(const struct remote_job *job,
                                         const struct remote_told *told)
{
	uint64_t wait_us = job->not_before_us - told->now_us;

	return (struct gale_outlook){ .next_after_us = wait_us,
		                      .full_after_us = wait_us };
}

enum store_result remote_explain_look(const struct remote_job *job,
                                      const struct remote_told *told,
                                      const struct remote_desk *desk,
                                      struct store_op *op)
{
	struct value value = { .words = desk->words, .room = desk->room };
	enum store_result result = read_told(job, told, &value);

	if (result != STORE_DONE)
		return result;
	if (is_too_early(job, told) && op->verb == STORE_PEEK)
		op->answer = early_answer(job, told, 1);
	else if (is_too_early(job, told))
		op->forecast = early_outlook(job, told);
	else if (op->verb == STORE_PEEK)
		op->answer = rule_peek(job->rule, value.words, told->now_us);
	else
		op->forecast =
		    rule_forecast(job->rule, value.words, told->now_us, op->cost);
	return store_judge(op);
}

/* ---- Lending --------------------------------------------------------------------- */

static struct lease_grant early_grant(const struct remote_job *job,
                                      const struct remote_told *told)
{
	uint64_t words[LENT_WORDS] = { 0 };
	struct ledger ledger = { 0 };
	struct lease_grant grant =
	    lease_status(job->rule, words, &ledger, told->now_us, job->ask.node);
	struct lease_grant fresh =
	    lease_step(job->rule, words, &ledger, told->now_us, &job->ask);

	grant.left = 0;
	grant.retry_us =
	    fresh.units > 0 ? job->not_before_us - told->now_us : fresh.retry_us;
	return grant;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The units that this node was told of before count, too, in the window that it was told of;
 * true if that is news. L12 */
static bool remind(const struct remote_job *job, uint64_t now_us, uint64_t *words)
{
	struct window_state *state = (struct window_state *)words;
	uint64_t now = smaller(now_us, INSTANT_MAX_US), seen = job->seen;

	if (seen == 0 || seen > GALE_UNITS_MAX || !remote_lends_windows(job->rule) ||
	    window_start(job->rule, state, now) != job->seen_in)
		return false;
	if (state->start_us != job->seen_in)
		*state = (struct window_state){ .start_us = job->seen_in };
	if (state->used >= seen)
		return false;
	state->used = seen;
	return true;
}

static struct lease_grant lend(const struct remote_job *job,
                               const struct remote_told *told, struct value *value)
{
	if (is_too_early(job, told))
		return early_grant(job, told);
	return lease_step(job->rule, value->words, &value->ledger, told->now_us,
	                  &job->ask);
}

static enum store_result take_back(const struct remote_job *job,
                                   const struct remote_told *told, struct value *value)
{
	bool taken =
	    lease_give_back(job->rule, value->words, &value->ledger, told->now_us,
	                    job->ask.node, job->ask.number, job->tag, job->units);

	return taken ? STORE_DONE : STORE_NOT_BOOKED;
}

/* The value becomes what the request makes of it. */
static struct lend_answer explain(const struct remote_job *job,
                                  const struct remote_told *told, enum lend_verb verb,
                                  struct value *value)
{
	struct lend_answer answer = { .number = job->ask.number };

	gale_assert(lease_possible(job->rule));
	answer.result = read_told(job, told, value);
	if (answer.result != STORE_DONE)
		return answer;
	answer.restarted = value->restarted;
	switch (verb) {
	case LEND:
		answer.waits = is_too_early(job, told);
		answer.grant = lend(job, told, value);
		break;
	case LEND_BACK:
		answer.result = take_back(job, told, value);
		break;
	case LEND_STATUS:
		answer.grant = lease_status(job->rule, value->words, &value->ledger,
		                            told->now_us, job->ask.node);
	}
	return answer;
}

/* Most lends are told so, and need no value to be explained. */
static struct lend_answer explain_lent(const struct remote_job *job,
                                       const struct remote_told *told)
{
	struct lend_answer answer = { .number = job->ask.number };

	gale_assert(job->verb == REMOTE_LEND && remote_lends_windows(job->rule));
	if (!lease_was_whole(job->rule, &told->lent, told->now_us, &job->ask,
	                     &answer.grant))
		answer.result = STORE_WRONG;
	answer.waits = is_too_early(job, told);
	if (answer.waits)
		answer.grant = early_grant(job, told);
	return answer;
}

static enum lend_verb verb_of(const struct remote_job *job)
{
	switch (job->verb) {
	case REMOTE_LEND:
		return LEND;
	case REMOTE_BACK:
		return LEND_BACK;
	default:
		return LEND_STATUS;
	}
}

void remote_explain_lend(const struct remote_job *job, const struct remote_told *told,
                         struct lend_answer *ret_answer)
{
	uint64_t words[LENT_WORDS];
	struct value value = { .words = words, .room = LENT_WORDS };

	*ret_answer = told->code == REMOTE_LENT
	                  ? explain_lent(job, told)
	                  : explain(job, told, verb_of(job), &value);
}

/* ---- Beats ----------------------------------------------------------------------- */

static bool is_possible(const struct group_grant *grant)
{
	return grant->result <= GROUP_FULL && grant->share <= GROUP_SLOTS_MAX &&
	       grant->target <= GROUP_SLOTS_MAX && grant->limit <= GROUP_SLOTS_MAX &&
	       grant->members <= GROUP_MEMBERS_MAX && grant->epoch <= INSTANT_MAX_US;
}

/* So many words, each below 2^53. */
static bool read_words(const struct remote_told *told, uint64_t *words, size_t count)
{
	if (told->code != REMOTE_DONE || told->before.count != count * sizeof(*words))
		return false;
	for (size_t i = 0; i < count; i++) {
		memcpy(&words[i], told->before.bytes + i * sizeof(words[i]),
		       sizeof(words[i]));
		words[i] = le64toh(words[i]);
		if (words[i] > GALE_UNITS_MAX)
			return false;
	}
	return true;
}

enum store_result remote_explain_beat(const struct remote_told *told,
                                      struct store_beat *beat)
{
	uint64_t words[GROUP_GRANT_WORDS];

	if (!read_words(told, words, GROUP_GRANT_WORDS))
		return STORE_WRONG;
	memcpy(&beat->grant, words, sizeof(words));
	return is_possible(&beat->grant) ? STORE_DONE : STORE_WRONG;
}

/* ---- Claims ---------------------------------------------------------------------- */

/* engine/claim.h checks the rest. */
enum store_result remote_explain_claim(const struct remote_told *told,
                                       struct store_claim *claim)
{
	uint64_t words[POOL_ANSWER_WORDS];

	if (!read_words(told, words, POOL_ANSWER_WORDS))
		return STORE_WRONG;
	memcpy(&claim->answer, words, sizeof(words));
	return claim->answer.result <= POOL_WRONG ? STORE_DONE : STORE_WRONG;
}

/* ---- Swaps ----------------------------------------------------------------------- */

/* Only a log can be longer than a fresh state, and it grows by an entry. */
size_t remote_words(const struct rule *rule, size_t bytes)
{
	if (rule->is.kind != GALE_RULE_SLIDING_LOG)
		return rule->words;
	return bytes / sizeof(uint64_t) + rule->words + LOG_ENTRY_WORDS;
}

size_t remote_bytes_most(const struct rule *rule, size_t bytes)
{
	return state_bytes(remote_words(rule, bytes)) + (LEASE_ROWS + 1) * ROW_BYTES;
}

size_t remote_value_most(const struct rule *rule)
{
	if (rule->is.kind != GALE_RULE_SLIDING_LOG)
		return state_bytes(rule->words) + (LEASE_ROWS + 1) * ROW_BYTES;
	return state_bytes(rule->words + GALE_LOG_LIMIT_MAX * LOG_ENTRY_WORDS);
}

/* Do these bytes say what the server told, which may be folded? */
static bool is_as_before(const struct remote_job *job, struct remote_bytes before,
                         const uint8_t *bytes, size_t count)
{
	uint8_t folded[VALUE_FOLDED_MOST];

	if (count != before.count && value_can_fold(job->rule)) {
		count = value_fold(job->rule, bytes, count, folded);
		bytes = folded;
	}
	return count == before.count && memcmp(bytes, before.bytes, count) == 0;
}

/* True if it becomes something else.  A value that has expired at once need not be kept. RULE-4 */
static bool make_swap(struct remote_job *job, const struct remote_told *told,
                      const struct remote_desk *desk, const struct value *value)
{
	size_t count = value_encode(job->rule, value, desk->bytes);

	if (is_as_before(job, told->before, desk->bytes, count))
		return false;
	job->verb = REMOTE_SWAP;
	job->was = told->before;
	job->expires_us = lease_expires(job->rule, value->words, &value->ledger);
	if (job->expires_us <= told->now_us)
		count = 0;
	job->becomes = (struct remote_bytes){ .bytes = desk->bytes, .count = count };
	return true;
}

static enum store_result cancel(const struct remote_job *job,
                                const struct remote_told *told, struct store_op *op,
                                struct value *value)
{
	bool cancelled =
	    told->before.count > 0 &&
	    rule_cancel(job->rule, value->words, told->now_us, op->cost, op->slot);

	return cancelled ? STORE_DONE : STORE_NOT_BOOKED;
}

bool remote_prepare_swap(struct remote_job *job, const struct remote_told *told,
                         const struct remote_desk *desk, struct store_op *op,
                         enum store_result *ret_result)
{
	struct value value = { .words = desk->words, .room = desk->room };

	gale_assert(job->verb == REMOTE_READ);
	gale_assert(op->verb == STORE_STEP || op->verb == STORE_CANCEL);
	*ret_result = read_told(job, told, &value);
	if (*ret_result == STORE_DONE && op->verb == STORE_STEP) {
		op->answer = step(job, told, value.words, op->cost);
		if (value.restarted && op->answer.verdict == GALE_ALLOW)
			op->answer.why = GALE_WHY_RESTARTED;
		*ret_result = store_judge(op);
	} else if (*ret_result == STORE_DONE) {
		*ret_result = cancel(job, told, op, &value);
	}
	if (*ret_result != STORE_DONE ||
	    (op->verb == STORE_STEP && op->answer.verdict != GALE_ALLOW))
		return false; /* RULE-1 */
	return make_swap(job, told, desk, &value);
}

bool remote_prepare_reminder(struct remote_job *job, const struct remote_told *told,
                             const struct remote_desk *desk)
{
	struct value value = { .words = desk->words, .room = desk->room };

	gale_assert(job->verb == REMOTE_READ);
	if (read_told(job, told, &value) != STORE_DONE ||
	    !remind(job, told->now_us, value.words))
		return false;
	return make_swap(job, told, desk, &value);
}

/* The same number again changes nothing. LEASE-2 */
bool remote_prepare_loan(struct remote_job *job, const struct remote_told *told,
                         const struct remote_desk *desk, enum lend_verb verb,
                         struct lend_answer *ret_answer)
{
	struct value value = { .words = desk->words, .room = desk->room };

	gale_assert(job->verb == REMOTE_READ);
	*ret_answer = explain(job, told, verb, &value);
	if (ret_answer->result != STORE_DONE || verb == LEND_STATUS ||
	    (verb == LEND && ret_answer->grant.units == 0))
		return false;
	return make_swap(job, told, desk, &value);
}
