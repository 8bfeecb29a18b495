-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- schema.sql -- the values of keys, and the one function that changes them.
--
-- Installing: send all of it as one query.  That makes it one transaction, under a lock:
-- whoever installs at the same time waits, and finds it done.  What is here already and
-- as new is replaced by itself; what is older is brought up to date; what is newer is
-- left alone, and the error says so (GL002).
--
-- Using: gale.run is one statement for a batch of jobs (stores/remote.h), and leaves
-- nothing behind in the session, so a pool may give each statement another one.
--
--     locks, in order --> values --> now --> each job, by key --> one write
--
-- Invariants
--
--   Q1  Whoever may change a key holds its lock: an advisory one, named by a hash that is
--       made here, and let go when all is written.  Two keys of one hash wait for each
--       other, and that is all.  Locks are taken in the order of the hashes, all before
--       anything else: nobody waits in a circle.  Under a stricter isolation than READ
--       COMMITTED who has waited fails instead (40001), and may ask again.
--   Q2  Time is read after the last lock was taken.                          (law L9)
--   Q3  A value that has expired counts as none; nothing else is ever dropped but by a
--       job that says so.                                                    (law L8)
--   Q4  The generation is another one after anything that may have made the server
--       forget: a start, a crash of any of its processes, a promotion, a truncation.
--                                                                            (law L12)
--   Q5  Numbers are exact: bigint, and numeric where a product may not fit.  (law L10)
--
-- The functions belong to who installs them and run with that one's rights: others need
-- USAGE of the schema, and nobody else needs the tables.

SELECT pg_advisory_xact_lock(7453010360832745061);

DO $$
DECLARE
	ours CONSTANT int := 1;
	theirs int := 0;
	own regprocedure;
BEGIN
	IF to_regprocedure('gale.version()') IS NOT NULL THEN
		EXECUTE 'SELECT gale.version()' INTO theirs;
	END IF;
	IF theirs > ours THEN
		RAISE EXCEPTION 'the gale schema has version %, which is newer than %', theirs, ours
			USING ERRCODE = 'GL002', HINT = 'Bring this gale up to date.';
	END IF;
	CREATE SCHEMA IF NOT EXISTS gale;
	-- Functions of an older version may have had other parameters.
	FOR own IN SELECT oid::regprocedure FROM pg_proc
		WHERE pronamespace = 'gale'::regnamespace AND theirs < ours
	LOOP
		EXECUTE format('DROP FUNCTION %s CASCADE', own);
	END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION gale.version() RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT 1';

-- A value's bytes (stores/value.h), as numbers: the two words of the head, then words and
-- rows.  No column that changes has an index, and pages keep room for the next version of
-- a row: so a change touches one page, and the next one cleans up after it.
CREATE TABLE IF NOT EXISTS gale.keys (
	expires_us bigint NOT NULL,
	head bigint NOT NULL,
	fingerprint bigint NOT NULL,
	key bytea NOT NULL PRIMARY KEY,
	words bigint[] NOT NULL
) WITH (
	fillfactor = 70,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
ALTER TABLE gale.keys ALTER COLUMN words SET STORAGE EXTERNAL;

-- What a crash forgets, whatever it may leave of the other tables: an unlogged table is
-- empty after one.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.birth (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	mark bigint NOT NULL
);

-- Where the next sweep goes on.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.broom (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	page bigint NOT NULL
);

-- ---- Generations -------------------------------------------------------------------

-- The second it was made in and 12 random bits, the same until they are lost.
CREATE OR REPLACE FUNCTION gale.mark() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	found bigint;
BEGIN
	SELECT mark INTO found FROM gale.birth WHERE one;
	IF found IS NULL THEN
		INSERT INTO gale.birth (mark)
		VALUES ((extract(epoch FROM clock_timestamp())::bigint << 12)
			| ('x' || right(gen_random_uuid()::text, 3))::bit(12)::bigint)
		ON CONFLICT DO NOTHING;
		SELECT mark INTO found FROM gale.birth WHERE one;
	END IF;
	RETURN found;
END
$$;

-- When the server started, the timeline it is on, and the mark: 13, 8 and 11 digits. Q4
CREATE OR REPLACE FUNCTION gale.generation(mark bigint) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN lpad(to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint), 13, '0')
		|| left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
		|| lpad(to_hex(mark), 11, '0');
