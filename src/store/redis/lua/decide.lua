-- Decides admissions and settles earlier ones, all on one server, in one step.
--
-- In front of it stands a prelude with two functions: now_us(), the server's time in microseconds
-- since 1970, and ttl_ms(us), the time to live of a key that says nothing new after so many
-- microseconds. The product's is prelude.lua; tests have one whose time they set.
--
-- KEYS    of each bucket in the plan: its counters; its leases, if the plan says so; its logs
-- ARGV[1] the plan, little-endian:
--   d not_after        a later run changes nothing and answers {0, now}
--   d birth            tells buckets made by this call from others (birth + place in the plan)
--   H n, n specs:      B m, m times: d name, d quota, d capacity
--   H n, n buckets:    H spec, B leases (1: has the key), B m, H size, m times: d window of a log,
--                      text (empty: the key is the text)
--   H n, n changes:    H bucket, H spec, d birth (0: any), 16 bytes id, B m, m actions:
--                      B action, d name of the limit, d amount, d when
--   H n, n admissions: H count, B m, B flags (1: an id follows, 2: only look), d lease ttl,
--                      m buckets: H bucket, B shadow, per limit of its spec: d need (-1: skip),
--                      d charge; [16 bytes id]
-- Changes come first, then the admissions, one after another. `count` stands for so many equal
-- admissions.
-- Reply: {1, now, admitted, changed, bucket...}
--   admitted           H of each admission: how many of `count` (65535: undecided)
--   changed            B of each change: 1 done, 0 not (its bucket cannot be read), 2 not, because
--                      another server has the bucket now
--   bucket             of those that admissions ask, in the order of the plan: what its key held
--                      (nil: nothing) if that says it all; else its state after the changes and
--                      before the admissions (see `snapshot`), or "!" and an error ("moved":
--                      another server has it now)
--
-- Every read comes before the first write: scripts do not roll back. What one bucket's key holds
-- concerns the admissions that ask it, and no others.
--
-- The arithmetic is that of src/limit, in doubles: every number is an integer below 2^53, by the
-- choice of ticks. A bucket is a string:
--   B version (1), B flags (1: a text follows), d birth, B n, n limits, [text]
--   a limit: d name, d quota, and by algorithm
--     0 fixed_window   d start, d used
--     1 sliding_window d start, d current, d previous
--     2 sliding_log    d used, d count, d last; entries in a sorted set: id .. d cost, by instant
--     3 token_bucket   d capacity, d last, d level, d rest, d fills
--     4 concurrency    nothing; leases in a sorted set: id, by expiry
--   name = window in microseconds * 64 + unit * 8 + algorithm
local su, sp, sub, format = struct.unpack, struct.pack, string.sub, string.format
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local call = redis.call

local MAX = 9007199254740991 -- 2^53 - 1
local PRODUCT = 4503599627370495 -- 2^52 - 1
local UNDECIDED = 65535
local FIXED, SLIDING, LOG, TOKENS, LEASES = 0, 1, 2, 3, 4
local GIVE_BACK, TAKE, TAKE_IN_WINDOW, REMOVE, PUT, RENEW = 1, 2, 3, 4, 5, 6

local now = now_us()
local plan = ARGV[1]
local not_after, first_birth, at = su('<dd', plan)
if now > not_after then return {0, now} end

local function text(number) return format('%.0f', number) end

-- A limit as steps need it: see limit::compile.
local function limit_of(name, quota, capacity)
  local kind, window = name % 8, floor(name / 64)
  local limit = {name = name, kind = kind, window = window, quota = quota, capacity = capacity,
                 tick = 1, ticks = window, most = MAX}
  -- What it begins with where it is stored, by which it is known at a glance.
  limit.head = kind == TOKENS and sp('<ddd', name, quota, capacity) or sp('<dd', name, quota)
  limit.size = #limit.head
  if kind == SLIDING or kind == TOKENS then
    local largest, tick = max(quota, capacity, 1), 1
    while tick * 100 < window and ceil(window / tick) > floor(PRODUCT / largest) do
      tick = tick * 10
    end
    limit.tick = tick
    limit.ticks = kind == TOKENS and ceil(window / tick) or floor(window / tick)
    limit.most = floor(MAX / limit.ticks)
  end
  return limit
end

-- Steps by algorithm. A state has the limit as `l`. See src/limit for the reasons.

