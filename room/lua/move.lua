-- move calls people, unless another instance has moved the room since the caller read it.
-- KEYS: the room, its steps
-- ARGV: moves that the caller has read, the new serving and threshold, how many people that are, what is left of the
-- rate, steps that are kept
-- Reply: 1 where it was done; 0 also where the last step is of a clock that ran ahead, until the next tick.

if redis.call('HGET', KEYS[1], 'moves') ~= ARGV[1] then return 0 end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local last = redis.call('LINDEX', KEYS[2], -1)
local at = last and tonumber(string.match(last, '^%d+'))
if at and at > now then return 0 end
redis.call('HSET', KEYS[1], 'serving', ARGV[2], 'threshold', ARGV[3], 'credit', ARGV[5],
  'moved_at', string.format('%.0f', now))
redis.call('HINCRBY', KEYS[1], 'moves', 1)
local called = redis.call('HINCRBY', KEYS[1], 'called', ARGV[4])
local step = string.format('%.0f %s %s %.0f', now, ARGV[2], ARGV[3], called)
if at and math.floor(at / 1000) == math.floor(now / 1000) then
  -- The step keeps its time: a person is called when the first one of the second is, at most a second early.
  step = string.format('%.0f', at) .. string.match(step, '^%d+(.*)$')
  redis.call('LSET', KEYS[2], -1, step)
else
  redis.call('RPUSH', KEYS[2], step)
  redis.call('LTRIM', KEYS[2], -tonumber(ARGV[6]), -1)
  redis.call('HINCRBY', KEYS[1], 'steps', 1)
end
return 1
