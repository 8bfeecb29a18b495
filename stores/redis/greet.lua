-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- greet.lua -- the server's generation: of which life, and since when.      (law L12)
--
--   KEYS   the generation's
--   ARGV   how many replicas confirm what is granted, before it is believed: 0 to 9
--          "new": an operator says that nothing was ever granted here (gale store init)
--   reply  its life's name, a colon, and the instant from which on nothing is forgotten
--
-- A life is a process and a tenure: a primary that was replaced, and is one again, is the
-- same process and has forgotten what was granted meanwhile; but then its replication has
-- another name.  Nor does a life outlast a clock that is set back: the time beside the
-- generation is step.lua's.
--
-- A name is 6 digits of the process, 8 of the tenure, and how many replicas confirm.  In a
-- life that is confirmed no node is let in that would not wait for that: what it was granted
-- might be forgotten without a trace.  So a replica that takes over from such a life goes
-- on where it was.  Not so a process that is younger than what it stores: it has found that
-- on a disk, and may have missed what came after.            (decisions/0014-durable.md)
--
-- Without a generation it is not known what was granted: a server that was emptied looks like
-- one that is new.  Only if an operator says that it is new, nothing is forgotten: since 0.
local call, sub, SECOND = redis.call, string.sub, 1000000
local function word(section, name)
	return string.match(call('INFO', section), name .. ':(%x+)')
end
local life = sub(word('server', 'run_id'), 1, 6) .. sub(word('replication', 'master_replid'), 1, 8)
local generation, confirm = call('GET', KEYS[1]) or '', ARGV[1]
local clock = call('TIME')
local now = clock[1] * SECOND + clock[2]
local seen = #generation > 8 and
	math.abs(struct.unpack('<d', generation, #generation - 7)) or 0
local confirmed = sub(generation, 15, 15)

local function inherits()
	local up = (word('server', 'uptime_in_seconds') or 0) * SECOND -- clocks are set back
	return confirmed == confirm and confirm ~= '0' and
		sub(generation, 7, 14) == sub(word('replication', 'master_replid2'), 1, 8) and
		seen - SECOND > now - up
end

-- A connection may outlast its server's tenure: a replica keeps the clients that it had as a primary.
if not string.find(call('INFO', 'replication'), 'role:master', 1, true) then
	return redis.error_reply('READONLY it is a replica')
end
local is_back = now < seen - SECOND
if sub(generation, 1, 14) ~= life or is_back then
	local since = not is_back and inherits() and sub(generation, 17, -9)
	if not since then since, seen = string.format('%.0f', now), now end
	if generation == '' and ARGV[2] == 'new' then since = '0' end
	generation = life .. confirm .. ':' .. since .. struct.pack('<d', -seen)
	call('SET', KEYS[1], generation)
elseif confirmed ~= '0' and confirmed ~= confirm then
	return redis.error_reply('NOPERM durable=' .. confirmed ..
		' is what others say of this prefix, and all must say the same')
end
return sub(generation, 1, -9)
