-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- beat.lua -- a node reports to its group and is granted a share, as engine/group.c has it.
--
-- generation.lua goes before it.
--
--   KEYS   the generation's, then of each beat its group's, and those of the group's leases and
--          of its estimates
--   ARGV   nonce, generation, and until when that is sure, then of each beat its numbers, as
--          doubles, the node's name, and the channel of the group's nudges
--   reply  nonce, now, then for each beat the words of its grant, or a code
--
-- A group is a hash: at 'g' the words of struct group, at 'm' and a node's name those of its
-- member, and at 'p' and a position the name of the member that has it.  Words are doubles, below
-- 2^53 and so exact.  Its leases are a sorted set of the names by the numbers of their last beats.
-- Its estimates are one by the buckets that group.c counts: so the one at a rank is found, and
-- nothing is counted.
--
-- The three are written together and expire together.  Where somebody has deleted the hash or the
-- leases alone, or the words are of another version of this script, the group is lost: what is
-- left is deleted, and the group is new, and quiet for the longer of the lease that it had and that
-- of the node that reports.  Estimates that were deleted come back with the members' next beats.
--
-- A nudge is published: its words as doubles, and the group's key.  A user who may not publish
-- goes without; the members then hear of each other at their next beats.
--
-- An instant that is yet to come was long ago: the clock was set back.
--
-- stores/groups.c does the same in the same order.  A beat is some eight commands, each of
-- O(log members) at most.  Functions are made anew by each call, so there are few.
local EVICT_MOST, MEMBERS_MAX, BUSY_ONE = 16, 1048576, 256
local MINUTE = 60 * SECOND
local KEPT = 24 * 60 * MINUTE
local SUM, MEDIAN, EQUAL = 1, 2, 1
local GIVE, TAKE = 1, 2
local GRANTED, STALE, GONE, NAMESAKE, DISAGREES, FULL, GARBLED = 0, 1, 2, 3, 4, 5, 5
local SETTINGS, GROUP, MEMBER = '<' .. rep('d', 9), '<' .. rep('d', 35), '<' .. rep('d', 16)
local REPORT, GRANT = '<' .. rep('d', 14), '<' .. rep('I8', 15)
local NO_GROUP, NO_MEMBER = rep('\0', 280), rep('\0', 128)
local max, min, exact = math.max, math.min, string.format

local function div(a, b)
	return (a - fmod(a, b)) / b
end

-- A day after the last lease is over, and up to two minutes more: so it is written once a minute.
local function forgotten_at(instant, lease)
	return (div(instant + lease + KEPT, MINUTE) + 2) * MINUTE
end

