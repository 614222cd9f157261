-- KEYS: the lock. ARGV: its holder's token. Returns 1, or 0 when it is somebody else's by now.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
