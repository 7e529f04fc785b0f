-- Notes who proves the stock of a product and where he stands, unless somebody
-- else has said so and still does.
--
-- KEYS  1 the fence
-- ARGV  1 owner  2 words  3 how long they are believed (ms)
-- Returns 1 noted, 0 somebody else is at it.

local note = redis.pcall('GET', KEYS[1])
if type(note) == 'string' and string.sub(note, 1, #ARGV[1] + 1) ~= ARGV[1] .. ' ' then
  -- One without an end, or from before the server's clock went back, would keep
  -- everybody out.
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 or left > tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  return 0
end
-- A full memory refuses only a script's first write, and never an UNLINK.
redis.call('UNLINK', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1
