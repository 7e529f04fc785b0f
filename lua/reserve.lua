-- Reserves units for 1 to 256 requests of one product, as if they came one
-- after the other.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 epoch the caller knows  2 until when (ms) anything new may be reserved,
--       0 for ever; then for n requests:
--       n user ids, n order ids, n quantities, each "n" or "n:key", the key being
--       what the buyer's Idempotency-Key was made into (11 of A-Z a-z 0-9 _ -)
-- Returns {activity id, epoch, state, now (ms), units left, answer, ...}: the
-- first three are strings, empty if unreadable; units left is -1 if unreadable.
-- An answer, one a request in their order, is
--       > 0     reserved: the claim
--       < 0     an outcome code
--       string  already bought: the order id of the buyer's latest live order;
--               or, with "key:" before it, the order of an earlier request that
--               had this key and asked for as much; or, with "own:" before it,
--               reserved before, under this order id: its entry in the record

local n = (#ARGV - 2) / 3
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- What is true for the whole batch: shut is 0 or the outcome of everything new.
local activity = redis.pcall('HMGET', KEYS[1], 'id', 'epoch', 'state', 'start', 'end', 'total', 'limit', 'run')
local units = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
local outbox = redis.pcall('HLEN', KEYS[6])
local records = redis.pcall('HMGET', KEYS[5], unpack(ARGV, 3, n + 2))

local id, epoch, state, limit = '', '', '', nil
local stock, frozen, sold = count(units[1]), count(units[2]), count(units[3])
local shut = 0
if activity.err then
  shut = -14
elseif not activity[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  shut = -5
else
  id, epoch, state = activity[1] or '', activity[2] or '', activity[3] or ''
  local opens, ends, total = count(activity[4]), count(activity[5]), count(activity[6])
  limit = count(activity[7])
  if id == '' or not count(epoch) or not opens or not ends or not total or not limit
    or not stock or not frozen or not sold or stock + frozen + sold ~= total
    or type(outbox) == 'table' or records.err
    or (frozen + sold > 0 and redis.call('EXISTS', KEYS[5]) == 0) -- nobody would be known to have bought
    or (state ~= 'open' and state ~= 'held' and state ~= 'closed') then
    shut = -14
  elseif state == 'closed' then
    shut = -3
  elseif state == 'held' and activity[8] ~= 'unproven' then
    shut = -8 -- by an operator: hold.lua notes that it is until the stock is proven
  elseif state == 'held' or epoch ~= ARGV[1] then
    shut = -14
  elseif now < opens then
    shut = -2
  elseif now >= ends then
    shut = -3
  elseif (activity[8] or '') ~= runid() then
    -- This server is not the one that the stock was proven on: it has restarted
    -- or taken over, and may have forgotten the last second.
    shut = -14
  elseif ARGV[2] ~= '0' and now > tonumber(ARGV[2]) then
    -- This call was on its way for so long that its buyers may have been told that
    -- their orders are lost.
    shut = -14
  end
end
if records.err then
  records = {}
end

-- tailed says whether text may follow an entry's time: its key, its reason.
local function tailed(text)
  local n = #text
  return n == 12 and find(text, '^:[%w_-]+$') or n == 14 and find(text, '^:[%w_-]+:%l$') or n == 3 and find(text, '^::%l$')
end

-- repeated finds the order that an earlier request with this key got: the answer,
-- or nil if there was none.
local function repeated(record, key, quantity)
  local order, had = match(record .. ',',
    ':(%w+):([1-9]%d?%d?):[1-9]%d?%d?:%d+:' .. string.gsub(key, '%-', '%%-') .. '[,:]')
  if not order then
    return nil
  end
  return had == quantity and 'key:' .. order or -9
end

-- claims reads a buyer's record: units he holds, the order id of his latest
-- live order, the lowest claim no live order has, how many of his orders were
-- given back, and the least of their ids; nil if it is damaged.
local function claims(record)
  local held, latest, used, read = 0, '', {}, 0
  local back, least = 0, nil
  for mark, order, quantity, claim, at, tail in string.gmatch(record, '([qcspxre]):([^:,]+):([1-9]%d*):([1-9]%d*):(%d+)([:%w_-]*)') do
    if tail ~= '' and not tailed(tail) then
      return nil
    end
    read = read + #order + #quantity + #claim + #at + #tail + 6
    if mark ~= 'r' and mark ~= 'x' and mark ~= 'e' then
      held = held + tonumber(quantity)
      latest = order
      used[tonumber(claim)] = true
    else
      back = back + 1
      if not least or order < least then
        least = order
      end
    end
  end
  if read ~= #record + 1 then
    return nil
  end
  local free = 1
  while used[free] do
    free = free + 1
  end
  return held, latest, free, back, least
end

-- known decides for a buyer who has a record: the answer, or nil and the claim
-- that a new order of his gets.
local function known(record, order, wanted, key)
  local again = key and repeated(record, key, format('%d', wanted))
  if again and again ~= 'key:' .. order then
    return again
  end
  local at = entry(record, order)
  if at then
    return 'own:' .. match(record, '^[^,]+', at)
  elseif shut == -5 then
    return shut
  end
  local held, latest, free, back, least = claims(record)
  if not held then
    return -14
  elseif back >= keep and order < least then
    return -13 -- it may be one of those that were forgotten
  elseif shut ~= 0 then
    return shut
  elseif held + wanted > limit then
    return latest
  end
  return nil, free
end

local stamp = format(':%.0f', now)
local first = ':1' .. stamp
local users, orders, place = {}, {}, {} -- HSET's arguments; where a user's record is among them
local seats, sent = 0, 0                -- their lengths
local sizes = {}                        -- quantity as it came → number, or false
local keys = {}                         -- quantity as it came → key, if there is one
local taken = 0
local reply = {id, epoch, state, now, 0}

for i = 1, n do
  local user, order, quantity = ARGV[2 + i], ARGV[2 + n + i], ARGV[2 + n + n + i]
  local wanted = sizes[quantity]
  if wanted == nil then
    local size, key = match(quantity, '^([1-9]%d?%d?):([%w_-]+)$')
    if key and #key == 11 then
      wanted = tonumber(size)
      keys[quantity] = key
    else
      wanted = find(quantity, '^[1-9]%d?%d?$') and tonumber(quantity) or false
    end
    if limit and wanted and wanted > limit then
      wanted = false
    end
    sizes[quantity] = wanted
  end
  local key = keys[quantity]
  local seat = place[user]
  local record = records[i]
  if seat then
    record = users[seat]
  end

  local answer, claim = nil, 1
  if not wanted or not valid(order) or #user > 128 or not find(user, '^%C+$') then
    answer = -1
  elseif record then
    answer, claim = known(record, order, wanted, key)
  elseif shut ~= 0 then
    answer = shut
  end

  if not answer and stock == 0 then
    answer = -6
  elseif not answer and stock < wanted then
    answer = -7
  elseif not answer then
    stock, taken = stock - wanted, taken + wanted
    local size = key and format('%d', wanted) or quantity
    local new = 'q:' .. order .. ':' .. size .. (claim == 1 and first or format(':%d', claim) .. stamp)
    if key then
      new = new .. ':' .. key
    end
    if record then
      new = record .. ',' .. new
    end
    if not seat then
      seat, seats = seats + 2, seats + 2
      users[seat - 1], place[user] = user, seat
    end
    users[seat] = new
    orders[sent + 1], orders[sent + 2] = order, user
    if wanted > 1 or claim > 1 then
      orders[sent + 2] = user .. format('\t%d\t%d', wanted, claim)
    end
    sent = sent + 2
    answer = claim
  end
  reply[5 + i] = answer
end

if taken > 0 then
  redis.call('HSET', KEYS[5], unpack(users))
  redis.call('HSET', KEYS[6], unpack(orders))
  redis.call('DECRBY', KEYS[2], format('%.0f', taken))
  redis.call('INCRBY', KEYS[3], format('%.0f', taken))
end
reply[5] = stock or -1
return reply
