-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- step.lua -- changes values as the engine does, and says what they were (stores/remote.h).
--
-- generation.lua goes before it.
--
--   KEYS   the generation's, then one of each job, then that of the rows apart of each job that
--          lends from a window or gives back to one
--   ARGV   nonce, generation, and until when that is sure, then each job's bytes, as wire.c
--          packs them; lends like the one before are one argument together
--   reply  nonce, now, then for each job the value as it was, or a code, or what is used
--          of a window now, as a number below zero: then it was lent all that was wanted,
--          and no other node has anything of it
--          nonce, the generation that is there: if it is another; nothing has changed
--
-- It knows how values change, and no answers: those the engine works out from what they
-- were.  All numbers are below 2^53 and so exact; a product that is not goes through
-- mul_div, and parts are compared before they are added.  A value that is written lives until
-- the engine's rule_expires and four seconds more, in whole milliseconds; within a window
-- that stays as it is.
--
-- A value's bytes, from 1: the head in two words, then a window's start and used, or a meter's
-- tat, part, last and period, and from 49 its rows.  A row is node, number, granted, out, tag and its
-- part, 48 bytes.  A window that has rows is folded (stores/value.h): the head, start, tag and the
-- first row's node; from 41, as doubles, apart, used and that row's number and granted; and
-- from 73 the other rows, which are node, number, granted and out, 32 bytes.  So what a lend to
-- the first row's node does not change lies together, and so does what it changes: from 49 to 72.
--
-- The eighth of a window's rows, at 265, may be the crowd's (engine/lease.h): its node is CROWD.
-- The rows apart are a hash beside the value, by their nodes as doubles: crowd, number, granted and
-- out, as doubles, too.  Where the asking node has one, it is told behind the value as a ninth: node,
-- number, granted, out.
--
-- A fixed window may have a row for what is lent ahead of the next (engine/lease.h), at any place: its
-- node is AHEAD, its number one more than the units of the next window that are lent, and its out the
-- units of this one that were lent ahead of it and that no node has said to have.  As long as its number
-- is above 1 the key lives until the next window is over, which then begins with so much used (LEASE-7).
-- The first that begins after the quarantine begins with a sixteenth of the limit more.
--
-- Functions are made anew by each call, and cost a lend alone a fifth of it: so what most calls
-- are is done with hardly any, and those that the rest needs are made when there is some.
local MOVED, WAITS, CALENDAR, CHANGED, GARBLED = 1, 2, 3, 4, 5
-- In a value, from 0; texts, as the server spells a number out for 0.2 us.
local USED_AT, NODE_AT, APART_AT, LENT_AT = '24', '32', '40', '48'

-- Most of a call's keys expire at the same instant, and to spell it takes a while.
local spelt, instant
local function spell(expires)
	if spelt ~= expires then
		spelt, instant = expires, string.format('%.0f',
			math.ceil((expires + 4 * SECOND) / 1000))
	end
	return instant
end

