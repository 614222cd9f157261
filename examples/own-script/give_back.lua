-- KEYS and ARGV as for taking. Returns 1 when the units are back, 0 when the stock is gone.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1
