-- Replaces records of buyers while the stock is being proven. A record that is
-- another by now than the caller has read is left alone. The counters are not
-- touched: proving computes them.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 epoch, then for n records: n user ids, n records as they
--       were read, n records as they are to be; empty for none
-- Returns {0, answer, ...}, one answer a record in their order: 1 replaced, 0 it
-- is another by now; or {-14} unless the activity is being proven under this epoch.

local n = (#ARGV - 2) / 3
local there = redis.pcall('HMGET', KEYS[1], 'id', 'state', 'epoch', 'run')
local records = redis.pcall('HMGET', KEYS[5], unpack(ARGV, 3, n + 2))
if there.err or records.err or there[1] ~= ARGV[1] or there[2] ~= 'held' or there[3] ~= ARGV[2]
  or there[4] ~= 'unproven' then
  return {-14}
end

local reply, write, remove = {0}, {}, {}
for i = 1, n do
  local user, was, to = ARGV[2 + i], ARGV[2 + n + i], ARGV[2 + n + n + i]
  local same = (records[i] or '') == was
  reply[1 + i] = same and 1 or 0
  if same and to == '' then
    remove[#remove + 1] = user
  elseif same then
    write[#write + 1] = user
    write[#write + 1] = to
  end
end
if #remove > 0 then
  redis.call('HDEL', KEYS[5], unpack(remove))
end
if #write > 0 then
  redis.call('HSET', KEYS[5], unpack(write))
end
return reply
