-- Takes a lease that nobody holds. A repeat by its holder is a success.
-- KEYS[1] the lease   KEYS[2] the fence, which counts holders
-- ARGV[1] token       ARGV[2] time to live, ms
-- Returns the holder's fence, 0 if somebody else has the lease.
--
-- What stands in the keys may be anybody's: a lease of a wrong type is nobody's, a
-- fence that cannot be counted on begins again at the server's clock, above all
-- that went before.
local holder = redis.pcall('GET', KEYS[1])
local count, fence = redis.pcall('GET', KEYS[2]), nil
if type(count) == 'string' and #count <= 15 and string.find(count, '^[1-9]%d*$') then
  fence = tonumber(count)
end

if type(holder) == 'string' and holder ~= ARGV[1] then
  -- Nobody's lease lasts longer than from now: one without an end, or from before
  -- the server's clock went back, would keep everybody out.
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 or left > tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return 0
end
if not fence and count then
  local clock = redis.call('TIME')
  fence = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
elseif not fence or holder ~= ARGV[1] then
  fence = (fence or 0) + 1
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], string.format('%.0f', fence))
return fence
