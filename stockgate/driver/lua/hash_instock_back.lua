-- KEYS: the hash, the mark of the giving back, the order's mark. ARGV: units, what is left's field, the value of the
-- first mark, its seconds, the value that says of an order that it is none. Returns -1 unknown, 1 done, 2 repeated.
if not whole(redis.call('HGET', KEYS[1], ARGV[2])) then return -1 end
if not redis.call('SET', KEYS[2], ARGV[3], 'NX', 'EX', ARGV[4]) then return 2 end
redis.call('HINCRBY', KEYS[1], ARGV[2], ARGV[1])
redis.call('SET', KEYS[3], ARGV[5], 'EX', ARGV[4])
return 1
