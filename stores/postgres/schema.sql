-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- schema.sql -- the values of keys, and the functions that change them; groups and their beats;
-- pools and their claims.
--
-- Installing: send all of it as one query.  That makes it one transaction, under a lock:
-- whoever installs at the same time waits, and finds it done.  What is here already and
-- as new is replaced by itself; what is older is brought up to date; what is newer is
-- left alone, and the error says so (GL002).
--
-- Using: gale.run is one statement for a batch of jobs (stores/remote.h), and leaves
-- nothing behind in the session, so a pool may give each statement another one.  gale.lend
-- is the same for what batches mostly are, lends from windows, in one update of the rows that
-- are there; gale.lends for those of several rules, one after the other; and gale.lend_first for
-- those of keys that are likely to be new.  gale.beat is the same for reports to groups, and
-- gale.claim for claims of pools.
--
--     run:   values --> now --> each job, by key --> one write  --,
--              ^                                                  | if somebody was faster
--              '------------- its rows are locked by then <-------'
--     lend:  now --> one update, by key --> lends ahead --> crowds --> insert what is new
--              --> run what they left
--     lend_first: now --> insert all --> is it that generation?
--            `--- lend <--' one was there, or it is not
--
-- Each tells rows of gale.told: first one of job 0, whose words are the nonce and the time.
-- If it is the last, and of code 1, the generation is another one, whose letters follow, and
-- nothing has changed.  Then one for each job: its number and 128 times its code in job, and the
-- value as it was if it was done and needs to be explained: all of it if it was read, else
-- without its head and fingerprint, which are those of the job's rule.  What was tried again is
-- told again, after another row of job 0, and the later counts.  A row of job NULL says
-- nothing.  If job 0 has code 6, all jobs got what they wanted, and nobody had any before.
-- Of a beat the words of its grant are told, of a claim those of its answer.
--
-- Invariants
--
--   SCHEMA-1  Who changes a key has its row locked from when it was the one that was read
--             until all is written.  Rows are locked by writing them, in the order of the
--             keys and by one statement; what is locked by it already may be written once
--             more: nobody waits in a circle.  gale.lend locks all rows that are there by
--             one, those that it leaves, too, and then puts in those that are not, in that
--             order as well.  Rows of windows that are spent it does not lock: a denial
--             writes nothing, so that nodes which are denied do not queue.  That a node has
--             nothing in hand is then written without that order.  Who puts in waits for
--             nobody but others that do, unless a row has come since it looked, and is being
--             changed already; and gale.lends begins
--             again with each rule. If that ever makes a circle, lock_timeout ends it, and
--             it may be asked again. gale.lend_first does not look: it waits for 5 ms, and
--             then lets go of all. Under a stricter isolation than READ COMMITTED who has
--             waited fails (40001), and may ask again, too.
--   SCHEMA-2  Time is read after the values were, which nobody has changed meanwhile.  Where
--             they are read by the update itself, time is read before: a row that is of a
--             later window by then goes the long way, with a later time; and units of a
--             window that is over by then are counted in that one, and are dead when they
--             arrive, as they live from that time on. (law L9)
--   SCHEMA-3  A value that has expired counts as none; nothing else is ever dropped but by
--             a job that says so. (law L8)
--   SCHEMA-4  The generation is another one after anything that may have made the server
--             forget: a start, a crash of any of its processes, a promotion, a truncation,
--             a dump that is put back, a copy of the database that takes its place, a clock
--             that was set back to before it began, or to when something counted that has
--             been swept.  Who works on values looks whether it still is that one after it
--             has read them, or in the same snapshot; who puts keys in unseen, after that,
--             as a row may have been swept while it was waited for.  And the table is held
--             from before, so that nobody empties it meanwhile. (law L12)
--   SCHEMA-5  Numbers are exact: bigint, and numeric where a product may not fit.  (law
--             L10)
--   SCHEMA-6  Rows are looked for one key after the other, and no others are read.  A
--             session keeps its plans, and one that reads the whole table is the cheapest
--             while that is small.  So joins with the table go by its hash, which cannot be
--             read from one end to the other, or are none: OFFSET 0 keeps a planner from
--             making one.  What a session or a role says of plans counts for nothing in
--             here.
--
-- The functions belong to who installs them and run with that one's rights: others need
-- USAGE of the schema, and nobody else needs the tables.

-- Names mean what the system means by them, whoever may create others where the installer looks.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
SELECT pg_advisory_xact_lock(7453010360832745061);
-- To bring a filled table up to date may take longer than anybody waits for an answer.
SELECT set_config('statement_timeout', '0', true);

DO $$
DECLARE
	ours CONSTANT int := 22; -- no other place says it: embed.py reads it here
	theirs int := 0;
	own regprocedure;
BEGIN
	-- What is in a schema of somebody else's is not run as whoever installs.
	IF (SELECT nspowner <> current_user::regrole FROM pg_namespace WHERE nspname = 'gale') THEN
		RAISE EXCEPTION 'the schema gale belongs to another role'
			USING ERRCODE = '42501', HINT = 'Install as its owner, or drop it.';
	END IF;
	IF to_regprocedure('gale.version()') IS NOT NULL THEN
		EXECUTE 'SELECT gale.version()' INTO theirs;
	END IF;
	IF theirs > ours THEN
		RAISE EXCEPTION 'the gale schema has version %, which is newer than %', theirs, ours
			USING ERRCODE = 'GL002', HINT = 'Bring this gale up to date.';
	END IF;
	CREATE SCHEMA IF NOT EXISTS gale;
	-- Functions of an older version may have had other parameters; of its tables only the keys
	-- are kept, if their columns are the same.
	FOR own IN SELECT oid::regprocedure FROM pg_proc
		WHERE pronamespace = 'gale'::regnamespace AND proname <> 'salt' AND theirs < ours
	LOOP
		EXECUTE format('DROP FUNCTION %s CASCADE', own);
	END LOOP;
	IF theirs < ours THEN
		DROP TYPE IF EXISTS gale.told CASCADE;
		DROP TABLE IF EXISTS gale.birth;
		DROP TABLE IF EXISTS gale.groups, gale.members, gale.rows; -- the generation is another, too
		DROP TABLE IF EXISTS gale.pools, gale.tenants, gale.claims;
		IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('gale.keys')
			AND attname = 'stamp')
			OR NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('gale.keys')
				AND attname = 'start_us')
		THEN
			DROP TABLE IF EXISTS gale.keys;
		END IF;
		IF pg_get_indexdef(to_regclass('gale.keys_by_hash')) NOT LIKE '%salt%' THEN
			DROP INDEX gale.keys_by_hash;
		END IF;
	END IF;
	IF to_regtype('gale.told') IS NULL THEN
		CREATE TYPE gale.told AS (job bigint, words bigint[]);
	END IF;
	-- Goes into the hash of each key, so that nobody can tell which keys have the same. SCHEMA-6
	IF to_regprocedure('gale.salt()') IS NULL THEN
		EXECUTE format('CREATE FUNCTION gale.salt() RETURNS bytea
			LANGUAGE sql IMMUTABLE PARALLEL SAFE AS %L',
			format('SELECT %L::bytea', uuid_send(gen_random_uuid())));
	END IF;
	EXECUTE format('CREATE OR REPLACE FUNCTION gale.version() RETURNS int
		LANGUAGE sql IMMUTABLE PARALLEL SAFE AS %L', format('SELECT %s', ours));
END
$$;

-- A value's bytes (stores/value.h), as numbers: the two words of the head, and words and
-- rows.  Those of a window that was lent from in that very window stand in columns, its
-- words and its first row, which has a node then; words has the rows behind it, or is NULL
-- if there are none.  Of any other value words has all, and node is 0.
--
-- No column that changes has an index, and pages keep room for the next version of a row:
-- so a change touches one page, and the next one cleans up after it.
CREATE TABLE IF NOT EXISTS gale.keys (
	expires_us bigint NOT NULL,
	head bigint NOT NULL,
	fingerprint bigint NOT NULL,
	start_us bigint NOT NULL DEFAULT -1,
	used bigint NOT NULL DEFAULT 0,
	node bigint NOT NULL DEFAULT 0,
	number bigint NOT NULL DEFAULT 0,
	granted bigint NOT NULL DEFAULT 0,
	"out" bigint NOT NULL DEFAULT 0,
	key bytea NOT NULL PRIMARY KEY,
	words bigint[]
) WITH (
	fillfactor = 70,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
DO $$
BEGIN
	IF (SELECT attstorage <> 'e' FROM pg_attribute
		WHERE attrelid = 'gale.keys'::regclass AND attname = 'words')
	THEN
		ALTER TABLE gale.keys ALTER COLUMN words SET STORAGE EXTERNAL; -- locks out who reads
	END IF;
END
$$;

-- A hash finds a row faster than the primary key does; and a join by what only this index
-- has can go no other way. SCHEMA-6
DO $$
BEGIN
	IF to_regclass('gale.keys_by_hash') IS NULL THEN
		CREATE INDEX keys_by_hash ON gale.keys USING hash ((gale.salt() || key));
	END IF;
END
$$;

-- The rows of ledgers that are kept apart (engine/lease.h): one of each node of a key's crowd.  Who
-- changes one changes the row of the key, too, and has that locked (SCHEMA-1).  What a crash forgets
-- stays spent.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.rows (
	crowd bigint NOT NULL,
	number bigint NOT NULL,
	granted bigint NOT NULL,
	"out" bigint NOT NULL,
	expires_us bigint NOT NULL,
	node bigint NOT NULL,
	key bytea NOT NULL,
	PRIMARY KEY (key, node)
) WITH (
	fillfactor = 70,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
DO $$
BEGIN
	IF to_regclass('gale.rows_by_expiry') IS NULL THEN
		CREATE INDEX rows_by_expiry ON gale.rows (expires_us);
	END IF;
END
$$;

-- What a crash forgets, whatever it may leave of the other tables: an unlogged table is
-- empty after one.  A dump has it, and so has a copy of the database.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.birth (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	generation text NOT NULL,
	earliest bigint NOT NULL, -- that time can be: it was made then, or what expired then is swept
	born timestamptz NOT NULL DEFAULT pg_postmaster_start_time(),
	place text NOT NULL -- where this table was: a copy of it is elsewhere
);

-- Where the next sweep goes on.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.broom (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	page bigint NOT NULL
);

-- A group of nodes that share a concurrency ceiling, and its members: the words of engine/group.h
-- by their names, and whose they are.  What a crash forgets is as the generation says: no node
-- is granted more than it has until all leases are over.  So a beat need not wait for a disk.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.groups (
	law bigint NOT NULL DEFAULT 0,
	parts bigint NOT NULL DEFAULT 0,
	start bigint NOT NULL DEFAULT 0,
	floor bigint NOT NULL DEFAULT 0,
	ceiling bigint NOT NULL DEFAULT 0,
	lease_us bigint NOT NULL DEFAULT 0,
	hold_us bigint NOT NULL DEFAULT 0,
	rotate_us bigint NOT NULL DEFAULT 0,
	probe_us bigint NOT NULL DEFAULT 0,
	now_us bigint NOT NULL DEFAULT 0,
	epoch bigint NOT NULL DEFAULT 0,
	life bigint NOT NULL DEFAULT 0,
	lasts_us bigint NOT NULL DEFAULT 0,
	beats bigint NOT NULL DEFAULT 0,
	over bigint NOT NULL DEFAULT 0,
	quiet bigint NOT NULL DEFAULT 0,
	generation bigint NOT NULL DEFAULT 0,
	"limit" bigint NOT NULL DEFAULT 0,
	parted bigint NOT NULL DEFAULT 0,
	lowered_us bigint NOT NULL DEFAULT 0,
	joined_us bigint NOT NULL DEFAULT 0,
	members bigint NOT NULL DEFAULT 0,
	reserved bigint NOT NULL DEFAULT 0,
	weights bigint NOT NULL DEFAULT 0,
	busy bigint NOT NULL DEFAULT 0,
	limited bigint NOT NULL DEFAULT 0,
	hungry bigint NOT NULL DEFAULT 0,
	claimed bigint NOT NULL DEFAULT 0,
	lacking bigint NOT NULL DEFAULT 0,
	in_flight bigint NOT NULL DEFAULT 0,
	nudge bigint NOT NULL DEFAULT 0,
	wanting bigint NOT NULL DEFAULT 0,
	give_us bigint NOT NULL DEFAULT 0,
	take_us bigint NOT NULL DEFAULT 0,
	highest bigint NOT NULL DEFAULT 0,
	estimates int[], -- members that have an estimate of each size; NULL: none was needed
	-- No member's beat is less.  Entries of members_by_beat before it are dead, and there may be
	-- thousands until the next vacuum: so a scan begins here.
	first_beat bigint NOT NULL DEFAULT 0,
	name bytea NOT NULL PRIMARY KEY
) WITH (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
CREATE UNLOGGED TABLE IF NOT EXISTS gale.members (
	incarnation bigint NOT NULL,
	position bigint NOT NULL,
	seq bigint NOT NULL,
	beat bigint NOT NULL,
	share bigint NOT NULL,
	generation bigint NOT NULL,
	high bigint NOT NULL,
	in_flight bigint NOT NULL,
	raised_us bigint NOT NULL,
	weight bigint NOT NULL,
	busy bigint NOT NULL,
	estimate bigint NOT NULL,
	limited bigint NOT NULL,
	hungry bigint NOT NULL,
	claim bigint NOT NULL,
	lacks bigint NOT NULL,
	group_name bytea NOT NULL,
	node bytea NOT NULL,
	PRIMARY KEY (group_name, node)
) WITH (
	fillfactor = 70,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
DO $$
BEGIN
	IF to_regclass('gale.members_by_beat') IS NULL THEN
		CREATE INDEX members_by_beat ON gale.members (group_name, beat, node);
		CREATE INDEX members_by_position ON gale.members (group_name, position);
	END IF;
END
$$;

-- A budget that a fleet shares, its tenants, and what nodes have claimed for them: the words of
-- engine/pool.h by their names, and whose they are.  A claim of another window than the pool's
-- counts as none.
CREATE UNLOGGED TABLE IF NOT EXISTS gale.pools (
	period_us bigint NOT NULL DEFAULT 0,
	now_us bigint NOT NULL DEFAULT 0,
	window_us bigint NOT NULL DEFAULT 0, -- its beginning
	used bigint NOT NULL DEFAULT 0,
	"limit" bigint NOT NULL DEFAULT 0,
	claims bigint NOT NULL DEFAULT 0,
	release_us bigint NOT NULL DEFAULT 0,
	protect_us bigint NOT NULL DEFAULT 0,
	name bytea NOT NULL PRIMARY KEY
) WITH (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
CREATE UNLOGGED TABLE IF NOT EXISTS gale.tenants (
	guarantee bigint NOT NULL DEFAULT 0,
	cap bigint NOT NULL DEFAULT 0,
	weight bigint NOT NULL DEFAULT 0,
	asked_us bigint NOT NULL DEFAULT 0,
	used bigint NOT NULL DEFAULT 0,
	refused bigint NOT NULL DEFAULT 0,
	pool bytea NOT NULL,
	name bytea NOT NULL,
	PRIMARY KEY (pool, name)
) WITH (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);
CREATE UNLOGGED TABLE IF NOT EXISTS gale.claims (
	granted bigint NOT NULL,
	back bigint NOT NULL,
	window_us bigint NOT NULL,
	expires_us bigint NOT NULL,
	pool bytea NOT NULL,
	tenant bytea NOT NULL,
	node bigint NOT NULL,
	PRIMARY KEY (pool, tenant, node)
) WITH (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_cost_delay = 1
);

-- ---- Generations -------------------------------------------------------------------

-- The generation, which is made if there is none, or it has ended: the server was started, or
-- its clock was set back too far.  The second it is made in, 10 digits, and 82 random bits:
-- a server that crashes may do so again within that second. SCHEMA-4
CREATE OR REPLACE FUNCTION gale.make_generation() RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	instant CONSTANT bigint := gale.now_us();
	second CONSTANT bigint := instant / 1000000;
	lot CONSTANT text := right(replace(gen_random_uuid()::text, '-', ''), 22);
	found text;
BEGIN
	INSERT INTO gale.birth AS had (generation, earliest, place)
	VALUES (lpad(to_hex(second), 10, '0') || lot, second * 1000000,
		pg_relation_filepath('gale.birth'))
	ON CONFLICT (one) DO UPDATE
	SET generation = excluded.generation, earliest = excluded.earliest,
		born = excluded.born, place = excluded.place
	WHERE had.earliest > instant OR had.born <> excluded.born OR had.place <> excluded.place;
	SELECT generation INTO found FROM gale.birth WHERE one;
	IF found IS NULL THEN
		RAISE serialization_failure USING MESSAGE = 'the generation was lost as it was made';
	END IF;
	RETURN found;
END
$$;

CREATE OR REPLACE FUNCTION gale.on_truncate() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	TRUNCATE gale.birth; -- it is elsewhere from then on: nobody puts the old one back
	IF TG_TABLE_NAME = 'groups' THEN -- neither is anything without the other
		DELETE FROM gale.members;
	ELSIF TG_TABLE_NAME = 'members' THEN
		DELETE FROM gale.groups;
	ELSIF TG_TABLE_NAME IN ('pools', 'tenants', 'claims') THEN
		DELETE FROM gale.pools;
		DELETE FROM gale.tenants;
		DELETE FROM gale.claims;
	END IF;
	RETURN NULL;
END
$$;

-- Triggers and indexes that are there are left alone: to make one locks out who writes until all
-- of this has been done.
DO $$
DECLARE
	its regclass;
BEGIN
	FOREACH its IN ARRAY '{gale.keys,gale.groups,gale.members,gale.pools,gale.tenants,gale.claims}'::regclass[]
	LOOP
		IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = its AND tgname = 'forgets') THEN
			EXECUTE format('CREATE TRIGGER forgets AFTER TRUNCATE ON %s
				FOR EACH STATEMENT EXECUTE FUNCTION gale.on_truncate()', its);
		END IF;
	END LOOP;
END
$$;

-- ---- Windows -----------------------------------------------------------------------

-- The eighth row of a window's words, from 45, may be the crowd's: CROWD, the instant at which it was
-- made, how many of the rows apart are of nodes that may have some in hand, how many have units out.
-- A ninth, from 51, is the asking node's, if it is apart: it comes from gale.rows, and goes there.
--
-- A fixed window may have a row for what is lent ahead of the next (engine/lease.h), at any place but
-- the crowd's: its node is AHEAD, 2^53 - 2, its number one more than the units of the next window that are
-- lent, and its out the units of this one that were lent ahead of it and that no node has said to have.
-- As long as its number is above 1 the key lives until the next window is over, which then begins with
-- so much used.  The first that begins after the quarantine, so at not_before_us or within a period of
-- it, begins with a sixteenth of the limit more.  LEASE-7

-- Functions that change a value return {when it expires, its words}, {a code other than
-- REMOTE_DONE}, or NULL when nothing changes.  ask[at] is the first number of the job:
--
--     0 verb, 1 kind, 2 fingerprint, 3 not_before_us, 4 limit, 5 period_us,
--     6 .. 9   of a quota the starts of three periods and the end of the last;
--              of a meter burst, full.us, full.part
--     10 ..    step: cost, span.us, span.part;
--              lend: node, number, want, least, spent, ahead, had, had_of;
--              back: node, number, tag.us, tag.part, units

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

-- Where the row of what is lent ahead starts, or NULL.
CREATE OR REPLACE FUNCTION gale.ahead_of(words bigint[]) RETURNS int
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF 9007199254740990 = ANY (words[3:]) THEN
		RETURN gale.row_of(words, 2, 9007199254740990);
	END IF;
	RETURN NULL;
END
$$;

-- The rows, but for the one that starts there; if there is none, the first seven.  For windows there
-- are no more then.
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

-- The start and the end of the window at that instant; NULL if nobody told of it.
CREATE OR REPLACE FUNCTION gale.period_at(ask bigint[], at int, instant bigint) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
AS $$
	SELECT CASE
		WHEN ask[at + 5] > 0 THEN
			ARRAY[instant - instant % ask[at + 5], instant - instant % ask[at + 5] + ask[at + 5]]
		WHEN instant < ask[at + 6] OR instant >= ask[at + 9] THEN NULL
		WHEN instant >= ask[at + 8] THEN ask[at + 8:at + 9]
		WHEN instant >= ask[at + 7] THEN ask[at + 7:at + 8]
		ELSE ask[at + 6:at + 7]
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

-- The value and its ninth row, when that has become {number, granted, out} of so many used.  LEASE-6
CREATE OR REPLACE FUNCTION gale.with_apart(words bigint[], used bigint, crowd bigint, node bigint,
	number bigint, granted bigint, "out" bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	is_there CONSTANT boolean := coalesce(words[45] = 9007199254740991, false);
	had CONSTANT int := (coalesce(words[54], 0) > 0)::int;
	had_some CONSTANT int := (coalesce(words[53], 0) > 0)::int;
	has_some CONSTANT int := (granted > 0 AND "out" > 0)::int;
	holding bigint := ("out" > 0)::int;
	in_hand bigint := has_some;
BEGIN
	IF is_there THEN
		holding := greatest(words[48] + holding - had, 0);
		in_hand := greatest(words[47] + in_hand - had_some, 0);
	END IF;
	RETURN ARRAY[words[1], used] || words[3:44]
		|| ARRAY[9007199254740991, crowd, least(in_hand, holding), holding, words[7], 0]
		|| ARRAY[node, number, granted, "out", crowd, 0];
END
$$;

CREATE OR REPLACE FUNCTION gale.window_lend(words bigint[], ask bigint[], at int, first bigint,
	next bigint, have bigint, "now" bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	node CONSTANT bigint := ask[at + 10];
	number CONSTANT bigint := ask[at + 11];
	past CONSTANT boolean := coalesce(words[7] <> first, false);
	own int;
	units bigint;
	gets bigint; -- with them, what it said it had, and what it is lent of the next window, too
	got bigint; -- as its row says
	used bigint;
	its int; -- the row of what is lent ahead
	lent bigint;
	had bigint := 0;
	more bigint := 0;
	made bigint[] := '{}'; -- that row, if there was none
BEGIN
	IF NOT past THEN
		own := gale.row_of(words, 2, node);
	END IF;
	units := least(ask[at + 12], ask[at + 4] - have);
	IF number <= words[own + 1] THEN
		RETURN NULL;
	END IF;
	IF units < ask[at + 13] THEN
		units := 0;
	END IF;
	gets := units;
	got := units;
	used := have + units;
	IF ask[at + 1] = 1 AND (ask[at + 15] > 0 OR ask[at + 16] > 0) THEN
		IF NOT past THEN
			its := gale.ahead_of(words);
		END IF;
		lent := coalesce(words[its + 1], 1) - 1;
		IF own IS NULL AND its IS NOT NULL AND ask[at + 17] = first THEN
			had := least(ask[at + 16], words[its + 3]); -- LEASE-8
		END IF;
		-- It has room behind the others, and not in the crowd's place.
		IF units > 0 AND (past OR its IS NOT NULL OR cardinality(words) + CASE WHEN own IS NULL THEN 6 ELSE 0 END <= 38) THEN
			more := greatest(least(ask[at + 15], ask[at + 4] - used, ask[at + 4] / 16 - lent), 0);
		END IF;
		gets := units + had + more;
		used := used + more;
		IF units = 0 AND had > ask[at + 12] AND ask[at + 14] = 0 THEN
			got := had; -- LEASE-9
		END IF;
		IF lent = 0 AND more > 0 THEN
			next := next + ask[at + 5];
		END IF;
		IF its IS NULL AND more > 0 THEN
			made := ARRAY[9007199254740990, 1 + more, 0, 0, first, 0];
		ELSIF had + more > 0 THEN
			words := words[:its] || ARRAY[words[its + 1] + more, 0, words[its + 3] - had] || words[its + 4:];
		END IF;
	END IF;
	IF gets = 0 THEN
		IF own IS NULL OR ask[at + 14] = 0 THEN
			RETURN NULL;
		END IF;
		-- It has nothing in hand.
		IF own = 51 THEN
			RETURN ARRAY[next] || gale.with_apart(words, words[2], words[46], node, number, 0, words[54]);
		END IF;
		RETURN ARRAY[next, words[1], words[2]] || words[3:own] || ARRAY[number, 0] || words[own + 3:];
	END IF;
	IF own = 51 OR (own IS NULL AND NOT past AND cardinality(words) >= 44) THEN
		RETURN ARRAY[next] || gale.with_apart(words, used,
			CASE WHEN words[45] = 9007199254740991 THEN words[46] ELSE greatest("now", 1) END,
			node, number, got, gets + coalesce(words[own + 3], 0));
	END IF;
	RETURN ARRAY[next, first, used, node, number, got, gets + coalesce(words[own + 3], 0), first, 0]
		|| CASE WHEN past THEN '{}' ELSE gale.other_rows(words, 2, own) END || made;
END
$$;

CREATE OR REPLACE FUNCTION gale.window_back(words bigint[], ask bigint[], at int, first bigint,
	next bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	units CONSTANT bigint := ask[at + 14];
	own CONSTANT int := gale.row_of(words, 2, ask[at + 10]);
	its CONSTANT int := gale.ahead_of(words);
	stays CONSTANT bigint := CASE WHEN units < words[own + 3] THEN ask[at + 13] ELSE 0 END; -- LEASE-9
	used bigint;
BEGIN
	IF own IS NULL OR words[7] <> first OR ask[at + 11] <= words[own + 1]
		OR ask[at + 12] <> first OR ask[at + 13] > 1
		OR units < 1 OR units > words[own + 3] OR units > words[2]
	THEN
		RETURN NULL;
	END IF;
	used := words[2] - units;
	IF used = 0 AND coalesce(words[its + 1], 1) = 1 THEN
		next := words[1];
	END IF;
	IF own = 51 THEN
		IF its IS NOT NULL AND words[54] = units THEN
			words[its + 3] := 0; -- LEASE-8
		END IF;
		RETURN ARRAY[next] || gale.with_apart(words, used, words[46], words[51], ask[at + 11], stays,
			words[54] - units);
	END IF;
	RETURN ARRAY[next, words[1], used] || words[3:own]
		|| ARRAY[ask[at + 11], stays, words[own + 3] - units] || words[own + 4:];
END
$$;

CREATE OR REPLACE FUNCTION gale.window(words bigint[], ask bigint[], at int, "now" bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	-- A window never goes back: its start is the least that time can be.
	period CONSTANT bigint[] := gale.period_at(ask, at, greatest("now", words[1]));
	first CONSTANT bigint := period[1];
	next bigint := period[2];
	used bigint := 0;
	its int;
BEGIN
	IF period IS NULL THEN
		RETURN '{3}';
	END IF;
	IF words[1] = first THEN
		used := words[2];
	ELSIF ask[at + 5] = 0 AND words[1] > ask[at + 6]
		AND words[1] NOT IN (ask[at + 7], ask[at + 8])
	THEN
		RETURN '{4}'; -- a quota's windows may have another anchor
	ELSIF words[1] > first THEN
		RETURN '{5}';
	END IF;
	IF words[1] % nullif(ask[at + 5], 0) <> 0 THEN
		RETURN '{5}';
	END IF;
	IF ask[at + 1] = 1 THEN
		its := gale.ahead_of(words);
		IF words[1] < first THEN -- LEASE-7
			IF words[1] + ask[at + 5] = first AND words[its + 4] = words[1] THEN
				used := words[its + 1] - 1;
			END IF;
			IF ask[at + 3] > 0 AND first - ask[at + 3] BETWEEN 0 AND ask[at + 5] - 1 THEN
				used := used + ask[at + 4] / 16;
			END IF;
			IF used > 0 THEN
				words := ARRAY[first, used, 9007199254740990, 1, 0, used, first, 0];
			END IF;
		ELSIF words[its + 4] = first AND words[its + 1] > 1 THEN
			next := next + ask[at + 5];
		END IF;
	END IF;
	CASE ask[at]
	WHEN 0 THEN
		RETURN gale.window_step(words, ask, at, first, next, used);
	WHEN 1 THEN
		RETURN gale.window_lend(words, ask, at, first, next, used, "now");
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
	RETURN ARRAY[us + (part > 0)::int, us, part, CASE ask[at + 1] WHEN 5 THEN instant ELSE 0 END,
			ask[at + 5]] || words[5:];
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
	own CONSTANT int := gale.row_of(words, 4, ask[at + 10]);
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
			ask[at + 5], ask[at + 10], ask[at + 11], units, units, us, part]
		|| gale.other_rows(words, 4, own);
END
$$;

CREATE OR REPLACE FUNCTION gale.meter_back(words bigint[], ask bigint[], at int, now bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	den CONSTANT bigint := ask[at + 4];
	own CONSTANT int := gale.row_of(words, 4, ask[at + 10]);
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
	IF words[4] <> ask[at + 5] AND words[4] > 0 THEN
		RETURN '{4}';
	ELSIF words[2] >= ask[at + 4] OR words[1] > 5629499534213120 THEN
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
	IF head & 4294902015 = 1 THEN
		RETURN 4; -- of the first layout
	ELSIF head & 4294902015 <> 2 THEN
		RETURN 5;
	ELSIF head & 65280 <> kind << 8 OR fingerprint <> wanted THEN
		RETURN 4;
	ELSIF (head >> 32 = count AND array_ndims(words) = 1 AND array_lower(words, 1) = 1
		AND (cardinality(words) - count) % 6 = 0
		AND cardinality(words) BETWEEN count AND count + CASE words[45] WHEN 9007199254740991 THEN 54 ELSE 48 END
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
			CASE WHEN is_meter THEN 4 ELSE 2 END);
	END IF;
	IF fault > 0 THEN
		RETURN ARRAY[fault];
	ELSIF is_meter THEN
		RETURN gale.meter(coalesce(words, '{0,0,0,0}'), ask, at, "now");
	END IF;
	RETURN gale.window(coalesce(words, '{0,0}'), ask, at, "now");
END
$$;

-- The head of a value of such a kind that can be stepped here.
CREATE OR REPLACE FUNCTION gale.head_of(kind bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN 2 + kind * 256 + CASE WHEN kind IN (4, 5) THEN 17179869184 ELSE 8589934592 END;
END
$$;

-- A float has the microseconds of any date before 2255 to the bit.
CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
	SELECT least((date_part('epoch', clock_timestamp()) * 1000000)::bigint, 4503599627370496)
$$;

-- The same, in the generation that is meant; a clock that was set back meanwhile makes it fail, so
-- that all is done again. SCHEMA-4
CREATE OR REPLACE FUNCTION gale.now_of(meant text) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	"now" CONSTANT bigint := gale.now_us();
BEGIN
	IF NOT EXISTS (SELECT FROM gale.birth WHERE one AND generation = meant AND earliest <= "now") THEN
		RAISE serialization_failure USING MESSAGE = 'time has gone back meanwhile';
	END IF;
	RETURN "now";
END
$$;

CREATE OR REPLACE FUNCTION gale.refuse(wanted int) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	IF wanted <> gale.version() THEN
		RAISE EXCEPTION 'the gale schema has version %, not %', gale.version(), wanted
			USING ERRCODE = CASE WHEN gale.version() > wanted THEN 'GL002' ELSE 'GL001' END;
	END IF;
	RAISE read_only_sql_transaction USING MESSAGE = 'this server is read-only';
END
$$;

-- ---- What is there, and what becomes of it -----------------------------------------

-- What is dropped stays as a row that has expired, until it is swept.
CREATE OR REPLACE FUNCTION gale.row_from(expires_us bigint, head bigint, fingerprint bigint,
	key bytea, words bigint[]) RETURNS gale.keys
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF expires_us = 0 THEN
		RETURN ROW(0, 0, 0, -1, 0, 0, 0, 0, 0, key, NULL)::gale.keys;
	ELSIF head & -65281 = 8589934594 AND words[7] = words[1] AND words[8] = 0 AND words[2] > 0 THEN
		RETURN ROW(expires_us, head, fingerprint, words[1], words[2], words[3], words[4], words[5],
			words[6], key, nullif(words[9:], '{}'))::gale.keys;
	END IF;
	RETURN ROW(expires_us, head, fingerprint, -1, 0, 0, 0, 0, 0, key, words)::gale.keys;
END
$$;

-- The row apart of the job's node, if it counts: of the crowd that the words tell of, in its window.
-- Rows of earlier jobs stand in changed.  NULL: there is none.
CREATE OR REPLACE FUNCTION gale.row_apart(changed gale.rows[], its_key bytea, words bigint[],
	ask bigint[], at int, "now" bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	own gale.rows;
BEGIN
	IF gale.row_of(words, 2, ask[at + 10]) IS NOT NULL
		OR words[7] <> (gale.period_at(ask, at, greatest("now", words[1])))[1]
	THEN
		RETURN NULL;
	END IF;
	IF cardinality(changed) > 0 THEN
		SELECT * INTO own FROM unnest(changed) AS c WHERE c.key = its_key AND c.node = ask[at + 10];
	END IF;
	IF own.node IS NULL THEN
		SELECT * INTO own FROM gale.rows AS r WHERE r.key = its_key AND r.node = ask[at + 10];
	END IF;
	IF own.crowd = words[46] AND own.out > 0 THEN
		RETURN ARRAY[own.node, own.number, own.granted, own.out, own.crowd, 0];
	END IF;
	RETURN NULL;
END
$$;

-- The rows of before, and this one in the place of its own.
CREATE OR REPLACE FUNCTION gale.with_row(changed gale.rows[], its_key bytea, expires bigint,
	words bigint[]) RETURNS gale.rows[]
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN ARRAY(SELECT c FROM unnest(changed) AS c WHERE c.key <> its_key OR c.node <> words[51])
		|| ROW(words[55], words[52], words[53], words[54], expires, words[51], its_key)::gale.rows;
END
$$;

-- Keeps those of keys that were written; they are locked.
CREATE OR REPLACE FUNCTION gale.keep_rows(changed gale.rows[], redo bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	INSERT INTO gale.rows AS had
	SELECT * FROM unnest(changed) AS c WHERE redo IS NULL OR c.key <> ALL (redo)
	ON CONFLICT (key, node) DO UPDATE SET crowd = excluded.crowd, number = excluded.number,
		granted = excluded.granted, "out" = excluded.out, expires_us = excluded.expires_us;
END
$$;

-- The jobs of a batch, or of these numbers of them; see gale.run.
CREATE OR REPLACE FUNCTION gale.work(nonce bigint, meant text, keys bytea[], ask bigint[],
	vals bigint[], numbers int[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	"now" bigint;
	asked record;
	row gale.told;
	code int;
	at int;
	verb bigint;
	-- The key as the jobs before this one leave it.  No words: it has no value.  One that
	-- has expired is kept: the clock may be set back to when it had not.
	its_key bytea;
	its_version xid;
	its_expires bigint;
	its_head bigint;
	its_fingerprint bigint;
	its_words bigint[];
	is_alive boolean;
	is_changed boolean;
	after bigint[];
	changed gale.keys[];
	changed_rows gale.rows[];
	changed_keys bytea[];
	versions xid[];
	redo bytea[];
BEGIN
	FOR round IN 1..2 LOOP
		"now" := NULL;
		its_key := NULL;
		is_changed := false;
		changed := '{}';
		changed_rows := '{}';
		changed_keys := '{}';
		versions := '{}';
		FOR asked IN
			SELECT k.key AS key_of, k.job::int AS job_of, s.*, (
				SELECT earliest FROM gale.birth AS b
				WHERE one AND b.generation = meant
			) AS earliest
			FROM unnest(keys) WITH ORDINALITY AS k (key, job)
			LEFT JOIN LATERAL (
				SELECT xmin AS version, expires_us, head, fingerprint,
					CASE WHEN node = 0 THEN words
					ELSE ARRAY[start_us, used, node, number, granted, "out", start_us, 0]
						|| words END AS words
				FROM gale.keys WHERE key = k.key LIMIT 1
			) AS s ON true
			WHERE redo IS NULL OR k.key = ANY (redo)
			ORDER BY 1, 2
		LOOP
			IF "now" IS NULL THEN
				"now" := gale.now_us(); -- SCHEMA-2
				IF "now" >= asked.earliest IS NOT TRUE THEN -- SCHEMA-4
					RAISE serialization_failure USING MESSAGE = 'time has gone back meanwhile';
				END IF;
				RETURN NEXT ROW(0, ARRAY[nonce, "now"])::gale.told;
			END IF;
			IF its_key IS DISTINCT FROM asked.key_of THEN
				IF is_changed THEN
					changed := changed || gale.row_from(its_expires, its_head, its_fingerprint,
						its_key, its_words);
					changed_keys := changed_keys || its_key;
					versions := versions || its_version;
				END IF;
				is_changed := false;
				its_key := asked.key_of;
				its_version := asked.version;
				its_expires := asked.expires_us;
				its_head := asked.head;
				its_fingerprint := asked.fingerprint;
				its_words := asked.words;
			END IF;
			is_alive := coalesce(its_expires > "now" AND its_words IS NOT NULL, false); -- SCHEMA-3
			row.job := coalesce(numbers[asked.job_of], asked.job_of);
			code := 0;
			row.words := NULL;
			at := ask[asked.job_of];
			verb := ask[at];
			IF verb = 5 THEN
				is_changed := is_changed OR is_alive;
				its_expires := CASE WHEN is_alive THEN 0 ELSE its_expires END;
			ELSIF "now" < ask[at + 3] THEN
				code := 2;
			ELSIF verb = 4 THEN
				after := vals[ask[at + 5]:ask[at + 5] + ask[at + 6] - 1];
				IF is_alive <> (ask[at + 6] > 0)
					OR (is_alive
						AND ARRAY[its_head, its_fingerprint] || its_words <> after)
				THEN
					code := 1;
				ELSIF is_alive OR ask[at + 8] > 0 THEN
					after := vals[ask[at + 7]:ask[at + 7] + ask[at + 8] - 1];
					is_changed := true;
					its_expires := CASE WHEN ask[at + 8] > 0 THEN ask[at + 4] ELSE 0 END;
					its_head := after[1];
					its_fingerprint := after[2];
					its_words := after[3:];
				END IF;
			ELSE
				IF is_alive THEN
					row.words := its_words;
				END IF;
				IF verb = 3 THEN
					IF is_alive THEN
						row.words := ARRAY[its_head, its_fingerprint] || its_words;
					END IF;
				ELSE
					IF verb <> 0 AND row.words[45] = 9007199254740991 AND ask[at + 1] NOT IN (4, 5) THEN
						row.words := row.words
							|| gale.row_apart(changed_rows, its_key, row.words, ask, at, "now");
					END IF;
					after := gale.step(its_head, its_fingerprint, row.words, ask, at, "now");
					IF cardinality(after) = 1 THEN
						code := after[1];
						row.words := NULL;
					ELSIF after IS NOT NULL THEN
						its_expires := after[1];
						its_head := gale.head_of(ask[at + 1]);
						its_fingerprint := ask[at + 2];
						its_words := after[2:];
						is_changed := true;
						IF cardinality(after) > 51 AND ask[at + 1] NOT IN (4, 5) THEN
							changed_rows := gale.with_row(changed_rows, its_key, its_expires, its_words);
							its_words := its_words[:50];
						END IF;
					END IF;
				END IF;
			END IF;
			row.job := row.job + code * 128;
			RETURN NEXT row;
		END LOOP;
		IF is_changed THEN
			changed := changed || gale.row_from(its_expires, its_head, its_fingerprint,
				its_key, its_words);
			changed_keys := changed_keys || its_key;
			versions := versions || its_version;
		END IF;
		IF cardinality(changed) = 0 THEN
			RETURN;
		END IF;
		WITH written AS (
			INSERT INTO gale.keys AS had SELECT * FROM unnest(changed)
			ON CONFLICT (key) DO UPDATE SET expires_us = excluded.expires_us,
				head = excluded.head, fingerprint = excluded.fingerprint,
				start_us = excluded.start_us, used = excluded.used, node = excluded.node,
				number = excluded.number, granted = excluded.granted, "out" = excluded.out,
				words = excluded.words
			WHERE had.xmin = versions[array_position(changed_keys, excluded.key)] -- SCHEMA-1
			RETURNING key
		)
		SELECT array_agg(c.key) INTO redo
		FROM unnest(changed) AS c LEFT JOIN written USING (key) WHERE written.key IS NULL;
		IF cardinality(changed_rows) > 0 THEN
			PERFORM gale.keep_rows(changed_rows, redo);
		END IF;
		IF redo IS NULL THEN
			RETURN;
		END IF;
	END LOOP;
	RAISE serialization_failure USING MESSAGE = 'a row has changed that was locked';
END
$$;

-- What it says of the generation, unless that is the one that is meant.  Whoever has read
-- it holds the table of keys, too: nobody empties that until the transaction ends.
CREATE OR REPLACE FUNCTION gale.meet(wanted int, meant text) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	ours text;
BEGIN
	IF wanted <> gale.version() OR current_setting('transaction_read_only')::boolean THEN
		PERFORM gale.refuse(wanted);
	END IF;
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		PERFORM FROM gale.birth FOR SHARE; -- what was seen is of before, and must hold still
	END IF;
	SELECT generation INTO ours FROM gale.birth
	WHERE one AND earliest <= gale.now_us() AND born = pg_postmaster_start_time()
		AND place = pg_relation_filepath('gale.birth') AND NOT EXISTS (SELECT FROM gale.keys WHERE false);
	RETURN nullif(coalesce(ours, gale.make_generation()), meant);
END
$$;

-- That the generation is another one.
CREATE OR REPLACE FUNCTION gale.tell_other(nonce bigint, other text) RETURNS gale.told
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN ROW(128, ARRAY[nonce, gale.now_us()] || ARRAY(
		SELECT ascii(letter)::bigint FROM unnest(string_to_array(other, NULL)) AS letter))::gale.told;
END
$$;

-- Does what each job says, all at once or nothing; ask is where each job starts in it, and
-- then the jobs.  A swap's numbers are 4 expires_us, and of what it was and of what it
-- becomes where it starts in vals and how long it is.
CREATE OR REPLACE FUNCTION gale.run(wanted int, nonce bigint, generation text, keys bytea[],
	ask bigint[], vals bigint[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off -- SCHEMA-6
SET jit = off
AS $$
DECLARE
	other CONSTANT text := gale.meet(wanted, generation);
BEGIN
	IF other IS NOT NULL THEN
		RETURN NEXT gale.tell_other(nonce, other);
	ELSE
		RETURN QUERY SELECT * FROM gale.work(nonce, generation, keys, ask, vals, NULL);
	END IF;
END
$$;

-- ---- Many lends from windows -------------------------------------------------------

-- The rows behind the first, once that is another node's: without its own.
CREATE OR REPLACE FUNCTION gale.rows_behind(words bigint[], node bigint, before bigint[])
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	own CONSTANT int := array_position(words, node);
BEGIN
	RETURN before || CASE WHEN own IS NULL THEN words ELSE words[:own - 1] || words[own + 6:] END;
END
$$;

-- Is the node's request, if it has a row there, before this one?  NULL: who knows?  If there is no
-- more room for a row, it may have one apart.
CREATE OR REPLACE FUNCTION gale.is_next(words bigint[], node bigint, number bigint)
RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	own CONSTANT int := array_position(words, node);
BEGIN
	RETURN CASE own % 6 WHEN 1 THEN words[own + 1] < number ELSE nullif(own IS NULL AND coalesce(cardinality(words), 0) < 36, false) END;
END
$$;

-- What the node has out, if it has a row there.
CREATE OR REPLACE FUNCTION gale.out_of(words bigint[], node bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN coalesce(words[array_position(words, node) + 3], 0);
END
$$;

-- Locks the row; false.
CREATE OR REPLACE FUNCTION gale.hold(held bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM FROM gale.keys WHERE key = held FOR NO KEY UPDATE;
	RETURN false;
END
$$;

-- Puts a row where there is none of gale.lend's keys: one of a lend if all of it can be had,
-- else one that has expired, so that it is locked.
CREATE OR REPLACE FUNCTION gale.lend_new(meant text, keys bytea[], asks bigint[], base bigint,
	wide bigint, print bigint, "limit" bigint, whose bigint, instant bigint, first bigint,
	next bigint)
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN QUERY
	WITH put AS (
		INSERT INTO gale.keys AS had
		SELECT CASE WHEN fits THEN next ELSE 0 END, CASE WHEN fits THEN wide ELSE 0 END,
			CASE WHEN fits THEN print ELSE 0 END, CASE WHEN fits THEN first ELSE -1 END,
			CASE WHEN fits THEN want ELSE 0 END, CASE WHEN fits THEN whose ELSE 0 END,
			CASE WHEN fits THEN number ELSE 0 END, CASE WHEN fits THEN want ELSE 0 END,
			CASE WHEN fits THEN want ELSE 0 END, key, NULL
		FROM (
			SELECT a.key, base + (a.x >> 36 & 1048575) AS number, a.x & 68719476735 AS want,
				(a.x & 68719476735) <= "limit" AS fits
			FROM (SELECT unnest(keys) AS key, unnest(asks) AS x) AS a
			WHERE EXISTS (SELECT FROM gale.birth WHERE one AND generation = meant AND earliest <= instant) -- SCHEMA-4
			OFFSET 0
		) AS b
		ON CONFLICT (key) DO NOTHING
		RETURNING had.key
	)
	SELECT ((a.x & 68719476735) << 10) + 768 + (a.x >> 56), NULL::bigint[]
	FROM put JOIN (SELECT unnest(keys) AS key, unnest(asks) AS x) AS a USING (key)
	WHERE (a.x & 68719476735) <= "limit";
END
$$;

-- Lends to a node that has its row apart, or will have, where there is a crowd and all that is
-- wanted.  Tells the values as they were.  A key that has changed since it was read is left.
CREATE OR REPLACE FUNCTION gale.lend_crowd(meant text, keys bytea[], asks bigint[], base bigint,
	wide bigint, print bigint, "limit" bigint, whose bigint, instant bigint, first bigint,
	next bigint)
RETURNS gale.told[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	told gale.told[];
BEGIN
	WITH fits AS MATERIALIZED (
		SELECT k.key, k.xmin AS version, k.words[38] AS crowd, a.want, a.number, a.job,
			coalesce(r.out, 0) AS had, coalesce(r.granted > 0, false)::int AS had_some,
			ARRAY[k.start_us, k.used, k.node, k.number, k.granted, k.out, k.start_us, 0] || k.words
				|| CASE WHEN r.out > 0 THEN ARRAY[r.node, r.number, r.granted, r.out, r.crowd, 0] END AS was
		FROM (
			SELECT DISTINCT ON (key) key, base + (x >> 36 & 1048575) AS number, x & 68719476735 AS want,
				x >> 56 AS job
			FROM (SELECT unnest(keys) AS key, unnest(asks) AS x) AS u
			WHERE EXISTS (SELECT FROM gale.birth WHERE one AND generation = meant AND earliest <= instant) -- SCHEMA-4
			ORDER BY key, number
		) AS a
		JOIN gale.keys AS k ON gale.salt() || k.key = gale.salt() || a.key -- SCHEMA-6
		LEFT JOIN gale.rows AS r ON r.key = a.key AND r.node = whose AND r.crowd = k.words[38] AND r.out > 0
		WHERE k.start_us = first AND k.head = wide AND k.fingerprint = print AND k.node <> whose
			AND cardinality(k.words) = 42 AND k.words[37] = 9007199254740991
			AND gale.row_of(k.words, 0, whose) IS NULL AND k.used + a.want <= "limit"
			AND coalesce(r.number < a.number, true)
	), lent AS (
		UPDATE gale.keys AS k SET expires_us = greatest(next, k.expires_us), used = k.used + f.want,
			words = k.words[:38] || ARRAY[least(k.words[39] - had_some, k.words[40] - (had > 0)::int) + 1,
				k.words[40] - (had > 0)::int + 1] || k.words[41:]
		FROM fits AS f
		WHERE gale.salt() || k.key = gale.salt() || f.key AND k.xmin = f.version
		RETURNING f.*
	), kept AS (
		INSERT INTO gale.rows AS r (crowd, number, granted, "out", expires_us, node, key)
		SELECT crowd, number, want, had + want, next, whose, key FROM lent
		ON CONFLICT (key, node) DO UPDATE SET crowd = excluded.crowd, number = excluded.number,
			granted = excluded.granted, "out" = excluded.out, expires_us = excluded.expires_us
	)
	SELECT array_agg(ROW(job, was)::gale.told) INTO told FROM lent;
	RETURN coalesce(told, '{}');
END
$$;

-- Lends that have to do with units ahead, from windows of up to seven rows: those that want all 36 bits.
-- Tells the values as they were.  A key that has changed since it was read is left, and so is one that
-- gets a crowd.
CREATE OR REPLACE FUNCTION gale.lend_ahead(meant text, keys bytea[], asks bigint[], base bigint,
	rule bigint[], wide bigint, print bigint, instant bigint, first bigint)
RETURNS gale.told[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	told gale.told[];
BEGIN
	WITH asked AS MATERIALIZED (
		SELECT k.key, k.xmin AS version, a.job,
			CASE WHEN k.expires_us > instant THEN
				ARRAY[k.start_us, k.used, k.node, k.number, k.granted, k.out, k.start_us, 0] || k.words END AS was,
			(1::bigint || rule[1:10]) || ARRAY[a.number, rest[2], rest[1] / 2, rest[1] % 2] || rest[3:5] AS ask
		FROM (
			SELECT DISTINCT ON (key) key, base + (x >> 36 & 1048575) AS number, x >> 56 AS job,
				rule[8 + 5 * n:12 + 5 * n] AS rest
			FROM unnest(keys, asks) WITH ORDINALITY AS u (key, x, n)
			WHERE x & 68719476735 = 68719476735
				AND EXISTS (SELECT FROM gale.birth WHERE one AND generation = meant AND earliest <= instant) -- SCHEMA-4
			ORDER BY key, n
		) AS a
		JOIN gale.keys AS k ON gale.salt() || k.key = gale.salt() || a.key -- SCHEMA-6
		WHERE k.expires_us <= instant OR (k.head = wide AND k.fingerprint = print AND k.node > 0
			AND k.start_us <= first AND coalesce(cardinality(k.words), 0) <= 36) -- SCHEMA-2
	), stepped AS MATERIALIZED (
		SELECT asked.*, gale.window(coalesce(was, '{0,0}'), ask, 1, instant) AS after FROM asked
	), lent AS (
		UPDATE gale.keys AS k SET expires_us = after[1], head = wide, fingerprint = print, start_us = after[2],
			used = after[3], node = after[4], number = after[5], granted = after[6], "out" = after[7],
			words = nullif(after[10:], '{}')
		FROM stepped AS s
		WHERE gale.salt() || k.key = gale.salt() || s.key AND k.xmin = s.version
			AND cardinality(after) BETWEEN 9 AND 51
		RETURNING job, was
	)
	SELECT array_agg(ROW(job, was)::gale.told) INTO told
	FROM (SELECT * FROM lent UNION ALL SELECT job, was FROM stepped WHERE after IS NULL) AS all_told;
	RETURN coalesce(told, '{}');
END
$$;

-- Those of the jobs of gale.lend that it has not done, and nobody has told of.
CREATE OR REPLACE FUNCTION gale.lend_others(meant text, keys bytea[], asks bigint[], base bigint,
	rule bigint[], already gale.told[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	wide CONSTANT int := (cardinality(rule) - 12) / cardinality(keys);
	n int;
	own bytea;
	own_rest bigint[];
	others bytea[] := '{}';
	jobs int[] := '{}';
	starts bigint[];
	ask bigint[] := '{}';
BEGIN
	FOR n, own IN
		SELECT k.n, k.key FROM unnest(keys) WITH ORDINALITY AS k (key, n)
		WHERE NOT EXISTS (
			SELECT FROM gale.keys AS s
			WHERE s.key = k.key AND s.xmin = pg_current_xact_id_if_assigned()::xid
				AND s.node > 0 AND s.number = base + (asks[k.n] >> 36 & 1048575)
			OFFSET 0) -- SCHEMA-6
			AND NOT EXISTS (SELECT FROM unnest(already) AS c WHERE c.job = asks[k.n] >> 56)
		ORDER BY 1
	LOOP
		others := others || own;
		jobs := jobs || (asks[n] >> 56)::int;
		own_rest := CASE wide WHEN 0 THEN ARRAY[rule[11]] ELSE rule[13 + wide * (n - 1):12 + wide * n] END;
		ask := ask || (1::bigint || rule[1:10] || ARRAY[base + (asks[n] >> 36 & 1048575),
			coalesce(own_rest[2], asks[n] & 68719476735), own_rest[1] / 2, own_rest[1] % 2,
			coalesce(own_rest[3], 0), coalesce(own_rest[4], 0), coalesce(own_rest[5], 0)]);
	END LOOP;
	SELECT array_agg(cardinality(jobs) + 18 * i - 17) INTO starts
	FROM generate_series(1, cardinality(jobs)) AS i;
	RETURN QUERY SELECT * FROM gale.work(rule[12], meant, others, starts || ask, NULL, jobs);
END
$$;

-- The same for lends from windows of one rule, one for each key, in the order of the keys.
-- What they have in common is in rule; what is looked at for each row is a parameter, too: wide is
-- the head of their values, print the fingerprint, whose the node.
--
--     1 .. 10 as above (5 is 0 for a quota), 11 a rest, 12 the nonce; 13 .. a rest for each
--     job, if not all are the same, or five numbers for each, if one has anything to do with
--     units ahead: a rest, want, ahead, had, had_of
--
-- Each job is described by one of asks: its number in the batch from bit 56 on, from bit 36 on by
-- how much the request's number is above base, and what is wanted.  A rest is twice least, and 1
-- more if spent.  Of a job that has to do with units ahead its ask says that all 36 bits of units
-- are wanted, which is above the limit: so it is not as simple as those that are done in one update.
--
-- What is told of a job that was done here is what became of it: code 6, to which 1024 times what
-- is used of the window is added, and the rows of others; it got all that it wanted.  The row of
-- job 0 before tells where the window starts.  That is enough for the engine to say the same again
-- (engine/lease.h, LEASE-2).  Whatever is not as simple is done as anywhere else, its rows being locked
-- by then.
--
-- Each expression and each step here is made ready anew for each batch: so what is rare
-- stands in functions of its own (spec/decisions/0011).
CREATE OR REPLACE FUNCTION gale.lend(wanted int, meant text, keys bytea[], asks bigint[],
	base bigint, rule bigint[], wide bigint, print bigint, "limit" bigint, whose bigint)
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
SET enable_nestloop = on -- SCHEMA-1, SCHEMA-6
SET enable_indexscan = on
SET enable_bitmapscan = off -- it would mark nothing dead in the index, and read that each time
SET enable_seqscan = off
SET jit = off -- while nobody has looked at the table, a key seems to have many rows
AS $$
DECLARE
	instant CONSTANT bigint := gale.now_us();
	first bigint;
	next bigint;
	fresh bigint := "limit"; -- as much as can be had of a window that begins
	other text;
	done int := 0;
	new int := 0;
	already gale.told[] := '{}'; -- of a crowd, and of lends ahead
BEGIN
	IF rule[5] > 0 THEN
		first := instant - instant % rule[5];
		next := first + rule[5];
	ELSE
		SELECT p[1], p[2] INTO first, next FROM gale.period_at(rule, 0, instant) AS p;
	END IF;
	IF first - rule[3] BETWEEN 0 AND rule[5] - 1 THEN
		fresh := -1; -- some of it may have been lent ahead, and forgotten
	END IF;
	IF first >= 0 AND instant >= rule[3] AND instant < 4503599627370496
		AND wanted = gale.version()
	THEN
		RETURN NEXT ROW(0, ARRAY[rule[12], instant, first])::gale.told;
		RETURN QUERY
		UPDATE gale.keys AS had
		SET expires_us = greatest(next, had.expires_us), head = wide, fingerprint = print, start_us = first,
			used = (u.x & 68719476735) + CASE WHEN had.start_us = first THEN had.used ELSE 0 END,
			node = whose,
			number = base + (u.x >> 36 & 1048575),
			granted = (u.x & 68719476735),
			"out" = (u.x & 68719476735) + CASE WHEN had.start_us <> first THEN 0
				WHEN had.node = whose THEN had.out ELSE gale.out_of(had.words, whose) END,
			words = CASE WHEN had.start_us <> first THEN NULL WHEN had.node = whose THEN had.words
				ELSE gale.rows_behind(had.words, whose,
					ARRAY[had.node, had.number, had.granted, had.out, first, 0]) END
		FROM (
			SELECT unnest(CASE WHEN (SELECT generation = meant AND earliest <= instant
						AND born = pg_postmaster_start_time() AND place = pg_relation_filepath('gale.birth')
						FROM gale.birth WHERE one) -- SCHEMA-4
					THEN keys END) AS key,
				unnest(asks) AS x
		) AS u
		WHERE gale.salt() || had.key = gale.salt() || u.key -- SCHEMA-6
			AND (CASE WHEN had.start_us = first THEN had.fingerprint = print
						AND had.used + (u.x & 68719476735) <= "limit"
						AND CASE WHEN had.node = whose THEN had.number < base + (u.x >> 36 & 1048575)
							ELSE gale.is_next(had.words, whose, base + (u.x >> 36 & 1048575)) END
					ELSE had.expires_us <= first AND (u.x & 68719476735) <= fresh END
				OR ((had.start_us <> first OR had.used < "limit") AND gale.hold(had.key))) -- SCHEMA-1
		RETURNING (used << 10) + 768 + (u.x >> 56), words;
		GET DIAGNOSTICS done = ROW_COUNT;
	ELSE
		next := NULL; -- nothing is simple
	END IF;
	IF done < cardinality(keys) THEN
		other := gale.meet(wanted, meant);
		IF other IS NOT NULL THEN
			IF done > 0 OR asks[1] >> 56 > 1 THEN
				RAISE serialization_failure USING MESSAGE = 'the generation was lost meanwhile';
			END IF;
			RETURN NEXT gale.tell_other(rule[12], other);
			RETURN;
		END IF;
		IF next IS NOT NULL AND cardinality(rule) > 12 + cardinality(keys) THEN
			already := gale.lend_ahead(meant, keys, asks, base, rule, wide, print, instant, first);
		END IF;
		IF next IS NOT NULL AND done + cardinality(already) < cardinality(keys) THEN
			already := already || gale.lend_crowd(meant, keys, asks, base, wide, print, "limit", whose, instant,
				first, next);
		END IF;
		RETURN QUERY SELECT * FROM unnest(already);
		GET DIAGNOSTICS new = ROW_COUNT;
		done := done + new;
		IF next IS NOT NULL AND done < cardinality(keys) THEN
			RETURN QUERY SELECT * FROM gale.lend_new(meant, keys, asks, base, wide, print,
				fresh, whose, instant, first, next);
			GET DIAGNOSTICS new = ROW_COUNT;
			done := done + new;
		END IF;
		IF done < cardinality(keys) THEN
			RETURN QUERY SELECT * FROM gale.lend_others(meant, keys, asks, base, rule, already);
		END IF;
	END IF;
END
$$;

-- The same for keys of which none is likely to be there, and where nobody wants more than the
-- limit: they are put in, without a look at what is there, and one row tells of all.  If one is
-- there, or is waited for too long, they are taken out again and go the way of gale.lend.  Under
-- a stricter isolation they go it at once: what is seen of the generation is of before.  Where
-- the window begins is written out here, too: a function for it takes 48,000 instructions more.
CREATE OR REPLACE FUNCTION gale.lend_first(wanted int, meant text, keys bytea[], asks bigint[],
	base bigint, rule bigint[], wide bigint, print bigint, "limit" bigint, whose bigint)
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5ms' -- SCHEMA-1
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
	instant CONSTANT bigint := gale.now_us();
	first bigint;
	next bigint;
	is_done boolean := false;
BEGIN
	IF rule[5] > 0 THEN
		first := instant - instant % rule[5];
		next := first + rule[5];
	ELSE
		SELECT p[1], p[2] INTO first, next FROM gale.period_at(rule, 0, instant) AS p;
	END IF;
	IF first >= 0 AND instant >= rule[3] AND first - rule[3] NOT BETWEEN 0 AND rule[5] - 1
		AND instant < 4503599627370496
		AND wanted = gale.version() AND current_setting('transaction_isolation') = 'read committed'
	THEN
		BEGIN
			INSERT INTO gale.keys
			SELECT next, wide, print, first, u.x & 68719476735, whose, base + (u.x >> 36 & 1048575),
				u.x & 68719476735, u.x & 68719476735, u.key, NULL
			FROM (SELECT unnest(keys) AS key, unnest(asks) AS x) AS u;
			is_done := EXISTS (SELECT FROM gale.birth
				WHERE one AND generation = meant AND earliest <= instant
				AND born = pg_postmaster_start_time() AND place = pg_relation_filepath('gale.birth')); -- SCHEMA-4
			IF NOT is_done THEN
				RAISE unique_violation;
			END IF;
		EXCEPTION WHEN unique_violation OR lock_not_available OR deadlock_detected THEN
			is_done := false;
		END;
	END IF;
	IF NOT is_done THEN
		RETURN QUERY SELECT * FROM gale.lend(wanted, meant, keys, asks, base, rule, wide, print,
			"limit", whose);
		RETURN;
	END IF;
	RETURN NEXT ROW(0, ARRAY[rule[12], instant, first])::gale.told;
	RETURN NEXT ROW(768, NULL)::gale.told;
END
$$;

-- The same for lends from windows of several rules, in rules one after the other.  Ends are the
-- last of the jobs of each.
CREATE OR REPLACE FUNCTION gale.lends(wanted int, nonce bigint, meant text, keys bytea[],
	asks bigint[], base bigint, rests bigint[], rules bigint[], ends bigint[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
	other CONSTANT text := gale.meet(wanted, meant);
	wide CONSTANT int := cardinality(rests) / cardinality(keys);
	rule bigint[];
	behind bigint := 0;
BEGIN
	IF other IS NOT NULL THEN
		RETURN NEXT gale.tell_other(nonce, other);
		RETURN;
	END IF;
	FOR i IN 1..cardinality(ends) LOOP
		rule := rules[i * 11 - 10:i * 11] || nonce || rests[wide * behind + 1:wide * ends[i]];
		RETURN QUERY SELECT * FROM gale.lend(wanted, meant, keys[behind + 1:ends[i]],
			asks[behind + 1:ends[i]], base, rule, 8589934594 + rule[1] * 256, rule[2], rule[4],
			rule[10]);
		behind := ends[i];
	END LOOP;
END
$$;

-- ---- Beats -------------------------------------------------------------------------

-- These functions are engine/group.c's under other names, in the order of stores/groups.c.  A
-- group's row is locked for all of a beat, so beats of one group come one after the other.
--
-- ask has 24 numbers for each beat: when the server may have forgotten last, the 9 words of the
-- settings, and from at on the 14 of the report:
--
--     0 incarnation, 1 seq, 2 epoch, 3 generation, 4 held, 5 in flight, 6 weight, 7 demand,
--     8 busy, 9 estimate, 10 limited, 11 leaves, 12 life, 13 over

-- The bucket of an estimate, from 0.
CREATE OR REPLACE FUNCTION gale.bucket_of(estimate bigint) RETURNS int
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	octave int := 5;
BEGIN
	IF estimate < 32 THEN
		RETURN estimate;
	END IF;
	WHILE estimate >> octave + 1 > 0 LOOP
		octave := octave + 1;
	END LOOP;
	RETURN (octave - 4) * 16 + (estimate >> octave - 4);
END
$$;

-- The lower median of the estimates, or the least; 0 if there are none.
CREATE OR REPLACE FUNCTION gale.estimate_at(estimates int[], median boolean) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	rank bigint := 0;
	below bigint := 0;
	at int := 0;
	members int;
BEGIN
	IF median THEN
		SELECT greatest(sum(e) - 1, 0)::bigint / 2 INTO rank FROM unnest(estimates) AS e;
	END IF;
	FOREACH members IN ARRAY estimates LOOP
		below := below + members;
		IF below > rank THEN
			RETURN CASE WHEN at < 32 THEN at ELSE (16 + at % 16)::bigint << at / 16 - 1 END;
		END IF;
		at := at + 1;
	END LOOP;
	RETURN 0;
END
$$;

-- A member's words are no longer in the group's sums.
CREATE OR REPLACE FUNCTION gale.take_out(g gale.groups, m gale.members) RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	g.reserved := g.reserved - greatest(m.share, m.high, m.in_flight);
	g.weights := g.weights - m.weight;
	g.busy := g.busy - m.busy;
	g.limited := g.limited - m.limited;
	g.hungry := g.hungry - m.hungry;
	g.claimed := g.claimed - m.claim;
	g.lacking := g.lacking - m.lacks;
	g.in_flight := g.in_flight - m.in_flight;
	IF m.estimate > 0 THEN
		g.estimates[m.estimate] := g.estimates[m.estimate] - 1;
	END IF;
	RETURN g;
END
$$;

-- The last member gets the position of the one that is removed.
CREATE OR REPLACE FUNCTION gale.remove(g gale.groups, gone bytea) RETURNS gale.groups
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	m gale.members;
BEGIN
	DELETE FROM gale.members WHERE group_name = g.name AND node = gone RETURNING * INTO m;
	g := gale.take_out(g, m);
	g.members := g.members - 1;
	UPDATE gale.members SET position = m.position
	WHERE group_name = g.name AND position = g.members;
	RETURN g;
END
$$;

-- Has the report the group's settings?
CREATE OR REPLACE FUNCTION gale.agrees(g gale.groups, ask bigint[], at int) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN ask[at - 9:at - 1] = ARRAY[g.law, g.parts, g.start, g.floor, g.ceiling, g.lease_us,
		g.hold_us, g.rotate_us, g.probe_us];
END
$$;

-- The settings of the first member.
CREATE OR REPLACE FUNCTION gale.adopt(g gale.groups, s bigint[]) RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	g.law := s[1];
	g.parts := s[2];
	g.start := s[3];
	g.floor := s[4];
	g.ceiling := s[5];
	g.lease_us := s[6];
	g.hold_us := s[7];
	g.rotate_us := s[8];
	g.probe_us := s[9];
	g.limit := CASE WHEN g.law = 0 THEN g.ceiling ELSE g.start END;
	g.parted := g.limit;
	g.highest := g.limit;
	IF g.law > 1 AND g.estimates IS NULL THEN
		g.estimates := array_fill(0, ARRAY[304]);
	END IF;
	RETURN g;
END
$$;

-- The group with what a report proves, and in a new life where one begins.
CREATE OR REPLACE FUNCTION gale.begin(g gale.groups, ask bigint[], at int, "now" bigint)
RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	forgot CONSTANT bigint := ask[at - 10];
	forgets CONSTANT boolean := forgot <> g.epoch;
	anew CONSTANT boolean := g.members = 0 AND NOT gale.agrees(g, ask, at);
	lease CONSTANT bigint := ask[at - 4];
	is_longer boolean;
	is_quiet boolean;
BEGIN
	IF ask[at + 12] = g.life AND ask[at + 13] <= g.beats THEN
		g.over := greatest(g.over, ask[at + 13]);
	END IF;
	is_longer := g.life > 0 AND lease > g.lasts_us AND (g.over < g.quiet OR ask[at + 3] > 0);
	IF forgets OR g.life = 0 OR is_longer OR anew THEN
		is_quiet := g.over < g.quiet OR is_longer OR forgets AND (g.life > 0 OR "now" < forgot + 86400000000);
		g.life := CASE WHEN ask[at] > most - ask[at + 1] THEN ask[at] - (most - ask[at + 1])
			ELSE ask[at] + ask[at + 1] END;
		g.beats := g.beats + 1;
		g.over := 0;
		g.quiet := CASE WHEN is_quiet THEN g.beats ELSE 0 END;
		g.lasts_us := CASE WHEN is_quiet THEN greatest(g.lasts_us, lease) ELSE lease END;
	END IF;
	IF anew THEN
		g := gale.adopt(g, ask[at - 9:at - 1]);
	END IF;
	IF g.generation = 0 AND ask[at + 3] > 0 AND g.over >= g.quiet THEN
		g.beats := g.beats + 1;
		g.quiet := g.beats;
	END IF;
	g.epoch := forgot;
	g.now_us := "now";
	RETURN g;
END
$$;

-- L, with the member that reports, and what is parted (GROUP-15, GROUP-16).
CREATE OR REPLACE FUNCTION gale.set_limit(g gale.groups, m gale.members) RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	busy CONSTANT bigint := g.busy + m.busy;
	may_fall CONSTANT boolean := g.now_us < g.lowered_us OR g.now_us - g.lowered_us >= g.lease_us / 4;
	has_just_fallen CONSTANT boolean := g.now_us >= g.lowered_us AND g.now_us - g.lowered_us < g.lease_us;
	wanted bigint := g.ceiling;
BEGIN
	IF g.law = 1 THEN
		wanted := busy / 256 + floor(sqrt((busy / 16)::float8))::bigint + g.members;
	ELSIF g.law > 1 THEN
		wanted := gale.estimate_at(g.estimates, g.law = 2);
		IF wanted = 0 THEN
			RETURN g;
		END IF;
	END IF;
	wanted := greatest(g.floor, least(wanted, g.ceiling));
	IF g.law <> 1 THEN
		g.limit := wanted;
		g.parted := wanted;
		RETURN g;
	END IF;
	IF may_fall THEN
		g.limit := g.parted;
	END IF;
	IF wanted > g.parted THEN
		IF NOT has_just_fallen OR wanted > g.highest OR (wanted - g.parted) * 6 >= g.parted
			OR g.members > g.parted
		THEN
			g.parted := wanted;
		END IF;
	ELSIF wanted < g.parted AND g.limited + m.limited > 0 AND may_fall THEN
		IF NOT has_just_fallen OR g.parted > g.highest THEN
			g.highest := g.parted;
		END IF;
		g.parted := greatest(wanted, g.parted - (g.parted + 7) / 8);
		g.lowered_us := g.now_us;
	END IF;
	g.limit := greatest(g.limit, g.parted);
	RETURN g;
END
$$;

-- slots * weight / weights; what does not divide is given to one after the other.
CREATE OR REPLACE FUNCTION gale.part_of(g gale.groups, m gale.members, slots bigint,
	weights bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	rank CONSTANT bigint := (m.position + g.now_us / g.rotate_us % g.members) % g.members;
BEGIN
	RETURN slots * m.weight / weights
		+ (rank * weights < slots * m.weight % weights * g.members)::int;
END
$$;

-- What the report says of the node.
CREATE OR REPLACE FUNCTION gale.hear(g gale.groups, m gale.members, ask bigint[], at int)
RETURNS gale.members
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	here CONSTANT bigint := 1 - ask[at + 11];
BEGIN
	IF ask[at + 2] = g.epoch AND ask[at + 3] = m.generation AND m.generation > 0 THEN
		m.high := 0;
	END IF;
	m.high := greatest(m.high, ask[at + 4]);
	m.incarnation := ask[at];
	m.seq := ask[at + 1];
	m.beat := g.beats;
	m.in_flight := ask[at + 5];
	m.weight := here * ask[at + 6];
	m.busy := here * ask[at + 8];
	m.limited := here * ask[at + 10];
	m.estimate := CASE WHEN g.law > 1 AND here * ask[at + 9] > 0
		THEN 1 + gale.bucket_of(ask[at + 9]) ELSE 0 END;
	RETURN m;
END
$$;

-- What a node is to have that demands so much: claim and hungry say what it leaves to others.
CREATE OR REPLACE FUNCTION gale.claim(g gale.groups, INOUT m gale.members, demand bigint,
	OUT target bigint)
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	m.hungry := 0;
	m.claim := 0;
	IF m.weight = 0 THEN
		target := 0;
	ELSIF g.parts = 1 THEN
		target := gale.part_of(g, m, g.parted, g.weights + m.weight);
	ELSE
		target := gale.part_of(g, m, greatest(g.parted - g.claimed, 0), g.hungry + m.weight);
		IF m.limited > 0 THEN
			m.hungry := m.weight;
		ELSIF demand + 1 > target THEN
			m.hungry := m.weight;
			target := least(target, demand + 1);
		ELSE
			m.claim := demand + 1;
			target := m.claim;
			IF g.lacking = 0 THEN
				target := greatest(target, gale.part_of(g, m, g.parted, g.weights + m.weight));
			END IF;
		END IF;
	END IF;
END
$$;

-- What it is granted now.
CREATE OR REPLACE FUNCTION gale.grant(g gale.groups, m gale.members, target bigint, held bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	is_held CONSTANT boolean := m.hungry > 0 AND g.now_us >= m.raised_us
		AND g.now_us - m.raised_us < g.hold_us AND g.joined_us <= m.raised_us;
	share bigint := target;
BEGIN
	IF g.parts <> 1 AND m.weight > 0 THEN
		share := greatest(target, m.share - greatest(g.reserved + m.share - g.parted,
			CASE WHEN is_held THEN 0 ELSE g.lacking END));
	END IF;
	share := least(share, greatest(g.limit - g.reserved, 0));
	RETURN CASE WHEN g.over < g.quiet THEN least(share, held) ELSE share END;
END
$$;

CREATE OR REPLACE FUNCTION gale.probe_of(g gale.groups) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	number bigint;
BEGIN
	IF g.law <> 1 OR g.probe_us = 0 THEN
		RETURN '{0,0}';
	END IF;
	number := g.now_us / g.probe_us + 1;
	RETURN ARRAY[number * g.probe_us + g.probe_us / 4 * (number % 65536 * 40503 % 65536) / 65536
		- g.now_us, number];
END
$$;

-- May its members be nudged again?
CREATE OR REPLACE FUNCTION gale.may_nudge(g gale.groups, last_us bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	RETURN g.over >= g.quiet AND (g.now_us < last_us -- its clock was set back
		OR g.now_us - last_us >= g.lease_us / 4096 * (64 + g.members));
END
$$;

-- One member lacked so many slots before its beat.
CREATE OR REPLACE FUNCTION gale.nudge_to_give(g gale.groups, m gale.members, lacked bigint)
RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF m.lacks > lacked AND (m.lacks > 1 OR m.share = 0 AND g.members <= g.parted) THEN
		g.wanting := 1;
	END IF;
	IF g.lacking = 0 THEN
		g.wanting := 0;
	END IF;
	IF g.wanting > 0 AND gale.may_nudge(g, g.give_us) THEN
		g.nudge := 1;
		g.give_us := g.now_us;
		g.wanting := 0;
	END IF;
	RETURN g;
END
$$;

-- Others lack so many slots, and so many are reserved.
CREATE OR REPLACE FUNCTION gale.nudge_to_take(g gale.groups, lacking bigint, reserved bigint)
RETURNS gale.groups
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
	IF lacking > 0 AND reserved < g.parted AND gale.may_nudge(g, g.take_us) THEN
		g.nudge := g.nudge + 2;
		g.take_us := g.now_us;
	END IF;
	RETURN g;
END
$$;

-- Writes the group and the member.  A nudge goes to all sessions that listen, once this is
-- committed; such commits go one after the other, so there are few.  None goes while sessions that
-- do not read keep half of what there is room for.
CREATE OR REPLACE FUNCTION gale.keep(g gale.groups) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	IF g.nudge > 0 AND length(g.name) < 2000 AND pg_notification_queue_usage() < 0.5 THEN
		PERFORM pg_notify('gale', format('%s %s %s %s', encode(g.name, 'hex'), g.nudge,
			CASE WHEN g.parts = 1 THEN g.parted ELSE greatest(g.parted - g.claimed, 0) END,
			CASE WHEN g.parts = 1 THEN g.weights ELSE g.hungry END));
	END IF;
	UPDATE gale.groups SET law = g.law, parts = g.parts, start = g.start, floor = g.floor,
		ceiling = g.ceiling, lease_us = g.lease_us, hold_us = g.hold_us, rotate_us = g.rotate_us,
		probe_us = g.probe_us, now_us = g.now_us, epoch = g.epoch, life = g.life,
		lasts_us = g.lasts_us, beats = g.beats, over = g.over, quiet = g.quiet,
		generation = g.generation, "limit" = g.limit, parted = g.parted,
		lowered_us = g.lowered_us, joined_us = g.joined_us, members = g.members, reserved = g.reserved, weights = g.weights,
		busy = g.busy, limited = g.limited, hungry = g.hungry, claimed = g.claimed,
		lacking = g.lacking, in_flight = g.in_flight, nudge = g.nudge, wanting = g.wanting,
		give_us = g.give_us, take_us = g.take_us, highest = g.highest, estimates = g.estimates,
		first_beat = g.first_beat
	WHERE name = g.name;
END
$$;

CREATE OR REPLACE FUNCTION gale.keep(m gale.members, is_new boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	IF is_new THEN
		INSERT INTO gale.members SELECT m.*;
		RETURN;
	END IF;
	UPDATE gale.members SET incarnation = m.incarnation, seq = m.seq, beat = m.beat,
		share = m.share, generation = m.generation, high = m.high, in_flight = m.in_flight,
		raised_us = m.raised_us, weight = m.weight, busy = m.busy, estimate = m.estimate,
		limited = m.limited, hungry = m.hungry, claim = m.claim, lacks = m.lacks
	WHERE group_name = m.group_name AND node = m.node;
END
$$;

-- The report of a node that is let in: returns the words of the grant.
CREATE OR REPLACE FUNCTION gale.beat_in(g gale.groups, m gale.members, is_new boolean, ask bigint[],
	at int, next bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	claimed record;
	lacked bigint;
	target bigint;
	share bigint;
BEGIN
	g.beats := g.beats + 1;
	IF is_new THEN
		m.position := g.members;
		g.members := g.members + 1;
	ELSE
		g := gale.take_out(g, m);
	END IF;
	IF is_new OR m.incarnation <> ask[at] THEN
		m := ROW(0, m.position, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, m.group_name,
			m.node)::gale.members;
		g.joined_us := g.now_us;
	END IF;
	lacked := m.lacks;
	m := gale.hear(g, m, ask, at);
	IF m.estimate > 0 THEN
		g.estimates[m.estimate] := g.estimates[m.estimate] + 1;
	END IF;
	g := gale.set_limit(g, m);
	claimed := gale.claim(g, m, ask[at + 7]);
	m := claimed.m;
	target := claimed.target;
	share := gale.grant(g, m, target, ask[at + 4]);
	IF share <> m.share OR m.generation = 0 THEN
		IF share > m.share THEN
			m.raised_us := g.now_us;
		END IF;
		g.generation := greatest(g.generation + 1, g.now_us);
		m.generation := g.generation;
		m.share := share;
	END IF;
	m.high := greatest(m.high, share);
	m.lacks := greatest(CASE WHEN m.claim > 0 THEN m.claim ELSE target END - share, 0);
	g.reserved := g.reserved + greatest(m.share, m.high, m.in_flight);
	g.weights := g.weights + m.weight;
	g.busy := g.busy + m.busy;
	g.limited := g.limited + m.limited;
	g.hungry := g.hungry + m.hungry;
	g.claimed := g.claimed + m.claim;
	g.lacking := g.lacking + m.lacks;
	g.in_flight := g.in_flight + m.in_flight;
	g := gale.nudge_to_give(g, m, lacked);
	g := gale.nudge_to_take(g, g.lacking - m.lacks, g.reserved);
	PERFORM gale.keep(m, is_new), gale.keep(g);
	IF g.over < g.quiet THEN
		next := g.quiet;
	ELSIF m.lacks + m.limited = 0 THEN
		next := 0;
	END IF;
	RETURN ARRAY[0, m.share, m.generation, g.epoch, target, g.limit, g.members, g.in_flight,
		g.lacking, g.life, g.beats, next, g.lasts_us] || gale.probe_of(g);
END
$$;

-- One beat, of a group whose row is locked.
CREATE OR REPLACE FUNCTION gale.beat_of(g gale.groups, "from" bytea, ask bigint[], at int,
	"now" bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	first record;
	gone int := 0;
	next bigint := 0;
	stays bigint; -- the least beat of those that do
	m gale.members;
	is_new boolean;
BEGIN
	g.nudge := 0;
	g := gale.begin(g, ask, at, "now");
	FOR first IN
		SELECT s.node, s.beat, s.incarnation, s.seq FROM gale.members AS s
		WHERE s.group_name = g.name AND s.beat >= g.first_beat
		ORDER BY s.beat, s.node LIMIT 18
	LOOP
		IF gone < 16 AND first.beat <= g.over
			AND (first.node <> "from" OR first.incarnation <> ask[at] OR first.seq > ask[at + 1])
		THEN
			g := gale.remove(g, first.node);
			gone := gone + 1;
			CONTINUE;
		END IF;
		stays := coalesce(stays, first.beat);
		IF first.node <> "from" THEN
			next := first.beat;
			EXIT;
		END IF;
	END LOOP;
	g.first_beat := least(stays, g.beats); -- later beats are larger
	IF g.members = 0 AND NOT gale.agrees(g, ask, at) THEN
		g := gale.begin(g, ask, at, "now");
	END IF;
	SELECT * INTO m FROM gale.members AS s WHERE s.group_name = g.name AND s.node = "from";
	is_new := NOT FOUND;
	IF NOT gale.agrees(g, ask, at) THEN
		PERFORM gale.keep(g);
		RETURN ARRAY[4, 0, 0, 0, 0, 0, 0, 0, 0, g.life, g.beats, 0, g.lasts_us, 0, 0];
	ELSIF m.incarnation <> ask[at] AND g.over < m.beat
		OR m.incarnation = ask[at] AND ask[at + 1] < m.seq
	THEN
		PERFORM gale.keep(g);
		RETURN ARRAY[3, 0, 0, 0, 0, 0, 0, 0, 0, g.life, g.beats, m.beat, g.lasts_us, 0, 0];
	ELSIF m.incarnation = ask[at] AND ask[at + 1] = m.seq THEN
		PERFORM gale.keep(g);
		RETURN ARRAY[1, m.share, m.generation, g.epoch, m.share + m.lacks, g.limit, g.members,
			g.in_flight, g.lacking, g.life, g.beats, 0, g.lasts_us, 0, 0];
	ELSIF ask[at + 11] > 0 AND ask[at + 5] = 0 THEN
		IF is_new THEN
			g := gale.nudge_to_take(g, g.lacking, g.reserved);
		ELSE
			g := gale.nudge_to_take(g, g.lacking - m.lacks,
				g.reserved - greatest(m.share, m.high, m.in_flight));
			g := gale.remove(g, "from");
		END IF;
		PERFORM gale.keep(g);
		RETURN '{2,0,0,0,0,0,0,0,0,0,0,0,0,0,0}';
	ELSIF is_new AND g.members >= 1048576 THEN
		PERFORM gale.keep(g);
		RETURN ARRAY[5, 0, 0, 0, 0, 0, 0, 0, 0, g.life, g.beats, 0, g.lasts_us, 0, 0];
	END IF;
	m.group_name := g.name;
	m.node := "from";
	RETURN gale.beat_in(g, m, is_new, ask, at, next);
END
$$;

-- The group's row, locked; it is made if there is none.
CREATE OR REPLACE FUNCTION gale.lock_group(wanted bytea) RETURNS gale.groups
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	g gale.groups;
BEGIN
	SELECT * INTO g FROM gale.groups WHERE name = wanted FOR NO KEY UPDATE;
	IF NOT FOUND THEN
		INSERT INTO gale.groups (name) VALUES (wanted) ON CONFLICT DO NOTHING;
		SELECT * INTO g FROM gale.groups WHERE name = wanted FOR NO KEY UPDATE;
	END IF;
	IF NOT FOUND THEN
		RAISE serialization_failure USING MESSAGE = 'the group was swept meanwhile';
	END IF;
	RETURN g;
END
$$;

-- A group whose words make a beat fail is lost, and its members: it is new, and quiet for the longer of
-- the lease that it had and that of the node that reports.
CREATE OR REPLACE FUNCTION gale.lose(g gale.groups) RETURNS gale.groups
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	lasted bigint := greatest(g.lease_us, g.lasts_us);
BEGIN
	IF lasted NOT BETWEEN 0 AND 86400000000 THEN
		lasted := 0;
	END IF;
	DELETE FROM gale.members WHERE group_name = g.name;
	DELETE FROM gale.groups WHERE name = g.name;
	INSERT INTO gale.groups (name, lasts_us, quiet) VALUES (g.name, lasted, 1) RETURNING * INTO g;
	RETURN g;
END
$$;

CREATE OR REPLACE FUNCTION gale.beat_or_lose(g gale.groups, "from" bytea, ask bigint[], at int,
	"now" bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN gale.beat_of(g, "from", ask, at, "now");
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
	RETURN gale.beat_of(gale.lose(g), "from", ask, at, "now");
END
$$;

-- The reports of nodes to groups, all at once or none; in the order of the groups' names, so that
-- nobody waits in a circle.  If the words of one make it fail, all is done once more, and that one
-- is lost: the later answers count.
CREATE OR REPLACE FUNCTION gale.beat(wanted int, nonce bigint, meant text, names bytea[],
	nodes bytea[], ask bigint[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off -- as gale.lend has it
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
	other CONSTANT text := gale.meet(wanted, meant);
	"now" bigint;
	i int;
	g gale.groups;
	words bigint[];
	one_is_wrong boolean := false;
BEGIN
	IF other IS NOT NULL THEN
		RETURN NEXT gale.tell_other(nonce, other);
		RETURN;
	END IF;
	LOOP
		BEGIN
			FOR i IN SELECT n FROM unnest(names) WITH ORDINALITY AS k (name, n) ORDER BY name, n LOOP
				g := gale.lock_group(names[i]);
				"now" := gale.now_of(meant); -- SCHEMA-2
				IF one_is_wrong THEN
					words := gale.beat_or_lose(g, nodes[i], ask, i * 24 - 13, "now");
				ELSE
					words := gale.beat_of(g, nodes[i], ask, i * 24 - 13, "now");
				END IF;
				RETURN NEXT ROW(0, ARRAY[nonce, "now"])::gale.told;
				RETURN NEXT ROW(i, words)::gale.told;
			END LOOP;
			RETURN;
		EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
			IF one_is_wrong THEN
				RAISE;
			END IF;
			one_is_wrong := true;
		END;
	END LOOP;
END
$$;

-- ---- Claims ------------------------------------------------------------------------

-- These functions are engine/pool.c's, in the order of stores/pools.c.  A pool's row is locked for all
-- of a claim, so claims of one pool come one after the other.
--
-- ask has 15 numbers for each claim, from at on:
--
--     0 not_before_us, 1 node, 2 limit, 3 period_us, 4 release_us, 5 protect_us, 6 guarantee, 7 cap,
--     8 weight, 9 present, 10 window, 11 had, 12 more, 13 least, 14 back
--
-- A weight times a level may be above 2^63: as a double it is compared with what there is room for,
-- which is exact where it matters.

-- What tenants have at a level, together, and what a unit more of it adds where nothing bends.
CREATE OR REPLACE FUNCTION gale.filled(used bigint[], bases bigint[], tops bigint[], weights bigint[],
	whole bigint, parts bigint, OUT units bigint, OUT slope bigint)
LANGUAGE sql IMMUTABLE
AS $$
	SELECT sum(greatest(u, b + a))::bigint,
		sum(CASE WHEN a < t - b AND b + a >= u THEN w ELSE 0 END)::bigint
	FROM (
		SELECT u, b, t, w, CASE WHEN w::float8 * whole >= t - b THEN t - b
			ELSE least(w * whole + w * parts / 1048576, t - b) END AS a
		FROM unnest(used, bases, tops, weights) AS v (u, b, t, w)
	) AS at
$$;

-- The largest level at which all together are not above the rest: of whole units, or, where these
-- are known, of parts.  Each fourth look halves what is left.
CREATE OR REPLACE FUNCTION gale.level_of(used bigint[], bases bigint[], tops bigint[], weights bigint[],
	rest bigint, whole bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
	scale CONSTANT float8 := CASE WHEN whole IS NULL THEN 1 ELSE 1048576 END;
	high bigint := CASE WHEN whole IS NULL THEN rest + 1 ELSE 1048576 END;
	low bigint := 0;
	at bigint := 0;
	looks int := 0;
	units bigint;
	slope bigint;
BEGIN
	LOOP
		IF whole IS NULL THEN
			SELECT f.units, f.slope INTO units, slope FROM gale.filled(used, bases, tops, weights, at, 0) AS f;
		ELSE
			SELECT f.units, f.slope INTO units, slope FROM gale.filled(used, bases, tops, weights, whole, at) AS f;
		END IF;
		IF units <= rest THEN
			low := at;
		ELSIF looks > 0 THEN
			high := at;
		END IF;
		EXIT WHEN high - low <= 1;
		looks := looks + 1;
		IF looks % 4 = 0 THEN
			at := low + (high - low) / 2;
		ELSIF slope > 0 THEN
			at := greatest(low + 1, least(high - 1, at + floor((rest - units) * scale / slope)));
		ELSE
			at := high - 1;
		END IF;
	END LOOP;
	RETURN low;
END
$$;

-- A window has begun: pool_keeps, pool_forget.
CREATE OR REPLACE FUNCTION gale.turn_pool(p gale.pools, release_us bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	DELETE FROM gale.tenants
	WHERE pool = p.name AND p.now_us - asked_us >= greatest(release_us, 2 * p.period_us);
	UPDATE gale.tenants SET asked_us = CASE WHEN refused > 0 THEN p.window_us ELSE asked_us END,
		used = 0, refused = 0
	WHERE pool = p.name;
END
$$;

CREATE OR REPLACE FUNCTION gale.keep_pool(p gale.pools) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	UPDATE gale.pools SET period_us = p.period_us, now_us = p.now_us, window_us = p.window_us,
		used = p.used, "limit" = p."limit", claims = p.claims, release_us = p.release_us,
		protect_us = p.protect_us
	WHERE name = p.name
$$;

CREATE OR REPLACE FUNCTION gale.refuse_claim(p gale.pools, result bigint, retry bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	remains CONSTANT bigint := greatest(p.window_us + p.period_us - p.now_us, 0);
BEGIN
	PERFORM gale.keep_pool(p);
	RETURN ARRAY[result, p.window_us, 0, remains, 0, 0, 0, retry, p."limit", 0, 0, 0, 0, p.period_us,
		p.release_us, p.protect_us];
END
$$;

-- What the tenant may be granted: look, part_of, ceiling_of, less what it has used.  Its row is as it is
-- to be.
CREATE OR REPLACE FUNCTION gale.spare_of(p gale.pools, t gale.tenants, ask bigint[], at int,
	OUT spare bigint, OUT share bigint, OUT retry bigint, OUT guarantees bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	remains CONSTANT bigint := greatest(p.window_us + p.period_us - p.now_us, 0);
	used bigint[];
	bases bigint[];
	tops bigint[];
	weights bigint[];
	rest bigint;
	whole bigint;
	parts bigint;
	others bigint;
	own int;
BEGIN
	WITH there AS (
		SELECT * FROM gale.tenants WHERE pool = p.name AND name <> t.name
		UNION ALL SELECT t.*
	), leaving AS (
		SELECT there.*, there.name = t.name AS itself, greatest(least(asked_us + ask[at + 4], 9007199254740991),
			p.window_us + ask[at + 5]) AS leaves
		FROM there
	)
	SELECT array_agg(l.used), array_agg(least(guarantee, ask[at + 2])), array_agg(least(cap, ask[at + 2])),
		array_agg(weight), greatest(ask[at + 2] - greatest(p.used - sum(l.used), 0), 0),
		least(remains, min(leaves - p.now_us) FILTER (WHERE NOT itself)),
		array_position(array_agg(itself), true), least(sum(guarantee), 9007199254740991)
	INTO used, bases, tops, weights, rest, retry, own, guarantees
	FROM leaving AS l WHERE leaves > p.now_us OR itself;
	IF (SELECT units FROM gale.filled(used, bases, tops, weights, 0, 0)) > rest THEN
		tops := bases;
		bases := array_fill(0::bigint, ARRAY[array_length(tops, 1)]);
	END IF;
	whole := gale.level_of(used, bases, tops, weights, rest, NULL);
	parts := gale.level_of(used, bases, tops, weights, rest, whole);
	SELECT units INTO share
	FROM gale.filled(used[own:own], bases[own:own], tops[own:own], weights[own:own], whole, parts);
	SELECT units - share INTO others FROM gale.filled(used, bases, tops, weights, whole, parts);
	spare := least((SELECT units FROM gale.filled(used[own:own], bases[own:own], tops[own:own], weights[own:own],
		whole, parts + 1)), share + 1, ask[at + 7], greatest(rest - others, 0));
	spare := greatest(spare - t.used, 0);
END
$$;

-- One claim, of a pool whose row is locked.
CREATE OR REPLACE FUNCTION gale.claim_of(p gale.pools, whose bytea, ask bigint[], at int, "now" bigint)
RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	"from" CONSTANT bigint := ask[at + 1]; -- a node
	before bigint;
	start bigint;
	agrees boolean;
	t gale.tenants;
	terms bigint[];
	granted bigint;
	back bigint;
	had bigint := 0;
	units bigint;
	wants bigint;
	needs bigint;
	is_claimed boolean;
	s record;
	result bigint := 0;
	retry bigint;
BEGIN
	-- pool_begin
	p.now_us := greatest(p.now_us, "now");
	start := p.now_us - p.now_us % ask[at + 3];
	agrees := p.period_us = ask[at + 3] AND p.release_us = ask[at + 4] AND p.protect_us = ask[at + 5];
	IF NOT agrees AND start < p.window_us + p.period_us THEN
		RETURN gale.refuse_claim(p, 2, start + ask[at + 3] - p.now_us);
	END IF;
	IF NOT agrees AND p.now_us < p.window_us + 2 * p.period_us THEN
		RETURN gale.refuse_claim(p, 2, least(p.window_us + 2 * p.period_us - p.now_us, ask[at + 3]));
	END IF;
	IF NOT agrees OR start <> p.window_us THEN
		p.period_us := ask[at + 3];
		p.release_us := ask[at + 4];
		p.protect_us := ask[at + 5];
		p.window_us := start;
		p.used := 0;
		p.claims := 0;
		PERFORM gale.turn_pool(p, ask[at + 4]);
	END IF;
	SELECT * INTO t FROM gale.tenants AS k WHERE k.pool = p.name AND k.name = whose;
	IF NOT FOUND THEN
		IF (SELECT count(*) FROM gale.tenants AS k WHERE k.pool = p.name) >= 256 THEN
			RETURN gale.refuse_claim(p, 3, greatest(p.window_us + p.period_us - p.now_us, 0));
		END IF;
		t := ROW(0, 0, 0, 0, 0, 0, p.name, whose)::gale.tenants;
	END IF;
	SELECT c.granted, c.back INTO granted, back FROM gale.claims AS c
	WHERE c.pool = p.name AND c.tenant = whose AND c.node = "from"
		AND c.window_us = p.window_us;
	granted := coalesce(granted, 0);
	back := coalesce(back, 0);
	is_claimed := granted > 0;

	-- pool_step
	before := p."limit";
	terms := ARRAY[t.guarantee, t.cap, t.weight];
	t.guarantee := ask[at + 6];
	t.cap := ask[at + 7];
	t.weight := ask[at + 8];
	IF ask[at + 9] > 0 THEN
		t.asked_us := p.now_us;
	END IF;
	p."limit" := ask[at + 2];
	IF ask[at + 10] = p.window_us THEN -- hear
		had := ask[at + 11];
		units := least(greatest(had - granted, 0), 9007199254740991 - p.used);
		granted := granted + units;
		t.used := t.used + units;
		p.used := p.used + units;
		units := least(greatest(least(ask[at + 14], granted) - back, 0), t.used);
		back := back + units;
		t.used := t.used - units;
		p.used := p.used - units;
	END IF;
	wants := greatest(had + ask[at + 12] - granted, 0);
	needs := greatest(had + ask[at + 13] - granted, 0);
	s := gale.spare_of(p, t, ask, at);
	retry := s.retry;
	IF ask[at] > p.now_us THEN
		result := 1;
		retry := ask[at] - p.now_us;
	ELSIF granted = 0 AND p.claims >= 65536 THEN
		result := 3;
		retry := greatest(p.window_us + p.period_us - p.now_us, 0);
	ELSE
		units := CASE WHEN s.spare < needs THEN 0
			ELSE least(wants, greatest(needs, (s.spare + 7) / 8)) END; -- quantum
		granted := granted + units;
		t.used := t.used + units;
		p.used := p.used + units;
		IF units < needs THEN
			t.refused := 1;
		END IF;
	END IF;
	IF granted > 0 AND NOT is_claimed THEN
		p.claims := p.claims + 1;
	END IF;
	PERFORM gale.keep_pool(p);
	INSERT INTO gale.tenants SELECT t.*
	ON CONFLICT (pool, name) DO UPDATE SET guarantee = excluded.guarantee, cap = excluded.cap,
		weight = excluded.weight, asked_us = excluded.asked_us, used = excluded.used,
		refused = excluded.refused;
	IF granted > 0 THEN
		INSERT INTO gale.claims VALUES (granted, back, p.window_us, p.window_us + p.period_us, p.name, whose, "from")
		ON CONFLICT ON CONSTRAINT claims_pkey DO UPDATE SET granted = excluded.granted, back = excluded.back,
			window_us = excluded.window_us, expires_us = excluded.expires_us;
	END IF;
	RETURN ARRAY[result, p.window_us, granted, greatest(p.window_us + p.period_us - p.now_us, 0), s.share,
		t.used, greatest(ask[at + 2] - p.used, 0), retry, before] || terms
		|| ARRAY[s.guarantees, p.period_us, p.release_us, p.protect_us];
END
$$;

-- The pool's row, locked; it is made if there is none.
CREATE OR REPLACE FUNCTION gale.lock_pool(wanted bytea) RETURNS gale.pools
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	p gale.pools;
BEGIN
	SELECT * INTO p FROM gale.pools WHERE name = wanted FOR NO KEY UPDATE;
	IF NOT FOUND THEN
		INSERT INTO gale.pools (name) VALUES (wanted) ON CONFLICT DO NOTHING;
		SELECT * INTO p FROM gale.pools WHERE name = wanted FOR NO KEY UPDATE;
	END IF;
	IF NOT FOUND THEN
		RAISE serialization_failure USING MESSAGE = 'the pool was swept meanwhile';
	END IF;
	RETURN p;
END
$$;

-- The same; NULL: the pool's words make it fail, and nothing has changed.
CREATE OR REPLACE FUNCTION gale.try_claim(p gale.pools, whose bytea, ask bigint[], at int, "now" bigint)
RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	RETURN gale.claim_of(p, whose, ask, at, "now");
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
	RETURN NULL;
END
$$;

-- The claims of nodes, all at once or none; in the order of the pools' names, so that nobody waits in a
-- circle.  If the words of a pool make it fail, all is done once more, and that pool is garbled: the
-- later answers count.
CREATE OR REPLACE FUNCTION gale.claim(wanted int, nonce bigint, meant text, names bytea[],
	tenants bytea[], ask bigint[])
RETURNS SETOF gale.told
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off -- as gale.lend has it
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
	other CONSTANT text := gale.meet(wanted, meant);
	"now" bigint;
	i int;
	p gale.pools;
	words bigint[];
	one_is_wrong boolean := false;
BEGIN
	IF other IS NOT NULL THEN
		RETURN NEXT gale.tell_other(nonce, other);
		RETURN;
	END IF;
	LOOP
		BEGIN
			FOR i IN SELECT n FROM unnest(names) WITH ORDINALITY AS k (name, n) ORDER BY name, n LOOP
				p := gale.lock_pool(names[i]);
				"now" := gale.now_of(meant); -- SCHEMA-2
				IF one_is_wrong THEN
					words := gale.try_claim(p, tenants[i], ask, i * 15 - 14, "now");
				ELSE
					words := gale.claim_of(p, tenants[i], ask, i * 15 - 14, "now");
				END IF;
				RETURN NEXT ROW(0, ARRAY[nonce, "now"])::gale.told;
				RETURN NEXT ROW(CASE WHEN words IS NULL THEN i + 640 ELSE i END, words)::gale.told;
			END LOOP;
			RETURN;
		EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
			IF one_is_wrong THEN
				RAISE;
			END IF;
			one_is_wrong := true;
		END;
	END LOOP;
END
$$;

-- ---- Upkeep ------------------------------------------------------------------------

-- Drops a few of the pools of which two windows have passed since they were asked, and margin_us, and
-- claims of windows that are over; and keeps in mind when they were (SCHEMA-4).
CREATE OR REPLACE FUNCTION gale.sweep_pools(most int, margin_us bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	due CONSTANT bigint := gale.now_us() - margin_us;
	latest bigint;
	gone gale.pools;
BEGIN
	FOR gone IN
		SELECT * FROM gale.pools WHERE window_us + 3 * period_us <= due LIMIT 8 FOR UPDATE SKIP LOCKED
	LOOP
		DELETE FROM gale.tenants WHERE pool = gone.name;
		DELETE FROM gale.pools WHERE name = gone.name;
		UPDATE gale.birth SET earliest = gone.window_us + gone.period_us
		WHERE one AND earliest < gone.window_us + gone.period_us;
	END LOOP;
	WITH old AS (
		DELETE FROM gale.claims WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM gale.claims WHERE expires_us <= due LIMIT most FOR UPDATE SKIP LOCKED))
		RETURNING expires_us
	)
	SELECT max(expires_us) INTO latest FROM old;
	UPDATE gale.birth SET earliest = latest WHERE one AND earliest < latest;
END
$$;

-- Drops a few of the groups whose last lease has been over for margin_us and a day, and keeps
-- in mind when it was (SCHEMA-4).
CREATE OR REPLACE FUNCTION gale.sweep_groups(margin_us bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	due CONSTANT bigint := gale.now_us() - margin_us - 86400000000;
	gone gale.groups;
BEGIN
	FOR gone IN
		SELECT * FROM gale.groups WHERE now_us + lease_us <= due LIMIT 8 FOR UPDATE SKIP LOCKED
	LOOP
		DELETE FROM gale.members WHERE group_name = gone.name;
		DELETE FROM gale.groups WHERE name = gone.name;
		UPDATE gale.birth SET earliest = gone.now_us + gone.lease_us
		WHERE one AND earliest < gone.now_us + gone.lease_us;
	END LOOP;
END
$$;

-- Drops at most so many keys that have been expired for margin_us, skipping those that
-- somebody works on, and keeps in mind when the last of them did (SCHEMA-4).  The margin is what
-- the server's clock may be set back by without that.  Looks at a few pages at a time, and goes on from there: more is false at the end of a round.  Who
-- finds another sweep under way leaves it alone.
CREATE OR REPLACE FUNCTION gale.sweep(most int, margin_us bigint DEFAULT 60000000,
	OUT dropped int, OUT more boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
SET enable_seqscan = off
SET jit = off -- a table without an index for it seems dear: half a second, for which beats wait
AS $$
DECLARE
	pages CONSTANT bigint := pg_relation_size('gale.keys') / current_setting('block_size')::int;
	due CONSTANT bigint := gale.now_us() - margin_us;
	start bigint;
	first tid;
	next tid;
	latest bigint;
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
	WITH gone AS (
		DELETE FROM gale.keys WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM gale.keys
			WHERE ctid >= first AND ctid < next AND expires_us <= due
			LIMIT most FOR UPDATE SKIP LOCKED))
		RETURNING expires_us
	)
	SELECT count(*), max(expires_us) INTO dropped, latest FROM gone;
	UPDATE gale.birth SET earliest = latest WHERE one AND earliest < latest;
	IF dropped < most THEN
		start := start + 128;
	END IF;
	more := start < pages;
	WITH gone AS (
		DELETE FROM gale.rows WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM gale.rows WHERE expires_us <= due LIMIT most FOR UPDATE SKIP LOCKED))
		RETURNING 1
	)
	SELECT more OR count(*) >= most INTO more FROM gone;
	PERFORM gale.sweep_groups(margin_us);
	PERFORM gale.sweep_pools(most, margin_us);
	UPDATE gale.broom SET page = CASE WHEN more THEN start ELSE 0 END WHERE one;
END
$$;

-- May a crash of the server forget everything?  Then it writes no log and is faster; the
-- generation tells the nodes.  May be called at any time; it rewrites the table if that
-- is not so already.
CREATE OR REPLACE FUNCTION gale.set_durable(durable boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
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
	gale.lend(int, text, bytea[], bigint[], bigint, bigint[], bigint, bigint, bigint, bigint),
	gale.lend_first(int, text, bytea[], bigint[], bigint, bigint[], bigint, bigint, bigint, bigint),
	gale.lends(int, bigint, text, bytea[], bigint[], bigint, bigint[], bigint[], bigint[]),
	gale.beat(int, bigint, text, bytea[], bytea[], bigint[]),
	gale.claim(int, bigint, text, bytea[], bytea[], bigint[]),
	gale.sweep(int, bigint) TO PUBLIC;
