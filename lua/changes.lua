-- Put before the scripts that give units back or change what may be sold.

-- changed tells the edges so, by the product's id. Who does not hear it looks by
-- itself; so a server that forbids publishing is no failure.
local function changed()
  redis.pcall('PUBLISH', 'seckill:changes', string.match(KEYS[1], '{(.+)}$'))
end

-- moved tells the edges of orders that moves were asked for: the product's id, then
-- the order ids, ARGV first to last. One message a call costs little; who follows
-- none of them reads nothing.
local function moved(first, last)
  redis.pcall('PUBLISH', 'seckill:moves', string.match(KEYS[1], '{(.+)}$') .. ' ' .. table.concat(ARGV, ' ', first, last))
end
