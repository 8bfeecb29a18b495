-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- generation.lua -- what step.lua and beat.lua begin with: is it the generation that is meant,
-- and what time is it?                                                      (law L12)
--
--   KEYS   the generation's; it is kept with the latest time that it has seen, which a second's
--          calls share (greet.lua)
--   ARGV   nonce, generation, until when it is sure that this is a primary's and its own
--   reply  if it is another: nonce, the generation that is there; nothing has changed
--
-- A clock that is set back may come to an instant at which a key that has expired meanwhile
-- was not yet to be forgotten.  So a server whose clock is more than a second behind the
-- time beside the generation has forgotten: its generation is dropped, and it is greeted as
-- another (law L9).  That time is taken anew when it is a second old.  So a clock that is set
-- back by less than two seconds may go unnoticed: values live four seconds longer than that
-- they count.  A clock that goes ahead and comes back while nothing is asked is not noticed.
-- The time is written below zero, as version 0.1 looks for other keys beside a time that is
-- above.                                                            (spec/decisions/0010)
local list = unpack
local call, try, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local sub, find, rep, fmod = string.sub, string.find, string.rep, math.fmod
local MOST, LATEST, SECOND = 9007199254740991, 4503599627370496, 1000000

local generation, known = call('GET', KEYS[1]) or '', #ARGV[2]
local more = #generation - known
if more ~= 0 and more ~= 8 or sub(generation, 1, known) ~= ARGV[2] then
	return { ARGV[1], sub(generation, 1, 32) }
end
-- once: a second look would be another instant
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
if now > LATEST then now = LATEST end
-- A primary that has followed another meanwhile has the other's copy of the generation, too.
if now > tonumber(ARGV[3]) then
	local tenure = call('INFO', 'replication')
	if not find(tenure, 'role:master', 1, true) or
	   not find(tenure, 'master_replid:' .. sub(ARGV[2], 7, 14), 1, true) then
		return { ARGV[1], '' }
	end
end
local latest = more == 8 and math.abs(unpack('<d', generation, known + 1)) or now
if now < latest - SECOND then
	call('DEL', KEYS[1])
	return { ARGV[1], '' }
end
if now - latest >= SECOND then
	call('SETRANGE', KEYS[1], known, pack('<d', -now))
end

