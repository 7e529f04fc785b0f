-- Takes tokens of a limit that all edges share (the generic cell rate algorithm:
-- all that is kept is the time at which the bucket will be full).
--
-- KEYS  1 limit
-- ARGV  1 tokens that come back every  2 so many microseconds  3 burst  4 wanted
-- Returns {taken, microseconds until there is one more; 0 if all wanted were taken}

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local each = tonumber(ARGV[2]) / tonumber(ARGV[1])
local whole = each * tonumber(ARGV[3])
local wanted = tonumber(ARGV[4])

-- What cannot be read, or lies ahead of any limit because the clock was set back or
-- the limit was lowered, counts as a bucket that is full, or empty.
local full = redis.pcall('GET', KEYS[1])
full = type(full) == 'string' and string.match(full, '^%d+$') and tonumber(full) or now
full = math.max(now, math.min(full, now + math.ceil(whole)))

-- A little more than nothing makes up for a division that comes out below a whole.
local there = math.floor((now + whole - full) / each + 0.000001)
local taken = math.max(0, math.min(wanted, there))
if taken > 0 then
  full = math.ceil(full + taken * each)
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX',
    string.format('%.0f', math.ceil((full - now) / 1000) + 1000))
end
if taken == wanted then
  return {taken, 0}
end
return {taken, math.max(1, math.ceil(full + each - now - whole))}