local function fill(s)
  s.level, s.rest, s.fills = s.l.capacity, 0, (s.fills + 1) % 262144
end

local function whole_at(s)
  local l = s.l
  if l.quota == 0 then return s.last + l.window end
  local ticks = ceil(((l.capacity - s.level) * l.ticks - s.rest) / l.quota)
  return s.last + min(ticks, floor(MAX / l.tick)) * l.tick
end

-- Brings a state to now. True if it lay ahead, written before the server's time was set back: then
-- that is written down even if nothing is charged, or those who wait would wait for that time.
local advance = {
  [FIXED] = function(s)
    local start, window = s.start, s.l.window
    if now >= start then
      if now - start < window then return false end
      s.used = 0
    end
    s.start = now - now % window
    return now < start
  end,
  [SLIDING] = function(s)
    local l, start = s.l, s.start
    s.current, s.previous = min(s.current, l.most), min(s.previous, l.most)
    if now >= start and now - start < l.window then return false end
    local aligned = now - now % l.window
    if now >= start then
      s.previous = aligned - start == l.window and s.current or 0
      s.current = 0
    end
    s.start = aligned
    return now < start
  end,
  [LOG] = function(s) return #s.ahead > 0 end, -- see read_log
  [TOKENS] = function(s)
    local l = s.l
    s.rest = min(s.rest, l.ticks - 1)
    s.level = max(s.level, l.capacity - l.most)
    if now <= s.last or s.level >= l.capacity then
      local ahead = now < s.last
      if s.level >= l.capacity then fill(s) end
      s.last = now
      return ahead
    end
    local ticks = floor((now - s.last) / l.tick)
    if ticks == 0 then return false end
    local full
    if l.quota > 0 then
      full = ticks >= ceil(((l.capacity - s.level) * l.ticks - s.rest) / l.quota)
    else
      full = now >= whole_at(s)
    end
    if full then
      fill(s)
      s.last = now
      return false
    end
    local refill = ticks * l.quota + s.rest
    s.level = s.level + floor(refill / l.ticks)
    s.rest = refill % l.ticks
    s.last = s.last + ticks * l.tick
    return false
  end,
  [LEASES] = function() return false end, -- see cut_leases
}

local fits = {
  [FIXED] = function(s, need)
    local quota = s.l.quota
    return need <= quota and quota > 0 and s.used + need <= quota
  end,
  [SLIDING] = function(s, need)
    local l = s.l
    if need > l.quota or l.quota == 0 then return false end
    local room = l.quota - need - s.current
    if room < 0 then return false end
    if s.previous == 0 then return true end
    local ticks = min(ceil((s.start + l.window - now) / l.tick), l.ticks)
    return ceil(s.previous * ticks / l.ticks) <= room
  end,
  [LOG] = function(s, need)
    local quota = s.l.quota
    if need > quota or quota == 0 then return false end
    local over = s.used + need - quota
    if over > s.over then s.over = over end
    return over <= 0
  end,
  [TOKENS] = function(s, need)
    local l = s.l
    return need <= l.capacity and l.quota > 0 and l.capacity > 0 and s.level >= need
  end,
  [LEASES] = function(s, need)
    local quota = s.l.quota
    return need <= quota and quota > 0 and s.bucket.live + need <= quota
  end,
}