-- A member, in words: m_ stands before what the group has, too, and r_ before what is reported.
local function beat(broken, key, leases, estimates, numbers, node, channel)
	local found = try('HMGET', key, 'g', 'm' .. node)
	local kept, own = found[1], found[2]
	if found.err then return GARBLED end
	local first = broken and {} or call('ZRANGE', leases, '0', '1', 'WITHSCORES')
	local lost, lasted = broken, 0
	if kept and #kept == 272 then kept = kept .. rep('\0', 8) end -- of before GROUP-16
	if broken or not kept or #kept ~= 280 or own and #own ~= 128 or not first[1] and unpack('<d', kept, 169) > 0 then
		if kept and #kept >= 72 then lasted = unpack('<d', kept, 41) end
		if kept and #kept >= 264 then lasted = max(lasted, (unpack('<d', kept, 97))) end
		if not (lasted >= 0 and lasted <= KEPT) then lasted = 0 end
		lost = call('DEL', key, leases, estimates) > 0 or broken
		kept, own, first = nil, nil, {}
	end
	local forgot = unpack('<d', numbers)
	local r_incarnation, r_seq, r_epoch, r_generation, held, r_in_flight, r_weight, demand, r_busy,
		r_estimate, r_limited, leaves, r_life, r_over = unpack(REPORT, numbers, 81)
	local law, parts, start, floor, ceiling, lease, hold, rotate, probe, instant, epoch, life, lasts, beats,
		over, quiet, latest, limit, parted, lowered, joined, members, reserved, weights, busy, limited, hungry, claimed,
		lacking, in_flight, nudge, wanting, give, take, highest = unpack(GROUP, kept or NO_GROUP)
	local incarnation, position, seq, last_beat, share, generation, high, m_in_flight, raised, weight, m_busy,
		estimate, m_limited, m_hungry, claim, lacks = unpack(MEMBER, own or NO_MEMBER)
	lasts = max(lasts, lasted)

	local function remove(name)
		local its = call('HMGET', key, 'm' .. name, 'p' .. (members - 1))
		local _, place, _, _, its_share, _, its_high, its_in_flight, _, its_weight, its_busy, its_estimate,
			its_limited, its_hungry, its_claim, its_lacks = unpack(MEMBER, its[1])
		members, reserved = members - 1, reserved - max(its_share, its_high, its_in_flight)
		weights, busy, limited = weights - its_weight, busy - its_busy, limited - its_limited
		hungry, claimed, lacking = hungry - its_hungry, claimed - its_claim, lacking - its_lacks
		in_flight = in_flight - its_in_flight
		local last = its[2]
		if last ~= name then -- it gets the position
			local bytes = last == node and own or call('HGET', key, 'm' .. last)
			bytes = sub(bytes, 1, 8) .. pack('<d', place) .. sub(bytes, 17)
			call('HSET', key, 'm' .. last, bytes, 'p' .. place, last)
			if last == node then own, position = bytes, place end
		end
		call('HDEL', key, 'm' .. name, 'p' .. members)
		call('ZREM', leases, name)
		if its_estimate > 0 then call('ZREM', estimates, name) end
		if name == node then
			own = nil
			share, generation, high, m_in_flight, raised, estimate, lacks = 0, 0, 0, 0, 0, 0, 0
		end
	end

	local function may_nudge(last)
		return over >= quiet and (instant < last or instant - last >= div(lease, 4096) * (64 + members))
	end

	local function nudge_to_take(lacked, had)
		if lacked > 0 and had < parted and may_nudge(take) then nudge, take = nudge + TAKE, instant end
	end

	-- group_begin, and those whose leases are over
	local agrees = kept and sub(kept, 1, 72) == sub(numbers, 9, 80)
	local was_until = kept and forgotten_at(instant, lease)
	local function begin()
		local forgets, anew = forgot ~= epoch, not agrees and members == 0
		if r_life == life and r_over <= beats then over = max(over, r_over) end
		local lasting = unpack('<d', numbers, 49)
		local longer = life > 0 and lasting > lasts and (over < quiet or r_generation > 0)
		if forgets or life == 0 or longer or anew then
			local noisy = over >= quiet and not longer and not lost and not (forgets and (life > 0 or now < forgot + KEPT))
			local left = MOST - r_seq
			life = r_incarnation > left and r_incarnation - left or r_incarnation + r_seq
			beats, over = beats + 1, 0
			quiet, lasts = noisy and 0 or beats, noisy and lasting or max(lasts, lasting)
		end
		if anew then
			law, parts, start, floor, ceiling, lease, hold, rotate, probe = unpack(SETTINGS, numbers, 9)
			limit, agrees = law == 0 and ceiling or start, true
			parted, highest = limit, limit
		end
		if latest == 0 and r_generation > 0 and over >= quiet then beats, quiet = beats + 1, beats + 1 end
		epoch, instant = forgot, now
	end
	nudge = 0
	begin()
	local gone, next = 0, 0
	local stays = own and incarnation == r_incarnation and seq <= r_seq
	local soon = stays and first[1] == node and 4 or 2
	if first[soon] and tonumber(first[soon]) <= over then
		first = call('ZRANGE', leases, '0', EVICT_MOST + 1, 'WITHSCORES')
	end
	for i = 1, #first, 2 do
		local name, its_beat = first[i], tonumber(first[i + 1])
		if gone < EVICT_MOST and its_beat <= over and not (stays and name == node) then
			remove(name)
			gone = gone + 1
		elseif name ~= node then
			next = its_beat
			break
		end
	end
	if not agrees and members == 0 then begin() end

	-- group_beat
	local words
	local target, asks, probe_us, number, is_first = share + lacks, 0, 0, 0, not own and members == 0
	local is_namesake = own and incarnation ~= r_incarnation
	local result = GRANTED
	if not agrees then
		result = DISAGREES
	elseif is_namesake and over < last_beat then
		result, asks = NAMESAKE, last_beat
	elseif own and not is_namesake and r_seq < seq then
		result, asks = NAMESAKE, last_beat
	elseif own and not is_namesake and r_seq == seq then
		result = STALE
	elseif leaves > 0 and r_in_flight == 0 then
		result = GONE
		nudge_to_take(lacking - lacks, reserved - max(share, high, m_in_flight))
		if own then remove(node) end
	elseif not own and members >= MEMBERS_MAX then
		result = FULL
	else
		beats = beats + 1
		if own then -- take_out
			reserved = reserved - max(share, high, m_in_flight)
			weights, busy, limited = weights - weight, busy - m_busy, limited - m_limited
			hungry, claimed, lacking = hungry - m_hungry, claimed - claim, lacking - lacks
			in_flight = in_flight - m_in_flight
		else
			position, members = members, members + 1
		end
		if is_namesake then share, generation, high, raised, lacks = 0, 0, 0, 0, 0 end
		if is_namesake or not own then joined = instant end

		-- hear
		if r_epoch == epoch and r_generation == generation and generation > 0 then high = 0 end
		high, incarnation, seq, last_beat, m_in_flight = max(high, held), r_incarnation, r_seq, beats, r_in_flight
		weight, m_busy, m_limited = r_weight, r_busy, r_limited
		if leaves > 0 then weight, m_busy, m_limited, r_estimate = 0, 0, 0, 0 end
		local had_estimate = estimate > 0
		estimate = 0
		if law > SUM and r_estimate > 0 then -- bucket_of
			local octave, step = 5, 2
			while r_estimate >= 32 * step do octave, step = octave + 1, step + step end
			estimate = 1 + (r_estimate < 32 and r_estimate or (octave - 4) * 16 + div(r_estimate, step))
			call('ZADD', estimates, estimate, node)
		elseif had_estimate then
			call('ZREM', estimates, node)
		end

		-- set_limit
		local all_busy, all_limited, to = busy + m_busy, limited + m_limited, ceiling
		if law == SUM then
			to = div(all_busy, BUSY_ONE) + math.floor(math.sqrt(div(all_busy, BUSY_ONE / 16))) + members
		elseif law > SUM then
			local rank = law == MEDIAN and div(max(call('ZCARD', estimates), 1) - 1, 2) or 0
			to = call('ZRANGE', estimates, rank, rank, 'WITHSCORES')[2]
			to = to and to - 1 -- least_of_bucket
			if to and to >= 32 then to = (16 + fmod(to, 16)) * 2 ^ (div(to, 16) - 1) end
		end
		if to then to = max(floor, min(to, ceiling)) end
		if law ~= SUM then
			limit = to and to > 0 and to or limit
			parted = limit
		else -- follow_sum
			local may_fall = instant < lowered or instant - lowered >= div(lease, 4)
			local has_just_fallen = instant >= lowered and instant - lowered < lease
			if may_fall then limit = parted end
			if to > parted then -- rise_waits
				if not has_just_fallen or to > highest or (to - parted) * 6 >= parted or members > parted then parted = to end
			elseif to < parted and all_limited > 0 and may_fall then
				if not has_just_fallen or parted > highest then highest = parted end
				parted, lowered = max(to, parted - div(parted + 7, 8)), instant
			end
			limit = max(limit, parted)
		end

		-- part_of, target_by_demand, share_by_demand
		local function part_of(slots, among)
			local rank = fmod(position + fmod(div(instant, rotate), members), members)
			local rest = fmod(slots * weight, among)
			local whole = (slots * weight - rest) / among
			return rank * among < rest * members and whole + 1 or whole
		end
		m_hungry, claim, target = 0, 0, 0
		if weight > 0 and parts == EQUAL then
			target = part_of(parted, weights + weight)
		elseif weight > 0 then
			target = part_of(max(parted - claimed, 0), hungry + weight)
			if m_limited > 0 then
				m_hungry = weight
			elseif demand + 1 > target then
				m_hungry, target = weight, min(target, demand + 1)
			else
				claim, target = demand + 1, demand + 1
				if lacking == 0 then target = max(claim, part_of(parted, weights + weight)) end
			end
		end
		local granted = target
		if parts ~= EQUAL and weight > 0 then
			local is_held = m_hungry > 0 and instant >= raised and instant - raised < hold and joined <= raised
			granted = max(target, share - max(reserved + share - parted, is_held and 0 or lacking))
		end
		granted = min(granted, max(limit - reserved, 0))
		if over < quiet then granted = min(granted, held) end

		-- grant
		high = max(high, granted)
		if granted ~= share or generation == 0 then
			if granted > share then raised = instant end
			latest = max(latest + 1, instant)
			generation, share = latest, granted
		end
		local lacked = lacks
		lacks = max((claim > 0 and claim or target) - share, 0)
		reserved = reserved + max(share, high, m_in_flight) -- put_in
		weights, busy, limited = weights + weight, all_busy, all_limited
		hungry, claimed, lacking = hungry + m_hungry, claimed + claim, lacking + lacks
		in_flight = in_flight + m_in_flight

		-- nudge_to_give
		if lacks > lacked and (lacks > 1 or share == 0 and members <= parted) then wanting = 1 end
		if lacking == 0 then wanting = 0 end
		if wanting > 0 and may_nudge(give) then nudge, give, wanting = GIVE, instant, 0 end
		nudge_to_take(lacking - lacks, reserved)

		if over < quiet then
			asks = quiet
		elseif lacks + m_limited > 0 then
			asks = next
		end
		if probe > 0 and law == SUM then
			number = div(instant, probe) + 1
			probe_us = number * probe + div(div(probe, 4) * fmod(fmod(number, 65536) * 40503, 65536), 65536) - instant
		end
	end

	local group = pack(GROUP, law, parts, start, floor, ceiling, lease, hold, rotate, probe, instant, epoch,
		life, lasts, beats, over, quiet, latest, limit, parted, lowered, joined, members, reserved, weights, busy, limited,
		hungry, claimed, lacking, in_flight, nudge, wanting, give, take, highest)
	if nudge > 0 then
		local equal = parts == EQUAL
		try('PUBLISH', channel, pack('<ddd', nudge, equal and parted or max(parted - claimed, 0),
			equal and weights or hungry) .. key)
	end
	if result == GRANTED then
		local member = pack(MEMBER, incarnation, position, seq, last_beat, share, generation, high, m_in_flight,
			raised, weight, m_busy, estimate, m_limited, m_hungry, claim, lacks)
		if own then
			call('HSET', key, 'g', group, 'm' .. node, member)
		else
			call('HSET', key, 'g', group, 'm' .. node, member, 'p' .. position, node)
		end
		call('ZADD', leases, exact('%.0f', last_beat), node)
	else
		call('HSET', key, 'g', group)
	end
	local forgotten = forgotten_at(instant, lease)
	if forgotten ~= was_until or is_first or law > SUM then
		forgotten = exact('%.0f', forgotten / 1000)
		call('PEXPIREAT', key, forgotten)
		call('PEXPIREAT', leases, forgotten)
		call('PEXPIREAT', estimates, forgotten)
	end
	if result == GONE then return pack(GRANT, GONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) end
	if result > STALE then
		return pack(GRANT, result, 0, 0, 0, 0, 0, 0, 0, 0, life, beats, asks, lasts, 0, 0)
	end
	return pack(GRANT, result, share, generation, epoch, target, limit, members, in_flight, lacking, life,
		beats, asks, lasts, probe_us, number)
end

-- Is the error one of what the group's keys hold?  Any other is the server's or the user's.
local function is_of_keys(fault)
	local said = type(fault) == 'table' and fault.err or fault
	return find(said, 'WRONGTYPE', 1, true) or find(said, 'attempt to ', 1, true) or
		find(said, 'bad argument ', 1, true) or find(said, 'value is not ', 1, true)
end

local reply = { ARGV[1], now }
for i = 2, #KEYS, 3 do
	local at = i - 2
	local done, told = pcall(beat, false, KEYS[i], KEYS[i + 1], KEYS[i + 2], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6])
	if not done then
		if not is_of_keys(told) then error(told, 0) end
		told = beat(true, KEYS[i], KEYS[i + 1], KEYS[i + 2], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6])
	end
	reply[at / 3 + 3] = told
end
return reply
