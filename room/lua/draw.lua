-- draw makes the draw by its beacon, once.
-- KEYS: the room
-- ARGV: the signature that was checked, the round and the key by which it was
-- Reply: 1, or 0 where the room is not there, -1 where the draw was made, -2 before the start, -3 where the draw waits
-- for another round.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local function get(field) return redis.call('HGET', KEYS[1], field) end
if get('drawn_by') then return -1 end
if not get('early') then return -2 end
if get('round') ~= ARGV[2] or get('key') ~= ARGV[3] then return -3 end
redis.call('HSET', KEYS[1], 'drawn_by', 'beacon', 'beacon', ARGV[1])
return 1