local charge = {
  [FIXED] = function(s, amount) s.used = min(s.used + amount, s.l.most) end,
  [SLIDING] = function(s, amount) s.current = min(s.current + amount, s.l.most) end,
  [LOG] = function(s, amount, id)
    if amount == 0 then return end
    s.added[#s.added + 1] = id .. sp('<d', amount)
    s.used, s.count, s.last = s.used + amount, s.count + 1, now
  end,
  [TOKENS] = function(s, amount) s.level = max(s.level - amount, s.l.capacity - s.l.most) end,
  [LEASES] = function(s, amount, id, ttl)
    if amount == 0 then return end
    local bucket = s.bucket
    bucket.puts[id] = now + ttl
    bucket.live, bucket.latest = bucket.live + 1, max(bucket.latest, now + ttl)
  end,
}

-- From when on the state says no more than a fresh one; 0: it does not now.
local spent_at = {
  [FIXED] = function(s) return s.used > 0 and s.start + s.l.window or 0 end,
  [SLIDING] = function(s)
    if s.current > 0 then return s.start + 2 * s.l.window end
    return s.previous > 0 and s.start + s.l.window or 0
  end,
  [LOG] = function(s) return s.count > 0 and s.last + s.l.window or 0 end,
  [TOKENS] = function(s) return s.level < s.l.capacity and whole_at(s) or 0 end,
  [LEASES] = function(s) return s.bucket.live > 0 and s.bucket.latest or 0 end,
}

local function bucket_spent_at(bucket)
  local latest, states = 0, bucket.states
  for i = 1, #states do
    local spent = spent_at[states[i].l.kind](states[i])
    if spent > latest then latest = spent end
  end
  return latest
end

-- Reading.

-- An integer that a double holds; not so what somebody else wrote there.
local function checked(number, least)
  if number >= least and number <= MAX and number % 1 == 0 then return number end
  error('holds a number that is none of ours', 0)
end

local function cost_of(entry)
  local cost = su('<d', entry, 17)
  return checked(cost, 1)
end

-- Of an entry or a lease: what somebody else wrote there may be no integer, and infinite.
local function instant_of(score) return min(floor(tonumber(score)), MAX) end

-- Entries that were made in time that is still to come are taken as made now.
local function read_log(bucket, s)
  s.key = bucket.logs[s.l.window]
  if not s.key then return end -- nobody asks about it: it stays as it is
  local gone = call('ZRANGEBYSCORE', s.key, '-inf', text(now - s.l.window))
  local count = call('ZCARD', s.key)
  if count ~= s.count then -- entries were lost
    s.used = 0
    for _, entry in ipairs(call('ZRANGE', s.key, 0, -1)) do s.used = s.used + cost_of(entry) end
  end
  for _, entry in ipairs(gone) do s.used = s.used - cost_of(entry) end
  s.count = count - #gone
  if s.count == 0 then return end
  s.last = min(instant_of(call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2]), now)
  s.ahead = call('ZRANGEBYSCORE', s.key, '(' .. text(now), '+inf')
end

local function state_of(bucket, l)
  if l.kind == LOG then
    return {l = l, over = 0, added = {}, removed = {}, placed = {}, ahead = {}}
  end
  return {l = l, bucket = bucket}
end

local function fresh_state(bucket, limit)
  local kind = limit.kind
  local s = state_of(bucket, limit)
  if kind == FIXED then
    s.start, s.used = 0, 0
  elseif kind == SLIDING then
    s.start, s.current, s.previous = 0, 0, 0
  elseif kind == LOG then
    s.key, s.fresh = bucket.logs[limit.window], true
    s.used, s.count, s.last = 0, 0, 0
  elseif kind == TOKENS then
    s.last, s.level, s.rest, s.fills = 0, limit.capacity, 0, 0
  end
  advance[kind](s)
  return s
end

local function make_fresh(bucket, spec)
  bucket.birth, bucket.layout, bucket.states = first_birth + bucket.place, spec, {}
  bucket.advanced = true
  for i, limit in ipairs(spec) do bucket.states[i] = fresh_state(bucket, limit) end
end

-- The limit that stands at `from`, which is not the one that is asked for.
local function other_limit(raw, from)
  local name, quota, next = su('<dd', raw, from)
  checked(name, 0)
  checked(quota, 0)
  local kind, capacity = name % 8, quota
  if kind > LEASES then error('holds a limit of an unknown kind', 0) end
  if kind ~= LEASES and name < 64 then error('holds a limit without a window', 0) end
  if kind == TOKENS then
    capacity, next = su('<d', raw, next)
    checked(capacity, 0)
  end
  return limit_of(name, quota, capacity), next
end

local read_state = {
  [FIXED] = function(_, l, raw, from)
    local start, used, next = su('<dd', raw, from)
    return {l = l, start = checked(start, 0), used = checked(used, 0)}, next
  end,
  [SLIDING] = function(_, l, raw, from)
    local start, current, previous, next = su('<ddd', raw, from)
    return {l = l, start = checked(start, 0), current = checked(current, 0),
            previous = checked(previous, 0)}, next
  end,
  [LOG] = function(bucket, l, raw, from)
    local s, used, count, last, next = state_of(bucket, l), su('<ddd', raw, from)
    s.used, s.count, s.last = checked(used, 0), checked(count, 0), checked(last, 0)
    return s, next
  end,
  [TOKENS] = function(_, l, raw, from)
    local last, level, rest, fills, next = su('<dddd', raw, from)
    return {l = l, last = checked(last, 0), level = checked(level, -MAX), rest = checked(rest, 0),
            fills = checked(fills, 0)}, next
  end,
  [LEASES] = function(bucket, l, _, from) return state_of(bucket, l), from end,
}

