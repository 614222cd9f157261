-- set writes a field for an operator; an empty value takes it away.
-- KEYS: the room
-- ARGV: the field, the value
-- Reply: 1, or 0 where the room is not there.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return 1
