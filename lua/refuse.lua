-- Notes how orders ended that their buyers' records do not have. The first word on an
-- order stays, and none comes after its time is over.
--
-- KEYS  1 refused  2 users
-- ARGV  1 the most notes  2 how long a note stays at least (ms); then for n orders:
--       n order ids, n user ids, n times (ms) after which nothing is noted any more,
--       n words
-- Returns n words, the one that stands for each order; empty if none does and none
-- will: its buyer's record has the order, its time is over, or there are too many
-- notes.

local n = (#ARGV - 2) / 4
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local records = redis.call('HMGET', KEYS[2], unpack(ARGV, n + 3, n + n + 2))

-- Ids sort by time, so the old ones are in front. A key of another type has no notes.
local digits = '0123456789abcdefghjkmnpqrstvwxyz'
local least, rest = '', now - tonumber(ARGV[2])
for _ = 1, 10 do
  local digit = rest % 32
  least, rest = string.sub(digits, digit + 1, digit + 1) .. least, (rest - digit) / 32
end
if type(redis.pcall('ZCARD', KEYS[1])) == 'table' then
  redis.call('UNLINK', KEYS[1])
end
redis.call('ZREMRANGEBYLEX', KEYS[1], '-', '(' .. least)

local room = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
local said, new, reply = {}, {}, {}
for i = 1, n do
  local order = ARGV[2 + i]
  local word = said[order]
  if not word then
    local noted = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. order .. ':', '(' .. order .. ';', 'LIMIT', '0', '1')
    word = noted[1] and string.sub(noted[1], #order + 2) or ''
    if word == '' and room > 0 and now <= tonumber(ARGV[2 + n + n + i])
      and not string.find(records[i] or '', ':' .. order .. ':', 1, true) then
      word, room = ARGV[2 + n + n + n + i], room - 1
      new[#new + 1] = '0'
      new[#new + 1] = order .. ':' .. word
    end
    said[order] = word
  end
  reply[i] = word
end
if #new > 0 then
  redis.call('ZADD', KEYS[1], unpack(new))
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return reply
