-- The yardstick: what anybody would write for one limit on one key.
-- KEYS[1] the counter   ARGV[1] quota   ARGV[2] window, ms
local time = redis.call('TIME')
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
if used + 1 > tonumber(ARGV[1]) then return {0, used, time[1]} end
used = redis.call('INCRBY', KEYS[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, used, time[1]}
