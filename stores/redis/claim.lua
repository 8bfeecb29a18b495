-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- claim.lua -- a node claims units of a pool for a tenant, as engine/pool.c has it.
--
-- generation.lua goes before it.
--
--   KEYS   the generation's, then of each claim its pool's, and that of the pool's claims
--   ARGV   nonce, generation, and until when that is sure, then of each claim its numbers, as
--          doubles (the instant before which nothing is granted, the node, and the ask), and the
--          tenant's name
--   reply  nonce, now, then for each claim the words of its answer, or a code
--
-- A pool is a hash: at 'p' the words of struct pool, and at 't' and a tenant's name those of the
-- tenant.  Its claims are another: at the node, as a double, and the tenant's name.  Words are
-- doubles, below 2^53 and so exact.  The claims go when a window turns.  The pool expires when two
-- windows have passed without an ask, and four seconds more, as a clock may be set back.
--
-- stores/pools.c does the same in the same order.  A claim is some five commands, one of which
-- reads all tenants.  The level is looked for from where it would be if nothing bent it; so most
-- of the time four looks find it.
local PARTS, TENANTS_MAX, CLAIMS_MAX, PART = 1048576, 256, 65536, 8
local ANSWERED, QUIET, DISAGREES, FULL, GARBLED = 0, 1, 2, 3, 5
local POOL, TENANT, CLAIM = '<dddddddd', '<dddddd', '<dd'
local ASK, ANSWER = '<' .. rep('d', 15), '<' .. rep('I8', 16)
local NO_POOL, NO_TENANT, NO_CLAIM = rep('\0', 64), rep('\0', 48), rep('\0', 16)
local max, min, floor, exact = math.max, math.min, math.floor, string.format

local function div(a, b)
	return (a - fmod(a, b)) / b
end

local function minus(a, b)
	return max(a - b, 0)
end

-- The largest n below high at which all together are not above the rest: filled gives what they
-- have at n, and what one more adds where nothing bends.  Each fourth look halves what is left.
local function find_level(high, rest, filled)
	local low, looks = 0, 0
	local sum, slope = filled(0)
	while high - low > 1 do
		local at = high
		if slope > 0 then at = (sum <= rest and low or high) + floor((rest - sum) / slope) end
		looks = looks + 1
		if fmod(looks, 4) == 0 then at = low + floor((high - low) / 2) end
		at = max(low + 1, min(high - 1, at))
		sum, slope = filled(at)
		if sum <= rest then low = at else high = at end
	end
	return low
end