-- The quick way: a step of a window that no node has leased from; a lend, and lends that follow it
-- by its rule, of keys that no job before was of.
-- Their common part is looked at once, and the values of those that follow are read at once.
-- A node may have its row behind the first, where nodes take turns: it becomes the first.
-- A job that is not as simple is left for the long way; and then so are the lends behind it that
-- follow none, as their keys may be those of jobs that are left.
local keys, reply, left = KEYS, { ARGV[1], now }, nil
local i = 1 -- the last key that was looked at
local from, to, limit, begins, asker
local is_reserved -- of a key without a value something is used already
for argument = 4, #ARGV do
	local jobs = ARGV[argument]
	local verb, count, found, numbers, wants, missed = sub(jobs, 1, 1), 1
	if verb == 'l' or verb == 's' then -- of a step, its cost is where a lend has its node
		local head, mark, early, most, period, first, node, number, want =
			unpack('<ddddddddd', jobs, 2)
		from = nil
		if period > 0 and now >= early then
			local past = fmod(now - first, period) -- first < period starts one of them
			if past < 0 then past = past + period end
			from, to, limit = now - past, now - past + period, most
			if from < 0 then from = 0 end
			is_reserved = early > 0 and from >= early and from < early + period
			if verb == 'l' then
				begins, asker = pack('<I8I8I8I8I8', head, mark, from, from, node), node
				if not left then
					numbers, wants, found = { number }, { want }, try('MGET', keys[i + 1])
				end
			elseif not left then
				local value = try('GET', keys[i + 1])
				local fits = value and #value == 32 and
					find(value, pack('<I8I8I8', head, mark, from), 1, true) == 1
				local used = fits and unpack('<I8', value, 25) or 0
				found = { value }
				if used > 0 and used <= MOST then
					if used + node <= limit then
						call('SETRANGE', keys[i + 1], USED_AT, pack('<I8', used + node))
					end
					reply[i + 2] = value
				end
			end
		end
	elseif verb == 'm' or verb == 'n' then
		count = (#jobs - 1) / (verb == 'm' and 16 or 32)
		if from then
			local doubles = '<' .. rep('d', count)
			numbers, wants = { unpack(doubles, jobs, 2) }, { unpack(doubles, jobs, 2 + 8 * count) }
			found = try('MGET', list(keys, i + 1, i + count))
		end
	end
	-- It may not be allowed, or a key be on its way to another node: then they are left.
	missed = wants and found.err or not wants and not reply[i + 2]
	for j = 1, wants and not missed and count or 0 do
		local at, value, number, want = i + j, found[j], numbers[j], wants[j]
		if not value then
			if want <= limit and not is_reserved and
					call('SET', keys[at], begins .. pack('<dddd', 0, want, number, want),
						'PXAT', spell(to), 'NX') then
				reply[at + 1] = -want
			else
				missed = true
			end
		else
			local size = #value
			local fits = size == 72 or size > 72 and size <= 296 and size % 32 == 8
			local row, done -- of the node, behind the first
			if fits and find(value, begins, 1, true) == 1 then
				local used, last = unpack('<dd', value, 49)
				local becomes = used + want
				if number > last and used > 0 and becomes <= limit then
					call('SETRANGE', keys[at], LENT_AT, pack('<ddd', becomes, number, want))
					reply[at + 1] = size == 72 and -becomes or value
					done = true
				end
			elseif fits and find(value, sub(begins, 1, 32), 1, true) == 1 then
				row = find(value, pack('<d', asker), 73, true)
			end
			if row and row % 32 == 9 then
				local first, apart, used, last, granted = unpack('<I8dddd', value, 33)
				local was, _, out = unpack('<ddd', value, row + 8)
				local becomes = used + want
				if number > was and used > 0 and becomes <= limit then
					call('SETRANGE', keys[at], NODE_AT, pack('<I8dddddddd', asker, used - out, becomes,
						number, want, first, last, granted, used - apart) ..
						sub(value, 73, row - 1) .. sub(value, row + 32))
					reply[at + 1] = value
					done = true
				end
			end
			missed = missed or not done
		end
	end
	if missed then
		left = left or {}
		left[argument] = found
	end
	i = i + count
end
if not left then return reply end

-- The long way.
local CROWD, AHEAD = 9007199254740991, 9007199254740990
local named = i -- where in KEYS that of the rows apart of the job is that is looked at
local min, max = math.min, math.max
local function keep(key, value, expires)
	if expires <= now then
		call('DEL', key)
	else
		call('SET', key, value, 'PXAT', spell(expires))
	end
end

-- The value there is not the rule's: it is another rule's, or none of gale's.
local function refuse(value, head, mark)
	if type(value) == 'table' or #value < 16 then return GARBLED end
	local its_head, its_mark = unpack('<I8I8', value)
	local layout = unpack('<I4', value)
	if layout > 65535 or layout % 256 ~= 2 and layout % 256 ~= 1 or
	   its_head == head and its_mark == mark then
		return GARBLED
	end
	return CHANGED
end

-- A meter's rows but the one at at, or else the ninth.
local function others(value, at)
	if at then return sub(value, 49, at - 1) .. sub(value, at + 48) end
	return sub(value, 49, 384)
end

-- A window with rows: the first, and others, as they stand.
local function fold(head, mark, start, used, tag, node, number, granted, out, rows)
	return pack('<I8I8I8I8I8dddd', head, mark, start, tag, node, used - out, used, number, granted) ..
		rows
end

-- The row of what is lent ahead, in a window that has rows: where it stands, its number, and out.
local function ahead_of(value)
	local first, apart, used, its_number = unpack('<I8ddd', value, 33)
	if first == AHEAD then return 33, its_number, used - apart end
	for i = 73, #value, 32 do
		local other, number, _, out = unpack('<dddd', value, i)
		if other == AHEAD then return i, number, out end
	end
	return nil, 1, 0
end

-- Fixed windows, quotas, budgets.  The numbers of a verb come after its rule:
--   s, b  cost    l  node, number, units, least, spent    g  node, number, units, tag, part
--   a     what an l is given, and behind it ahead, had, had_of
-- Behind the numbers of a monthly quota its job has three months.
local function window(verb, key, found, job, head, mark, early, limit, period, first,
		node, number, units, a, b)
	if now < early then return WAITS end
	local value, start, used = found or try('GET', key) or '', 0, 0
	local size = type(value) == 'table' and 1 or #value
	local its_head, its_mark, tag, its_node, apart, last, granted, out
	if size > 0 then
		if size == 32 then
			its_head, its_mark, start, used = unpack('<I8I8I8I8', value)
		elseif size >= 72 and size <= 296 and size % 32 == 8 then
			its_head, its_mark, start, tag, its_node, apart, used, last, granted =
				unpack('<I8I8I8I8I8dddd', value)
			out = used - apart
		end
		if its_head ~= head or its_mark ~= mark or start > LATEST or not (used >= 0 and used <= MOST) then
			return refuse(value, head, mark)
		end
	end

	local when, from, to = now
	if start > now then when = start end -- WINDOW-2
	if period > 0 then
		if start > 0 and fmod(start - first, period) ~= 0 then return CHANGED end -- another anchor
		from = fmod(when - first, period) -- first < period starts one of them
		if from < 0 then from = from + period end
		from = when - from
		to = from + period
		if from < 0 then from = 0 end
	else -- months
		for i = 90, 122, 16 do
			from, to = unpack('<dd', job, i)
			if from <= when and when < to then break end
			from = nil
		end
		if not from then return CALENDAR end
	end
	local past = tag and tag ~= start -- LEASE-5
	local turns = used == 0 or start < from -- then it is to live until another instant
	local told, most = value, (limit - fmod(limit, 16)) / 16 -- that is lent ahead
	if start < from then
		used = 0
		if fmod(head, 65536) - fmod(head, 256) == 256 then -- a fixed window's: LEASE-7
			if tag == start and from == start + period then
				local _, sum = ahead_of(value)
				used = sum - 1
			end
			if early > 0 and from >= early and from < early + period then used = used + most end
		end
		start, past = from, true
		if used > 0 then -- by that row alone
			tag, past, its_node, last, granted, out = from, false, AHEAD, 1, 0, used
			value, size = fold(head, mark, from, used, from, AHEAD, 1, 0, used, ''), 72
		end
	elseif turns and tag and not past then
		local _, sum = ahead_of(value)
		if sum > 1 then to = start + 2 * period end
	end

	if verb == 's' or verb == 'b' then -- step; of a budget
		local cost = node
		if verb == 's' and used + cost > limit or verb == 'b' and used >= limit then
			return told
		end
		used = used + cost
		if used > MOST then used = MOST end
		if not turns then
			if tag then
				call('SETRANGE', key, APART_AT, pack('<dd', used - out, used))
			else
				call('SETRANGE', key, USED_AT, pack('<I8', used))
			end
		elseif tag then
			keep(key, fold(head, mark, start, used, tag, its_node, last, granted, out, sub(value, 73)), to)
		else
			keep(key, pack('<I8I8I8I8', head, mark, start, used), to)
		end
		return told
	end

	-- The node's row: its number's byte, and what it says; or all that it says, if it is apart.
	local row, was, has
	local rows_key, field, crowd, in_hand, holding, had_some, is_lost
	if tag and not past then
		if its_node == node then
			row, was, has = 57, last, out
		else
			for i = 73, size, 32 do
				local other, its_number, _, its_out = unpack('<dddd', value, i)
				if other == node then row, was, has = i + 8, its_number, its_out break end
			end
		end
		if not row and size >= 264 then
			local its_crowd, kept
			rows_key, field = keys[named], pack('<d', node)
			if size == 296 then
				its_crowd, crowd, in_hand, holding = unpack('<dddd', value, 265)
			end
			if its_crowd ~= CROWD then crowd, in_hand, holding = nil, 0, 0 end
			kept = crowd and try('HGET', rows_key, field)
			if type(kept) == 'table' then -- the hash is on its way to another server
				is_lost = true
			elseif kept and #kept == 32 then
				local its, its_number, its_granted, its_out = unpack('<dddd', kept)
				if its == crowd and its_out > 0 then -- LEASE-6
					was, has, had_some = its_number, its_out, its_granted > 0
					told = value .. pack('<dddd', node, its_number, its_granted, its_out)
				end
			end
			if crowd and not has and holding > 0 and try('EXISTS', rows_key) ~= 1 then
				is_lost = true -- the hash is gone: no node that comes makes it anew
			end
		end
	end
	if was and not (number > was) then return told end -- LEASE-2
	local becomes
	if verb == 'l' or verb == 'a' then -- lend
		local wanted, least, spent = units, a, b
		if units > limit - used then units = limit - used end
		if units < least then units = 0 end
		-- What more is out, the row of what is lent ahead, and what the node's says that it got.
		local gets, made, got = units, '', units
		if verb == 'a' then
			local more, had, had_of = unpack('<ddd', job, 90)
			local at, sum, unsaid, rows = nil, 1, 0, 0
			if tag and not past then
				at, sum, unsaid = ahead_of(value)
				rows = (size - 40) / 32
			end
			had = at and not was and had_of == start and min(had, unsaid) or 0 -- LEASE-8
			-- It has room behind the others, and not in the crowd's place.
			if units == 0 or not at and rows + (row and 0 or 1) > 6 then more = 0 end
			more = max(min(more, limit - used - units, most - (sum - 1)), 0)
			gets = units + had + more
			if units == 0 and had > wanted and spent == 0 then got = had end -- LEASE-9
			if sum == 1 and more > 0 then turns, to = true, start + 2 * period end
			if at == 33 then -- the first: what of it is out follows from what is apart
				last, out = sum + more, unsaid - had
				value = sub(value, 1, 56) .. pack('<d', last) .. sub(value, 65)
			elseif at then
				value = sub(value, 1, at + 7) .. pack('<ddd', sum + more, 0, unsaid - had) .. sub(value, at + 32)
			elseif more > 0 then
				made = pack('<dddd', AHEAD, 1 + more, 0, 0)
			end
			used = used + more
		end
		if gets == 0 then
			if row and spent > 0 then -- it has nothing in hand
				call('SETRANGE', key, row - 1, pack('<dd', number, 0))
			elseif has and spent > 0 then
				call('HSET', rows_key, field, pack('<dddd', crowd, number, 0, has))
				if had_some then call('SETRANGE', key, '280', pack('<d', max(in_hand - 1, 0))) end
			end
			return told
		end
		used = used + units
		if row == 57 and not turns and verb == 'l' then -- it stays the first
			call('SETRANGE', key, LENT_AT, pack('<ddd', used, number, units))
			return size == 72 and units == wanted and when == now and start == from and -used or value
		end
		if rows_key then
			if not crowd then
				crowd = now
				call('DEL', rows_key)
			end
			if not is_lost then -- or not allowed: then the row is lost, and its units stay spent
				try('HSET', rows_key, field, pack('<dddd', crowd, number, got, (has or 0) + gets)) -- LEASE-4
				if holding == 0 then try('PEXPIREAT', rows_key, spell(to)) end
			end
			if not has then holding = holding + 1 end
			if got == 0 then
				in_hand = max(had_some and in_hand - 1 or in_hand, 0)
			elseif not had_some then
				in_hand = in_hand + 1
			end
			in_hand = min(in_hand, holding)
			becomes = sub(value, 1, 40) .. pack('<dd', used - out, used) .. sub(value, 57, 264) ..
				pack('<dddd', CROWD, crowd, in_hand, holding)
		else
			local rows = '' -- of others
			if row == 57 then
				rows = sub(value, 73)
			elseif tag and not past then
				rows = row and sub(value, 73, row - 9) .. sub(value, row + 24)
				rows = pack('<dddd', its_node, last, granted, out) .. (rows or sub(value, 73))
			end
			becomes = fold(head, mark, start, used, start, node, number, got, -- LEASE-4
				(has or 0) + gets, rows .. made)
		end
	else -- take back
		local of, of_part = a, b
		if not has or tag ~= of or of_part > 1 or -- LEASE-3
		   not (units >= 1 and units <= has and units <= used) then
			return told
		end
		local some = units < has and of_part or 0 -- it may have, all the same: LEASE-9
		used = used - units
		if rows_key then
			if units < has then
				call('HSET', rows_key, field, pack('<dddd', crowd, number, some, has - units))
			else
				call('HDEL', rows_key, field)
				holding = max(holding - 1, 0)
				local at = ahead_of(value) -- LEASE-8
				if at == 33 then
					out = 0
				elseif at then
					value = sub(value, 1, at + 23) .. pack('<d', 0) .. sub(value, at + 32)
				end
			end
			in_hand = in_hand + some
			in_hand = min(max(had_some and in_hand - 1 or in_hand, 0), holding)
			becomes = sub(value, 1, 40) .. pack('<dd', used - out, used) .. sub(value, 57, 264) ..
				pack('<dddd', CROWD, crowd, in_hand, holding)
		elseif row == 57 then
			becomes = fold(head, mark, start, used, tag, node, number, some, out - units, sub(value, 73))
		else
			becomes = fold(head, mark, start, used, tag, its_node, last, granted, out,
				sub(value, 73, row - 1) .. pack('<ddd', number, some, has - units) .. sub(value, row + 24))
		end
		if used == 0 then
			local _, sum = ahead_of(value)
			if sum == 1 then turns, to = true, start end
		end
	end
	if turns then
		keep(key, becomes, to)
	elseif #becomes < size then
		call('SET', key, becomes, 'KEEPTTL')
	else -- by a third faster
		call('SETRANGE', key, '0', becomes)
	end
	return told
end

-- floor(a * b / m), and the rest.
local function mul_div(a, b, m)
	local product = a * b
	if product <= MOST then
		local rest = fmod(product, m)
		return (product - rest) / m, rest
	end
	local rest = fmod(a, m)
	local whole, bit, q, r = (a - rest) / m, LATEST, 0, 0
	while bit >= 1 do -- a times the upper bits of b is q * m + r
		if r >= m - r then q, r = q + q + 1, r - (m - r) else q, r = q + q, r + r end
		if b >= bit then
			b, q = b - bit, q + whole
			if r >= m - rest then q, r = q + 1, r - (m - rest) else r = r + rest end
		end
		bit = bit / 2
	end
	return q, r
end

-- GCRA, token buckets.  An instant or a span is whole microseconds, and a part.
local function meter(verb, key, job)
	local head, mark, early, limit, period, full, full_part, bucket, span, part, at =
		unpack('<dddddddddd', job, 2)
	if now < early then return WAITS end
	local value, tat, tat_part, last, since = try('GET', key) or '', 0, 0, 0, now
	if value ~= '' then
		local its_head, its_mark, its_period
		local size = type(value) == 'table' and 0 or #value
		if size < 48 or size > 432 or size % 48 ~= 0 then return refuse(value, head, mark) end
		its_head, its_mark, tat, tat_part, last, its_period = unpack('<I8I8I8I8I8I8', value)
		if its_head == head and its_mark == mark and its_period ~= period and its_period > 0 then
			return CHANGED
		end
		if its_head ~= head or its_mark ~= mark or tat > MOST or tat_part >= limit or last > LATEST then
			return refuse(value, head, mark)
		end
		if bucket > 0 and now < last then since = last end -- METER-2
	end
	local node, number, units, row, was, granted, out, tag, tag_part
	if verb ~= 'S' then
		node, number, units, at = unpack('<ddd', job, at)
		for i = 49, #value, 48 do
			local its_node
			its_node, was, granted, out, tag, tag_part = unpack('<I8I8I8I8I8I8', value, i)
			if its_node == node then row = i break end
		end
		if row and number <= was then return value end -- LEASE-2
	end

	local rows
	if verb == 'G' then -- take back
		local of, of_part = unpack('<dd', job, at)
		if not row or granted == 0 or tag ~= of or tag_part ~= of_part or -- LEASE-3
		   tag ~= tat or tag_part ~= tat_part or now > tat or now == tat and tat_part == 0 or
		   units < 1 or out < 1 then
			return value
		end
		if units > out then
			units = out
			span, part = mul_div(out, period, limit)
		end
		tat, tat_part = tat - span, tat_part - part
		if tat_part < 0 then tat, tat_part = tat - 1, tat_part + limit end
		rows = sub(value, 49, row + 7) .. pack('<I8I8I8', number, 0, out - units) .. sub(value, row + 32)
	else
		local ahead, ahead_part = tat - since, tat_part
		if ahead < 0 then ahead, ahead_part = 0, 0 end
		local room, room_part = full - ahead, full_part - ahead_part
		if room_part < 0 then room, room_part = room - 1, room_part + limit end
		if span > room or span == room and part > room_part then -- METER-1
			if verb == 'S' or room < 0 then return value end
			-- all there is: in 1/limit us the room is so many periods, and a rest that stays
			local rest, more
			units, rest = mul_div(room, limit, period)
			more = fmod(room_part, period)
			units = units + (room_part - more) / period
			if rest >= period - more then
				units, rest = units + 1, rest - (period - more)
			else
				rest = rest + more
			end
			more = fmod(rest, limit)
			span, part = room - (rest - more) / limit, room_part - more
			if part < 0 then span, part = span - 1, part + limit end
		end
		tat, tat_part = since + ahead + span, ahead_part
		if part >= limit - tat_part then
			tat, tat_part = tat + 1, part - (limit - tat_part)
		else
			tat_part = tat_part + part
		end
		if bucket > 0 then last = since end
		if verb == 'S' then
			rows = sub(value, 49)
		else
			if units < unpack('<d', job, at) then return value end -- least
			rows = pack('<I8I8I8I8I8I8', node, number, units, units, tat, tat_part) .. others(value, row)
		end
	end
	keep(key, pack('<I8I8I8I8I8I8', head, mark, tat, tat_part, last, period) .. rows,
		tat_part > 0 and tat + 1 or tat)
	return value
end

-- Values as they are, of any rule.
local function whole(verb, key, job)
	if verb == 'd' then -- drop, whatever it is
		call('DEL', key)
		return ''
	end
	local value = try('GET', key) or ''
	if type(value) == 'table' then return GARBLED end
	if verb == 'r' then -- read
		return #value <= unpack('<d', job, 2) and value or GARBLED
	end
	local early, expires, was, at = unpack('<ddd', job, 2) -- swap
	if now < early then return WAITS end
	if value ~= sub(job, at, at + was - 1) then return MOVED end
	keep(key, sub(job, at + was), at + was <= #job and expires or 0)
	return ''
end

local lead
i = 1
for argument = 4, #ARGV do
	local jobs, found = ARGV[argument], left[argument] or {}
	local verb, count = sub(jobs, 1, 1), 1
	local head, mark, early, limit, period, first, node, least, spent, _
	if verb == 'l' then
		lead = jobs
	elseif verb == 'm' or verb == 'n' then
		count = (#jobs - 1) / (verb == 'm' and 16 or 32)
		head, mark, early, limit, period, first, node, _, _, least, spent =
			unpack('<ddddddddddd', lead, 2)
	end
	for j = 1, count do
		local at, key = i + j, keys[i + j]
		if verb == 'l' or verb == 'g' or verb == 'm' or verb == 'n' or verb == 'a' then
			named = named + 1
		end
		if reply[at + 1] then
			-- it is told
		elseif head then
			if verb == 'n' then
				least, spent = unpack('<d', jobs, 8 * (2 * count + j) - 6),
					unpack('<d', jobs, 8 * (3 * count + j) - 6)
			end
			reply[at + 1] = window('l', key, found[j], lead, head, mark, early, limit, period, first, node,
				unpack('<d', jobs, 8 * j - 6), unpack('<d', jobs, 8 * (count + j) - 6), least, spent)
		elseif verb == 's' or verb == 'l' or verb == 'g' or verb == 'b' or verb == 'a' then
			reply[at + 1] = window(verb, key, found[j], jobs, unpack('<ddddddddddd', jobs, 2))
		elseif verb == 'S' or verb == 'L' or verb == 'G' then
			reply[at + 1] = meter(verb, key, jobs)
		else
			reply[at + 1] = whole(verb, key, jobs)
		end
	end
	i = i + count
end
return reply
