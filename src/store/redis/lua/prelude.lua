local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Rounded up to a whole millisecond; at least one, for 0 is refused. A number of up to 17 digits
-- is passed on to a command digit by digit.
local function ttl_ms(us)
  return math.max(math.ceil(us / 1000), 1)
end

