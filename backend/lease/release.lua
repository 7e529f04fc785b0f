-- Gives a lease back, if it is still the caller's.
-- KEYS[1] the lease   ARGV[1] token
-- Returns 1 if it was given back, else 0.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
