-- Reads buckets for listings. Changes nothing.
--
-- KEYS    of each bucket: its counters, its leases
-- Reply: {now, for each bucket {what its key of counters holds or nil, live leases, for each of its
-- logs what is used and when the last entry was made, 0 for none}}. The keys of logs follow from the
-- windows in the counters, and have the same hash tag: see decide.lua for the layout.
local now = now_us()

local function logs_of(counters, raw)
  local logs = {}
  for _, window in ipairs(log_windows(raw)) do
    local sum, last = 0, 0
    local live = '(' .. string.format('%.0f', now - tonumber(window))
    local key = counters .. ':log:' .. window
    local found = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES')
    for entry = 1, #found, 2 do
      sum = sum + struct.unpack('<d', found[entry], 17)
      last = tonumber(found[entry + 1])
    end
    logs[#logs + 1] = sum
    logs[#logs + 1] = last
  end
  return logs
end

local reply = {now}
for i = 1, #KEYS, 2 do
  local raw = redis.pcall('GET', KEYS[i])
  local live = redis.pcall('ZCOUNT', KEYS[i + 1], '(' .. string.format('%.0f', now), '+inf')
  local entry = {false, 0, {}}
  if type(raw) == 'string' and type(live) == 'number' then
    local ok, logs = pcall(logs_of, KEYS[i], raw)
    if ok then entry = {raw, live, logs} end
  end
  reply[#reply + 1] = entry
end
return reply
