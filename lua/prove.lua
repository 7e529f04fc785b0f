-- Sets the counters of an activity whose records have been proven, notes this
-- server's run id and opens it or leaves it on hold. It does so only if the
-- counters are what they were before the records were read: then no order has
-- moved since.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 epoch  3 state to have: open or held  4 stock  5 frozen
--       6 sold as they were read, empty if missing or of a wrong type  7 stock
--       8 frozen  9 sold as they are to be  10 run id of the server that the
--       records were read from
-- Returns {code, epoch}: 1 proven; 0 an order has moved, read again; -1 the
-- units are not the total; -14 unless the activity is being proven under this
-- epoch on this server. The epoch is 0 unless proven.

local server = runid()

local there = redis.pcall('HMGET', KEYS[1], 'id', 'state', 'epoch', 'run', 'total')
if there.err or there[1] ~= ARGV[1] or there[2] ~= 'held' or there[3] ~= ARGV[2] or there[4] ~= 'unproven'
  or server ~= ARGV[10] or type(redis.pcall('HLEN', KEYS[5])) == 'table' or type(redis.pcall('HLEN', KEYS[6])) == 'table' then
  return {-14, 0}
end
local units = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
for i = 1, 3 do
  if (units[i] or '') ~= ARGV[3 + i] then
    return {0, 0}
  end
end
local stock, frozen, sold = count(ARGV[7]), count(ARGV[8]), count(ARGV[9])
if not stock or not frozen or not sold or stock + frozen + sold ~= count(there[5]) then
  return {-1, 0}
end

local epoch = count(ARGV[2]) + 1
-- A full memory refuses only a script's first write, and never a HDEL.
redis.call('HDEL', KEYS[1], 'none')
redis.call('MSET', KEYS[2], ARGV[7], KEYS[3], ARGV[8], KEYS[4], ARGV[9])
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'epoch', format('%.0f', epoch), 'run', server)
changed()
return {1, epoch}