local function claim(key, claims, numbers, name)
	local not_before, node, limit, period, release, protect, guarantee, cap, weight, present, of_window, had, more,
		least, back = unpack(ASK, numbers)
	local found = try('HGETALL', key)
	if found.err then return GARBLED end
	local kept, tenants, count = nil, {}, 0
	for i = 1, #found, 2 do
		local field, bytes = found[i], found[i + 1]
		local is_pool = field == 'p'
		if is_pool and #bytes == 48 then bytes = bytes .. pack('<dd', release, protect) end -- of before POOL-6
		if #bytes ~= (is_pool and 64 or 48) then return GARBLED end
		if is_pool then
			kept = bytes
		else
			count = count + 1
			tenants[sub(field, 2)] = { unpack(TENANT, bytes) }
		end
	end

	-- pool_begin
	local length, instant, window, used, asked_with, claimed, releases, protects = unpack(POOL, kept or NO_POOL)
	if not (instant <= LATEST) then return GARBLED end -- it may be no number
	instant = max(instant, now)
	local start = instant - fmod(instant, period)
	local agrees = length == period and releases == release and protects == protect
	local turned = not agrees or start ~= window
	local function left()
		return minus(window + length, instant)
	end
	local function refusal(result, retry)
		call('HSET', key, 'p', pack(POOL, length, instant, window, used, asked_with, claimed, releases, protects))
		return pack(ANSWER, result, window, 0, left(), 0, 0, 0, retry, asked_with, 0, 0, 0, 0,
			length, releases, protects)
	end
	if not agrees and start < window + length then return refusal(DISAGREES, start + period - instant) end
	local left_to = window + 2 * length - instant
	if not agrees and left_to > 0 then return refusal(DISAGREES, min(left_to, period)) end
	if turned then
		length, releases, protects, window, used, claimed = period, release, protect, start, 0, 0
		call('DEL', claims)
		for its, t in pairs(tenants) do
			if instant - t[4] < max(release, 2 * period) then -- pool_keeps
				if t[6] > 0 then t[4] = window end
				t[5], t[6] = 0, 0
				call('HSET', key, 't' .. its, pack(TENANT, t[1], t[2], t[3], t[4], t[5], t[6]))
			else
				tenants[its], count = nil, count - 1
				call('HDEL', key, 't' .. its)
			end
		end
	end
	local self = tenants[name]
	if not self then
		if count >= TENANTS_MAX then return refusal(FULL, left()) end
		self = { unpack(TENANT, NO_TENANT) }
		tenants[name] = self
	end
	local field = pack('<d', node) .. name
	local own = try('HGET', claims, field)
	if type(own) == 'table' or own and #own ~= 16 then return GARBLED end
	local granted, given = unpack(CLAIM, own or NO_CLAIM)

	-- pool_step
	local before, guaranteed, capped, weighed = asked_with, self[1], self[2], self[3]
	self[1], self[2], self[3] = guarantee, cap, weight
	if present > 0 then self[4] = instant end
	asked_with = limit
	if of_window == window then -- hear
		local units = min(minus(had, granted), MOST - used)
		if granted == 0 and units > 0 then claimed = claimed + 1 end
		granted, self[5], used = granted + units, self[5] + units, used + units
		units = min(minus(min(back, granted), given), self[5])
		given, self[5], used = given + units, self[5] - units, used - units
	else
		had = 0
	end
	local wants, needs = minus(had + more, granted), minus(had + least, granted)

	-- look, part_of
	local there, all, guarantees = {}, 0, 0
	local bases, retry = 0, left()
	for _, t in pairs(tenants) do
		local leaves = max(min(t[4] + release, MOST), window + protect)
		if leaves > instant or t == self then
			local vessel = { t[5], min(t[1], limit), min(t[2], limit), t[3] }
			there[#there + 1] = vessel
			if t == self then self.vessel = vessel end
			all, bases = all + t[5], bases + max(t[5], vessel[2])
			guarantees = min(guarantees + t[1], MOST)
		end
		if leaves > instant and t ~= self then retry = min(retry, leaves - instant) end
	end
	local rest = minus(limit, minus(used, all))
	if bases > rest then
		for i = 1, #there do
			there[i][3], there[i][2] = there[i][2], 0
		end
	end
	local function height(v, whole, parts)
		local room = v[3] - v[2]
		return max(v[1], v[2] + min(v[4] * whole + div(v[4] * parts, PARTS), room))
	end
	local function filled(whole, parts)
		local sum, slope = 0, 0
		for i = 1, #there do
			local v = there[i]
			local above = v[4] * whole + div(v[4] * parts, PARTS)
			if above >= v[3] - v[2] then
				sum = sum + max(v[1], v[3])
			elseif v[2] + above >= v[1] then
				sum, slope = sum + v[2] + above, slope + v[4]
			else
				sum = sum + v[1]
			end
		end
		return sum, slope
	end
	local whole = find_level(rest + 1, rest, function(n) return filled(n, 0) end)
	local parts = find_level(PARTS, rest, function(n)
		local sum, slope = filled(whole, n)
		return sum, slope / PARTS
	end)
	local share = height(self.vessel, whole, parts)
	local others = filled(whole, parts) - share
	local most = share
	if height(self.vessel, whole, parts + 1) > share then most = share + 1 end
	local spare = minus(min(min(most, cap), minus(rest, others)), self[5])

	local result = ANSWERED
	if not_before > instant then
		result, retry = QUIET, not_before - instant
	elseif granted == 0 and claimed >= CLAIMS_MAX then
		result, retry = FULL, left()
	else
		local units = 0 -- quantum
		local part = div(spare, PART)
		if part * PART < spare then part = part + 1 end
		if spare >= needs then units = min(wants, max(needs, part)) end
		if granted == 0 and units > 0 then claimed = claimed + 1 end
		granted, self[5], used = granted + units, self[5] + units, used + units
		if units < needs then self[6] = 1 end
	end

	call('HSET', key, 'p', pack(POOL, length, instant, window, used, asked_with, claimed, releases, protects),
		't' .. name, pack(TENANT, self[1], self[2], self[3], self[4], self[5], self[6]))
	if granted > 0 then call('HSET', claims, field, pack(CLAIM, granted, given)) end
	if turned or granted > 0 and not own then
		local forgotten = exact('%.0f', div(window + 3 * length, 1000) + 4000)
		call('PEXPIREAT', key, forgotten)
		call('PEXPIREAT', claims, forgotten)
	end
	return pack(ANSWER, result, window, granted, left(), share, self[5], minus(limit, used), retry, before,
		guaranteed, capped, weighed, guarantees, length, releases, protects)
end

local reply = { ARGV[1], now }
for i = 2, #KEYS, 2 do
	reply[i / 2 + 2] = claim(KEYS[i], KEYS[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return reply
