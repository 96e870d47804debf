-- Puts in what take.lua has brought from another server, once. What is here already stays.
--
-- KEYS[1] the bucket's counters
-- ARGV    not_after; for how long to remember that this was done, microseconds; the counters
--         ("": none); their time to live, ms; n, n leases; and for each log: window, n, n entries.
--         Leases and entries are a member and a score each.
-- Reply: {0, now} if it is later than not_after; else {1, now}.
local now = now_us()
if now > tonumber(ARGV[1]) then return {0, now} end
local counters = KEYS[1]
local here = counters .. ':here'
if redis.call('EXISTS', here) == 1 then return {1, now} end

local kind = redis.call('TYPE', counters).ok
-- Taken away from here once, and now it comes back.
if kind == 'list' then redis.call('UNLINK', counters, counters .. ':taken') end
redis.call('SET', here, '1', 'PX', ttl_ms(tonumber(ARGV[2])))

local fresh = (kind == 'none' or kind == 'list') and ARGV[3] ~= ''
local ttl = tonumber(ARGV[4])
if fresh and ttl > 0 then redis.call('SET', counters, ARGV[3], 'PX', ARGV[4]) end

local at = 5
-- Members that are not there yet, and for how long the key has to live for them.
local function add(key, wanted)
  local n = tonumber(ARGV[at])
  at = at + 1
  for i = at, at + 2 * n - 1, 2 do
    if wanted then redis.call('ZADD', key, 'NX', ARGV[i + 1], ARGV[i]) end
  end
  at = at + 2 * n
  return n > 0 and wanted
end

local leases = counters .. ':leases'
if add(leases, true) then
  local last = tonumber(redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')[2])
  redis.call('PEXPIRE', leases, ttl_ms(math.max(last - now, 1)))
end
while at <= #ARGV do
  local window = ARGV[at]
  at = at + 1
  local log = counters .. ':log:' .. window
  if add(log, fresh) then redis.call('PEXPIRE', log, ttl_ms(tonumber(window))) end
end
return {1, now}
