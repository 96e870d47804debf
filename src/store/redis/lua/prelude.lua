local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Rounded up to a whole millisecond; at least one, for 0 would delete the key.
local function ttl_ms(us)
  return string.format('%.0f', math.max(math.ceil(us / 1000), 1))
end

