-- probe does what write does, under a name that no order has, and takes it away again.
redis.call('HSET', D, ' ', '')
redis.call('ZADD', X, 0, ' ')
redis.call('SADD', S, ' ')
sum(' ', 'H', 0)
redis.call('HSET', R, ' ', 'X|0|0|')
redis.call('HDEL', D, ' ')
redis.call('ZREM', X, ' ')
redis.call('SREM', S, ' ')
redis.call('HDEL', N, 'held  ')
redis.call('HDEL', R, ' ')
return {}
