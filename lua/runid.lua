-- Put before the scripts that open an activity.

-- runid is the id this server has had since it started; empty if it does not
-- tell. Asking here names the very server that holds the keys.
local function runid()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end
