-- Tries what the other scripts need, on keys of no product, and takes it back: while it
-- succeeds Redis takes writes, and the caller has the rights for them.
--
-- KEYS  1 a text  2 a hash  3 a sorted set
-- Returns 1

redis.call('SET', KEYS[1], '0', 'PX', '10000')
redis.call('INCRBY', KEYS[1], '0')
redis.call('DECRBY', KEYS[1], '0')
redis.call('HSET', KEYS[2], 'probe', '')
redis.call('HDEL', KEYS[2], 'probe')
redis.call('ZADD', KEYS[3], '0', 'probe')
redis.call('ZREMRANGEBYLEX', KEYS[3], '-', '+')
return 1
