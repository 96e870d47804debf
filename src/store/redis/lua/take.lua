-- Takes a bucket away from this server, because another one counts it from now on.
--
-- A list stands in place of its counters afterwards: whoever still asks here cannot read it, and
-- decides by the outage rule. What the bucket held stays beside it, so that the next one who takes
-- it is given the same.
--
-- KEYS[1] the bucket's counters   ARGV[1] not_after   ARGV[2] how long the list stays, microseconds
-- Reply: {0, now} if it is later than not_after; else {1, now, counters or nil, their time to live
-- in ms, leases, then for each log its window and its entries}. Leases and entries are members and
-- scores in turn. The other keys of the bucket follow from the first: see decide.lua.
local now = now_us()
if now > tonumber(ARGV[1]) then return {0, now} end
local counters, ttl = KEYS[1], ttl_ms(tonumber(ARGV[2]))
local taken, leases = counters .. ':taken', counters .. ':leases'

local kind = redis.call('TYPE', counters).ok
if kind == 'string' then
  redis.call('RENAME', counters, taken)
elseif kind == 'none' then
  redis.call('UNLINK', taken)
elseif kind ~= 'list' then
  return redis.error_reply('WRONGTYPE a bucket is a string')
end
if kind ~= 'list' then redis.call('RPUSH', counters, 'moved') end
if redis.call('PTTL', counters) < ttl then redis.call('PEXPIRE', counters, ttl) end
redis.call('UNLINK', counters .. ':here')

local raw = redis.call('GET', taken)
local reply = {1, now, raw, redis.call('PTTL', taken)}
local held = redis.pcall('ZRANGE', leases, 0, -1, 'WITHSCORES')
reply[5] = held.err and {} or held
local ok, windows = pcall(log_windows, raw)
for _, window in ipairs(ok and windows or {}) do
  local entries = redis.pcall('ZRANGE', counters .. ':log:' .. window, 0, -1, 'WITHSCORES')
  if not entries.err then
    reply[#reply + 1] = window
    reply[#reply + 1] = entries
  end
end
return reply
