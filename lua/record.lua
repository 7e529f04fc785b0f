-- Put before the scripts that read buyers' records.
--
-- A record is one entry an order, joined by commas:
--     mark:order id:quantity:claim:reserved at (ms)[:key[:reason]]
-- The key is the 11 characters that the buyer's Idempotency-Key was made into,
-- empty if there is only a reason, which is a letter beside mark r.
-- Marks: q c freeze units, s p have sold them, r x e have given them back.
-- Entries stand in the order of reservation; one that gives its units back
-- moves to the end. So the last live entry is the latest order. Of those given back
-- the eight with the greatest ids are remembered: whatever was forgotten has a
-- lesser id than they, so an id that may have been used before shows.

local find, match, sub, format = string.find, string.match, string.sub, string.format

local keep = 8 -- given-back orders a record remembers

-- valid says whether id has the form of an order id (26 of Crockford's base 32).
local function valid(id)
  return #id == 26 and find(id, '^[0-7][0-9a-hjkmnp-tv-z]+$') ~= nil
end

-- count reads a counter or a time as Redis stores it: nil unless it is a whole
-- number that a double holds exactly.
local function count(text)
  if text and #text <= 15 and (text == '0' or find(text, '^[1-9]%d*$')) then
    return tonumber(text)
  end
  return nil
end

-- entry finds an order in a record: the position of its mark, the mark, its
-- quantity and its claim; nil if it is not there. An id is too long to be
-- mistaken for another field.
local function entry(record, id)
  local at = find(record, ':' .. id .. ':', 1, true)
  if not at then
    return nil
  end
  local mark = match(',' .. sub(record, 1, at - 1), ',([qcspxre])$')
  local quantity, claim = match(record, '^([1-9]%d?%d?):([1-9]%d?%d?):%d+', at + 28)
  if not mark or not quantity then
    return nil
  end
  return at - 1, mark, tonumber(quantity), tonumber(claim)
end