local function same(layout, spec)
  if layout == spec then return true end
  if #layout ~= #spec then return false end
  for i = 1, #layout do
    if layout[i].head ~= spec[i].head then return false end
  end
  return true
end

local function read(bucket)
  local raw = call('GET', bucket.key)
  if bucket.leases then
    bucket.live = call('ZCOUNT', bucket.leases, '(' .. text(now), '+inf')
    bucket.latest = instant_of(call('ZREVRANGE', bucket.leases, 0, 0, 'WITHSCORES')[2] or 0)
  end
  if not raw then
    if bucket.n_logs > 0 then -- of another type: an error
      for _, key in pairs(bucket.logs) do call('ZCARD', key) end
    end
    return
  end
  -- Mostly one fixed window, the one that is asked for: read in one go.
  local only = bucket.spec[1]
  if only.kind == FIXED and not bucket.spec[2] and #raw == 43 and sub(raw, 12, 27) == only.head then
    local version, flags, birth, n, _, _, start, used = su('<BBdBdddd', raw)
    if version == 1 and flags == 0 and n == 1 then
      bucket.birth, bucket.raw, bucket.layout = checked(birth, 0), raw, bucket.spec
      bucket.states = {{l = only, start = checked(start, 0), used = checked(used, 0)}}
      return
    end
  end
  local version, flags, birth, n, from = su('<BBdB', raw)
  if version ~= 1 or flags > 1 then error('holds something else than a bucket', 0) end
  bucket.birth, bucket.raw = checked(birth, 0), raw
  local states, spec, known = {}, bucket.spec, true
  for i = 1, n do
    local l = spec[i]
    if l and sub(raw, from, from + l.size - 1) == l.head then
      from = from + l.size
    else
      l, from = other_limit(raw, from)
      known = false
    end
    states[i], from = read_state[l.kind](bucket, l, raw, from)
  end
  bucket.states, bucket.layout = states, spec
  if not known or n ~= #spec then
    local layout = {}
    for i = 1, n do layout[i] = states[i].l end
    bucket.layout = layout
  end
  if flags == 1 then
    bucket.text = sub(raw, from)
  elseif from ~= #raw + 1 then
    error('holds something else than a bucket', 0)
  end
  if bucket.n_logs == 0 then return end
  for i = 1, n do
    if states[i].l.kind == LOG then read_log(bucket, states[i]) end
  end
end

-- Whether another server counts the bucket now: see take.lua.
local function moved(bucket)
  return call('TYPE', bucket.key).ok == 'list' and call('LINDEX', bucket.key, 0) == 'moved'
end

-- A bucket is as it was when it was used last until it is known by which limits it goes on.
local function advance_all(bucket)
  if bucket.advanced then return end
  bucket.advanced = true
  local states = bucket.states
  for i = 1, #states do
    local s = states[i]
    if advance[s.l.kind](s) then bucket.turned = true end
  end
end

-- A bucket that is there, for limits that somebody comes with: one that is spent and has others
-- is as good as gone.
local function ready(bucket, spec)
  if not bucket.states then return make_fresh(bucket, spec) end
  if same(bucket.layout, spec) or bucket_spent_at(bucket) > now then return end
  make_fresh(bucket, spec)
end

-- Takes over the limits of `spec`: counters of the same name stay.
local function take_over(bucket, spec)
  ready(bucket, spec)
  if same(bucket.layout, spec) then
    bucket.layout = spec
    advance_all(bucket)
    return
  end
  local kept = {}
  for _, s in ipairs(bucket.states) do kept[s.l.name] = s end
  for i, limit in ipairs(spec) do
    local s = kept[limit.name]
    if s then
      s.l = limit
      if advance[limit.kind](s) then bucket.turned = true end -- by the new numbers
    else
      s = fresh_state(bucket, limit)
    end
    bucket.states[i] = s
  end
  for i = #spec + 1, #bucket.states do bucket.states[i] = nil end
  bucket.layout, bucket.advanced = spec, true
