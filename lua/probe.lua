-- Tries what a purchase needs and takes it back: while it succeeds Redis takes
-- purchases, and the caller has the rights for them.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- Returns 1 tried; 0 nothing to try it on, keys are missing, damaged or of a wrong
-- type.

local units = redis.call('MGET', KEYS[2], KEYS[3])
if not count(units[1]) or not count(units[2]) or type(redis.pcall('HLEN', KEYS[6])) == 'table' then
  return 0
end
redis.call('HSET', KEYS[6], 'probe', '')
redis.call('HDEL', KEYS[6], 'probe')
redis.call('DECRBY', KEYS[2], '0')
redis.call('INCRBY', KEYS[3], '0')
return 1
