-- Reads an activity and its counters at one instant.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- Returns {found, wrong, now (ms), orders in the outbox, buyers, stock, frozen,
-- sold, id, title, start, end, total, limit, pay, state, epoch, run, changes,
-- run id of this server}: the first
-- five are integers (found is 0 without an activity, wrong is 1 if a hash is
-- something else), the rest strings as stored, empty if missing.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local fields = redis.pcall('HMGET', KEYS[1],
  'id', 'title', 'start', 'end', 'total', 'limit', 'pay', 'state', 'epoch', 'run', 'changes')
local units = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
local outbox, users = redis.pcall('HLEN', KEYS[6]), redis.pcall('HLEN', KEYS[5])

local wrong = 0
if fields.err then
  fields, wrong = {}, 1
end
if type(outbox) == 'table' then
  outbox, wrong = 0, 1
end
if type(users) == 'table' then
  users, wrong = 0, 1
end
local reply = {redis.call('EXISTS', KEYS[1]), wrong, now, outbox, users}
for i = 1, 3 do
  reply[5 + i] = units[i] or ''
end
for i = 1, 11 do
  reply[8 + i] = fields[i] or ''
end
reply[20] = runid()
return reply
