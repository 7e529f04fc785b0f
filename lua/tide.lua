-- Remembers how high the tide of the database has been.
--
-- KEYS  1 the tide
-- ARGV  1 how high it is
-- Returns how high it has ever been. What is no height is none.

local known = redis.pcall('GET', KEYS[1])
known = type(known) == 'string' and count(known) or 0
if known >= tonumber(ARGV[1]) then
  return known
end
-- A full memory refuses only a script's first write, and never an UNLINK.
redis.call('UNLINK', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
