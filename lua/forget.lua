-- Takes orders out of the outbox that their buyers do not have, if the stock is
-- proven: record and outbox are written by one script, so no unit stands behind
-- them. While it is not, the outbox may be all that is left of an order.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  for n orders: n user ids, n order ids, n records of these users as they
--       were read, empty for none
-- Returns how many it has taken out; -14 if the stock is not proven, or is damaged.
-- A buyer whose record is another by now than it was keeps his order.

local n = #ARGV / 3
local activity = redis.pcall('HMGET', KEYS[1], 'total', 'run')
local units = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
local records = redis.pcall('HMGET', KEYS[5], unpack(ARGV, 1, n))
local stock, frozen, sold = count(units[1]), count(units[2]), count(units[3])
if activity.err or records.err or activity[2] ~= runid() or not stock or not frozen or not sold
  or stock + frozen + sold ~= count(activity[1])
  or frozen + sold > 0 and redis.call('EXISTS', KEYS[5]) == 0
  or type(redis.pcall('HLEN', KEYS[6])) == 'table' then
  return -14
end
local strange = {}
for i = 1, n do
  if (records[i] or '') == ARGV[n + n + i] then
    strange[#strange + 1] = ARGV[n + i]
  end
end
if #strange == 0 then
  return 0
end
return redis.call('HDEL', KEYS[6], unpack(strange))
