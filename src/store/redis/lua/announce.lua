-- Announces a replica, and says how many there are: each for so long as it announced itself.
-- It writes, so that it also shows whether the server does its work.
--
-- KEYS[1] a sorted set of replicas, by when their announcement ends
-- ARGV[1] the replica   ARGV[2] how long it is announced for, microseconds
-- Reply: {now, replicas}
local now = now_us()
local text = function(number) return string.format('%.0f', number) end
local ends = now + tonumber(ARGV[2])
local gone = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
-- Of another type, and so in the way of all of us.
if type(gone) == 'table' then redis.call('UNLINK', KEYS[1]) end
-- Announced while the server's time was ahead: as long as anybody may.
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(ends), '+inf')) do
  redis.call('ZADD', KEYS[1], text(ends), replica)
end
redis.call('ZADD', KEYS[1], text(ends), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ttl_ms(ends - now))
return {now, redis.call('ZCARD', KEYS[1])}