end

-- Changes.

local function live_lease(bucket, id)
  local expiry = bucket.puts[id]
  if expiry == nil then expiry = tonumber(call('ZSCORE', bucket.leases, id) or 0) end
  return expiry and expiry > now
end

local function put_lease(bucket, id, expiry)
  if not bucket.leases or expiry <= now then return end
  if not live_lease(bucket, id) then bucket.live = bucket.live + 1 end
  bucket.puts[id], bucket.latest = expiry, max(bucket.latest, expiry)
end

local function drop_lease(bucket, id)
  if not bucket.leases then return end
  if live_lease(bucket, id) then bucket.live = bucket.live - 1 end
  bucket.puts[id] = false
end

local function last_entry(s)
  local from = 0
  while true do
    local entry = call('ZREVRANGE', s.key, from, from, 'WITHSCORES')
    if not entry[1] then return 0 end
    if not s.removed[entry[1]] then return min(instant_of(entry[2]), now) end
    from = from + 1
  end
end

local function remove_entry(s, entry, cost)
  if not s.key or s.fresh or s.removed[entry] then return end
  local instant = tonumber(call('ZSCORE', s.key, entry) or nil)
  if not instant or instant + s.l.window <= now then return end
  s.removed[entry] = true
  s.used, s.count = s.used - cost, s.count - 1
  s.last = s.count > 0 and last_entry(s) or 0
end

local function add_entry(s, entry, cost, instant)
  if not s.key or instant + s.l.window <= now then return end
  s.placed[entry] = instant
  s.used, s.count, s.last = s.used + cost, s.count + 1, max(s.last, instant)
end

local function give_back(s, amount, window)
  local kind = s.l.kind
  if kind == FIXED then
    if window == s.start then s.used = max(s.used - amount, 0) end
  elseif kind == SLIDING then
    if window == s.start then
      s.current = max(s.current - amount, 0)
    elseif window + s.l.window == s.start then
      s.previous = max(s.previous - amount, 0)
    end
  elseif kind == TOKENS and window == s.fills then
    s.level = s.level + amount
    if s.level >= s.l.capacity then fill(s) end
  end
end

local function take_in_window(s, amount, window)
  local kind = s.l.kind
  if kind == TOKENS or window == s.start then
    charge[kind](s, amount)
  elseif kind == SLIDING and window + s.l.window == s.start then
    s.previous = min(s.previous + amount, s.l.most)
  end
end

local function change(bucket, s, action, amount, when, id, own)
  local kind = s.l.kind
  if action == GIVE_BACK then
    if own then give_back(s, amount, when) end
  elseif action == TAKE then
    if kind ~= LOG and kind ~= LEASES then charge[kind](s, amount) end
  elseif action == TAKE_IN_WINDOW then
    if kind ~= LOG and kind ~= LEASES then take_in_window(s, amount, when) end
  elseif action == REMOVE then
    if kind == LOG then remove_entry(s, id .. sp('<d', amount), amount) end
    if kind == LEASES then drop_lease(bucket, id) end
  elseif action == PUT then
    if kind == LOG then add_entry(s, id .. sp('<d', amount), amount, min(when, now)) end
    if kind == LEASES then put_lease(bucket, id, when) end
  elseif action == RENEW and kind == LEASES then
    put_lease(bucket, id, now + amount)
  end
end

local function creates(action) return action ~= GIVE_BACK and action ~= REMOVE end

-- The plan, read as it is carried out.

local specs, buckets = {}, {}
local n
n, at = su('<H', plan, at)
for i = 1, n do
  local spec, m = {}
  m, at = su('B', plan, at)
  for k = 1, m do
    local name, quota, capacity
    name, quota, capacity, at = su('<ddd', plan, at)
    spec[k] = limit_of(name, quota, capacity)
  end
  specs[i] = spec
end

