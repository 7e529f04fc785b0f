-- Takes a lease that nobody holds. A repeat by its holder is a success.
-- KEYS[1] the lease   KEYS[2] the fence, which counts holders
-- ARGV[1] token       ARGV[2] time to live, ms
-- Returns the holder's fence, 0 if somebody else has the lease.
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return tonumber(redis.call('GET', KEYS[2]) or 0)
end
if holder then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('INCR', KEYS[2])
