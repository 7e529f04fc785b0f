-- Opens, holds or closes an activity. Every real change raises the epoch, so
-- that reservations made under the old one are refused; opening notes the
-- server's run id. Holding one that is held raises it too, unless its stock is
-- being proven: an opening under way, which began before, is refused.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 new state: open, held or closed  3 the epoch it is to be
--       opened from, empty for any
-- Returns {code, epoch}: 1 changed; 0 it was in that state; -1 no activity;
-- -2 another activity is there; -3 it is closed, which is final; -4 its stock is
-- being proven or has to be, because this server is not the one it was held on;
-- -5 it stands at another epoch; -14 its hash is damaged or of a wrong type. The
-- epoch is 0 below 0.

local there = redis.pcall('HMGET', KEYS[1], 'id', 'state', 'epoch', 'run')
if there.err then
  return {-14, 0}
elseif not there[1] then
  return {redis.call('EXISTS', KEYS[1]) == 0 and -1 or -14, 0}
elseif there[1] ~= ARGV[1] then
  return {-2, 0}
end

local state, epoch = there[2], count(there[3])
if not epoch or (state ~= 'open' and state ~= 'held' and state ~= 'closed') then
  return {-14, 0}
elseif state == ARGV[2] and (state ~= 'held' or there[4] == 'unproven') then
  return {0, epoch}
elseif state == 'closed' then
  return {-3, 0}
elseif ARGV[2] == 'open' and (there[4] or '') ~= '' and there[4] ~= runid() then
  return {-4, 0}
elseif ARGV[2] == 'open' and ARGV[3] ~= '' and ARGV[3] ~= there[3] then
  return {-5, 0}
end

-- A full memory refuses only a script's first write, and never a HDEL: an
-- operator can always shut the gate.
redis.call('HDEL', KEYS[1], 'none')
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'epoch', format('%.0f', epoch + 1))
if state == ARGV[2] then
  return {0, epoch + 1}
end
if ARGV[2] == 'open' then
  redis.call('HSET', KEYS[1], 'run', runid())
end
changed()
return {1, epoch + 1}
