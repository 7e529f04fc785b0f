-- Gives the units of reserved orders back to the stock and the right to buy
-- back to their buyers, and takes the orders out of the outbox, whatever the
-- answer.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 the mark to set: r rejected, x cancelled, e expired; behind r may stand
--       n letters, the reasons, - for none; then for n moves: n user ids, n
--       order ids
-- Returns {0, answer, ...}, one answer a move in their order: 1 done, 0 given
-- back before, -1 no such order, -2 sold; or {-14} if keys are missing, damaged
-- or of a wrong type: nothing was changed.

local to = sub(ARGV[1], 1, 1)

local function decide(mark)
  if mark == 'q' or mark == 'c' then
    return 1
  elseif mark == 's' or mark == 'p' then
    return -2
  end
  return 0
end

-- least finds how many given-back entries a record has, with a comma before each of
-- its entries, and the least order id among them.
local function least(record)
  local back, id = 0, nil
  for other in string.gmatch(record, ',[rxe]:(%w+)') do
    back = back + 1
    if not id or other < id then
      id = other
    end
  end
  return back, id
end

-- change moves the entry to the end, and forgets the least of those given back if
-- they are too many. It works on a record with a comma before each entry.
local function change(record, at, i)
  record = ',' .. record
  local ends = find(record, ',', at + 1, true) or #record + 1
  local given = ',' .. to .. sub(record, at + 2, ends - 1)
  local reason = match(ARGV[1], '^%l', 1 + i)
  if reason then
    local _, fields = string.gsub(given, ':', ':')
    given = given .. (fields == 4 and '::' or ':') .. reason
  end
  record = sub(record, 1, at - 1) .. sub(record, ends) .. given
  local back, id = least(record)
  while back > keep do
    record = string.gsub(record, ',[rxe]:' .. id .. ':[^,]*', '', 1)
    back, id = least(record)
  end
  return sub(record, 2)
end

local reply, back = move(decide, change, 2)
if back then
  changed()
  moved(2 + (#ARGV - 1) / 2, #ARGV)
end
return reply
