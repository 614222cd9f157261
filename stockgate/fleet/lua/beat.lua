-- beat says that an instance lives, and tells who else does.
-- KEYS: the fleet, a sorted set of its instances by their latest beat, in milliseconds of this clock
-- ARGV: the instance, for how many milliseconds one lives after a beat
-- Reply: this clock's seconds and microseconds, the instance's beat before this one (false = none), all instances and
-- their beats in turn.

local clock = redis.call('TIME')
local now, life = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], string.format('%d', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now - life))
-- A beat that is to come was seen by a clock that went back; by a little, and who lives beats again.
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%d', now + life), '+inf')
redis.call('PEXPIRE', KEYS[1], 2 * life)
return {clock[1], clock[2], before, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}
