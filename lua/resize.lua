-- Changes how many units an activity sells in all. Changes are numbered: one that
-- was made or refused before is not made again, however late its caller comes.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 number of the change, 1 is the first  3 total to have
-- Returns {code, total, available}: 1 made; 0 it was made or refused before; -6
-- refused, fewer units are available than it withdraws; -1 no activity; -2
-- another activity; -4 its stock has to be proven first; -14 keys are missing,
-- damaged or of a wrong type.

local there = redis.pcall('HMGET', KEYS[1], 'id', 'total', 'changes', 'state', 'run')
if there.err then
  return {-14, 0, 0}
elseif not there[1] then
  return {redis.call('EXISTS', KEYS[1]) == 0 and -1 or -14, 0, 0}
elseif there[1] ~= ARGV[1] then
  return {-2, 0, 0}
end

local units = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
local stock, frozen, sold = count(units[1]), count(units[2]), count(units[3])
local total, change, to = count(there[2]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not total or not stock or not frozen or not sold or stock + frozen + sold ~= total then
  return {-14, 0, 0}
elseif (count(there[3]) or 0) >= change then
  return {0, total, stock}
elseif there[4] ~= 'closed' and there[5] and there[5] ~= '' and there[5] ~= runid() then
  -- What is left of a stock that may have forgotten orders is not known.
  return {-4, 0, 0}
end

local left = stock + to - total
if left < 0 then
  redis.call('HSET', KEYS[1], 'changes', ARGV[2])
  return {-6, total, stock}
end
redis.call('HSET', KEYS[1], 'total', ARGV[3], 'changes', ARGV[2])
redis.call('SET', KEYS[2], format('%.0f', left))
changed()
return {1, to, left}
