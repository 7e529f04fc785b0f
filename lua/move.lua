-- Put before settle.lua and release.lua, behind record.lua.
--
-- move carries out one batch of moves, as if they came one after the other, and
-- returns the script's reply, whether units have moved, and whether any order has.
--     decide(mark)      1 if an order with this mark moves, else the answer
--     change(rec, at, i)  the record with the order of move i, whose mark is at
--                       position at, moved
--     target            which of KEYS counts its units afterwards; 3: they stay frozen
local function move(decide, change, target)
  local n = (#ARGV - 1) / 2
  local records = redis.pcall('HMGET', KEYS[5], unpack(ARGV, 2, n + 1))
  if records.err or type(redis.pcall('HLEN', KEYS[6])) == 'table' then
    return {-14}
  end

  local users, place, units = {}, {}, 0
  local reply = {0}
  for i = 1, n do
    local user, order = ARGV[1 + i], ARGV[1 + n + i]
    local seat = place[user]
    local record = records[i]
    if seat then
      record = users[seat]
    end
    local answer, at, mark, quantity = -1, nil, nil, nil
    if record and valid(order) then
      at, mark, quantity = entry(record, order)
    end
    if at then
      answer = decide(mark)
    end
    if answer == 1 then
      units = units + quantity
      if not seat then
        seat = #users + 2
        users[seat - 1] = user
        place[user] = seat
      end
      users[seat] = change(record, at, i)
    end
    reply[1 + i] = answer
  end

  local moving = target ~= 3 and units > 0
  if moving then
    local counters = redis.call('MGET', KEYS[3], KEYS[target])
    local left, there = count(counters[1]), count(counters[2])
    if not left or not there or left < units then
      return {-14}
    end
  end
  -- A full memory refuses only a script's first write, and never a HDEL: so
  -- moves go on, and make room.
  redis.call('HDEL', KEYS[6], unpack(ARGV, 2 + n, 1 + n + n))
  if #users > 0 then
    redis.call('HSET', KEYS[5], unpack(users))
  end
  if moving then
    redis.call('DECRBY', KEYS[3], format('%.0f', units))
    redis.call('INCRBY', KEYS[target], format('%.0f', units))
  end
  return reply, moving, #users > 0
end
