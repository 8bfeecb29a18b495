-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- greet.lua -- the server's generation: whose it is, and since when.        (law L12)
--
--   KEYS   the generation's
--   reply  its life's name, a colon, and the instant from which on nothing is forgotten
--
-- A life is a process and a tenure: a primary that was replaced, and is one again, is the
-- same process and has forgotten what was granted meanwhile; but then its replication has
-- another name.  Nor does a life outlast a clock that is set back (step.lua): beside the
-- generation the latest time is kept.
local call = redis.call
local function word(section, name)
	return string.match(call('INFO', section), name .. ':(%x+)')
end
local life = string.sub(word('server', 'run_id'), 1, 7) ..
	string.sub(word('replication', 'master_replid'), 1, 8) .. ':'
local generation = call('GET', KEYS[1]) or ''
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local latest = #generation > 8 and struct.unpack('<d', generation, #generation - 7) or 0
if string.sub(generation, 1, #life) ~= life or now < latest - 1000000 then
	generation = life .. string.format('%.0f', now) .. struct.pack('<d', now)
	call('SET', KEYS[1], generation)
end
return string.sub(generation, 1, -9)
