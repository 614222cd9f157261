-- probe does what write does, under a name that no order has, and takes it away again.
redis.call('HSET', D, ' ', '')
redis.call('ZADD', X, 0, ' ')
count(' ', 1)
sum(' ', 'H', 0)
redis.call('HSET', R, ' ', 'X|0|0|')
redis.call('HDEL', D, ' ')
redis.call('ZREM', X, ' ')
redis.call('HDEL', R, ' ')
count(' ', -1)
return {}
