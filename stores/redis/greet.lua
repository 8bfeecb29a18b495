-- SPDX-License-Identifier: MIT
-- SPDX-FileCopyrightText: the gale authors
--
-- greet.lua -- the server's generation: whose it is, and since when.        (law L12)
--
--   KEYS   the generation's
--   ARGV   what the server's run is called, and a colon
--   reply  the run's name, a colon, and the instant from which on nothing is forgotten
--
-- A server that was started again, or emptied, has another generation from now on.
local call = redis.call
local generation = call('GET', KEYS[1]) or ''
if string.sub(generation, 1, #ARGV[1]) ~= ARGV[1] then
	local clock = call('TIME')
	generation = ARGV[1] .. string.format('%.0f', clock[1] * 1000000 + clock[2])
	call('SET', KEYS[1], generation)
end
return generation
