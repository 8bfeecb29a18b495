-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- step.lua -- changes values as the engine does, and says what they were (stores/remote.h).
--
--   KEYS   the generation's, then one of each job
--   ARGV   nonce, generation, then each job's bytes, as wire.c packs them
--   reply  nonce, now, then for each job the value as it was, or a code
--          nonce, the generation that is there: if it is another; nothing has changed
--
-- It knows how values change, and no answers: those the engine works out from what they
-- were.  All numbers are below 2^53 and so exact; a product that is not goes through
-- mul_div, and parts are compared before they are added.  What is written lives until
-- the engine's rule_expires, in whole milliseconds, never less; within a window that
-- stays as it is.
--
-- Functions are made anew by each call, and cost it: they are few, and those that are
-- seldom needed are made where they are.
local call, try, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local sub, fmod, min, max = string.sub, math.fmod, math.min, math.max
-- once: a second look would be another instant
local clock = call('TIME')
local now = min(clock[1] * 1000000 + clock[2], 4503599627370496)
local MOVED, WAITS, CALENDAR, CHANGED, GARBLED = 1, 2, 3, 4, 5
local MOST = 9007199254740991

local function keep(key, value, expires)
	if expires > now then
		call('SET', key, value, 'PXAT', math.ceil(expires / 1000))
	else
		call('DEL', key)
	end
end

-- The value, or why not.  Its rows would begin at byte rows.
local function read(key, head, rows)
	local value = try('GET', key) or ''
	if type(value) == 'table' then return nil, GARBLED end
	if value == '' then return value end
	if sub(value, 1, 16) == head then
		local behind = #value - rows + 1
		if behind >= 0 and behind <= 384 and behind % 48 == 0 then return value end
		return nil, GARBLED
	end
	if #value < 16 or sub(value, 1, 1) ~= '\1' or sub(value, 3, 4) ~= '\0\0' or
	   #value < 16 + 8 * unpack('<I4', value, 5) then
		return nil, GARBLED
	end
	return nil, CHANGED
end

-- Where the node's row begins; its number, granted, out, tag.
local function find(rows, node)
	for at = 1, #rows, 48 do
		if sub(rows, at, at + 7) == node then
			return at, unpack('<I8I8I8I8I8', rows, at + 8)
		end
	end
end

-- The row comes first; the one that was at at is gone, or else the ninth.
local function put_first(rows, at, row)
	if at then rows = sub(rows, 1, at - 1) .. sub(rows, at + 48) end
	return row .. sub(rows, 1, 336)
end

-- The row at at has taken something back.
local function put_back(rows, at, number, out)
	return sub(rows, 1, at + 7) .. pack('<I8I8I8', number, 0, out) .. sub(rows, at + 32)
end

-- Fixed windows, quotas, budgets.
local function window(verb, key, job)
	local head, early, limit, period, first, at = unpack('<c16dddd', job, 2)
	if now < early then return WAITS end
	local value, code = read(key, head, 33)
	if code then return code end
	local start, used, from, to = 0, 0
	if value ~= '' then
		start, used = unpack('<I8I8', value, 17)
		if start > 4503599627370496 or used > MOST then return GARBLED end
	end
	local when = max(now, start) -- W2
	if period > 0 then
		from = fmod(when - first, period) -- first < period starts one of them
		from = when - (from < 0 and from + period or from)
		from, to = max(from, 0), from + period
	else -- months
		for i = at, at + 32, 16 do
			from, to = unpack('<dd', job, i)
			if from <= when and when < to then break end
			from = nil
		end
		if not from then return CALENDAR end
		at = at + 48
	end
	local turns = used == 0 or start < from -- then it is to live until another instant
	if start < from then start, used = from, 0 end

	if verb == 's' or verb == 'b' then -- step; of a budget
		local cost = unpack('<d', job, at)
		if verb == 'b' and used >= limit or verb == 's' and used + cost > limit then
			return value
		end
		used = pack('<I8', min(used + cost, MOST))
		if turns then
			keep(key, head .. pack('<I8', start) .. used .. sub(value, 33), to)
		else
			call('SETRANGE', key, 24, used)
		end
		return value
	end

	local rows = sub(value, 33)
	if rows ~= '' and unpack('<I8', rows, 33) ~= start then rows = '' end -- D5
	if verb == 'l' then -- lend
		local node, number, want, least, seen, seen_in, spent = unpack('<c8dddddd', job, at)
		local row, last, _, out = find(rows, node)
		if row and number <= last then return value end -- D2
		if start == seen_in and used < seen then used = seen end
		local units = min(want, limit - used)
		if units < least then
			if row and spent > 0 then -- it has nothing in hand
				call('SETRANGE', key, row + 39, pack('<I8I8', number, 0))
			end
			return value
		end
		used, out = used + units, units + (out or 0) -- D4
		rows = put_first(rows, row, node .. pack('<I8I8I8I8I8', number, units, out, start, 0))
	else -- take back
		local node, number, units, tag, tag_part = unpack('<c8dddd', job, at)
		local row, last, _, out, of, of_part = find(rows, node)
		if not row or number <= last or tag ~= of or tag_part ~= of_part or -- D2, D3
		   units < 1 or units > out or units > used then
			return value
		end
		used = used - units
		if used == 0 then to, turns = start, true end
		rows = put_back(rows, row, number, out - units)
	end
	rows = head .. pack('<I8I8', start, used) .. rows
	if turns then keep(key, rows, to) else call('SET', key, rows, 'KEEPTTL') end
	return value
