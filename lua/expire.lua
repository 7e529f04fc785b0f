-- Lets the keys of an activity that is over expire, all at the same instant. Edges
-- that are still there say again that they are.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox  7 edges
-- ARGV  1 activity id  2 how long the keys stay (ms), 0 for not at all
-- Returns 1 they expire from now on; 0 they did before; -1 no activity; -2
-- another activity; -3 it is not closed.

local there = redis.pcall('HMGET', KEYS[1], 'id', 'state')
if there.err or not there[1] then
  return -1
elseif there[1] ~= ARGV[1] then
  return -2
elseif there[2] == 'open' or there[2] == 'held' then
  return -3
elseif ARGV[2] == '0' then
  redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
  return 1
elseif redis.call('PTTL', KEYS[1]) >= 0 then
  return 0
end
local clock = redis.call('TIME')
local at = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) + tonumber(ARGV[2])
for i = 1, 6 do
  redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', at))
end
redis.call('UNLINK', KEYS[7])
return 1
