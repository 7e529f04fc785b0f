-- Marks orders as stored, settled or paid, and takes them out of the outbox,
-- whatever the answer: who settles an order has it from the broker.
--
-- KEYS  1 activity  2 stock  3 frozen  4 sold  5 users  6 outbox
-- ARGV  1 the mark to set: c created (units stay frozen), s settled or p paid
--       (units are sold), then for n moves: n user ids, n order ids
-- Returns {0, answer, ...}, one answer a move in their order: 1 done, 0 already
-- so (or further, for c), -1 no such order, -2 in a state this move does not
-- start from; or {-14} if keys are missing, damaged or of a wrong type: nothing
-- was changed.

local to = ARGV[1]

local function decide(mark)
  if mark == to then
    return 0
  elseif mark == 'q' or (mark == 'c' and to ~= 'c') then
    return 1
  elseif to == 'c' and (mark == 's' or mark == 'p') then
    return 0
  end
  return -2
end

local function change(record, at)
  return sub(record, 1, at - 1) .. to .. sub(record, at + 1)
end

local reply, _, some = move(decide, change, to == 'c' and 3 or 4)
if some then
  moved(2 + (#ARGV - 1) / 2, #ARGV)
end
return reply