end

-- GCRA, token buckets.  An instant or a span is whole microseconds, and a part.
local function meter(verb, key, job)
	local head, early, limit, period, full, full_part, bucket, at = unpack('<c16dddddd', job, 2)
	if now < early then return WAITS end
	local value, code = read(key, head, 41)
	if code then return code end
	local tat, tat_part, last, since = 0, 0, 0, now
	if value ~= '' then
		tat, tat_part, last = unpack('<I8I8I8', value, 17)
		if tat > MOST or tat_part >= limit or last > 4503599627370496 then return GARBLED end
		if bucket > 0 and now < last then since = last end -- G2
	end
	local ahead, ahead_part = tat - since, tat_part
	if ahead < 0 then ahead, ahead_part = 0, 0 end

	-- Takes a span, if there is room for it.
	local function takes(span, part)
		if part >= limit - ahead_part then
			span, part = ahead + span + 1, part - (limit - ahead_part)
		else
			span, part = ahead + span, ahead_part + part
		end
		if span > full or span == full and part > full_part then return false end -- G1
		ahead, ahead_part = span, part
		return true
	end

	local function put(rows)
		keep(key, head .. pack('<I8I8I8', tat, tat_part, last) .. rows, tat_part > 0 and tat + 1 or tat)
	end

	if verb == 'S' then -- step
		if takes(unpack('<dd', job, at)) then
			tat, tat_part, last = since + ahead, ahead_part, bucket > 0 and since or 0
			put(sub(value, 41))
		end
		return value
	end

	-- floor(a * b / m), and the rest.
	local function mul_div(a, b, m)
		local product = a * b
		if product <= MOST then
			local rest = fmod(product, m)
			return (product - rest) / m, rest
		end
		local rest = fmod(a, m)
		local whole, bit, q, r = (a - rest) / m, 4503599627370496, 0, 0
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

	-- Takes all there is, and says how many units that is: the room, in 1/limit us, is so
	-- many periods and a rest that stays.
	local function takes_all()
		local room, part = full - ahead, full_part - ahead_part
		if part < 0 then room, part = room - 1, part + limit end
		if room < 0 then return 0 end
		local units, rest = mul_div(room, limit, period)
		local more = fmod(part, period)
		units = units + (part - more) / period
		if rest >= period - more then
			units, rest = units + 1, rest - (period - more)
		else
			rest = rest + more
		end
		part = fmod(rest, limit)
		ahead, ahead_part = full - (rest - part) / limit, full_part - part
		if ahead_part < 0 then ahead, ahead_part = ahead - 1, ahead_part + limit end
		return units
	end

	local rows = sub(value, 41)
	if verb == 'L' then -- lend
		local node, number, units, span, part, least = unpack('<c8ddddd', job, at)
		local row, was = find(rows, node)
		if row and number <= was then return value end -- D2
		if not takes(span, part) then units = takes_all() end
		if units < least then return value end
		tat, tat_part, last = since + ahead, ahead_part, bucket > 0 and since or 0
		rows = put_first(rows, row, node .. pack('<I8I8I8I8I8', number, units, units, tat, tat_part))
	else -- take back
		local node, number, units, span, part, tag, tag_part = unpack('<c8dddddd', job, at)
		local row, was, granted, out, of, of_part = find(rows, node)
		if not row or number <= was or granted == 0 or units < 1 or out < 1 or -- D2, D3
		   tag ~= of or tag_part ~= of_part or tag ~= tat or tag_part ~= tat_part or
		   now > tag or now == tag and tag_part == 0 then
			return value
		end
		if units > out then
			units = out
			span, part = mul_div(out, period, limit)
		end
		tat, tat_part = tat - span, tat_part - part
		if tat_part < 0 then tat, tat_part = tat - 1, tat_part + limit end
		rows = put_back(rows, row, number, out - units)
	end
	put(rows)
	return value
end

-- Values as they are, of any rule.
local function bytes(verb, key, job)
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

local generation = call('GET', KEYS[1]) or ''
if generation ~= ARGV[2] then return { tonumber(ARGV[1]), generation } end
local reply = { tonumber(ARGV[1]), now }
for i = 2, #KEYS do
	local job = ARGV[i + 1]
	local verb = sub(job, 1, 1)
	if verb == 's' or verb == 'l' or verb == 'g' or verb == 'b' then
		reply[i + 1] = window(verb, KEYS[i], job)
	elseif verb == 'S' or verb == 'L' or verb == 'G' then
		reply[i + 1] = meter(verb, KEYS[i], job)
	else
		reply[i + 1] = bytes(verb, KEYS[i], job)
	end
end
return reply
