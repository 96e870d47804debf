-- The yardstick with four limits: four keys, all checked before one is charged.
-- KEYS[1] what the keys begin with   ARGV[1] quota   ARGV[2] window, ms
local time = redis.call('TIME')
local quota = tonumber(ARGV[1])
for i = 1, 4 do
  local used = tonumber(redis.call('GET', KEYS[1] .. i) or 0)
  if used + 1 > quota then return {0, used, time[1]} end
end
local used
for i = 1, 4 do
  used = redis.call('INCRBY', KEYS[1] .. i, 1)
  redis.call('PEXPIRE', KEYS[1] .. i, ARGV[2])
end
return {1, used, time[1]}
