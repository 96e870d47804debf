-- Reads buckets for listings. Changes nothing.
--
-- KEYS    of each bucket: its counters, its leases
-- Reply: {now, for each bucket {what its key of counters holds or nil, live leases, used of each
-- of its logs}}. The keys of logs follow from the windows in the counters, and have the same hash
-- tag: see decide.lua for the layout.
local su = struct.unpack
local floor, format = math.floor, string.format
local now = now_us()
local SIZES = {[0] = 2, 3, 3, 5, 0} -- numbers of a limit behind name and quota, by algorithm
local LOG = 2

local function logs_of(counters, raw)
  local used = {}
  local n, at = su('<B', raw, 11)
  for _ = 1, n do
    local name = su('<d', raw, at)
    local window = floor(name / 64)
    if name % 8 == LOG then
      local sum = 0
      local live = '(' .. format('%.0f', now - window)
      local key = counters .. ':log:' .. format('%.0f', window)
      for _, entry in ipairs(redis.call('ZRANGEBYSCORE', key, live, '+inf')) do
        sum = sum + su('<d', entry, 17)
      end
      used[#used + 1] = sum
    end
    at = at + 16 + 8 * (SIZES[name % 8] or error('unknown', 0))
  end
  return used
end

local reply = {now}
for i = 1, #KEYS, 2 do
  local raw = redis.pcall('GET', KEYS[i])
  local live = redis.pcall('ZCOUNT', KEYS[i + 1], '(' .. format('%.0f', now), '+inf')
  local entry = {false, 0, {}}
  if type(raw) == 'string' and type(live) == 'number' then
    local ok, used = pcall(logs_of, KEYS[i], raw)
    if ok then entry = {raw, live, used} end
  end
  reply[#reply + 1] = entry
end
return reply