local key = 0
n, at = su('<H', plan, at)
local no_keys = {}
for i = 1, n do
  local spec, leases, logs, size
  spec, leases, logs, size, at = su('<HBBH', plan, at)
  key = key + 1
  -- All fields it will ever have, so that the table is made once.
  local bucket = {place = i, key = KEYS[key], spec = specs[spec], live = 0, latest = 0,
                  n_logs = logs, logs = no_keys, raw = false, birth = 0, states = false,
                  layout = false, advanced = false, turned = false, asked = false, dirty = false,
                  changed = false}
  if leases == 1 then
    key = key + 1
    bucket.leases, bucket.puts = KEYS[key], {}
  end
  if logs > 0 then bucket.logs = {} end
  for _ = 1, logs do
    local window
    window, at = su('<d', plan, at)
    key = key + 1
    bucket.logs[window] = KEYS[key]
  end
  if size > 0 then
    bucket.text = sub(plan, at, at + size - 1)
    at = at + size
  end
  buckets[i] = bucket
  local ok, why = pcall(read, bucket)
  if not ok then
    bucket.moved = moved(bucket)
    bucket.bad = bucket.moved and 'moved' or type(why) == 'table' and why.err or tostring(why)
  end
end

local changed = {}
n, at = su('<H', plan, at)
for i = 1, n do
  local place, spec, birth, m
  place, spec, birth, at = su('<HHd', plan, at)
  local id = sub(plan, at, at + 15)
  m, at = su('B', plan, at + 16)
  local bucket = buckets[place]
  for _ = 1, m do
    local action, name, amount, when
    action, name, amount, when, at = su('<Bddd', plan, at)
    if not bucket.bad and (bucket.states or creates(action)) then
      ready(bucket, specs[spec])
      advance_all(bucket)
      for _, s in ipairs(bucket.states) do
        if s.l.name == name then
          change(bucket, s, action, amount, when, id, birth == 0 or birth == bucket.birth)
        end
      end
      bucket.dirty, bucket.changed = true, true
    end
  end
  changed[i] = bucket.moved and '\2' or bucket.bad and '\0' or '\1'
end

-- The state that a bucket's admissions start from: "=", d birth, then by algorithm
--   0: d start, d used   1: d start, d current, d previous   2: d used, d last, entries follow
--   3: d last, d level, d rest, d fills                      4: d live
-- and in the end of each log H n, n times: d instant, d cost: its oldest entries, as many as must
-- leave before what was refused fits.
local function snapshot(bucket)
  local out = {'=' .. sp('<d', bucket.birth)}
  for i, s in ipairs(bucket.states) do
    local kind = s.l.kind
    if kind == FIXED then
      out[i + 1] = sp('<dd', s.start, s.used)
    elseif kind == SLIDING then
      out[i + 1] = sp('<ddd', s.start, s.current, s.previous)
    elseif kind == LOG then
      s.stored = s.count
      out[i + 1] = sp('<dd', s.used, s.last)
    elseif kind == TOKENS then
      out[i + 1] = sp('<dddd', s.last, s.level, s.rest, s.fills)
    else
      out[i + 1] = sp('<d', bucket.live)
    end
  end
  return out
end

local function oldest_entries(s)
  local entries, n_entries, left, from = {}, 0, s.over, 0
  local listed = not s.fresh and s.key and s.stored > 0
  while listed and left > 0 do
    local page = call('ZRANGEBYSCORE', s.key, '(' .. text(now - s.l.window), '+inf', 'WITHSCORES',
                      'LIMIT', from, 64)
    for i = 1, #page, 2 do
      if left > 0 and n_entries < 65535 and not s.removed[page[i]] then
        local ours, cost = pcall(cost_of, page[i])
        if ours then
          n_entries, left = n_entries + 1, left - cost
          entries[n_entries] = sp('<dd', min(instant_of(page[i + 1]), now), cost)
        else
          left = 0 -- what is behind it is taken as made last
        end
      end
    end
    from = from + 64
    listed = #page == 128 and n_entries < 65535
  end
  return sp('<H', n_entries) .. table.concat(entries)
end

-- Leases that would outlive one made now: the time was set back, or the ttl made shorter.
local function cut_leases(bucket, ttl)
  if bucket.cut == ttl then return end
  bucket.cut = ttl
  local longest = now + ttl
  for _, id in ipairs(call('ZRANGEBYSCORE', bucket.leases, '(' .. text(longest), '+inf')) do
    if bucket.puts[id] == nil then
      bucket.puts[id], bucket.turned = longest, true
    end
  end
  bucket.latest = min(bucket.latest, longest)
end

