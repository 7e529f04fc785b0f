-- Prolongs a lease, if it is still the caller's.
-- KEYS[1] the lease   ARGV[1] token   ARGV[2] time to live, ms
-- Returns 1 if it was prolonged, else 0.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
