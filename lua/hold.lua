-- Shuts an activity until its stock is proven, and makes it again if it is gone
-- or cannot be read. What cannot be read of the buyers and the outbox is removed:
-- it says nothing.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 title  3 start (ms)  4 end (ms)  5 total  6 limit per
--       user  7 pay window (ms)  8 changes of the total so far  9 id of an activity
--       that is over for good and may be replaced, empty for none  10 1 if the
--       total is being changed: a later one that is there then stays
-- Returns {code, epoch}: 1 held; 2 made again, held; -2 another activity is
-- there; -3 it is closed, which is final. The epoch is 0 below 0; one that is
-- made again begins at the server's clock, above all that went before.

local there = redis.pcall('HMGET', KEYS[1], 'id', 'state', 'epoch', 'total', 'changes')
local gone = there.err or not there[2] and not there[1] and redis.call('EXISTS', KEYS[1]) == 0
local replaced = false
if not there.err and there[1] and there[1] ~= ARGV[1] then
  if there[1] ~= ARGV[9] then
    return {-2, 0}
  end
  replaced = true
elseif not there.err and there[1] and there[2] == 'closed' then
  return {-3, 0}
end

local users = type(redis.pcall('HLEN', KEYS[5])) ~= 'table'
local outbox = type(redis.pcall('HLEN', KEYS[6])) ~= 'table'
local epoch = not there.err and count(there[3])
if epoch then
  epoch = epoch + 1
else
  local clock = redis.call('TIME')
  epoch = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
end

local total, changes = ARGV[5], ARGV[8]
if ARGV[10] == '1' and not there.err and not replaced and count(there[4]) and (count(there[5]) or 0) > tonumber(changes) then
  total, changes = there[4], there[5]
end

-- A full memory refuses only a script's first write, and never a UNLINK or HDEL.
if replaced then
  redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
end
if there.err then
  redis.call('UNLINK', KEYS[1])
end
if not users then
  redis.call('UNLINK', KEYS[5])
end
if not outbox then
  redis.call('UNLINK', KEYS[6])
end
redis.call('HDEL', KEYS[1], 'none')
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'title', ARGV[2], 'start', ARGV[3], 'end', ARGV[4],
  'total', total, 'changes', changes, 'limit', ARGV[6], 'pay', ARGV[7], 'state', 'held', 'epoch', format('%.0f', epoch),
  'run', 'unproven')
changed()
return {(gone or replaced) and 2 or 1, epoch}
