-- Tries what the other scripts need, on keys of no product, and takes it back: while it
-- succeeds Redis takes writes, and the caller has the rights for them.
--
-- KEYS  1 a text  2 a hash  3 a sorted set
-- Returns 1

-- A full Redis refuses only the first write of a script: no UNLINK before this one.
redis.call('SET', KEYS[1], '0', 'PX', '10000')
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('TIME')
redis.call('INCRBY', KEYS[1], '0')
redis.call('DECRBY', KEYS[1], '0')
redis.call('MGET', KEYS[1])
redis.call('HSET', KEYS[2], 'probe', '')
redis.call('HMGET', KEYS[2], 'probe')
redis.call('HDEL', KEYS[2], 'probe')
redis.call('ZADD', KEYS[3], '0', 'probe')
redis.call('ZCARD', KEYS[3])
redis.call('ZRANGEBYLEX', KEYS[3], '-', '+')
redis.call('ZREMRANGEBYLEX', KEYS[3], '-', '+')
return 1