-- How many of `count` equal charges, each after a check of `need`, a limit of windows or tokens
-- admits. As many as are admitted are charged at once: that is the same as one after another,
-- because nothing else happens in between and no amount is cut off (if one might be: nil).
local most_of = {
  [FIXED] = function(s, need, amount, count)
    local l = s.l
    if need > l.quota or l.quota == 0 or s.used + need > l.quota then return 0 end
    if amount == 0 then return count end
    if s.used + count * amount > l.most then return nil end
    return min(count, floor((l.quota - need - s.used) / amount) + 1)
  end,
  [SLIDING] = function(s, need, amount, count)
    local l = s.l
    if not fits[SLIDING](s, need) then return 0 end
    if amount == 0 then return count end
    if s.current + count * amount > l.most then return nil end
    local weight = 0
    if s.previous > 0 then
      local ticks = min(ceil((s.start + l.window - now) / l.tick), l.ticks)
      weight = ceil(s.previous * ticks / l.ticks)
    end
    return min(count, floor((l.quota - need - s.current - weight) / amount) + 1)
  end,
  [TOKENS] = function(s, need, amount, count)
    local l = s.l
    if not fits[TOKENS](s, need) then return 0 end
    if amount == 0 then return count end
    if s.level - count * amount < l.capacity - l.most then return nil end
    return min(count, floor((s.level - need) / amount) + 1)
  end,
}

local row, shadows, row_fits, needs, charges = {}, {}, {}, {}, {}

-- One after another, over the buckets of `row`. How many were admitted.
local function admit_each(m, count, look, id, ttl)
  local done = 0
  while done < count do
    local all, slot = true, 0
    for j = 1, m do
      local fit, states = true, row[j].states
      for k = 1, #states do
        slot = slot + 1
        local s = states[k]
        if needs[slot] >= 0 and not fits[s.l.kind](s, needs[slot]) then fit = false end
      end
      row_fits[j] = fit
      if not fit and shadows[j] == 0 then all = false end
    end
    if not all then break end
    done = done + 1
    slot = 0
    for j = 1, m do
      local bucket = row[j]
      local states = bucket.states
      local charged = row_fits[j] and not look
      for k = 1, #states do
        slot = slot + 1
        local s = states[k]
        if charged and needs[slot] >= 0 then charge[s.l.kind](s, charges[slot], id, ttl) end
      end
      if charged then bucket.dirty = true end
    end
  end
  return done
end

-- The same at once, for equal admissions of one bucket without leases and logs.
local function admit_many(bucket, count)
  local states, done = bucket.states, count
  for k = 1, #states do
    local s = states[k]
    if needs[k] >= 0 then
      local most = most_of[s.l.kind](s, needs[k], charges[k], count)
      if not most then return admit_each(1, count, false) end
      if most < done then done = most end
    end
  end
  if done == 0 then return 0 end
  for k = 1, #states do
    local s = states[k]
    if needs[k] >= 0 then charge[s.l.kind](s, done * charges[k]) end
  end
  bucket.dirty = true
  return done
end

