-- Puts an activity into Redis, never over a live sale.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 activity id  2 title  3 start (ms)  4 end (ms)  5 total  6 limit per
--       user  7 pay window (ms)  8 changes of the total so far  9 state
-- Returns 1 loaded; 0 this activity is there already, nothing was changed;
-- -1 refused: another activity that is not closed and fully settled is there,
-- or keys of the product without an activity, or keys of a wrong type.

local epoch = '1'
local there = redis.pcall('HMGET', KEYS[1], 'id', 'state', 'epoch')
if there.err then
  return -1
elseif not there[1] then
  if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]) > 0 then
    return -1
  end
elseif there[1] == ARGV[1] then
  return 0
else
  local last = count(there[3])
  if there[2] ~= 'closed' or not last
    or redis.call('MGET', KEYS[3])[1] ~= '0' or redis.pcall('HLEN', KEYS[6]) ~= 0 then
    return -1
  end
  epoch = format('%.0f', last + 1)
end

redis.call('UNLINK', KEYS[1], KEYS[5], KEYS[6])
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'title', ARGV[2], 'start', ARGV[3], 'end', ARGV[4],
  'total', ARGV[5], 'limit', ARGV[6], 'pay', ARGV[7], 'changes', ARGV[8], 'state', ARGV[9], 'epoch', epoch,
  'run', ARGV[9] == 'open' and runid() or '')
redis.call('MSET', KEYS[2], ARGV[5], KEYS[3], '0', KEYS[4], '0')
changed()
return 1