END
$$;

CREATE OR REPLACE FUNCTION gale.on_truncate() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	DELETE FROM gale.birth;
	RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER forgets AFTER TRUNCATE ON gale.keys
FOR EACH STATEMENT EXECUTE FUNCTION gale.on_truncate();

-- ---- Windows -----------------------------------------------------------------------

-- Functions that change a value return {when it expires, its words}, {a code other than
-- REMOTE_DONE}, or NULL when nothing changes.  ask[at] is the first number of the job:
--
--     0 verb, 1 kind, 2 fingerprint, 3 not_before_us, 4 limit, 5 period_us,
--     6 .. 9   of a quota the starts of three periods and the end of the last;
--              of a meter burst, full.us, full.part
--     10 ..    step: cost, span.us, span.part; lend: node, number, want, least, seen,
--              seen_in, spent; back: node, number, tag.us, tag.part, units

-- Where the node's row starts, or NULL; rows start after so many words.
CREATE OR REPLACE FUNCTION gale.row_of(words bigint[], after int, node bigint) RETURNS int
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	at int := after + 1;
BEGIN
	WHILE words[at] <> node LOOP
		at := at + 6;
	END LOOP;
	IF at > cardinality(words) THEN
		RETURN NULL;
	END IF;
	RETURN at;
END
$$;

-- The rows, but for the one that starts there; if there is none, the first seven.
CREATE OR REPLACE FUNCTION gale.other_rows(words bigint[], after int, own int) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF own IS NULL THEN
		RETURN words[after + 1:after + 42];
	END IF;
	RETURN words[after + 1:own - 1] || words[own + 6:];
END
$$;

