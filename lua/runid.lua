-- Put before the scripts that open an activity.

-- runid is the id this server has had since it started, and since it followed
-- another one last: what it holds then is the other's, which may have missed the
-- last second. Empty if it does not tell. Asking here names the very server that
-- holds the keys.
local function runid()
  local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
  local id = type(server) == 'string' and string.match(server, 'run_id:(%x+)') or ''
  local followed = type(replication) == 'string' and string.match(replication, 'master_replid2:(%x+)')
  if id ~= '' and followed and string.find(followed, '[^0]') then
    id = id .. '-' .. followed
  end
  return id
end