local admitted = {}
local asked_buckets, asked_places = {}, {}
n, at = su('<H', plan, at)
for i = 1, n do
  local count, m, flags, ttl
  count, m, flags, ttl, at = su('<HBBd', plan, at)
  local look, bad, slots, plain = flags >= 2, false, 0, m == 1
  for j = 1, m do
    local place
    place, shadows[j], at = su('<HB', plan, at)
    local bucket = buckets[place]
    row[j] = bucket
    if not asked_places[place] then
      asked_places[place] = true
      asked_buckets[#asked_buckets + 1] = bucket
      if not bucket.bad then
        -- What was stored says it all, if nobody has changed it and it holds all there is.
        local untouched = not bucket.changed and not bucket.leases and bucket.n_logs == 0 and
                          (not bucket.raw or bucket.layout == bucket.spec)
        if bucket.layout == bucket.spec then
          advance_all(bucket)
        else
          take_over(bucket, bucket.spec)
        end
        if not untouched then bucket.snapshot = snapshot(bucket) end
      end
    end
    bad = bad or bucket.bad
    local spec = bucket.spec
    for k = 1, #spec do
      slots = slots + 1
      needs[slots], charges[slots], at = su('<dd', plan, at)
      local kind = spec[k].kind
      if kind == LEASES or kind == LOG then plain = false end
      if kind == LEASES and not look and not bucket.bad and needs[slots] >= 0 then
        cut_leases(bucket, ttl)
      end
    end
    bucket.asked = bucket.asked or not look
  end
  local id
  if flags % 2 == 1 then
    id = sub(plan, at, at + 15)
    at = at + 16
  end
  local done
  if bad then
    done = UNDECIDED
  elseif plain and not look and shadows[1] == 0 then
    done = admit_many(row[1], count)
  else
    done = admit_each(m, count, look, id, ttl)
  end
  admitted[i] = sp('<H', done)
end

local reply = {1, now, table.concat(admitted), table.concat(changed)}
for _, bucket in ipairs(asked_buckets) do
  if bucket.bad then
    reply[#reply + 1] = '!' .. bucket.bad
  elseif bucket.snapshot then
    local out = bucket.snapshot
    for _, s in ipairs(bucket.states) do
      if s.l.kind == LOG then out[#out + 1] = oldest_entries(s) end
    end
    reply[#reply + 1] = table.concat(out)
  else
    reply[#reply + 1] = bucket.raw or false
  end
end

-- Writing.

local function write_log(s)
  if not s.key then return end
  if s.fresh then
    call('UNLINK', s.key)
  else
    call('ZREMRANGEBYSCORE', s.key, '-inf', text(now - s.l.window))
    for entry in pairs(s.removed) do call('ZREM', s.key, entry) end
    for _, entry in ipairs(s.ahead) do
      if not s.removed[entry] then call('ZADD', s.key, text(now), entry) end
    end
  end
  for entry, instant in pairs(s.placed) do call('ZADD', s.key, text(instant), entry) end
  for _, entry in ipairs(s.added) do call('ZADD', s.key, text(now), entry) end
  call('PEXPIRE', s.key, ttl_ms(s.l.window))
end

local function write_leases(bucket)
  if not bucket.leases then return end
  call('ZREMRANGEBYSCORE', bucket.leases, '-inf', text(now))
  for id, expiry in pairs(bucket.puts) do
    if expiry then
      call('ZADD', bucket.leases, text(expiry), id)
    else
      call('ZREM', bucket.leases, id)
    end
  end
  if bucket.latest > now then call('PEXPIRE', bucket.leases, ttl_ms(bucket.latest - now)) end
end

local encode = {
  [FIXED] = function(s) return s.l.head .. sp('<dd', s.start, s.used) end,
  [SLIDING] = function(s) return s.l.head .. sp('<ddd', s.start, s.current, s.previous) end,
  [LOG] = function(s) return s.l.head .. sp('<ddd', s.used, s.count, s.last) end,
  [TOKENS] = function(s) return s.l.head .. sp('<dddd', s.last, s.level, s.rest, s.fills) end,
  [LEASES] = function(s) return s.l.head end,
}

local function encoded(bucket)
  local states = bucket.states
  local s = states[1]
  if #states == 1 and s.l.kind == FIXED and not bucket.text then
    return sp('<BBdBdddd', 1, 0, bucket.birth, 1, s.l.name, s.l.quota, s.start, s.used)
  end
  local head = sp('<BBdB', 1, bucket.text and 1 or 0, bucket.birth, #states)
  local out = {head}
  for i = 1, #states do out[i + 1] = encode[states[i].l.kind](states[i]) end
  out[#out + 1] = bucket.text
  return table.concat(out)
end

-- Mostly many buckets live equally long, and a number takes long to become a text.
local ttl_texts = {}
local function ttl_text(us)
  local ttl = ttl_texts[us]
  if not ttl then
    ttl = format('%.0f', ttl_ms(us))
    ttl_texts[us] = ttl
  end
  return ttl
end

for i = 1, #buckets do
  local bucket = buckets[i]
  if not bucket.bad and (bucket.dirty or (bucket.asked and bucket.turned)) and bucket.states then
    local spent = bucket_spent_at(bucket)
    if spent > now then
      call('PSETEX', bucket.key, ttl_text(spent - now), encoded(bucket))
    elseif bucket.raw then
      call('UNLINK', bucket.key)
    end
    if bucket.n_logs > 0 then
      for _, s in ipairs(bucket.states) do
        if s.l.kind == LOG then write_log(s) end
      end
    end
    if bucket.leases then write_leases(bucket) end
  end
end
return reply