CREATE OR REPLACE FUNCTION gale.window_step(words bigint[], ask bigint[], at int, first bigint,
	next bigint, have bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	cost CONSTANT bigint := ask[at + 10];
	rest CONSTANT bigint := ask[at + 4] - have;
BEGIN
	IF rest <= 0 OR (cost > rest AND ask[at + 1] <> 7) THEN
		RETURN NULL;
	END IF;
	RETURN ARRAY[next, first, least(have + cost, 9007199254740991)] || words[3:];
END
$$;

CREATE OR REPLACE FUNCTION gale.window_lend(words bigint[], ask bigint[], at int, first bigint,
	next bigint, have bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	node CONSTANT bigint := ask[at + 10];
	number CONSTANT bigint := ask[at + 11];
	seen CONSTANT bigint := least(ask[at + 14], ask[at + 4]);
	past CONSTANT boolean := coalesce(words[7] <> first, false);
	own int;
	units bigint;
BEGIN
	IF have < seen AND ask[at + 15] = first THEN
		have := seen; -- a server that says less has forgotten
	END IF;
	IF NOT past THEN
		own := gale.row_of(words, 2, node);
	END IF;
	units := least(ask[at + 12], ask[at + 4] - have);
	IF number <= words[own + 1] THEN
		RETURN NULL;
	END IF;
	IF units < ask[at + 13] THEN
		IF own IS NULL OR ask[at + 16] = 0 THEN
			RETURN NULL;
		END IF;
		-- It has nothing in hand.
		RETURN ARRAY[next, words[1], words[2]] || words[3:own] || ARRAY[number, 0] || words[own + 3:];
	END IF;
	RETURN ARRAY[next, first, have + units, node, number, units,
			units + coalesce(words[own + 3], 0), first, 0]
		|| CASE WHEN past THEN '{}' ELSE gale.other_rows(words, 2, own) END;
END
$$;

CREATE OR REPLACE FUNCTION gale.window_back(words bigint[], ask bigint[], at int, first bigint,
	next bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	units CONSTANT bigint := ask[at + 14];
	own CONSTANT int := gale.row_of(words, 2, ask[at + 10]);
	used bigint;
BEGIN
	IF own IS NULL OR words[7] <> first OR ask[at + 11] <= words[own + 1]
		OR ask[at + 12] <> words[own + 4] OR ask[at + 13] <> words[own + 5]
		OR units < 1 OR units > words[own + 3]
	THEN
		RETURN NULL;
	END IF;
	used := words[2] - units;
	IF used = 0 THEN
		next := words[1];
	END IF;
	RETURN ARRAY[next, words[1], used] || words[3:own]
		|| ARRAY[ask[at + 11], 0, words[own + 3] - units] || words[own + 4:];
END
$$;

CREATE OR REPLACE FUNCTION gale.window(words bigint[], ask bigint[], at int, now bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	period CONSTANT bigint := ask[at + 5];
	-- A window never goes back: its start is the least that time can be.
	instant CONSTANT bigint := greatest(now, words[1]);
	first bigint;
	next bigint;
	used bigint := 0;
BEGIN
	IF period > 0 THEN
		first := instant - instant % period;
		next := first + period;
	ELSIF instant < ask[at + 6] OR instant >= ask[at + 9] THEN
		RETURN '{3}';
	ELSIF instant >= ask[at + 8] THEN
		first := ask[at + 8];
		next := ask[at + 9];
	ELSIF instant >= ask[at + 7] THEN
		first := ask[at + 7];
		next := ask[at + 8];
	ELSE
		first := ask[at + 6];
		next := ask[at + 7];
	END IF;
	IF words[1] = first THEN
		used := words[2];
	ELSIF words[1] > first THEN
		RETURN '{5}';
	END IF;
	IF (words[2] > ask[at + 4] AND ask[at + 1] <> 7) OR words[1] % nullif(period, 0) <> 0 THEN
		RETURN '{5}';
	END IF;
	CASE ask[at]
	WHEN 0 THEN
		RETURN gale.window_step(words, ask, at, first, next, used);
	WHEN 1 THEN
		RETURN gale.window_lend(words, ask, at, first, next, used);
	WHEN 2 THEN
		RETURN gale.window_back(words, ask, at, first, next);
	END CASE;
END
$$;

-- ---- Meters ------------------------------------------------------------------------

-- The value after units more, of which the row, if there is one, tells.
CREATE OR REPLACE FUNCTION gale.meter_step(words bigint[], ask bigint[], at int, instant bigint,
	ahead_us bigint, ahead_part bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	den CONSTANT bigint := ask[at + 4];
	us bigint := ahead_us + ask[at + 11];
	part bigint := ahead_part + ask[at + 12];
BEGIN
	IF part >= den THEN
		us := us + 1;
		part := part - den;
	END IF;
	IF us > ask[at + 7] OR (us = ask[at + 7] AND part > ask[at + 8])
		OR ask[at + 10] > ask[at + 6]
	THEN
		RETURN NULL;
	END IF;
	us := instant + us;
	RETURN ARRAY[us + (part > 0)::int, us, part, CASE ask[at + 1] WHEN 5 THEN instant ELSE 0 END]
		|| words[4:];
END
$$;

-- How many units there are, with tat so far ahead.
CREATE OR REPLACE FUNCTION gale.meter_left(ask bigint[], at int, ahead_us bigint, ahead_part bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	us bigint := ask[at + 7] - ahead_us;
	part bigint := ask[at + 8] - ahead_part;
BEGIN
	IF part < 0 THEN
		us := us - 1;
		part := part + ask[at + 4];
	END IF;
	IF us < 0 THEN
		RETURN 0;
	END IF;
	RETURN div(us::numeric * ask[at + 4] + part, ask[at + 5]);
END
$$;

CREATE OR REPLACE FUNCTION gale.meter_lend(words bigint[], ask bigint[], at int, instant bigint,
	ahead_us bigint, ahead_part bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	den CONSTANT bigint := ask[at + 4];
	own CONSTANT int := gale.row_of(words, 3, ask[at + 10]);
	units bigint;
	span numeric;
	us bigint;
	part bigint;
BEGIN
	IF ask[at + 11] <= words[own + 1] THEN
		RETURN NULL;
	END IF;
	units := least(ask[at + 12], gale.meter_left(ask, at, ahead_us, ahead_part));
	IF units < ask[at + 13] THEN
		RETURN NULL;
	END IF;
	span := units::numeric * ask[at + 5] + ahead_part;
	us := div(span, den);
	part := span - us::numeric * den;
	us := instant + ahead_us + us;
	RETURN ARRAY[us + (part > 0)::int, us, part, CASE ask[at + 1] WHEN 5 THEN instant ELSE 0 END,
			ask[at + 10], ask[at + 11], units, units, us, part]
		|| gale.other_rows(words, 3, own);
END
$$;

CREATE OR REPLACE FUNCTION gale.meter_back(words bigint[], ask bigint[], at int, now bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	den CONSTANT bigint := ask[at + 4];
	own CONSTANT int := gale.row_of(words, 3, ask[at + 10]);
	units CONSTANT bigint := least(ask[at + 14], words[own + 3]);
	span numeric;
	us bigint := words[1];
	part bigint := words[2];
BEGIN
	IF own IS NULL OR ask[at + 11] <= words[own + 1] OR words[own + 2] = 0 OR units < 1
		OR ask[at + 12] <> words[own + 4] OR ask[at + 13] <> words[own + 5]
		OR us <> words[own + 4] OR part <> words[own + 5]
		OR us < now OR (us = now AND part = 0)
	THEN
		RETURN NULL;
	END IF;
	span := units::numeric * ask[at + 5];
	us := us - div(span, den);
	part := part - mod(span, den);
	IF part < 0 THEN
		us := us - 1;
		part := part + den;
	END IF;
	RETURN ARRAY[us + (part > 0)::int, us, part] || words[3:own]
		|| ARRAY[ask[at + 11], 0, words[own + 3] - units] || words[own + 4:];
END
$$;

CREATE OR REPLACE FUNCTION gale.meter(words bigint[], ask bigint[], at int, now bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	-- A token bucket's clock never goes back.
	instant bigint := now;
	us bigint := 0;
	part bigint := 0;
BEGIN
	IF words[2] >= ask[at + 4] OR words[1] > 4503599627370496 + ask[at + 7] + 1 THEN
		RETURN '{5}';
	END IF;
	IF ask[at] = 2 THEN
		RETURN gale.meter_back(words, ask, at, now);
	END IF;
	IF ask[at + 1] = 5 THEN
		instant := greatest(now, words[3]);
	END IF;
	IF words[1] >= instant THEN
		us := words[1] - instant;
		part := words[2];
	END IF;
	IF ask[at] = 0 THEN
		RETURN gale.meter_step(words, ask, at, instant, us, part);
	END IF;
	RETURN gale.meter_lend(words, ask, at, instant, us, part);
END
$$;

-- ---- Batches -----------------------------------------------------------------------

-- REMOTE_DONE if the value may be of the job's rule (stores/value.h), with so many words
-- before its rows.
CREATE OR REPLACE FUNCTION gale.judge(head bigint, fingerprint bigint, words bigint[], kind bigint,
	wanted bigint, count int) RETURNS int
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF head & 4294902015 <> 1 THEN
		RETURN 5;
	ELSIF head & 65280 <> kind << 8 OR fingerprint <> wanted THEN
		RETURN 4;
	ELSIF (head >> 32 = count AND array_ndims(words) = 1 AND array_lower(words, 1) = 1
		AND (cardinality(words) - count) % 6 = 0
		AND cardinality(words) BETWEEN count AND count + 48
		AND 0 <= ALL (words) AND 9007199254740991 >= ALL (words)) IS NOT TRUE
	THEN
		RETURN 5;
	END IF;
	RETURN 0;
END
$$;

-- What a step, a lend or a back makes of a value; one without words is as new.
CREATE OR REPLACE FUNCTION gale.step(head bigint, fingerprint bigint, words bigint[], ask bigint[],
	at int, "now" bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	is_meter CONSTANT boolean := ask[at + 1] IN (4, 5);
	fault int := 0;
BEGIN
	IF words IS NOT NULL THEN
		fault := gale.judge(head, fingerprint, words, ask[at + 1], ask[at + 2],
			CASE WHEN is_meter THEN 3 ELSE 2 END);
	END IF;
	IF fault > 0 THEN
		RETURN ARRAY[fault];
	ELSIF is_meter THEN
		RETURN gale.meter(coalesce(words, '{0,0,0}'), ask, at, "now");
	END IF;
	RETURN gale.window(coalesce(words, '{0,0}'), ask, at, "now");
END
$$;

-- The head of a value of such a kind that can be stepped here.
CREATE OR REPLACE FUNCTION gale.head_of(kind bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN 1 + kind * 256 + CASE WHEN kind IN (4, 5) THEN 12884901888 ELSE 8589934592 END;
END
$$;

-- Locks the keys of all jobs but those that only read. Q1
CREATE OR REPLACE FUNCTION gale.lock(keys bytea[], ask bigint[], seed bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hash) FROM (
		SELECT hashtextextended(encode(key, 'hex'), seed) AS hash
		FROM unnest(keys) WITH ORDINALITY AS k (key, job)
		WHERE ask[ask[job]] <> 3
		ORDER BY 1
	) AS sorted;
END
$$;

CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN least((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 4503599627370496);
END
$$;

CREATE OR REPLACE FUNCTION gale.check_server(wanted int) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	IF wanted <> gale.version() THEN
		RAISE EXCEPTION 'the gale schema has version %, not %', gale.version(), wanted
			USING ERRCODE = CASE WHEN gale.version() > wanted THEN 'GL002' ELSE 'GL001' END;
	ELSIF current_setting('transaction_read_only')::boolean THEN
		RAISE read_only_sql_transaction USING MESSAGE = 'this server is read-only';
	END IF;
END
$$;

-- What is dropped stays as a row that has expired, until it is swept.
CREATE OR REPLACE FUNCTION gale.row_from(expires_us bigint, head bigint, fingerprint bigint,
	key bytea, words bigint[]) RETURNS gale.keys
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF expires_us > 0 THEN
		RETURN ROW(expires_us, head, fingerprint, key, words);
	END IF;
	RETURN ROW(0::bigint, 0::bigint, 0::bigint, key, '{}'::bigint[]);
END
$$;

-- Does what each job says, all at once or nothing; ask is where each job starts in it, and
-- then the jobs.  A swap's numbers are 4 expires_us, and of what it was and of what it
-- becomes where it starts in vals and how long it is.
--
-- One row for each job, in any order: its number, its code, and, if it was done and needs
-- to be explained, the value as it was.  If the generation is another one there is one
-- row, of job 0, with that one, and nothing has changed.
CREATE OR REPLACE FUNCTION gale.run(wanted int, nonce bigint, generation text, keys bytea[],
	ask bigint[], vals bigint[])
RETURNS TABLE (echo bigint, "now" bigint, job int, code int, was_head bigint,
	was_fingerprint bigint, was bigint[], instead text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
-- A table that was small when the plan was made may have grown.
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
	mark bigint;
	asked record;
	at int;
	verb bigint;
	-- The key as the jobs before this one leave it.  No words: it has no value.
	its_key bytea;
	its_expires bigint;
	its_head bigint;
	its_fingerprint bigint;
	its_words bigint[];
	is_changed boolean := false;
	after bigint[];
	changed gale.keys[];
BEGIN
	PERFORM gale.check_server(wanted);
	mark := gale.mark();
	echo := nonce;
	instead := gale.generation(mark);
	IF instead <> generation THEN
		"now" := gale.now_us();
		job := 0;
		code := 0;
		RETURN NEXT;
		RETURN;
	END IF;
	instead := NULL;
	PERFORM gale.lock(keys, ask, mark);
	FOR asked IN
		SELECT k.key AS key_of, k.job::int AS job_of, s.*
		FROM unnest(keys) WITH ORDINALITY AS k (key, job)
		LEFT JOIN LATERAL (SELECT * FROM gale.keys WHERE key = k.key LIMIT 1) AS s ON true
		ORDER BY 1, 2
	LOOP
		IF its_key IS DISTINCT FROM asked.key_of THEN
			IF is_changed THEN
				changed := changed || gale.row_from(
					its_expires, its_head, its_fingerprint, its_key, its_words);
			END IF;
			is_changed := false;
			its_key := asked.key_of;
			its_expires := asked.expires_us;
			its_head := asked.head;
			its_fingerprint := asked.fingerprint;
			its_words := asked.words;
		END IF;
		"now" := coalesce("now", gale.now_us()); -- Q2
		IF its_expires <= "now" THEN
			its_words := NULL; -- Q3
		END IF;
		job := asked.job_of;
		at := ask[job];
		verb := ask[at];
		code := 0;
		was := NULL;
		IF verb = 5 THEN
			is_changed := is_changed OR its_words IS NOT NULL;
			its_expires := 0;
		ELSIF "now" < ask[at + 3] THEN
			code := 2;
		ELSIF verb = 4 THEN
			after := vals[ask[at + 5]:ask[at + 5] + ask[at + 6] - 1];
			IF (its_words IS NULL) <> (ask[at + 6] = 0)
				OR (its_words IS NOT NULL AND ARRAY[its_head, its_fingerprint] || its_words <> after)
			THEN
				code := 1;
			ELSE
				after := vals[ask[at + 7]:ask[at + 7] + ask[at + 8] - 1];
				is_changed := is_changed OR ask[at + 8] > 0 OR its_words IS NOT NULL;
				its_expires := CASE
					WHEN ask[at + 8] > 0 AND ask[at + 4] > "now" THEN ask[at + 4]
					ELSE 0
				END;
				its_head := after[1];
				its_fingerprint := after[2];
				its_words := after[3:];
			END IF;
		ELSE
			was_head := its_head;
			was_fingerprint := its_fingerprint;
			was := its_words;
			IF verb <> 3 THEN
				after := gale.step(its_head, its_fingerprint, its_words, ask, at, "now");
				IF cardinality(after) = 1 THEN
					code := after[1];
					was := NULL;
				ELSIF after IS NOT NULL THEN
					its_expires := CASE WHEN after[1] > "now" THEN after[1] ELSE 0 END;
					its_head := gale.head_of(ask[at + 1]);
					its_fingerprint := ask[at + 2];
					its_words := after[2:];
					is_changed := true;
				END IF;
			END IF;
		END IF;
		RETURN NEXT;
	END LOOP;
	IF is_changed THEN
		changed := changed || gale.row_from(
			its_expires, its_head, its_fingerprint, its_key, its_words);
	END IF;
	IF changed IS NOT NULL THEN
		INSERT INTO gale.keys SELECT * FROM unnest(changed)
		ON CONFLICT (key) DO UPDATE SET expires_us = excluded.expires_us, head = excluded.head,
			fingerprint = excluded.fingerprint, words = excluded.words;
	END IF;
END
$$;

-- ---- Upkeep ------------------------------------------------------------------------

-- Drops at most so many keys that have been expired for margin_us, skipping those that
-- somebody works on.  The margin is what the server's clock may be set back by.  Looks at
-- a few pages at a time, and goes on from there: more is false at the end of a round.  Who
-- finds another sweep under way leaves it alone.
CREATE OR REPLACE FUNCTION gale.sweep(most int, margin_us bigint DEFAULT 60000000,
	OUT dropped int, OUT more boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
AS $$
DECLARE
	pages CONSTANT bigint := pg_relation_size('gale.keys') / current_setting('block_size')::int;
	due CONSTANT bigint := gale.now_us() - margin_us;
	start bigint;
	first tid;
	next tid;
BEGIN
	dropped := 0;
	more := false;
	INSERT INTO gale.broom (page) VALUES (0) ON CONFLICT DO NOTHING;
	SELECT page INTO start FROM gale.broom WHERE one FOR UPDATE SKIP LOCKED;
	IF start IS NULL THEN
		RETURN;
	END IF;
	first := format('(%s,0)', start);
	next := format('(%s,0)', start + 128);
	DELETE FROM gale.keys WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM gale.keys
		WHERE ctid >= first AND ctid < next AND expires_us <= due
		LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS dropped = ROW_COUNT;
	IF dropped < most THEN
		start := start + 128;
	END IF;
	more := start < pages;
	UPDATE gale.broom SET page = CASE WHEN more THEN start ELSE 0 END WHERE one;
END
$$;

-- May a crash of the server forget everything?  Then it writes no log and is faster; the
-- generation tells the nodes.  May be called at any time; it rewrites the table if that
-- is not so already.
CREATE OR REPLACE FUNCTION gale.set_durable(durable boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '10s'
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(7453010360832745061);
	IF durable <> (SELECT relpersistence = 'p' FROM pg_class WHERE oid = 'gale.keys'::regclass) THEN
		EXECUTE format('ALTER TABLE gale.keys SET %s',
			CASE WHEN durable THEN 'LOGGED' ELSE 'UNLOGGED' END);
	END IF;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA gale FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gale.version(), gale.run(int, bigint, text, bytea[], bigint[], bigint[]),
	gale.sweep(int, bigint) TO PUBLIC;
