-- draw makes the draw, once.
-- KEYS: the room
-- ARGV: "beacon" or "shop", the beacon
-- Reply: 1, or 0 where the room is not there, -1 where the draw was made, -2 before the start.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('HEXISTS', KEYS[1], 'drawn_by') == 1 then return -1 end
if redis.call('HEXISTS', KEYS[1], 'early') == 0 then return -2 end
redis.call('HSET', KEYS[1], 'drawn_by', ARGV[1])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'beacon', ARGV[2]) end
return 1
