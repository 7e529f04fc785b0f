-- Put before the scripts that give units back or change what may be sold.

-- changed tells the edges so, by the product's id. Who does not hear it looks by
-- itself; so a server that forbids publishing is no failure.
local function changed()
  redis.pcall('PUBLISH', 'seckill:changes', string.match(KEYS[1], '{(.+)}$'))
end
